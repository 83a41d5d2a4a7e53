// Components in folders of their own below a prefix: what epready published (with a stamp), and the runbook's
// builds, known by their headers and libraries.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

// "#define NAME 3" for each name, joined with dots.
Fact<std::string> version_of_macros(const Host& host, const std::string& path,
                                    const std::vector<std::string_view>& names) {
  auto text = host.read(path, 64u << 10);
  if (!text) return from_error<std::string>(text.error(), path);
  std::vector<std::string> parts;
  for (auto name : names)
    for (auto line : lines(*text)) {
      auto words = split_ws(line);
      if (words.size() >= 3 && words[0] == "#define" && words[1] == name && parse_int(words[2])) {
        parts.emplace_back(words[2]);
        break;
      }
    }
  if (parts.size() != names.size())
    return malformed<std::string>(path, "its version macros are not all there");
  return known(join(parts, "."), path);
}

}  // namespace

Fact<std::string> header_version(const Host& host, const std::string& name, const std::string& root) {
  if (name == "nvshmem") {
    const std::vector<std::string_view> macros{"NVSHMEM_VENDOR_MAJOR_VERSION", "NVSHMEM_VENDOR_MINOR_VERSION",
                                               "NVSHMEM_VENDOR_PATCH_VERSION"};
    auto v = version_of_macros(host, root + "/include/non_abi/nvshmem_version.h", macros);
    return v ? v : version_of_macros(host, root + "/include/nvshmem_version.h", macros);
  }
  if (name == "nccl")
    return version_of_macros(host, root + "/include/nccl.h", {"NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH"});
  if (name == "gdrcopy")
    return version_of_macros(host, root + "/include/gdrapi.h",
                             {"GDR_API_MAJOR_VERSION", "GDR_API_MINOR_VERSION"});
  return absent<std::string>(root, "no stamp, and no header tells the version");
}

namespace {

// What a folder without a stamp is, by the file that only this part has; empty when it is none of ours.
std::string known_part(const Host& host, const std::string& root) {
  const std::pair<const char*, const char*> marks[] = {{"nvshmem", "/lib/libnvshmem_host.so"},
                                                       {"nvshmem", "/lib/libnvshmem_host.so.3"},
                                                       {"gdrcopy", "/include/gdrapi.h"},
                                                       {"nccl", "/include/nccl.h"},
                                                       {"deepep", "/deep_ep/__init__.py"}};
  for (auto [name, file] : marks)
    if (host.exists(root + file)) return name;
  return {};
}

std::optional<InstalledPart> read_part(const Host& host, const std::string& root) {
  InstalledPart p;
  p.root = root;
  std::string path = root + "/.epready-part";
  auto stamp = host.read(path, 64u << 10);
  p.stamped = stamp.has_value();
  std::string by_files = known_part(host, root);
  p.name = p.stamped ? root.substr(root.rfind('/') + 1) : by_files;
  if (p.name.empty()) return std::nullopt;
  for (auto line : lines(text_of(stamp))) {
    size_t equals = line.find('=');
    if (equals != line.npos && equals > 0)
      p.stamp[std::string(trim(line.substr(0, equals)))] = trim(line.substr(equals + 1));
  }
  if (auto it = p.stamp.find("version"); it != p.stamp.end())
    p.version = known(it->second, path);
  else
    p.version = header_version(host, p.name, root);
  if (p.name == "nvshmem" && !p.stamp.count("ibgda")) {
    auto names = host.list(root + "/lib");
    if (names)
      p.stamp["ibgda"] = std::any_of(names->begin(), names->end(),
                                     [](auto& n) { return starts_with(n, "nvshmem_transport_ibgda.so"); })
                             ? "yes"
                             : "no";
  }
  return p;
}

}  // namespace

void read_parts(const Reading& r, Facts& f) {
  std::vector<std::string> prefixes;
  for (const auto& name : names_in(r.host, "/opt")) prefixes.push_back("/opt/" + name);
  if (starts_with(r.home(), "/"))
    for (const char* below : {"/.local/share/epready", "/.epready", "/epready"})
      prefixes.push_back(r.home() + below);
  if (auto v = r.variable("EPREADY_PREFIX"); starts_with(v, "/")) prefixes.push_back(v);
  std::set<std::string> seen;
  auto look = [&](const std::string& root) {
    if (!seen.insert(root).second) return;
    if (auto part = read_part(r.host, root)) f.parts.push_back(std::move(*part));
  };
  for (const auto& prefix : prefixes)
    for (const auto& name : names_in(r.host, prefix))
      if (name[0] != '.') look(prefix + "/" + name);
  for (const char* variable :
       {"NVSHMEM_DIR", "NVSHMEM_HOME", "NVSHMEM_PREFIX", "GDRCOPY_HOME", "EP_NCCL_ROOT_DIR"})
    if (auto v = r.variable(variable); starts_with(v, "/")) look(v);
  std::sort(f.parts.begin(), f.parts.end(), [](auto& a, auto& b) { return a.root < b.root; });
}

}  // namespace ep
