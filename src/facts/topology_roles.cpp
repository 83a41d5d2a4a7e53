// Step two, second half: roles by distance: the NICs nearest to some GPU, of one link layer and one speed; of
// several functions on one slot, the physical ones.
#include "facts/topology_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace ep {
namespace {

// How many GPUs have at least one near NIC among `nics`.
size_t covered(const TopologyWork& w, const Indices& nics) {
  size_t n = 0;
  for (const auto& row : w.out.gpu_nic)
    n += std::any_of(nics.begin(), nics.end(), [&](size_t i) { return is_near(row[i]); });
  return n;
}

// Keeps the devices of one value of a property, if they serve as many GPUs as all do; excludes the others.
// `better` orders values; a value that is unknown never excludes.
template <class Key, class Better>
void keep_one_kind(TopologyWork& w, Indices& near, Key key, Better better, const char* role, Text why) {
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
    if (key(i) == K{} || key(i) == best_key)
      rest.push_back(i);
    else
      exclude(w.out.nics[i], role,
              {fmt::format("{} is {}, the NICs nearest to the GPUs are {}", why.en, key(i), best_key),
               fmt::format("{}为 {}，离 GPU 最近的网卡为 {}", why.zh, key(i), best_key)});
  }
  near = rest;
}

// Virtual functions enumerate after all physical ones: the first device of a slot that was already left is
// where they begin. Only where a slot has more devices than GPUs.
void exclude_vfs_by_order(TopologyWork& w, Indices& near, const Indices& all) {
  if (!w.nic_cells) return;
  std::vector<std::pair<int, size_t>> numbered;
  for (size_t i : all)
    if (int n = device_number(w.out.nics[i].name); n >= 0 && !w.out.nics[i].is_bond)
      numbered.push_back({n, i});
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
    bool has_pf = std::any_of(slot.begin(), slot.end(),
                              [&](size_t k) { return device_number(w.out.nics[k].name) < first_vf; });
    if (slot.size() > gpus && has_pf && device_number(w.out.nics[i].name) >= first_vf) {
      exclude(w.out.nics[i], "vf",
              {"on the slot of another device and numbered after all physical functions: most likely its "
               "virtual function",
               "与另一设备同槽且编号在所有物理功能之后：很可能是其虚拟功能"});
      w.out.nics[i].is_vf = true;
      any = true;
    } else {
      rest.push_back(i);
    }
  }
  near = rest;
  if (any)
    w.say("vf_present", Severity::warn,
          {"several devices share a slot with a NIC and look like its virtual functions; if this container "
           "is meant to use them, port states decide",
           "有多个设备与网卡同槽，像是其虚拟功能；若本容器应使用它们，以端口状态为准"});
}

void exclude_known_vfs(TopologyWork& w, Indices& near) {
  Indices pf, vf;
  for (size_t i : near) (w.out.nics[i].is_vf ? vf : pf).push_back(i);
  if (vf.empty() || pf.empty() || covered(w, pf) < covered(w, near)) return;
  for (size_t i : vf)
    exclude(
        w.out.nics[i], "vf",
        {"virtual function; the physical functions are visible here too", "虚拟功能；物理功能在此同样可见"});
  near = pf;
  w.say("vf_present", Severity::warn,
        both("{} virtual functions beside their physical functions", "物理功能之外还有 {} 个虚拟功能",
             vf.size()));
}

