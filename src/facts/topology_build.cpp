// Step one of the topology: GPUs, NICs and every distance, from sysfs paths where they are, from a printed
// matrix where they are not. Both present on a live host and different: said, sysfs wins.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "facts/topology_parts.h"

namespace ep {
namespace {

int find_label(const LinkMatrix& m, const std::string& label) {
  auto it = std::find(m.labels.begin(), m.labels.end(), label);
  return it == m.labels.end() ? -1 : int(it - m.labels.begin());
}

// Far more than any host has. Every step below costs a product of these; what a text names beyond is left
// out.
constexpr size_t kMaxGpus = 256, kMaxNics = 1024;

const PciDevice* pci_of(const Facts& f, const std::string& address) {
  if (address.empty()) return nullptr;
  for (const auto& p : f.pci)
    if (p.address == address) return &p;
  return nullptr;
}

std::string layer_of_netdev(std::string_view n) {
  if (n.empty()) return {};
  return starts_with(n, "ib") ? "InfiniBand" : "Ethernet";
}

// Names by udev's rules and by operators' habits tell the link layer.
std::string layer_of_name(std::string_view n) {
  if (starts_with(n, "roce") || starts_with(n, "mlx5_bond") || starts_with(n, "mlx5_eth") ||
      starts_with(n, "mlx5_an"))
    return "Ethernet";
  if (starts_with(n, "ibp") || starts_with(n, "ibP") || starts_with(n, "ibs") || starts_with(n, "ibo") ||
      starts_with(n, "mlx5_ib"))
    return "InfiniBand";
  return {};
}

const Netdev* netdev_of(const Facts& f, const std::string& name) {
  for (const auto& n : f.netdevs)
    if (n.name == name) return &n;
  return nullptr;
}

std::string port_state(const Facts& f, const RdmaDevice& d, const std::string& layer) {
  bool up = false, down = false;
  for (const auto& p : d.ports) {
    if (p.state.ok())
      (*p.state == "ACTIVE" ? up : down) = true;
    else if (p.phys_state.ok() && *p.phys_state != "LinkUp")
      down = true;
  }
  if (up) return "up";
  if (down) return "down";
  if (layer == "InfiniBand") return {};  // the netdev is IPoIB, not the port
  for (const auto& name : d.netdevs)
    if (const Netdev* n = netdev_of(f, name); n && n->operstate.ok()) {
      if (*n->operstate == "up")
        up = true;
      else if (*n->operstate == "down" || *n->operstate == "lowerlayerdown")
        down = true;
    }
  return up ? "up" : down ? "down" : "";
}

TopologyNic nic_of(const Facts& f, const RdmaDevice& d) {
  TopologyNic n;
  n.name = d.name;
  n.address = d.address;
  n.driver = d.driver.value_or("");
  n.hca_type = d.hca_type.value_or("");
  n.firmware = d.firmware.value_or("");
  n.netdev = d.netdevs.empty() ? "" : d.netdevs[0];
  for (const auto& p : d.ports) {
    if (n.link_layer.empty() && p.link_layer.ok()) n.link_layer = *p.link_layer;
    n.rate_gbps = std::max(n.rate_gbps, p.rate_gbps.value_or(0));
    n.mtu = std::max(n.mtu, p.active_mtu.value_or(0));
  }
  if (n.link_layer != "InfiniBand" && n.link_layer != "Ethernet") n.link_layer = layer_of_netdev(n.netdev);
  if (n.link_layer.empty()) n.link_layer = layer_of_name(n.name);
  n.state = port_state(f, d, n.link_layer);
  n.numa_node = d.numa_node.value_or(-1);
  n.is_vf = d.is_vf.value_or(false);
  n.is_bond = starts_with(n.name, "mlx5_bond");
  for (const auto& name : d.netdevs) {
    const Netdev* dev = netdev_of(f, name);
    bool bond_name = starts_with(name, "bond") && name.size() > 4;
    if (bond_name || (dev && dev->master.ok() && starts_with(*dev->master, "bond"))) n.is_bond = true;
    if (dev && n.mtu == 0) n.mtu = dev->mtu.value_or(0);
  }
  n.named = !contains(n.name, ":");
  return n;
}

void add_gpus(TopologyWork& w, const LinkMatrix* m) {
  const Facts& f = w.facts;
  std::set<int> indices;
  if (m)
    for (const auto& l : m->labels)
      if (starts_with(l, "GPU"))
        if (auto v = parse_int(l.substr(3)); v && *v >= 0 && *v < 1024) indices.insert(int(*v));
  bool from_matrix = !indices.empty();
  if (!from_matrix || f.host_kind != "paste")
    for (const auto& g : f.gpus) indices.insert(g.index);
  if (from_matrix && f.host_kind == "paste" && !f.gpus.empty() && f.gpus.size() != indices.size())
    w.say("piece_contradiction", Severity::warn,
          both("the link matrix shows {} GPUs, other pieces {}", "拓扑矩阵有 {} 块 GPU，其他内容有 {} 块",
               indices.size(), f.gpus.size()));
  bool too_many = indices.size() > kMaxGpus;
  if (too_many) indices.erase(std::next(indices.begin(), long(kMaxGpus)), indices.end());
  if (too_many)
    w.say("too_many_devices", Severity::warn,
          both("more than {} GPUs are named: no host has them, the rest is left out",
               "出现了超过 {} 块 GPU：没有这样的主机，其余略去", kMaxGpus));
  for (int i : indices) {
    TopologyGpu g;
    g.index = i;
    for (const auto& x : f.gpus)
      if (x.index == i) {
        g.address = x.address;
        g.name = x.name.value_or("");
        if (x.compute_capability.ok()) {
          g.sm = *x.compute_capability;
          g.sm_source = x.compute_capability.where;
        }
        g.numa_node = x.numa_node.value_or(-1);
      }
    if (m) {
      std::string label = "GPU" + std::to_string(i);
      if (auto it = m->cpu_affinity.find(label); it != m->cpu_affinity.end()) g.cpu_affinity = it->second;
      if (auto it = m->numa_affinity.find(label); it != m->numa_affinity.end() && g.numa_node < 0)
        if (auto v = parse_int(it->second)) g.numa_node = int(*v);
    }
    w.out.gpus.push_back(std::move(g));
  }
}

// Names for matrix labels: the legend; else, when a complete listing has as many devices as the matrix has
// NIC columns, natural order, said as a guess; else the label itself.
std::vector<std::pair<std::string, std::string>> names_of_labels(TopologyWork& w, const LinkMatrix& m,
                                                                 bool& guessed) {
  std::vector<std::string> labels;
  for (const auto& l : m.labels)
    if (!starts_with(l, "GPU")) labels.push_back(l);
  std::vector<std::pair<std::string, std::string>> out;
  std::vector<std::string> listed;
  for (const auto& d : w.facts.rdma) listed.push_back(d.name);
  bool none_named =
      std::none_of(labels.begin(), labels.end(), [&](const auto& l) { return m.legend.count(l) > 0; });
  guessed = none_named && !labels.empty() && listed.size() == labels.size() && labels.size() > 1;
  for (size_t i = 0; i < labels.size(); ++i) {
    auto it = m.legend.find(labels[i]);
    out.emplace_back(labels[i], it != m.legend.end() ? it->second : guessed ? listed[i] : labels[i]);
  }
  return out;
}

void check_against_matrix(TopologyWork& w, const LinkMatrix& m, const std::vector<int>& gpu_row,
                          const std::vector<int>& nic_col) {
  int differ = 0;
  std::string first;
  for (size_t g = 0; g < gpu_row.size(); ++g)
    for (size_t n = 0; n < nic_col.size(); ++n) {
      if (gpu_row[g] < 0 || nic_col[n] < 0) continue;
      LinkClass printed = link_class(m.cells[size_t(gpu_row[g])][size_t(nic_col[n])]),
                mine = w.out.gpu_nic[g][n];
      if (printed == LinkClass::unknown || mine == LinkClass::unknown || is_near(printed) == is_near(mine))
        continue;
      if (!differ++)
        first = fmt::format("GPU{} {}: {} by sysfs, {} by nvidia-smi", w.out.gpus[g].index,
                            w.out.nics[n].name, to_string(mine), to_string(printed));
    }
  if (differ) {
    auto& f = w.say("distance_contradiction", Severity::warn,
                    both("sysfs and nvidia-smi disagree on {} distances; sysfs is used",
                         "sysfs 与 nvidia-smi 在 {} 处距离不一致；采用 sysfs", differ));
    f.evidence.push_back({"nvidia-smi topo -m", 0, first});
  }
}

}  // namespace

LinkClass pci_distance(const PciDevice& a, const PciDevice& b) {
  if (a.address == b.address && !a.address.empty()) return LinkClass::pix;
  auto chain = [](const PciDevice& d) {
    auto p = d.path;
    if (!p.empty() && p.back() == d.address) p.pop_back();
    // Hyper-V and Arm firmware hang host bridges below nodes of their own: the bridge is the root.
    auto root = std::find_if(p.begin(), p.end(), [](const std::string& s) {
      return starts_with(s, "pci") && s.size() > 6 && contains(s, ":");
    });
    if (root != p.end()) p.erase(p.begin(), root);
    return p;
  };
  auto pa = chain(a), pb = chain(b);
  if (pa.empty() || pb.empty()) return LinkClass::unknown;
  size_t common = 0;
  while (common < pa.size() && common < pb.size() && pa[common] == pb[common]) ++common;
  if (common == 0) {
    int na = a.numa_node.value_or(-1), nb = b.numa_node.value_or(-1);
    return na >= 0 && na == nb ? LinkClass::node : LinkClass::sys;
  }
  if (common == 1) return LinkClass::phb;
  return pa.size() - common <= 1 && pb.size() - common <= 1 ? LinkClass::pix : LinkClass::pxb;
}

void build_devices(TopologyWork& w) {
  const Facts& f = w.facts;
  Topology& t = w.out;
  const LinkMatrix* m = f.matrices.empty() ? nullptr : &f.matrices[0];
  add_gpus(w, m);
  std::vector<std::pair<std::string, std::string>> label_names;
  bool guessed = false;
  if (m) label_names = names_of_labels(w, *m, guessed);
  for (const auto& d : f.rdma)
    if (t.nics.size() < kMaxNics) t.nics.push_back(nic_of(f, d));
  if (t.nics.size() < f.rdma.size())
    w.say("too_many_devices", Severity::warn,
          both("more than {} RDMA devices are named: no host has them, the rest is left out",
               "出现了超过 {} 个 RDMA 设备：没有这样的主机，其余略去", kMaxNics));
  std::vector<int> nic_col(t.nics.size(), -1);
  for (const auto& [label, name] : label_names) {
    auto it = std::find_if(t.nics.begin(), t.nics.end(),
                           [&, n = name](const TopologyNic& x) { return x.name == n; });
    if (it == t.nics.end()) {
      if (t.nics.size() >= kMaxNics) continue;
      TopologyNic n;
      n.name = name;
      n.named = name != label;
      n.link_layer = n.named ? layer_of_name(name) : "";
      n.is_bond = starts_with(name, "mlx5_bond");
      t.nics.push_back(n);
      nic_col.push_back(find_label(*m, label));
    } else {
      nic_col[size_t(it - t.nics.begin())] = find_label(*m, label);
      if (guessed) it->named = false;
    }
  }
  // Without a legend, devices that other texts name cannot be matched with columns: they stay apart.
  w.joined.assign(t.nics.size(), true);
  if (m && !label_names.empty())
    for (size_t i = 0; i < t.nics.size(); ++i) w.joined[i] = nic_col[i] >= 0 || f.host_kind != "paste";
  std::vector<int> gpu_row;
  for (auto& g : t.gpus) gpu_row.push_back(m ? find_label(*m, "GPU" + std::to_string(g.index)) : -1);

  const bool paths_first = f.host_kind != "paste";
  auto printed = [&](int i, int j) {
    return m && i >= 0 && j >= 0 ? link_class(m->cells[size_t(i)][size_t(j)]) : LinkClass::unknown;
  };
  std::vector<const PciDevice*> gpu_pci, nic_pci;
  for (const auto& g : t.gpus) gpu_pci.push_back(pci_of(f, g.address));
  for (const auto& n : t.nics) nic_pci.push_back(pci_of(f, n.address));
  auto measured = [](const PciDevice* a, const PciDevice* b) {
    return a && b ? pci_distance(*a, *b) : LinkClass::unknown;
  };
  auto pick = [&](LinkClass by_path, LinkClass by_print) {
    LinkClass first = paths_first ? by_path : by_print, second = paths_first ? by_print : by_path;
    return first != LinkClass::unknown ? first : second;
  };
  t.gpu_nic.assign(t.gpus.size(), std::vector<LinkClass>(t.nics.size(), LinkClass::unknown));
  t.nic_nic.assign(t.nics.size(), std::vector<LinkClass>(t.nics.size(), LinkClass::unknown));
  t.gpu_gpu.assign(t.gpus.size(), std::vector<std::string>(t.gpus.size()));
  for (size_t g = 0; g < t.gpus.size(); ++g) {
    bool any = false;
    for (size_t n = 0; n < t.nics.size(); ++n) {
      LinkClass c = pick(measured(gpu_pci[g], nic_pci[n]), printed(gpu_row[g], nic_col[n]));
      t.gpu_nic[g][n] = c;
      any |= c != LinkClass::unknown;
    }
    w.has_distances |= any;
    if (m && !label_names.empty() && !any) t.gpus[g].row_known = false;
    for (size_t h = 0; h < t.gpus.size(); ++h)
      if (m && gpu_row[g] >= 0 && gpu_row[h] >= 0)
        t.gpu_gpu[g][h] = m->cells[size_t(gpu_row[g])][size_t(gpu_row[h])];
  }
  for (size_t g = 0; g < t.gpus.size(); ++g) w.rows_missing |= w.has_distances && !t.gpus[g].row_known;
  for (size_t a = 0; a < t.nics.size(); ++a)
    for (size_t b = 0; b < t.nics.size(); ++b)
      if (a != b) {
        t.nic_nic[a][b] = pick(measured(nic_pci[a], nic_pci[b]), printed(nic_col[a], nic_col[b]));
        w.nic_cells |= t.nic_nic[a][b] != LinkClass::unknown;
      }
  t.nvlink_shown = m && !m->pcie_only && t.gpus.size() > 1;
  if (paths_first && m) check_against_matrix(w, *m, gpu_row, nic_col);
  if (m && !label_names.empty() && !m->old_format &&
      std::any_of(label_names.begin(), label_names.end(), [](const auto& p) { return p.first == p.second; }))
    w.say(
        "no_legend", Severity::warn,
        {"the NIC legend is missing: NICn labels are no device names, and no environment string can be made",
         "缺少网卡图例：NICn 不是设备名，无法生成环境变量"});
  else if (guessed)
    w.say("no_legend", Severity::info,
          {"the NIC legend is missing; names were joined to labels by their order, which is only usual",
           "缺少网卡图例；按惯例顺序把设备名与标签对应，仅为惯例"});
}

}  // namespace ep
