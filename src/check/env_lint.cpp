// See env_lint.h. One function a kind of mistake.
#include "check/env_lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/version.h"
#include "base/words.h"

namespace ep {
namespace {

struct Lint {
  const EnvLintInput& in;
  const Variables& vars;
  std::vector<Finding> out;

  std::string get(const std::string& name) const {
    auto it = in.environment.find(name);
    return it == in.environment.end() ? std::string() : std::string(trim(it->second));
  }
  bool has(const std::string& name) const { return in.environment.count(name) > 0; }
  bool on(const std::string& name) const {
    std::string v = lower(get(name));
    return !v.empty() && v != "0" && v != "false" && v != "no" && v != "off" && v != "n";
  }
  Finding& say(const char* code, Severity s, const std::string& name, BothWords title, std::string fix = {}) {
    Finding f;
    f.code = code;
    f.severity = s;
    f.title = std::move(title.en);
    f.title_zh = std::move(title.zh);
    f.evidence.push_back({"environment", 0, name + "=" + get(name)});
    if (!fix.empty()) f.fix.push_back(std::move(fix));
    out.push_back(std::move(f));
    return out.back();
  }
  std::string version_of(const std::string& owner) const {
    return owner == "nvshmem" ? in.nvshmem : owner == "nccl" ? in.nccl : "";
  }
};

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
  return both("{} takes a number; \"{}\" is none", "{} 取数字；\"{}\" 不是", name, have);
}

void check_versions_and_values(Lint& l) {
  for (const auto& [name, value] : l.in.environment) {
    const Variable* v = l.vars.find(name);
    if (!v) continue;
    std::string version = l.version_of(v->owner);
    if (!in_force(*v, version))
      l.say("env-version", Severity::warn, name,
            v->until.empty()
                ? both("{} exists from {} {}; {} is here: no effect",
                       "{} 自 {} {} 起才有；此处为 {}：不起作用", name, v->owner, v->since, version)
                : both("{} is gone from {} {}: no effect", "{} 自 {} {} 起已取消：不起作用", name, v->owner,
                       v->until));
    std::string x(trim(value));
    if (x.empty()) continue;
    bool bad = (v->form == "switch" && !is_switch(x)) || (v->form == "number" && !parse_int(x)) ||
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
    if (!v->overwritten_by.empty() && l.in.lane != "v2")
      l.say("env-overwritten", Severity::info, name,
            both("{} is written again by {}: what is set here has no effect for it",
                 "{} 会被 {} 重新写入：此处的设置对它无效", name, v->overwritten_by));
  }
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
    l.say("env-danger", Severity::warn, "NVSHMEM_ENABLE_NIC_PE_MAPPING",
          {"without a list each DeepEP process takes the first device: it is PE 0 of its own world, and one "
           "NIC carries everything",
           "没有列表时每个 DeepEP 进程都取第一个设备：它是自己 world 的 PE 0，全部流量落在一张网卡上"});
  if (l.has("NVSHMEM_HCA_PE_MAPPING") && mapping_on && l.in.lane != "v2")
    l.say("env-danger", Severity::warn, "NVSHMEM_HCA_PE_MAPPING",
          {"DeepEP V1 starts every process as PE 0 of its own world: all take the first entry; give each "
           "process its NVSHMEM_HCA_LIST",
           "DeepEP V1 的每个进程都是自己 world 的 PE 0：都会取第一项；请给每个进程各自的 NVSHMEM_HCA_LIST"});
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
      {"NCCL_CROSS_NIC",
       [](const Lint& x, const std::string& v) {
         return v == "0" && x.in.lane == "v2" && x.has("NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE");
       },
       Severity::info,
       {"gIB wants 0: rails stay apart, so V2 must run in hybrid mode (allow_hybrid_mode=1)",
        "gIB 要求 0：各 rail 分离，因此 V2 必须用 hybrid 模式（allow_hybrid_mode=1）"}},
      {"NCCL_P2P_DISABLE",
       [](const Lint&, const std::string& v) { return v == "1"; },
       Severity::fail,
       {"1 takes NVLink peer access away", "1 会失去 NVLink 直接访问"}},
      {"NCCL_IB_DISABLE",
       [](const Lint&, const std::string& v) { return v == "1"; },
       Severity::fail,
       {"1 takes RDMA away from NCCL", "1 使 NCCL 失去 RDMA"}},
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
  if (lower(l.get("NVSHMEM_IBGDA_NIC_HANDLER")) == "gpu" && l.in.peer_mapping_override == false)
    l.say("env-danger", Severity::fail, "NVSHMEM_IBGDA_NIC_HANDLER",
          {"gpu needs PeerMappingOverride=1 in the loaded driver, which is not set here: NVSHMEM ends with "
           "\"GPU cannot map UAR\" instead of falling back; auto falls back from 3.4.5",
           "gpu 需要已加载驱动的 PeerMappingOverride=1，此处未设置：NVSHMEM 会以 \"GPU cannot map UAR\" "
           "终止而不降级；auto 自 3.4.5 起可降级"},
          "unset NVSHMEM_IBGDA_NIC_HANDLER, or set the option (epready driver) and reboot");
  if (l.get("NVSHMEM_IBGDA_NIC_HANDLER") == "cpu_host_memory" && !l.in.nvshmem.empty() &&
      compare_versions(VersionOrder::dotted, l.in.nvshmem, "3.4.5") < 0)
    l.say("env-version", Severity::fail, "NVSHMEM_IBGDA_NIC_HANDLER",
          both("cpu_host_memory exists from NVSHMEM 3.4.5; {} is here",
               "cpu_host_memory 自 NVSHMEM 3.4.5 起才有；此处为 {}", l.in.nvshmem));
}

// Names out of lists such as "=mlx5_0:1,mlx5_3" or "0:mlx5_0:1,1:mlx5_1:1".
std::vector<std::string> names_in(const std::string& list, bool with_gpu) {
  std::vector<std::string> out;
  std::string s = list;
  while (!s.empty() && (s[0] == '=' || s[0] == '^')) s.erase(0, 1);
  for (auto part : split(s, ',')) {
    auto f = split(trim(part), ':');
    size_t k = with_gpu ? 1 : 0;
    if (f.size() > k && !f[k].empty()) out.emplace_back(f[k]);
  }
  return out;
}

void check_against_host(Lint& l) {
  const Topology* t = l.in.topology;
  if (!t || t->nics.empty()) return;
  struct Row {
    const char* name;
    bool gpu;
  };
  for (Row r :
       {Row{"NVSHMEM_HCA_LIST", false}, Row{"NVSHMEM_HCA_PE_MAPPING", false},
        Row{"DEEP_EP_DEVICE_TO_HCA_MAPPING", true}, Row{"NCCL_IB_HCA", false}, Row{"EP_NIC_NAME", false}}) {
    std::string value = l.get(r.name);
    if (value.empty() || value[0] == '^') continue;
    bool prefix_form = std::string_view(r.name) == "NCCL_IB_HCA" && value[0] != '=';
    for (const auto& n : names_in(value, r.gpu)) {
      const TopologyNic* nic = t->nic(n);
      if (!nic) {
        bool any = prefix_form && std::any_of(t->nics.begin(), t->nics.end(),
                                              [&](const TopologyNic& x) { return starts_with(x.name, n); });
        if (!any)
          l.say(
              "env-danger", Severity::fail, r.name,
              both("{} names {}, which this host does not have", "{} 指定了 {}，本机没有该设备", r.name, n));
      } else if (!nic->usable) {
        l.say("env-danger", Severity::warn, r.name,
              {fmt::format("{} names {}, which is not for EP here ({}: {})", r.name, n, nic->role,
                           nic->reason.en),
               fmt::format("{} 指定了 {}，它在此不用于 EP（{}：{}）", r.name, n, nic->role, nic->reason.zh)});
      }
      if (prefix_form && nic)
        for (const auto& x : t->nics)
          if (x.name != n && starts_with(x.name, n)) {
            l.say("env-danger", x.usable ? Severity::info : Severity::warn, r.name,
                  both("without = {} also takes {}", "不带 = 时 {} 也会匹配 {}", n, x.name),
                  "NCCL_IB_HCA=" + t->strings.nccl_ib_hca);
            prefix_form = false;
            break;
          }
    }
  }
  if (!t->strings.deep_ep.empty() && l.has("DEEP_EP_DEVICE_TO_HCA_MAPPING") &&
      l.get("DEEP_EP_DEVICE_TO_HCA_MAPPING") != t->strings.deep_ep)
    for (auto part : split(l.get("DEEP_EP_DEVICE_TO_HCA_MAPPING"), ',')) {
      auto f = split(trim(part), ':');
      auto gpu = f.size() >= 2 ? parse_int(f[0]) : std::nullopt;
      if (!gpu) continue;
      auto want = t->mapping.pairs.find(int(*gpu));
      if (want == t->mapping.pairs.end() || want->second == f[1]) continue;
      size_t g = 0;
      while (g < t->gpus.size() && t->gpus[g].index != int(*gpu)) ++g;
      for (size_t n = 0; g < t->gpus.size() && n < t->nics.size(); ++n)
        if (t->nics[n].name == f[1] && !is_near(t->gpu_nic[g][n]) &&
            is_near(t->mapping.relation.at(int(*gpu)))) {
          l.say(
              "env-danger", Severity::warn, "DEEP_EP_DEVICE_TO_HCA_MAPPING",
              both("GPU {} is sent to {} ({}), {} is nearer ({})", "GPU {} 被指向 {}（{}），而 {} 更近（{}）",
                   *gpu, f[1], to_string(t->gpu_nic[g][n]), want->second,
                   to_string(want->second.empty() ? LinkClass::unknown : t->mapping.relation.at(int(*gpu)))),
              t->strings.deep_ep);
          return;
        }
    }
  for (const char* name : {"NVSHMEM_IB_GID_INDEX", "NCCL_IB_GID_INDEX"}) {
    auto index = parse_int(l.get(name));
    if (!index || *index < 0) continue;
    if (t->gid.needed.has_value() && !*t->gid.needed && *index != 0)
      l.say("env-danger", Severity::warn, name,
            both("{} is set, but this is InfiniBand: another index than 0 may not exist",
                 "设置了 {}，但这是 InfiniBand：0 以外的索引可能不存在", name));
    for (const auto& [dev, right] : t->gid.per_device)
      if (right != *index) {
        l.say("env-danger", Severity::fail, name,
              both("{}={}, but {} needs {}: leave it unset", "{}={}，而 {} 需要 {}：请不要设置", name, *index,
                   dev, right));
        break;
      }
  }
}

}  // namespace

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
  check_against_host(l);
  std::stable_sort(l.out.begin(), l.out.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return std::move(l.out);
}

}  // namespace ep
