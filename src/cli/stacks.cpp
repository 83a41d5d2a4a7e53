// `stacks`: the named combinations, which of them fit this host, what each is made of and how far it has been
// run.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/words.h"
#include "cli/plan_options.h"
#include "cli/rows.h"
#include "plan/deviation.h"
#include "plan/fact_scope.h"

namespace ep {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  const Stack* stack;
  Solution solution;
  Deviation off;
  Truth made_for;  ///< its own conditions on facts: GPUs
  Verdict verdict() const {
    if (!solution.found || off.other_generation) return Verdict::fail;
    return off.none() && made_for != Truth::no ? Verdict::pass : Verdict::warn;
  }
};

Json stack_json(const Row& r) {
  const Stack& s = *r.stack;
  Json versions = Json::array(), refusals = Json::array(), sources = Json::array(),
       deviations = Json::array();
  for (const auto& c : r.solution.choices)
    versions.push_back({{"component", c.component}, {"version", c.version}, {"why", c.why}});
  for (const auto& o : r.solution.refusals)
    refusals.push_back({{"rule", o.rule}, {"text", o.text}, {"evidence", o.evidence}, {"source", o.source}});
  for (const auto& x : r.off.changes)
    deviations.push_back(
        {{"component", x.component}, {"pinned", x.pinned}, {"chosen", x.chosen}, {"why", x.why}});
  for (const auto& x : s.sources) sources.push_back({{"url", x.url}, {"date", x.date}, {"says", x.says}});
  return {{"id", s.id},
          {"title", {{"en", s.title.en}, {"zh", s.title.zh}}},
          {"lane", s.lane},
          {"consumers", s.consumers},
          {"platforms", s.platforms},
          {"pins", s.pins},
          {"options", s.options},
          {"fits", r.verdict() != Verdict::fail},
          {"verdict", lower(to_string(r.verdict()))},
          {"platform_fits", !r.off.other_platform},
          {"made_for_this_host", r.made_for != Truth::no},
          {"deviations", deviations},
          {"versions", versions},
          {"refusals", refusals},
          {"changes", r.solution.changes},
          {"proven", s.proven.en},
          {"sources", sources}};
}

class Stacks : public Command {
 public:
  std::vector<Option> options() override {
    return {{"stack",
             {"Show this stack alone, with every reason", "只显示该组合及全部理由"},
             &id_,
             {},
             "STACK",
             false},
            {"--data-dir",
             {"Folder of TOML files that go before the built-in ones", "优先于内置数据的 TOML 目录"},
             &arguments_.data_dir,
             {},
             "DIR",
             false}};
  }
  int run(Context& c) override {
    auto input = plan_input(c, arguments_);
    if (!input) return c.report(input.error());
    const Recipe& recipe = input->recipe;
    if (!id_.empty() && !recipe.stack(id_)) {
      std::vector<std::string> ids;
      for (const auto& s : recipe.stacks) ids.push_back(s.id);
      const auto near = closest(id_, ids);
      return c.report(Error{ErrorKind::usage,
                            fmt::format("no stack \"{}\"", id_),
                            "",
                            near ? fmt::format("did you mean \"{}\"?", *near) : "known: " + join(ids, ", "),
                            "epready stacks",
                            {}});
    }
    const Platform* platform = detect_platform(recipe, fact_scope(input->facts));
    std::vector<Row> rows;
    for (const auto& s : recipe.stacks) {
      if (!id_.empty() && s.id != id_) continue;
      PlanOptions o = arguments_.plan;
      o.consumer = s.consumers.empty() ? "plain" : s.consumers.front();
      auto in = solve_input(input->facts, recipe, s, platform, o);
      if (!in) return c.report(in.error());
      Solution solution = solve(*in);
      Deviation off = deviation(s, recipe, solution, in->wishes, platform ? platform->id : std::string());
      const Truth made_for = all_hold(s.when, in->facts);
      rows.push_back({&s, std::move(solution), std::move(off), made_for});
    }
    if (c.json) {
      Json list = Json::array();
      for (const auto& r : rows) list.push_back(stack_json(r));
      c.out(Json{{"schema", "epready-stacks-1"},
                 {"tool", "epready"},
                 {"platform", platform ? platform->id : ""},
                 {"stacks", list}}
                .dump(2, ' ', false, Json::error_handler_t::replace) +
            "\n");
    } else {
      for (const auto& r : rows) c.out(text(r, c.look(), !id_.empty()));
    }
    c.next(id_.empty() ? "epready stacks STACK" : "epready plan --stack " + id_);
    return 0;
  }

 private:
  static std::string text(const Row& r, const Look& look, bool all) {
    const Words w{look.lang};
    const Stack& s = *r.stack;
    std::vector<std::string> pins;
    for (const auto& [name, version] : s.pins) pins.push_back(name + " " + version);
    std::string out = fmt::format("{} {}  {}\n", look.paint(Style::bold, pad(s.id, 14)),
                                  verdict_mark(look, r.verdict()), s.title.in(look.lang));
    const auto say = [&](const std::string& t) { out += "    " + wrap(t, look.width - 4, 4) + "\n"; };
    say(w("lane {}, for {}, on {}", "通道 {}，面向 {}，平台 {}", s.lane, join(s.consumers, ", "),
          join(s.platforms, ", ")));
    if (!pins.empty()) say(join(pins, ", "));
    say(w("run so far: {}", "验证情况：{}", s.proven.in(look.lang)));
    if (!r.solution.found)
      for (const auto& o : r.solution.refusals)
        say(w("not here: {} ({}) [{}]", "此机不可用：{}（{}）[{}]", o.text, o.evidence, o.rule));
    if (r.off.other_generation)
      say(w("not here: its DeepEP would become another generation", "此机不可用：DeepEP 会变成另一代"));
    else if (r.off.other_platform && r.solution.found)
      say(w("made for another platform than this", "面向其他平台"));
    if (r.solution.found && r.made_for == Truth::no)
      say(w("made for other GPUs than this host's", "面向其他 GPU"));
    if (r.solution.found)
      for (const auto& x : r.off.changes) say(change_text(x, look.lang));
    if (!r.solution.changes.empty())
      say(w("what would allow it: {}", "可行的最小改动：{}", join(r.solution.changes, w(" and ", " 并且 "))));
    if (!all) return out;
    for (const auto& c : r.solution.choices) say(fmt::format("{} {}: {}", c.component, c.version, c.why));
    for (const auto& o : r.solution.warnings)
      say(w("mind: {} ({}) [{}]", "注意：{}（{}）[{}]", o.text, o.evidence, o.rule));
    for (const auto& x : s.sources) say(fmt::format("{} {}: {}", x.date, x.url, x.says));
    return out;
  }

  PlanArguments arguments_;
  std::string id_;
};

}  // namespace

std::unique_ptr<Command> make_stacks() {
  return std::make_unique<Stacks>();
}

}  // namespace ep
