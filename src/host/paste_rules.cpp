// See paste_rules.h. One pair of functions a kind, one row each; names and forms as the tools print them.
#include "host/paste_rules.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "host/paste_system_rules.h"

namespace ep {
namespace {

using Words = std::vector<std::string_view>;

bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool number(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), digit);
}
bool hex_char(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

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
  if (dot == std::string_view::npos || dot + 2 != t.size() || colons < 1 || colons > 2 || t.size() < 7 ||
      t.size() > 16)
    return false;
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

// ---- one pair of functions a kind ----

bool topo_start(const PasteLine& l) {
  if (l.words.empty() || !matrix_label(l.words[0])) return false;
  if (contains(l.words[0], ":")) return false;
  if (l.words.size() == 1) return l.words[0].size() > 8 || contains(l.words[0], "CPU");
  return matrix_label(l.words[1]) || l.words[1] == "CPU" || starts_with(l.words[1], "CPU") ||
         is_rdma_name(l.words[1]) || link_class(l.words[1]);
}
bool topo_more(const PasteLine& l) {
  if (l.text == "Legend:" || l.text == "NIC Legend:" || any_start(l.text, {"----", "===="})) return true;
  if (l.words.size() >= 2 && l.words[1] == "=" && (link_class(l.words[0]) || l.words[0] == "NV#"))
    return true;
  if (!l.words.empty() && matrix_label(l.words[0])) return true;
  if (l.words.size() >= 2 && is_rdma_name(l.words[0]) && link_class(l.words[1])) return true;
  return !l.words.empty() && link_class(l.words[0]) &&
         std::all_of(l.words.begin(), l.words.end(),
                     [](auto w) { return link_class(w) || digit(w[0]) || w == "N/A"; });
}

bool gids_row(const PasteLine& l) {
  return l.words.size() >= 4 && number(l.words[1]) && number(l.words[2]) && gid_like(l.words[3]);
}
bool gids_start(const PasteLine& l) {
  return (starts_with(l.text, "DEV") && contains(l.text, "INDEX") && contains(l.text, "GID")) || gids_row(l);
}
bool gids_more(const PasteLine& l) {
  return gids_row(l) || contains(l.text, "n_gids_found") || starts_with(l.text, "---");
}

bool devinfo_start(const PasteLine& l) {
  return starts_with(l.text, "hca_id:");
}
bool devinfo_more(const PasteLine& l) {
  return devinfo_start(l) ||
         any_start(l.text, {"transport:",     "fw_ver:",         "node_guid:", "sys_image_guid:",
                            "vendor_id:",     "vendor_part_id:", "hw_ver:",    "board_id:",
                            "phys_port_cnt:", "port:",           "state:",     "phys_state:",
                            "max_mtu:",       "active_mtu:",     "sm_lid:",    "port_lid:",
                            "port_lmc:",      "link_layer:",     "GID[",       "max_",
                            "active_",        "page_size",       "device_cap", "atomic_cap",
                            "local_ca",       "port_cap",        "bad_pkey",   "qkey_",
                            "gid_tbl",        "subnet_",         "init_type",  "hca_core"});
}

bool ibstat_start(const PasteLine& l) {
  return starts_with(l.text, "CA '");
}
bool ibstat_more(const PasteLine& l) {
  return ibstat_start(l) || any_part(l.text, {"ibpanic:", "stat of IB device"}) ||
         any_start(l.text, {"CA type:", "Number of ports:", "Firmware version:", "Hardware version:",
                            "Node GUID:", "System image GUID:", "Port ", "State:", "Physical state:", "Rate:",
                            "Base lid:", "LMC:", "SM lid:", "Capability mask:", "Link layer:"});
}

bool ibstatus_start(const PasteLine& l) {
  return icontains(l.text, "infiniband device '");
}
bool ibstatus_more(const PasteLine& l) {
  return ibstatus_start(l) ||
         any_start(l.text,
                   {"default gid:", "base lid:", "sm lid:", "state:", "phys state:", "rate:", "link_layer:"});
}

bool netdev_line(const PasteLine& l) {
  return contains(l.text, "==>") && contains(l.text, " port ") && !contains(l.text, "<==");
}

bool rdma_link_line(const PasteLine& l) {
  if (l.words.size() < 4 || !contains(l.text, " state ")) return false;
  if (l.words[0] == "link" && contains(l.words[1], "/")) return true;
  return contains(l.words[0], "/") && ends_with(l.words[0], ":") && contains(l.words[1], "/");
}

bool sysfs_line(const PasteLine& l) {
  return contains(l.text, "infiniband/") &&
         any_part(l.text, {"/ports/", "/hca_type", "/board_id", "/fw_ver", "numa_node"});
}
bool sysfs_more(const PasteLine& l) {
  return sysfs_line(l) || gid_like(l.text) || any_start(l.text, {"RoCE v", "IB/RoCE v"});
}

bool names_line(const PasteLine& l) {
  if (l.words.empty() || l.words.size() > 40) return false;
  if (l.words.size() == 2 && is_rdma_name(l.words[0]) && l.words[1].size() == 16 &&
      std::all_of(l.words[1].begin(), l.words[1].end(), hex_char))
    return true;  // ibv_devices
  return std::all_of(l.words.begin(), l.words.end(), is_rdma_name);
}
bool names_more(const PasteLine& l) {
  return names_line(l) || starts_with(l.text, "#") ||
         (contains(l.text, "device") && contains(l.text, "node GUID")) || starts_with(l.text, "------");
}

bool lspci_line(const PasteLine& l) {
  return l.words.size() >= 3 && pci_like(l.words[0]) &&
         any_part(l.text,
                  {"controller", "bridge", "Bridge", "Processing accelerators", "System peripheral", "Host"});
}
// What `lspci -vv` and -vvv print below a device, indented.
bool lspci_detail(const PasteLine& l) {
  if (l.raw.empty() || (l.raw[0] != ' ' && l.raw[0] != '\t')) return false;
  return any_start(l.text, {"Capabilities: ", "Bus: primary=", "DevCtl:", "DevCap:", "LnkCap:", "LnkSta:",
                            "RlxdOrd", "MaxPayload ", "ACSCtl:", "ACSCap:"});
}
bool lspci_more(const PasteLine& l) {
  return lspci_line(l) || lspci_detail(l);
}
bool lspci_tree_line(const PasteLine& l) {
  return any_start(l.text, {"-[0", "-[", "-+-[", "+-[0", "\\-[0"}) && contains(l.text, "]");
}
// "|  +-01.0-[04]----00.0  ...": behind bars and blanks a branch, then a slot or a bus. A table's rule is not
// one.
bool lspci_tree_more(const PasteLine& l) {
  size_t i = l.text.find_first_not_of("| ");
  if (i == std::string_view::npos) return true;
  std::string_view t = l.text.substr(i);
  return t.size() > 2 && any_start(t, {"+-", "\\-", "-["}) && (t[2] == '[' || hex_char(t[2]));
}

// "mlx5_0 -> ../../devices/pci0000:15/.../infiniband/mlx5_0": ls -l below /sys.
bool links_line(const PasteLine& l) {
  return contains(l.text, "devices/pci") && any_part(l.text, {"-> ", "/infiniband/", "/net/"});
}

bool dkms_line(const PasteLine& l) {
  size_t colon = l.text.rfind(": ");
  if (colon == std::string_view::npos || !(contains(l.text, "/") || contains(l.text, ", "))) return false;
  std::string_view head = l.text.substr(0, colon), state = l.text.substr(colon + 2);
  bool plain = std::all_of(head.begin(), head.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '/' || c == ',' || c == ' ' || c == '.' || c == '-' || c == '_' ||
           c == '+' || c == '~' || c == ':';
  });
  return plain && any_start(state, {"installed", "added", "built", "broken"}) && l.words.size() <= 16 &&
         std::any_of(head.begin(), head.end(), digit);
}

