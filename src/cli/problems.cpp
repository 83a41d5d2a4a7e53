// `problems` lists the catalogue; `explain` shows one problem of it.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "check/check.h"
#include "cli/catalogue.h"
#include "cli/rows.h"
#include "recipe/recipe.h"
#include "report/doctor_report.h"

namespace ep {

namespace {

class Problems : public Command {
 public:
  std::vector<Option> options() override {
    return {{"pattern",
             {"Only kinds and titles that contain this", "只列出种类或标题含此文字的问题"},
             &pattern_,
             {},
             "TEXT",
             false},
            {"--problems-dir",
             {"A folder of your own problems, read beside ours", "自有问题目录，与内置目录一并读取"},
             &own_,
             {},
             "DIR",
             false}};
  }
  int run(Context& c) override {
    auto catalogue = open_catalogue(c, own_);
    if (!catalogue) return c.report(catalogue.error());
    std::erase_if(catalogue->problems, [&](const Problem& p) {
      return !icontains(p.kind, pattern_) && !icontains(p.title.en, pattern_) &&
             !contains(p.title.zh, pattern_);
    });
    if (!pattern_.empty() && catalogue->problems.empty())
      return c.report({ErrorKind::usage,
                       "no problem's kind or title has this in it",
                       pattern_,
                       "",
                       "epready problems",
                       {}});
    c.out(c.json ? problems_json(*catalogue) : problems_text(*catalogue, c.look()));
    c.next("epready explain " +
           (catalogue->problems.empty() ? std::string("KIND") : catalogue->problems.front().kind));
    return 0;
  }

 private:
  std::string pattern_, own_;
};

class Explain : public Command {
 public:
  std::vector<Option> options() override {
    return {{"kind",
             {"As doctor and problems print it", "doctor 与 problems 所输出的种类"},
             &kind_,
             {},
             "KIND",
             true},
            {"--problems-dir",
             {"A folder of your own problems, read beside ours", "自有问题目录，与内置目录一并读取"},
             &own_,
             {},
             "DIR",
             false}};
  }
  int run(Context& c) override {
    auto catalogue = open_catalogue(c, own_);
    if (!catalogue) return c.report(catalogue.error());
    const Problem* p = catalogue->find(kind_);
    if (!p && other_code(c)) return 0;
    if (!p) {
      std::vector<std::string> kinds;
      for (const auto& one : catalogue->problems) kinds.push_back(one.kind);
      auto near = closest(kind_, kinds);
      return c.report({ErrorKind::usage,
                       "no problem of this kind",
                       kind_,
                       near ? "did you mean " + *near + "?" : "",
                       near ? "epready explain " + *near : "epready problems",
                       {}});
    }
    c.out(c.json ? problem_json(*p) : problem_text(*p, c.look()));
    c.next("epready doctor LOG");
    return 0;
  }

 private:
  /// Codes that other commands print: a check of verify, a rule behind a note of plan.
  bool other_code(Context& c) {
    std::string text;
    nlohmann::ordered_json json = {{"schema", "epready-explain-1"}, {"code", kind_}};
    const auto say = [&](const char* key, const Text& label, const std::string& value) {
      if (value.empty()) return;
      json[key] = value;
      text += fmt::format("{}: {}\n", c.tr(label), value);
    };
    for (const auto& row : checks())
      if (kind_ == row.id) {
        say("check", {"a check of verify -r 1", "verify -r 1 的检查"}, std::string(c.tr(row.title)));
        say("lanes", {"lanes", "通道"}, join(lanes_of(row.lanes), ", "));
        finish(c, text, json, "epready verify -r 1");
        return true;
      }
    const auto recipe = load_recipe("");
    if (!recipe) return false;
    for (const auto& component : recipe->components)
      for (const auto& rule : component.rules)
        if (kind_ == rule.id) {
          say("rule", {"a rule of plan", "plan 的规则"}, rule.text.in(c.lang));
          say("change", {"what allows it", "可行的改动"}, rule.change.in(c.lang));
          std::vector<std::string> when, sources;
          for (const auto& w : rule.need) when.push_back(w.text);
          for (const auto& from : rule.sources) sources.push_back(from.url);
          say("need", {"must hold", "须成立"}, join(when, ", "));
          say("source", {"source", "来源"}, join(sources, ", "));
          finish(c, text, json, "epready plan");
          return true;
        }
    return false;
  }
  void finish(Context& c, const std::string& text, const nlohmann::ordered_json& json, const char* next) {
    c.out(c.json ? json.dump(2) + "\n" : c.look().paint(Style::bold, kind_) + "\n\n" + text);
    c.next(next);
  }
  static std::vector<std::string> lanes_of(unsigned bits) {
    std::vector<std::string> out;
    if (bits & kLaneLocal) out.push_back("local");
    if (bits & kLaneV1) out.push_back("v1");
    if (bits & kLaneV2) out.push_back("v2");
    return out;
  }
  std::string kind_, own_;
};

}  // namespace

std::unique_ptr<Command> make_problems() {
  return std::make_unique<Problems>();
}
std::unique_ptr<Command> make_explain() {
  return std::make_unique<Explain>();
}

}  // namespace ep
