// See text_system.h.
#include "facts/text_system.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "facts/parsers.h"
#include "host/paste.h"

namespace ep {
namespace {

// More than any host has; the rest of a longer text is not kept.
constexpr size_t kMaxModules = 1024, kMaxPackages = 4096, kMaxOptions = 1024, kMaxDisks = 64;

template <class T>
void set_once(Fact<T>& f, T value, const std::string& source) {
  if (!f.ok()) f = known(std::move(value), source);
}

struct KeyValue {
  std::string_view key, value;
};
bool split_at(std::string_view line, char mark, KeyValue& out) {
  const size_t at = line.find(mark);
  if (at == std::string_view::npos) return false;
  out = {trim(line.substr(0, at)), trim(line.substr(at + 1))};
  return !out.key.empty();
}

// Names that os-release gives in NAME, where a cut text lacks ID.
constexpr std::pair<const char*, const char*> kDistributions[] = {{"Ubuntu", "ubuntu"},
                                                                  {"Debian GNU/Linux", "debian"},
                                                                  {"Rocky Linux", "rocky"},
                                                                  {"AlmaLinux", "almalinux"},
                                                                  {"Red Hat Enterprise Linux", "rhel"},
                                                                  {"CentOS Stream", "centos"},
                                                                  {"CentOS Linux", "centos"},
                                                                  {"Oracle Linux Server", "ol"},
                                                                  {"Amazon Linux", "amzn"},
                                                                  {"Container-Optimized OS", "cos"},
                                                                  {"openEuler", "openEuler"},
                                                                  {"SLES", "sles"},
                                                                  {"Fedora Linux", "fedora"}};

std::string machine_word(std::string_view w) {
  if (w == "x86_64" || w == "amd64") return "x86_64";
  if (w == "aarch64" || w == "arm64") return "aarch64";
  return {};
}

// "64M", "16G", "1.8T", "65536" (blocks of 1024 bytes).
std::optional<uint64_t> size_word(std::string_view w) {
  if (w.empty()) return {};
  double unit = 1024;
  const char last = w.back();
  const std::string_view kUnits = "KMGTP";
  if (const size_t at = kUnits.find(last); at != std::string_view::npos) {
    unit = 1024;
    for (size_t i = 0; i < at; ++i) unit *= 1024;
    w.remove_suffix(1);
  } else if (ends_with(w, "Gi") || ends_with(w, "Mi") || ends_with(w, "Ti")) {
    unit = w[w.size() - 2] == 'M'   ? double(1u << 20)
           : w[w.size() - 2] == 'G' ? double(1u << 30)
                                    : 1024.0 * (1u << 30);
    w.remove_suffix(2);
  }
  auto parts = split(w, '.');
  if (parts.size() > 2) return {};
  const auto whole = parse_int(parts[0]);
  if (!whole || *whole < 0 || *whole > 1000000000000) return {};
  double value = double(*whole);
  if (parts.size() == 2) {
    const auto tenth = parse_int(parts[1]);
    if (!tenth || parts[1].size() != 1) return {};
    value += double(*tenth) / 10;
  }
  return uint64_t(value * unit);
}

ModuleOption& option_at(Facts& f, const std::string& name) {
  for (auto& o : f.driver.options)
    if (o.name == name) return o;
  f.driver.options.emplace_back();
  f.driver.options.back().name = name;
  return f.driver.options.back();
}

void add_module(Facts& f, std::string_view name) {
  if (f.kernel.modules.size() >= kMaxModules || f.kernel.module(std::string(name))) return;
  f.kernel.modules.push_back({std::string(name), {}});
}

}  // namespace

void read_os_release_text(std::string_view text, const std::string& source, Facts& f) {
  const auto field = [&](const char* key) { return os_release_field(text, key); };
  for (auto [key, fact] : {std::pair("ID", &f.os.id),
                           {"VERSION_ID", &f.os.version_id},
                           {"PRETTY_NAME", &f.os.pretty_name},
                           {"VERSION_CODENAME", &f.os.codename}})
    if (auto v = field(key); v && !v->empty()) set_once(*fact, *v, source);
  if (f.os.id.ok()) return;
  if (const auto name = field("NAME"))
    for (auto [full, id] : kDistributions)
      if (*name == full) f.os.id = known<std::string>(id, source + " (NAME)");
}

void read_lsb_release(std::string_view text, const std::string& source, Facts& f) {
  for (std::string_view raw : lines(text)) {
    const std::string line = clean_pasted_line(raw);
    KeyValue kv;
    if (!split_at(line, contains(line, "DISTRIB_") ? '=' : ':', kv) || kv.value.empty()) continue;
    const std::string value = replace_all(std::string(kv.value), "\"", "");
    if (kv.key == "Distributor ID" || kv.key == "DISTRIB_ID") set_once(f.os.id, lower(value), source);
    if (kv.key == "Release" || kv.key == "DISTRIB_RELEASE") set_once(f.os.version_id, value, source);
    if (kv.key == "Codename" || kv.key == "DISTRIB_CODENAME") set_once(f.os.codename, value, source);
    if (kv.key == "Description" || kv.key == "DISTRIB_DESCRIPTION") set_once(f.os.pretty_name, value, source);
  }
}

void read_nvidia_version(std::string_view text, const std::string& source, Facts& f) {
  const auto v = parse_nvrm_version(text, source);
  if (v.version.ok()) {
    set_once(f.driver.version, *v.version, source);
    add_module(f, "nvidia");
  }
  if (v.open.ok()) set_once(f.driver.open_kernel_module, *v.open, source);
  for (auto word : split_ws(text.substr(0, text.find('\n'))))
    if (const auto m = machine_word(word); !m.empty()) set_once(f.os.architecture, m, source);
}

void read_nvcc(std::string_view text, const std::string& source, Facts& f) {
  const size_t at = text.find("release ");
  if (at == std::string_view::npos) return;
  std::string_view rest = text.substr(at + 8);
  const std::string release(trim(rest.substr(0, rest.find_first_of(",\n"))));
  if (release.empty() || !std::isdigit(static_cast<unsigned char>(release[0])) || f.cuda.size() >= 16) return;
  CudaToolkit t;
  t.root = source;
  t.version = known(release, source);
  t.nvcc_version = t.version;
  if (const size_t v = rest.find(" V"); v != std::string_view::npos && v < 40) {
    rest = rest.substr(v + 2);
    t.nvcc_version = known(std::string(trim(rest.substr(0, rest.find_first_of(" \n\r")))), source);
  }
  t.has_nvcc = known(true, source);
  f.cuda.push_back(std::move(t));
}

void read_lsmod(std::string_view text, const std::string& source, Facts& f) {
  bool head = false;
  int rows = 0;
  for (std::string_view raw : lines(text)) {
    const std::string line = clean_pasted_line(raw);
    const auto words = split_ws(line);
    if (words.size() >= 2 && words[0] == "Module" && words[1] == "Size") {
      head = true;
      continue;
    }
    if (words.size() < 3) continue;
    ++rows;
    add_module(f, words[0]);
  }
  // A server has a hundred modules; fewer rows are a part of the list, which does not say what is missing.
  if (head && rows >= 40) set_once(f.kernel.modules_readable, true, source);
}

void read_ulimit(std::string_view text, const std::string& source, Facts& f) {
  for (std::string_view raw : lines(text)) {
    const std::string line = clean_pasted_line(raw);
    const auto words = split_ws(line);
    if (words.size() < 2) continue;
    const auto n = parse_int(words.back());
    if (starts_with(line, "max locked memory")) {
      if (words.back() == "unlimited")
        set_once<std::string>(f.limits.memlock, "unlimited", source);
      else if (n && *n >= 0 && *n < (1ll << 50))
        set_once(f.limits.memlock, std::to_string(*n * 1024), source);  // shown in KiB
    } else if (starts_with(line, "open files") && n && *n > 0) {
      set_once(f.limits.nofile, uint64_t(*n), source);
    }
  }
}

void read_df(std::string_view text, const std::string& source, Facts& f) {
  size_t size_at = 1, free_at = 3;
  for (std::string_view raw : lines(text)) {
    const std::string line = clean_pasted_line(raw);
    const auto w = split_ws(line);
    if (!w.empty() && w[0] == "Filesystem") {
      const bool typed = w.size() > 1 && w[1] == "Type";
      size_at = typed ? 2 : 1;
      free_at = size_at + 2;
      continue;
    }
    if (w.size() <= free_at + 1) continue;
    const auto size = size_word(w[size_at]), free = size_word(w[free_at]);
    const std::string place(w.back());
    if (!size || !free || place[0] != '/') continue;
    if (place == "/dev/shm") {
      set_once(f.limits.shm_bytes, *size, source);
      set_once(f.limits.shm_free_bytes, *free, source);
    } else if (f.disks.size() < kMaxDisks) {
      DiskFacts d;
      d.path = place;
      d.free_bytes = known(*free, source);
      f.disks.push_back(std::move(d));
    }
  }
}

void read_modprobe(std::string_view text, const std::string& source, Facts& f) {
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw), where = source;
    if (const size_t at = line.find(":options "); at != std::string::npos) {
      where = line.substr(0, at);
      line = line.substr(at + 1);
    }
    for (auto& o : parse_modprobe_options(std::string(trim(line)), where)) {
      if (o.module != "nvidia" || f.driver.options.size() >= kMaxOptions) continue;
      ModuleOption& option = option_at(f, o.name);
      option.pending = known(o.value, where);  // the last line counts, as for modprobe
      option.set_in.push_back(where);
    }
  }
}

