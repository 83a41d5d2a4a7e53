// See text_facts.h.
#include "facts/text_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "facts/text_host.h"
#include "facts/text_matrix.h"
#include "facts/text_rdma.h"
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
                                    {"ip", read_ip},
                                    {"nvidia-params", read_driver_params},
                                    {"pci-numa", read_pci_numa},
                                    {"log", read_log_lines},
                                    {"environment", read_environment}};
struct TreeRow {
  const char* kind;
  TreeReader read;
};
constexpr TreeRow kTreeReaders[] = {
    {"nccl-xml", parse_nccl_xml}, {"hwloc-xml", parse_hwloc_xml}, {"lstopo", parse_lstopo_outline}};

void add_tree(const PciTreeText& tree, const std::string& source, Facts& f) {
  for (const auto& p : tree.pci) {
    auto it =
        std::find_if(f.pci.begin(), f.pci.end(), [&](const PciDevice& o) { return o.address == p.address; });
    if (it == f.pci.end()) {
      f.pci.push_back(p);
    } else if (it->path.empty()) {
      it->path = p.path;
      if (!it->numa_node.ok()) it->numa_node = p.numa_node;
      if (!it->device_class.ok()) it->device_class = p.device_class;
      if (!it->device.ok()) it->device = p.device;
      if (!it->vendor.ok()) it->vendor = p.vendor;
    }
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
  for (const auto& [name, up] : text.netdev_up) {
    auto it = std::find_if(f.netdevs.begin(), f.netdevs.end(),
                           [&, want = name](const Netdev& n) { return n.name == want; });
    if (it == f.netdevs.end()) {
      f.netdevs.emplace_back();
      f.netdevs.back().name = name;
      it = f.netdevs.end() - 1;
    }
    if (!it->operstate.ok()) it->operstate = known<std::string>(up ? "up" : "down", source);
  }
  if (kind == "show_gids") f.paste.gid_list_complete = text.complete;
  if ((kind == "ibv_devinfo" || kind == "ibstat" || kind == "ibstatus") && text.complete &&
      !text.devices.empty()) {
    f.paste.verbs_list_complete = true;
    for (const auto& d : text.devices) f.paste.verbs_listed.push_back(d.name);
  }
}

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
    x.evidence.push_back({piece.source, piece.line, ""});
    f.paste.findings.push_back(std::move(x));
  }
  for (auto& t : tables) {
    for (auto& x : t.findings) {
      for (auto& e : x.evidence) e.line += piece.line - 1;
      f.paste.findings.push_back(std::move(x));
    }
    if (t.refused.empty()) f.matrices.push_back(std::move(t.matrix));
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
    for (size_t i = 0; i < m.labels.size(); ++i)
      for (size_t j = 0; j < m.labels.size(); ++j) {
        auto a = std::find(main.labels.begin(), main.labels.end(), m.labels[i]),
             b = std::find(main.labels.begin(), main.labels.end(), m.labels[j]);
        if (a == main.labels.end() || b == main.labels.end() || m.cells[i][j].empty()) continue;
        const std::string& mine =
            main.cells[size_t(a - main.labels.begin())][size_t(b - main.labels.begin())];
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
    x.evidence.push_back({main.source, 0, first});
    f.paste.findings.push_back(std::move(x));
  }
}

// What predictable names tell: PCI addresses, and which netdev belongs to which RDMA device.
void join_by_names(Facts& f) {
  for (auto& d : f.rdma) {
    std::string address = address_of_name(d.name);
    if (d.address.empty() && !address.empty()) d.address = address;
    if (d.netdevs.empty() && !address.empty())
      for (const auto& n : f.netdevs)
        if (address_of_name(n.name) == address) d.netdevs.push_back(n.name);
    for (const auto& p : f.pci)
      if (p.address == d.address) {
        if (!d.numa_node.ok() && p.numa_node.ok()) d.numa_node = p.numa_node;
        if (!d.is_vf.ok() && p.is_vf.value_or(false)) d.is_vf = known(true, "lspci");
      }
  }
}

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
  std::stable_sort(f.rdma.begin(), f.rdma.end(),
                   [](const RdmaDevice& a, const RdmaDevice& b) { return natural_less(a.name, b.name); });
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
