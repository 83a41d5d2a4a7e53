// Checks of GPUs, the NVIDIA driver, its options and services.
#include <algorithm>

#include "base/version.h"
#include "check/areas.h"
#include "check/result.h"

namespace ep {
using namespace check_detail;

CheckResult check_gpu_model(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  const Gpu& first = f.gpus[0];
  for (const auto& g : f.gpus)
    if (g.name.ok() && first.name.ok() && *g.name != *first.name)
      return bad(Verdict::warn,
                 w("GPU {} is {}, GPU 0 is {}", "GPU {} 是 {}，GPU 0 是 {}", g.index, *g.name, *first.name),
                 g.name.where, "epready facts --area gpu");
  if (!first.compute_capability.ok()) return unknown(first.compute_capability, w, "epready facts --area gpu");
  int sm = *first.compute_capability;
  std::string seen = w("{} x {} (sm_{})", "{} 块 {}（sm_{}）", f.gpus.size(), first.name.value_or("GPU"), sm);
  if (sm < 90)
    return bad(Verdict::fail,
               seen + w(": DeepEP between nodes needs sm_90 or newer", "：DeepEP 跨节点需要 sm_90 或更新"),
               first.compute_capability.where, "epready lanes");
  return pass(seen, first.compute_capability.where);
}

CheckResult check_gpu_mig(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  for (const auto& g : f.gpus) {
    if (!g.mig_mode.ok()) return unknown(g.mig_mode, w, "nvidia-smi -q -d MIG");
    if (*g.mig_mode == "Enabled")
      return bad(Verdict::fail,
                 w("GPU {} is split by MIG, which cuts NVLink and peer access",
                   "GPU {} 启用了 MIG，会切断 NVLink 与对等访问", g.index),
                 g.mig_mode.where, fmt::format("sudo nvidia-smi -i {} -mig 0", g.index));
  }
  return pass(w("MIG is off", "MIG 已关闭"), f.gpus[0].mig_mode.where);
}

CheckResult check_gpu_ecc(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  for (const auto& g : f.gpus) {
    if (!g.ecc_uncorrected.ok()) return unknown(g.ecc_uncorrected, w, "nvidia-smi -q -d ECC");
    auto n = parse_int(*g.ecc_uncorrected);
    if (n && *n > 0)
      return bad(
          Verdict::fail,
          w("GPU {} has {} uncorrected memory errors", "GPU {} 有 {} 个不可纠正的显存错误", g.index, *n),
          g.ecc_uncorrected.where, "nvidia-smi -q -d ECC,ROW_REMAPPER");
  }
  return pass(w("no uncorrected memory errors", "没有不可纠正的显存错误"), f.gpus[0].ecc_uncorrected.where);
}

CheckResult check_gpu_nvlink(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  if (f.gpus.size() == 1) return skip(w("one GPU: nothing to link", "只有一块 GPU，无需互联"));
  int up = -1;
  for (const auto& g : f.gpus) {
    if (!g.nvlinks_up.ok()) return unknown(g.nvlinks_up, w, "nvidia-smi nvlink -s");
    if (g.nvlinks_down.ok() && *g.nvlinks_down > 0)
      return bad(Verdict::fail,
                 w("GPU {}: {} NVLink links are down", "GPU {}：{} 条 NVLink 断开", g.index, *g.nvlinks_down),
                 g.nvlinks_up.where, fmt::format("nvidia-smi nvlink -s -i {}", g.index));
    if (up >= 0 && *g.nvlinks_up != up)
      return bad(Verdict::fail,
                 w("GPU {} has {} links up, GPU 0 has {}", "GPU {} 有 {} 条链路，GPU 0 有 {} 条", g.index,
                   *g.nvlinks_up, up),
                 g.nvlinks_up.where, "nvidia-smi nvlink -s");
    up = *g.nvlinks_up;
  }
  if (up == 0)
    return bad(Verdict::warn,
               w("no NVLink: GPUs of this host talk over PCIe", "没有 NVLink：GPU 之间走 PCIe"),
               f.gpus[0].nvlinks_up.where, "nvidia-smi topo -m");
  return pass(w("{} links up on every GPU", "每块 GPU 有 {} 条链路", up), f.gpus[0].nvlinks_up.where);
}

CheckResult check_gpu_fabric(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  for (const auto& g : f.gpus) {
    if (g.fabric_state.known == Known::absent) continue;
    if (!g.fabric_state.ok()) return unknown(g.fabric_state, w, "nvidia-smi -q | grep -A4 Fabric");
    if (*g.fabric_state != "Completed" && *g.fabric_state != "N/A")
      return bad(Verdict::fail,
                 w("GPU {}: fabric state is {} (CUDA then fails with error 802)",
                   "GPU {}：fabric 状态为 {}（CUDA 会报 802）", g.index, *g.fabric_state),
                 g.fabric_state.where, "sudo systemctl restart nvidia-fabricmanager");
    if (g.fabric_status.ok() && *g.fabric_state == "Completed" && *g.fabric_status != "Success")
      return bad(Verdict::fail,
                 w("GPU {}: fabric status is {}", "GPU {}：fabric 结果为 {}", g.index, *g.fabric_status),
                 g.fabric_status.where, "journalctl -u nvidia-fabricmanager");
  }
  return pass(w("fabric is set up, or not needed", "fabric 已就绪或不需要"), f.gpus[0].fabric_state.where);
}

CheckResult check_gpu_p2p(const Facts& f, const Words& w) {
  if (f.gpus.size() < 2) return f.gpus.empty() ? no_gpu(f, w) : skip(w("one GPU", "只有一块 GPU"));
  if (!f.p2p_bad_pairs.empty())
    return bad(Verdict::fail, w("no peer access: {}", "无法对等访问：{}", f.p2p_bad_pairs[0]),
               "nvidia-smi topo -p2p", "nvidia-smi topo -p2p rw");
  if (!f.p2p_known.ok()) return unknown(f.p2p_known, w, "nvidia-smi topo -p2p r");
  return pass(w("every pair has peer access", "任意两块 GPU 都可对等访问"), f.p2p_known.where);
}

CheckResult check_driver_version(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  if (!f.driver.version.ok() && f.driver.version.known != Known::absent)
    return unknown(f.driver.version, w, "cat /proc/driver/nvidia/version");
  if (!f.driver.version.ok())
    return bad(Verdict::fail, w("the NVIDIA driver is not loaded", "NVIDIA 驱动未加载"),
               f.driver.version.where, "epready plan");
  // CUDA minor-version compatibility floors (NVIDIA's CUDA compatibility guide): 12.x 525.60.13, 13.x
  // 580.65.06.
  const std::string& v = *f.driver.version;
  if (compare_versions(VersionOrder::dotted, v, "525.60.13") < 0)
    return bad(Verdict::fail,
               w("driver {} is too old for CUDA 12 (525.60.13)", "驱动 {} 太旧，CUDA 12 需要 525.60.13", v),
               f.driver.version.where, "epready plan");
  if (compare_versions(VersionOrder::dotted, v, "580.65.06") < 0)
    return bad(Verdict::warn,
               w("driver {} serves CUDA 12 only; CUDA 13 stacks need 580.65.06",
                 "驱动 {} 只支持 CUDA 12；CUDA 13 需要 580.65.06", v),
               f.driver.version.where, "epready stacks");
  return pass(w("driver {}", "驱动 {}", v), f.driver.version.where);
}

CheckResult check_driver_flavor(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  if (!f.driver.open_kernel_module.ok())
    return unknown(f.driver.open_kernel_module, w, "modinfo -F license nvidia");
  if (!*f.driver.open_kernel_module)
    return bad(Verdict::warn,
               w("closed kernel module: DMA-BUF is not available, Blackwell is not served",
                 "闭源内核模块：不支持 DMA-BUF，也不支持 Blackwell"),
               f.driver.open_kernel_module.where, "epready plan");
  return pass(w("open kernel module", "开源内核模块"), f.driver.open_kernel_module.where);
}

static const ModuleOption* option(const Facts& f, std::string_view name) {
  for (const auto& o : f.driver.options)
    if (o.name == name) return &o;
  return nullptr;
}

CheckResult check_driver_peer_mapping(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  if (efa_only(f))
    return skip(
        w("EFA: no GPU rings these NICs, a proxy on the CPU does", "EFA：由 CPU 代理驱动，GPU 不敲门铃"));
  const ModuleOption* o = option(f, "NVreg_RegistryDwords");
  if (!o || !o->live.ok()) {
    Fact<std::string> none = o ? o->live : absent<std::string>("/proc/driver/nvidia/params");
    return unknown(none, w, "grep RegistryDwords /proc/driver/nvidia/params");
  }
  auto it = f.driver.registry_dwords.find("PeerMappingOverride");
  if (it != f.driver.registry_dwords.end() && it->second == 1)
    return pass("PeerMappingOverride = 1", o->live.where);
  return bad(
      Verdict::warn,
      w("PeerMappingOverride is not live: the GPU cannot ring the NIC's doorbell (IBGDA's gpu handler, "
        "GIN's GDAKI); handlers and proxies on the CPU do not need it",
        "PeerMappingOverride 未生效：GPU 无法敲网卡门铃（IBGDA 的 gpu handler、GIN 的 GDAKI）；CPU "
        "侧的 handler 与代理不需要"),
      o->live.where, "epready driver");
}

CheckResult check_driver_pending(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  for (const auto& o : f.driver.options) {
    if (!o.pending.ok() || !o.live.ok()) continue;
    auto norm = [](std::string s) {
      s = replace_all(std::move(s), "\"", "");
      while (!s.empty() && s.back() == ';') s.pop_back();
      return s;
    };
    auto number = [](const std::string& s) { return parse_int(s); };
    std::string live = norm(*o.live), pending = norm(*o.pending);
    bool same = live == pending || (number(live) && number(pending) && number(live) == number(pending));
    // Registry strings may write the same number as 1 or 0x1.
    if (!same && o.name == "NVreg_RegistryDwords")
      same = replace_all(live, "=0x1", "=1") == replace_all(pending, "=0x1", "=1");
    if (!same)
      return bad(
          Verdict::warn,
          w("{} is written as \"{}\" but live is \"{}\": reboot, or the initramfs holds an older file",
            "{} 已写为 \"{}\"，但生效值是 \"{}\"：需要重启，或 initramfs 中是旧文件", o.name, pending, live),
          o.set_in.empty() ? o.pending.where : o.set_in.back(), "epready doctor");
  }
  if (only_shown(f) && std::none_of(f.driver.options.begin(), f.driver.options.end(),
                                    [](const auto& o) { return o.pending.ok() && o.live.ok(); }))
    return not_shown(w, "cat /proc/driver/nvidia/params; grep -rE 'options +nvidia' /etc/modprobe.d");
  return pass(w("what modprobe files say is what is live", "modprobe 文件与生效值一致"), "/etc/modprobe.d");
}

CheckResult check_driver_conflict(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  for (const auto& o : f.driver.options)
    if (o.set_in.size() > 1)
      return bad(Verdict::warn,
                 w("{} is set {} times; only the last one counts", "{} 被设置了 {} 次，只有最后一次有效",
                   o.name, o.set_in.size()),
                 join(o.set_in, ", "), "epready plan");
  if (only_shown(f) && std::none_of(f.driver.options.begin(), f.driver.options.end(),
                                    [](const auto& o) { return o.pending.ok(); }))
    return not_shown(w, "grep -rE 'options +nvidia' /etc/modprobe.d");
  return pass(w("every option is set once at most", "每个选项最多设置一次"), "/etc/modprobe.d");
}

CheckResult check_fabric_manager(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  bool switches = false;
  for (const auto& p : f.pci)
    switches |= p.vendor.value_or(0) == 0x10de && (p.device_class.value_or(0) >> 8) == 0x0680;
  if (!switches) return none_here(f, w, w("no NVSwitch is visible here", "本机看不到 NVSwitch"));
  if (!f.driver.fabric_manager.ok())
    return unknown(f.driver.fabric_manager, w, "systemctl status nvidia-fabricmanager");
  if (*f.driver.fabric_manager != "active")
    return bad(Verdict::fail,
               w("NVSwitches are here, the fabric manager is {}", "有 NVSwitch，但 fabric manager 是 {}",
                 *f.driver.fabric_manager),
               f.driver.fabric_manager.where, "sudo systemctl enable --now nvidia-fabricmanager");
  if (f.driver.fabric_manager_version.ok() && f.driver.version.ok() &&
      !starts_with(*f.driver.fabric_manager_version, *f.driver.version))
    return bad(Verdict::fail,
               w("fabric manager {} is not of the driver's version {}",
                 "fabric manager {} 与驱动 {} 版本不同", *f.driver.fabric_manager_version, *f.driver.version),
               f.driver.fabric_manager_version.where, "epready plan");
  return pass(w("fabric manager is active", "fabric manager 已启动"), f.driver.fabric_manager.where);
}

}  // namespace ep
