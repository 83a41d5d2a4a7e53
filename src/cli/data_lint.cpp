// `data lint`: every mistake in data/ (built in, or a folder that stands in for it), with file, line and
// column; and the patterns of the doctor's catalogue that would slow its scan.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/words.h"
#include "cli/plan_options.h"
#include "cli/rows.h"
#include "doctor/scan_cost.h"
#include "plan/fact_scope.h"

namespace ep {
namespace {

class DataLint : public Command {
 public:
  std::vector<Option> options() override {
    return {{"--data-dir",
             {"Folder of TOML files that go before the built-in ones", "优先于内置数据的 TOML 目录"},
             &dir_,
             {},
             "DIR",
             false}};
  }
  int run(Context& c) override {
    const Words w{c.lang};
    Recipe recipe;
    auto errors = load_recipe_all(data_folder(dir_), condition_names(), recipe);
    const auto dear = problems(errors);
    size_t rules = 0, releases = 0;
    for (const auto& x : recipe.components) rules += x.rules.size(), releases += x.releases.size();
    if (c.json) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const auto& e : errors)
        list.push_back({{"what", e.what}, {"where", e.where}, {"why", e.why}, {"next", e.next}});
      nlohmann::ordered_json out = {{"schema", "epready-data-lint-1"},
                                    {"tool", "epready"},
                                    {"errors", list},
                                    {"dear_patterns", nlohmann::ordered_json::array()},
                                    {"components", recipe.components.size()},
                                    {"releases", releases},
                                    {"rules", rules},
                                    {"stacks", recipe.stacks.size()},
                                    {"platforms", recipe.platforms.size()},
                                    {"baselines", recipe.baselines.size()}};
      for (const auto& d : dear)
        out["dear_patterns"].push_back({{"where", d.where},
                                        {"literal", d.literal},
                                        {"log", d.log},
                                        {"tries_per_mb", std::lround(d.tries_per_mb)}});
      c.out(out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } else {
      for (const auto& e : errors) {
        c.out(fmt::format("{}: {}{}{}\n", e.where, e.what, e.why.empty() ? "" : ": " + e.why,
                          e.next.empty() ? "" : " (" + e.next + ")"));
      }
      for (const auto& d : dear)
        c.out(w("{}: warning: costs the doctor's scan {:.0f} lines tried in vain for every MB of an ordinary "
                "log "
                "({}): give it a literal or an expression with words rarer than `{}`",
                "{0}: 警告：在普通日志（{2}）中每 MB 使医生的扫描白试 {1:.0f} 行：请给它比 `{3}` "
                "更少见的字面量或表达式",
                d.where, d.tries_per_mb, d.log, d.literal) +
              "\n");
      if (errors.empty())
        c.out(w("data is whole: {} components with {} releases and {} rules, {} stacks, {} platforms, {} "
                "baselines",
                "数据完整：{} 个组件、{} 个版本、{} 条规则、{} 个组合、{} 个平台、{} 条基线",
                recipe.components.size(), releases, rules, recipe.stacks.size(), recipe.platforms.size(),
                recipe.baselines.size()) +
              "\n");
      else
        c.out(w("{} mistakes", "{} 处错误", errors.size()) + "\n");
    }
    c.next(errors.empty() ? "epready stacks" : "epready data lint");
    return errors.empty() ? 0 : 1;
  }

 private:
  /// The catalogue's own mistakes go to `errors`.
  std::vector<PatternCost> problems(std::vector<Error>& errors) const {
    auto files = data_files("problems", data_folder(dir_));
    if (!files) {
      errors.push_back(std::move(files.error()));
      return {};
    }
    return dear_patterns(load_catalogue(*files, errors));
  }

  std::string dir_;
};

}  // namespace

std::unique_ptr<Command> make_data_lint() {
  return std::make_unique<DataLint>();
}

}  // namespace ep
