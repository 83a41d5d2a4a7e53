// Several hosts of one job, compared: every difference that breaks or slows a job names the odd host.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "facts/topology.h"

namespace ep {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;  // host, value ("" = not known)

// The hosts whose value is not the most frequent one; the first seen wins a tie.
struct Split {
  bool differs = false, even = false;
  std::string common;
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
    if (!v.empty() && v != s.common) s.odd.push_back(fmt::format("{}: {}", h, v));
  return s;
}

void compare(std::vector<Finding>& out, const char* code, Severity severity, const std::string& what,
             const Values& values, const std::string& advice) {
  Split s = split_values(values);
  if (!s.differs) return;
  Finding f;
  f.code = code;
  f.severity = severity;
  std::string first = s.odd[0].substr(0, s.odd[0].find(": "));
  f.title = s.odd.size() == 1 && !s.even ? fmt::format("{} of {} differs from the other hosts'", what, first)
                                         : fmt::format("{} differs between hosts", what);
  f.cause = advice;
  f.evidence.push_back({"most hosts", 0, s.common});
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

}  // namespace

std::vector<Finding> compare_hosts(const std::vector<Topology>& hosts, const std::vector<Facts>& facts) {
  std::vector<Finding> out;
  if (hosts.size() < 2) return out;
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
  compare(out, "heterogeneous_names", Severity::warn, "the list of compute NICs", names,
          "one list for the whole job is wrong: resolve it on each host");
  compare(out, "gid_differs_per_host", Severity::warn, "the GID index", gids,
          "no single NCCL_IB_GID_INDEX or NVSHMEM_IB_GID_INDEX fits: leave it unset, or set it on each host");
  compare(out, "host_differs", Severity::warn, "the number of GPUs", gpus,
          "EP groups need the same number on every host");
  compare(out, "host_differs", Severity::warn, "the GPU model", models,
          "kernels and baselines differ by model");
  compare(out, "host_differs", Severity::warn, "the number of compute NICs", counts,
          "the host with fewer NICs slows the others");
  compare(out, "host_differs", Severity::warn, "the link layer", layers,
          "InfiniBand and RoCE hosts do not talk to each other");
  compare(out, "host_differs", Severity::warn, "the port rate (Gb/s)", rates, "the slowest port decides");
  compare(out, "host_differs", Severity::warn, "the MTU", mtus,
          "queue pairs between different MTUs fail or fall back");
  compare(out, "host_differs_info", Severity::info, "the NIC firmware", firmware,
          "most hangs of a cluster start with one odd host");
  compare(out, "host_differs", Severity::warn, "the NVIDIA driver", driver,
          "most hangs of a cluster start with one odd host");
  compare(out, "host_differs_info", Severity::info, "the kernel", kernel,
          "most hangs of a cluster start with one odd host");
  if (!split_values(names).differs)
    compare(out, "mapping_differs", Severity::warn, "the GPU-NIC mapping", mapping,
            "the same names at other places: resolve the mapping on each host");
  return out;
}

}  // namespace ep
