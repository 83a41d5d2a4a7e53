// Set arithmetic over installed packages.
#include "apply/package_set.h"

#include <algorithm>
#include <deque>

#include "base/text.h"

namespace ep {
namespace {

// "libc6:amd64 (>= 2.34)" -> "libc6"
std::string bare(std::string_view need) {
  need = trim(need);
  size_t end = need.find_first_of(" (:[");
  return std::string(need.substr(0, end));
}

std::vector<std::string> second_words(std::string_view text, std::string_view first) {
  std::vector<std::string> out;
  for (auto line : lines(text)) {
    auto words = split_ws(line);
    if (words.size() >= 2 && words[0] == first) out.push_back(bare(words[1]));
  }
  return out;
}

}  // namespace

const char* const kDpkgFormat =
    "${Package}\\t${db:Status-Status}\\t${Depends}, ${Pre-Depends}\\t${Provides}\\n";

std::vector<InstalledPackage> parse_installed(std::string_view text) {
  std::vector<InstalledPackage> out;
  for (auto line : lines(text)) {
    auto fields = split(line, '\t');
    if (fields.size() < 4 || fields[1] != "installed") continue;
    InstalledPackage p;
    p.name = bare(fields[0]);
    for (auto need : split(fields[2], ',')) {
      std::vector<std::string> any;
      for (auto alternative : split(need, '|'))
        if (auto name = bare(alternative); !name.empty()) any.push_back(std::move(name));
      if (!any.empty()) p.needs.push_back(std::move(any));
    }
    for (auto provided : split(fields[3], ','))
      if (auto name = bare(provided); !name.empty()) p.provides.push_back(std::move(name));
    out.push_back(std::move(p));
  }
  return out;
}

Removal packages_to_remove(const std::set<std::string>& ours,
                           const std::vector<InstalledPackage>& installed) {
  std::map<std::string, std::vector<const InstalledPackage*>> by_name;  // real names and provided ones
  for (const auto& p : installed) {
    by_name[p.name].push_back(&p);
    for (const auto& v : p.provides) by_name[v].push_back(&p);
  }
  Removal out;
  std::deque<const InstalledPackage*> todo;
  for (const auto& p : installed)
    if (!ours.count(p.name)) todo.push_back(&p);
  std::set<std::string> stays;
  while (!todo.empty()) {
    const InstalledPackage* p = todo.front();
    todo.pop_front();
    for (const auto& any : p->needs) {
      std::vector<const InstalledPackage*> candidates;
      for (const auto& name : any)
        if (auto it = by_name.find(name); it != by_name.end())
          candidates.insert(candidates.end(), it->second.begin(), it->second.end());
      bool met = std::any_of(candidates.begin(), candidates.end(), [&](const InstalledPackage* c) {
        return !ours.count(c->name) || stays.count(c->name);
      });
      if (met || candidates.empty()) continue;
      const InstalledPackage* keep = candidates.front();
      stays.insert(keep->name);
      out.needed[keep->name] = p->name;
      todo.push_back(keep);
    }
  }
  for (const auto& p : installed)
    if (ours.count(p.name) && !stays.count(p.name)) out.remove.push_back(p.name);
  std::sort(out.remove.begin(), out.remove.end());
  out.remove.erase(std::unique(out.remove.begin(), out.remove.end()), out.remove.end());
  return out;
}

std::vector<std::string> simulated_installs(std::string_view text) {
  return second_words(text, "Inst");
}
std::vector<std::string> simulated_removals(std::string_view text) {
  auto out = second_words(text, "Remv");
  for (auto& name : second_words(text, "Purg")) out.push_back(std::move(name));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace ep
