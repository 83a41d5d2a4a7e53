// `data lint`: every mistake in data/ (built in, or a folder that stands in for it), with file, line and
// column.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/words.h"
#include "cli/plan_options.h"
#include "cli/rows.h"
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
    const auto errors = load_recipe_all(data_folder(dir_), condition_names(), recipe);
    size_t rules = 0, releases = 0;
    for (const auto& x : recipe.components) rules += x.rules.size(), releases += x.releases.size();
    if (c.json) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const auto& e : errors)
        list.push_back({{"what", e.what}, {"where", e.where}, {"why", e.why}, {"next", e.next}});
      nlohmann::ordered_json out = {{"schema", "epready-data-lint-1"},
                                    {"tool", "epready"},
                                    {"errors", list},
                                    {"components", recipe.components.size()},
                                    {"releases", releases},
                                    {"rules", rules},
                                    {"stacks", recipe.stacks.size()},
                                    {"platforms", recipe.platforms.size()},
                                    {"baselines", recipe.baselines.size()}};
      c.out(out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } else {
      for (const auto& e : errors) {
        c.out(fmt::format("{}: {}{}{}\n", e.where, e.what, e.why.empty() ? "" : ": " + e.why,
                          e.next.empty() ? "" : " (" + e.next + ")"));
      }
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
  std::string dir_;
};

}  // namespace

std::unique_ptr<Command> make_data_lint() {
  return std::make_unique<DataLint>();
}

}  // namespace ep
