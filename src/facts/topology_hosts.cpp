// Several hosts of one job, compared: every difference that breaks or slows a job names the odd host.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "facts/gid_drift.h"
#include "facts/topology.h"

namespace ep {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;  // host, value ("" = not known)

// The hosts whose value is not the most frequent one; the first seen wins a tie.
struct Split {
  bool differs = false, even = false;
  std::string common, holder;    // holder: who has the common value, when it is one host alone
  std::vector<std::string> odd;  // "node7: 28.41"
};

Split split_values(const Values& values) {
  Split s;
  std::map<std::string, size_t> count;
  for (const auto& [h, v] : values)
    if (!v.empty()) ++count[v];
  if (count.size() < 2) return s;
  s.differs = true;
  for (const auto& [h, v] : values)
    if (!v.empty() && (s.common.empty() || count[v] > count[s.common])) s.common = v;
  s.even = std::count_if(count.begin(), count.end(),
                         [&](const auto& c) { return c.second == count[s.common]; }) > 1;
  for (const auto& [h, v] : values)
    if (v == s.common && count[v] == 1) s.holder = h;
  for (const auto& [h, v] : values)
    if (!v.empty() && v != s.common) s.odd.push_back(fmt::format("{}: {}", h, v));
  return s;
}

void compare(std::vector<Finding>& out, const char* code, Severity severity, Text what, const Values& values,
             Text advice) {
  Split s = split_values(values);
  if (!s.differs) return;
  Finding f;
  f.code = code;
  f.severity = severity;
  std::string first = s.odd[0].substr(0, s.odd[0].find(": "));
  BothWords title = s.odd.size() == 1 && !s.even
                        ? both("{0} of {1} differs from the other hosts'", "{1} 的{2}与其他主机不同", what.en,
                               first, what.zh)
                        : both("{0} differs between hosts", "各主机的{1}不同", what.en, what.zh);
  f.title = title.en;
  f.title_zh = title.zh;
  f.cause = advice.en;
  f.cause_zh = advice.zh;
  f.evidence.push_back({s.holder.empty() ? "most hosts" : s.holder, 0, s.common});
  for (const auto& o : s.odd)
    if (f.evidence.size() < 12)
      f.evidence.push_back({o.substr(0, o.find(": ")), 0, o.substr(o.find(": ") + 2)});
  out.push_back(std::move(f));
}

std::string set_of(const Topology& t, std::string (*value)(const TopologyNic&)) {
  std::vector<std::string> all;
  for (const auto& n : t.nics)
    if (n.usable)
      if (auto v = value(n); !v.empty() && std::find(all.begin(), all.end(), v) == all.end())
        all.push_back(v);
  std::sort(all.begin(), all.end());
  return join(all, ",");
}

// Snapshots of one machine at two times are not two hosts of a job: what moved between them is told.
void add_second_readings(std::vector<Finding>& out, const std::vector<Topology>& hosts,
                         const std::vector<Facts>& facts) {
  for (size_t b = 1; b < facts.size(); ++b)
    for (size_t a = b; a-- > 0;) {
      if (!same_machine(facts[a], facts[b])) continue;
      for (auto& f : gid_drift(facts[a].rdma, facts[b].rdma)) {
        for (auto& e : f.evidence) e.source = e.source == "before" ? hosts[a].host_name : hosts[b].host_name;
        out.push_back(std::move(f));
      }
      break;
    }
}

}  // namespace

