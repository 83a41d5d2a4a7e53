// Step two: which RDMA devices may carry EP traffic. First what can't wherever it sits (EFA, other vendors, NVSwitch
// bridges, dead ports, hidden devices, no routable GID), then by distance: the NICs nearest to some GPU, of one link
// layer and one speed; of several functions on one slot, the physical ones.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "facts/topology_parts.h"

namespace ep {
namespace {

using Indices = std::vector<size_t>;

void exclude(TopologyNic& n, const char* role, std::string reason) {
  n.usable = false;
  n.role = role;
  n.reason = std::move(reason);
}

bool is_efa(const TopologyNic& n) { return n.driver == "efa" || starts_with(n.name, "rdmap") || starts_with(n.name, "efa_"); }

// Drivers and names of devices without mlx5 direct verbs; empty when it may be mlx5.
std::string other_vendor(const TopologyNic& n) {
  static const std::map<std::string, const char*> kDrivers = {
      {"bnxt_en", "Broadcom"}, {"bnxt_re", "Broadcom"}, {"ionic", "AMD Pensando"}, {"irdma", "Intel"}, {"ice", "Intel"},
      {"erdma", "Alibaba eRDMA"}, {"hns", "HiSilicon"}, {"rdma_rxe", "soft-RoCE"}, {"rxe", "soft-RoCE"}, {"siw", "soft-iWARP"},
      {"qedr", "Marvell"}, {"cxgb4", "Chelsio"}, {"mana", "Microsoft MANA"}, {"mana_ib", "Microsoft MANA"}, {"other vendor", "another vendor"}};
  if (auto it = kDrivers.find(n.driver); it != kDrivers.end()) return it->second;
  if (!n.driver.empty()) return {};
  for (auto [head, vendor] : {std::pair{"bnxt_re", "Broadcom"}, {"ionic_", "AMD Pensando"}, {"irdma", "Intel"}, {"erdma", "Alibaba eRDMA"},
                              {"hns_", "HiSilicon"}, {"rxe", "soft-RoCE"}, {"siw", "soft-iWARP"}, {"qedr", "Marvell"}, {"mana_", "Microsoft MANA"},
                              {"hfi1_", "Omni-Path"}, {"cxgb", "Chelsio"}})
    if (starts_with(n.name, head)) return vendor;
  return {};
}

bool sw_mng(const Facts& f, const TopologyNic& n) {
  for (const auto& p : f.pci)
    if (p.address == n.address && !n.address.empty() && p.vpd.ok() && contains(*p.vpd, "SW_MNG")) return true;
  return false;
}

const RdmaDevice* device_of(const Facts& f, const std::string& name) {
  for (const auto& d : f.rdma)
    if (d.name == name) return &d;
  return nullptr;
}

// No routable entry in a GID table that was read: role no-gid. Link-local tables count when nothing better exists.
void exclude_without_gid(TopologyWork& w) {
  const Facts& f = w.facts;
  struct Seen { bool table = false, routable = false, v2_local = false, missing = false; };
  std::vector<Seen> seen(w.out.nics.size());
  bool any_table = false, any_routable = false;
  for (size_t i = 0; i < w.out.nics.size(); ++i) {
    const TopologyNic& n = w.out.nics[i];
    const RdmaDevice* d = device_of(f, n.name);
    if (!d || n.link_layer == "InfiniBand") continue;
    for (const auto& p : d->ports)
      for (const auto& e : p.gids) {
        seen[i].table = any_table = true;
        bool v2 = !e.type.ok() || contains(*e.type, "v2");
        GidKind k = gid_kind(e.gid);
        if (v2 && (k == GidKind::ipv4 || k == GidKind::ipv6)) seen[i].routable = any_routable = true;
        if (v2 && k == GidKind::link_local) seen[i].v2_local = true;
      }
    bool listed = f.paste.gid_list_complete || f.host_kind != "paste";
    seen[i].missing = listed && !seen[i].table && n.link_layer == "Ethernet";
  }
  for (size_t i = 0; i < w.out.nics.size(); ++i) {
    TopologyNic& n = w.out.nics[i];
    if (!n.role.empty()) continue;
    if (seen[i].missing)
      exclude(n, "no-gid", "RoCE, and its GID table has no entry in this network namespace");
    else if (seen[i].table && !seen[i].routable && !seen[i].v2_local)
      exclude(n, "no-gid", "no RoCE v2 entry in its GID table");
    else if (seen[i].table && !seen[i].routable && any_routable)
      exclude(n, "no-gid", "only link-local GIDs, while others have an address that is routed");
  }
  (void)any_table;
}

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

// How many GPUs have at least one near NIC among `nics`.
size_t covered(const TopologyWork& w, const Indices& nics) {
  size_t n = 0;
  for (const auto& row : w.out.gpu_nic) n += std::any_of(nics.begin(), nics.end(), [&](size_t i) { return is_near(row[i]); });
  return n;
}

// Keeps the devices of one value of a property, if they serve as many GPUs as all do; excludes the others.
// `better` orders values; a value that is unknown never excludes.
template <class Key, class Better>
void keep_one_kind(TopologyWork& w, Indices& near, Key key, Better better, const char* role, const char* why) {
  using K = decltype(key(size_t{0}));
  std::map<K, Indices> kinds;
  for (size_t i : near)
    if (key(i) != K{}) kinds[key(i)].push_back(i);
  if (kinds.size() < 2) return;
  const Indices* best = nullptr;
  K best_key{};
  for (const auto& [k, list] : kinds) {
    size_t mine = covered(w, list), theirs = best ? covered(w, *best) : 0;
    if (!best || mine > theirs || (mine == theirs && better(k, best_key))) {
      best = &list;
      best_key = k;
    }
  }
  Indices known_kind;
  for (const auto& [k, list] : kinds) known_kind.insert(known_kind.end(), list.begin(), list.end());
  if (covered(w, *best) < covered(w, known_kind)) return;
  Indices rest;
  for (size_t i : near) {
    if (key(i) == K{} || key(i) == best_key) rest.push_back(i);
    else exclude(w.out.nics[i], role, fmt::format("{} is {}, the NICs nearest to the GPUs are {}", why, key(i), best_key));
  }
  near = rest;
}

// Virtual functions enumerate after all physical ones: the first device of a slot that was already left is where
// they begin. Only where a slot has more devices than GPUs.
void exclude_vfs_by_order(TopologyWork& w, Indices& near, const Indices& all) {
  if (!w.nic_cells) return;
  std::vector<std::pair<int, size_t>> numbered;
  for (size_t i : all)
    if (int n = device_number(w.out.nics[i].name); n >= 0 && !w.out.nics[i].is_bond) numbered.push_back({n, i});
  std::sort(numbered.begin(), numbered.end());
  std::set<int> left;
  int current = -1, first_vf = -1;
  for (auto [number, i] : numbered) {
    int g = w.group[i];
    if (left.count(g)) {
      first_vf = number;
      break;
    }
    if (current >= 0 && g != current) left.insert(current);
    current = g;
  }
  if (first_vf < 0) return;
  Indices rest;
  bool any = false;
  for (size_t i : near) {
    auto slot = members(w, w.group[i], near);
    size_t gpus = 0;
    for (size_t g = 0; g < w.out.gpus.size(); ++g)
      gpus += std::any_of(slot.begin(), slot.end(), [&](size_t k) { return is_near(w.out.gpu_nic[g][k]); });
    bool has_pf = std::any_of(slot.begin(), slot.end(), [&](size_t k) { return device_number(w.out.nics[k].name) < first_vf; });
    if (slot.size() > gpus && has_pf && device_number(w.out.nics[i].name) >= first_vf) {
      exclude(w.out.nics[i], "vf", "on the slot of another device and numbered after all physical functions: most likely its virtual function");
      w.out.nics[i].is_vf = true;
      any = true;
    } else {
      rest.push_back(i);
    }
  }
  near = rest;
  if (any)
    w.say("vf_present", Severity::warn,
          "several devices share a slot with a NIC and look like its virtual functions; if this container is meant to use them, port states decide");
}

void exclude_known_vfs(TopologyWork& w, Indices& near) {
  Indices pf, vf;
  for (size_t i : near) (w.out.nics[i].is_vf ? vf : pf).push_back(i);
  if (vf.empty() || pf.empty() || covered(w, pf) < covered(w, near)) return;
  for (size_t i : vf) exclude(w.out.nics[i], "vf", "virtual function; the physical functions are visible here too");
  near = pf;
  w.say("vf_present", Severity::warn, fmt::format("{} virtual functions beside their physical functions", vf.size()));
}

// Most GPUs have one near NIC and a few have several, and nothing tells them apart: the first is a guess.
void settle_ties(TopologyWork& w, Indices& near) {
  std::vector<Indices> of_gpu(w.out.gpus.size());
  size_t single = 0, many = 0, rows = 0;
  for (size_t g = 0; g < of_gpu.size(); ++g) {
    for (size_t i : near)
      if (is_near(w.out.gpu_nic[g][i])) of_gpu[g].push_back(i);
    rows += !of_gpu[g].empty();
    single += of_gpu[g].size() == 1;
    many += of_gpu[g].size() > 1;
  }
  if (many == 0 || single <= many || rows < 3) return;
  std::set<size_t> drop;
  for (const auto& list : of_gpu) {
    if (list.size() < 2 || gpus_near(w, list[0]) > 1) continue;
    for (size_t k = 1; k < list.size(); ++k) drop.insert(list[k]);
  }
  if (drop.empty()) return;
  Indices rest;
  for (size_t i : near) {
    if (drop.count(i)) exclude(w.out.nics[i], "uncertain", "as near to a GPU as another NIC, while most GPUs have one NIC: link layer and rate are needed to tell");
    else rest.push_back(i);
  }
  near = rest;
  w.say("tie_unresolved", Severity::warn, "some GPUs have several equally near devices and nothing shown here tells them apart; read state, rate and link layer");
  w.flat = true;
}

std::string far_role(const TopologyWork& w, size_t i, std::string& reason) {
  const TopologyNic& n = w.out.nics[i];
  LinkClass c = best_class(w.out, i);
  auto slot = members(w, w.group[i], candidates(w));
  std::string where = c == LinkClass::unknown ? "its distance is not shown" : fmt::format("{} to the nearest GPU", to_string(c));
  bool blackwell = std::any_of(w.out.gpus.begin(), w.out.gpus.end(), [](const TopologyGpu& g) { return g.sm >= 100 && g.sm < 120; });
  if (slot.size() >= 3 && !n.is_bond && blackwell) {
    reason = fmt::format("one of {} functions that are PIX to each other, {}: ConnectX-7 bridges that manage the NVSwitches", slot.size(), where);
    return "nvswitch-bridge";
  }
  if (n.is_bond) {
    reason = "a bond, " + where + ", while other NICs share a switch with a GPU";
    return "management";
  }
  if (slot.size() >= 2) {
    reason = fmt::format("one of {} ports of a card, {}", slot.size(), where);
    return "storage";
  }
  reason = where + ", while other NICs share a switch with a GPU";
  return "management";
}

// NICs that look like those of the visible GPUs but are far from all of them belong to GPUs that are not visible here.
bool other_gpus_nics(TopologyWork& w, const Indices& near, const Indices& far) {
  size_t gpus = w.out.gpus.size();
  if (gpus >= 8 || near.empty() || w.rows_missing) return false;
  auto all = near;
  all.insert(all.end(), far.begin(), far.end());
  // A VF that was set aside still tells how the slots of compute NICs look.
  for (size_t i = 0; i < w.out.nics.size(); ++i)
    if (w.out.nics[i].role == "vf") all.push_back(i);
  size_t slot = members(w, w.group[near[0]], all).size();
  Indices same;
  for (size_t i : far)
    if (best_class(w.out, i) == LinkClass::sys && members(w, w.group[i], all).size() == slot && !w.out.nics[i].is_bond &&
        w.out.nics[i].link_layer == w.out.nics[near[0]].link_layer)
      same.push_back(i);
  size_t near_all = near.size();
  for (size_t i = 0; i < w.out.nics.size(); ++i) near_all += w.out.nics[i].role == "vf" && gpus_near(w, i) > 0;
  if (same.size() < 2 || same.size() < near_all || gpus * 2 > 8) {
    if (near_all + same.size() != 8 || same.empty()) return false;
  }
  for (size_t i : same) exclude(w.out.nics[i], "other-gpu", "SYS to every visible GPU and built like their NICs: it belongs to a GPU that is not visible here");
  w.say("container_partial_gpus", Severity::warn,
        fmt::format("{} GPUs are visible but NICs of more: CUDA index 0 is not the first GPU of the host, and positional maps are wrong", gpus));
  return true;
}

void choose_without_distances(TopologyWork& w) {
  Indices cand = candidates(w);
  auto layer_count = [&](const char* layer) {
    return std::count_if(cand.begin(), cand.end(), [&](size_t i) { return w.out.nics[i].link_layer == layer; });
  };
  long ib = layer_count("InfiniBand"), eth = layer_count("Ethernet");
  for (size_t i : cand) {
    TopologyNic& n = w.out.nics[i];
    if (n.is_bond && cand.size() > size_t(std::count_if(cand.begin(), cand.end(), [&](size_t k) { return w.out.nics[k].is_bond; }))) {
      exclude(n, "bond", "its netdev is a bond, the others' are not: it carries the host's network");
    } else if (ib >= 2 && ib >= eth && n.link_layer == "Ethernet") {
      exclude(n, "management", "an Ethernet port on an InfiniBand host");
    }
  }
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
      exclude(w.out.nics[odd.second[0]], "management", "its address is in another network than the rails'");
      w.say("mixed_roles", Severity::warn,
            fmt::format("{} has a valid GID too: a valid GID does not make a compute NIC", w.out.nics[odd.second[0]].name));
    }
  }
  for (size_t i : candidates(w)) {
    w.out.nics[i].usable = true;
    w.out.nics[i].role = "compute";
    w.out.nics[i].reason = "nothing shown here speaks against it; its distance to the GPUs is not known";
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
          exclude(t.nics[i], "storage", "function of a dual-function card, the compute NICs here have one function each");
      w.say("dual_function_nics", Severity::info, fmt::format("{} functions are PIX pairs: BlueField or dual-port cards", cand.size() - singles.size()));
      cand = singles;
    }
    w.flat = true;
    w.say("topo_flat_sys", Severity::warn, "every GPU-NIC distance is SYS: the matrix carries no information; use PCI domain and NUMA node");
  } else {
    Indices best;
    bool tie = false;
    for (size_t i : cand) {
      bool is_best = false;
      for (size_t g = 0; g < t.gpus.size(); ++g)
        is_best |= t.gpu_nic[g][i] != LinkClass::unknown && t.gpu_nic[g][i] == best_class_of_gpu(t, g, cand);
      if (is_best) best.push_back(i);
    }
    for (size_t i : cand)
      if (std::find(best.begin(), best.end(), i) == best.end()) {
        std::string reason;
        std::string role = far_role(w, i, reason);
        exclude(t.nics[i], role.c_str(), "another NIC is nearer to every GPU");
      }
    cand = best;
    for (size_t g = 0; g < t.gpus.size(); ++g) {
      LinkClass c = best_class_of_gpu(t, g, cand);
      tie |= std::count_if(cand.begin(), cand.end(), [&](size_t i) { return t.gpu_nic[g][i] == c && c != LinkClass::unknown; }) > 1;
    }
    if (tie && t.gpus.size() > 1) {
      w.flat = true;
      w.say(first == LinkClass::phb || !all_same ? "topo_flat_phb" : "topo_flat_sys", Severity::warn,
            "the NICs of a socket are equally far from its GPUs: only the socket is known, the pairs are not");
    }
  }
  for (size_t i : cand) {
    t.nics[i].usable = true;
    t.nics[i].role = "compute";
    t.nics[i].reason = fmt::format("{} to the nearest GPU; none is nearer", to_string(best_class(t, i)));
  }
  if (!cand.empty() && !(w.flat && all_sys))
    w.say("no_near_nic", w.flat ? Severity::info : Severity::warn, "no NIC shares a PCIe switch with a GPU: traffic crosses the CPU");
}

}  // namespace