bool uname_line(const PasteLine& l) {
  if (l.words.size() >= 4 && l.words[0] == "Linux") return contains(l.text, "SMP");
  if (l.words.size() != 1 || !digit(l.text[0]) || std::count(l.text.begin(), l.text.end(), '.') < 2)
    return false;
  return contains(l.text, "-") && any_part(l.text, {"-generic", "-amd64", ".x86_64", ".aarch64", "-aws",
                                                    "-azure", "-gcp", "-oracle", "-nvidia"});
}

bool ip_state(std::string_view w) {
  return w == "UP" || w == "DOWN" || w == "UNKNOWN" || w == "LOWERLAYERDOWN" || w == "DORMANT";
}
bool ip_line(const PasteLine& l) {
  if (l.words.size() >= 2 && ip_state(l.words[1]) && !contains(l.words[0], "|"))
    return l.words.size() == 2
               ? !contains(l.words[0], ":")
               : (contains(l.words[2], "/") || std::count(l.words[2].begin(), l.words[2].end(), ':') == 5);
  return l.words.size() >= 3 && ends_with(l.words[0], ":") &&
         number(l.words[0].substr(0, l.words[0].size() - 1)) && contains(l.words[2], "<");
}
bool ip_more(const PasteLine& l) {
  return ip_line(l) || any_start(l.text, {"inet ", "inet6 ", "link/", "valid_lft", "altname ", "vf "});
}

