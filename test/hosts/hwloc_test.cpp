// hwloc as an independent oracle: it loads a snapshot's root/ as a file system root and builds its own PCI
// tree. The number of bridges that a GPU and a NIC share must be the same as in our facts.
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "facts/facts.h"
#include "facts/pci_ids.h"
#include "host/capture.h"
#include "host/process.h"
#include "host/recorder.h"
#include "machines.h"

namespace ep::test {
namespace {

namespace fs = std::filesystem;

struct Scratch {
  std::string path;
  Scratch() : path(testing::TempDir() + "hwloc_test.XXXXXX") { EXPECT_TRUE(mkdtemp(path.data())); }
  ~Scratch() { fs::remove_all(path); }
};

using Chains =
    std::map<std::string, std::vector<std::string>>;  // PCI address -> PCI-PCI bridges above it, root first

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}
bool is_address(const std::string& s) {
  return s.size() == 12 && s[4] == ':' && s[7] == ':' && s[10] == '.';
}

Chains our_chains(const Facts& f) {
  Chains out;
  for (const auto& d : f.pci) {
    auto& chain = out[d.address];
    for (const auto& part : d.path)
      if (is_address(part)) chain.push_back(part);
  }
  return out;
}

std::string attribute(std::string_view tag, const std::string& name) {
  size_t at = tag.find(" " + name + "=\"");
  if (at == tag.npos) return {};
  at += name.size() + 3;
  return std::string(tag.substr(at, tag.find('"', at) - at));
}

// Nested <object type="Bridge" pci_busid=...> and <object type="PCIDev" ...>; only what this test needs of
// the XML.
Chains hwloc_chains(std::string_view xml) {
  Chains out;
  std::vector<std::string> stack;  // one entry an open object; "" for what is no PCI bridge
  for (size_t at = 0; (at = xml.find('<', at)) != xml.npos; ++at) {
    std::string_view tag = xml.substr(at, xml.find('>', at) - at);
    if (starts_with(tag, "</object")) {
      if (!stack.empty()) stack.pop_back();
      continue;
    }
    if (!starts_with(tag, "<object")) continue;
    std::string type = attribute(tag, "type"), address = attribute(tag, "pci_busid");
    bool is_bridge = type == "Bridge" && attribute(tag, "bridge_type") == "1-1";
    if (type == "PCIDev" || is_bridge)
      for (const auto& s : stack)
        if (!s.empty()) out[address].push_back(s);
    if (type == "PCIDev") out[address];
    if (!ends_with(tag, "/")) stack.push_back(is_bridge ? address : "");
  }
  return out;
}

size_t shared(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

// hwloc takes bus numbers of bridges from configuration space; an invented machine gets one that fits its
// tree.
void add_config_space(SnapshotData& d) {
  std::map<std::string, std::pair<int, int>> buses;  // folder -> lowest and highest bus below
  std::vector<std::string> folders;
  for (const auto& [path, node] : d.nodes)
    if (ends_with(path, "/class") && is_address(last_part(parent_path(path))))
      folders.push_back(parent_path(path));
  for (const auto& folder : folders) {
    int bus = int(*parse_int("0x" + folder.substr(folder.size() - 7, 2)));
    for (std::string up = parent_path(folder); is_address(last_part(up)); up = parent_path(up)) {
      auto [it, fresh] = buses.try_emplace(up, bus, bus);
      if (!fresh) it->second = {std::min(it->second.first, bus), std::max(it->second.second, bus)};
    }
  }
  for (const auto& folder : folders) {
    auto number = [&](const char* file) {
      return unsigned(*parse_int(trim(*d.nodes[folder + "/" + file].content)));
    };
    std::string config(64, '\0');
    auto put16 = [&](size_t at, unsigned v) { config[at] = char(v & 255), config[at + 1] = char(v >> 8); };
    put16(0, number("vendor"));
    put16(2, number("device"));
    unsigned c = number("class");
    config[9] = char(c & 255), config[10] = char(c >> 8 & 255), config[11] = char(c >> 16);
    if (auto it = buses.find(folder); it != buses.end()) {
      config[14] = 1;
      config[0x18] = char(*parse_int("0x" + folder.substr(folder.size() - 7, 2)));
      config[0x19] = char(it->second.first);
      config[0x1a] = char(it->second.second);
    }
    d.file(folder + "/config", config);
  }
}

// hwloc wants at least one processor with a topology folder.
void add_processor(SnapshotData& d) {
  d.file("/sys/devices/system/cpu/online", "0\n");
  d.file("/sys/devices/system/cpu/possible", "0\n");
  for (const char* file : {"core_id", "physical_package_id"})
    d.file(std::string("/sys/devices/system/cpu/cpu0/topology/") + file, "0\n");
  for (const char* file : {"thread_siblings", "core_cpus", "core_siblings", "package_cpus"})
    d.file(std::string("/sys/devices/system/cpu/cpu0/topology/") + file, "1\n");
}

void compare(const SnapshotData& data, const std::string& name) {
  Spawn s;
  s.env = base_environment();
  s.argv = {"lstopo-no-graphics", "--version"};
  if (!run(s)) GTEST_SKIP() << "hwloc's lstopo is not installed (package hwloc-nox)";
  Scratch scratch;
  ASSERT_TRUE(write_snapshot(data, scratch.path + "/snap"));
  s.argv = {"lstopo-no-graphics",
            "-i",
            scratch.path + "/snap/root",
            "--if",
            "fsroot",
            "--filter",
            "io:all",
            "--of",
            "xml"};
  auto r = run(s);
  ASSERT_TRUE(r && r->ok()) << (r ? r->err : r.error().text());
  Chains theirs = hwloc_chains(r->out);
  auto host = snapshot_host(scratch.path + "/snap");
  ASSERT_TRUE(host);
  Facts f = read_facts(**host);
  Chains ours = our_chains(f);
  size_t pairs = 0;
  for (const auto& a : f.pci)
    for (const auto& b : f.pci) {
      if (is_bridge_class(*a.device_class) || is_bridge_class(*b.device_class) || a.address >= b.address)
        continue;
      ASSERT_TRUE(theirs.count(a.address)) << a.address << " is not in hwloc's tree of " << name;
      ASSERT_TRUE(theirs.count(b.address)) << b.address << " is not in hwloc's tree of " << name;
      EXPECT_EQ(shared(ours[a.address], ours[b.address]), shared(theirs[a.address], theirs[b.address]))
          << name << ": " << a.address << " and " << b.address;
      ++pairs;
    }
  std::printf("%s: %zu pairs of PCI devices compared with hwloc\n", name.c_str(), pairs);
  if (name != "this machine") {
    EXPECT_GT(pairs, 100u);
  }
}

TEST(Hwloc, AgreesOnGcpA4) {
  SnapshotData d = gcp_a4_done();
  add_config_space(d);
  add_processor(d);
  compare(d, "gcp-a4-done");
}
TEST(Hwloc, AgreesOnH100InfiniBand) {
  SnapshotData d = h100_ib();
  add_config_space(d);
  add_processor(d);
  compare(d, "h100-ib");
}
TEST(Hwloc, LoadsThisMachine) {
  auto live = live_host();
  Recorder recorder(*live);
  read_facts(recorder);
  capture_declared(recorder);
  compare(recorder.data(), "this machine");
}

}  // namespace
}  // namespace ep::test
