// What variables ask of this host: who rings the NIC, network interfaces, GID indices, device name prefixes.
#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"
#include "check/env_lint_parts.h"

namespace ep {
namespace {

using Lint = EnvLintBench;
constexpr const char* kHandler = "NVSHMEM_IBGDA_NIC_HANDLER";

/// Source: stack-facts 4.2.
void check_handler(Lint& l) {
  const std::string handler = lower(l.get(kHandler));
  if (handler == "gpu" && l.in.peer_mapping_override == false)
    l.say("env-danger", Severity::fail, kHandler,
          {"gpu needs PeerMappingOverride=1 in the loaded driver, which is not set here: NVSHMEM ends with "
           "\"GPU cannot map UAR\" instead of falling back; auto falls back from 3.4.5",
           "gpu 需要已加载驱动的 PeerMappingOverride=1，此处未设置：NVSHMEM 会以 \"GPU cannot map UAR\" "
           "终止而不降级；auto 自 3.4.5 起可降级"},
          "unset NVSHMEM_IBGDA_NIC_HANDLER, or set the option (epready driver) and reboot");
  if (handler == "cpu_host_memory" && !l.in.nvshmem.empty() &&
      compare_versions(VersionOrder::dotted, l.in.nvshmem, "3.4.5") < 0)
    l.say("env-version", Severity::fail, kHandler,
          both("cpu_host_memory exists from NVSHMEM 3.4.5; {} is here",
               "cpu_host_memory 自 NVSHMEM 3.4.5 起才有；此处为 {}", l.in.nvshmem));
  if (handler != "cpu") return;
  const Facts* f = l.in.facts;
  const bool unloaded = f && f->kernel.modules_readable.value_or(false) && !f->kernel.module("gdrdrv");
  const bool no_device = f && f->kernel.gdrdrv_device.known == Known::absent;
  const bool refused = f && f->kernel.gdrdrv_device.ok() && !*f->kernel.gdrdrv_device;
  if (l.on("NVSHMEM_DISABLE_GDRCOPY"))
    l.say("env-contradiction", Severity::fail, kHandler,
          {"the handler cpu works through GDRCopy, which NVSHMEM_DISABLE_GDRCOPY switches off",
           "cpu 方式依赖 GDRCopy，而 NVSHMEM_DISABLE_GDRCOPY 将其关闭"});
  if (unloaded || no_device || refused)
    l.say("env-danger", Severity::fail, kHandler,
          both("the handler cpu needs GDRCopy: {}", "cpu 方式需要 GDRCopy：{}",
               unloaded ? "gdrdrv is not loaded" : "/dev/gdrdrv cannot be opened"),
          l.in.peer_mapping_override == true ? "NVSHMEM_IBGDA_NIC_HANDLER=gpu"
                                             : "epready driver   (then the handler gpu)");
  else
    l.say("env-danger", Severity::warn, kHandler,
          {"with the handler cpu a proxy rings the NIC: slower, and dispatch between hosts was seen to hang",
           "cpu 方式由代理线程敲门铃：更慢，且曾见跨机 dispatch 挂起"},
          l.in.peer_mapping_override == true ? "NVSHMEM_IBGDA_NIC_HANDLER=gpu" : "");
}

/// All interfaces are among the facts: a live host, a snapshot, or a text that lists them with the loopback.
bool knows_interfaces(const Facts& f) {
  if (f.netdevs.empty()) return false;
  if (f.host_kind != "paste") return true;
  return std::any_of(f.netdevs.begin(), f.netdevs.end(), [](const Netdev& n) { return n.name == "lo"; });
}

/// NCCL and NVSHMEM: "=eth0,eth1" exact, "^docker" without, else prefixes. Gloo and others: exact names.
void check_interfaces(Lint& l) {
  const Facts* f = l.in.facts;
  if (!f || !knows_interfaces(*f)) return;
  for (const auto& v : l.vars.rows) {
    std::string value = v.form == "interfaces" || v.form == "interface-prefixes" ? l.get(v.name) : "";
    if (value.empty() || value[0] == '^') continue;
    const bool exact = v.form == "interfaces" || value[0] == '=';
    if (value[0] == '=') value.erase(0, 1);
    std::vector<std::string> missing, down;
    bool any = false, only_loopback = true;
    for (auto name : list_parts(value)) {
      name = name.substr(0, name.find(':'));  // a port may follow
      if (name.empty()) continue;
      const auto hit = [&](const Netdev& n) { return exact ? n.name == name : starts_with(n.name, name); };
      const bool loopback = name == "lo";
      only_loopback = only_loopback && loopback;
      const bool there = loopback || std::any_of(f->netdevs.begin(), f->netdevs.end(), hit);
      any = any || there;
      if (!there) missing.push_back(name);
      if (there && !loopback && std::all_of(f->netdevs.begin(), f->netdevs.end(), [&](const Netdev& n) {
            return !hit(n) || n.operstate.value_or("") == "down";
          }))
        down.push_back(name);
    }
    std::string fallback;
    for (const auto& n : f->netdevs)
      if (n.default_route.value_or(false)) fallback = n.name;
    const std::string fix = fallback.empty() ? "" : v.name + "=" + fallback;
    if (!missing.empty())
      l.say("env-danger", any ? Severity::warn : Severity::fail, v.name,
            both("{} names {}, and this host has no such interface", "{} 指定了 {}，本机没有这样的网络接口",
                 v.name, join(missing, ", ")),
            fix);
    if (!down.empty())
      l.say("env-danger", Severity::warn, v.name,
            both("{} names {}, which is down", "{} 指定了 {}，该接口未启用", v.name, join(down, ", ")), fix);
    if (any && only_loopback)
      l.say("env-danger", Severity::warn, v.name,
            both("{} is the loopback: other hosts cannot be reached", "{} 为回环接口：无法连接其他主机",
                 v.name),
            fix);
  }
}

void check_gid_indices(Lint& l) {
  const Topology* t = l.in.topology;
  if (!t || t->nics.empty()) return;
  for (const char* name : {"NVSHMEM_IB_GID_INDEX", "NCCL_IB_GID_INDEX"}) {
    const auto index = parse_int(l.get(name));
    if (!index || *index < 0) continue;
    if (t->gid.needed.has_value() && !*t->gid.needed && *index != 0)
      l.say("env-danger", Severity::warn, name,
            both("{} is set, but this is InfiniBand: another index than 0 may not exist",
                 "设置了 {}，但这是 InfiniBand：0 以外的索引可能不存在", name));
    std::string other;
    for (const auto& [dev, right] : t->gid.per_device)
      if (right != *index) other += fmt::format("{}{} needs {}", other.empty() ? "" : ", ", dev, right);
    if (!other.empty())
      l.say("env-danger", Severity::fail, name,
            both("{}={}, but {}: leave it unset", "{}={}，但 {}：请不要设置", name, *index, other));
  }
}

/// Names are looked at by this prefix before 3.5.19; from then on ^ excludes.
void check_prefix(Lint& l) {
  const std::string prefix = l.get("NVSHMEM_HCA_PREFIX");
  const Topology* t = l.in.topology;
  if (!t || prefix.empty()) return;
  std::vector<std::string> unseen;
  for (const auto& n : t->usable()) {
    const bool hit = prefix[0] == '^' ? !starts_with(n, prefix.substr(1)) : starts_with(n, prefix);
    if (!hit) unseen.push_back(n);
  }
  if (!unseen.empty())
    l.say("env-danger", Severity::fail, "NVSHMEM_HCA_PREFIX",
          both("NVSHMEM_HCA_PREFIX={} leaves out {}", "NVSHMEM_HCA_PREFIX={} 会排除 {}", prefix,
               join(unseen, ", ")));
}

}  // namespace

void check_against_host(EnvLintBench& l) {
  check_handler(l);
  check_interfaces(l);
  check_gid_indices(l);
  check_prefix(l);
}

}  // namespace ep
