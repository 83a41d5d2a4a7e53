// Step five: what else the facts say about EP on this host: GPU generation, NVLink, Grace, names and order,
// NUMA. Driver switches and software: topology_software.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "facts/topology_parts.h"

namespace ep {
namespace {

int nv_count(const std::string& cell) {
  if (!starts_with(cell, "NV")) return 0;
  return int(parse_int(std::string_view(cell).substr(2)).value_or(0));
}

struct NvlinkView {
  int max = 0;
  size_t pairs = 0, linked = 0;
  std::vector<size_t> peers;  // by GPU
};

NvlinkView view_nvlink(const Topology& t) {
  NvlinkView v;
  v.peers.assign(t.gpus.size(), 0);
  for (size_t a = 0; a < t.gpus.size(); ++a)
    for (size_t b = 0; b < t.gpus.size(); ++b) {
      if (a == b || t.gpu_gpu[a].size() <= b || t.gpu_gpu[a][b].empty()) continue;
      ++v.pairs;
      if (int n = nv_count(t.gpu_gpu[a][b])) {
        ++v.linked;
        ++v.peers[a];
        v.max = std::max(v.max, n);
      }
    }
  return v;
}

void conclude_sm(TopologyWork& w, const NvlinkView& v) {
  Topology& t = w.out;
  bool any_known = std::any_of(t.gpus.begin(), t.gpus.end(), [](const TopologyGpu& g) { return g.sm > 0; });
  if (any_known || t.gpus.empty()) return;
  int sm = 0;
  std::string why;
  bool full = v.linked > 0 && v.linked == v.pairs;
  // Boards of four H100 and bridges of four H200 NVL have NV6 between any two; fewer links, or six among more
  // GPUs, are older.
  if (v.max > 0 && (v.max <= 4 || (v.max <= 6 && full && t.gpus.size() > 4))) {
    sm = 80;
    why = fmt::format("NV{} links: no Hopper or Blackwell board has so few", v.max);
  } else if (v.max == 12 && full && (t.gpus.size() > 2 || w.said("container_partial_gpus"))) {
    // Two alone may be H100 joined by a bridge; two of a board with more NICs are not.
    sm = 80;
    why = "NV12 between all GPUs: the A100's link count";
  }
  if (sm == 0 && w.facts.paste.static_xml) {
    double speed = 0;
    bool all = true;
    for (const auto& g : t.gpus)
      for (const auto& p : w.facts.pci)
        if (p.address == g.address) {
          if (!p.link_speed_gts.ok()) all = false;
          speed = std::max(speed, p.link_speed_gts.value_or(0));
        }
    if (all && speed > 0 && speed <= 16.5) {
      sm = 80;
      why = fmt::format("the file gives its GPUs {} GT/s: PCIe 4 or older, A100 class", speed);
    }
  }
  if (sm)
    for (auto& g : t.gpus) {
      g.sm = sm;
      g.sm_source = why;
    }
}

void judge_sm(TopologyWork& w) {
  Topology& t = w.out;
  std::string bad, why;
  for (const auto& g : t.gpus)
    if (g.sm > 0 && (g.sm < 90 || g.sm >= 110)) {
      // Concluded from link counts: the generation is only bounded.
      const char* bound = starts_with(g.sm_source, "NV") ? " or older" : "";
      bad = fmt::format("sm_{}{}{}", g.sm, bound, g.name.empty() ? "" : " (" + g.name + ")");
      why = g.sm_source;
    }
  if (!bad.empty()) {
    auto& f = w.say("sm_unsupported", Severity::fail,
                    both("{}: DeepEP's internode kernels are built for sm_90 and sm_100",
                         "{}：DeepEP 跨机内核只面向 sm_90 与 sm_100", bad));
    f.evidence.push_back({why.empty() ? "facts" : why, 0, bad});
    return;
  }
  bool unknown = std::all_of(t.gpus.begin(), t.gpus.end(), [](const TopologyGpu& g) { return g.sm == 0; });
  bool near = std::any_of(t.nics.begin(), t.nics.end(), [&](const TopologyNic& n) {
    return is_near(best_class(t, size_t(&n - t.nics.data())));
  });
  if (t.gpus.size() == 1 && unknown && !near && w.has_distances)
    w.say("sm_unsupported", Severity::fail,
          {"one GPU without NVLink peers and without a NIC on its switch, model not shown: not a machine "
           "that DeepEP targets",
           "单块 GPU，没有 NVLink 伙伴，同一交换机下也没有网卡，型号未知：不是 DeepEP 面向的机器"});
}

void judge_nvlink(TopologyWork& w, const NvlinkView& v) {
  Topology& t = w.out;
  if (t.gpus.size() < 2) return;
  if (t.nvlink_shown && v.pairs > 0 && v.linked < v.pairs) {
    std::string lone;
    size_t without = 0;
    for (size_t g = 0; g < t.gpus.size(); ++g)
      if (t.gpus[g].row_known && v.peers[g] == 0) {
        lone += fmt::format("{}GPU{}", lone.empty() ? "" : ", ", t.gpus[g].index);
        ++without;
      }
    if (v.linked > 0 && without > 0 && without < t.gpus.size())
      w.say("gpu_nvlink_down", Severity::fail,
            both("{0} {1} without NVLink to any GPU while the others are linked",
                 "{0} 与其他 GPU 没有 NVLink，而其余 GPU 之间有", lone, without == 1 ? "is" : "are"));
    else
      w.say("nvlink_incomplete", Severity::fail,
            v.linked == 0
                ? BothWords{"no NVLink between the GPUs: the intranode half of DeepEP needs peer access "
                            "between "
                            "all of them over NVLink",
                            "GPU 之间没有 NVLink：DeepEP 的机内部分需要所有 GPU 之间经 NVLink 直接访问"}
                : BothWords{
                      "NVLink joins only some pairs of GPUs (bridges): DeepEP needs it between all of them",
                      "NVLink 只连接部分 GPU 对（桥接）：DeepEP 需要全互联"});
  }
  for (const auto& pair : w.facts.p2p_bad_pairs) {
    auto& f = w.said("p2p_incomplete")
                  ? w.out.findings.back()
                  : w.say("p2p_incomplete", Severity::fail,
                          {"peer access is refused between some GPUs", "部分 GPU 之间不允许直接访问"});
    if (f.evidence.size() < 5) f.evidence.push_back({"nvidia-smi topo -p2p", 0, pair});
  }
  if (!w.facts.matrices.empty() && w.facts.matrices[0].pcie_only)
    w.say("legend_mp_no_nvlink", Severity::info,
          {"topo -mp prints PCIe paths only: it does not say whether there is NVLink",
           "topo -mp 只打印 PCIe 路径：不说明是否有 NVLink"});
}

void judge_mig(TopologyWork& w) {
  for (const auto& g : w.facts.gpus)
    if (g.mig_mode.value_or("") == "Enabled") {
      auto& f = w.say("mig_enabled", Severity::fail,
                      {"MIG is on: its instances have neither NVLink nor peer access, which EP needs",
                       "MIG 已开启：其实例没有 NVLink，也不能直接访问，而 EP 需要它们"});
      f.evidence.push_back({g.mig_mode.where, 0, fmt::format("GPU{}: MIG enabled", g.index)});
      f.next = "nvidia-smi -mig 0";
      return;
    }
}

// A text that names no NIC says that there is none only where it lists what is there.
bool nics_looked_for(const Facts& f) {
  if (f.host_kind != "paste" || !f.matrices.empty()) return true;
  return std::any_of(f.paste.pieces.begin(), f.paste.pieces.end(), [](const PasteFacts::Piece& p) {
    return p.kind == "nccl-xml" || p.kind == "hwloc-xml" || p.kind == "lstopo";
  });
}

void judge_transport(TopologyWork& w) {
  Topology& t = w.out;
  if (t.gpus.empty() && w.facts.host_kind != "paste")
    w.say("no_gpu", Severity::fail, {"no NVIDIA GPU is visible here", "此处看不到 NVIDIA GPU"});
  size_t usable = t.usable().size();
  bool mnnvl = in_nvlink_domain(t, w.facts);
  auto count = [&](const char* role) {
    return std::count_if(t.nics.begin(), t.nics.end(), [&](const TopologyNic& n) { return n.role == role; });
  };
  if (usable == 0) {
    if (count("efa"))
      w.say("transport_unsupported_efa", Severity::fail,
            {"EFA is the only network: DeepEP with IBGDA is not possible; NVSHMEM needs libfabric, V2 the "
             "EFA build",
             "只有 EFA 网络：DeepEP 无法使用 IBGDA；NVSHMEM 需要 libfabric，V2 需要 EFA 版本"});
    if (count("nvswitch-bridge")) {
      auto& f = w.say("nvswitch_bridge_present", Severity::fail,
                      {"the only InfiniBand functions here manage NVSwitches; a rule that takes ib* for "
                       "compute NICs picks exactly those",
                       "这里仅有的 InfiniBand 功能用于管理 NVSwitch；按 ib* 选计算网卡的规则恰好会选中它们"});
      f.severity = Severity::fail;
    }
    if (count("wrong-vendor"))
      w.say("wrong_vendor", Severity::fail,
            {"the RDMA devices have no mlx5 direct verbs: IBGDA can't use them",
             "RDMA 设备不支持 mlx5 直接 verbs：IBGDA 无法使用"});
    bool other = count("efa") || count("wrong-vendor") || w.said("gid_none") || w.said("missing_nic");
    bool all_down = !t.nics.empty() && size_t(count("down")) == t.nics.size();
    bool topology_known = !t.gpus.empty() || w.facts.host_kind != "paste" || all_down;
    bool none_there = t.nics.empty() && nics_looked_for(w.facts);
    if (!other && topology_known && (w.has_distances || none_there || count("down") || count("not-rdma")))
      w.say("no_rdma", mnnvl ? Severity::warn : Severity::fail,
            mnnvl
                ? BothWords{"no RDMA NIC is usable: EP reaches as far as the NVLink domain of the rack",
                            "没有可用的 RDMA 网卡：EP 只能到达机架的 NVLink 域"}
                : BothWords{"no RDMA NIC is usable: EP works inside this host over NVLink, not across hosts",
                            "没有可用的 RDMA 网卡：EP 可在本机内走 NVLink，不能跨机"});
  } else {
    if (count("efa"))
      w.say("efa_present", Severity::info,
            {"EFA devices stand beside the usable NICs", "可用网卡之外还有 EFA 设备"});
    if (count("wrong-vendor"))
      w.say("wrong_vendor", Severity::info,
            {"devices of other vendors are left out", "其他厂商的设备已排除"});
  }
  if (mnnvl)
    w.say("mnnvl_domain", Severity::info,
          {"inside the NVLink domain EP goes over NVLink (IMEX, MNNVL); NICs matter between domains",
           "NVLink 域内 EP 走 NVLink（IMEX、MNNVL）；网卡只在域间起作用"});
}

void judge_order(TopologyWork& w) {
  Topology& t = w.out;
  const auto& pairs = t.mapping.pairs;
  std::vector<std::pair<int, int>> numbers;  // GPU, device number
  bool other_names = false;
  for (const auto& [g, name] : pairs) {
    int n = device_number(name);
    if (n >= 0) numbers.emplace_back(g, n);
    const TopologyNic* nic = t.nic(name);
    if (nic && nic->named && !starts_with(name, "mlx5")) other_names = true;
  }
  bool offset = std::any_of(numbers.begin(), numbers.end(), [](auto p) { return p.first != p.second; });
  bool shared = !t.mapping.constraint.empty() && starts_with(t.mapping.constraint, "max_");
  bool named = std::all_of(numbers.begin(), numbers.end(), [&](auto) { return true; }) && !numbers.empty();
  for (const auto& [g, name] : pairs) named &= t.nic(name) && t.nic(name)->named;
  if (offset && named && !shared)
    w.say("naming_offset", Severity::warn,
          {"device numbers do not follow GPU numbers: 0:mlx5_0,1:mlx5_1,... is wrong here",
           "设备编号与 GPU 编号不一致：0:mlx5_0,1:mlx5_1,... 在这里是错的"});
  if (numbers.size() >= 3) {
    size_t falls = 0, rises = 0;
    for (size_t i = 1; i < numbers.size(); ++i) {
      falls += numbers[i].second < numbers[i - 1].second;
      rises += numbers[i].second > numbers[i - 1].second;
    }
    if (falls >= 2 && falls > rises)
      w.say("order_reversed", Severity::warn,
            {"higher GPUs are next to lower device numbers", "编号大的 GPU 邻近编号小的网卡"});
  }
  if (other_names || std::any_of(t.nics.begin(), t.nics.end(), [](const TopologyNic& n) {
        return n.usable && n.named && !starts_with(n.name, "mlx5");
      }))
    w.say(
        "prefix_not_mlx5", Severity::warn,
        {"device names do not start with mlx5: NVSHMEM up to 3.3 skips them, 3.4.5 needs NVSHMEM_HCA_PREFIX, "
         "3.5.19 and newer take them",
         "设备名不以 mlx5 开头：NVSHMEM 3.3 及更早会跳过，3.4.5 需要 NVSHMEM_HCA_PREFIX，3.5.19 及更新可用"});
}

void judge_numa(TopologyWork& w) {
  Topology& t = w.out;
  if (w.facts.matrices.empty() || t.gpus.size() < 2) return;
  std::set<std::string> cpus;
  std::set<int> nodes;
  size_t with = 0;
  bool sys = false, cut_list = false;
  for (const auto& g : t.gpus) {
    if (!g.cpu_affinity.empty()) {
      cpus.insert(g.cpu_affinity);
      ++with;
    }
    if (g.numa_node >= 0) nodes.insert(g.numa_node);
    cut_list |=
        std::count(g.cpu_affinity.begin(), g.cpu_affinity.end(), ',') >= 4 && !contains(g.cpu_affinity, "-");
  }
  for (const auto& row : t.gpu_nic)
    for (auto c : row) sys |= c == LinkClass::sys;
  size_t shown =
      size_t(std::count_if(t.gpus.begin(), t.gpus.end(), [](const TopologyGpu& g) { return g.row_known; }));
  if (with < shown)
    w.say("numa_info_missing", Severity::info,
          {"CPU affinity is not shown for some GPUs (container)", "部分 GPU 未显示 CPU 亲和性（容器）"});
  if (shown >= 8 && with == shown && cpus.size() == 1 && nodes.size() == 1) {
    if (sys)
      w.say("numa_info_inconsistent", Severity::warn,
            {"all GPUs report one NUMA node while paths between them are SYS: firmware hides NUMA, do not "
             "rank by it",
             "所有 GPU 报告同一 NUMA 节点，但彼此路径为 SYS：固件隐藏了 NUMA，不要据此排序"});
    else if (!t.nics.empty())
      w.say("numa_off", Severity::warn,
            {"one NUMA node holds all CPUs: NUMA is off in the firmware, PCIe distances still count",
             "一个 NUMA 节点含全部 CPU：固件关闭了 NUMA，PCIe 距离仍有效"});
  }
  if (nodes.size() > 2)
    w.say("subnuma", Severity::info,
          both("{} NUMA nodes hold GPUs: SYS also appears inside a socket",
               "{} 个 NUMA 节点上有 GPU：同一插槽内也会出现 SYS", nodes.size()));
  if (cut_list)
    w.say("cpu_affinity_truncated", Severity::info,
          {"CPU lists are cut short by the tool; do not count cores from them",
           "工具截断了 CPU 列表；不要据此数核"});
}

}  // namespace

bool in_nvlink_domain(const Topology& t, const Facts& f) {
  if (t.gpus.size() < 2) return false;
  for (const auto& g : t.gpus)
    if (contains(g.name, "GB200") || contains(g.name, "GB300") || contains(g.name, "GH200")) return true;
  if (!f.matrices.empty())
    for (const auto& [label, node] : f.matrices[0].gpu_numa)
      if (parse_int(node)) return true;  // GPU memory as a NUMA node: a coherent link to the CPU
  // Grace has 72 cores without SMT.
  std::set<std::string> sets;
  for (const auto& g : t.gpus) sets.insert(g.cpu_affinity);
  return t.gpus.size() == 4 && sets == std::set<std::string>{"0-71", "72-143"};
}

void judge_gpus(TopologyWork& w) {
  NvlinkView v = view_nvlink(w.out);
  conclude_sm(w, v);
  judge_sm(w);
  judge_nvlink(w, v);
  judge_mig(w);
  size_t n = w.out.gpus.size();
  if (n > 1 && n != 2 && n != 4 && n != 8 && n != 16 && !w.rows_missing && !w.facts.matrices.empty())
    w.say("gpu_count_unusual", Severity::warn,
          both("{} GPUs: EP groups have 2, 4 or 8 ranks a host", "{} 块 GPU：EP 组通常每机 2、4 或 8 个 rank",
               n));
}

void judge_names(TopologyWork& w) {
  judge_transport(w);
  judge_software(w);
  judge_order(w);
  judge_numa(w);
  const Topology& t = w.out;
  if (std::any_of(t.nics.begin(), t.nics.end(), [](const TopologyNic& n) { return n.usable && n.is_bond; }))
    w.say("bond_is_compute", Severity::warn,
          {"the compute NICs are bonds: their rate is the sum of two ports, one flow uses one of them",
           "计算网卡是绑定口：速率为两口之和，单条流只用其中一口"});
  if (std::any_of(t.nics.begin(), t.nics.end(), [](const TopologyNic& n) { return !n.usable && n.is_bond; }))
    w.say("bond_is_mgmt", Severity::info, {"a bond is not for EP on this host", "本机的绑定口不用于 EP"});
  bool unknown = std::any_of(t.nics.begin(), t.nics.end(),
                             [](const TopologyNic& n) { return n.usable && n.state.empty(); });
  if (unknown)
    w.say("nic_state_unknown", Severity::info,
          {"port state, rate or link layer of some NICs is not shown; read it on the host before trusting "
           "the mapping",
           "部分网卡的端口状态、速率或链路类型未显示；采信对应关系前请在主机上读取"});
  if (!w.facts.matrices.empty() && w.facts.matrices[0].old_format)
    w.say("old_driver_format", Severity::info,
          {"table of a driver up to 470: NIC columns carry the device names",
           "470 及更早驱动的表：网卡列即设备名"});
}

}  // namespace ep