bool csv_start(const PasteLine& l) {
  if (!contains(l.text, ",")) return false;
  bool header = any_start(l.text, {"index", "name", "gpu_name", "uuid", "pci.bus_id"}) &&
                any_part(l.text, {"pci.bus_id", "driver_version", "memory.", "compute_cap", "uuid", "name"});
  bool row = l.words.size() >= 3 && ends_with(l.words[0], ",") &&
             number(l.words[0].substr(0, l.words[0].size() - 1)) && any_part(l.text, {"NVIDIA", "Tesla"});
  // --query-gpu=index,pci.bus_id without a header
  bool address = l.words.size() == 2 && ends_with(l.words[0], ",") && pci_like(l.words[1]) &&
                 number(l.words[0].substr(0, l.words[0].size() - 1));
  // --query-gpu=name,... without a header: "NVIDIA B200, 580.95.05, 183359 MiB"
  bool named = starts_with(l.text, "NVIDIA ") && (ends_with(l.text, " MiB") || contains(l.text, ", GPU-"));
  return header || row || address || named;
}
bool csv_more(const PasteLine& l) {
  return contains(l.text, ", ") && (digit(l.text[0]) || contains(l.text, "NVIDIA"));
}

bool smi_list_line(const PasteLine& l) {
  return starts_with(l.text, "GPU ") && contains(l.text, "(UUID");
}
bool smi_list_more(const PasteLine& l) {
  return smi_list_line(l) || (starts_with(l.text, "MIG ") && contains(l.text, "UUID: MIG-"));
}
bool smi_table_start(const PasteLine& l) {
  return starts_with(l.text, "|") && contains(l.text, "NVIDIA-SMI");
}
bool smi_table_more(const PasteLine& l) {
  return any_start(l.text, {"|", "+"});
}
bool smi_q_start(const PasteLine& l) {
  return contains(l.text, "NVSMI LOG") ||
         (starts_with(l.text, "GPU ") && l.words.size() == 2 && pci_like(l.words[1]));
}
bool smi_q_more(const PasteLine& l) {
  return smi_q_start(l) ||
         any_start(l.text, {"Timestamp  ", "Driver Version  ", "CUDA Version  ", "Attached GPUs  "}) ||
         (l.raw.size() > l.text.size() && (contains(l.text, " : ") || l.raw[0] == ' '));
}

bool collect_key(const PasteLine& l) {
  return any_start(l.text, {"Python:",
                            "CUDA available:",
                            "CUDA_HOME:",
                            "NVCC:",
                            "CUDA Driver Version:",
                            "PyTorch:",
                            "PyTorch version:",
                            "sglang:",
                            "sglang-kernel:",
                            "Collecting environment",
                            "GPU models and configuration",
                            "Nvidia driver version:",
                            "CUDA used to build",
                            "CUDA runtime version:",
                            "Is CUDA available:",
                            "ulimit soft:",
                            "GPU Topology:",
                            "NVIDIA Topology:",
                            "[pip3]",
                            "[conda]",
                            "flashinfer",
                            "vLLM Version:",
                            "triton:",
                            "Python version:"}) ||
         (starts_with(l.text, "GPU ") && l.text.size() > 4 && digit(l.text[4]) && contains(l.text, ":") &&
          !contains(l.text, "(UUID"));
}
bool collect_more(const PasteLine& l) {
  return collect_key(l) || (l.words.size() >= 2 && ends_with(l.words[0], ":") &&
                            std::isalpha(static_cast<unsigned char>(l.text[0])));
}

