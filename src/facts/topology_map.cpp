// Step three: GPU to NIC. Exact assignment among the usable NICs, under the constraint that this kind of
// machine has: one NIC each, two and two per switch, ports of cards, several GPUs per NIC, or only the GPUs
// whose rows are shown.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "facts/topology_assign.h"
#include "facts/topology_parts.h"

namespace ep {
namespace {

using Indices = std::vector<size_t>;

struct Part {
  Indices gpus, nics;  // of the topology
  AssignProblem problem;
};

// Cards: ports of one PCI slot or one GUID; PIX components where the GPU is farther than PIX; where NIC rows
// are missing and there are more NICs than GPUs, neighbours in number are taken for ports of one card.
void set_cards(TopologyWork& w, Part& p) {
  Topology& t = w.out;
  std::map<std::string, int> slots;
  int next = 0;
  std::vector<int> card(t.nics.size(), -1);
  auto slot_key = [&](size_t i) {
    std::string a = t.nics[i].address;
    return a.size() > 2 && a[a.size() - 2] == '.' ? a.substr(0, a.size() - 2) : a;
  };
  for (size_t i : p.nics) {
    if (!t.nics[i].address.empty()) {
      auto [it, fresh] = slots.try_emplace(slot_key(i), next);
      next += fresh;
      card[i] = it->second;
    }
  }
  std::map<int, int> groups;
  for (size_t i : p.nics) {
    if (card[i] >= 0) continue;
    bool beyond_pix = best_class(t, i) != LinkClass::pix;
    bool group_known = w.nic_cells && w.group[i] >= 0;
    if (group_known && beyond_pix) {
      auto [it, fresh] = groups.try_emplace(w.group[i], next);
      next += fresh;
      card[i] = it->second;
    } else {
      card[i] = next++;
    }
  }
  if (!w.nic_cells && p.nics.size() > p.gpus.size()) {
    // NICs that the same GPUs are near to, in as many runs as there are such GPUs.
    std::map<std::vector<size_t>, Indices> sets;
    for (size_t i : p.nics) {
      std::vector<size_t> near;
      for (size_t g : p.gpus)
        if (is_near(t.gpu_nic[g][i])) near.push_back(g);
      sets[near].push_back(i);
    }
    for (auto& [gpus, list] : sets)
      if (!gpus.empty() && list.size() > gpus.size() && list.size() % gpus.size() == 0) {
        size_t run = list.size() / gpus.size();
        for (size_t k = 0; k < list.size(); ++k) card[list[k]] = next + int(k / run);
        next += int(gpus.size());
      }
  }
  p.problem.card.clear();
  for (size_t i : p.nics) {
    p.problem.card.push_back(card[i]);
    t.nics[i].card = card[i];
  }
}

Part part_of(TopologyWork& w, Indices gpus, const Indices& nics, bool near_only) {
  Part p;
  p.gpus = std::move(gpus);
  p.nics = nics;
  for (size_t g : p.gpus) {
    std::vector<int> row;
    for (size_t i : p.nics) {
      LinkClass c = w.out.gpu_nic[g][i];
      bool allowed = c != LinkClass::unknown && (!near_only || is_near(c));
      row.push_back(allowed ? distance_weight(c) : -1);
    }
    p.problem.cost.push_back(std::move(row));
  }
  set_cards(w, p);
  return p;
}

void take(TopologyWork& w, const Part& p, const std::vector<int>& choice) {
  for (size_t k = 0; k < p.gpus.size(); ++k) {
    if (choice[k] < 0) continue;
    size_t g = p.gpus[k], n = p.nics[size_t(choice[k])];
    w.out.mapping.pairs[w.out.gpus[g].index] = w.out.nics[n].name;
    w.out.mapping.relation[w.out.gpus[g].index] = w.out.gpu_nic[g][n];
  }
}

void name_constraint(TopologyWork& w, const Part& p, int sharing) {
  Mapping& m = w.out.mapping;
  if (sharing > 1) {
    m.constraint = fmt::format("max_gpus_per_nic:{}", sharing);
    w.say("nic_shared", Severity::warn,
          both("{} NICs for {} GPUs: up to {} GPUs share one, each has a part of its bandwidth",
               "{} 张网卡对 {} 块 GPU：至多 {} 块共用一张，各得部分带宽", p.nics.size(), p.gpus.size(),
               sharing));
    return;
  }
  if (p.gpus.size() < 2) return;
  if (p.nics.size() > p.gpus.size())
    w.say("nics_to_spare", Severity::info,
          both("{} NICs are fit for {} GPUs, one serves each; nothing shown tells whether the others are for "
               "storage",
               "{} 张网卡可用于 {} 块 GPU，每块用一张；此处无法判断其余是否用于存储", p.nics.size(),
               p.gpus.size()));
  std::set<int> cards(p.problem.card.begin(), p.problem.card.end());
  bool dual = cards.size() < p.nics.size();
  m.constraint = dual && cards.size() >= p.gpus.size() ? "distinct_card" : "distinct";
  if (dual && p.nics.size() > p.gpus.size())
    w.say("dual_port", Severity::info,
          both("{} ports on {} cards; one port for each GPU leaves the others idle",
               "{} 个端口分布在 {} 张卡上；每块 GPU 只用一个端口时其余空闲", p.nics.size(), cards.size()));
}

// Two GPUs tie on the same NICs: a library that looks at one process gives both the first.
void note_ties(TopologyWork& w, const Part& p) {
  std::set<Indices> seen;
  for (size_t g : p.gpus) {
    Indices near;
    for (size_t n : p.nics)
      if (is_near(w.out.gpu_nic[g][n])) near.push_back(n);
    if (near.size() < 2 || seen.insert(near).second) continue;
    w.say("tie_pair_shared_switch", Severity::warn,
          {"two GPUs tie on the same NICs: a choice by nearness in each process gives both GPUs one NIC and "
           "leaves the other idle",
           "两块 GPU 与同样的网卡等距：各进程按最近选择会都取同一张，另一张空闲"});
    return;
  }
}

// gpu3rdma0, gpu3_eth: operators and clouds name netdevs after GPUs.
bool map_by_netdev(TopologyWork& w) {
  std::map<int, std::string> pairs;
  std::set<std::string> used;
  for (const auto& n : w.out.nics) {
    if (!n.usable || !starts_with(n.netdev, "gpu")) continue;
    std::string_view rest = std::string_view(n.netdev).substr(3);
    size_t d = 0;
    while (d < rest.size() && rest[d] >= '0' && rest[d] <= '9' && d < 3) ++d;
    auto v = parse_int(rest.substr(0, d));
    if (!v || !pairs.emplace(int(*v), n.name).second) return false;
  }
  if (pairs.empty()) return false;
  Mapping& m = w.out.mapping;
  m.pairs = std::move(pairs);
  m.confidence = Confidence::derived;
  m.constraint = m.pairs.size() > 1 ? "distinct" : "";
  m.reason = {"the netdevs are named after the GPUs; check against PCI",
              "网络设备以 GPU 命名；请与 PCI 核对"};
  for (const auto& [g, name] : m.pairs) m.relation[g] = LinkClass::unknown;
  if (w.out.gpus.empty())
    for (const auto& [g, name] : m.pairs) {
      TopologyGpu gpu;
      gpu.index = g;
      w.out.gpus.push_back(gpu);
      w.out.gpu_nic.emplace_back(w.out.nics.size(), LinkClass::unknown);
      w.out.gpu_gpu.emplace_back();
    }
  for (auto& row : w.out.gpu_gpu) row.resize(w.out.gpus.size());
  return true;
}

void map_by_order(TopologyWork& w, const Indices& gpus, const Indices& nics) {
  Mapping& m = w.out.mapping;
  m.confidence = Confidence::convention;
  m.reason = {
      "the distances tell no pair; this is the usual order and must be checked by PCI domain, NUMA node or a "
      "measurement",
      "距离不能说明配对；这只是惯例顺序，须以 PCI 域、NUMA 节点或实测核对"};
  for (size_t k = 0; k < gpus.size(); ++k) {
    size_t n = nics.size() >= gpus.size() ? k * (nics.size() / gpus.size()) : k * nics.size() / gpus.size();
    w.out.mapping.pairs[w.out.gpus[gpus[k]].index] = w.out.nics[nics[n]].name;
    m.relation[w.out.gpus[gpus[k]].index] = w.out.gpu_nic[gpus[k]][nics[n]];
  }
  m.constraint = nics.size() >= gpus.size()
                     ? "distinct"
                     : fmt::format("max_gpus_per_nic:{}", (gpus.size() + nics.size() - 1) / nics.size());
}

// Far NICs: per GPU the nearest class decides; a tie among several is convention.
void map_far(TopologyWork& w, const Indices& gpus, const Indices& nics) {
  Part p = part_of(w, gpus, nics, false);
  for (size_t k = 0; k < gpus.size(); ++k) {
    LinkClass best = best_class_of_gpu(w.out, gpus[k], nics);
    for (size_t n = 0; n < nics.size(); ++n)
      if (w.out.gpu_nic[gpus[k]][nics[n]] != best) p.problem.cost[k][n] = -1;
  }
  int sharing = least_sharing(p.problem);
  if (sharing == 0) return;
  p.problem.max_gpus_per_nic = sharing;
  take(w, p, assign_nics(p.problem));
  w.out.mapping.confidence = w.flat || w.rows_missing ? Confidence::convention : Confidence::derived;
  w.out.mapping.reason =
      w.flat ? BothWords{"inside a socket all NICs are equally far: the socket is derived, the pairs are usual order",
                         "同一插槽内各网卡等距：插槽由推导得出，配对只是惯例顺序"}
             : BothWords{"the nearest NIC of each GPU, across the CPU", "每块 GPU 最近的网卡，经过 CPU"};
  name_constraint(w, p, sharing);
}

void report_missing(TopologyWork& w, const Indices& without, size_t with) {
  std::string names, why;
  for (size_t g : without) {
    const TopologyGpu& gpu = w.out.gpus[g];
    names += fmt::format("{}GPU{}", names.empty() ? "" : ", ", gpu.index);
    BothWords reason{"no NIC shares a switch with it", "没有网卡与其在同一交换机下"};
    for (size_t i = 0; i < w.out.nics.size(); ++i)
      if (is_near(w.out.gpu_nic[g][i]) && !w.out.nics[i].usable)
        reason = {fmt::format("its NIC {} is out: {}", w.out.nics[i].name, w.out.nics[i].reason.en),
                  fmt::format("其网卡 {} 被排除：{}", w.out.nics[i].name, w.out.nics[i].reason.zh)};
    w.out.mapping.unmapped.emplace_back(gpu.index, reason);
  }
  auto& f = w.say(
      "missing_nic", Severity::fail,
      both("{0} {1} no usable NIC nearby while {2} other GPUs have one: NICs are absent, dead or hidden",
           "{0} 附近没有可用网卡，而另外 {2} 块 GPU 有：网卡缺失、失效或不可见", names,
           without.size() == 1 ? "has" : "have", with));
  f.next = "epready topology --from a report of the bare host, and lspci | grep -i mellanox";
  for (const auto& [g, reason] : w.out.mapping.unmapped)
    f.evidence.push_back({fmt::format("GPU{}", g), 0, reason.en});
}

// More GPUs than NICs in a regular pattern: every NIC serves equally many, none across the socket.
bool shares_regularly(const Part& p, size_t gpus, size_t nics, int& sharing) {
  if (nics == 0 || gpus % nics != 0 || gpus / nics < 2) return false;
  Part q = p;
  for (auto& row : q.problem.cost)
    for (int& c : row)
      if (c >= distance_weight(LinkClass::sys)) c = -1;
  sharing = int(gpus / nics);
  q.problem.max_gpus_per_nic = sharing;
  auto r = assign_nics(q.problem);
  return std::none_of(r.begin(), r.end(), [](int n) { return n < 0; });
}

void cut_row(Topology& t, size_t gpu) {
  t.gpus[gpu].row_known = false;
  t.mapping.unmapped.emplace_back(t.gpus[gpu].index, BothWords{"row cut", "该行不完整"});
}

void map_near(TopologyWork& w, const Indices& rows, const Indices& nics) {
  Topology& t = w.out;
  Indices with, without;
  for (size_t g : rows) {
    if (is_near(best_class_of_gpu(t, g, nics)))
      with.push_back(g);
    else if (std::any_of(nics.begin(), nics.end(),
                         [&](size_t i) { return t.gpu_nic[g][i] == LinkClass::unknown; }))
      cut_row(t, g);  // its NIC may stand in the part that is not shown
    else
      without.push_back(g);
  }
  int sharing = 0;
  w.rows_missing |= with.size() + without.size() < rows.size();
  Indices shown;
  for (size_t g : rows)
    if (t.gpus[g].row_known) shown.push_back(g);
  Part all = part_of(w, shown, nics, false);
  if (!without.empty() && shares_regularly(all, shown.size(), nics.size(), sharing)) {
    for (auto& row : all.problem.cost)
      for (int& c : row)
        if (c >= distance_weight(LinkClass::sys)) c = -1;
    all.problem.max_gpus_per_nic = sharing;
    take(w, all, assign_nics(all.problem));
    name_constraint(w, all, sharing);
    t.mapping.reason = {"every NIC serves equally many GPUs of its socket",
                        "每张网卡服务同一插槽上同样多的 GPU"};
  } else if (!without.empty() && nics.size() >= shown.size()) {
    // A NIC for every GPU, one of them in another's slot: the free one serves the GPU that has none nearby.
    all.problem.max_gpus_per_nic = 1;
    take(w, all, assign_nics(all.problem));
    name_constraint(w, all, 1);
    note_ties(w, all);
    t.mapping.reason = {"each GPU its own NIC, the least total distance",
                        "每块 GPU 独占一张网卡，总距离最小"};
    std::string names;
    for (size_t g : without) names += fmt::format("{}GPU{}", names.empty() ? "" : ", ", t.gpus[g].index);
    w.say("no_near_nic", Severity::warn,
          both("no NIC nearby: {}; a free NIC of another switch serves, slower: look at the slots",
               "附近没有网卡：{}；由其他交换机下的空闲网卡服务，速度较慢：请检查插槽", names));
  } else {
    Part p = part_of(w, with, nics, true);
    sharing = least_sharing(p.problem);
    p.problem.max_gpus_per_nic = std::max(1, sharing);
    take(w, p, assign_nics(p.problem));
    name_constraint(w, p, sharing);
    note_ties(w, p);
    t.mapping.reason = {"each GPU's nearest NICs, shared evenly", "每块 GPU 最近的网卡，均匀分配"};
    if (!without.empty()) report_missing(w, without, with.size());
  }
  t.mapping.confidence = w.flat ? Confidence::convention : Confidence::derived;
}

}  // namespace

void map_gpus(TopologyWork& w) {
  Topology& t = w.out;
  Indices nics, shown;
  for (size_t i = 0; i < t.nics.size(); ++i)
    if (t.nics[i].usable) nics.push_back(i);
  if (nics.empty()) {
    // EFA carries NCCL traffic: its pairs are worth knowing, though not for IBGDA.
    for (size_t i = 0; i < t.nics.size(); ++i)
      if (t.nics[i].role == "efa" && is_near(best_class(t, i))) nics.push_back(i);
    w.efa_mapping = !nics.empty();
  }
  for (size_t g = 0; g < t.gpus.size(); ++g) {
    if (t.gpus[g].row_known)
      shown.push_back(g);
    else if (w.has_distances)
      t.mapping.unmapped.emplace_back(t.gpus[g].index, BothWords{"row missing", "缺少该行"});
  }
  if (nics.empty()) return;
  bool any_near = std::any_of(nics.begin(), nics.end(), [&](size_t i) { return is_near(best_class(t, i)); });
  if (!any_near && map_by_netdev(w)) return;
  if (!w.has_distances || shown.empty()) return;
  if (any_near)
    map_near(w, shown, nics);
  else if (w.said("topo_flat_sys"))
    map_by_order(w, shown, nics);
  else
    map_far(w, shown, nics);
  // A guessed or a lying legend: which device a column stands for is no longer known for sure.
  if (w.facts.paste.labels_guessed || w.said("legend_guessed") || w.said("legend_contradiction"))
    t.mapping.confidence = Confidence::convention;
}

}  // namespace ep