LinkClass best_class(const Topology& t, size_t nic) {
  LinkClass best = LinkClass::unknown;
  for (const auto& row : t.gpu_nic)
    if (row[nic] != LinkClass::unknown && (best == LinkClass::unknown || row[nic] < best)) best = row[nic];
  return best;
}

LinkClass best_class_of_gpu(const Topology& t, size_t gpu, const std::vector<size_t>& nics) {
  LinkClass best = LinkClass::unknown;
  for (size_t i : nics)
    if (LinkClass c = t.gpu_nic[gpu][i]; c != LinkClass::unknown && (best == LinkClass::unknown || c < best)) best = c;
  return best;
}

int device_number(const std::string& name) {
  size_t n = name.size();
  while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9') --n;
  if (n == name.size() || n == 0 || (!starts_with(name, "mlx5_") && !starts_with(name, "NIC"))) return -1;
  return int(parse_int(std::string_view(name).substr(n)).value_or(-1));
}

void exclude_unfit(TopologyWork& w) {
  auto& nics = w.out.nics;
  const Facts& f = w.facts;
  bool any_efa = std::any_of(nics.begin(), nics.end(), is_efa);
  const auto& listed = f.paste.verbs_listed;
  for (size_t i = 0; i < nics.size(); ++i) {
    TopologyNic& n = nics[i];
    bool near = is_near(best_class(w.out, i));
    if (!w.joined[i]) {
      exclude(n, "unknown", "no distance is shown for it: without a legend it cannot be matched with a column");
    } else if (n.driver == "none (socket)") {
      exclude(n, "not-rdma", "a socket network of NCCL, not an RDMA device");
    } else if (is_efa(n)) {
      exclude(n, "efa", "EFA: SRD transport, no IBGDA and no mlx5 verbs");
    } else if (sw_mng(f, n)) {
      exclude(n, "nvswitch-bridge", "its vital product data says SW_MNG: it manages NVSwitches, it is no network port");
    } else if (any_efa && !near && (n.link_layer == "InfiniBand" || starts_with(n.name, "ib"))) {
      exclude(n, "nvswitch-bridge", "an InfiniBand function on a host whose network is EFA: ConnectX-7 bridge of the NVSwitches");
    } else if (auto vendor = other_vendor(n); !vendor.empty()) {
      exclude(n, "wrong-vendor", vendor + ": no mlx5 direct verbs, IBGDA can't use it");
    } else if (n.state == "down") {
      exclude(n, "down", "its port is not active");
    } else if (f.paste.verbs_list_complete && n.named && std::find(listed.begin(), listed.end(), n.name) == listed.end() &&
               std::any_of(nics.begin(), nics.end(), [&](const TopologyNic& o) { return std::find(listed.begin(), listed.end(), o.name) != listed.end(); })) {
      exclude(n, "hidden", "known to sysfs but not to verbs: no uverbs device in this container");
    } else if (f.host_kind == "live") {
      const RdmaDevice* d = device_of(f, n.name);
      if (d && d->has_uverbs.ok() && !*d->has_uverbs) exclude(n, "hidden", "no uverbs device node here");
    }
  }
  exclude_without_gid(w);
}

