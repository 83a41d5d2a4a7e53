// Sources that somebody builds by hand: the runbook's /opt/deepep/{gdrcopy,nvshmem-src,DeepEP}, the workspace
// of vLLM's script, checkouts at home. What of them this user may not write, and what a configured build
// chose.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

constexpr size_t kMaxCache = 1u << 20;

const char* const kKeys[] = {"GDRCOPY_INCLUDE", "GDRCOPY_HOME",          "NVSHMEM_USE_GDRCOPY",
                             "NVSHMEM_PREFIX",  "NVSHMEM_IBGDA_SUPPORT", "CMAKE_CUDA_ARCHITECTURES",
                             "MLX5_lib",        "CMAKE_INSTALL_PREFIX"};

// By the files that only its sources have.
std::string known_tree(const Host& host, const std::string& root) {
  if (host.exists(root + "/setup.py") && host.exists(root + "/csrc") && host.exists(root + "/deep_ep"))
    return "deepep";
  if (!host.exists(root + "/CMakeLists.txt") && !host.exists(root + "/Makefile")) return {};
  if (host.exists(root + "/src/include/nvshmem.h") || host.exists(root + "/src/modules/transport"))
    return "nvshmem";
  if (host.exists(root + "/include/gdrapi.h") && host.exists(root + "/src/gdrdrv")) return "gdrcopy";
  return {};
}

// "GDRCOPY_INCLUDE:PATH=GDRCOPY_INCLUDE-NOTFOUND"
void read_cache(const Host& host, const std::string& path, SourceTree& tree) {
  auto text = host.read(path, kMaxCache);
  if (!text) return;
  tree.has_cache = true;
  for (auto line : lines(*text)) {
    const size_t colon = line.find(':'), equals = line.find('=');
    if (colon == line.npos || equals == line.npos || equals < colon) continue;
    for (const char* key : kKeys)
      if (line.substr(0, colon) == key) tree.cmake[key] = trim(line.substr(equals + 1));
  }
}

void read_tree(const Host& host, const std::string& root, std::vector<SourceTree>& out) {
  SourceTree tree;
  tree.name = known_tree(host, root);
  tree.root = root;
  if (tree.name.empty()) return;
  for (const char* below : {"", "/build", "/deep_ep"}) {
    auto info = host.info(root + below);
    if (info && info->type == FileInfo::Type::directory && info->captured && !info->writable)
      tree.locked.push_back(root + below);
  }
  read_cache(host, root + "/build/CMakeCache.txt", tree);
  out.push_back(std::move(tree));
}

// A variable that names the folder of a header: whether it is there.
Fact<bool> header_below(const Host& host, const std::string& root, const char* header) {
  for (const std::string& path : {root + "/include/" + header, root + "/" + header}) {
    auto there = read_exists(host, path);
    if (!there.ok() || *there) return there;
  }
  for (const auto& name : names_in(host, root + "/include"))  // include/nvshmem_13/nvshmem.h of packages
    if (host.exists(root + "/include/" + name + "/" + header)) return known(true, root + "/include/" + name);
  return known(false, root);
}

}  // namespace

void read_sources(const Reading& r, Facts& f) {
  std::vector<std::string> places;
  for (const auto& name : names_in(r.host, "/opt")) places.push_back("/opt/" + name);
  if (starts_with(r.home(), "/"))
    for (const char* below : {"", "/ep_kernels_workspace"}) places.push_back(r.home() + below);
  places.push_back("/workspace");
  places.push_back("/workspace/ep_kernels_workspace");
  std::set<std::string> seen;
  for (const auto& place : places)
    for (const auto& name : names_in(r.host, place)) {
      const std::string low = lower(name);
      if (!contains(low, "deepep") && !contains(low, "deep_ep") && !contains(low, "nvshmem") &&
          !contains(low, "gdrcopy"))
        continue;
      if (seen.insert(place + "/" + name).second) read_tree(r.host, place + "/" + name, f.sources);
    }
  std::sort(f.sources.begin(), f.sources.end(), [](auto& a, auto& b) { return a.root < b.root; });
  const std::pair<const char*, const char*> named[] = {{"GDRCOPY_HOME", "gdrapi.h"},
                                                       {"GDRCOPY_INCLUDE", "gdrapi.h"},
                                                       {"GDRCOPY_PATH", "gdrapi.h"},
                                                       {"NVSHMEM_DIR", "nvshmem.h"},
                                                       {"NVSHMEM_HOME", "nvshmem.h"}};
  for (auto [variable, header] : named)
    if (auto v = r.variable(variable); starts_with(v, "/"))
      f.named_paths.emplace(variable, header_below(r.host, v, header));
}

}  // namespace ep
