#include "cli/plan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "host/host.h"
#include "plan/fact_scope.h"

namespace ep {

std::vector<Option> plan_options(PlanArguments& a) {
  return {
      {"--lane",
       {"Lane instead of the best one here", "指定通道，而不是自动选择"},
       &a.plan.lane,
       {},
       "LANE",
       false},
      {"--stack",
       {"Stack instead of the one that fits best", "指定组合，而不是自动选择"},
       &a.plan.stack,
       {},
       "STACK",
       false},
      {"--consumer",
       {"Who will use it: plain, vllm, sglang", "使用者：plain、vllm、sglang"},
       &a.plan.consumer,
       {},
       "NAME",
       false},
      {"--with",
       {"A wish: nvshmem=3.4.5, nic-handler=cpu (repeat it)",
        "要求：nvshmem=3.4.5、nic-handler=cpu（可重复）"},
       &a.plan.with,
       {},
       "NAME=VALUE",
       false},
      {"--prefix", {"Folder that epready owns", "epready 拥有的目录"}, &a.plan.prefix, {}, "DIR", false},
      {"--data-dir",
       {"Folder of TOML files that go before the built-in ones", "优先于内置数据的 TOML 目录"},
       &a.data_dir,
       {},
       "DIR",
       false},
  };
}

std::string asked_options(const PlanArguments& asked, const PlanArguments& defaults) {
  std::string out;
  const auto say = [&](const char* name, const std::string& now, const std::string& before) {
    if (now != before && !now.empty()) out += fmt::format(" {} {}", name, shell_quote(now));
  };
  const PlanOptions &a = asked.plan, &d = defaults.plan;
  say("--lane", a.lane, d.lane);
  say("--stack", a.stack, d.stack);
  say("--consumer", a.consumer, d.consumer);
  for (const auto& w : a.with)
    if (std::find(d.with.begin(), d.with.end(), w) == d.with.end()) say("--with", w, "");
  say("--prefix", a.prefix, d.prefix);
  say("--data-dir", asked.data_dir, defaults.data_dir);
  return out;
}

std::string data_folder(const std::string& given) {
  if (!given.empty()) return given;
  const char* env = std::getenv("EPREADY_DATA");
  return env ? env : "";
}

Result<PlanInput> plan_input(Context& c, PlanArguments& a) {
  a.plan.lang = c.lang;
  auto recipe = load_recipe(data_folder(a.data_dir), condition_names());
  if (!recipe) return Failure(recipe.error());
  auto host = c.open();
  if (!host) return Failure(host.error());
  auto facts = c.read(**host, a.plan.prefix);
  if (!facts) return Failure(facts.error());
  PlanInput out{std::move(*facts), std::move(*recipe)};
  if (a.plan.prefix.empty()) {
    // As `apply` chooses: root /opt/epready, others below their home; other hosts are planned as root would.
    const char* home = std::getenv("HOME");
    const char* data = std::getenv("XDG_DATA_HOME");
    const bool here = (*host)->kind() == HostKind::live && !out.facts.user.is_root.value_or(false);
    a.plan.prefix = "/opt/epready";
    if (here && data && data[0] == '/')
      a.plan.prefix = std::string(data) + "/epready";
    else if (here && home && home[0] == '/')
      a.plan.prefix = std::string(home) + "/.local/share/epready";
  }
  return out;
}

}  // namespace ep