void choose_compute(TopologyWork& w) {
  Topology& t = w.out;
  group_nics(w);
  Indices cand = candidates(w);
  if (!w.has_distances) {
    choose_without_distances(w);
    return;
  }
  if (cand.empty()) return;
  Indices near, far;
  for (size_t i : cand) (is_near(best_class(t, i)) ? near : far).push_back(i);
  if (near.empty()) {
    // One odd link layer among far devices is the host's network.
    Indices ib;
    for (size_t i : cand)
      if (t.nics[i].link_layer == "InfiniBand") ib.push_back(i);
    if (!ib.empty() && ib.size() < cand.size()) {
      for (size_t i : cand)
        if (t.nics[i].link_layer == "Ethernet") exclude(t.nics[i], "management", "an Ethernet port on an InfiniBand host");
      cand = candidates(w);
    }
    Indices plain;
    for (size_t i : cand)
      if (!t.nics[i].is_bond) plain.push_back(i);
    if (!plain.empty() && plain.size() < cand.size()) {
      for (size_t i : cand)
        if (t.nics[i].is_bond) exclude(t.nics[i], "management", "a bond beside plain devices, no nearer to a GPU than they are");
      cand = plain;
    }
    choose_far(w, cand);
    return;
  }
  Indices before = near;
  auto layer = [&](size_t i) { return t.nics[i].link_layer; };
  keep_one_kind(w, near, layer, [](const std::string& a, const std::string&) { return a == "InfiniBand"; }, "storage", "its link layer");
  if (near.size() < before.size())
    w.say("tie_ethernet_on_ib", Severity::warn, "some GPUs are as near to an Ethernet port as to their InfiniBand NIC: nearness alone is ambiguous");
  exclude_known_vfs(w, near);
  keep_one_kind(w, near, [&](size_t i) { return t.nics[i].rate_gbps; }, [](double a, double b) { return a > b; }, "storage", "its rate (Gb/s)");
  keep_one_kind(w, near, [&](size_t i) { return t.nics[i].hca_type; },
                [](const std::string& a, const std::string& b) { return a > b; }, "storage", "its type");
  exclude_vfs_by_order(w, near, cand);
  settle_ties(w, near);
  bool ties_down = std::any_of(t.nics.begin(), t.nics.end(), [](const TopologyNic& n) { return n.role == "down" || n.role == "hidden"; });
  if (ties_down && !w.said("tie_ethernet_on_ib")) {
    for (size_t g = 0; g < t.gpus.size(); ++g) {
      size_t all = 0, good = 0;
      for (size_t i = 0; i < t.nics.size(); ++i) {
        bool n = is_near(t.gpu_nic[g][i]);
        all += n && (t.nics[i].role == "down" || t.nics[i].role == "hidden");
        good += n && std::find(near.begin(), near.end(), i) != near.end();
      }
      if (all && good) {
        w.say("tie_ethernet_on_ib", Severity::warn, "some GPUs are as near to a dead or hidden port as to their NIC: nearness alone is ambiguous");
        break;
      }
    }
  }
  for (size_t i : near) {
    t.nics[i].usable = true;
    t.nics[i].role = "compute";
    t.nics[i].reason = fmt::format("{} to its GPU", to_string(best_class(t, i)));
  }
  if (!w.said("container_partial_gpus")) other_gpus_nics(w, near, far);
  std::vector<std::pair<std::string, std::string>> verdicts(t.nics.size());
  for (size_t i : far) {
    std::string reason;
    std::string role = far_role(w, i, reason);
    verdicts[i] = {role, reason};
    if (w.rows_missing) verdicts[i] = {"unknown", "near to none of the GPUs whose rows are shown; rows are missing"};
  }
  for (size_t i : far)
    if (t.nics[i].role.empty()) exclude(t.nics[i], verdicts[i].first.c_str(), verdicts[i].second);
  for (const auto& n : t.nics)
    if (n.role == "nvswitch-bridge" && !w.said("nvswitch_bridge_present"))
      w.say("nvswitch_bridge_present", Severity::warn, "InfiniBand functions that manage the NVSwitches look like NICs; never list them for EP");
}

}  // namespace ep
