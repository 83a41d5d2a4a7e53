// Lists of NICs (NVSHMEM_HCA_LIST, NVSHMEM_HCA_PE_MAPPING, DEEP_EP_DEVICE_TO_HCA_MAPPING, NCCL_IB_HCA,
// EP_NIC_NAME): are they written as their readers read them, and is what they choose right on this host?
// Sources: stack-facts 3.6 and 4.5, topologies section 5.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "check/env_lint_parts.h"

namespace ep {
namespace {

using Lint = EnvLintBench;
constexpr const char* kMapping = "DEEP_EP_DEVICE_TO_HCA_MAPPING";

struct Entry {
  std::string text;
  int gpu = -1;  ///< mapping only
  std::string nic;
  int port = 0;  ///< 0: not named
};

/// "name", "name:port" or, with `counts`, "name:port:count"; false when it is none of them.
bool read_nic(const std::string& text, bool counts, Entry& e) {
  const auto f = list_parts(text, ':');
  if (f.empty() || f[0].empty() || f.size() > (counts ? 3u : 2u)) return false;
  e.nic = f[0];
  for (size_t i = 1; i < f.size(); ++i) {
    const auto n = parse_int(f[i]);
    if (!n || *n < 1 || *n > 65535) return false;
    if (i == 1) e.port = int(*n);
  }
  return true;
}

struct List {
  std::vector<Entry> entries;
  std::vector<std::string> malformed;
};

List read_list(const std::string& value, bool with_gpu, bool counts = false) {
  List out;
  std::string s = value;
  while (!s.empty() && (s[0] == '=' || s[0] == '^')) s.erase(0, 1);
  for (const auto& part : list_parts(s)) {
    if (part.empty()) continue;
    Entry e;
    e.text = part;
    std::string rest = part;
    bool good = true;
    if (with_gpu) {
      const size_t colon = part.find(':');
      const auto gpu = parse_int(std::string_view(part).substr(0, colon));
      good = colon != part.npos && gpu && *gpu >= 0 && *gpu < 1024;
      if (good) {
        e.gpu = int(*gpu);
        rest = part.substr(colon + 1);
      }
    }
    if (good && read_nic(rest, counts, e))
      out.entries.push_back(e);
    else
      out.malformed.push_back(part);
  }
  return out;
}

std::string numbers(const std::vector<int>& list) {
  std::string out;
  for (int n : list) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return out;
}

/// Names that the host lacks, ports that a device lacks, devices that are not for EP.
void check_names_there(Lint& l, const char* variable, const std::vector<Entry>& entries) {
  const Topology& t = *l.in.topology;
  std::set<std::string> said;
  for (const auto& e : entries) {
    if (!said.insert(e.nic).second) continue;
    const TopologyNic* nic = t.nic(e.nic);
    if (!nic) {
      l.say("env-danger", Severity::fail, variable,
            both("{} names {}, which this host does not have", "{} 指定了 {}，本机没有该设备", variable,
                 e.nic));
      continue;
    }
    if (!nic->usable)
      l.say("env-danger", Severity::warn, variable,
            {fmt::format("{} names {}, which is not for EP here ({}: {})", variable, e.nic, nic->role,
                         nic->reason.en),
             fmt::format("{} 指定了 {}，它在此不用于 EP（{}：{}）", variable, e.nic, nic->role,
                         nic->reason.zh)});
  }
  if (!l.in.facts) return;
  for (const auto& e : entries)
    for (const auto& d : l.in.facts->rdma)
      if (d.name == e.nic && e.port > 0 && !d.ports.empty() &&
          std::none_of(d.ports.begin(), d.ports.end(), [&](const RdmaPort& p) { return p.number == e.port; }))
        l.say(
            "env-danger", Severity::fail, variable,
            both("{} names port {} of {}, which has {}", "{0} 指定了 {2} 的 {1} 号端口，该设备有 {3} 个端口",
                 variable, e.port, e.nic, d.ports.size()));
}

void malformed(Lint& l, const char* variable, const std::vector<std::string>& parts, const char* form,
               const std::string& right) {
  if (parts.empty()) return;
  l.say("env-value", Severity::fail, variable,
        both("{} is a list of {}; \"{}\" is none", "{} 是 {} 的列表；\"{}\" 不是", variable, form,
             join(parts, "\", \"")),
        right.empty() ? "" : fmt::format("{}={}", variable, right));
}

/// Every process of DeepEP V1 is PE 0 of a world of its own: of a list it takes the first entry, always.
void check_first_entry(Lint& l, const char* variable, const std::vector<std::string>& names) {
  const std::set<std::string> different(names.begin(), names.end());
  if (l.in.lane == "v2" || !l.on("NVSHMEM_ENABLE_NIC_PE_MAPPING") || l.has(kMapping)) return;
  const Topology* t = l.in.topology;
  if (different.size() > 1) {
    auto& f = l.say(
        "env-danger", Severity::fail, variable,
        both("all GPUs of this host take {}, the first of {} NICs: DeepEP V1 starts every process as PE 0 of "
             "its own world",
             "本机所有 GPU 都会取 {1} 张网卡中的第一张 {0}：DeepEP V1 的每个进程都是自己 world 的 PE 0",
             names.front(), different.size()));
    f.cause = "One NIC then carries everything: 6.5 instead of 50 to 80 GB/s were seen.";
    f.cause_zh = "于是一张网卡承担全部流量：实测为 6.5 而非 50 至 80 GB/s。";
    f.fix.push_back("give each process its own NVSHMEM_HCA_LIST, as epready env --shell does");
  } else if (different.size() == 1 && t && t->gpus.size() > 1 && t->usable().size() > 1 && !l.of_one_rank()) {
    l.say("env-danger", Severity::warn, variable,
          both("{} alone is right for one process; set for the whole host, one NIC of {} carries everything",
               "只写 {} 适用于单个进程；若对整机设置，{} 张网卡中只有一张承担全部流量", names.front(),
               t->usable().size()));
  }
}

void check_nvshmem_lists(Lint& l) {
  const Topology* t = l.in.topology;
  for (const char* variable : {"NVSHMEM_HCA_LIST", "NVSHMEM_HCA_PE_MAPPING"}) {
    const std::string value = l.get(variable);
    if (value.empty()) continue;
    const bool counts = std::string_view(variable) == "NVSHMEM_HCA_PE_MAPPING";
    if (value[0] == '=')
      l.say("env-value", Severity::fail, variable,
            both("{} knows no = form: that is NCCL's; no device is called \"{}\"",
                 "{} 没有 = 形式，那是 NCCL 的写法；没有名为 \"{}\" 的设备", variable, list_parts(value)[0]));
    const List list = read_list(value, false, counts);
    malformed(l, variable, list.malformed, counts ? "name:port:count" : "name:port", "");
    if (t && !t->nics.empty() && value[0] != '^') check_names_there(l, variable, list.entries);
    std::vector<std::string> names;
    if (value[0] != '^') {
      for (const auto& e : list.entries) names.push_back(e.nic);
    } else if (t) {
      for (const auto& n : t->usable())
        if (std::none_of(list.entries.begin(), list.entries.end(),
                         [&](const Entry& e) { return starts_with(n, e.nic); }))
          names.push_back(n);
    }
    if (!names.empty()) check_first_entry(l, variable, names);
  }
}

// ---- the mapping of pull request 466 ----

/// A device that is missing from the list raises KeyError in the patched DeepEP.
void check_complete(Lint& l, const std::vector<Entry>& entries) {
  const Topology& t = *l.in.topology;
  std::map<int, int> times;
  for (const auto& e : entries) ++times[e.gpu];
  std::vector<int> twice, missing, none;
  for (const auto& [gpu, n] : times) {
    if (n > 1) twice.push_back(gpu);
    if (!t.gpus.empty() &&
        std::none_of(t.gpus.begin(), t.gpus.end(), [&, g = gpu](const auto& x) { return x.index == g; }))
      none.push_back(gpu);
  }
  for (const auto& g : t.gpus)
    if (!times.count(g.index)) missing.push_back(g.index);
  if (!twice.empty())
    l.say("env-value", Severity::fail, kMapping,
          both("GPU {} stands in the list more than once", "GPU {} 在列表中出现多次", numbers(twice)),
          t.strings.deep_ep);
  if (!none.empty())
    l.say("env-danger", Severity::warn, kMapping,
          both("this host has no GPU {}", "本机没有 GPU {}", numbers(none)), t.strings.deep_ep);
  if (!missing.empty() && !entries.empty())
    l.say("env-danger", Severity::fail, kMapping,
          both("GPU {} is not in the list: DeepEP stops there with KeyError",
               "列表中没有 GPU {}：DeepEP 会以 KeyError 终止", numbers(missing)),
          t.strings.deep_ep);
}

/// More GPUs on a NIC than the machine makes necessary.
void check_shares(Lint& l, const std::vector<Entry>& entries) {
  const Topology& t = *l.in.topology;
  const size_t usable = t.usable().size();
  if (usable == 0) return;
  const size_t gpus = std::max(t.gpus.size(), entries.size());
  size_t fair = (gpus + usable - 1) / usable;
  std::map<std::string, size_t> ours;  // what lies near together may have to share more
  for (const auto& [gpu, nic] : t.mapping.pairs) fair = std::max(fair, ++ours[nic]);
  std::map<std::string, std::set<int>> on;
  for (const auto& e : entries) on[e.nic].insert(e.gpu);
  std::string en, zh;
  for (const auto& [nic, who] : on) {
    if (who.size() <= fair) continue;
    const std::string list = numbers({who.begin(), who.end()});
    en += fmt::format("{}GPUs {} share {}", en.empty() ? "" : "; ", list, nic);
    zh += fmt::format("{}GPU {} 共用 {}", zh.empty() ? "" : "；", list, nic);
  }
  if (!en.empty())
    l.say("env-danger", Severity::fail, kMapping,
          {fmt::format("{}, while this host has {} NICs for {} GPUs", en, usable, gpus),
           fmt::format("{}，而本机有 {} 张网卡、{} 块 GPU", zh, usable, gpus)},
          t.strings.deep_ep);
}

/// Every GPU that is sent farther away than it must be.
void check_distance(Lint& l, const std::vector<Entry>& entries) {
  const Topology& t = *l.in.topology;
  std::string en, zh;
  for (const auto& e : entries) {
    size_t g = 0, n = 0;
    while (g < t.gpus.size() && t.gpus[g].index != e.gpu) ++g;
    while (n < t.nics.size() && t.nics[n].name != e.nic) ++n;
    if (g >= t.gpu_nic.size() || g >= t.gpus.size() || n >= t.gpu_nic[g].size()) continue;
    const LinkClass have = t.gpu_nic[g][n];
    const auto ours = t.mapping.pairs.find(e.gpu);
    const auto relation = t.mapping.relation.find(e.gpu);
    if (have == LinkClass::unknown || ours == t.mapping.pairs.end() || ours->second == e.nic ||
        relation == t.mapping.relation.end() || relation->second == LinkClass::unknown)
      continue;
    if (is_near(have) || distance_weight(have) <= distance_weight(relation->second)) continue;
    en += fmt::format("{}GPU {} is sent to {} ({}), {} is nearer ({})", en.empty() ? "" : "; ", e.gpu, e.nic,
                      to_string(have), ours->second, to_string(relation->second));
    zh += fmt::format("{}GPU {} 被指向 {}（{}），而 {} 更近（{}）", zh.empty() ? "" : "；", e.gpu, e.nic,
                      to_string(have), ours->second, to_string(relation->second));
  }
  if (!en.empty()) l.say("env-danger", Severity::fail, kMapping, {en, zh}, t.strings.deep_ep);
}

void check_mapping(Lint& l) {
  const std::string value = l.get(kMapping);
  if (value.empty()) return;
  const List list = read_list(value, true);
  const Topology* t = l.in.topology;
  malformed(l, kMapping, list.malformed, "GPU:NIC:port", t ? t->strings.deep_ep : "");
  if (!t || t->nics.empty() || list.entries.empty()) return;
  check_names_there(l, kMapping, list.entries);
  if (list.malformed.empty()) check_complete(l, list.entries);
  check_shares(l, list.entries);
  check_distance(l, list.entries);
}

// ---- NCCL_IB_HCA ----

void check_nccl(Lint& l) {
  constexpr const char* kName = "NCCL_IB_HCA";
  const std::string value = l.get(kName);
  if (value.empty()) return;
  const bool excludes = value[0] == '^', exact = value.find('=') < 2;
  const List list = read_list(value, false);
  const Topology* t = l.in.topology;
  malformed(l, kName, list.malformed, "name[:port]", t ? t->strings.nccl_ib_hca : "");
  if (!t || t->nics.empty() || list.entries.empty()) return;
  const auto named = [&](const std::string& nic, bool by_prefix) {
    return std::any_of(list.entries.begin(), list.entries.end(), [&](const Entry& e) {
      return by_prefix ? starts_with(nic, e.nic) && nic != e.nic : nic == e.nic;
    });
  };
  std::vector<std::string> also, lost, taken;
  for (const auto& nic : t->nics) {
    const bool chosen = (named(nic.name, false) || (!exact && named(nic.name, true))) != excludes;
    if (nic.usable) (chosen ? taken : lost).push_back(nic.name);
    if (!exact && !excludes && named(nic.name, true) && !named(nic.name, false)) also.push_back(nic.name);
  }
  std::vector<Entry> exactly;  // a prefix that other names begin with is no missing name
  for (const auto& e : list.entries) {
    const bool prefix = !exact && std::any_of(t->nics.begin(), t->nics.end(), [&](const TopologyNic& n) {
      return n.name != e.nic && starts_with(n.name, e.nic);
    });
    if (!prefix || t->nic(e.nic)) exactly.push_back(e);
  }
  if (!excludes) check_names_there(l, kName, exactly);
  std::vector<std::string> wrong;  // what the prefix brings in and EP must not use
  bool meant_one = false;          // a whole name that is a prefix of another by accident
  for (const auto& n : also) {
    if (!t->nic(n)->usable) wrong.push_back(n);
    for (const auto& e : list.entries) meant_one |= t->nic(e.nic) && starts_with(n, e.nic);
  }
  if (!wrong.empty() || (meant_one && !also.empty()))
    l.say("env-danger", wrong.empty() ? Severity::info : Severity::warn, kName,
          both("without = the names are prefixes: they also take {}", "不带 = 时按前缀匹配：还会匹配 {}",
               join(wrong.empty() ? also : wrong, ", ")),
          t->strings.nccl_ib_hca.empty() ? "" : "NCCL_IB_HCA=" + t->strings.nccl_ib_hca);
  if (lost.empty() || l.of_one_rank() || t->gpus.size() < 2) return;
  std::vector<int> without;
  for (const auto& [gpu, nic] : t->mapping.pairs)
    if (std::find(lost.begin(), lost.end(), nic) != lost.end()) without.push_back(gpu);
  // Of two NICs at one GPU one may stay idle on purpose.
  if (without.empty() && !taken.empty() && !t->mapping.pairs.empty()) return;
  const std::string gpus = numbers(without);
  l.say("env-danger", without.empty() && !taken.empty() ? Severity::warn : Severity::fail, kName,
        {fmt::format("NCCL takes {} of the {} NICs for EP here{}; left out: {}", taken.size(),
                     taken.size() + lost.size(), gpus.empty() ? "" : ", and GPU " + gpus + " not its own",
                     join(lost, ", ")),
         fmt::format("NCCL 只用本机 {} 张 EP 网卡中的 {} 张{}；未包含：{}", taken.size() + lost.size(),
                     taken.size(), gpus.empty() ? "" : "，GPU " + gpus + " 用不到自己的网卡",
                     join(lost, ", "))},
        t->strings.nccl_ib_hca.empty() ? "" : "NCCL_IB_HCA=" + t->strings.nccl_ib_hca);
}

}  // namespace

void check_nic_lists(EnvLintBench& l) {
  check_nvshmem_lists(l);
  check_mapping(l);
  check_nccl(l);
  const std::string name = l.get("EP_NIC_NAME");
  if (l.in.topology && !l.in.topology->nics.empty() && !name.empty())
    check_names_there(l, "EP_NIC_NAME", {Entry{name, -1, name, 0}});
}

}  // namespace ep
