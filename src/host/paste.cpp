// See paste.h. One table of kinds: how a piece starts, which lines surely belong to it, which may.
#include "host/paste.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"

namespace ep {
namespace {

using Words = std::vector<std::string_view>;

bool digit(char c) { return c >= '0' && c <= '9'; }
bool number(std::string_view s) { return !s.empty() && std::all_of(s.begin(), s.end(), digit); }
size_t digit_run(std::string_view s, size_t i) {
  size_t n = 0;
  while (i + n < s.size() && digit(s[i + n])) ++n;
  return n;
}
bool hex_char(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

bool link_class(std::string_view t) {
  if (starts_with(t, "NV") && t.size() > 2 && digit(t[2])) return true;
  for (std::string_view c : {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"})
    if (t == c) return true;
  return starts_with(t, "ICN");
}

// GPU3, NIC12, PPU0: with nothing, another label or a class glued behind.
bool matrix_label(std::string_view t) {
  for (std::string_view head : {"GPU", "NIC", "PPU"})
    if (starts_with(t, head) && t.size() > 3 && digit(t[3])) return true;
  return false;
}

bool pci_like(std::string_view t) {  // 17:00.0, 0000:17:00.0
  size_t dot = t.rfind('.');
  size_t colons = size_t(std::count(t.begin(), t.end(), ':'));
  if (dot == std::string_view::npos || dot + 2 != t.size() || colons < 1 || colons > 2 || t.size() < 7 || t.size() > 16) return false;
  return std::all_of(t.begin(), t.end(), [](char c) { return hex_char(c) || c == ':' || c == '.'; });
}

bool gid_like(std::string_view t) {
  return t.size() > 4 && std::count(t.begin(), t.end(), ':') >= 2 &&
         std::all_of(t.begin(), t.end(), [](char c) { return hex_char(c) || c == ':' || c == '.'; });
}

bool any_start(std::string_view line, std::initializer_list<std::string_view> heads) {
  return std::any_of(heads.begin(), heads.end(), [&](std::string_view h) { return starts_with(line, h); });
}
bool any_part(std::string_view line, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view p) { return contains(line, p); });
}

struct Line {
  std::string_view raw;   // cleaned, indentation kept
  std::string_view text;  // trimmed
  Words words;
};

// ---- one pair of functions a kind ----

bool topo_start(const Line& l) {
  if (l.words.empty() || !matrix_label(l.words[0])) return false;
  if (contains(l.words[0], ":")) return false;
  if (l.words.size() == 1) return l.words[0].size() > 8 || contains(l.words[0], "CPU");
  return matrix_label(l.words[1]) || l.words[1] == "CPU" || starts_with(l.words[1], "CPU") || is_rdma_name(l.words[1]) ||
         link_class(l.words[1]);
}
bool topo_more(const Line& l) {
  if (l.text == "Legend:" || l.text == "NIC Legend:" || any_start(l.text, {"----", "===="})) return true;
  if (l.words.size() >= 2 && l.words[1] == "=" && (link_class(l.words[0]) || l.words[0] == "NV#")) return true;
  if (!l.words.empty() && matrix_label(l.words[0])) return true;
  if (l.words.size() >= 2 && is_rdma_name(l.words[0]) && link_class(l.words[1])) return true;
  return !l.words.empty() && link_class(l.words[0]) && std::all_of(l.words.begin(), l.words.end(), [](auto w) {
    return link_class(w) || digit(w[0]) || w == "N/A";
  });
}

bool gids_row(const Line& l) {
  return l.words.size() >= 4 && number(l.words[1]) && number(l.words[2]) && gid_like(l.words[3]);
}
bool gids_start(const Line& l) {
  return (starts_with(l.text, "DEV") && contains(l.text, "INDEX") && contains(l.text, "GID")) || gids_row(l);
}
bool gids_more(const Line& l) {
  return gids_row(l) || contains(l.text, "n_gids_found") || starts_with(l.text, "---");
}

bool devinfo_start(const Line& l) { return starts_with(l.text, "hca_id:"); }
bool devinfo_more(const Line& l) {
  return devinfo_start(l) ||
         any_start(l.text, {"transport:", "fw_ver:", "node_guid:", "sys_image_guid:", "vendor_id:", "vendor_part_id:", "hw_ver:",
                            "board_id:", "phys_port_cnt:", "port:", "state:", "phys_state:", "max_mtu:", "active_mtu:", "sm_lid:",
                            "port_lid:", "port_lmc:", "link_layer:", "GID[", "max_", "active_", "page_size", "device_cap",
                            "atomic_cap", "local_ca", "port_cap", "bad_pkey", "qkey_", "gid_tbl", "subnet_", "init_type", "hca_core"});
}

bool ibstat_start(const Line& l) { return starts_with(l.text, "CA '"); }
bool ibstat_more(const Line& l) {
  return ibstat_start(l) || any_part(l.text, {"ibpanic:", "stat of IB device"}) ||
         any_start(l.text, {"CA type:", "Number of ports:", "Firmware version:", "Hardware version:", "Node GUID:",
                            "System image GUID:", "Port ", "State:", "Physical state:", "Rate:", "Base lid:", "LMC:", "SM lid:",
                            "Capability mask:", "Link layer:"});
}

bool ibstatus_start(const Line& l) { return icontains(l.text, "infiniband device '"); }
bool ibstatus_more(const Line& l) {
  return ibstatus_start(l) ||
         any_start(l.text, {"default gid:", "base lid:", "sm lid:", "state:", "phys state:", "rate:", "link_layer:"});
}

bool netdev_line(const Line& l) { return contains(l.text, "==>") && contains(l.text, " port ") && !contains(l.text, "<=="); }

bool rdma_link_line(const Line& l) {
  if (l.words.size() < 4 || !contains(l.text, " state ")) return false;
  if (l.words[0] == "link" && contains(l.words[1], "/")) return true;
  return contains(l.words[0], "/") && ends_with(l.words[0], ":") && contains(l.words[1], "/");
}

bool sysfs_line(const Line& l) { return contains(l.text, "infiniband/") && any_part(l.text, {"/ports/", "/hca_type", "/board_id", "/fw_ver", "numa_node"}); }
bool sysfs_more(const Line& l) {
  return sysfs_line(l) || gid_like(l.text) || any_start(l.text, {"RoCE v", "IB/RoCE v"});
}

bool names_line(const Line& l) {
  if (l.words.empty() || l.words.size() > 40) return false;
  if (l.words.size() == 2 && is_rdma_name(l.words[0]) && l.words[1].size() == 16 &&
      std::all_of(l.words[1].begin(), l.words[1].end(), hex_char))
    return true;  // ibv_devices
  return std::all_of(l.words.begin(), l.words.end(), is_rdma_name);
}
bool names_more(const Line& l) {
  return names_line(l) || starts_with(l.text, "#") || (contains(l.text, "device") && contains(l.text, "node GUID")) ||
         starts_with(l.text, "------");
}

bool lspci_line(const Line& l) {
  return l.words.size() >= 3 && pci_like(l.words[0]) &&
         any_part(l.text, {"controller", "bridge", "Bridge", "Processing accelerators", "System peripheral", "Host"});
}
bool lspci_tree_line(const Line& l) { return any_start(l.text, {"-[0", "+-[0", "\\-[0"}); }
bool lspci_tree_more(const Line& l) { return any_start(l.text, {"-[", "+-", "\\-", "|"}); }

bool ip_state(std::string_view w) {
  return w == "UP" || w == "DOWN" || w == "UNKNOWN" || w == "LOWERLAYERDOWN" || w == "DORMANT";
}
bool ip_line(const Line& l) {
  if (l.words.size() >= 2 && ip_state(l.words[1]) && !contains(l.words[0], "|"))
    return l.words.size() == 2 ? !contains(l.words[0], ":") : (contains(l.words[2], "/") || std::count(l.words[2].begin(), l.words[2].end(), ':') == 5);
  return l.words.size() >= 3 && ends_with(l.words[0], ":") && number(l.words[0].substr(0, l.words[0].size() - 1)) && contains(l.words[2], "<");
}
bool ip_more(const Line& l) { return ip_line(l) || any_start(l.text, {"inet ", "inet6 ", "link/", "valid_lft", "altname ", "vf "}); }

bool csv_start(const Line& l) {
  if (!contains(l.text, ",")) return false;
  bool header = any_start(l.text, {"index", "name", "gpu_name", "uuid", "pci.bus_id"}) &&
                any_part(l.text, {"pci.bus_id", "driver_version", "memory.", "compute_cap", "uuid", "name"});
  bool row = l.words.size() >= 3 && ends_with(l.words[0], ",") && number(l.words[0].substr(0, l.words[0].size() - 1)) &&
             any_part(l.text, {"NVIDIA", "Tesla"});
  return header || row;
}
bool csv_more(const Line& l) { return contains(l.text, ", ") && (digit(l.text[0]) || contains(l.text, "NVIDIA")); }

bool smi_list_line(const Line& l) { return starts_with(l.text, "GPU ") && contains(l.text, "(UUID"); }
bool smi_table_start(const Line& l) { return starts_with(l.text, "|") && contains(l.text, "NVIDIA-SMI"); }
bool smi_table_more(const Line& l) { return any_start(l.text, {"|", "+"}); }
bool smi_q_start(const Line& l) { return contains(l.text, "NVSMI LOG") || (starts_with(l.text, "GPU ") && l.words.size() == 2 && pci_like(l.words[1]) ); }
bool smi_q_more(const Line& l) { return smi_q_start(l) || (l.raw.size() > l.text.size() && (contains(l.text, " : ") || l.raw[0] == ' ')); }

bool collect_key(const Line& l) {
  return any_start(l.text, {"Python:", "CUDA available:", "CUDA_HOME:", "NVCC:", "CUDA Driver Version:", "PyTorch:", "PyTorch version:",
                            "sglang:", "sglang-kernel:", "Collecting environment", "GPU models and configuration", "Nvidia driver version:",
                            "CUDA used to build", "CUDA runtime version:", "Is CUDA available:", "ulimit soft:", "GPU Topology:",
                            "NVIDIA Topology:", "[pip3]", "[conda]", "flashinfer", "vLLM Version:", "triton:", "Python version:"}) ||
         (starts_with(l.text, "GPU ") && l.text.size() > 4 && digit(l.text[4]) && contains(l.text, ":") && !contains(l.text, "(UUID"));
}
bool collect_more(const Line& l) {
  return collect_key(l) || (l.words.size() >= 2 && ends_with(l.words[0], ":") && std::isalpha(static_cast<unsigned char>(l.text[0])));
}

bool params_start(const Line& l) {
  return any_start(l.text, {"EnableStreamMemOPs:", "RegistryDwords:", "RegistryDwordsPerDevice:", "ResmanDebugLevel:", "RmLogonRC:",
                            "ModifyDeviceFiles:", "EnableMSI:"});
}
bool params_more(const Line& l) {
  return l.words.size() >= 2 && ends_with(l.words[0], ":") && std::isupper(static_cast<unsigned char>(l.text[0])) &&
         l.words.size() == 2 && (digit(l.words[1][0]) || l.words[1][0] == '"');
}

bool numa_line(const Line& l) {
  auto parts = split(l.text, '|');
  if (parts.size() == 2) return pci_like(trim(parts[0])) && parse_int(trim(parts[1])).has_value();
  return l.words.size() == 2 && pci_like(l.words[0]) && parse_int(l.words[1]).has_value();
}

bool lstopo_start(const Line& l) { return starts_with(l.text, "Machine (") || starts_with(l.text, "Machine L#"); }
bool lstopo_more(const Line& l) {
  return l.raw.size() > l.text.size() &&
         any_start(l.text, {"Package", "NUMANode", "HostBridge", "PCIBridge", "PCI ", "Net", "OpenFabrics", "L3", "L2", "L1", "Core",
                            "Block", "CoProc", "Group", "Die", "PU", "Misc", "GPU", "Socket", "MemCache"});
}

bool env_line(const Line& l) {
  std::string_view t = l.text;
  for (std::string_view h : {"export ", "declare -x ", "ENV ", "- "})
    if (starts_with(t, h)) t = trim(t.substr(h.size()));
  size_t eq = t.find('=');
  if (eq == std::string_view::npos || eq < 4) return false;
  std::string_view key = t.substr(0, eq);
  if (!std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isupper(c) || digit(char(c)) || c == '_'; })) return false;
  return any_start(key, {"NCCL_", "NVSHMEM_", "DEEP_EP_", "DEEPEP_", "EP_", "UCX_", "VLLM_", "SGLANG_", "SGL_", "CUDA_", "GLOO_", "MC_", "LD_PRELOAD",
                         "LD_LIBRARY_PATH", "FI_", "OFI_", "RDMAV_", "MLX5_", "TORCH_", "GIB_"});
}

bool log_line(const Line& l) {
  return any_part(l.text, {"nvidia_peermem", "nvidia-peermem", "IoMemory failed", "GPU cannot map UAR", "ibgda_", "poll_cq completion",
                           "ibv_reg_dmabuf_mr", "ibv_reg_mr", "is not enumerated as an mlx5", "with GPU as handler failed", "dmabuf"});
}
bool ofed_line(const Line& l) { return l.words.size() == 1 && any_start(l.text, {"MLNX_OFED_LINUX-", "OFED-internal-"}); }

struct Rule {
  PieceKind kind;
  bool (*start)(const Line&);
  bool (*more)(const Line&);
  bool weak;    // `more` yields to the start of another kind
  bool gather;  // all lines of a source make one piece
};

// Order decides between kinds whose first line looks alike.
const Rule kRules[] = {
    {{"nvidia-smi-topo", "nvidia-smi topo -m, -mp, -p2p", "nvidia-smi-topo"}, topo_start, topo_more, false, false},
    {{"show_gids", "show_gids", nullptr}, gids_start, gids_more, false, false},
    {{"ibv_devinfo", "ibv_devinfo, with or without -v", "ibv-devinfo"}, devinfo_start, devinfo_more, false, false},
    {{"ibstat", "ibstat", "ibstat"}, ibstat_start, ibstat_more, false, false},
    {{"ibstatus", "ibstatus", nullptr}, ibstatus_start, ibstatus_more, false, false},
    {{"ibdev2netdev", "ibdev2netdev", nullptr}, netdev_line, netdev_line, false, false},
    {{"rdma-link", "rdma link", nullptr}, rdma_link_line, rdma_link_line, false, false},
    {{"sysfs-infiniband", "files below /sys/class/infiniband, as path:value or head prints them", nullptr}, sysfs_line, sysfs_more, false, false},
    {{"lstopo", "lstopo outline", nullptr}, lstopo_start, lstopo_more, false, false},
    {{"lspci", "lspci, with or without -nn", nullptr}, lspci_line, lspci_line, false, false},
    {{"lspci-tree", "lspci -tv", nullptr}, lspci_tree_line, lspci_tree_more, false, false},
    {{"pci-numa", "PCI addresses with NUMA nodes", nullptr}, numa_line, numa_line, false, false},
    {{"ip", "ip addr, ip -br addr, ip -br link", nullptr}, ip_line, ip_more, false, false},
    {{"nvidia-smi-query", "nvidia-smi --query-gpu=... --format=csv", nullptr}, csv_start, csv_more, false, false},
    {{"nvidia-smi-list", "nvidia-smi -L", nullptr}, smi_list_line, smi_list_line, false, false},
    {{"nvidia-smi", "nvidia-smi", "nvidia-smi"}, smi_table_start, smi_table_more, false, false},
    {{"nvidia-smi-q", "nvidia-smi -q", "nvidia-smi-q"}, smi_q_start, smi_q_more, true, false},
    {{"nvidia-params", "/proc/driver/nvidia/params", nullptr}, params_start, params_more, false, false},
    {{"environment", "NCCL_*, NVSHMEM_* and other variables", nullptr}, env_line, env_line, false, true},
    {{"ofed_info", "ofed_info -s", nullptr}, ofed_line, ofed_line, false, false},
    {{"log", "log lines of NVSHMEM, modprobe and verbs tests", nullptr}, log_line, log_line, false, true},
    {{"rdma-names", "ls /sys/class/infiniband, ibv_devices", nullptr}, names_line, names_more, false, false},
    {{"collect_env", "collect_env of PyTorch, vLLM, SGLang", nullptr}, collect_key, collect_more, true, false},
};

// "root@node7:~# nvidia-smi topo -mp" -> node7; empty when the line is no prompt.
std::string prompt_host(std::string_view t) {
  if (starts_with(t, "[")) t.remove_prefix(1);
  if (starts_with(t, "(")) {
    size_t close = t.find(')');
    if (close != std::string_view::npos) t = trim(t.substr(close + 1));
  }
  size_t at = t.find('@');
  if (at == std::string_view::npos || at == 0 || at > 32 || t.find(' ') < at) return {};
  size_t end = t.find_first_of(": ]", at);
  size_t mark = t.find_first_of("#$", at);
  if (end == std::string_view::npos || mark == std::string_view::npos || mark < end || mark - end > 120) return {};
  return std::string(t.substr(at + 1, end - at - 1));
}

bool plain_command(std::string_view t) {
  return any_start(t, {"$ ", "# nvidia", "# ib", "# show_gids", "# rdma", "# cat ", "# ls ", "> nvidia", "```"});
}

struct Unit {
  std::string source, text;
};

class Cutter {
 public:
  explicit Cutter(std::map<std::string, PastedHost>& by_host, std::vector<std::string>& order) : hosts_(by_host), order_(order) {}

