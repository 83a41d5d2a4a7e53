// CUDA toolkits on the disk: found by place, read without running anything.
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

// "12090" in cuda.h is 12.9 (major*1000 + minor*10).
Fact<std::string> version_of_header(const Host& host, const std::string& root) {
  std::string path = root + "/include/cuda.h";
  auto text = host.read(path, 64u << 10);  // the macro stands near the top
  if (!text) return from_error<std::string>(text.error(), path);
  for (auto line : lines(*text)) {
    auto words = split_ws(line);
    if (words.size() != 3 || words[0] != "#define" || words[1] != "CUDA_VERSION") continue;
    auto n = parse_int(words[2]);
    if (!n || *n < 1000) return malformed<std::string>(path, "CUDA_VERSION is not a number");
    return known(std::to_string(*n / 1000) + "." + std::to_string(*n % 1000 / 10), path);
  }
  return absent<std::string>(path, "no CUDA_VERSION in its first 64 KiB");
}

Fact<std::string> version_in(const Result<std::string>& text, const std::string& path, const char* part) {
  if (!text) return from_error<std::string>(text.error(), path);
  auto j = nlohmann::json::parse(*text, nullptr, false);
  if (j.is_discarded() || !j.is_object()) return malformed<std::string>(path, "not a JSON record");
  auto it = j.find(part);
  if (it == j.end()) return absent<std::string>(path, std::string("no \"") + part + "\"");
  if (!it->is_object() || !it->contains("version") || !(*it)["version"].is_string())
    return malformed<std::string>(path, std::string("\"") + part + "\" has no version");
  return known((*it)["version"].get<std::string>(), path);
}

CudaToolkit read_toolkit(const Host& host, const std::string& root, const std::string& arch) {
  CudaToolkit t;
  t.root = root;
  std::string path = root + "/version.json";
  auto text = host.read(path, 256u << 10);
  t.version = version_in(text, path, "cuda");
  t.nvcc_version = version_in(text, path, "cuda_nvcc");
  if (!t.version) {
    auto header = version_of_header(host, root);
    if (header) t.version = header;
  }
  t.has_nvcc = read_exists(host, root + "/bin/nvcc");
  t.has_cuobjdump = read_exists(host, root + "/bin/cuobjdump");
  t.has_cccl = read_exists(host, root + "/include/cccl");
  std::string target = arch == "aarch64" ? "sbsa-linux" : arch + "-linux";
  t.has_stub = read_exists(host, root + "/lib64/stubs/libcuda.so");
  if (t.has_stub && !*t.has_stub)
    t.has_stub = read_exists(host, root + "/targets/" + target + "/lib/stubs/libcuda.so");
  return t;
}

// Where a chain of links ends.
std::string followed(const Host& host, std::string path) {
  while (path.size() > 1 && ends_with(path, "/")) path.pop_back();
  for (int hops = 0; hops < 8; ++hops) {
    auto target = host.link(path);
    if (!target) break;
    path = starts_with(*target, "/") ? *target : path.substr(0, path.rfind('/')) + "/" + *target;
    while (path.size() > 1 && ends_with(path, "/")) path.pop_back();
  }
  return path;
}

}  // namespace

void read_cuda(const Reading& r, Facts& f) {
  const Host& host = r.host;
  // Packages go through /etc/alternatives: where it ends counts.
  auto link = host.link("/usr/local/cuda");
  f.cuda_home_link = link ? known(followed(host, "/usr/local/cuda"), "/usr/local/cuda")
                          : from_error<std::string>(link.error(), "/usr/local/cuda");
  std::vector<std::string> roots;
  for (const char* parent : {"/usr/local", "/opt"})
    for (const auto& name : names_in(host, parent))
      if (starts_with(name, "cuda-") || name == "cuda") roots.push_back(std::string(parent) + "/" + name);
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (auto v = r.variable(variable); starts_with(v, "/")) roots.push_back(v);
  roots.push_back("/usr/lib/nvidia-cuda-toolkit");
  // A link to a toolkit is that toolkit: each place on disk counts once, under its own name.
  std::set<std::string> seen;
  for (auto root : roots) {
    root = followed(host, root);
    if (!seen.insert(root).second) continue;
    auto t = read_toolkit(host, root, f.os.architecture.value_or("x86_64"));
    if (t.version || t.has_nvcc.value_or(false)) f.cuda.push_back(std::move(t));
  }
}

}  // namespace ep
