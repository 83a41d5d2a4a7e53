// `facts`: what this machine is, and how it differs from another.
#include "facts/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/rows.h"
#include "host/host.h"
#include "report/facts_json.h"
#include "report/facts_text.h"

namespace ep {

namespace {

class FactsCommand : public Command {
 public:
  std::vector<Option> options() override {
    return {
        {"--area",
         {"Only this area, with the place of every fact", "只显示该部分，并给出每项的来源"},
         &area_,
         {},
         "AREA",
         false},
        {"--all", {"Absent facts and long lists too", "同时显示不存在的项与长列表"}, &all_, {}, "", false},
        {"--against",
         {"Another host (snapshot, sample or paste): show what differs",
          "另一台主机（快照、样例或粘贴文本）：显示差异"},
         &against_,
         {},
         "HOST",
         false},
        {"--volatile",
         {"With --against: also what differs between any two machines",
          "配合 --against：包含任意两机都不同的项"},
         &volatile_,
         {},
         "",
         false}};
  }

  int run(Context& c) override {
    auto areas = fact_areas();
    if (!area_.empty() && std::find(areas.begin(), areas.end(), area_) == areas.end()) {
      auto near = closest(area_, areas);
      return c.report({ErrorKind::usage,
                       "no area is called " + area_,
                       "--area",
                       "the areas are: " + join(areas, ", "),
                       near ? "epready facts --area " + *near : "",
                       {}});
    }
    auto host = c.open();
    if (!host) return c.report(host.error());
    const auto facts = c.read(**host);
    if (!facts) return c.report(facts.error());
    if (!against_.empty()) return compare(c, *facts);
    if (c.json) {
      c.out(facts_json(*facts, area_));
      return 0;
    }
    c.out(facts_text(*facts, {area_, all_}, c.look()));
    c.next((area_.empty() ? "epready lanes" : "epready facts") + c.from_option());
    return 0;
  }

 private:
  int compare(Context& c, const Facts& ours) {
    auto other = open_host(against_);
    if (!other) return c.report(other.error());
    const auto theirs = c.read(**other);
    if (!theirs) return c.report(theirs.error());
    auto differences = compare_facts(ours, *theirs, volatile_);
    if (!area_.empty())
      differences.erase(std::remove_if(differences.begin(), differences.end(),
                                       [&](auto& d) { return !starts_with(d.path, area_ + "/"); }),
                        differences.end());
    if (c.json) {
      nlohmann::ordered_json j{{"schema", "epready-facts-difference-1"},
                               {"tool", "epready"},
                               {"a", ours.host_name},
                               {"b", theirs->host_name}};
      j["differences"] = nlohmann::ordered_json::array();
      for (const auto& d : differences)
        j["differences"].push_back({{"fact", d.path}, {"a", d.a}, {"b", d.b}});
      c.out(j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    } else if (differences.empty()) {
      c.out(fmt::format("{}\n", c.tr({"no difference", "没有差异"})));
    } else {
      c.out(fmt::format("a = {}\nb = {}\n", ours.host_name, theirs->host_name));
      for (const auto& d : differences) c.out(fmt::format("{}\n  a {}\n  b {}\n", d.path, d.a, d.b));
      c.out(fmt::format("{} {}\n", differences.size(), c.tr({"differences", "处差异"})));
    }
    c.next("epready facts --area AREA");
    return differences.empty() ? 0 : 1;
  }

  std::string area_, against_;
  bool all_ = false, volatile_ = false;
};

}  // namespace

std::unique_ptr<Command> make_facts() {
  return std::make_unique<FactsCommand>();
}

}  // namespace ep