  void cut(const Unit& unit, const std::string& file_host) {
    host_ = file_host;
    bool mp = contains(unit.source, "-mp") || contains(unit.source, "_mp");
    const Rule* rule = nullptr;
    int line_no = 0;
    auto all = lines(unit.text);
    for (size_t i = 0; i < all.size(); ++i) {
      line_no = int(i) + 1;
      std::string clean = clean_pasted_line(all[i].substr(0, 20000));
      Line l{clean, trim(clean), {}};
      if (l.text.empty()) continue;
      if (any_start(l.text, {"<?xml", "<system", "<topology", "<!DOCTYPE topology"})) {
        size_t end = i;
        while (end < all.size() && !contains(all[end], "</system>") && !contains(all[end], "</topology>")) ++end;
        std::string body;
        for (size_t k = i; k < std::min(end + 1, all.size()); ++k) body += std::string(all[k]) + "\n";
        const char* kind = contains(body, "<topology") ? "hwloc-xml" : "nccl-xml";
        add(kind, unit.source, line_no, body);
        i = std::min(end, all.size() - 1);
        rule = nullptr;
        continue;
      }
      if (std::string host = prompt_host(l.text); !host.empty()) {
        host_ = file_host.empty() ? host : file_host;
        mp = contains(l.text, "-mp");
        rule = nullptr;
        continue;
      }
      l.words = split_ws(l.text);
      if (rule && !rule->weak && rule->more(l)) {
        append(clean);
        continue;
      }
      const Rule* next = nullptr;
      for (const Rule& r : kRules)
        if (r.start(l)) {
          next = &r;
          break;
        }
      if (rule && rule->weak && (!next || next == rule) && rule->more(l)) {
        append(clean);
        continue;
      }
      if (next) {
        rule = next;
        open(*rule, unit.source, line_no, clean, mp);
        continue;
      }
      if (contains(l.text, "topo -mp")) mp = true;
      if (plain_command(l.text)) continue;
      ++target().unread_lines;
      // A line of prose inside a table ends it, one strange line does not.
      if (rule && ++strange_ > 2) rule = nullptr;
    }
  }

