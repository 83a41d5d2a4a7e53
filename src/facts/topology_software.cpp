// Step five, second half: what the driver's switches, the software of a paste and dkms say about EP.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "facts/topology_parts.h"

namespace ep {
namespace {

BothWords driver_gap(bool stream, bool dwords) {
  if (stream && dwords)
    return {
        "the loaded driver has EnableStreamMemOPs off and no PeerMappingOverride=1 in RegistryDwords: the "
        "GPU "
        "may not ring the NIC (IBGDA)",
        "已加载驱动的 EnableStreamMemOPs 未开，RegistryDwords 中也没有 PeerMappingOverride=1：GPU "
        "不能敲网卡门铃（IBGDA）"};
  if (stream)
    return {"the loaded driver has EnableStreamMemOPs off: the GPU may not ring the NIC (IBGDA)",
            "已加载驱动的 EnableStreamMemOPs 未开：GPU 不能敲网卡门铃（IBGDA）"};
  return {
      "the loaded driver has no PeerMappingOverride=1 in RegistryDwords: the GPU may not ring the NIC "
      "(IBGDA)",
      "已加载驱动的 RegistryDwords 中没有 PeerMappingOverride=1：GPU 不能敲网卡门铃（IBGDA）"};
}

void judge_driver(TopologyWork& w) {
  // EFA has no doorbell that a GPU could ring; whose NICs are all EFA needs none of these switches.
  const auto& nics = w.out.nics;
  if (!nics.empty() && std::any_of(nics.begin(), nics.end(), [](const auto& n) { return n.role == "efa"; }) &&
      std::none_of(nics.begin(), nics.end(), [](const auto& n) { return n.usable; }))
    return;
  const NvidiaDriver& d = w.facts.driver;
  const ModuleOption *stream = nullptr, *dwords = nullptr;
  for (const auto& o : d.options) {
    if (o.name == "NVreg_EnableStreamMemOPs" && o.live.ok()) stream = &o;
    if (o.name == "NVreg_RegistryDwords" && o.live.ok()) dwords = &o;
  }
  if (!stream && !dwords) return;
  auto it = d.registry_dwords.find("PeerMappingOverride");
  bool override_on = it != d.registry_dwords.end() && it->second == 1;
  bool stream_on = stream && parse_int(*stream->live).value_or(0) == 1;
  if (override_on && stream && !stream_on) {
    // DeepEP's guide asks for both; the runbook's stack ran on 4 nodes with the override alone.
    w.say("ibgda_memops_off", Severity::warn,
          {"PeerMappingOverride is on, EnableStreamMemOPs is off: the GPU may ring the NIC; DeepEP's guide "
           "asks for both",
           "PeerMappingOverride 已开，EnableStreamMemOPs 未开：GPU 可以敲门铃；DeepEP 指南要求两者都开"});
    return;
  }
  if ((dwords && !override_on) || (stream && !stream_on)) {
    // In a container the node's driver is not ours to change, and handlers on the CPU do without: stacks for
    // pods choose those.
    const bool container = w.facts.container.runtime.value_or("none") != "none";
    auto& f = w.say("ibgda_driver_params_missing", container ? Severity::warn : Severity::fail,
                    driver_gap(stream && !stream_on, dwords && !override_on));
    if (stream) f.evidence.push_back({stream->live.where, 0, "EnableStreamMemOPs: " + *stream->live});
    if (dwords) f.evidence.push_back({dwords->live.where, 0, "RegistryDwords: \"" + *dwords->live + "\""});
    f.next = "epready driver";
  }
}

// Highest CUDA that a driver branch serves. Source: CUDA release notes, table of driver versions.
std::pair<int, int> cuda_of_driver(int branch) {
  static const std::map<int, std::pair<int, int>> kTable = {
      {470, {11, 4}}, {510, {11, 6}}, {515, {11, 7}}, {520, {11, 8}}, {525, {12, 0}}, {530, {12, 1}},
      {535, {12, 2}}, {545, {12, 3}}, {550, {12, 4}}, {555, {12, 5}}, {560, {12, 6}}, {565, {12, 7}},
      {570, {12, 8}}, {575, {12, 9}}, {580, {13, 0}}, {590, {13, 1}}, {595, {13, 2}}};
  auto it = kTable.upper_bound(branch);
  return it == kTable.begin() ? std::pair{0, 0} : std::prev(it)->second;
}

void judge_versions(TopologyWork& w) {
  const Facts& f = w.facts;
  if (f.host_kind != "paste") return;  // installed software of a real host is judged by lanes and env
  std::string torch, cuda;
  for (const auto& e : f.python)
    for (const auto& p : e.packages)
      if (p.name == "torch") torch = p.version;
  if (size_t at = torch.find("+cu"); at != std::string::npos && torch.size() >= at + 6)
    cuda = torch.substr(at + 3, torch.size() - at - 4) + "." + torch.back();
  if (cuda.empty() && !f.cuda.empty()) cuda = f.cuda[0].version.value_or("");
  if (!cuda.empty() && f.driver.version.ok()) {
    auto parts = split(cuda, '.');
    auto have = cuda_of_driver(int(parse_int(split(*f.driver.version, '.')[0]).value_or(0)));
    int major = int(parse_int(parts[0]).value_or(0)),
        minor = parts.size() > 1 ? int(parse_int(parts[1]).value_or(0)) : 0;
    if (have.first && (major > have.first || (major == have.first && minor > have.second)))
      w.say("driver_cuda_mismatch", major > have.first ? Severity::warn : Severity::info,
            major > have.first ? both("CUDA {} over driver {} (CUDA {}.{} class): works only through the "
                                      "forward-compatibility package",
                                      "CUDA {} 高于驱动 {}（CUDA {}.{} 级）：只能借助前向兼容包", cuda,
                                      *f.driver.version, have.first, have.second)
                               : both("CUDA {} over driver {} (CUDA {}.{} class): works only through "
                                      "minor-version compatibility",
                                      "CUDA {} 高于驱动 {}（CUDA {}.{} 级）：只能借助次版本兼容", cuda,
                                      *f.driver.version, have.first, have.second));
  }
  if (!torch.empty()) {
    auto p = split(torch, '.');
    int major = int(parse_int(p[0]).value_or(0)), minor = p.size() > 1 ? int(parse_int(p[1]).value_or(0)) : 0;
    if (major == 2 && minor <= 12 && minor >= 1)
      w.say("nccl_too_old_for_gin", Severity::info,
            both("PyTorch {} pins an NCCL older than the 2.30.4 that DeepEP V2 needs",
                 "PyTorch {} 锁定的 NCCL 早于 DeepEP V2 所需的 2.30.4", torch));
  }
}

// Modules that a kernel lacks while dkms has built others of the stack for it: gdrdrv and peermem are
// forgotten after a kernel update.
void judge_dkms(TopologyWork& w) {
  const auto& list = w.facts.kernel.dkms;
  std::set<std::string> names, kernels;
  std::map<std::string, std::set<std::string>> built;  // module -> kernels it is installed for
  for (const auto& m : list) {
    names.insert(m.name);
    if (m.kernel.empty() || m.state.value_or("") != "installed") continue;
    built[m.name].insert(m.kernel);
    kernels.insert(m.kernel);
  }
  const std::string running = w.facts.os.kernel_release.value_or("");
  for (const auto& name : names) {
    std::string lacks;
    for (const auto& k : kernels)
      if (!built[name].count(k) && (running.empty() || k == running)) lacks = k;
    if (!running.empty() && !built[name].count(running)) lacks = running;
    if (lacks.empty()) continue;
    auto& f =
        w.say("dkms_not_built", Severity::warn,
              both("dkms has {} but not installed it for kernel {}{}", "dkms 有 {}，但未为内核 {} 安装{}",
                   name, lacks, running.empty() ? "" : " (running)"));
    f.next = "dkms autoinstall -k " + lacks;
    f.evidence.push_back(
        {"dkms", 0,
         fmt::format(
             "{}: {}", name,
             built[name].empty() ? "no kernel" : join({built[name].begin(), built[name].end()}, ", "))});
  }
}

}  // namespace

void judge_software(TopologyWork& w) {
  judge_driver(w);
  judge_versions(w);
  judge_dkms(w);
}

}  // namespace ep
