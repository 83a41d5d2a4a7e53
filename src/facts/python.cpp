// Python environments and the wheels in them, read from the disk. Nothing is imported and no interpreter
// runs.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "facts/libraries.h"
#include "facts/parsers.h"
#include "facts/reading.h"

namespace ep {

namespace {

// Wheels of interest, normalised. A trailing * is a prefix.
constexpr std::string_view kWheels[] = {
    "torch",
    "torchvision",
    "triton",
    "numpy",
    "deep-ep*",
    "deepep*",
    "deep-gemm*",
    "vllm*",
    "sglang*",
    "sgl-*",
    "flashinfer*",
    "flash-attn*",
    "nvidia-*",
    "nvshmem4py*",
    "nixl*",
    "mooncake*",
    "uccl*",
    "pplx-*",
    "megatron-*",
    "transformer-engine*",
    "tensorrt-llm*",
    "cuda-*",
    "cupy*",
    "mpi4py",
    "ray",
    "uv",
    "pip",
    "setuptools",
    "wheel",
    "ninja",
    "cmake",
    "pybind11",
    "packaging",
    "xformers",
    "apache-tvm-ffi",
    "mori*",
    "aiter*",
};

bool has_python(const Host& host, const std::string& prefix) {
  return host.exists(prefix + "/bin/python3");
}

// METADATA begins with headers: Name and Version are among the first lines.
std::optional<WheelName> read_metadata(const Host& host, const std::string& dir) {
  for (const char* file : {"/METADATA", "/PKG-INFO"}) {
    auto text = host.read(dir + file, 4096);
    if (!text) continue;
    WheelName w;
    for (auto line : lines(*text)) {
      if (line.empty()) break;
      if (starts_with(line, "Name:")) w.name = trim(line.substr(5));
      if (starts_with(line, "Version:")) w.version = trim(line.substr(8));
    }
    if (!w.name.empty() && !w.version.empty()) return w;
  }
  return std::nullopt;
}

void add_packages(const Host& host, const std::string& site, std::vector<PythonPackage>& out) {
  for (const auto& entry : names_in(host, site)) {
    auto from_name = parse_dist_info_name(entry);
    if (!from_name || !is_wheel_of_interest(normalize_package(from_name->name))) continue;
    auto w = read_metadata(host, site + "/" + entry).value_or(*from_name);
    if (!w.version.empty()) out.push_back({normalize_package(w.name), w.version, site});
  }
}

// A DeepEP built in place (`setup.py build_ext --inplace`) has no metadata: the package folder and its
// extension tell.
void add_source_trees(const Reading& r, std::vector<PythonPackage>& out) {
  const std::string path = r.variable("PYTHONPATH");
  for (auto dir : split(path, ':')) {
    if (!starts_with(dir, "/")) continue;
    std::string root(dir);
    add_packages(r.host, root, out);
    if (r.host.exists(root + "/deep_ep/__init__.py")) out.push_back({"deep-ep", "", root});
  }
}

std::vector<std::string> site_folders(const Host& host, const std::string& prefix) {
  std::vector<std::string> out;
  auto add = [&](const std::string& dir) {
    if (host.exists(dir)) out.push_back(dir);
  };
  for (const char* lib : {"/lib", "/lib64"}) {
    // lib64 is often a link to lib: one place, one mention.
    if (std::string_view(lib) == "/lib64" && host.link(prefix + lib)) continue;
    for (const auto& name : names_in(host, prefix + lib))
      if (starts_with(name, "python3")) {
        add(prefix + lib + "/" + name + "/site-packages");
        add(prefix + lib + "/" + name + "/dist-packages");
      }
  }
  // Debian's system interpreter also looks in /usr/local.
  if (prefix == "/usr")
    for (const auto& name : names_in(host, "/usr/local/lib"))
      if (starts_with(name, "python3.")) add("/usr/local/lib/" + name + "/dist-packages");
  return out;
}

}  // namespace

PythonEnvironment read_environment_at(const Host& host, const std::string& prefix) {
  PythonEnvironment e;
  e.root = prefix;
  e.interpreter = prefix + "/bin/python3";
  auto cfg = host.read(prefix + "/pyvenv.cfg", 64u << 10);
  e.is_virtual = cfg.has_value();
  e.version = absent<std::string>(prefix + "/bin/python3", "not told by a link or pyvenv.cfg");
  for (auto line : lines(text_of(cfg))) {
    size_t equals = line.find('=');
    if (equals == line.npos) continue;
    auto key = trim(line.substr(0, equals));
    if (key == "version" || key == "version_info")
      e.version = known(std::string(trim(line.substr(equals + 1))), prefix + "/pyvenv.cfg");
  }
  std::string at = e.interpreter;
  for (int hops = 0; hops < 5 && !e.version; ++hops) {
    auto target = host.link(at);
    if (!target) break;
    at = starts_with(*target, "/") ? *target : at.substr(0, at.rfind('/') + 1) + *target;
    std::string_view name = std::string_view(at).substr(at.rfind('/') + 1);
    if (starts_with(name, "python3.")) e.version = known(std::string(name.substr(6)), e.interpreter);
  }
  e.site_packages = site_folders(host, prefix);
  if (!e.site_packages.empty()) {
    auto info = host.info(e.site_packages.front());
    if (info && !info->captured)
      e.writable = unreadable<bool>(e.site_packages.front(), "rights not captured");
    else
      e.writable = info ? known(info->writable, e.site_packages.front())
                        : from_error<bool>(info.error(), e.site_packages.front());
  }
  for (const auto& name : names_in(host, prefix + "/lib"))
    if (starts_with(name, "python3.")) {
      e.externally_managed |= host.exists(prefix + "/lib/" + name + "/EXTERNALLY-MANAGED");
      if (!e.version) e.version = known(name.substr(6), prefix + "/lib/" + name);
    }
  if (e.is_virtual) e.externally_managed = false;
  for (const auto& site : e.site_packages) add_packages(host, site, e.packages);
  return e;
}

namespace {

std::vector<std::string> candidates(const Reading& r) {
  const Host& host = r.host;
  std::vector<std::string> out;
  // The folder that somebody named goes before what happens to be active.
  if (auto v = r.variable("EPREADY_PREFIX"); starts_with(v, "/")) out.push_back(v + "/venv");
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (auto v = r.variable(variable); starts_with(v, "/")) out.push_back(v);
  const std::string path = r.variable("PATH");
  for (auto dir : split(path, ':'))
    if (starts_with(dir, "/") && ends_with(dir, "/bin")) out.emplace_back(dir.substr(0, dir.size() - 4));
  out.insert(out.end(), {"/usr", "/usr/local"});
  std::string home = r.home();
  if (starts_with(home, "/")) out.push_back(home + "/.local/share/epready/venv");
  std::vector<std::string> parents{"/opt", "/opt/conda/envs"};
  if (starts_with(home, "/")) {
    for (const char* name : {"/.venv", "/venv", "/miniconda3", "/miniforge3", "/anaconda3"})
      out.push_back(home + name);
    parents.insert(parents.end(),
                   {home + "/.pyenv/versions", home + "/miniconda3/envs", home + "/.virtualenvs"});
  }
  for (const auto& parent : parents)
    for (const auto& name : names_in(host, parent))
      for (const char* below : {"", "/venv", "/.venv"}) out.push_back(parent + "/" + name + below);
  return out;
}

}  // namespace

std::string normalize_package(std::string_view name) {
  std::string out;
  for (char c : lower(name)) {
    if (c == '_' || c == '.') c = '-';
    if (c == '-' && ends_with(out, "-")) continue;
    out += c;
  }
  return out;
}

bool is_wheel_of_interest(std::string_view name) {
  for (auto w : kWheels) {
    if (ends_with(w, "*") ? starts_with(name, w.substr(0, w.size() - 1)) : name == w) return true;
  }
  return false;
}

std::optional<WheelName> parse_dist_info_name(std::string_view folder) {
  for (std::string_view suffix : {".dist-info", ".egg-info"}) {
    if (!ends_with(folder, suffix)) continue;
    std::string_view stem = folder.substr(0, folder.size() - suffix.size());
    // NAME-VERSION; in .egg-info a -pyX.Y may follow, or no version stands there at all.
    size_t dash = stem.find('-');
    if (stem.empty() || dash == 0) return std::nullopt;
    if (dash == stem.npos) return WheelName{std::string(stem), ""};
    std::string_view version = stem.substr(dash + 1);
    return WheelName{std::string(stem.substr(0, dash)), std::string(version.substr(0, version.find("-py")))};
  }
  return std::nullopt;
}

void read_python(const Reading& r, Facts& f) {
  std::set<std::string> seen;
  for (auto prefix : candidates(r)) {
    while (prefix.size() > 1 && ends_with(prefix, "/")) prefix.pop_back();
    // /bin and /sbin on PATH give "", which is /usr on merged systems.
    if (prefix.empty() || !seen.insert(prefix).second || !has_python(r.host, prefix)) continue;
    f.python.push_back(read_environment_at(r.host, prefix));
  }
  std::vector<PythonPackage> loose;
  add_source_trees(r, loose);
  if (!loose.empty()) {
    PythonEnvironment e;
    e.root = "PYTHONPATH";
    e.version = absent<std::string>("PYTHONPATH", "not an environment of its own");
    const std::string path = r.variable("PYTHONPATH");
    for (auto dir : split(path, ':'))
      if (!dir.empty()) e.site_packages.emplace_back(dir);
    e.packages = std::move(loose);
    f.python.push_back(std::move(e));
  }
}

}  // namespace ep
