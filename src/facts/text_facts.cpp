// See text_facts.h.
#include "facts/text_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "facts/fields.h"
#include "facts/text_host.h"
#include "facts/text_matrix.h"
#include "facts/text_rdma.h"
#include "facts/text_system.h"
#include "facts/text_xml.h"

namespace ep {
namespace {

using RdmaReader = RdmaText (*)(std::string_view);
using TextReader = void (*)(std::string_view, const std::string&, Facts&);
using TreeReader = PciTreeText (*)(std::string_view, const std::string&);

struct RdmaRow {
  const char* kind;
  RdmaReader read;
};
constexpr RdmaRow kRdmaReaders[] = {{"ibv_devinfo", parse_ibv_devinfo},
                                    {"ibstat", parse_ibstat},
                                    {"ibstatus", parse_ibstatus},
                                    {"ibdev2netdev", parse_ibdev2netdev},
                                    {"rdma-link", parse_rdma_link},
                                    {"show_gids", parse_show_gids},
                                    {"sysfs-infiniband", parse_sysfs_infiniband},
                                    {"rdma-names", parse_rdma_names}};
struct TextRow {
  const char* kind;
  TextReader read;
};
constexpr TextRow kTextReaders[] = {{"nvidia-smi-query", read_nvidia_smi_query},
                                    {"nvidia-smi", read_nvidia_smi_text},
                                    {"nvidia-smi-list", read_nvidia_smi_text},
                                    {"nvidia-smi-q", read_nvidia_smi_text},
                                    {"collect_env", read_collect_env},
                                    {"lspci", read_lspci},
                                    {"dkms-status", read_dkms_status},
                                    {"uname", read_uname},
                                    {"ofed_info", read_ofed_info},
                                    {"ip", read_ip},
                                    {"nvidia-params", read_driver_params},
                                    {"pci-numa", read_pci_numa},
                                    {"log", read_log_lines},
                                    {"environment", read_environment},
                                    {"device-nodes", read_device_nodes},
                                    {"os-release", read_os_release_text},
                                    {"lsb_release", read_lsb_release},
                                    {"nvidia-version", read_nvidia_version},
                                    {"nvcc", read_nvcc},
                                    {"lsmod", read_lsmod},
                                    {"ulimit", read_ulimit},
                                    {"df", read_df},
                                    {"modprobe.d", read_modprobe},
                                    {"cgroup", read_cgroup},
                                    {"capabilities", read_capabilities},
                                    {"pip-list", read_pip_list},
                                    {"missing-path", read_missing_path},
                                    {"service-state", read_service_state},
                                    {"dmi", read_dmi}};
struct TreeRow {
  const char* kind;
  TreeReader read;
};
constexpr TreeRow kTreeReaders[] = {{"nccl-xml", parse_nccl_xml},
                                    {"hwloc-xml", parse_hwloc_xml},
                                    {"lstopo", parse_lstopo_outline},
                                    {"lspci-tree", parse_lspci_tree},
                                    {"sysfs-links", parse_sysfs_links}};

void add_tree(const PciTreeText& tree, const std::string& source, Facts& f) {
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < f.pci.size(); ++i) places.emplace(f.pci[i].address, i);
  for (const auto& p : tree.pci) {
    auto [place, fresh] = places.try_emplace(p.address, f.pci.size());
    if (fresh) {
      f.pci.push_back(p);
      continue;
    }
    PciDevice& old = f.pci[place->second];
    if (!old.path.empty()) continue;
    old.path = p.path;
    if (!old.numa_node.ok()) old.numa_node = p.numa_node;
    if (!old.device_class.ok()) old.device_class = p.device_class;
    if (!old.device.ok()) old.device = p.device;
    if (!old.vendor.ok()) old.vendor = p.vendor;
  }
  for (const auto& g : tree.gpus) {
    auto same = [&](const Gpu& o) { return !o.address.empty() && o.address == g.address; };
    auto it = std::find_if(f.gpus.begin(), f.gpus.end(), same);
    if (it == f.gpus.end())
      it = std::find_if(f.gpus.begin(), f.gpus.end(),
                        [&](const Gpu& o) { return o.address.empty() && o.index == g.index; });
    if (it == f.gpus.end()) {
      if (std::none_of(f.gpus.begin(), f.gpus.end(), [&](const Gpu& o) { return o.index == g.index; }))
        f.gpus.push_back(g);
      continue;
    }
    if (it->address.empty()) it->address = g.address;
    if (!it->compute_capability.ok()) it->compute_capability = g.compute_capability;
    if (!it->numa_node.ok()) it->numa_node = g.numa_node;
    if (!it->nvlinks_up.ok()) it->nvlinks_up = g.nvlinks_up;
  }
  RdmaText rdma;
  rdma.devices = tree.rdma;
  merge_rdma(rdma, source, f.rdma, f.paste.findings);
  for (const auto& x : tree.findings) f.paste.findings.push_back(x);
  f.paste.static_xml |= tree.is_static;
}

void add_rdma(const RdmaText& text, const std::string& kind, const std::string& source, Facts& f) {
  merge_rdma(text, source, f.rdma, f.paste.findings);
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < f.netdevs.size(); ++i) places.emplace(f.netdevs[i].name, i);
  for (const auto& [name, up] : text.netdev_up) {
    auto [place, fresh] = places.try_emplace(name, f.netdevs.size());
    if (fresh) {
      f.netdevs.emplace_back();
      f.netdevs.back().name = name;
    }
    Netdev& n = f.netdevs[place->second];
    if (!n.operstate.ok()) n.operstate = known<std::string>(up ? "up" : "down", source);
  }
  if (kind == "show_gids") f.paste.gid_list_complete = text.complete;
  if ((kind == "ibv_devinfo" || kind == "ibstat" || kind == "ibstatus") && text.complete &&
      !text.devices.empty()) {
    f.paste.verbs_list_complete = true;
    for (const auto& d : text.devices) f.paste.verbs_listed.push_back(d.name);
  }
}