bool params_start(const PasteLine& l) {
  return any_start(l.text, {"EnableStreamMemOPs:", "RegistryDwords:", "RegistryDwordsPerDevice:",
                            "ResmanDebugLevel:", "RmLogonRC:", "ModifyDeviceFiles:", "EnableMSI:"});
}
bool params_more(const PasteLine& l) {
  return l.words.size() >= 2 && ends_with(l.words[0], ":") &&
         std::isupper(static_cast<unsigned char>(l.text[0])) && l.words.size() == 2 &&
         (digit(l.words[1][0]) || l.words[1][0] == '"');
}

bool numa_line(const PasteLine& l) {
  auto parts = split(l.text, '|');
  if (parts.size() == 2) return pci_like(trim(parts[0])) && parse_int(trim(parts[1])).has_value();
  return l.words.size() == 2 && pci_like(l.words[0]) && parse_int(l.words[1]).has_value();
}

bool lstopo_start(const PasteLine& l) {
  return starts_with(l.text, "Machine (") || starts_with(l.text, "Machine L#");
}
bool lstopo_more(const PasteLine& l) {
  return l.raw.size() > l.text.size() &&
         any_start(l.text,
                   {"Package", "NUMANode", "HostBridge", "PCIBridge", "PCI ",   "Net",     "OpenFabrics",
                    "L3",      "L2",       "L1",         "Core",      "Block",  "CoProc",  "Group",
                    "Die",     "PU",       "Misc",       "GPU",       "Socket", "MemCache"});
}

bool env_line(const PasteLine& l) {
  std::string_view t = l.text;
  for (std::string_view h : {"export ", "declare -x ", "ENV ", "- "})
    if (starts_with(t, h)) t = trim(t.substr(h.size()));
  size_t eq = t.find('=');
  if (eq == std::string_view::npos || eq < 4) return false;
  std::string_view key = t.substr(0, eq);
  if (!std::all_of(key.begin(), key.end(),
                   [](unsigned char c) { return std::isupper(c) || digit(char(c)) || c == '_'; }))
    return false;
  return any_start(key, {"KUBERNETES_SERVICE_HOST",
                         "NVIDIA_VISIBLE_DEVICES",
                         "NCCL_",
                         "NVSHMEM_",
                         "DEEP_EP_",
                         "DEEPEP_",
                         "EP_",
                         "UCX_",
                         "VLLM_",
                         "SGLANG_",
                         "SGL_",
                         "CUDA_",
                         "GLOO_",
                         "MC_",
                         "LD_PRELOAD",
                         "LD_LIBRARY_PATH",
                         "FI_",
                         "OFI_",
                         "RDMAV_",
                         "MLX5_",
                         "TORCH_",
                         "GIB_"});
}

bool log_line(const PasteLine& l) {
  return any_part(l.text, {"nvidia_peermem", "nvidia-peermem", "IoMemory failed", "GPU cannot map UAR",
                           "ibgda_", "poll_cq completion", "ibv_reg_dmabuf_mr", "ibv_reg_mr",
                           "is not enumerated as an mlx5", "with GPU as handler failed", "dmabuf"});
}
bool ofed_line(const PasteLine& l) {
  return l.words.size() == 1 && any_start(l.text, {"MLNX_OFED_LINUX-", "OFED-internal-"});
}

