// Distribution packages of the stack, and where apt gets packages from.
#include <algorithm>

#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

constexpr std::string_view kRpmPrefixes[] = {
    "nvidia",   "libnvidia",   "cuda-", "kmod-nvidia", "libnccl",    "libnvshmem",     "doca",
    "mlnx",     "ofed",        "mft",   "rdma-core",   "libibverbs", "librdmacm",      "infiniband-diags",
    "perftest", "gdrcopy",     "efa",   "libfabric",   "nvlsm",      "datacenter-gpu", "openmpi",
    "cmake",    "ninja-build", "git",   "gcc-c++",     "dkms",       "kernel-devel",   "python3"};

void take_rows(std::string_view text, bool is_rpm, std::vector<Package>& out) {
  for (auto line : lines(text)) {
    auto cell = split(line, '\t');
    if (cell.size() != 3 || cell[0].empty() || cell[1].empty()) continue;
    bool wanted = !is_rpm;
    for (auto prefix : kRpmPrefixes) wanted |= starts_with(cell[0], prefix);
    if (wanted) out.push_back({std::string(cell[0]), std::string(cell[1]), std::string(cell[2])});
  }
}

// User names and passwords in an address are nobody's business.
std::string without_login(std::string_view uri) {
  size_t scheme = uri.find("://"), at = uri.find('@');
  if (scheme == uri.npos || at == uri.npos || uri.find('/', scheme + 3) < at) return std::string(uri);
  return std::string(uri.substr(0, scheme + 3)) + std::string(uri.substr(at + 1));
}

// One-line style: deb [signed-by=/path arch=x] URI SUITE... (sources.list(5)).
void take_list(std::string_view text, const std::string& path, std::vector<AptSource>& out) {
  int number = 0;
  for (auto line : lines(text)) {
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (!starts_with(line, "deb ") && !starts_with(line, "deb-src ")) continue;
    std::string place = path + ":" + std::to_string(number);
    AptSource s{place, "", absent<std::string>(place, "no signed-by")};
    std::string_view rest = trim(line.substr(line.find(' ')));
    if (starts_with(rest, "[")) {
      size_t close = rest.find(']');
      if (close == rest.npos) continue;
      for (auto option : split_ws(rest.substr(1, close - 1)))
        if (starts_with(option, "signed-by=")) s.signed_by = known(std::string(option.substr(10)), place);
      rest = trim(rest.substr(close + 1));
    }
    auto words = split_ws(rest);
    if (words.empty()) continue;
    s.uri = without_login(words[0]);
    out.push_back(std::move(s));
  }
}

// deb822 style: stanzas of fields.
void take_sources(std::string_view text, const std::string& path, std::vector<AptSource>& out) {
  int number = 0, first = 0;
  std::string uris, signed_by;
  bool enabled = true;
  auto flush = [&] {
    std::string place = path + ":" + std::to_string(first);
    for (auto uri : split_ws(uris))
      if (enabled)
        out.push_back(
            {place, without_login(uri),
             signed_by.empty() ? absent<std::string>(place, "no Signed-By") : known(signed_by, place)});
    uris = signed_by = "";
    first = 0;
    enabled = true;
  };
  for (auto line : lines(text)) {
    ++number;
    if (trim(line).empty()) {
      flush();
      continue;
    }
    if (starts_with(line, "#")) continue;
    if (!first) first = number;
    size_t colon = line.find(':');
    std::string key = lower(line.substr(0, colon));
    std::string value(colon == line.npos ? "" : trim(line.substr(colon + 1)));
    if (key == "uris") uris = value;
    // An inlined key continues on the next lines; its presence is what counts.
    if (key == "signed-by") signed_by = value.empty() ? "(inline key)" : value;
    if (key == "enabled") enabled = value != "no";
  }
  flush();
}

}  // namespace

void read_packages(const Reading& r, Facts& f) {
  const ProbeResult& dpkg = r.probes.get("dpkg");
  const ProbeResult& rpm = r.probes.get("rpm");
  // dpkg-query ends with 1 when one of its patterns has no match; the others are printed all the same.
  if (dpkg.found && !dpkg.timed_out && (dpkg.exit_code == 0 || dpkg.exit_code == 1)) {
    take_rows(dpkg.out, false, f.packages);
    f.packages_readable = known(true, "probe dpkg");
  } else if (rpm.found) {
    auto text = probe_text(rpm, "rpm");
    take_rows(text.value_or(""), true, f.packages);
    f.packages_readable = text ? known(true, text.where) : same_trouble<bool>(text);
  } else {
    f.packages_readable = same_trouble<bool>(probe_text(dpkg, "dpkg"));
  }
  std::sort(f.packages.begin(), f.packages.end(), [](auto& a, auto& b) { return a.name < b.name; });
  auto list = r.host.read("/etc/apt/sources.list");
  if (list) take_list(*list, "/etc/apt/sources.list", f.apt_sources);
  for (const auto& name : names_in(r.host, "/etc/apt/sources.list.d")) {
    std::string path = "/etc/apt/sources.list.d/" + name;
    if (!ends_with(name, ".list") && !ends_with(name, ".sources")) continue;
    auto text = r.host.read(path);
    if (!text) continue;
    if (ends_with(name, ".list"))
      take_list(*text, path, f.apt_sources);
    else
      take_sources(*text, path, f.apt_sources);
  }
}

}  // namespace ep
