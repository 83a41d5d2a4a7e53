// See env_lint.h. One function a kind of mistake.
#include "check/env_lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/version.h"
#include "check/env_lint_parts.h"

namespace ep {
namespace {

using Lint = EnvLintBench;

bool is_switch(const std::string& v) {
  static const std::set<std::string> kWords = {"0",   "1", "true", "false", "yes", "no", "on",
                                               "off", "y", "n",    "t",     "f",   "2",  "-1"};
  return kWords.count(lower(v)) > 0;
}

bool is_size(const std::string& v) {
  size_t n = 0;
  while (n < v.size() && ((v[n] >= '0' && v[n] <= '9') || v[n] == '.')) ++n;
  std::string unit = lower(v.substr(n));
  return n > 0 && (unit.empty() || unit == "k" || unit == "m" || unit == "g" || unit == "t" || unit == "kb" ||
                   unit == "mb" || unit == "gb");
}

void check_names(Lint& l) {
  auto known = l.vars.names();
  for (const auto& [name, value] : l.in.environment) {
    if (l.vars.find(name)) continue;
    std::string owner = l.vars.owner_of(name);
    // NCCL reads the empty string as unset; others may not. Names of other programs are none of ours.
    if (owner.empty()) continue;
    std::vector<std::string> same;
    for (const auto& k : known)
      if (l.vars.owner_of(k) == owner) same.push_back(k);
    std::string near = closest(name, same).value_or("");
    bool close = !near.empty() && edit_distance(name, near) <= 2 + name.size() / 16;
    if (close)
      l.say("env-misspelt", Severity::warn, name,
            both("{} is not known; {} is, and differs in {} letters: this line does nothing",
                 "{} 未知；{} 才是，相差 {} 个字母：这一行不起作用", name, near, edit_distance(name, near)),
            fmt::format("use {}", near));
    else if (!starts_with(name, "EP_"))
      l.say("env-unknown", Severity::info, name,
            both("{} is no variable of {} that epready knows: a typo, another version's, or a plugin's",
                 "{} 不是 epready 所知的 {} 变量：可能拼错、属于其他版本或某个插件", name, owner));
  }
}

BothWords value_wanted(const Variable& v, const std::string& name, const std::string& have) {
  if (v.form == "values")
    return both("{} takes {}; \"{}\" is none of them", "{} 可取 {}；\"{}\" 不在其中", name,
                join(v.values, ", "), have);
  if (v.form == "switch")
    return both("{} takes 0 or 1; \"{}\" is none of them", "{} 可取 0 或 1；\"{}\" 不在其中", name, have);
  if (v.form == "size")
    return both("{} takes a size such as 1G; \"{}\" is none", "{} 取 1G 之类的大小；\"{}\" 不是", name, have);
  if (v.has_range)
    return both("{} takes a number from {} to {}; \"{}\" is none", "{} 取 {} 到 {} 的数字；\"{}\" 不是", name,
                v.min, v.max, have);
  return both("{} takes a number; \"{}\" is none", "{} 取数字；\"{}\" 不是", name, have);
}

bool is_number(const Variable& v, const std::string& text) {
  const auto n = parse_int(text);
  return n && (!v.has_range || (*n >= v.min && *n <= v.max));
}

/// Programs that are not looked for in wheels by version rules: gone is gone unless an old one is here.
BothWords version_words(const Variable& v, const std::string& name, const std::string& version) {
  if (!v.until.empty() && version.empty())
    return both("{} is gone from {} {} (which {} is here is not known): newer ones ignore it",
                "{0} 自 {1} {2} 起已取消（此处 {1} 版本未知）：新版本会忽略它", name, v.owner, v.until,
                v.owner);
  if (!v.until.empty() && (v.since.empty() || compare_versions(VersionOrder::dotted, version, v.since) >= 0))
    return both("{} is gone from {} {}: no effect", "{} 自 {} {} 起已取消：不起作用", name, v.owner, v.until);
  return both("{} exists from {} {}; {} is here: no effect", "{} 自 {} {} 起才有；此处为 {}：不起作用", name,
              v.owner, v.since, version);
}

void check_versions_and_values(Lint& l) {
  for (const auto& [name, value] : l.in.environment) {
    const Variable* v = l.vars.find(name);
    if (!v) continue;
    const std::string version = l.version_of(v->owner);
    // Of a library that says nothing about its version nothing is known; a program's variable that is gone
    // from all newer ones is worth a word.
    const bool library = v->owner == "nvshmem" || v->owner == "nccl";
    if (!in_force(*v, version) || (version.empty() && !v->until.empty() && !library)) {
      auto& f = l.say("env-version", Severity::warn, name, version_words(*v, name, version));
      f.cause = v->note.en;
      f.cause_zh = v->note.zh;
    }
    std::string x(trim(value));
    if (x.empty()) continue;
    bool bad = (v->form == "switch" && !is_switch(x)) || (v->form == "number" && !is_number(*v, x)) ||
               (v->form == "size" && !is_size(x));
    if (v->form == "values") {
      bad = std::none_of(v->values.begin(), v->values.end(),
                         [&](const std::string& k) { return lower(k) == lower(x); });
      // Log levels and handlers read as words; a comma list is several of them.
    }
    if (bad) {
      auto& f = l.say("env-value", name == "NVSHMEM_REMOTE_TRANSPORT" ? Severity::fail : Severity::warn, name,
                      value_wanted(*v, name, x));
      f.cause = v->note.en;
      f.cause_zh = v->note.zh;
    }
    if (!v->overwritten_by.empty() && v->overwritten_with != x && l.in.lane != "v2")
      l.say("env-overwritten", Severity::info, name,
            both("{} is written again by {}: what is set here has no effect for it",
                 "{} 会被 {} 重新写入：此处的设置对它无效", name, v->overwritten_by));
  }
}

bool several_nics(const Lint& l) {
  return l.in.topology && l.in.topology->gpus.size() > 1 && l.in.topology->usable().size() > 1;
}

void check_no_effect(Lint& l) {
  bool mapping_on = l.on("NVSHMEM_ENABLE_NIC_PE_MAPPING");
  for (const char* name : {"NVSHMEM_HCA_LIST", "NVSHMEM_HCA_PE_MAPPING"})
    if (l.has(name) && !mapping_on && !l.get(name).empty() && l.get(name)[0] != '^')
      l.say("env-no-effect", Severity::warn, name,
            both("{} is read only with NVSHMEM_ENABLE_NIC_PE_MAPPING=1",
                 "只有 NVSHMEM_ENABLE_NIC_PE_MAPPING=1 时才读取 {}", name),
            "export NVSHMEM_ENABLE_NIC_PE_MAPPING=1");
  if (mapping_on && !l.has("NVSHMEM_HCA_LIST") && !l.has("NVSHMEM_HCA_PE_MAPPING") &&
      !l.has("DEEP_EP_DEVICE_TO_HCA_MAPPING"))
    l.say("env-danger", several_nics(l) ? Severity::fail : Severity::warn, "NVSHMEM_ENABLE_NIC_PE_MAPPING",
          {"without a list each DeepEP process takes the first device: it is PE 0 of its own world, and one "
           "NIC carries everything",
           "没有列表时每个 DeepEP 进程都取第一个设备：它是自己 world 的 PE 0，全部流量落在一张网卡上"});
  if (l.has("NVSHMEM_HOME"))
    l.say("env-no-effect", Severity::info, "NVSHMEM_HOME",
          {"nothing reads NVSHMEM_HOME; builds of DeepEP read NVSHMEM_DIR",
           "没有程序读取 NVSHMEM_HOME；DeepEP 编译读取 NVSHMEM_DIR"});
  if (l.get("NVSHMEM_HCA_PREFIX") == "mlx5")
    l.say("env-no-effect", Severity::info, "NVSHMEM_HCA_PREFIX",
          {"mlx5 was the default before 3.5.19; newer versions look at more names without it",
           "mlx5 是 3.5.19 之前的默认值；更新版本不设它会查看更多设备名"});
}

void check_contradictions(Lint& l) {
  if (l.has("NVSHMEM_HCA_LIST") && l.has("NVSHMEM_HCA_PE_MAPPING"))
    l.say("env-contradiction", Severity::warn, "NVSHMEM_HCA_PE_MAPPING",
          {"NVSHMEM_HCA_LIST and NVSHMEM_HCA_PE_MAPPING are both set; one of them is ignored",
           "同时设置了 NVSHMEM_HCA_LIST 与 NVSHMEM_HCA_PE_MAPPING；其中之一会被忽略"});
  if (l.on("NVSHMEM_GPUNETIO_ENABLE_GDAKI") && l.on("NVSHMEM_IB_ENABLE_IBGDA"))
    l.say("env-contradiction", Severity::fail, "NVSHMEM_GPUNETIO_ENABLE_GDAKI",
          {"GDAKI of gpunetio and IBGDA exclude each other", "gpunetio 的 GDAKI 与 IBGDA 互斥"});
  if (l.on("NCCL_IB_DISABLE") && (l.has("NCCL_IB_HCA") || l.on("NVSHMEM_IB_ENABLE_IBGDA")))
    l.say("env-contradiction", Severity::fail, "NCCL_IB_DISABLE",
          {"RDMA is switched off for NCCL while other variables choose RDMA devices",
           "NCCL 的 RDMA 已关闭，而其他变量却在选择 RDMA 设备"});
  if (l.get("NCCL_GIN_TYPE") == "0" && l.in.lane == "v2")
    l.say("env-contradiction", Severity::fail, "NCCL_GIN_TYPE",
          {"GIN type 0 is none: V2 across hosts needs GIN", "GIN 类型 0 即没有：跨机 V2 需要 GIN"});
  struct Pair {
    const char *name, *other;
    bool (*clash)(const std::string& a, const std::string& b);
    Severity severity;
    Text why;
  };
  static const Pair kPairs[] = {
      {"NCCL_NET",
       "NCCL_IB_HCA",
       [](const std::string& a, const std::string&) { return lower(a) == "socket"; },
       Severity::fail,
       {"NCCL_NET=Socket takes RDMA away while NCCL_IB_HCA chooses RDMA devices",
        "NCCL_NET=Socket 会失去 RDMA，而 NCCL_IB_HCA 却在选择 RDMA 设备"}},
      {"NVSHMEM_IB_ENABLE_IBGDA",
       "NVSHMEM_IBGDA_NIC_HANDLER",
       [](const std::string& a, const std::string&) { return a == "0" || lower(a) == "false"; },
       Severity::info,
       {"IBGDA is switched off, so its handler chooses nothing (DeepEP V1 switches it on again)",
        "IBGDA 已关闭，其 handler 不起作用（DeepEP V1 会重新打开）"}},
      {"NCCL_IB_GID_INDEX",
       "NCCL_IB_ADDR_FAMILY",
       [](const std::string& a, const std::string&) { return parse_int(a).value_or(-1) >= 0; },
       Severity::warn,
       {"a fixed GID index and an address family: the index wins, the family does nothing",
        "同时固定 GID 索引与地址族：索引优先，地址族不起作用"}},
      {"NVSHMEM_IB_GID_INDEX",
       "NVSHMEM_IB_ADDR_FAMILY",
       [](const std::string& a, const std::string&) { return parse_int(a).value_or(-1) >= 0; },
       Severity::warn,
       {"a fixed GID index and an address family: the index wins, the family does nothing",
        "同时固定 GID 索引与地址族：索引优先，地址族不起作用"}},
      {"NCCL_IB_GID_INDEX",
       "NVSHMEM_IB_GID_INDEX",
       [](const std::string& a, const std::string& b) {
         const auto x = parse_int(a), y = parse_int(b);
         return x && y && *x >= 0 && *y >= 0 && *x != *y;
       },
       Severity::warn,
       {"NCCL and NVSHMEM are told different GID indices on the same ports",
        "NCCL 与 NVSHMEM 在相同端口上被指定了不同的 GID 索引"}},
      {"NCCL_MIN_NCHANNELS",
       "NCCL_MAX_NCHANNELS",
       [](const std::string& a, const std::string& b) {
         const auto x = parse_int(a), y = parse_int(b);
         return x && y && *x > *y;
       },
       Severity::warn,
       {"the smallest number of channels is above the largest", "最小通道数大于最大通道数"}},
  };
  for (const auto& p : kPairs)
    if (l.has(p.name) && !l.get(p.other).empty() && p.clash(l.get(p.name), l.get(p.other)))
      l.say("env-contradiction", p.severity, p.name, {std::string(p.why.en), std::string(p.why.zh)});
  if (l.in.lane == "v2" && (l.off("NCCL_GIN_ENABLE") || l.on("EP_DISABLE_GIN")))
    l.say("env-contradiction", Severity::fail, l.on("EP_DISABLE_GIN") ? "EP_DISABLE_GIN" : "NCCL_GIN_ENABLE",
          {"GIN is switched off: V2 across hosts needs it", "GIN 已关闭：跨机 V2 需要它"});
  static const std::vector<std::string> kGib = {"NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE",
                                                "NCCL_TUNER_CONFIG_PATH"};
  bool a = l.has(kGib[0]), b = l.has(kGib[1]);
  if (a != b)
    l.say("env-contradiction", Severity::warn, a ? kGib[0] : kGib[1],
          {"gIB is configured in part: all of its variables or none",
           "gIB 只配置了一部分：变量要么全设要么全不设"});
  if ((a || b) && l.get("NCCL_NET_PLUGIN") == "none")
    l.say("env-contradiction", Severity::warn, "NCCL_NET_PLUGIN",
          {"gIB is configured and its network plugin is switched off", "配置了 gIB，但其网络插件已关闭"});
  std::string family = l.get("NVSHMEM_IB_ADDR_FAMILY"), other = l.get("NCCL_IB_ADDR_FAMILY");
  if (!family.empty() && !other.empty() && family != other)
    l.say("env-contradiction", Severity::warn, "NVSHMEM_IB_ADDR_FAMILY",
          {"NVSHMEM and NCCL choose GIDs of different address families",
           "NVSHMEM 与 NCCL 选用不同地址族的 GID"});
}

void check_dangers(Lint& l) {
  struct Row {
    const char* name;
    bool (*bad)(const Lint&, const std::string&);
    Severity severity;
    Text why;
  };
  static const Row kRows[] = {
      {"LD_PRELOAD",
       [](const Lint&, const std::string& v) { return contains(v, "libnvshmem"); },
       Severity::warn,
       {"preloading NVSHMEM hides that two copies are in the process; have one copy instead",
        "预加载 NVSHMEM 只是掩盖进程内有两份；应只保留一份"}},
      {"NCCL_CUMEM_ENABLE",
       [](const Lint& x, const std::string& v) { return v == "0" && x.in.lane != "v1"; },
       Severity::fail,
       {"0 takes symmetric memory and GIN away: DeepEP V2 cannot start across hosts",
        "0 会失去对称内存与 GIN：DeepEP V2 无法跨机启动"}},
      {"NCCL_CROSS_NIC",
       [](const Lint& x, const std::string& v) {
         return v == "0" && x.in.lane == "v2" && !x.has("NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE");
       },
       Severity::warn,
       {"0 keeps rails apart: fine in hybrid mode, fatal for V2 with allow_hybrid_mode=0",
        "0 使各 rail 分离：hybrid 模式可以，allow_hybrid_mode=0 的 V2 会失败"}},
      {"NCCL_P2P_DISABLE",
       [](const Lint&, const std::string& v) { return v == "1"; },
       Severity::fail,
       {"1 takes NVLink peer access away", "1 会失去 NVLink 直接访问"}},
      {"NCCL_IB_DISABLE",
       [](const Lint&, const std::string& v) { return v == "1"; },
       Severity::fail,
       {"1 takes RDMA away from NCCL", "1 使 NCCL 失去 RDMA"}},
      {"NCCL_NET_GDR_LEVEL",
       [](const Lint&, const std::string& v) { return lower(v) == "loc" || v == "0"; },
       Severity::warn,
       {"LOC takes GPUDirect RDMA away: every byte goes through host memory",
        "LOC 会失去 GPUDirect RDMA：数据都经过主机内存"}},
      {"NVSHMEM_IB_ENABLE_IBGDA",
       [](const Lint& x, const std::string&) {
         return x.off("NVSHMEM_IB_ENABLE_IBGDA") && x.in.lane == "v1";
       },
       Severity::info,
       {"off; DeepEP V1 switches it on again for itself", "已关闭；DeepEP V1 会自行打开"}},
      {"NVSHMEM_REMOTE_TRANSPORT",
       [](const Lint&, const std::string& v) { return lower(v) == "none"; },
       Severity::warn,
       {"none: no transport to other hosts but IBGDA", "none：除 IBGDA 外没有跨机传输"}},
      {"NVSHMEM_DISABLE_P2P",
       [](const Lint&, const std::string& v) { return v == "1"; },
       Severity::info,
       {"peer access off; DeepEP V1 decides this itself", "关闭直接访问；DeepEP V1 会自行决定"}},
      {"EP_SUPPRESS_NCCL_CHECK",
       [](const Lint&, const std::string& v) { return v == "1"; },
       Severity::warn,
       {"two different NCCL copies in one process are no longer noticed",
        "进程内有两份不同的 NCCL 时不再提示"}},
      {"NVSHMEM_DISABLE_CUDA_VMM",
       [](const Lint&, const std::string& v) { return v == "1"; },
       Severity::info,
       {"not needed; takes MNNVL and large heaps away", "不需要；会失去 MNNVL 与大堆"}},
      {"NVSHMEM_IBGDA_ENABLE_MULTI_PORT",
       [](const Lint&, const std::string& v) { return v == "1"; },
       Severity::info,
       {"costs latency on Hopper and newer", "在 Hopper 及更新架构上增加延迟"}},
  };
  for (const auto& r : kRows)
    if (l.has(r.name) && r.bad(l, l.get(r.name)))
      l.say("env-danger", r.severity, r.name,
            {fmt::format("{}: {}", r.name, r.why.en), fmt::format("{}：{}", r.name, r.why.zh)});
  if (auto depth = parse_int(l.get("NVSHMEM_QP_DEPTH")); depth && *depth > 0 && *depth < 258)
    l.say("env-danger", Severity::warn, "NVSHMEM_QP_DEPTH",
          both("a depth of {} holds {} tokens a rank in low-latency mode (2 * (tokens + 1) are needed)",
               "深度 {} 在低延迟模式下每 rank 只容 {} 个 token（需要 2 * (token 数 + 1)）", *depth,
               *depth / 2 - 1));
}

}  // namespace

std::string EnvLintBench::version_of(const std::string& owner) const {
  if (owner == "nvshmem") return in.nvshmem;
  if (owner == "nccl") return in.nccl;
  if (in.facts)
    for (const auto& e : in.facts->python)
      for (const auto& p : e.packages)
        if (p.name == owner) return p.version;
  return {};
}

bool EnvLintBench::of_one_rank() const {
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID"})
    if (!get(name).empty()) return true;
  const std::string devices = get("CUDA_VISIBLE_DEVICES");
  return !devices.empty() && !contains(devices, ",");
}

std::vector<std::string> list_parts(const std::string& value, char sep) {
  std::vector<std::string> out;
  for (auto part : split(value, sep)) out.emplace_back(trim(part));
  return out;
}

std::optional<bool> peer_mapping_override(const Facts& facts) {
  const auto it = facts.driver.registry_dwords.find("PeerMappingOverride");
  if (it != facts.driver.registry_dwords.end()) return it->second == 1;
  for (const auto& o : facts.driver.options)
    if (o.name == "NVreg_RegistryDwords" && o.live.ok()) return false;
  return std::nullopt;
}

std::vector<Finding> lint_environment(const EnvLintInput& input, const Variables& variables) {
  Lint l{input, variables, {}};
  check_names(l);
  check_versions_and_values(l);
  check_no_effect(l);
  check_contradictions(l);
  check_dangers(l);
  check_nic_lists(l);
  check_against_host(l);
  std::stable_sort(l.out.begin(), l.out.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return std::move(l.out);
}

}  // namespace ep