// People name netdevs after what they carry: storage0, mgmt1, bond_nfs. Only where the others serve as many
// GPUs.
void exclude_by_netdev(TopologyWork& w, Indices& near) {
  struct Word {
    const char* part;
    const char* role;
    Text why;
  };
  static constexpr Word kWords[] = {
      {"stor", "storage", {"its netdev is named after storage", "其网络设备以存储命名"}},
      {"nfs", "storage", {"its netdev is named after storage", "其网络设备以存储命名"}},
      {"mgmt", "management", {"its netdev is named after management", "其网络设备以管理命名"}},
      {"oob", "management", {"its netdev is named after management", "其网络设备以管理命名"}},
      {"front", "management", {"its netdev is named after the front end", "其网络设备以前端命名"}}};
  Indices rest;
  std::vector<std::pair<size_t, const Word*>> out;
  for (size_t i : near) {
    auto word = std::find_if(std::begin(kWords), std::end(kWords),
                             [&](const Word& x) { return icontains(w.out.nics[i].netdev, x.part); });
    if (word == std::end(kWords))
      rest.push_back(i);
    else
      out.emplace_back(i, word);
  }
  if (out.empty() || covered(w, rest) < covered(w, near)) return;
  for (auto [i, word] : out)
    exclude(w.out.nics[i], word->role, {std::string(word->why.en), std::string(word->why.zh)});
  near = rest;
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
  // As many NICs as GPUs, all of one link layer and one rate: one for each, though a card sits in another's
  // slot.
  const TopologyNic& first = w.out.nics[near[0]];
  const bool one_kind =
      near.size() == w.out.gpus.size() && !first.link_layer.empty() && first.rate_gbps > 0 &&
      std::all_of(near.begin(), near.end(), [&](size_t i) {
        return w.out.nics[i].link_layer == first.link_layer && w.out.nics[i].rate_gbps == first.rate_gbps;
      });
  if (one_kind) return;
  Indices rest;
  for (size_t i : near) {
    if (drop.count(i))
      exclude(w.out.nics[i], "uncertain",
              {"as near to a GPU as another NIC, while most GPUs have one NIC: link layer and rate are "
               "needed to tell",
               "与另一张网卡到 GPU 等距，而多数 GPU 只有一张：需要链路类型和速率才能判断"});
    else
      rest.push_back(i);
  }
  near = rest;
  w.say("tie_unresolved", Severity::warn,
        {"some GPUs have several equally near devices and nothing shown here tells them apart; read state, "
         "rate and link layer",
         "部分 GPU 有多个等距设备，此处信息无法区分；请读取状态、速率与链路类型"});
  w.flat = true;
}

// NICs that look like those of the visible GPUs but are far from all of them belong to GPUs that are not
// visible here.
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
    if (best_class(w.out, i) == LinkClass::sys && members(w, w.group[i], all).size() == slot &&
        w.out.nics[i].is_bond == w.out.nics[near[0]].is_bond &&
        w.out.nics[i].link_layer == w.out.nics[near[0]].link_layer)
      same.push_back(i);
  size_t near_all = near.size();
  for (size_t i = 0; i < w.out.nics.size(); ++i)
    near_all += w.out.nics[i].role == "vf" && gpus_near(w, i) > 0;
  if (same.size() < 2 || same.size() < near_all || gpus * 2 > 8) {
    if (near_all + same.size() != 8 || same.empty()) return false;
  }
  for (size_t i : same)
    exclude(
        w.out.nics[i], "other-gpu",
        {"SYS to every visible GPU and built like their NICs: it belongs to a GPU that is not visible here",
         "对每块可见 GPU 都是 SYS，且与它们的网卡同型：属于此处不可见的 GPU"});
  w.say("container_partial_gpus", Severity::warn,
        both("{} GPUs are visible but NICs of more: CUDA index 0 is not the first GPU of the host, and "
             "positional maps are wrong",
             "只可见 {} 块 GPU，网卡却更多：CUDA 0 号不是主机第一块 GPU，按位置的映射是错的", gpus));
  return true;
}