// Order decides between kinds whose first line looks alike.
const std::vector<PieceRule> kOwnRules = {
    {{"nvidia-smi-topo", "nvidia-smi topo -m, -mp, -p2p", "nvidia-smi-topo"},
     topo_start,
     topo_more,
     false,
     false},
    {{"show_gids", "show_gids", nullptr}, gids_start, gids_more, false, false},
    {{"ibv_devinfo", "ibv_devinfo, with or without -v", "ibv_devinfo"},
     devinfo_start,
     devinfo_more,
     false,
     false},
    {{"ibstat", "ibstat", nullptr}, ibstat_start, ibstat_more, false, false},
    {{"ibstatus", "ibstatus", nullptr}, ibstatus_start, ibstatus_more, false, false},
    {{"ibdev2netdev", "ibdev2netdev", nullptr}, netdev_line, netdev_line, false, false},
    {{"rdma-link", "rdma link", "rdma-link"}, rdma_link_line, rdma_link_line, false, false},
    {{"sysfs-infiniband", "files below /sys/class/infiniband, as path:value or head prints them", nullptr},
     sysfs_line,
     sysfs_more,
     false,
     false},
    {{"lstopo", "lstopo outline", nullptr}, lstopo_start, lstopo_more, false, false},
    {{"lspci-tree", "lspci -tv", nullptr}, lspci_tree_line, lspci_tree_more, false, false},
    {{"lspci", "lspci, with or without -nn, -vvv", nullptr}, lspci_line, lspci_more, false, true},
    {{"sysfs-links", "ls -l of /sys/class/infiniband, /sys/class/net, /sys/bus/pci/devices", nullptr},
     links_line,
     links_line,
     false,
     true},
    {{"dkms-status", "dkms status", nullptr}, dkms_line, dkms_line, false, true},
    {{"uname", "uname -a, uname -r", nullptr}, uname_line, uname_line, false, false},
    {{"pci-numa", "PCI addresses with NUMA nodes", nullptr}, numa_line, numa_line, false, false},
    {{"ip", "ip addr, ip -br addr, ip -br link", nullptr}, ip_line, ip_more, false, false},
    {{"nvidia-smi-query", "nvidia-smi --query-gpu=... --format=csv", nullptr},
     csv_start,
     csv_more,
     false,
     false},
    {{"nvidia-smi-list", "nvidia-smi -L", nullptr}, smi_list_line, smi_list_more, false, false},
    {{"nvidia-smi", "nvidia-smi", "nvidia-smi"}, smi_table_start, smi_table_more, false, false},
    {{"nvidia-smi-q", "nvidia-smi -q", "nvidia-smi-q"}, smi_q_start, smi_q_more, true, false},
    {{"nvidia-params", "/proc/driver/nvidia/params", nullptr}, params_start, params_more, false, false},
    {{"environment", "NCCL_*, NVSHMEM_* and other variables", nullptr}, env_line, env_line, false, true},
    {{"ofed_info", "ofed_info -s", nullptr}, ofed_line, ofed_line, false, false},
    {{"log", "log lines of NVSHMEM, modprobe and verbs tests", nullptr}, log_line, log_line, false, true},
    {{"device-nodes", "ls of /dev/infiniband and /dev/nvidia-caps-imex-channels", nullptr},
     device_nodes_line,
     device_nodes_line,
     false,
     false,
     true},
    {{"service-state", "systemctl is-active or status of nvidia-imex", nullptr},
     service_state_line,
     service_state_more,
     false,
     false,
     true},
    {{"rdma-names", "ls /sys/class/infiniband, ibv_devices", nullptr}, names_line, names_more, false, false},
    {{"collect_env", "collect_env of PyTorch, vLLM, SGLang", nullptr},
     collect_key,
     collect_more,
     true,
     false},
};

}  // namespace

const std::vector<PieceRule>& piece_rules() {
  // The system's kinds stand before those that take any "key: value" or a bare word.
  static const std::vector<PieceRule> rules = [] {
    std::vector<PieceRule> all = kOwnRules;
    const auto place = std::find_if(all.begin(), all.end(), [](const PieceRule& r) {
      return std::string_view(r.kind.kind) == "dkms-status";
    });
    all.insert(place, system_rules().begin(), system_rules().end());
    return all;
  }();
  return rules;
}

const std::vector<PieceKind>& piece_kinds() {
  static const std::vector<PieceKind> kKinds = [] {
    std::vector<PieceKind> v;
    for (const auto& r : piece_rules()) v.push_back(r.kind);
    v.push_back({"nccl-xml", "NCCL topology XML (files and dumps)", nullptr});
    v.push_back({"hwloc-xml", "hwloc XML (lstopo file.xml)", nullptr});
    return v;
  }();
  return kKinds;
}

bool is_rdma_name(std::string_view s) {
  if (s.size() < 3 || s.size() > 40) return false;
  if (!std::all_of(s.begin(), s.end(),
                   [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.'; }))
    return false;
  if (!std::any_of(s.begin(), s.end(), [](unsigned char c) { return std::isdigit(c); })) return false;
  for (std::string_view p :
       {"mlx5_",  "mlx4_", "rocep", "roceP", "roceo",   "roces", "roce_", "ibp",   "ibP",
        "ibo",    "ibs",   "rdmap", "rdma_", "bnxt_re", "irdma", "hns_",  "erdma", "efa_",
        "ionic_", "rxe",   "siw",   "qedr",  "hfi1_",   "cxgb",  "mana_", "smi"})
    if (starts_with(s, p)) return true;
  return false;
}

}  // namespace ep