constexpr size_t kMaxMatrices = 32;  // of one host; each takes a square of its labels

void add_matrices(const PastePiece& piece, Facts& f) {
  auto tables = parse_link_matrices(piece.text, piece.source);
  auto p2p = parse_p2p_matrix(piece.text);
  if (p2p.found) {
    f.p2p_known = known(true, piece.source);
    for (auto& b : p2p.bad_pairs) f.p2p_bad_pairs.push_back(std::move(b));
    return;
  }
  if (tables.empty()) {
    Finding x;
    x.code = "paste_damaged";
    x.severity = Severity::warn;
    x.title = "rows of a link matrix without a usable header line; they are not used";
    x.title_zh = "有矩阵的行但没有可用的表头；未采用";
    x.evidence.push_back({piece.source, piece.line, ""});
    f.paste.findings.push_back(std::move(x));
  }
  for (auto& t : tables) {
    for (auto& x : t.findings) {
      for (auto& e : x.evidence) e.line += piece.line - 1;
      f.paste.findings.push_back(std::move(x));
    }
    if (t.refused.empty() && f.matrices.size() < kMaxMatrices) f.matrices.push_back(std::move(t.matrix));
  }
}

size_t known_cells(const LinkMatrix& m) {
  size_t n = 0;
  for (const auto& row : m.cells)
    for (const auto& c : row) n += !c.empty();
  return n;
}