// The NICs that share switches with the GPUs are of another vendor: an mlx5 port farther away is the host's
// network, not the rails.
bool near_are_others(TopologyWork& w, const Indices& cand) {
  Topology& t = w.out;
  size_t served = 0;
  for (size_t g = 0; g < t.gpus.size(); ++g)
    for (size_t i = 0; i < t.nics.size(); ++i)
      if ((t.nics[i].role == "wrong-vendor" || t.nics[i].role == "efa") && is_near(t.gpu_nic[g][i])) {
        ++served;
        break;
      }
  if (served == 0 || served * 2 < t.gpus.size() || cand.size() >= served) return false;
  for (size_t i : cand)
    exclude(t.nics[i], "management",
            {"far from every GPU, while NICs of another vendor share a switch with them: the host's network",
             "离所有 GPU 都远，而与 GPU 同交换机的是其他厂商的网卡：承载主机网络"});
  return true;
}

}  // namespace

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
  if (near.empty() && near_are_others(w, cand)) return;
  if (near.empty()) {
    // One odd link layer among far devices is the host's network.
    Indices ib;
    for (size_t i : cand)
      if (t.nics[i].link_layer == "InfiniBand") ib.push_back(i);
    if (!ib.empty() && ib.size() < cand.size()) {
      for (size_t i : cand)
        if (t.nics[i].link_layer == "Ethernet")
          exclude(t.nics[i], "management",
                  {"an Ethernet port on an InfiniBand host", "InfiniBand 主机上的以太网口"});
      cand = candidates(w);
    }
    Indices plain;
    for (size_t i : cand)
      if (!t.nics[i].is_bond) plain.push_back(i);
    if (!plain.empty() && plain.size() < cand.size()) {
      for (size_t i : cand)
        if (t.nics[i].is_bond)
          exclude(t.nics[i], "management",
                  {"a bond beside plain devices, no nearer to a GPU than they are",
                   "与普通设备并存的绑定口，且并不更近"});
      cand = plain;
    }
    choose_far(w, cand);
    return;
  }
  Indices before = near;
  auto layer = [&](size_t i) { return t.nics[i].link_layer; };
  keep_one_kind(w, near, layer, [](const std::string& a, const std::string&) { return a == "InfiniBand"; },
                "storage", {"its link layer", "链路类型"});
  if (near.size() < before.size())
    w.say(
        "tie_ethernet_on_ib", Severity::warn,
        {"some GPUs are as near to an Ethernet port as to their InfiniBand NIC: nearness alone is ambiguous",
         "部分 GPU 到以太网口与到 InfiniBand 网卡等距：仅凭距离无法判断"});
  exclude_by_netdev(w, near);
  exclude_known_vfs(w, near);
  keep_one_kind(
      w, near, [&](size_t i) { return t.nics[i].rate_gbps; }, [](double a, double b) { return a > b; },
      "storage", {"its rate (Gb/s)", "速率（Gb/s）"});
  keep_one_kind(
      w, near, [&](size_t i) { return t.nics[i].hca_type; },
      [](const std::string& a, const std::string& b) { return a > b; }, "storage", {"its type", "型号"});
  exclude_vfs_by_order(w, near, cand);
  settle_ties(w, near);
  bool ties_down = std::any_of(t.nics.begin(), t.nics.end(),
                               [](const TopologyNic& n) { return n.role == "down" || n.role == "hidden"; });
  if (ties_down && !w.said("tie_ethernet_on_ib")) {
    for (size_t g = 0; g < t.gpus.size(); ++g) {
      size_t all = 0, good = 0;
      for (size_t i = 0; i < t.nics.size(); ++i) {
        bool n = is_near(t.gpu_nic[g][i]);
        all += n && (t.nics[i].role == "down" || t.nics[i].role == "hidden");
        good += n && std::find(near.begin(), near.end(), i) != near.end();
      }
      if (all && good) {
        w.say("tie_ethernet_on_ib", Severity::warn,
              {"some GPUs are as near to a dead or hidden port as to their NIC: nearness alone is ambiguous",
               "部分 GPU 到失效或隐藏的端口与到其网卡等距：仅凭距离无法判断"});
        break;
      }
    }
  }
  for (size_t i : near) {
    t.nics[i].usable = true;
    t.nics[i].role = "compute";
    t.nics[i].reason = both("{} to its GPU", "与其 GPU 为 {}", to_string(best_class(t, i)));
  }
  if (!w.said("container_partial_gpus")) other_gpus_nics(w, near, far);
  std::vector<std::pair<std::string, BothWords>> verdicts(t.nics.size());
  for (size_t i : far) {
    BothWords reason;
    std::string role = far_role(w, i, reason);
    verdicts[i] = {role, reason};
    if (w.rows_missing)
      verdicts[i] = {"unknown", BothWords{"near to none of the GPUs whose rows are shown; rows are missing",
                                          "与已显示各行的 GPU 都不近；有行缺失"}};
  }
  for (size_t i : far)
    if (t.nics[i].role.empty()) exclude(t.nics[i], verdicts[i].first.c_str(), verdicts[i].second);
  for (const auto& n : t.nics)
    if (n.role == "nvswitch-bridge" && !w.said("nvswitch_bridge_present"))
      w.say("nvswitch_bridge_present", Severity::warn,
            {"InfiniBand functions that manage the NVSwitches look like NICs; never list them for EP",
             "管理 NVSwitch 的 InfiniBand 功能看起来像网卡；切勿列入 EP"});
}

}  // namespace ep
