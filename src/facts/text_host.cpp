// See text_host.h.
#include "facts/text_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "base/text.h"
#include "base/words.h"
#include "facts/text_matrix.h"
#include "facts/text_xml.h"

namespace ep {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool all_digits(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), digit);
}

// "580.95.05", "570.133.20", "535.161.08": three groups, or two with three digits in front.
bool driver_version(std::string_view s) {
  auto p = split(s, '.');
  return (p.size() == 2 || p.size() == 3) && p[0].size() == 3 && std::all_of(p.begin(), p.end(), all_digits);
}

// More GPUs than any host has; what a text numbers beyond is rubbish.
constexpr int kMaxGpus = 256;
// More Python packages than a collect_env report lists; a text that names more is cut there.
constexpr size_t kMaxPackages = 4096;

// The GPU with that index, put in by order. Callers check 0 <= index < kMaxGpus.
Gpu& gpu_at(Facts& f, int index) {
  for (auto& g : f.gpus)
    if (g.index == index) return g;
  auto at = std::find_if(f.gpus.begin(), f.gpus.end(), [&](const Gpu& g) { return g.index > index; });
  at = f.gpus.emplace(at);
  at->index = index;
  return *at;
}

void set_name(Gpu& g, std::string_view name, const std::string& source) {
  if (!g.name.ok()) g.name = known(std::string(name), source);
  if (!g.compute_capability.ok())
    if (int sm = sm_of_gpu_name(name)) g.compute_capability = known(sm, source + " (product name)");
}

void set_driver(Facts& f, std::string_view version, const std::string& source) {
  if (driver_version(version) && !f.driver.version.ok())
    f.driver.version = known(std::string(version), source);
}

// "9.0" -> 90.
std::optional<int> capability(std::string_view s) {
  auto p = split(trim(s), '.');
  if (p.size() != 2 || !all_digits(p[0]) || !all_digits(p[1]) || p[0].size() > 2 || p[1].size() != 1)
    return std::nullopt;
  return int(*parse_int(p[0]) * 10 + *parse_int(p[1]));
}

bool gpu_name(std::string_view s) {
  return sm_of_gpu_name(s) != 0 || contains(s, "NVIDIA") || contains(s, "Tesla");
}

// Netdevs by name, so that a long listing costs no more than its length.
class Netdevs {
 public:
  explicit Netdevs(Facts& f) : list_(f.netdevs) {
    for (size_t i = 0; i < list_.size(); ++i) places_.emplace(list_[i].name, i);
  }
  Netdev& at(std::string_view name) {
    auto [it, fresh] = places_.try_emplace(std::string(name), list_.size());
    if (fresh) {
      list_.emplace_back();
      list_.back().name = name;
    }
    return list_[it->second];
  }

 private:
  std::vector<Netdev>& list_;
  std::unordered_map<std::string, size_t> places_;
};

void add_finding(Facts& f, const char* code, Severity severity, BothWords title, const std::string& source,
                 int line, std::string_view text) {
  for (auto& old : f.paste.findings)
    if (old.code == code && old.severity == severity) {
      if (old.evidence.size() < 5) old.evidence.push_back({source, line, std::string(text)});
      return;
    }
  Finding n;
  n.code = code;
  n.severity = severity;
  n.title = std::move(title.en);
  n.title_zh = std::move(title.zh);
  n.evidence.push_back({source, line, std::string(text)});
  f.paste.findings.push_back(std::move(n));
}

// "0,1,2,3" or "0-3".
std::vector<int> index_list(std::string_view s) {
  std::vector<int> out;
  for (auto part : split(s, ',')) {
    auto ends = split(trim(part), '-');
    auto a = parse_int(trim(ends[0]));
    auto b = ends.size() == 2 ? parse_int(trim(ends[1])) : a;
    if (ends.size() > 2 || !a || !b || *a < 0 || *b < *a || *b >= kMaxGpus) return {};
    for (long long i = *a; i <= *b && out.size() < size_t(kMaxGpus); ++i) out.push_back(int(i));
  }
  return out;
}

void set_package(Facts& f, std::string name, std::string version, const std::string& source) {
  if (f.python.empty()) {
    f.python.emplace_back();
    f.python.back().root = source;
  }
  if (f.python[0].packages.size() >= kMaxPackages) return;
  for (auto& p : f.python[0].packages)
    if (p.name == name) return;
  f.python[0].packages.push_back({std::move(name), std::move(version), source});
}

// First word that looks like a version behind a key.
std::string version_word(std::string_view v) {
  for (auto w : split_ws(v)) {
    if (!w.empty() && (w[0] == 'V' || w[0] == 'v')) w.remove_prefix(1);
    if (!w.empty() && digit(w[0]) && contains(w, ".")) {
      std::string s(w);
      while (!s.empty() && (s.back() == ',' || s.back() == ';')) s.pop_back();
      return s;
    }
  }
  return {};
}

}  // namespace

