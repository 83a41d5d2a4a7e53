// From a path's history to what is to be put back.
#include <algorithm>
#include <map>

#include "apply/keeper.h"
#include "apply/undo.h"

namespace ep {
namespace {

std::string stamp_of(const Record& r) {
  return r.value("stamp", "");
}
std::string now_of(const Record& r) {
  return r.value("now", "");
}

WayBack way_back(const std::string& path, std::vector<Record> history, const std::string& today) {
  WayBack out;
  out.path = path;
  out.last = history.back()["n"].get<long long>();
  for (const auto& r : history) out.records.push_back(r["n"].get<long long>());
  // A run that was killed between record and change left records whose change never came.
  while (!history.empty() && today != now_of(history.back()) && today == stamp_of(history.back()))
    history.pop_back();
  if (history.empty()) return out;
  size_t first = history.size() - 1;
  while (first > 0 && now_of(history[first - 1]) == stamp_of(history[first])) --first;
  out.original = history[first];
  out.hand_before = first > 0;
  std::string before = stamp_of(out.original);
  if (today == before) return out;
  if (today != now_of(history.back()))
    out.kind = WayBack::Kind::changed_by_hand;
  else
    out.kind = before == "absent" ? WayBack::Kind::remove : WayBack::Kind::restore;
  return out;
}

}  // namespace

std::set<long long> undone_records(const std::vector<Record>& records) {
  std::set<long long> out;
  for (const auto& r : records)
    if (r["e"] == "undone") out.insert(r.value("of", 0LL));
  return out;
}

Result<std::vector<WayBack>> ways_back(const std::vector<Record>& records, const ReadEntry& read) {
  std::set<long long> undone = undone_records(records);
  std::map<std::string, std::vector<Record>> by_path;
  for (const auto& r : records)
    if (r["e"] == "entry" && !undone.count(r["n"].get<long long>()))
      by_path[r.value("path", "")].push_back(r);
  std::vector<WayBack> out;
  for (auto& [path, history] : by_path) {
    auto entry = read(path);
    if (!entry) return Failure(entry.error());
    out.push_back(way_back(path, std::move(history), entry_stamp(*entry)));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.last > b.last; });
  return out;
}

}  // namespace ep
