// Last step: what a PASS rests on and the input does not show. Nothing here is a finding about the host.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "facts/topology_parts.h"

namespace ep {
namespace {

constexpr const char* kMatrix = "nvidia-smi topo -m";
constexpr const char* kPorts = "ibstat";

// GPUs that the text shows; those made up from netdev names are not.
bool gpus_shown(const Facts& f) {
  if (!f.gpus.empty()) return true;
  return !f.matrices.empty() && std::any_of(f.matrices[0].labels.begin(), f.matrices[0].labels.end(),
                                            [](const std::string& l) { return starts_with(l, "GPU"); });
}

size_t on_pci(const Facts& f, int vendor, int base_class) {
  return size_t(std::count_if(f.pci.begin(), f.pci.end(), [&](const PciDevice& p) {
    return p.vendor.value_or(0) == vendor && (p.device_class.value_or(0) >> 16) == base_class;
  }));
}

// "mlx5_0, mlx5_1 and 6 more".
BothWords some(const std::vector<std::string>& names) {
  if (names.size() <= 4) return {join(names, ", "), join(names, "、")};
  const std::vector<std::string> first(names.begin(), names.begin() + 3);
  return {fmt::format("{} and {} more", join(first, ", "), names.size() - 3),
          fmt::format("{} 等 {} 个", join(first, "、"), names.size())};
}

void add(Topology& t, const char* code, BothWords what, const char* command) {
  t.missing.push_back({code, std::move(what), command});
}

void miss_devices(TopologyWork& w, bool gpus) {
  Topology& t = w.out;
  if (!gpus && !w.said("no_gpu")) {
    if (size_t n = on_pci(w.facts, 0x10de, 0x03))
      add(t, "gpus_not_shown",
          both("the GPUs as nvidia-smi numbers them ({} stand on PCI)",
               "nvidia-smi 编号的 GPU（PCI 上有 {} 块）", n),
          kMatrix);
    else
      add(t, "gpus_not_shown", {"the GPUs", "GPU"}, kMatrix);
  }
  if (t.nics.empty() && !w.said("no_rdma")) {
    if (size_t n = on_pci(w.facts, 0x15b3, 0x02))
      add(t, "nics_not_shown",
          both("names and ports of the RDMA NICs ({} stand on PCI)",
               "RDMA 网卡的名称与端口（PCI 上有 {} 张）", n),
          kPorts);
    else
      add(t, "nics_not_shown", {"the RDMA NICs", "RDMA 网卡"}, kPorts);
  }
}

void miss_relation(TopologyWork& w, bool gpus) {
  Topology& t = w.out;
  const size_t usable = t.usable().size();
  const bool open = std::any_of(t.nics.begin(), t.nics.end(), [](const TopologyNic& n) {
    return n.usable || n.role == "unknown" || n.role == "uncertain";
  });
  if (gpus && open && t.mapping.pairs.empty())
    add(t, "relation_not_shown", {"which NIC is near which GPU", "哪张网卡靠近哪块 GPU"}, kMatrix);
  if (usable > 0 && (w.facts.paste.labels_guessed || w.said("no_legend")))
    add(t, "names_not_shown", {"the NIC legend below the link matrix", "矩阵下方的网卡图例"}, kMatrix);
  std::vector<std::string> rows;
  for (const auto& g : t.gpus)
    if (w.has_distances && !g.row_known) rows.push_back(fmt::format("GPU{}", g.index));
  if (!rows.empty()) {
    BothWords names = some(rows);
    add(t, "rows_not_shown", {"the matrix rows of " + names.en, "矩阵中 " + names.zh + " 的行"}, kMatrix);
  }
}

void miss_states(TopologyWork& w) {
  Topology& t = w.out;
  std::vector<std::string> names;
  for (const auto& n : t.nics)
    if (n.usable && n.state.empty()) names.push_back(n.name);
  if (names.empty()) return;
  BothWords list = some(names);
  add(t, "states_not_shown", {"the port states of " + list.en, list.zh + " 的端口状态"}, kPorts);
}

}  // namespace

void judge_missing(TopologyWork& w) {
  const bool gpus = gpus_shown(w.facts);
  miss_devices(w, gpus);
  miss_relation(w, gpus);
  miss_states(w);
}

bool shows_topology(const Facts& f) {
  if (f.host_kind != "paste") return true;
  const bool options = std::any_of(f.driver.options.begin(), f.driver.options.end(),
                                   [](const ModuleOption& o) { return o.live.ok(); });
  return !f.gpus.empty() || !f.rdma.empty() || !f.matrices.empty() || !f.p2p_bad_pairs.empty() ||
         f.p2p_known.ok() || !f.paste.findings.empty() || options || on_pci(f, 0x10de, 0x03) > 0 ||
         on_pci(f, 0x15b3, 0x02) > 0;
}

}  // namespace ep