std::string address_of_name(std::string_view name) {
  for (std::string_view head : {"roce", "ib", "rdma", "en", "wl"})
    if (starts_with(name, head)) {
      std::string_view s = name.substr(head.size());
      auto number = [&](char letter) -> std::optional<int> {
        if (s.empty() || s[0] != letter) return std::nullopt;
        size_t n = 1;
        while (n < s.size() && digit(s[n]) && n < 7) ++n;
        auto v = parse_int(s.substr(1, n - 1));
        if (!v) return std::nullopt;
        s.remove_prefix(n);
        return int(*v);
      };
      auto domain = number('P'), bus = number('p'), slot = number('s');
      auto function = number('f');
      if (!bus || !slot || *bus > 255 || *slot > 31 || function.value_or(0) > 7) return {};
      return fmt::format("{:04x}:{:02x}:{:02x}.{}", domain.value_or(0), *bus, *slot, function.value_or(0));
    }
  return {};
}

void read_nvidia_smi_query(std::string_view text, const std::string& source, Facts& facts) {
  int next_index = 0;
  std::vector<std::string> header;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    if (trim(line).empty()) continue;
    std::vector<std::string_view> fields;
    for (auto f : split(line, ',')) fields.push_back(trim(f));
    bool has_gpu = std::any_of(fields.begin(), fields.end(), gpu_name) ||
                   std::any_of(fields.begin(), fields.end(), [](auto f) { return !pci_address(f).empty(); });
    if (!has_gpu) {
      if (header.empty() && contains(lower(line), "index")) header.assign(fields.begin(), fields.end());
      if (header.empty() && contains(lower(line), "name")) header.assign(fields.begin(), fields.end());
      continue;
    }
    auto column = [&](std::string_view name) -> std::string_view {
      for (size_t i = 0; i < header.size() && i < fields.size(); ++i)
        if (starts_with(lower(header[i]), name)) return fields[i];
      return {};
    };
    int index = next_index;
    if (auto v = parse_int(column("index")); v && *v >= 0 && *v < kMaxGpus)
      index = int(*v);
    else if (header.empty() && all_digits(fields[0]) && fields[0].size() <= 3)
      index = int(*parse_int(fields[0]));
    if (index >= kMaxGpus) break;
    next_index = index + 1;
    Gpu& g = gpu_at(facts, index);
    for (auto f : fields) {
      if (gpu_name(f)) set_name(g, f, source);
      if (auto a = pci_address(f); !a.empty() && contains(f, ":")) g.address = a;
      set_driver(facts, f, source);
    }
    if (auto v = capability(column("compute_cap"))) g.compute_capability = known(*v, source);
    if (auto memory = split_ws(column("memory.total")); memory.size() == 2 && memory[1] == "MiB")
      if (auto v = parse_int(memory[0]); v && *v > 0 && *v < (1 << 24))
        g.memory_bytes = known(uint64_t(*v) << 20, source);
  }
}

