// Step four: GID index for RoCE. RoCE v2, an address that is routed (IPv4 before IPv6), on the device's own
// netdev, lowest index. Nothing on InfiniBand. Pinned only where the library at hand would choose worse.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/version.h"
#include "facts/gid_drift.h"
#include "facts/topology_parts.h"

namespace ep {
namespace {

// Types missing (old tools): RoCE tables list each address twice, first as v1, then as v2.
bool is_v2(const std::vector<GidEntry>& table, size_t k) {
  if (table[k].type.ok()) return contains(*table[k].type, "v2");
  return k > 0 && table[k - 1].gid == table[k].gid && !table[k - 1].type.ok();
}

struct Pick {
  const GidEntry* entry = nullptr;
  GidKind kind = GidKind::none;
  bool two_families = false, only_link_local = false;
};

Pick pick_gid(const RdmaDevice& d) {
  Pick best;
  std::set<GidKind> families;
  auto rank = [](GidKind k) {
    return k == GidKind::ipv4 ? 3 : k == GidKind::ipv6 ? 2 : k == GidKind::link_local ? 1 : 0;
  };
  for (const auto& p : d.ports)
    for (size_t k = 0; k < p.gids.size(); ++k) {
      if (!is_v2(p.gids, k)) continue;
      GidKind kind = gid_kind(p.gids[k].gid);
      if (kind == GidKind::ipv4 || kind == GidKind::ipv6) families.insert(kind);
      if (rank(kind) > rank(best.kind)) {
        best.kind = kind;
        best.entry = &p.gids[k];
      }
    }
  best.two_families = families.size() > 1;
  best.only_link_local = best.kind == GidKind::link_local;
  return best;
}

std::string shown_address(const std::string& gid) {
  if (gid_kind(gid) != GidKind::ipv4) return gid;
  auto part = [&](size_t at) { return parse_int("0x" + gid.substr(at, 2)).value_or(0); };
  return fmt::format("{}.{}.{}.{}", part(30), part(32), part(35), part(37));
}

void note_tables(TopologyWork& w) {
  const GidChoice& c = w.out.gid;
  bool not3 = false, sparse = false, index0 = false;
  std::set<int> values;
  for (const auto& d : w.facts.rdma) {
    auto it = c.per_device.find(d.name);
    if (it == c.per_device.end()) continue;
    values.insert(it->second);
    not3 |= it->second != 3;
    for (const auto& p : d.ports)
      if (!p.gids.empty()) {
        sparse |= p.gids.front().index > 0;
        index0 |= p.gids.front().index == 0 && gid_kind(p.gids.front().gid) == GidKind::link_local;
      }
  }
  if (not3)
    w.say("gid_not_3", Severity::warn,
          {"the right GID index is not 3 here; recipes that pin 3 take a wrong or absent entry",
           "这里正确的 GID 索引不是 3；固定为 3 的脚本会取到错误或不存在的条目"});
  if (sparse)
    w.say("gid_sparse", Severity::info,
          {"the GID tables do not start at 0: lower entries belong to another network namespace",
           "GID 表不从 0 开始：较低的条目属于别的网络命名空间"});
  if (index0)
    w.say("gid_index0_default", Severity::info,
          {"index 0 is a link-local RoCE v1 entry: libraries that default to 0 reach nobody",
           "索引 0 是链路本地的 RoCE v1 条目：默认取 0 的库无法到达任何主机"});
  if (values.size() > 1)
    w.say("gid_differs_per_device", Severity::warn,
          {"the right GID index differs between the devices of this host: one number fits none of the "
           "variables",
           "本机各设备的正确 GID 索引不同：变量只能取一个数，哪个都不合适"});
}

void note_subnets(TopologyWork& w) {
  std::map<std::string, std::vector<std::string>> nets;  // /24 of the chosen address -> devices
  for (const auto& [dev, address] : w.out.gid.address) {
    const TopologyNic* n = w.out.nic(dev);
    if (!n || !n->usable || !contains(address, ".")) continue;
    nets[address.substr(0, address.rfind('.'))].push_back(dev);
  }
  for (const auto& [net, devs] : nets)
    if (devs.size() > 1) {
      auto& f = w.say("same_subnet_rails", Severity::warn,
                      both("{} have addresses in one subnet: rails need subnets of their own, or arp_ignore "
                           "and policy routing",
                           "{} 的地址在同一子网：各 rail 应有独立子网，否则需要 arp_ignore 与策略路由",
                           join(devs, ", ")));
      f.evidence.push_back({"GID table", 0, net + ".0/24"});
      return;
    }
}

}  // namespace

GidKind gid_kind(const std::string& g) {
  if (g.size() != 39) return GidKind::none;
  if (starts_with(g, "fe8") || starts_with(g, "fe9") || starts_with(g, "fea") || starts_with(g, "feb"))
    return GidKind::link_local;
  if (starts_with(g, "0000:0000:0000:0000:0000:ffff:")) {
    std::string a = g.substr(30, 2), b = g.substr(32, 2);
    if (a == "a9" && b == "fe") return GidKind::link_local;  // 169.254/16
    if (a == "00" || a == "7f") return GidKind::none;
    return GidKind::ipv4;
  }
  if (starts_with(g, "ff") || starts_with(g, "0000:0000:0000:0000:")) return GidKind::none;
  return GidKind::ipv6;
}

std::optional<int> routed_gid_index(const RdmaDevice& device) {
  Pick pick = pick_gid(device);
  if (!pick.entry || pick.only_link_local) return std::nullopt;
  return pick.entry->index;
}

void choose_gids(TopologyWork& w) {
  Topology& t = w.out;
  GidChoice& c = t.gid;
  bool any_usable = std::any_of(t.nics.begin(), t.nics.end(), [](const TopologyNic& n) { return n.usable; });
  bool eth = false, ib = false, unknown = false, any = false;
  for (const auto& d : w.facts.rdma)
    if (const TopologyNic* n = t.nic(d.name); n && !n->usable && n->link_layer != "InfiniBand")
      if (auto index = routed_gid_index(d)) c.not_for_ep[d.name] = *index;
  for (const auto& n : t.nics) {
    bool relevant = any_usable ? n.usable : (n.role == "down" || n.role == "no-gid" || n.role == "hidden");
    if (!relevant) continue;
    any = true;
    if (n.link_layer == "Ethernet")
      eth = true;
    else if (n.link_layer == "InfiniBand")
      ib = true;
    else
      unknown = true;
  }
  if (eth)
    c.needed = true;
  else if (!any || (ib && !unknown))
    c.needed = false;
  if (ib && !eth && !unknown) {
    c.reason = {"InfiniBand: there is no GID to choose", "InfiniBand：无需选择 GID"};
    return;
  }
  if (!any) {
    c.reason = {"no RoCE device", "没有 RoCE 设备"};
    return;
  }
  bool two = false, local_only = false, tables = false, all_v6 = true;
  for (const auto& d : w.facts.rdma) {
    const TopologyNic* n = t.nic(d.name);
    if (!n || n->link_layer == "InfiniBand" || !(n->usable || n->role == "no-gid")) continue;
    tables |= std::any_of(d.ports.begin(), d.ports.end(), [](const RdmaPort& p) { return !p.gids.empty(); });
    if (!n->usable) continue;
    Pick pick = pick_gid(d);
    two |= pick.two_families;
    local_only |= pick.only_link_local;
    if (!pick.entry || pick.only_link_local) continue;
    c.per_device[d.name] = pick.entry->index;
    c.address[d.name] = shown_address(pick.entry->gid);
    all_v6 &= pick.kind == GidKind::ipv6;
  }
  c.ipv6 = !c.per_device.empty() && all_v6;
  note_tables(w);
  note_subnets(w);
  if (two)
    w.say("gid_two_candidates", Severity::info,
          {"an IPv4 and a global IPv6 entry are both routed; the IPv4 one is named, the other serves an "
           "IPv6-only fabric",
           "IPv4 与全局 IPv6 条目均可路由；此处取 IPv4，另一个用于纯 IPv6 网络"});
  if (c.ipv6)
    w.say("gid_ipv6_only", Severity::warn,
          {"only IPv6 entries are routed: set NVSHMEM_IB_ADDR_FAMILY and NCCL_IB_ADDR_FAMILY to AF_INET6",
           "只有 IPv6 条目可路由：请把 NVSHMEM_IB_ADDR_FAMILY 与 NCCL_IB_ADDR_FAMILY 设为 AF_INET6"});
  if (local_only)
    w.say("gid_linklocal_only", Severity::warn,
          {"some devices have link-local RoCE v2 entries only: they reach one L2 segment at best",
           "部分设备只有链路本地的 RoCE v2 条目：至多到达同一二层网段"});
  // gid_linklocal_only also when there is no table but the addresses of the netdevs say so.
  if (!tables && c.needed.value_or(false)) {
    bool seen = false, routed = false;
    for (const auto& n : t.nics) {
      if (!n.usable) continue;
      for (const auto& dev : w.facts.netdevs) {
        if (dev.name != n.netdev) continue;
        for (const auto& ip : dev.ips) {
          seen = true;
          routed |= !starts_with(ip, "169.254.") && !starts_with(lower(ip), "fe80:");
        }
      }
    }
    if (seen && !routed)
      w.say("gid_linklocal_only", Severity::warn,
            {"the RDMA netdevs have link-local addresses only: no GID that other networks reach",
             "RDMA 网络设备只有链路本地地址：没有其他网络可达的 GID"});
  }
  bool none =
      c.needed.value_or(false) && any && c.per_device.empty() && !local_only &&
      std::any_of(t.nics.begin(), t.nics.end(), [](const TopologyNic& n) { return n.role == "no-gid"; }) &&
      !any_usable;
  if (none)
    w.say("gid_none", Severity::fail,
          {"RoCE devices are present but no GID table has a usable entry: RDMA can't be used here",
           "有 RoCE 设备，但 GID 表中没有可用条目：此处不能使用 RDMA"});
  std::string nccl;
  for (const auto& env : w.facts.python)
    for (const auto& p : env.packages)
      if (starts_with(p.name, "nvidia-nccl-cu")) nccl = p.version;
  bool old_nccl = !nccl.empty() && compare_versions(VersionOrder::dotted, nccl, "2.21") < 0;
  std::set<int> values;
  for (const auto& [d, i] : c.per_device) values.insert(i);
  c.pin = old_nccl && values.size() == 1;
  if (c.per_device.empty())
    c.reason = {"no GID table is shown: read it on the host, never assume 3",
                "未显示 GID 表：请在主机上读取，切勿假定为 3"};
  else if (c.pin)
    c.reason = both("NCCL {} would take index 0; all devices agree on {}",
                    "NCCL {} 会取索引 0；所有设备一致为 {}", nccl, *values.begin());
  else
    c.reason = {
        "libraries from NCCL 2.21 and NVSHMEM with automatic GID choose RoCE v2 themselves; a fixed number "
        "breaks on the first host that differs",
        "NCCL 2.21 起及能自动选择 GID 的 NVSHMEM 会自行选用 RoCE v2；固定数字在第一台不同的主机上就会出错"};
}

}  // namespace ep