 private:
  PastedHost& target() {
    auto [it, fresh] = hosts_.try_emplace(host_);
    if (fresh) {
      it->second.name = host_;
      order_.push_back(host_);
    }
    return it->second;
  }
  void add(const char* kind, const std::string& source, int line, std::string text) {
    target().pieces.push_back({kind, source, line, std::move(text)});
    strange_ = 0;
  }
  void open(const Rule& r, const std::string& source, int line, const std::string& text, bool mp) {
    strange_ = 0;
    auto& pieces = target().pieces;
    std::string shown = source;
    if (mp && std::string_view(r.kind.kind) == "nvidia-smi-topo" && !contains(shown, "-mp")) shown += " (-mp)";
    if (r.gather)
      for (size_t i = 0; i < pieces.size(); ++i)
        if (pieces[i].kind == r.kind.kind && pieces[i].source == shown) {
          pieces[i].text += text + "\n";
          last_ = i;
          return;
        }
    pieces.push_back({r.kind.kind, shown, line, text + "\n"});
    last_ = pieces.size() - 1;
  }
  void append(const std::string& text) {
    strange_ = 0;
    auto& pieces = target().pieces;
    if (last_ < pieces.size()) pieces[last_].text += text + "\n";
  }

  std::map<std::string, PastedHost>& hosts_;
  std::vector<std::string>& order_;
  std::string host_;
  size_t last_ = 0;
  int strange_ = 0;
};

std::vector<std::string> stem_tokens(const std::string& path) {
  std::string stem = path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  stem = stem.substr(0, stem.rfind('.') == std::string::npos ? stem.size() : stem.rfind('.'));
  std::vector<std::string> out;
  std::string word;
  for (char c : stem) {
    if (c == '-' || c == '_' || c == '.' || c == ' ') {
      if (!word.empty()) out.push_back(lower(word));
      word.clear();
    } else {
      word += c;
    }
  }
  if (!word.empty()) out.push_back(lower(word));
  return out;
}

// Words in a file name that tell the form of an output, not a host.
bool form_word(const std::string& w) {
  static const std::set<std::string> kForms = {"m", "mp", "pasted", "one", "v", "vv", "verbose", "full", "raw", "clean", "out", "output",
                                               "txt", "log", "cut", "old", "new", "before", "after", "copy", "p2p", "l", "q", "br", "nn",
                                               "addr", "link", "query", "table", "list"};
  return kForms.count(w) > 0;
}

// Which host a file belongs to, when several files hold the same kind under names that differ by more than form.
std::map<std::string, std::string> hosts_by_file_name(const std::map<std::string, std::set<std::string>>& sources_of_kind) {
  std::map<std::string, std::string> out;
  for (const auto& [kind, sources] : sources_of_kind) {
    if (sources.size() < 2 || kind == "log" || kind == "environment" || kind == "collect_env") continue;
    std::set<std::string> common;
    bool first = true;
    for (const auto& s : sources) {
      auto t = stem_tokens(s);
      std::set<std::string> mine(t.begin(), t.end()), both;
      if (first) both = mine;
      else std::set_intersection(common.begin(), common.end(), mine.begin(), mine.end(), std::inserter(both, both.begin()));
      common = std::move(both);
      first = false;
    }
    for (const auto& s : sources) {
      std::vector<std::string> own;
      bool differs = false;
      for (const auto& t : stem_tokens(s)) {
        bool shared = common.count(t) > 0;
        differs |= !shared && !form_word(t);
        // "pod-a-show_gids": a shared word before the one that differs belongs to the name.
        if (!shared && !form_word(t)) own.push_back(t);
      }
      if (differs) out[s] = join(own, "-");
    }
  }
  return out;
}

}  // namespace

