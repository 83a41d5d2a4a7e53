// See env.h. One function a topic; the order of topics is the order of lines.
#include "plan/env.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/version.h"
#include "plan/env_work.h"

namespace ep {
namespace {

using Work = EnvWork;

void toolkit(Work& w) {
  for (const auto& c : w.facts.cuda)
    // A text that shows `nvcc --version` does not say where it stands.
    if (c.has_nvcc.value_or(false) && starts_with(c.root, "/")) {
      w.set("CUDA_HOME", c.root,
            w.request.lane == "v2" ? "V2 compiles kernels at run time with this toolkit"
                                   : "the toolkit that builds of DeepEP look for",
            w.request.lane == "v2" ? "V2 运行时用该工具包编译内核" : "DeepEP 编译所用的 CUDA 工具包");
      break;
    }
}

// Common head of the compute NICs' names: rocep, ibp ...; empty when they share none.
std::string common_prefix(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::string p = names[0];
  for (const auto& n : names) {
    size_t k = 0;
    while (k < p.size() && k < n.size() && p[k] == n[k]) ++k;
    p.resize(k);
  }
  while (!p.empty() && p.back() >= '0' && p.back() <= '9') p.pop_back();
  return p;
}

void device_names(Work& w) {
  auto usable = w.topology.usable();
  bool all_mlx5 =
      std::all_of(usable.begin(), usable.end(), [](const std::string& n) { return starts_with(n, "mlx5"); });
  if (usable.empty()) return;
  if (all_mlx5) {
    w.leave("NVSHMEM_HCA_PREFIX", "mlx5", "the devices are named mlx5_*, which every version looks at",
            "设备名为 mlx5_*，所有版本都会查看");
    return;
  }
  const std::string shared = common_prefix(usable);
  if (w.out.nvshmem.empty() && !shared.empty()) {
    w.set("NVSHMEM_HCA_PREFIX", shared,
          fmt::format(
              "devices are named {}*, and which NVSHMEM will read this is not known: 3.4.5 looks at mlx5* "
              "only without it, 3.5.19 and newer find them either way",
              shared),
          fmt::format("设备名为 {}*，且 NVSHMEM 版本未知：3.4.5 不设它只看 mlx5*，3.5.19 及更新版本两者皆可",
                      shared));
  } else if (w.nvshmem_at_least("3.5.19")) {
    w.leave("NVSHMEM_HCA_PREFIX", shared, "NVSHMEM 3.5.19 and newer look at every name but smi*",
            "NVSHMEM 3.5.19 及更新版本查看除 smi* 外的所有设备名");
  } else if (w.nvshmem_at_least("3.4.5")) {
    const std::string& p = shared;
    if (p.empty()) {
      Finding f;
      f.code = "prefix_not_mlx5";
      f.severity = Severity::fail;
      f.title = "one NVSHMEM_HCA_PREFIX cannot cover these device names: " + join(usable, ", ");
      f.title_zh = "一个 NVSHMEM_HCA_PREFIX 无法涵盖这些设备名：" + join(usable, ", ");
      f.next = "rdma dev set OLD name mlx5_N, or NVSHMEM 3.5.19 and newer";
      w.out.findings.push_back(f);
    } else {
      w.set("NVSHMEM_HCA_PREFIX", p,
            fmt::format("devices are named {}*; NVSHMEM {} looks at mlx5* only", p, w.out.nvshmem),
            fmt::format("设备名为 {}*，NVSHMEM {} 默认只看 mlx5*", p, w.out.nvshmem));
    }
  } else {
    Finding f;
    f.code = "prefix_not_mlx5";
    f.severity = Severity::fail;
    f.title =
        fmt::format("NVSHMEM {} takes devices named mlx5* only, and no variable changes that", w.out.nvshmem);
    f.title_zh = fmt::format("NVSHMEM {} 只接受名为 mlx5* 的设备，没有变量能改变这一点", w.out.nvshmem);
    f.next = "rdma dev set OLD name mlx5_N, or NVSHMEM 3.4.5 and newer";
    w.out.findings.push_back(f);
  }
}

void ibgda(Work& w) {
  w.set("NVSHMEM_IB_ENABLE_IBGDA", "1",
        "the GPU starts transfers itself; DeepEP V1 sets it anyway, tests of NVSHMEM need it",
        "由 GPU 发起传输；DeepEP V1 会自行设置，NVSHMEM 自带测试需要它");
  const auto& d = w.facts.driver;
  auto it = d.registry_dwords.find("PeerMappingOverride");
  bool known = false;
  for (const auto& o : d.options) known |= o.name == "NVreg_RegistryDwords" && o.live.ok();
  if (it != d.registry_dwords.end() && it->second == 1)
    w.set("NVSHMEM_IBGDA_NIC_HANDLER", "gpu",
          "the loaded driver has PeerMappingOverride=1: the GPU rings the NIC; a silent fall-back becomes an "
          "error",
          "已加载驱动有 PeerMappingOverride=1：由 GPU 敲门铃；禁止静默降级");
  else
    w.leave("NVSHMEM_IBGDA_NIC_HANDLER", "gpu",
            known ? "the loaded driver lacks PeerMappingOverride=1: gpu would fail, auto falls back where "
                    "the version can"
                  : "the loaded driver's options are not known here: auto asks the driver",
            known ? "已加载驱动没有 PeerMappingOverride=1：gpu 会失败，auto 可降级"
                  : "驱动参数未知，auto 会自行判断");
  w.leave("NVSHMEM_REMOTE_TRANSPORT", "ibgda", "ibgda is no value of it; IBGDA has its own switch above",
          "ibgda 不是合法值；IBGDA 由上面的开关启用");
  w.leave("NVSHMEM_DISABLE_CUDA_VMM", "1", "not needed; it takes MNNVL and large heaps away",
          "不需要，且会失去 MNNVL 与大堆");
  w.leave(
      "LD_PRELOAD", "libnvshmem_host.so.3",
      "hides two NVSHMEM copies in one process instead of having one; `epready lanes` shows which are there",
      "只是掩盖进程内两份 NVSHMEM；应只保留一份");
}

void mapping(Work& w) {
  const auto& t = w.topology;
  if (t.strings.deep_ep.empty()) {
    if (!t.usable().empty())
      w.leave("DEEP_EP_DEVICE_TO_HCA_MAPPING", "0:mlx5_0:1,...",
              fmt::format("the mapping is {}: {}", to_string(t.mapping.confidence), t.mapping.reason.en),
              fmt::format("无法推导 GPU 与网卡的对应，不输出猜测值：{}", t.mapping.reason.zh));
    return;
  }
  bool shared_tie = std::any_of(t.findings.begin(), t.findings.end(),
                                [](const Finding& f) { return f.code == "tie_pair_shared_switch"; });
  w.set("DEEP_EP_DEVICE_TO_HCA_MAPPING", t.strings.deep_ep,
        fmt::format("GPU to NIC by {}{}; read by DeepEP with pull request 466 or epready's hook",
                    t.mapping.reason.en, shared_tie ? ", two GPUs tie on two NICs here" : ""),
        fmt::format("GPU 与网卡的对应：{}{}；由带 PR 466 的 DeepEP 或 epready 钩子读取", t.mapping.reason.zh,
                    shared_tie ? "，此处两块 GPU 与两张网卡等距" : ""));
  for (const auto& [gpu, nic] : t.mapping.pairs) w.out.per_rank.emplace_back(gpu, nic + ":1");
  std::string without;
  for (const auto& g : t.gpus)
    if (!t.mapping.pairs.count(g.index)) without += (without.empty() ? "" : ", ") + std::to_string(g.index);
  if (!without.empty()) {
    Finding f;
    f.code = "mapping_incomplete";
    f.severity = Severity::warn;
    f.title = fmt::format("GPU {} has no NIC of its own here: DeepEP stops there with KeyError", without);
    f.title_zh = fmt::format("GPU {} 在此没有自己的网卡：DeepEP 会以 KeyError 终止", without);
    f.next = "epready topology";
    w.out.findings.push_back(f);
  }
  w.leave("NVSHMEM_HCA_PE_MAPPING",
          t.strings.hca_pe_mapping.empty() ? "mlx5_0:1:1,..." : t.strings.hca_pe_mapping,
          "DeepEP's processes each are PE 0 of their own world: all would take the first entry; per-rank "
          "lines of this environment do it right",
          "DeepEP 各进程都是自己 world 的 PE 0，会都取第一项；请用本环境的每 rank 变量");
}

void nccl_devices(Work& w) {
  const auto& t = w.topology;
  if (!t.strings.nccl_ib_hca.empty())
    w.set("NCCL_IB_HCA", t.strings.nccl_ib_hca,
          fmt::format("only the {} compute NICs, by exact name (without = mlx5_1 also takes mlx5_10)",
                      t.usable().size()),
          "只用计算网卡，精确匹配（无 = 时 mlx5_1 也匹配 mlx5_10）");
}

void gid(Work& w) {
  const auto& g = w.topology.gid;
  if (!g.needed.value_or(false)) {
    if (g.needed.has_value())
      w.leave("NVSHMEM_IB_GID_INDEX", "3", "InfiniBand or no RoCE device: there is no GID to choose",
              "InfiniBand 或无 RoCE，不需要选择 GID");
    return;
  }
  if (g.ipv6) {
    w.set("NVSHMEM_IB_ADDR_FAMILY", "AF_INET6",
          "only IPv6 GIDs are routed here; the automatic choice looks for IPv4", "这里只有 IPv6 GID 可路由");
    w.set("NCCL_IB_ADDR_FAMILY", "AF_INET6", "the same for NCCL", "NCCL 同理");
  }
  std::set<int> values;
  for (const auto& [d, i] : g.per_device) values.insert(i);
  if (g.pin && values.size() == 1) {
    w.set("NCCL_IB_GID_INDEX", std::to_string(*values.begin()), g.reason.en, g.reason.zh);
    return;
  }
  std::string shown;
  for (const auto& [d, i] : g.per_device) shown += fmt::format("{}{}={}", shown.empty() ? "" : " ", d, i);
  w.leave("NVSHMEM_IB_GID_INDEX", "3",
          fmt::format("automatic choice takes RoCE v2 on each device{}; a fixed number breaks on the first "
                      "host that differs",
                      shown.empty() ? "" : " (here " + shown + ")"),
          "自动选择会在每个设备上取 RoCE v2；固定数字在不同主机上会出错");
}

void interfaces(Work& w) {
  std::string name;
  for (const auto& n : w.facts.netdevs)
    if (n.default_route.value_or(false)) name = n.name;
  if (name.empty() || !w.request.many_nodes) return;
  const std::string en = "the interface with the default route: rails do not carry the start of a job",
                    zh = "默认路由所在接口，用于建立连接";
  if (w.request.lane == "v1") w.set("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", name, en, zh);
  w.set("NCCL_SOCKET_IFNAME", "=" + name, en, zh);
  w.set("GLOO_SOCKET_IFNAME", name, en, zh);
}

void v2(Work& w) {
  const auto& t = w.topology;
  if (!t.strings.ep_nic_name.empty() && t.strings.ep_nic_name != "mlx5_0")
    w.set("EP_NIC_NAME", t.strings.ep_nic_name,
          "V2 reads the port rate of this device; its default mlx5_0 is no compute NIC here or not there",
          "V2 读取该设备速率；默认的 mlx5_0 在此不是计算网卡");
  bool dual = std::any_of(t.findings.begin(), t.findings.end(),
                          [](const Finding& f) { return f.code == "dual_port"; });
  if (dual) w.set("NCCL_IB_MERGE_NICS", "0", "fused ports of a card have no GIN", "合并端口后没有 GIN");
  w.leave("NCCL_CROSS_NIC", "0", "keeps rails apart: V2 without hybrid mode can't connect",
          "V2 非 hybrid 模式无法连接");
  w.leave("NCCL_CUMEM_ENABLE", "0", "takes symmetric memory and with it GIN away", "会失去对称内存和 GIN");
}

void mnnvl(Work& w) {
  bool domain = std::any_of(w.topology.findings.begin(), w.topology.findings.end(),
                            [](const Finding& f) { return f.code == "mnnvl_domain"; });
  if (!domain) return;
  w.set("NCCL_MNNVL_ENABLE", "1", "NVLink joins the hosts of the rack (IMEX must run)",
        "机架内主机由 NVLink 互联（需 IMEX）");
  w.set("NCCL_CUMEM_ENABLE", "1", "NVLink between hosts needs cuMem allocations", "跨机 NVLink 需要 cuMem");
  if (w.request.lane == "v1")
    w.leave("NVSHMEM_DISABLE_MNNVL", "0", "DeepEP V1 writes it from its argument allow_mnnvl",
            "DeepEP V1 由 allow_mnnvl 参数决定");
}

/// EFA alone: nothing that is made for mlx5 belongs here.
bool efa_alone(const Topology& t) {
  return t.usable().empty() &&
         std::any_of(t.nics.begin(), t.nics.end(), [](const TopologyNic& n) { return n.role == "efa"; });
}
void efa(Work& w) {
  if (w.request.lane == "v2") {
    w.set("NCCL_GIN_TYPE", "2", "GIN over EFA by a proxy on the CPU", "EFA 上由 CPU 代理实现 GIN");
    w.set("NCCL_SYM_GIN_KERNELS_ENABLE", "0", "NCCL's own symmetric kernels need signals that EFA lacks",
          "NCCL 自带对称内核需要 EFA 没有的信号");
  }
  w.leave("NVSHMEM_IB_ENABLE_IBGDA", "1", "IBGDA does not exist on EFA", "EFA 上没有 IBGDA");
  if (w.request.lane == "v2")
    w.leave("EP_DISABLE_GIN", "1",
            "inside one node DeepEP's own V2 works with it; between nodes GIN is needed",
            "单机时 DeepEP 原版 V2 需要它；跨节点则需要 GIN");
  Finding f;
  f.code = "transport_unsupported_efa";
  f.severity = Severity::fail;
  f.title =
      "EFA is the only network: between nodes this environment serves AWS's fork of DeepEP V2 alone "
      "(aws-ofi-nccl 1.21, EFA installer 1.50.0)";
  f.title_zh =
      "只有 EFA 网络：跨节点时此环境仅适用于 AWS 的 DeepEP V2 分支（aws-ofi-nccl 1.21，EFA installer "
      "1.50.0）";
  f.next = "epready lanes";
  w.out.findings.push_back(std::move(f));
}

// What a site switched off stays off: NVLink multicast.
void keep_multicast_off(Work& w) {
  for (const char* name : {"NCCL_NVLS_ENABLE", "NVSHMEM_DISABLE_NVLS"})
    if (auto it = w.facts.environment.find(name); it != w.facts.environment.end() && !it->second.empty())
      w.set(name, it->second, "set on this host already: kept as it is", "本机已设置，保持不变");
}

}  // namespace

std::string found_version(const Facts& facts, const std::string& wheel_prefix) {
  for (const auto& e : facts.python)
    for (const auto& p : e.packages)
      if (starts_with(p.name, wheel_prefix)) return p.version;
  return {};
}

EnvPlan compute_env(const Facts& facts, const Topology& topology, const Variables& variables,
                    const EnvRequest& request) {
  Work w{facts, topology, variables, request, {}};
  w.out.lane = request.lane;
  w.out.nvshmem = request.nvshmem.empty() ? found_version(facts, "nvidia-nvshmem-cu") : request.nvshmem;
  w.out.nccl = request.nccl.empty() ? found_version(facts, "nvidia-nccl-cu") : request.nccl;
  env_python(w);
  toolkit(w);
  bool usable = !topology.usable().empty();
  if (request.lane == "local" || !request.many_nodes) {
    keep_multicast_off(w);
    return std::move(w.out);
  }
  if (efa_alone(topology)) efa(w);
  if (request.lane == "v1" && usable) {
    ibgda(w);
    device_names(w);
    mapping(w);
  }
  if (usable) {
    nccl_devices(w);
    gid(w);
  }
  interfaces(w);
  mnnvl(w);
  if (request.lane == "v2") v2(w);
  env_gib(w);
  keep_multicast_off(w);
  // gIB's own value of a variable wins over advice against it.
  std::erase_if(w.out.left_out, [&](const EnvLine& l) {
    return std::any_of(w.out.lines.begin(), w.out.lines.end(),
                       [&](const EnvLine& k) { return k.name == l.name; });
  });
  return std::move(w.out);
}

}  // namespace ep