void read_cgroup(std::string_view text, const std::string& source, Facts& f) {
  for (auto [word, name] : {std::pair("kubepods", "kubernetes"),
                            {"docker", "docker"},
                            {"libpod", "podman"},
                            {"/lxc", "lxc"},
                            {"enroot", "enroot"}})
    if (contains(text, word)) {
      set_once<std::string>(f.container.runtime, name, source);
      return;
    }
  // Only a path of the host's own tree says that this is no container: inside one it is often "/".
  for (std::string_view path : {":/init.scope", ":/user.slice", ":/system.slice"})
    if (contains(text, path)) set_once<std::string>(f.container.runtime, "none", source);
}

void read_capabilities(std::string_view text, const std::string& source, Facts& f) {
  for (std::string_view raw : lines(text)) {
    const std::string line = clean_pasted_line(raw);
    KeyValue kv;
    if (!split_at(line, ':', kv) || kv.key != "CapEff") continue;
    const auto bits = parse_int("0x" + std::string(kv.value));
    if (!bits || *bits < 0) continue;
    const auto v = uint64_t(*bits);
    set_once(f.container.cap_effective, v, source);
    // All of a kernel's capabilities: ones from bit 0 up to at least CAP_AUDIT_READ (37).
    set_once(f.container.privileged, v >= (uint64_t(1) << 37) && (v & (v + 1)) == 0, source);
  }
}