// The same table twice (whole and pasted, -m and -mp): the fullest goes first, NVLink cells before PCIe ones.
void order_matrices(Facts& f) {
  std::stable_sort(f.matrices.begin(), f.matrices.end(), [](const LinkMatrix& a, const LinkMatrix& b) {
    if (a.pcie_only != b.pcie_only && a.labels.size() == b.labels.size()) return !a.pcie_only;
    if (known_cells(a) != known_cells(b)) return known_cells(a) > known_cells(b);
    return a.legend.size() > b.legend.size();
  });
  if (f.matrices.size() < 2) return;
  LinkMatrix& main = f.matrices[0];
  int conflicts = 0;
  std::string first;
  for (size_t k = 1; k < f.matrices.size(); ++k) {
    const LinkMatrix& m = f.matrices[k];
    if (!main.has_legend && m.has_legend && m.labels == main.labels) {
      main.legend = m.legend;
      main.has_legend = true;
    }
    std::vector<size_t> place;  // of each label in `main`
    for (const auto& l : m.labels)
      place.push_back(size_t(std::find(main.labels.begin(), main.labels.end(), l) - main.labels.begin()));
    for (size_t i = 0; i < m.labels.size(); ++i)
      for (size_t j = 0; j < m.labels.size(); ++j) {
        if (place[i] == main.labels.size() || place[j] == main.labels.size() || m.cells[i][j].empty())
          continue;
        const std::string& mine = main.cells[place[i]][place[j]];
        bool nvlink = starts_with(mine, "NV") || starts_with(m.cells[i][j], "NV");
        if (mine.empty() || nvlink || mine == m.cells[i][j]) continue;
        if (!conflicts++)
          first = fmt::format("{}-{}: {} and {}", m.labels[i], m.labels[j], mine, m.cells[i][j]);
      }
  }
  if (conflicts) {
    Finding x;
    x.code = "piece_contradiction";
    x.severity = Severity::warn;
    x.title = fmt::format("two link matrices of this host differ in {} cells", conflicts);
    x.title_zh = fmt::format("本机的两份拓扑矩阵有 {} 处不同", conflicts);
    x.evidence.push_back({main.source, 0, first});
    f.paste.findings.push_back(std::move(x));
  }
}

// What predictable names tell: PCI addresses, and which netdev belongs to which RDMA device.
void join_by_names(Facts& f) {
  std::multimap<std::string, std::string> netdevs;  // by the address in the name, in listed order
  for (const auto& n : f.netdevs)
    if (auto a = address_of_name(n.name); !a.empty()) netdevs.emplace(a, n.name);
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < f.pci.size(); ++i) places.emplace(f.pci[i].address, i);
  for (auto& d : f.rdma) {
    std::string address = address_of_name(d.name);
    if (d.address.empty() && !address.empty()) d.address = address;
    if (d.netdevs.empty() && !address.empty())
      for (auto [it, end] = netdevs.equal_range(address); it != end; ++it) d.netdevs.push_back(it->second);
    if (auto p = places.find(d.address); p != places.end()) {
      const PciDevice& pci = f.pci[p->second];
      if (!d.numa_node.ok() && pci.numa_node.ok()) d.numa_node = pci.numa_node;
      if (!d.is_vf.ok() && pci.is_vf.value_or(false)) d.is_vf = known(true, "lspci");
    }
  }
}

// A tree without RDMA names: its NICs stand for themselves, by address, when nothing names any.
void add_unnamed_nics(Facts& f) {
  std::vector<const PciDevice*> nics;
  for (const auto& p : f.pci)
    if (p.vendor.value_or(0) == 0x15b3 && !p.path.empty() && !p.device_class.ok()) nics.push_back(&p);
  if (f.rdma.empty() && f.matrices.empty()) {
    for (const auto* p : nics) {
      RdmaDevice d;
      d.name = d.address = p->address;
      d.numa_node = p->numa_node;
      d.is_vf = p->is_vf;
      d.driver = known<std::string>("mlx5_core", "vendor");
      f.rdma.push_back(std::move(d));
    }
    return;
  }
  bool joined =
      std::any_of(f.rdma.begin(), f.rdma.end(), [](const RdmaDevice& d) { return !d.address.empty(); });
  if (nics.empty() || joined || f.rdma.empty()) return;
  Finding x;
  x.code = "tree_not_joined";
  x.severity = Severity::info;
  x.title = "a PCI tree is shown, but nothing tells which device name has which address";
  x.title_zh = "有 PCI 树，但没有内容说明设备名与地址的对应";
  x.next = "ls -l /sys/class/infiniband";
  f.paste.findings.push_back(std::move(x));
}

}  // namespace

