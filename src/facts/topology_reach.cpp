// Step five, last part: what keeps a process here from NICs that are there: device nodes that a container
// lacks, dead ports, IMEX, locked memory. Distances are not asked.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "facts/topology_parts.h"

namespace ep {
namespace {

std::vector<std::string> with_role(const Topology& t, const char* role) {
  std::vector<std::string> out;
  for (const auto& n : t.nics)
    if (n.role == role) out.push_back(n.name);
  return out;
}

void judge_nodes(TopologyWork& w) {
  const PasteFacts& p = w.facts.paste;
  const size_t hidden = with_role(w.out, "hidden").size(), all = w.out.nics.size();
  if (hidden > 0) {
    const bool none = w.out.usable().empty();
    auto& f = w.say(
        "container_hidden_nics", none ? Severity::fail : Severity::warn,
        both("{} of {} devices have no verbs device here", "{}/{} 个设备在此没有 verbs 设备", hidden, all));
    if (none) f.next = "epready doctor";
    if (p.verbs_nodes.ok()) f.evidence.push_back({p.verbs_nodes.where, 0, "no verbs device can be opened"});
  } else if (p.verbs_nodes.ok() && !*p.verbs_nodes && !p.verbs_listed.empty()) {
    auto& f = w.say("piece_contradiction", Severity::warn,
                    both("one output shows no verbs device, another lists {}: they are of two places",
                         "一份输出没有 verbs 设备，另一份列出了 {}：它们来自两处", p.verbs_listed[0]));
    f.evidence.push_back({p.verbs_nodes.where, 0, "no verbs device can be opened"});
  } else if (p.num_verbs_nodes > 0 && size_t(p.num_verbs_nodes) < w.facts.rdma.size()) {
    const bool short_of_usable = size_t(p.num_verbs_nodes) < w.out.usable().size();
    auto& f = w.say("container_hidden_nics", short_of_usable ? Severity::fail : Severity::warn,
                    both("{} RDMA devices are named, /dev/infiniband holds {} verbs devices",
                         "出现了 {} 个 RDMA 设备，/dev/infiniband 中只有 {} 个 verbs 设备",
                         w.facts.rdma.size(), p.num_verbs_nodes));
    f.next = "epready doctor";
  }
}

// Dead ports that are built like the live ones, where GPUs outnumber the live ones. With distances the
// mapping says whose NIC is missing; a second port of a card is dead on many hosts and no harm.
void judge_ports(TopologyWork& w) {
  const Topology& t = w.out;
  auto down = with_role(t, "down");
  if (down.empty()) return;
  const size_t usable = t.usable().size();
  std::vector<std::string> alike;
  for (const auto& n : t.nics) {
    if (n.role != "down") continue;
    const bool same = std::any_of(t.nics.begin(), t.nics.end(), [&](const TopologyNic& o) {
      return o.usable && !o.link_layer.empty() && o.link_layer == n.link_layer &&
             (o.hca_type == n.hca_type || o.hca_type.empty() || n.hca_type.empty());
    });
    if (same) alike.push_back(n.name);
  }
  if (usable > 0 && !w.has_distances && usable < t.gpus.size() && !alike.empty()) {
    auto& f =
        w.say("nic_down", Severity::warn,
              both("{} has no active port and is built like the NICs that have one: {} GPUs, {} NICs up",
                   "{} 没有活动端口，而同型网卡有：{} 块 GPU，{} 张网卡可用", join(alike, ", "),
                   t.gpus.size(), usable));
    f.next = "epready doctor";
    return;
  }
  w.say("nic_down", usable == 0 ? Severity::warn : Severity::info,
        both("{} devices have no active port", "{} 个设备没有活动端口", down.size()));
}

void judge_imex(TopologyWork& w) {
  const NvidiaDriver& d = w.facts.driver;
  const bool rack = in_nvlink_domain(w.out, w.facts) &&
                    std::none_of(w.out.gpus.begin(), w.out.gpus.end(),
                                 [](const TopologyGpu& g) { return contains(g.name, "GH200"); });
  const bool dead = d.imex.ok() && *d.imex != "active" && *d.imex != "activating";
  const bool no_channel = d.imex_channel.ok() && !*d.imex_channel;
  if (!rack || !(dead || no_channel)) return;
  auto& f =
      w.say("imex_inactive", Severity::warn,
            {"IMEX is not at work here: memory is not shared over NVLink with other trays (MNNVL), EP "
             "reaches them over the NICs or not at all",
             "IMEX 在此未工作：无法经 NVLink 与其他托盘共享内存（MNNVL），EP 只能经网卡到达，或无法到达"});
  if (dead) f.evidence.push_back({d.imex.where, 0, "nvidia-imex: " + *d.imex});
  if (no_channel)
    f.evidence.push_back({d.imex_channel.where, 0, "/dev/nvidia-caps-imex-channels: no channel0"});
  f.next = "epready doctor";
}

// Locked memory of the shell that made the text. A process with CAP_IPC_LOCK (bit 14) is not limited. Live
// hosts: the checks of verify judge the same limit.
void judge_memlock(TopologyWork& w) {
  const auto& m = w.facts.limits.memlock;
  if (w.facts.host_kind != "paste" || !m.ok()) return;
  auto bytes = parse_int(*m);
  if (!bytes || *bytes < 0 || *bytes >= (1LL << 30)) return;
  const auto& cap = w.facts.container.cap_effective;
  const bool known_without = cap.ok() && ((*cap >> 14) & 1) == 0;
  if (cap.ok() && !known_without) return;
  auto& f = w.say("memlock_low", known_without ? Severity::fail : Severity::warn,
                  both("locked memory is limited to {} bytes: NICs cannot register GPU memory or queues",
                       "锁定内存限制为 {} 字节：网卡无法注册 GPU 内存或队列", *bytes));
  f.evidence.push_back({m.where, 0, "memlock: " + *m});
  f.next = "epready doctor";
}

}  // namespace

void judge_reach(TopologyWork& w) {
  judge_nodes(w);
  judge_ports(w);
  judge_imex(w);
  judge_memlock(w);
}

}  // namespace ep
