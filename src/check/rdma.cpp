// Checks of RDMA devices and PCIe links. Which device serves which GPU is the topology's business, not ours.
#include <algorithm>
#include <set>

#include "check/areas.h"
#include "check/result.h"
#include "facts/topology.h"

namespace ep {
using namespace check_detail;

namespace {
enum class Truth3 { no, yes, unknown };
CheckResult no_rdma(const Facts& f, const Words& w) {
  return none_here(f, w, w("no RDMA device here", "本机没有 RDMA 设备"));
}
bool is_mlx5(const RdmaDevice& d) {
  return starts_with(d.driver.value_or(""), "mlx5");
}
bool is_active(const RdmaDevice& d) {
  for (const auto& p : d.ports)
    if (p.state.value_or("") == "ACTIVE") return true;
  return false;
}
/// Up or down by its ports, else by its network device (ibdev2netdev shows no more); unknown without either.
Truth3 port_state(const Facts& f, const RdmaDevice& d) {
  bool told = false;
  for (const auto& p : d.ports) {
    if (icontains(p.state.value_or(""), "ACTIVE")) return Truth3::yes;
    told = told || p.state.ok();
  }
  if (told) return Truth3::no;
  for (const auto& n : f.netdevs)
    if (n.operstate.ok() && std::find(d.netdevs.begin(), d.netdevs.end(), n.name) != d.netdevs.end())
      return *n.operstate == "up" ? Truth3::yes : Truth3::no;
  return Truth3::unknown;
}
}  // namespace

CheckResult check_rdma_devices(const Facts& f, const Words& w) {
  if (!f.rdma.empty())
    return pass(w("{} RDMA devices", "{} 个 RDMA 设备", f.rdma.size()), "/sys/class/infiniband");
  if (!f.rdma_readable.ok() && f.rdma_readable.known != Known::absent)
    return unknown(f.rdma_readable, w, "ls /sys/class/infiniband");
  return bad(Verdict::fail,
             w("no RDMA device: EP between nodes is not possible", "没有 RDMA 设备：无法跨节点 EP"),
             "/sys/class/infiniband", "lspci -nn | grep -i -E 'mellanox|infiniband'");
}

CheckResult check_rdma_driver(const Facts& f, const Words& w) {
  if (f.rdma.empty()) return no_rdma(f, w);
  for (const auto& d : f.rdma)
    if (is_mlx5(d)) return pass(w("{} uses mlx5", "{} 使用 mlx5", d.name), d.driver.where);
  for (const auto& d : f.rdma)
    if (!d.driver.ok())
      return unknown(d.driver, w, "ls -l /sys/class/infiniband/" + d.name + "/device/driver");
  if (efa_only(f))
    return bad(
        Verdict::fail,
        w("{} is EFA: between nodes DeepEP works there only as AWS's fork of V2 with aws-ofi-nccl 1.21, "
          "or as V1 on NVSHMEM's libfabric transport",
          "{} 为 EFA：跨节点只能使用 AWS 的 V2 分支（配合 aws-ofi-nccl 1.21），或基于 NVSHMEM libfabric "
          "传输的 V1",
          f.rdma[0].name),
        f.rdma[0].driver.where, "epready lanes");
  return bad(
      Verdict::fail,
      w("{} uses {}; IBGDA needs mlx5", "{} 使用 {}；IBGDA 需要 mlx5", f.rdma[0].name, *f.rdma[0].driver),
      f.rdma[0].driver.where, "epready lanes");
}

CheckResult check_rdma_names(const Facts& f, const Words& w) {
  if (f.rdma.empty()) return no_rdma(f, w);
  for (const auto& d : f.rdma)
    if (is_mlx5(d) && !contains(d.name, "mlx5"))
      return bad(Verdict::warn,
                 w("{} is an mlx5 device under another name; NVSHMEM before 3.5.19 looks for names with mlx5 "
                   "(3.4.5 takes NVSHMEM_HCA_PREFIX)",
                   "{} 是 mlx5 设备但名字不同；3.5.19 之前的 NVSHMEM 只认 mlx5 名字（3.4.5 可设 "
                   "NVSHMEM_HCA_PREFIX）",
                   d.name),
                 "/sys/class/infiniband", "epready plan --lane v1");
  for (const auto& d : f.rdma)  // another name is wrong for an mlx5 device alone
    if (!d.driver.ok() && !contains(d.name, "mlx5"))
      return unknown(d.driver, w, "ls -l /sys/class/infiniband/" + d.name + "/device/driver");
  return pass(w("names are as NVSHMEM expects", "设备名符合 NVSHMEM 预期"), "/sys/class/infiniband");
}

CheckResult check_rdma_state(const Facts& f, const Words& w) {
  if (f.rdma.empty()) return no_rdma(f, w);
  std::string down;
  size_t up = 0;
  for (const auto& d : f.rdma) {
    const Truth3 state = port_state(f, d);
    if (state == Truth3::unknown && (d.ports.empty() || only_shown(f)))
      return bad(Verdict::unknown, w("the state of {} is not shown", "未显示 {} 的状态", d.name),
                 "/sys/class/infiniband/" + d.name, "ibv_devinfo -d " + d.name);
    state == Truth3::yes ? (void)++up : (void)(down += (down.empty() ? "" : ", ") + d.name);
  }
  if (up == 0)
    return bad(Verdict::fail, w("no RDMA port is active", "没有活动的 RDMA 端口"), "/sys/class/infiniband",
               "rdma link");
  if (!down.empty())
    return bad(Verdict::warn, w("not active: {}", "未激活：{}", down), "/sys/class/infiniband", "rdma link");
  return pass(w("{} devices active", "{} 个设备处于活动状态", up), "/sys/class/infiniband");
}

CheckResult check_rdma_gid(const Facts& f, const Words& w) {
  if (f.rdma.empty()) return no_rdma(f, w);
  size_t roce = 0;
  for (const auto& d : f.rdma)
    for (const auto& p : d.ports) {
      if (p.link_layer.value_or("") != "Ethernet" || p.state.value_or("") != "ACTIVE") continue;
      ++roce;
      bool good = false;
      for (const auto& g : p.gids)
        good |= contains(g.type.value_or(""), "v2") && starts_with(g.gid, "0000:0000:0000:0000:0000:ffff:");
      if (!good)
        return bad(Verdict::warn,
                   w("{} has no RoCE v2 GID of an IPv4 address", "{} 没有 IPv4 的 RoCE v2 GID", d.name),
                   "/sys/class/infiniband/" + d.name + "/ports/1/gids", "epready topology");
    }
  if (roce == 0)
    return none_here(f, w,
                     w("no RoCE port: GIDs are not chosen by index", "没有 RoCE 端口：不需要 GID 索引"));
  return pass(w("every RoCE port has a RoCE v2 GID", "每个 RoCE 端口都有 RoCE v2 GID"),
              "/sys/class/infiniband/*/ports/1/gids");
}

CheckResult check_rdma_uverbs(const Facts& f, const Words& w) {
  if (f.rdma.empty()) return no_rdma(f, w);
  for (const auto& d : f.rdma)
    if (d.has_uverbs.ok() && !*d.has_uverbs)
      return bad(
          Verdict::fail,
          w("{} has no /dev/infiniband/uverbs node here", "{} 没有 /dev/infiniband/uverbs 节点", d.name),
          d.has_uverbs.where,
          f.container.runtime.value_or("none") == "none" ? "sudo modprobe ib_uverbs" : "epready lanes");
  for (const auto& d : f.rdma)
    if (!d.has_uverbs.ok()) return unknown(d.has_uverbs, w, "ls /dev/infiniband");
  return pass(w("verbs device nodes are there", "verbs 设备节点齐全"), "/dev/infiniband");
}

CheckResult check_rdma_firmware(const Facts& f, const Words& w) {
  if (f.rdma.empty()) return no_rdma(f, w);
  std::map<std::string, std::set<std::string>> by_type;
  for (const auto& d : f.rdma)
    if (d.firmware.ok())
      by_type[d.hca_type.value_or("?") + "/" + d.board_id.value_or("?")].insert(*d.firmware);
  if (by_type.empty()) return unknown(f.rdma[0].firmware, w, "ibv_devinfo");
  for (const auto& [type, versions] : by_type)
    if (versions.size() > 1)
      return bad(Verdict::warn,
                 w("{} cards run different firmware: {}", "{} 网卡固件不同：{}", type,
                   join({versions.begin(), versions.end()}, ", ")),
                 "/sys/class/infiniband/*/fw_ver", "mlxfwmanager --query");
  return pass(w("firmware is equal on cards of a kind", "同型号网卡固件一致"), f.rdma[0].firmware.where);
}

CheckResult check_rdma_mtu(const Facts& f, const Words& w) {
  if (f.rdma.empty()) return no_rdma(f, w);
  bool any = false;
  // The MTU of a management or storage network is nobody's business here, and changing it may cut the host
  // off.
  const Topology topology = read_topology(f);
  const auto carries_ep = [&](const RdmaDevice& d) {
    return std::any_of(topology.nics.begin(), topology.nics.end(),
                       [&](const auto& n) { return n.name == d.name && n.role == "compute"; });
  };
  for (const auto& d : f.rdma)
    for (const auto& p : d.ports)
      if (p.link_layer.value_or("") == "Ethernet" && p.state.value_or("") == "ACTIVE" && carries_ep(d))
        for (const auto& n : f.netdevs) {
          bool its = false;
          for (const auto& name : d.netdevs) its |= name == n.name;
          if (!its || !n.mtu.ok()) continue;
          any = true;
          if (*n.mtu < 4200)
            return bad(
                Verdict::warn,
                w("{} ({}) has MTU {}: RDMA then runs with 1024-byte packets; 4200 or more gives 4096",
                  "{}（{}）MTU 为 {}：RDMA 只能用 1024 字节包；4200 以上可用 4096", n.name, d.name, *n.mtu),
                n.mtu.where, fmt::format("sudo ip link set {} mtu 9000", n.name));
        }
  if (!any)
    return none_here(f, w, w("no MTU of a RoCE NIC for EP to judge", "没有可判断的 EP 用 RoCE 网卡 MTU"));
  return pass(w("RoCE netdevs carry 4096-byte packets", "RoCE 网卡可用 4096 字节包"), "/sys/class/net/*/mtu");
}

CheckResult check_pcie_width(const Facts& f, const Words& w) {
  bool any = false;
  for (const auto& p : f.pci) {
    bool gpu = p.vendor.value_or(0) == 0x10de && (p.device_class.value_or(0) >> 8) == 0x0302;
    bool nic = p.vendor.value_or(0) == 0x15b3;
    if (!(gpu || nic) || !p.link_width.ok() || !p.link_width_max.ok() || *p.link_width == 0) continue;
    any = true;
    if (*p.link_width < *p.link_width_max)
      return bad(Verdict::warn,
                 w("{} runs at x{} of x{}", "{} 运行在 x{}（最大 x{}）", p.address, *p.link_width,
                   *p.link_width_max),
                 p.link_width.where, fmt::format("lspci -vv -s {}", p.address));
  }
  if (!any)
    return none_here(f, w, w("no GPU or NIC with a readable PCIe link", "没有可读 PCIe 链路的 GPU 或网卡"));
  return pass(w("PCIe links have full width", "PCIe 链路为全宽"), "/sys/bus/pci/devices");
}

}  // namespace ep