void read_pip_list(std::string_view text, const std::string& source, Facts& f) {
  for (std::string_view raw : lines(text)) {
    const std::string line = clean_pasted_line(raw);
    const auto words = split_ws(line);
    if (words.empty()) continue;
    std::string name(words[0]), version = words.size() > 1 ? std::string(words[1]) : std::string();
    if (const size_t eq = name.find("=="); eq != std::string::npos) {
      version = name.substr(eq + 2);
      name.resize(eq);
    }
    if (version.empty() || !std::isdigit(static_cast<unsigned char>(version[0]))) continue;
    name = normalize_package(name);
    if (f.python.empty()) {
      f.python.emplace_back();
      f.python.back().root = source;
    }
    auto& packages = f.python[0].packages;
    const bool there =
        std::any_of(packages.begin(), packages.end(), [&](const PythonPackage& p) { return p.name == name; });
    if (!there && packages.size() < kMaxPackages) packages.push_back({name, version, source});
  }
}

void read_missing_path(std::string_view text, const std::string& source, Facts& f) {
  for (std::string_view raw : lines(text)) {
    if (contains(raw, "/dev/gdrdrv")) set_once(f.kernel.gdrdrv_device, false, source);
    if (contains(raw, "/proc/driver/nvidia/version") && !f.driver.version.ok())
      f.driver.version =
          absent<std::string>("/proc/driver/nvidia/version", "the text shows that it is not there");
    if (contains(raw, "/sys/class/infiniband'") || contains(raw, "/sys/class/infiniband:"))
      f.rdma_readable = absent<bool>("/sys/class/infiniband", "the text shows that it is not there");
  }
}

void read_dmi(std::string_view text, const std::string& source, Facts& f) {
  for (std::string_view raw : lines(text)) {
    const std::string line = clean_pasted_line(raw);
    KeyValue kv;
    if (!split_at(line, ':', kv) || kv.value.empty()) continue;
    if (kv.key == "product_name") set_once(f.platform.product, std::string(kv.value), source);
    if (kv.key == "sys_vendor") set_once(f.platform.vendor, std::string(kv.value), source);
    if (const char* cloud = cloud_of_dmi(kv.key, kv.value))
      set_once<std::string>(f.platform.cloud, cloud, source);
    if (kv.key == "product_name" && is_virtual_product(kv.value))
      set_once(f.platform.virtual_machine, true, source);
  }
}

void conclude_system(Facts& f) {
  if (const auto v = f.environment.find("KUBERNETES_SERVICE_HOST"); v != f.environment.end())
    set_once<std::string>(f.container.runtime, "kubernetes", "KUBERNETES_SERVICE_HOST");
  // Kernel drivers name their devices; udev's own names (rdmap..: neither InfiniBand nor RoCE) are EFA's.
  constexpr std::array<std::pair<const char*, const char*>, 7> kNames = {{{"mlx5_", "mlx5_core"},
                                                                          {"rdmap", "efa"},
                                                                          {"efa_", "efa"},
                                                                          {"bnxt_re", "bnxt_en"},
                                                                          {"irdma", "irdma"},
                                                                          {"erdma_", "erdma"},
                                                                          {"mana_", "mana"}}};
  for (auto& d : f.rdma) {
    for (auto [head, driver] : kNames)
      if (!d.driver.ok() && starts_with(d.name, head)) d.driver = known<std::string>(driver, "its name");
    if (f.paste.verbs_nodes.ok() && !*f.paste.verbs_nodes)
      set_once(d.has_uverbs, false, f.paste.verbs_nodes.where);
  }
  if (!f.os.architecture.ok() && f.os.kernel_release.ok())
    for (const char* m : {"x86_64", "aarch64"})
      if (ends_with(*f.os.kernel_release, std::string(".") + m))
        f.os.architecture = known<std::string>(m, f.os.kernel_release.where);
  // These GPUs exist beside a Grace processor only.
  for (const auto& g : f.gpus)
    for (const char* model : {"GB200", "GB300", "GH200", "GB10"})
      if (g.name.ok() && contains(*g.name, model))
        set_once<std::string>(f.os.architecture, "aarch64", g.name.where + " (GPU model)");
  if (!f.platform.machine_type.ok())
    if (auto type = machine_type_of(f); type.ok()) f.platform.machine_type = std::move(type);
}

}  // namespace ep
