// Step two, first half: devices that can't carry EP wherever they sit: EFA, other vendors, NVSwitch bridges,
// dead ports, devices without verbs or without a GID.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "facts/topology_roles.h"

namespace ep {

void exclude(TopologyNic& n, const char* role, BothWords reason) {
  n.usable = false;
  n.role = role;
  n.reason = std::move(reason);
}

const RdmaDevice* device_of(const Facts& f, const std::string& name) {
  for (const auto& d : f.rdma)
    if (d.name == name) return &d;
  return nullptr;
}

namespace {

bool is_efa(const TopologyNic& n) {
  return n.driver == "efa" || starts_with(n.name, "rdmap") || starts_with(n.name, "efa_");
}

// Drivers and names of devices without mlx5 direct verbs; empty when it may be mlx5.
std::string other_vendor(const TopologyNic& n) {
  static const std::map<std::string, const char*> kDrivers = {{"bnxt_en", "Broadcom"},
                                                              {"bnxt_re", "Broadcom"},
                                                              {"ionic", "AMD Pensando"},
                                                              {"irdma", "Intel"},
                                                              {"ice", "Intel"},
                                                              {"erdma", "Alibaba eRDMA"},
                                                              {"hns", "HiSilicon"},
                                                              {"rdma_rxe", "soft-RoCE"},
                                                              {"rxe", "soft-RoCE"},
                                                              {"siw", "soft-iWARP"},
                                                              {"qedr", "Marvell"},
                                                              {"cxgb4", "Chelsio"},
                                                              {"mana", "Microsoft MANA"},
                                                              {"mana_ib", "Microsoft MANA"},
                                                              {"other vendor", "another vendor"}};
  if (auto it = kDrivers.find(n.driver); it != kDrivers.end()) return it->second;
  if (!n.driver.empty()) return {};
  for (auto [head, vendor] : {std::pair{"bnxt_re", "Broadcom"},
                              {"ionic_", "AMD Pensando"},
                              {"irdma", "Intel"},
                              {"erdma", "Alibaba eRDMA"},
                              {"hns_", "HiSilicon"},
                              {"rxe", "soft-RoCE"},
                              {"siw", "soft-iWARP"},
                              {"qedr", "Marvell"},
                              {"mana_", "Microsoft MANA"},
                              {"hfi1_", "Omni-Path"},
                              {"cxgb", "Chelsio"}})
    if (starts_with(n.name, head)) return vendor;
  return {};
}

bool sw_mng(const Facts& f, const TopologyNic& n) {
  for (const auto& p : f.pci)
    if (p.address == n.address && !n.address.empty() && p.vpd.ok() && contains(*p.vpd, "SW_MNG")) return true;
  return false;
}

// No routable entry in a GID table that was read: role no-gid. Link-local tables count when nothing better
// exists.
void exclude_without_gid(TopologyWork& w) {
  const Facts& f = w.facts;
  struct Seen {
    bool table = false, routable = false, v2_local = false, missing = false;
  };
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
      exclude(n, "no-gid",
              {"RoCE, and its GID table has no entry in this network namespace",
               "RoCE，但其 GID 表在此网络命名空间中为空"});
    else if (seen[i].table && !seen[i].routable && !seen[i].v2_local)
      exclude(n, "no-gid", {"no RoCE v2 entry in its GID table", "GID 表中没有 RoCE v2 条目"});
    else if (seen[i].table && !seen[i].routable && any_routable)
      exclude(n, "no-gid",
              {"only link-local GIDs, while others have an address that is routed",
               "只有链路本地 GID，而其他设备有可路由地址"});
  }
  (void)any_table;
}

}  // namespace

void exclude_unfit(TopologyWork& w) {
  auto& nics = w.out.nics;
  const Facts& f = w.facts;
  bool any_efa = std::any_of(nics.begin(), nics.end(), is_efa);
  const std::set<std::string> listed(f.paste.verbs_listed.begin(), f.paste.verbs_listed.end());
  bool any_listed =
      std::any_of(nics.begin(), nics.end(), [&](const TopologyNic& o) { return listed.count(o.name); });
  const bool no_nodes = f.paste.verbs_nodes.ok() && !*f.paste.verbs_nodes && f.paste.verbs_listed.empty();
  for (size_t i = 0; i < nics.size(); ++i) {
    TopologyNic& n = nics[i];
    bool near = is_near(best_class(w.out, i));
    if (!w.joined[i]) {
      exclude(n, "unknown",
              {"no distance is shown for it: without a legend it cannot be matched with a column",
               "没有显示其距离：缺少图例时无法与列对应"});
    } else if (n.driver == "none (socket)") {
      exclude(n, "not-rdma",
              {"a socket network of NCCL, not an RDMA device", "NCCL 的 socket 网络，不是 RDMA 设备"});
    } else if (is_efa(n)) {
      exclude(
          n, "efa",
          {"EFA: SRD transport, no IBGDA and no mlx5 verbs", "EFA：SRD 传输，没有 IBGDA，也没有 mlx5 verbs"});
    } else if (sw_mng(f, n)) {
      exclude(n, "nvswitch-bridge",
              {"its vital product data says SW_MNG: it manages NVSwitches, it is no network port",
               "其 VPD 写有 SW_MNG：用于管理 NVSwitch，不是网口"});
    } else if (any_efa && !near && (n.link_layer == "InfiniBand" || starts_with(n.name, "ib"))) {
      exclude(n, "nvswitch-bridge",
              {"an InfiniBand function on a host whose network is EFA: ConnectX-7 bridge of the NVSwitches",
               "EFA 主机上的 InfiniBand 功能：NVSwitch 的 ConnectX-7 桥"});
    } else if (auto vendor = other_vendor(n); !vendor.empty()) {
      exclude(n, "wrong-vendor",
              both("{}: no mlx5 direct verbs, IBGDA can't use it",
                   "{}：不支持 mlx5 直接 verbs，IBGDA 无法使用", vendor));
    } else if (n.state == "down") {
      exclude(n, "down", {"its port is not active", "端口未激活"});
    } else if (f.paste.verbs_list_complete && n.named && !listed.count(n.name) && any_listed) {
      exclude(n, "hidden",
              {"known to sysfs but not to verbs: no uverbs device in this container",
               "sysfs 可见而 verbs 不可见：容器内没有 uverbs 设备"});
    } else if (no_nodes) {
      exclude(n, "hidden",
              {"no verbs device can be opened where this was taken (/dev/infiniband)",
               "取得此文本之处没有可打开的 verbs 设备（/dev/infiniband）"});
    } else if (f.host_kind == "live") {
      const RdmaDevice* d = device_of(f, n.name);
      if (d && d->has_uverbs.ok() && !*d->has_uverbs)
        exclude(n, "hidden", {"no uverbs device node here", "此处没有 uverbs 设备节点"});
    }
  }
  exclude_without_gid(w);
}

}  // namespace ep