std::vector<Finding> compare_hosts(const std::vector<Topology>& hosts, const std::vector<Facts>& facts) {
  std::vector<Finding> out;
  if (hosts.size() < 2) return out;
  add_second_readings(out, hosts, facts);
  Values names, counts, gpus, gids, rates, mtus, firmware, layers, driver, kernel, models, mapping;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const Topology& t = hosts[i];
    const std::string& h = t.host_name;
    names.emplace_back(h, join(t.usable(), ","));
    counts.emplace_back(h, t.nics.empty() ? "" : std::to_string(t.usable().size()));
    gpus.emplace_back(h, t.gpus.empty() ? "" : std::to_string(t.gpus.size()));
    std::vector<std::string> g;
    for (const auto& [d, index] : t.gid.per_device)
      if (auto v = std::to_string(index); std::find(g.begin(), g.end(), v) == g.end()) g.push_back(v);
    gids.emplace_back(h, join(g, ","));
    rates.emplace_back(h, set_of(t, [](const TopologyNic& n) {
                         return n.rate_gbps > 0 ? fmt::format("{}", n.rate_gbps) : std::string();
                       }));
    mtus.emplace_back(
        h, set_of(t, [](const TopologyNic& n) { return n.mtu > 0 ? std::to_string(n.mtu) : std::string(); }));
    firmware.emplace_back(h, set_of(t, [](const TopologyNic& n) { return n.firmware; }));
    layers.emplace_back(h, set_of(t, [](const TopologyNic& n) { return n.link_layer; }));
    models.emplace_back(h, t.gpus.empty() ? "" : t.gpus[0].name);
    mapping.emplace_back(h, t.strings.deep_ep);
    if (i < facts.size()) {
      driver.emplace_back(h, facts[i].driver.version.value_or(""));
      kernel.emplace_back(h, facts[i].os.kernel_release.value_or(""));
    }
  }
  compare(out, "heterogeneous_names", Severity::warn, {"the list of compute NICs", "计算网卡列表"}, names,
          {"one list for the whole job is wrong: resolve it on each host",
           "整个作业共用一份列表是错的：请在每台主机上求出"});
  compare(out, "gid_differs_per_host", Severity::warn, {"the GID index", "GID 索引"}, gids,
          {"no single NCCL_IB_GID_INDEX or NVSHMEM_IB_GID_INDEX fits: leave it unset, or set it on each host",
           "没有一个 NCCL_IB_GID_INDEX 或 NVSHMEM_IB_GID_INDEX 合适：不要设置，或按主机设置"});
  compare(out, "host_differs", Severity::warn, {"the number of GPUs", "GPU 数量"}, gpus,
          {"EP groups need the same number on every host", "EP 组要求每台主机数量相同"});
  compare(out, "host_differs", Severity::warn, {"the GPU model", "GPU 型号"}, models,
          {"kernels and baselines differ by model", "内核与基准因型号而异"});
  compare(out, "host_differs", Severity::warn, {"the number of compute NICs", "计算网卡数量"}, counts,
          {"the host with fewer NICs slows the others", "网卡少的主机会拖慢其他主机"});
  compare(out, "host_differs", Severity::warn, {"the link layer", "链路类型"}, layers,
          {"InfiniBand and RoCE hosts do not talk to each other", "InfiniBand 与 RoCE 主机不能互通"});
  compare(out, "host_differs", Severity::warn, {"the port rate (Gb/s)", "端口速率（Gb/s）"}, rates,
          {"the slowest port decides", "最慢的端口决定整体"});
  compare(out, "host_differs", Severity::warn, {"the MTU", "MTU"}, mtus,
          {"queue pairs between different MTUs fail or fall back", "MTU 不同的队列对会失败或降级"});
  compare(out, "host_differs_info", Severity::info, {"the NIC firmware", "网卡固件"}, firmware,
          {"most hangs of a cluster start with one odd host", "集群挂起多半始于一台不同的主机"});
  compare(out, "host_differs", Severity::warn, {"the NVIDIA driver", "NVIDIA 驱动"}, driver,
          {"most hangs of a cluster start with one odd host", "集群挂起多半始于一台不同的主机"});
  compare(out, "host_differs_info", Severity::info, {"the kernel", "内核"}, kernel,
          {"most hangs of a cluster start with one odd host", "集群挂起多半始于一台不同的主机"});
  if (!split_values(names).differs)
    compare(out, "mapping_differs", Severity::warn, {"the GPU-NIC mapping", "GPU 与网卡的对应"}, mapping,
            {"the same names at other places: resolve the mapping on each host",
             "同名设备位置不同：请在每台主机上求出对应"});
  return out;
}

}  // namespace ep
