// Which stack a plan is made of: the words of the request, the stacks in their order, a newer driver where
// the loaded one is too old for all of them, and what is said where none works.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/version.h"
#include "base/words.h"
#include "plan/build.h"
#include "plan/deviation.h"
#include "plan/fact_scope.h"

namespace ep {
namespace {

constexpr std::string_view kLanes[] = {"local", "v1", "v2"};

Result<const Stack*> named_stack(const Recipe& recipe, const PlanOptions& o) {
  const Stack* s = recipe.stack(o.stack);
  if (s && (o.lane.empty() || o.lane == s->lane)) return s;
  if (s)
    return fail(ErrorKind::usage, fmt::format("stack {} is of lane {}, not {}", s->id, s->lane, o.lane),
                "--stack " + o.stack, {}, "epready plan --stack " + o.stack);
  std::vector<std::string> ids;
  for (const auto& x : recipe.stacks) ids.push_back(x.id);
  const auto near = closest(o.stack, ids);
  return fail(ErrorKind::usage, fmt::format("no stack \"{}\"", o.stack), "--stack",
              near ? fmt::format("did you mean \"{}\"?", *near) : "known: " + join(ids, ", "),
              "epready stacks");
}

Result<> check_words(const Recipe& recipe, const PlanOptions& o) {
  if (!o.lane.empty() && std::find(std::begin(kLanes), std::end(kLanes), o.lane) == std::end(kLanes)) {
    const auto near = closest(o.lane, {"local", "v1", "v2"});
    return fail(ErrorKind::usage, fmt::format("no lane \"{}\"", o.lane), "--lane",
                near ? fmt::format("did you mean \"{}\"?", *near) : "known: local, v1, v2", "epready lanes");
  }
  std::vector<std::string> consumers = {"plain"};
  for (const auto& c : recipe.components)
    if (c.kind == "consumer") consumers.push_back(c.id);
  if (!lists(consumers, o.consumer)) {
    const auto near = closest(o.consumer, consumers);
    return fail(ErrorKind::usage, fmt::format("no consumer \"{}\"", o.consumer), "--consumer",
                near ? fmt::format("did you mean \"{}\"?", *near) : "known: " + join(consumers, ", "),
                "epready stacks");
  }
  if (o.prefix.empty() || o.prefix[0] != '/')
    return fail(ErrorKind::usage, "the prefix must be an absolute path", "--prefix " + o.prefix, {},
                "epready plan --prefix /opt/epready");
  return {};
}

/// What the user told about a host whose facts do not say it: --with os=ubuntu22.04, machine=aarch64.
Result<Facts> told(Facts facts, const std::map<std::string, std::string>& options) {
  const auto take = [](Fact<std::string>& f, const std::string& value, const char* wish) -> Result<> {
    if (f.ok() && *f != value)
      return fail(ErrorKind::usage, fmt::format("this host says {}, not {}", *f, value),
                  fmt::format("--with {}", wish), f.where, "epready facts --area os");
    f = known(value, "--with");
    return {};
  };
  if (const auto os = options.find("os"); os != options.end()) {
    const size_t digits = os->second.find_first_of("0123456789");
    if (auto ok = take(facts.os.id, os->second.substr(0, digits), "os"); !ok) return Failure(ok.error());
    if (auto ok = take(facts.os.version_id, os->second.substr(digits), "os"); !ok) return Failure(ok.error());
  }
  if (const auto m = options.find("machine"); m != options.end())
    if (auto ok = take(facts.os.architecture, m->second, "machine"); !ok) return Failure(ok.error());
  return facts;
}

struct Tried {
  const Stack* stack;
  Solution solution;  ///< not found
};

/// A solution for one stack; a DeepEP of another generation than the stack's is none.
Result<Solution> solve_stack(const SolveInput& input, const Stack& stack, const Recipe& recipe,
                             const Platform* platform, const Words& w) {
  Solution solution = solve(input);
  const Deviation off =
      deviation(stack, recipe, solution, input.wishes, platform ? platform->id : std::string());
  if (!solution.found || !off.other_generation) return solution;
  // A stack whose DeepEP has another interface is another stack: never swapped in silence.
  solution.found = false;
  for (const auto& x : off.changes) {
    if (x.component != "deepep") continue;
    const std::string with = "--with deepep=" + x.chosen;
    solution.changes.push_back(with);
    solution.refusals.push_back({"stack-generation",
                                 w("DeepEP {} would become {}, another generation",
                                   "DeepEP {} 会变成 {}，属于另一代", x.pinned, x.chosen),
                                 with,
                                 x.why,
                                 {}});
  }
  return solution;
}

Error refusal(const Tried& first, const Facts& facts, const Words& w) {
  Error e{ErrorKind::unsupported,
          w("lane {} is not possible here (stack {})", "此机无法使用通道 {}（组合 {}）", first.stack->lane,
            first.stack->id),
          facts.host_name,
          {},
          {},
          {}};
  std::vector<std::string> why;
  for (const auto& r : first.solution.refusals)
    why.push_back(fmt::format("{} ({}) [{}]", r.text, r.evidence, r.rule));
  e.why = join(why, "; ");
  if (!first.solution.changes.empty())
    e.trace.push_back(w("what would allow it: {}", "可行的最小改动：{}",
                        join(first.solution.changes, w(" and ", " 并且 "))));
  e.next = "epready lanes";
  return e;
}

/// Whether the plan may bring another driver: one is known to be there, and it is this machine's to change.
bool may_upgrade_driver(const Facts& facts, const Stack& stack, const Platform* platform,
                        const PlanOptions& options) {
  return facts.driver.version.ok() && lists(stack.parts, "driver") && stack.pins.count("driver") &&
         !(platform && platform->skip.count("driver")) && options.scope == PlanOptions::Scope::all &&
         facts.container.runtime.value_or("none") == "none";
}

bool wished(const PlanOptions& options, std::string_view name) {
  return std::any_of(options.with.begin(), options.with.end(),
                     [&](const std::string& x) { return starts_with(x, std::string(name) + "="); });
}

/// Tries stacks in order, as the host is.
Result<std::optional<Planned>> first_that_works(const Facts& facts, const Recipe& recipe,
                                                const std::vector<const Stack*>& candidates,
                                                const Platform* platform, const PlanOptions& options,
                                                std::vector<Tried>& tried) {
  const Words w{options.lang};
  for (const Stack* stack : candidates) {
    auto input = solve_input(facts, recipe, *stack, platform, options);
    if (!input) return Failure(input.error());
    auto solution = solve_stack(*input, *stack, recipe, platform, w);
    if (!solution) return Failure(solution.error());
    if (solution->found)
      return std::optional<Planned>(
          build_plan(facts, recipe, *stack, platform, options, input->wishes, std::move(*solution)));
    tried.push_back({stack, std::move(*solution)});
  }
  return std::optional<Planned>();
}

/// The same with the newer driver that the stack names, where the loaded one is too old for every set.
Result<std::optional<Planned>> with_newer_driver(const Facts& facts, const Recipe& recipe,
                                                 const std::vector<const Stack*>& candidates,
                                                 const Platform* platform, const PlanOptions& options) {
  for (const Stack* stack : candidates) {
    if (wished(options, "driver") || !may_upgrade_driver(facts, *stack, platform, options)) continue;
    const Component* driver = recipe.component("driver");
    const Release* branch = driver ? driver->release(stack->pins.at("driver")) : nullptr;
    if (!branch ||
        compare_versions(VersionOrder::dotted, *facts.driver.version, driver_of_branch(*branch)) >= 0)
      continue;
    PlanOptions with = options;
    with.with.push_back("driver=" + branch->version);
    std::vector<Tried> ignored;
    auto planned = first_that_works(facts, recipe, {stack}, platform, with, ignored);
    if (!planned) return planned;
    if (*planned) {
      const Words w{options.lang};
      Finding f;
      f.code = "driver-upgrade";
      f.severity = Severity::warn;
      f.title = w("The loaded driver {} is too old for every set of versions: the plan brings branch {}",
                  "已加载的驱动 {} 对所有版本组合都太旧：计划将安装分支 {}", *facts.driver.version,
                  branch->version);
      f.cause = w("every process that uses a GPU must end before it, and a reboot follows",
                  "此前须结束所有使用 GPU 的进程，之后需要重启");
      (*planned)->plan.notes.insert((*planned)->plan.notes.begin(), std::move(f));
      return planned;
    }
  }
  return std::optional<Planned>();
}

/// GPUs that DeepEP is made for between nodes: Hopper and data-centre Blackwell.
bool made_for_ep(const Scope& scope) {
  const auto cc = scope.find("gpu.compute_capability");
  if (cc == scope.end() || !cc->second.known || !cc->second.present) return false;
  const auto n = parse_int(cc->second.text);
  return n && *n >= 90 && *n < 120;
}

/// The command that plans EP inside this node, where that is possible; empty: it is not.
std::string inside_one_node(const Facts& facts, const Recipe& recipe, PlanOptions options) {
  if (wished(options, "nodes")) return {};
  options.with.push_back("nodes=1");
  for (const char* lane : {"v2", "v1"}) {
    options.lane = lane;
    if (make_plan(facts, recipe, options)) return fmt::format("epready plan --lane {} --with nodes=1", lane);
  }
  return {};
}

}  // namespace

namespace {

/// Module options alone: no version of anything is chosen, so no rule among versions stands in the way.
Result<Planned> driver_only(const Facts& facts, const Recipe& recipe, const Stack& stack,
                            const Platform* platform, const PlanOptions& options, const Wishes& wishes,
                            Scope scope) {
  const Words w{options.lang};
  const Named& gpus = scope.at("gpu.count");
  if (gpus.known && gpus.text == "0" && wishes.options.count("gpu") == 0)
    return fail(ErrorKind::unsupported, w("this machine shows no NVIDIA GPU", "这台机器上没有 NVIDIA GPU"),
                facts.host_name, w("the options are those of its driver", "这些选项属于其驱动"),
                "epready lanes");
  Solution solution;
  solution.found = true;
  for (const auto& [name, value] : stack.options) scope["option." + name] = {true, true, value, "", {}};
  for (const auto& [name, value] : wishes.options)
    scope["option." + name] = {true, true, value, "--with", {}};
  solution.scope = std::move(scope);
  return build_plan(facts, recipe, stack, platform, options, wishes, std::move(solution));
}

}  // namespace

Result<Planned> make_plan(const Facts& given, const Recipe& recipe, const PlanOptions& options) {
  const Words w{options.lang};
  if (auto ok = check_words(recipe, options); !ok) return Failure(ok.error());
  auto wishes = parse_wishes(options.with, recipe, nullptr);
  if (!wishes) return Failure(wishes.error());
  auto with_told = told(given, wishes->options);
  if (!with_told) return Failure(with_told.error());
  const Facts& facts = *with_told;
  Scope scope = fact_scope(facts);
  for (const auto& [name, value] : wishes->options)
    scope["option." + name] = {true, true, value, "--with", {}};
  const Platform* platform = detect_platform(recipe, scope);
  std::vector<const Stack*> candidates;
  if (!options.stack.empty()) {
    auto s = named_stack(recipe, options);
    if (!s) return Failure(s.error());
    candidates = {*s};
  } else {
    candidates = fitting_stacks(recipe, scope, platform, options.lane, options.consumer, false);
    // A lane that was asked for by name is judged by its rules even where no stack is made for these facts.
    if (candidates.empty() || !options.lane.empty())
      for (const Stack* s : fitting_stacks(recipe, scope, platform, options.lane, options.consumer, true))
        if (std::find(candidates.begin(), candidates.end(), s) == candidates.end()) candidates.push_back(s);
  }
  if (candidates.empty())
    return fail(ErrorKind::unsupported,
                w("no stack of lane {} serves consumer {}", "通道 {} 没有服务于 {} 的组合", options.lane,
                  options.consumer),
                {}, {}, "epready stacks");
  if (options.scope == PlanOptions::Scope::driver && options.stack.empty())
    return driver_only(facts, recipe, *candidates.front(), platform, options, *wishes, std::move(scope));
  std::vector<const Stack*> ep, local;
  for (const Stack* s : candidates) (s->lane == "local" ? local : ep).push_back(s);
  std::vector<Tried> tried;
  auto planned = first_that_works(facts, recipe, ep, platform, options, tried);
  if (!planned) return Failure(planned.error());
  if (!*planned) planned = with_newer_driver(facts, recipe, ep, platform, options);
  if (!planned) return Failure(planned.error());
  if (*planned) return std::move(**planned);
  // GPUs that are made for EP, and no lane: that is an answer to give, not one to hide behind the local lane.
  const bool has_gpus = !facts.gpus.empty();
  if (!local.empty() && !(options.lane.empty() && made_for_ep(scope) && !tried.empty())) {
    std::vector<Tried> also;
    planned = first_that_works(facts, recipe, local, platform, options, also);
    if (!planned) return Failure(planned.error());
    if (*planned) {
      if (options.lane.empty() && has_gpus) note_why_local((*planned)->plan, facts, recipe, options);
      return std::move(**planned);
    }
    if (tried.empty()) tried = std::move(also);
  }
  Error e = refusal(tried.front(), facts, w);
  if (options.lane.empty() && !local.empty())
    e.trace.push_back(w("epready's own engine runs here all the same: --lane local",
                        "epready 自带引擎仍可在此运行：--lane local"));
  if (const std::string one = inside_one_node(facts, recipe, options); !one.empty()) {
    e.trace.push_back(w("inside this node EP works: {}", "单机内可以使用 EP：{}", one));
    e.next = one;
  }
  return Failure(std::move(e));
}

std::string lane_of(const Facts& facts, const Recipe& recipe, const PlanOptions& options) {
  if (!options.lane.empty()) return options.lane;
  for (const auto& p : facts.parts)
    if (p.name == "env" && p.stamped && (options.prefix.empty() || p.root == options.prefix + "/env"))
      if (const auto id = p.stamp.find("stack"); id != p.stamp.end())
        if (const Stack* s = recipe.stack(id->second)) return s->lane;
  PlanOptions o = options;
  if (o.prefix.empty()) o.prefix = "/opt/epready";
  if (auto planned = make_plan(facts, recipe, o)) return planned->plan.lane;
  const Scope scope = fact_scope(facts);
  const auto stacks = fitting_stacks(recipe, scope, detect_platform(recipe, scope), "", o.consumer, false);
  return stacks.empty() ? std::string("local") : stacks.front()->lane;
}

}  // namespace ep