std::string clean_pasted_line(std::string_view line) {
  std::string s = replace_all(std::string(line), "^[[", "\x1b[");
  s = strip_ansi(s);
  std::string out;
  for (size_t i = 0; i < s.size();) {
    auto c = static_cast<unsigned char>(s[i]);
    if (c == 0xEF && i + 2 < s.size() && s[i + 1] == '\xBF' && s[i + 2] == '\xBD') {  // U+FFFD
      i += 3;
    } else if (c == 0xEF && i + 2 < s.size() && s[i + 1] == '\xBB' && s[i + 2] == '\xBF') {  // byte order mark
      i += 3;
    } else if (c == 0xC2 && i + 1 < s.size() && s[i + 1] == '\xA0') {  // no-break space
      out += ' ';
      i += 2;
    } else if (c == 0xE2 && i + 2 < s.size() && s[i + 1] == '\x80' &&
               static_cast<unsigned char>(s[i + 2]) <= 0xAF) {  // en quad .. narrow no-break space
      out += static_cast<unsigned char>(s[i + 2]) == 0x8B ? "" : " ";
      i += 3;
    } else if (c == 0xE3 && i + 2 < s.size() && s[i + 1] == '\x80' && s[i + 2] == '\x80') {  // ideographic space
      out += ' ';
      i += 3;
    } else if (c == '[' && digit_run(s, i + 1) > 0 && i + 1 + digit_run(s, i + 1) < s.size() &&
               s[i + 1 + digit_run(s, i + 1)] == 'm') {  // an escape sequence that lost its ESC
      i += 2 + digit_run(s, i + 1);
    } else {
      out += s[i++];
    }
  }
  return out;
}