void read_nvidia_smi_text(std::string_view text, const std::string& source, Facts& facts) {
  int q_index = -1, line_no = 0;
  bool in_fabric = false;
  for (std::string_view raw : lines(text)) {
    ++line_no;
    std::string line = clean_pasted_line(raw);
    std::string_view t = trim(line);
    if (size_t at = t.find("Driver Version:"); at != std::string_view::npos)
      set_driver(facts, version_word(t.substr(at + 15)), source);
    if (size_t at = t.find("CUDA Version:"); at != std::string_view::npos && !facts.driver.cuda_version.ok())
      if (auto v = version_word(t.substr(at + 13)); !v.empty()) facts.driver.cuda_version = known(v, source);
    if (starts_with(t, "GPU ") && contains(t, "(UUID")) {  // -L
      size_t colon = t.find(':');
      auto index = colon == std::string_view::npos ? std::nullopt : parse_int(trim(t.substr(4, colon - 4)));
      if (index && *index >= 0 && *index < kMaxGpus)
        set_name(gpu_at(facts, int(*index)), trim(t.substr(colon + 1, t.find("(UUID") - colon - 1)), source);
      continue;
    }
    if (starts_with(t, "GPU ") && !pci_address(t.substr(4)).empty()) {  // -q
      if (q_index + 1 >= kMaxGpus) break;
      gpu_at(facts, ++q_index).address = pci_address(t.substr(4));
      in_fabric = false;
      continue;
    }
    if (starts_with(t, "MIG ") && contains(t, "UUID: MIG-") &&
        !facts.gpus.empty()) {  // an instance, below its GPU
      facts.gpus.back().mig_mode = known<std::string>("Enabled", source);
      continue;
    }
    if (q_index >= 0) {
      size_t colon = t.find(':');
      std::string_view key = trim(t.substr(0, colon)),
                       value = colon == std::string_view::npos ? "" : trim(t.substr(colon + 1));
      if (key == "Product Name") set_name(gpu_at(facts, q_index), value, source);
      if (key == "Fabric") in_fabric = true;
      if (in_fabric && key == "State")
        gpu_at(facts, q_index).fabric_state = known(std::string(value), source);
      if (in_fabric && key == "Status") {
        gpu_at(facts, q_index).fabric_status = known(std::string(value), source);
        in_fabric = false;
      }
      const std::string text(value);
      if (key == "Pending" && (value == "Yes" || value == "No"))
        gpu_at(facts, q_index).remap_pending = known(value == "Yes", source);
      if (key == "Remapping Failure Occurred" && (value == "Yes" || value == "No"))
        gpu_at(facts, q_index).remap_failed = known(value == "Yes", source);
      if (key == "GPU Recovery Action" && !value.empty())
        gpu_at(facts, q_index).recovery_action = known(text, source);
    }
    if (!t.empty() && t[0] == '|') {  // the table: "|   0  NVIDIA H200   On  |   00000000:04:00.0 Off |"
      auto cells = split(t, '|');
      if (cells.size() < 3) continue;
      auto words = split_ws(cells[1]);
      auto right = split_ws(cells[2]);
      if (words.size() < 2 || right.empty() || !all_digits(words[0]) || words[0].size() > 3) continue;
      std::string address = pci_address(right[0]);
      int index = int(*parse_int(words[0]));
      if (address.empty() || index >= kMaxGpus) continue;
      Gpu& g = gpu_at(facts, index);
      g.address = address;
      std::string name;
      for (size_t i = 1; i < words.size() && words[i] != "On" && words[i] != "Off" && words[i] != "N/A"; ++i)
        name += (name.empty() ? "" : " ") + std::string(words[i]);
      if (gpu_name(name)) set_name(g, name, source);
    }
  }
}

void read_collect_env(std::string_view text, const std::string& source, Facts& facts) {
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    std::string_view t = trim(line);
    if (size_t at = t.find("GPU models and configuration"); at != std::string_view::npos) {
      size_t colon = t.find(':', at);
      if (colon == std::string_view::npos) continue;
      t = trim(t.substr(colon + 1));
    }
    size_t colon = t.find(':');
    if (starts_with(t, "[pip3]") || starts_with(t, "[conda]")) {
      auto w = split_ws(t);
      if (w.size() >= 2)
        if (size_t eq = w[1].find("=="); eq != std::string_view::npos)
          set_package(facts, std::string(w[1].substr(0, eq)), std::string(w[1].substr(eq + 2)), source);
      continue;
    }
    if (colon == std::string_view::npos) continue;
    std::string_view key = trim(t.substr(0, colon)), value = trim(t.substr(colon + 1));
    if (starts_with(key, "GPU ")) {
      std::string_view which = trim(key.substr(4));
      bool cc = ends_with(which, "Compute Capability");
      if (cc) which = trim(which.substr(0, which.size() - 18));
      for (int i : index_list(which)) {
        Gpu& g = gpu_at(facts, i);
        if (cc) {
          if (auto v = capability(value)) g.compute_capability = known(*v, source);
        } else if (gpu_name(value)) {
          set_name(g, value.substr(0, value.find(" (UUID")), source);
        }
      }
    } else if (contains(key, "driver version") || contains(key, "Driver Version")) {
      set_driver(facts, value, source);
    } else if (key == "OS") {  // "Ubuntu 22.04.5 LTS (x86_64)"
      const auto w = split_ws(value);
      if (w.size() >= 2 && w[0] == "Ubuntu" && !facts.os.id.ok()) {
        const auto v = split(w[1], '.');
        facts.os.id = known<std::string>("ubuntu", source);
        if (v.size() >= 2 && all_digits(v[0]) && all_digits(v[1]))
          facts.os.version_id = known(std::string(v[0]) + "." + std::string(v[1]), source);
      }
      for (const char* m : {"x86_64", "aarch64"})
        if (ends_with(value, fmt::format("({})", m)) && !facts.os.architecture.ok())
          facts.os.architecture = known<std::string>(m, source);
    } else if (key == "PyTorch" || key == "PyTorch version") {
      set_package(facts, "torch", std::string(value), source);
    } else if (key == "NVCC" || key == "CUDA runtime version") {
      CudaToolkit c;
      c.root = source;
      std::string_view v = value;
      if (size_t at = v.find("release "); at != std::string_view::npos) v = v.substr(at + 8);
      std::string version = version_word(v);
      if (version.empty()) continue;
      c.nvcc_version = c.version = known(version, source);
      facts.cuda.push_back(std::move(c));
    } else if (key == "CUDA used to build PyTorch") {
      set_package(facts, "torch-cuda", std::string(value), source);
    }
  }
}

