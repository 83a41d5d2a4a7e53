// See gid_drift.h.
#include "facts/gid_drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/words.h"
#include "facts/reading.h"

namespace ep {
namespace {

const GidEntry* entry_at(const RdmaDevice& d, int index) {
  for (const auto& p : d.ports)
    for (const auto& e : p.gids)
      if (e.index == index) return &e;
  return nullptr;
}

std::string shown(const RdmaDevice& d, std::optional<int> index) {
  if (!index) return "no entry that other hosts reach";
  const GidEntry* e = entry_at(d, *index);
  return fmt::format("index {}: {} {}", *index, e->gid, e->netdev.value_or(""));
}

bool same_tables(const RdmaDevice& a, const RdmaDevice& b) {
  auto flat = [](const RdmaDevice& d) {
    std::set<std::string> out;
    for (const auto& p : d.ports)
      for (const auto& e : p.gids)
        out.insert(fmt::format("{} {} {} {}", p.number, e.index, e.gid, e.type.value_or("")));
    return out;
  };
  return flat(a) == flat(b);
}

Finding make(const char* code, Severity severity, BothWords title) {
  Finding f;
  f.code = code;
  f.severity = severity;
  f.title = std::move(title.en);
  f.title_zh = std::move(title.zh);
  return f;
}

void compare_device(const RdmaDevice& a, const RdmaDevice& b, std::vector<Finding>& out) {
  auto before = routed_gid_index(a), after = routed_gid_index(b);
  auto add = [&](Severity severity, BothWords title) {
    out.push_back(make("gid_drift", severity, std::move(title)));
    out.back().evidence.push_back({"before", 0, shown(a, before)});
    out.back().evidence.push_back({"after", 0, shown(b, after)});
  };
  if (before && !after) {
    add(Severity::fail, both("{}: the GID entry that other hosts reach is gone (index {} before)",
                             "{}：其他主机可达的 GID 条目已消失（之前索引为 {}）", b.name, *before));
  } else if (!before && after) {
    add(Severity::warn, both("{}: a GID entry that other hosts reach appeared at index {}",
                             "{}：新出现可达的 GID 条目，索引 {}", b.name, *after));
  } else if (before && *before != *after) {
    add(Severity::warn,
        both("{}: the right GID index moved from {} to {}: a number that was pinned before is wrong now",
             "{}：正确的 GID 索引由 {} 变为 {}：此前固定的索引现在是错的", b.name, *before, *after));
  } else if (before && entry_at(a, *before)->gid != entry_at(b, *after)->gid) {
    add(Severity::warn,
        both("{}: GID index {} has another address now", "{}：GID 索引 {} 的地址已改变", b.name, *after));
  } else if (!same_tables(a, b)) {
    add(Severity::info, both("{}: other GID entries changed; the right index is still the same",
                             "{}：其他 GID 条目有变化；正确的索引未变", b.name));
  }
}

// What tells hardware apart from all other hardware: software devices get their GUID from a random MAC.
std::set<std::string> guids(const Facts& f) {
  std::set<std::string> out;
  for (const auto& d : f.rdma)
    if (d.node_guid.ok() && d.node_guid->find_first_not_of("0:x") != std::string::npos)
      out.insert(replace_all(replace_all(lower(*d.node_guid), ":", ""), "0x", ""));
  return out;
}

}  // namespace

std::vector<Finding> gid_drift(const std::vector<RdmaDevice>& before, const std::vector<RdmaDevice>& after) {
  std::vector<Finding> out;
  auto find = [](const std::vector<RdmaDevice>& in, const std::string& name) {
    auto it = std::find_if(in.begin(), in.end(), [&](const RdmaDevice& d) { return d.name == name; });
    return it == in.end() ? nullptr : &*it;
  };
  for (const auto& a : before) {
    if (const RdmaDevice* b = find(after, a.name))
      compare_device(a, *b, out);
    else
      out.push_back(make("device_gone", Severity::warn,
                         both("{} is gone since the first reading", "{} 自首次读取后消失", a.name)));
  }
  for (const auto& b : after)
    if (!find(before, b.name))
      out.push_back(make("device_new", Severity::info,
                         both("{} is new since the first reading", "{} 在首次读取后出现", b.name)));
  return out;
}

bool same_machine(const Facts& a, const Facts& b) {
  auto ga = guids(a), gb = guids(b);
  if (!ga.empty() && !gb.empty())
    return std::any_of(ga.begin(), ga.end(), [&](const std::string& g) { return gb.count(g) > 0; });
  if (!a.os.hostname.ok() || !b.os.hostname.ok() || *a.os.hostname != *b.os.hostname) return false;
  std::set<std::string> pa, pb;
  for (const auto& d : a.rdma) pa.insert(d.name + d.address);
  for (const auto& d : b.rdma) pb.insert(d.name + d.address);
  return !pa.empty() && pa == pb;
}

}  // namespace ep