bool is_rdma_name(std::string_view s) {
  if (s.size() < 3 || s.size() > 40) return false;
  if (!std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.'; }))
    return false;
  if (!std::any_of(s.begin(), s.end(), [](unsigned char c) { return std::isdigit(c); })) return false;
  for (std::string_view p : {"mlx5_", "mlx4_", "rocep", "roceP", "roceo", "roces", "roce_", "ibp", "ibP", "ibo", "ibs", "rdmap",
                             "rdma_", "bnxt_re", "irdma", "hns_", "erdma", "efa_", "ionic_", "rxe", "siw", "qedr", "hfi1_",
                             "cxgb", "mana_", "smi"})
    if (starts_with(s, p)) return true;
  return false;
}

const std::vector<PieceKind>& piece_kinds() {
  static const std::vector<PieceKind> kKinds = [] {
    std::vector<PieceKind> v;
    for (const auto& r : kRules) v.push_back(r.kind);
    v.push_back({"nccl-xml", "NCCL topology XML (files and dumps)", nullptr});
    v.push_back({"hwloc-xml", "hwloc XML (lstopo file.xml)", nullptr});
    return v;
  }();
  return kKinds;
}

std::vector<PastedHost> take_apart(const std::vector<std::pair<std::string, std::string>>& texts) {
  // First pass: which kinds each file holds, to see hosts in file names.
  std::map<std::string, std::set<std::string>> sources_of_kind;
  auto folder = [](const std::string& source) {
    size_t slash = source.find('/');
    return slash == std::string::npos ? std::string() : source.substr(0, slash);
  };
  std::set<std::string> folders;
  for (const auto& [source, text] : texts) {
    folders.insert(folder(source));
    std::map<std::string, PastedHost> scratch;
    std::vector<std::string> order;
    Cutter(scratch, order).cut({source, text}, "");
    for (const auto& [name, host] : scratch)
      for (const auto& p : host.pieces) sources_of_kind[folder(source) + "\n" + p.kind].insert(source);
  }
  std::map<std::string, std::string> by_file;
  for (const auto& [key, sources] : sources_of_kind) {
    std::string kind = key.substr(key.find('\n') + 1);
    for (auto& [s, h] : hosts_by_file_name({{kind, sources}})) by_file.emplace(s, h);
  }
  std::map<std::string, PastedHost> hosts;
  std::vector<std::string> order;
  Cutter cutter(hosts, order);
  for (const auto& [source, text] : texts) {
    std::string host = folders.size() > 1 ? folder(source) : "";
    if (auto it = by_file.find(source); it != by_file.end() && !it->second.empty())
      host = host.empty() ? it->second : host + "/" + it->second;
    cutter.cut({source, text}, host);
  }
  // One prompt in the whole paste names the host, it does not make a second one.
  std::vector<PastedHost> out;
  if (auto main = hosts.find(""); main != hosts.end() && hosts.size() == 2) {
    std::string other = order[0].empty() ? order[1] : order[0];
    bool from_prompt = !folders.count(other) && std::none_of(by_file.begin(), by_file.end(), [&](auto& kv) { return kv.second == other; });
    if (from_prompt) {
      PastedHost joined = std::move(main->second);
      for (auto& p : hosts[other].pieces) joined.pieces.push_back(std::move(p));
      joined.unread_lines += hosts[other].unread_lines;
      joined.name = "";
      out.push_back(std::move(joined));
      return out;
    }
  }
  if (auto main = hosts.find(""); main != hosts.end() && !main->second.pieces.empty()) out.push_back(std::move(main->second));
  int stray = 0;
  for (const auto& name : order) {
    if (name.empty() && !out.empty()) continue;
    auto& h = hosts[name];
    if (h.pieces.empty()) {
      stray += h.unread_lines;
      continue;
    }
    out.push_back(std::move(h));
  }
  if (out.empty()) out.emplace_back();
  out[0].unread_lines += stray;
  return out;
}

}  // namespace ep