namespace {
/// Walks all facts of a text and says of those that nothing was read for: not shown. Absent would be a claim.
struct NotShown {
  template <class T>
  void fact(const char*, const Fact<T>& f) {
    if (f.known != Known::absent || !f.where.empty() || !f.why.empty()) return;
    auto& mine = const_cast<Fact<T>&>(f);  // the listing reads; the facts are the caller's own
    mine.known = Known::unreadable;
    mine.why = "the text does not show it";
  }
  template <class T>
  void plain(const char*, const T&) {}
  template <class Body>
  void group(const char*, const Body& body) {
    body();
  }
  template <class Items, class Label, class Body>
  void list(const char*, const Items& items, const Label&, const Body& body) {
    for (const auto& i : items) body(i);
  }
};
}  // namespace

void add_pasted_facts(const PastedHost& pasted, Facts& f) {
  for (const auto& piece : pasted.pieces) {
    f.paste.pieces.push_back({piece.kind, piece.source, piece.line});
    if (piece.kind == "nvidia-smi-topo") add_matrices(piece, f);
    for (const auto& r : kTextReaders)
      if (piece.kind == r.kind) r.read(piece.text, piece.source, f);
    for (const auto& r : kTreeReaders)
      if (piece.kind == r.kind) add_tree(r.read(piece.text, piece.source), piece.source, f);
    for (const auto& r : kRdmaReaders)
      if (piece.kind == r.kind) add_rdma(r.read(piece.text), piece.kind, piece.source, f);
  }
  f.paste.unread_lines += pasted.unread_lines;
  for (const auto& u : pasted.unread) f.paste.unread.push_back({u.text, "", u.line});
  order_matrices(f);
  // Devices that only the matrix names.
  if (!f.matrices.empty())
    for (const auto& [label, name] : f.matrices[0].legend)
      if (std::none_of(f.rdma.begin(), f.rdma.end(),
                       [&, n = name](const RdmaDevice& d) { return d.name == n; })) {
        RdmaDevice d;
        d.name = name;
        f.rdma.push_back(std::move(d));
      }
  join_by_names(f);
  add_unnamed_nics(f);
  conclude_system(f);
  std::stable_sort(f.rdma.begin(), f.rdma.end(),
                   [](const RdmaDevice& a, const RdmaDevice& b) { return natural_less(a.name, b.name); });
  NotShown visitor;
  fields(visitor, f);
}

void add_probed_matrices(const std::function<const ProbeResult&(const std::string&)>& probe, Facts& f) {
  const ProbeResult& topo = probe("nvidia-smi-topo");
  if (topo.found && topo.exit_code == 0)
    for (auto& t : parse_link_matrices(topo.out, "nvidia-smi topo -m"))
      if (t.refused.empty()) f.matrices.push_back(std::move(t.matrix));
  for (const char* name : {"nvidia-smi-p2p-r", "nvidia-smi-p2p-w"}) {
    const ProbeResult& r = probe(name);
    auto p2p = r.found && r.exit_code == 0 ? parse_p2p_matrix(r.out) : P2pText{};
    if (!p2p.found) continue;
    f.p2p_known = known<bool>(true, name);
    for (auto& b : p2p.bad_pairs) f.p2p_bad_pairs.push_back(std::move(b));
  }
}

Facts facts_of_paste(const PastedHost& pasted, const std::string& shown_name) {
  Facts f;
  f.host_name = shown_name;
  f.host_kind = "paste";
  add_pasted_facts(pasted, f);
  return f;
}

}  // namespace ep
