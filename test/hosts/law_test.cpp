// The law of the door: facts from a snapshot equal facts of the host it was taken from, byte for byte, state,
// place and reason included. And how long reading takes.
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/text.h"
#include "facts/fields.h"
#include "host/capture.h"
#include "host/recorder.h"
#include "machines.h"

namespace ep::test {
namespace {

namespace fs = std::filesystem;

// Every field, one a line, with everything that a fact carries.
struct Dump {
  std::string out, path;
  static std::string text(const std::string& v) { return v; }
  static std::string text(const std::vector<std::string>& v) { return join(v, "|"); }
  template <class T>
  static std::string text(const T& v) {
    return std::to_string(v);
  }
  template <class T>
  void fact(const char* name, const Fact<T>& f) {
    out += path + name + " " + std::to_string(int(f.known)) + " [" + text(f.value) + "] [" + f.where + "] [" +
           f.why + "]\n";
  }
  template <class T>
  void plain(const char* name, const T& v) {
    out += path + name + " [" + text(v) + "]\n";
  }
  template <class Body>
  void group(const std::string& name, Body body) {
    std::string up = path;
    path += name + "/";
    body();
    path = up;
  }
  template <class T, class Label, class Body>
  void list(const char* name, const std::vector<T>& items, Label label, Body body) {
    out += path + name + " " + std::to_string(items.size()) + "\n";
    for (const auto& item : items)
      group(std::string(name) + "/" + std::string(label(item)), [&] { body(item); });
  }
};

std::string dump(const Facts& f) {
  Dump d;
  fields(d, f);
  return d.out;
}

void expect_same_lines(const std::string& a, const std::string& b, const std::string& what) {
  if (a == b) return;
  auto x = lines(a), y = lines(b);
  for (size_t i = 0; i < std::max(x.size(), y.size()); ++i)
    if (i >= x.size() || i >= y.size() || x[i] != y[i]) {
      ADD_FAILURE() << what << ": first difference\n  live     " << (i < x.size() ? x[i] : "(nothing)")
                    << "\n  snapshot " << (i < y.size() ? y[i] : "(nothing)");
      return;
    }
}

struct Scratch {
  std::string path;
  Scratch() : path(testing::TempDir() + "law_test.XXXXXX") { EXPECT_TRUE(mkdtemp(path.data())); }
  ~Scratch() { fs::remove_all(path); }
};

void check_law(const Host& host, const std::string& name, bool declared,
               const std::vector<std::string>& forms) {
  Recorder recorder(host);
  std::string first = dump(read_facts(recorder));
  ASSERT_GT(lines(first).size(), 100u);
  if (declared) capture_declared(recorder);
  SnapshotData data = recorder.data();
  Scratch scratch;
  for (const auto& form : forms) {
    auto ok = write_snapshot(data, scratch.path + form);
    ASSERT_TRUE(ok) << ok.error().text();
    auto back = snapshot_host(scratch.path + form);
    ASSERT_TRUE(back) << back.error().text();
    expect_same_lines(first, dump(read_facts(**back)), name + form);
  }
}

TEST(Law, ThisMachine) {
  check_law(*live_host(), "this machine", false, {"/folder"});
}
TEST(Law, ThisMachineWithTheDeclaredList) {
  check_law(*live_host(), "this machine", true, {"/folder", "/packed.tar.gz", "/one.snap"});
}
TEST(Law, InventedMachines) {
  for (const auto& m : machines()) check_law(*host_of(m.make(), m.name), m.name, false, {"/one.snap"});
}

TEST(Law, TwoReadingsAreEqual) {
  auto host = host_of(gcp_a4_done(), "x");
  EXPECT_EQ(dump(read_facts(*host)), dump(read_facts(*host)));
}

// A hand-made host whose every file is refused still gives facts that say so, and nothing that looks known.
TEST(Law, ARefusingHostIsUnreadableNotAbsent) {
  SnapshotData d;
  for (const char* p : {"/proc/modules", "/proc/driver/nvidia/params", "/proc/driver/nvidia/version",
                        "/etc/os-release", "/proc/cmdline", "/proc/self/limits"})
    d.add(p, FileInfo::Type::file).no_read = Trouble{ErrorKind::unreadable, "EACCES (Permission denied)"};
  for (const char* p : {"/sys/class/infiniband", "/sys/bus/pci/devices", "/etc/modprobe.d"})
    d.add(p, FileInfo::Type::directory).no_list =
        Trouble{ErrorKind::unreadable, "EACCES (Permission denied)"};
  Facts f = read_facts(*host_of(d, "x"));
  EXPECT_EQ(f.os.id.known, Known::unreadable);
  EXPECT_EQ(f.kernel.modules_readable.known, Known::unreadable);
  EXPECT_EQ(f.rdma_readable.known, Known::unreadable);
  EXPECT_EQ(f.num_amd_gpus.known, Known::unreadable);
  EXPECT_EQ(f.driver.version.known, Known::unreadable);
  EXPECT_EQ(f.limits.memlock.known, Known::unreadable);
  for (const auto& o : f.driver.options) {
    EXPECT_EQ(o.live.known, Known::unreadable) << o.name;
    EXPECT_EQ(o.pending.known, Known::unreadable) << o.name;
  }
  EXPECT_EQ(f.container.runtime.known, Known::unreadable);
  EXPECT_EQ(f.packages_readable.known, Known::absent);
}

double best_of(int rounds, const Host& host) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    auto begin = std::chrono::steady_clock::now();
    read_facts(host);
    best = std::min(
        best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

// Printed, not judged against the clock: test machines are shared. The bound only catches a runaway.
TEST(Speed, OfReading) {
  auto live = live_host();
  auto big = host_of(gcp_a4_done(), "x");
  double ours = best_of(5, *live), eight = best_of(5, *big);
  std::printf("facts of this machine %.1f ms (goal 150), of an 8-GPU snapshot %.1f ms; best of 5\n", ours,
              eight);
  EXPECT_LT(ours, 10000);
  EXPECT_LT(eight, 10000);
}

}  // namespace
}  // namespace ep::test