void read_ip(std::string_view text, const std::string& source, Facts& facts) {
  Netdevs netdevs(facts);
  Netdev* current = nullptr;
  std::string current_name;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    auto w = split_ws(line);
    if (w.size() < 2) continue;
    bool state_word =
        w[1] == "UP" || w[1] == "DOWN" || w[1] == "UNKNOWN" || w[1] == "LOWERLAYERDOWN" || w[1] == "DORMANT";
    if (state_word && !digit(line[0])) {  // -br
      std::string_view name = w[0].substr(0, w[0].find('@'));
      Netdev& n = netdevs.at(name);
      n.operstate = known(lower(w[1]), source);
      for (size_t i = 2; i < w.size(); ++i)
        if (contains(w[i], "/")) n.ips.emplace_back(w[i]);
      current = nullptr;
      continue;
    }
    if (all_digits(w[0].substr(0, w[0].size() - 1)) && w[0].back() == ':' &&
        contains(line, "<")) {  // "2: eth0: <...>"
      std::string_view name = w[1].substr(0, w[1].find_first_of(":@"));
      if (name.empty()) continue;
      current = &netdevs.at(name);
      for (size_t i = 2; i + 1 < w.size(); ++i) {
        if (w[i] == "mtu")
          if (auto v = parse_int(w[i + 1]); v && *v > 0 && *v < 1000000)
            current->mtu = known(int(*v), source);
        if (w[i] == "state") current->operstate = known(lower(w[i + 1]), source);
        if (w[i] == "master") current->master = known(std::string(w[i + 1]), source);
      }
      continue;
    }
    if (current && (w[0] == "inet" || w[0] == "inet6")) current->ips.emplace_back(w[1]);
  }
}

void read_log_lines(std::string_view text, const std::string& source, Facts& facts) {
  bool dmabuf_ok =
      icontains(text, "dmabuf") && (icontains(text, "dmabuf fd: ok") || icontains(text, "dmabuf_mr: ok") ||
                                    icontains(text, "dma-buf is available") || icontains(text, "dmabuf: ok"));
  bool transport_failed = icontains(text, "poll_cq completion status") || icontains(text, "bad address");
  int line_no = 0;
  for (std::string_view raw : lines(text)) {
    ++line_no;
    std::string line = clean_pasted_line(raw);
    if (icontains(line, "nvidia_peermem") || icontains(line, "nvidia-peermem")) {
      bool failed = icontains(line, "invalid argument") || icontains(line, "error") ||
                    icontains(line, "could not insert");
      if (failed)
        add_finding(facts, "peermem_unavailable",
                    transport_failed || !dmabuf_ok ? Severity::fail : Severity::warn,
                    dmabuf_ok ? BothWords{"nvidia_peermem does not load; registration must go through "
                                          "dmabuf, which works here",
                                          "nvidia_peermem 无法加载；内存注册须走 dmabuf，而它在此可用"}
                              : BothWords{"nvidia_peermem does not load, and nothing shows that dmabuf works",
                                          "nvidia_peermem 无法加载，且没有迹象表明 dmabuf 可用"},
                    source, line_no, trim(line));
    }
    bool uar = contains(line, "IoMemory failed with error=800") || contains(line, "GPU cannot map UAR") ||
               contains(line, "ibgda_nic_mem_gpu_map failed") ||
               contains(line, "alloc_and_map_qp_uar with GPU as handler failed");
    if (uar) {
      bool falls_back = icontains(line, "fallback");
      add_finding(
          facts, "ibgda_driver_params_missing", falls_back ? Severity::warn : Severity::fail,
          falls_back
              ? BothWords{"the driver does not let the GPU ring the NIC (PeerMappingOverride is not active); "
                          "NVSHMEM falls back to the CPU",
                          "驱动不允许 GPU 敲网卡门铃（PeerMappingOverride 未生效）；NVSHMEM 退回由 CPU 处理"}
              : BothWords{"the driver does not let the GPU ring the NIC: PeerMappingOverride is not active",
                          "驱动不允许 GPU 敲网卡门铃：PeerMappingOverride 未生效"},
          source, line_no, trim(line));
    }
    if (contains(line, "is not enumerated as an mlx5 device"))
      add_finding(facts, "prefix_not_mlx5", Severity::warn,
                  {"NVSHMEM skipped devices by their name", "NVSHMEM 按设备名跳过了设备"}, source, line_no,
                  trim(line));
    if (starts_with(trim(line), "nvidia driver:")) continue;
  }
}

}  // namespace ep
