// `problems` lists the catalogue; `explain` shows one problem of it.
#include "cli/catalogue.h"
#include "cli/rows.h"
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
