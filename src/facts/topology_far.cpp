// Roles where nearness does not decide: no distances at all, or no NIC on a switch with a GPU; and what a far
// NIC is.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "facts/topology_roles.h"

namespace ep {

// Components of NICs that are PIX to each other: ports of a card, functions of a slot, or NICs of one switch.
void group_nics(TopologyWork& w) {
  const size_t n = w.out.nics.size();
  w.group.assign(n, -1);
  int next = 0;
  for (size_t i = 0; i < n; ++i) {
    if (w.group[i] >= 0) continue;
    std::vector<size_t> todo{i};
    w.group[i] = next;
    while (!todo.empty()) {
      size_t a = todo.back();
      todo.pop_back();
      for (size_t b = 0; b < n; ++b)
        if (w.group[b] < 0 && w.out.nic_nic[a][b] == LinkClass::pix) {
          w.group[b] = next;
          todo.push_back(b);
        }
    }
    ++next;
  }
}

Indices members(const TopologyWork& w, int group, const Indices& among) {
  Indices out;
  for (size_t i : among)
    if (w.group[i] == group) out.push_back(i);
  return out;
}

size_t gpus_near(const TopologyWork& w, size_t nic) {
  size_t n = 0;
  for (size_t g = 0; g < w.out.gpus.size(); ++g) n += is_near(w.out.gpu_nic[g][nic]);
  return n;
}

Indices candidates(const TopologyWork& w) {
  Indices out;
  for (size_t i = 0; i < w.out.nics.size(); ++i)
    if (w.out.nics[i].role.empty() && w.joined[i]) out.push_back(i);
  return out;
}

LinkClass best_class(const Topology& t, size_t nic) {
  LinkClass best = LinkClass::unknown;
  for (const auto& row : t.gpu_nic)
    if (row[nic] != LinkClass::unknown && (best == LinkClass::unknown || row[nic] < best)) best = row[nic];
  return best;
}

LinkClass best_class_of_gpu(const Topology& t, size_t gpu, const std::vector<size_t>& nics) {
  LinkClass best = LinkClass::unknown;
  for (size_t i : nics)
    if (LinkClass c = t.gpu_nic[gpu][i]; c != LinkClass::unknown && (best == LinkClass::unknown || c < best))
      best = c;
  return best;
}

int device_number(const std::string& name) {
  size_t n = name.size();
  while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9') --n;
  if (n == name.size() || n == 0 || (!starts_with(name, "mlx5_") && !starts_with(name, "NIC"))) return -1;
  return int(parse_int(std::string_view(name).substr(n)).value_or(-1));
}

std::string far_role(const TopologyWork& w, size_t i, BothWords& reason) {
  const TopologyNic& n = w.out.nics[i];
  LinkClass c = best_class(w.out, i);
  auto slot = members(w, w.group[i], candidates(w));
  const BothWords where = c == LinkClass::unknown
                              ? BothWords{"its distance is not shown", "未显示其距离"}
                              : both("{} to the nearest GPU", "到最近的 GPU 为 {}", to_string(c));
  bool blackwell = std::any_of(w.out.gpus.begin(), w.out.gpus.end(),
                               [](const TopologyGpu& g) { return g.sm >= 100 && g.sm < 120; });
  if (slot.size() >= 3 && !n.is_bond && blackwell) {
    reason = {
        fmt::format("one of {} functions that are PIX to each other, {}: ConnectX-7 bridges that manage the "
                    "NVSwitches",
                    slot.size(), where.en),
        fmt::format("{} 个彼此为 PIX 的功能之一，{}：管理 NVSwitch 的 ConnectX-7 桥", slot.size(), where.zh)};
    return "nvswitch-bridge";
  }
  if (n.is_bond) {
    reason = {"a bond, " + where.en + ", while other NICs share a switch with a GPU",
              "绑定口，" + where.zh + "，而其他网卡与 GPU 同交换机"};
    return "management";
  }
  if (slot.size() >= 3 && w.out.gpus.size() >= 8) {
    // Which of the two only the devices' vital product data tell; a board of Blackwell GPUs has the bridges.
    reason = {
        fmt::format("one of {} functions that are PIX to each other, {}: ports of a storage card, or the "
                    "bridges that manage NVSwitches (the PCI VPD tells: SW_MNG)",
                    slot.size(), where.en),
        fmt::format("{} 个彼此为 PIX 的功能之一，{}：存储卡端口，或管理 NVSwitch 的桥（由 PCI VPD 的 "
                    "SW_MNG 判别）",
                    slot.size(), where.zh)};
    return "storage";
  }
  if (slot.size() >= 2) {
    reason = {fmt::format("one of {} ports of a card, {}", slot.size(), where.en),
              fmt::format("一张卡的 {} 个端口之一，{}", slot.size(), where.zh)};
    return "storage";
  }
  reason = {where.en + ", while other NICs share a switch with a GPU",
            where.zh + "，而其他网卡与 GPU 同交换机"};
  return "management";
}

namespace {

// BlueField-2 and -3 beside ConnectX ports: the host's front end, or storage.
bool is_bluefield(const TopologyNic& n) {
  return n.hca_type == "MT41686" || n.hca_type == "MT41692" || n.hca_type == "MT41682";
}

// The Ethernet ports of an InfiniBand host carry the host's network: as many InfiniBand ports, faster ones,
// or BlueField beside them. Eight RoCE rails beside one InfiniBand port for storage are no such host.
void exclude_ethernet_of_ib_host(TopologyWork& w, const Indices& cand) {
  size_t ib = 0, eth = 0, any_ib = 0, bluefield = 0;
  double ib_rate = 0, eth_rate = 0;
  for (const auto& n : w.out.nics)
    any_ib += n.link_layer == "InfiniBand" && (n.role.empty() || n.role == "down");
  for (size_t i : cand) {
    const TopologyNic& n = w.out.nics[i];
    if (n.link_layer == "InfiniBand") {
      ++ib;
      ib_rate = std::max(ib_rate, n.rate_gbps);
    } else if (n.link_layer == "Ethernet") {
      ++eth;
      bluefield += is_bluefield(n);
      eth_rate = std::max(eth_rate, n.rate_gbps);
    }
  }
  const bool slower = eth_rate > 0 && ib_rate > eth_rate;
  const bool host = ib > 0 && ((ib >= eth && (ib >= 2 || ib_rate >= eth_rate)) ||
                               (slower && (any_ib >= eth || 2 * ib >= eth)));
  for (size_t i : cand) {
    TopologyNic& n = w.out.nics[i];
    if (n.link_layer != "Ethernet" || !n.role.empty()) continue;
    if (host)
      exclude(n, "management", {"an Ethernet port on an InfiniBand host", "InfiniBand 主机上的以太网口"});
    else if (any_ib >= bluefield && is_bluefield(n))
      exclude(n, "management",
              {"a BlueField Ethernet port on a host that has InfiniBand ports",
               "有 InfiniBand 端口的主机上的 BlueField 以太网口"});
  }
}

}  // namespace

void choose_without_distances(TopologyWork& w) {
  Indices cand = candidates(w);
  const size_t bonds =
      size_t(std::count_if(cand.begin(), cand.end(), [&](size_t i) { return w.out.nics[i].is_bond; }));
  for (size_t i : cand)
    if (w.out.nics[i].is_bond && cand.size() > bonds)
      exclude(w.out.nics[i], "bond",
              {"its netdev is a bond, the others' are not: it carries the host's network",
               "其网络设备是绑定口而其他不是：它承载主机网络"});
  exclude_ethernet_of_ib_host(w, cand);
  // The address family of the rails: one device outside of it carries the service network.
  std::map<std::string, Indices> nets;
  for (size_t i : candidates(w)) {
    const RdmaDevice* d = device_of(w.facts, w.out.nics[i].name);
    if (!d) continue;
    for (const auto& p : d->ports)
      for (const auto& e : p.gids)
        if (gid_kind(e.gid) == GidKind::ipv4) {
          auto& list = nets[e.gid.substr(30, 4)];  // the upper half of the IPv4 address
          if (list.empty() || list.back() != i) list.push_back(i);
        }
  }
  if (nets.size() == 2) {
    auto a = nets.begin(), b = std::next(a);
    auto& odd = a->second.size() < b->second.size() ? *a : *b;
    auto& many = a->second.size() < b->second.size() ? *b : *a;
    if (odd.second.size() == 1 && many.second.size() >= 2 && odd.second[0] != many.second[0]) {
      exclude(w.out.nics[odd.second[0]], "management",
              {"its address is in another network than the rails'", "其地址与各 rail 不在同一网络"});
      w.say("mixed_roles", Severity::warn,
            both("{} has a valid GID too: a valid GID does not make a compute NIC",
                 "{} 也有有效 GID：有 GID 不等于是计算网卡", w.out.nics[odd.second[0]].name));
    }
  }
  for (size_t i : candidates(w)) {
    w.out.nics[i].usable = true;
    w.out.nics[i].role = "compute";
    w.out.nics[i].reason = {"nothing shown here speaks against it; its distance to the GPUs is not known",
                            "此处没有排除它的理由；与 GPU 的距离未知"};
  }
}

// No NIC shares a switch with a GPU.
void choose_far(TopologyWork& w, Indices cand) {
  Topology& t = w.out;
  bool all_sys = true, all_same = true;
  LinkClass first = LinkClass::unknown;
  for (size_t g = 0; g < t.gpus.size(); ++g)
    for (size_t i : cand) {
      LinkClass c = t.gpu_nic[g][i];
      if (c == LinkClass::unknown) continue;
      if (first == LinkClass::unknown) first = c;
      all_same &= c == first;
      all_sys &= c == LinkClass::sys;
    }
  if (all_same && cand.size() > 1 && t.gpus.size() > 1 && all_sys) {
    Indices singles;
    for (size_t i : cand)
      if (members(w, w.group[i], cand).size() == 1 && !t.nics[i].is_bond) singles.push_back(i);
    if (!singles.empty() && singles.size() < cand.size()) {
      for (size_t i : cand)
        if (std::find(singles.begin(), singles.end(), i) == singles.end())
          exclude(t.nics[i], "storage",
                  {"function of a dual-function card, the compute NICs here have one function each",
                   "双功能卡的一个功能，而这里的计算网卡都只有一个功能"});
      w.say("dual_function_nics", Severity::info,
            both("{} functions are PIX pairs: BlueField or dual-port cards",
                 "{} 个功能两两为 PIX：BlueField 或双口卡", cand.size() - singles.size()));
      cand = singles;
    }
    w.flat = true;
    w.say("topo_flat_sys", Severity::warn,
          {"every GPU-NIC distance is SYS: the matrix carries no information; use PCI domain and NUMA node",
           "所有 GPU 与网卡的距离都是 SYS：矩阵不含信息；请看 PCI 域与 NUMA 节点"});
  } else {
    Indices best;
    bool tie = false;
    std::vector<LinkClass> nearest;
    for (size_t g = 0; g < t.gpus.size(); ++g) nearest.push_back(best_class_of_gpu(t, g, cand));
    for (size_t i : cand) {
      bool is_best = false;
      for (size_t g = 0; g < t.gpus.size(); ++g)
        is_best |= t.gpu_nic[g][i] != LinkClass::unknown && t.gpu_nic[g][i] == nearest[g];
      if (is_best) best.push_back(i);
    }
    for (size_t i : cand)
      if (std::find(best.begin(), best.end(), i) == best.end()) {
        BothWords reason;
        std::string role = far_role(w, i, reason);
        exclude(t.nics[i], role.c_str(), {"another NIC is nearer to every GPU", "对每块 GPU 都有更近的网卡"});
      }
    cand = best;
    for (size_t g = 0; g < t.gpus.size(); ++g) {
      LinkClass c = best_class_of_gpu(t, g, cand);
      tie |= std::count_if(cand.begin(), cand.end(),
                           [&](size_t i) { return t.gpu_nic[g][i] == c && c != LinkClass::unknown; }) > 1;
    }
    if (tie) {
      w.flat = true;
      w.say(
          first == LinkClass::phb || !all_same ? "topo_flat_phb" : "topo_flat_sys", Severity::warn,
          {"the NICs of a socket are equally far from its GPUs: only the socket is known, the pairs are not",
           "同一插槽内各网卡与 GPU 等距：只知道插槽，不知道配对"});
    }
  }
  for (size_t i : cand) {
    t.nics[i].usable = true;
    t.nics[i].role = "compute";
    t.nics[i].reason = both("{} to the nearest GPU; none is nearer", "到最近的 GPU 为 {}；没有更近的网卡",
                            to_string(best_class(t, i)));
  }
  if (!cand.empty() && !(w.flat && all_sys))
    w.say("no_near_nic", w.flat ? Severity::info : Severity::warn,
          {"no NIC shares a PCIe switch with a GPU: traffic crosses the CPU",
           "没有网卡与 GPU 在同一 PCIe 交换机下：流量经过 CPU"});
}

}  // namespace ep
