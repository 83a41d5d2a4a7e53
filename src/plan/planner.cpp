// From facts and recipe to a plan: which stack, which versions, which steps in which order.
#include "plan/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "plan/build.h"
#include "plan/deviation.h"
#include "plan/fact_scope.h"

namespace ep {
namespace {

constexpr std::string_view kLanes[] = {"local", "v1", "v2"};

bool lists(const std::vector<std::string>& items, std::string_view word) {
  return std::find(items.begin(), items.end(), word) != items.end();
}

struct MakerRow {
  const char* part;
  void (*make)(Build&);
};
/// In the order of work; a stack runs those that its parts name.
constexpr MakerRow kMakers[] = {
    {"driver", make_driver},
    {"cuda", make_cuda},
    {"cuda", make_cuda_link},
    {"doca-ofed", make_doca_ofed},
    {"driver-options", make_rdma_names},  // of every stack that sees NICs
    {"driver-options", make_driver_options},
    {"peermem", make_peermem},
    {"limits", make_limits},
    {"driver-options", make_reboot},
    {"build-tools", make_build_tools},
    {"python", make_prefix},
    {"gdrcopy", make_gdrcopy},
    {"gdrcopy", make_gdrdrv},
    {"python", make_python},
    {"torch", make_torch},
    {"nccl", make_nccl},
    {"nvshmem", make_nvshmem},
    {"deepep", make_deepep},
    {"nic-map", make_nic_map},
    {"env", make_env},
};

/// Releases of `component` that match what is installed: toolkits by major.minor.
std::vector<std::string> installed_cuda(const Facts& facts, const Component& cuda) {
  std::vector<std::string> out;
  for (const auto& r : cuda.releases)
    for (const auto& t : facts.cuda) {
      const std::string have = t.version.ok() ? *t.version : t.nvcc_version.value_or("");
      if ((have == r.version || starts_with(have, r.version + ".")) && !lists(out, r.version))
        out.push_back(r.version);
    }
  return out;
}

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

void add_notes(Build& b) {
  const Words& w = b.w;
  const Deviation off =
      deviation(b.stack, b.recipe, b.solution, b.wishes, b.platform ? b.platform->id : std::string());
  for (const auto& x : off.changes)
    b.note(
        "stack-deviation", Severity::warn,
        w("{} {} instead of the stack's {}", "{} 使用 {} 而非组合中的 {}", x.component, x.chosen, x.pinned),
        x.why);
  if (off.other_platform)
    b.note("stack-platform", Severity::warn,
           w("stack {} is made for {}", "组合 {} 面向 {}", b.stack.id, join(b.stack.platforms, ", ")),
           w("this host is {}", "此机为 {}", b.platform ? b.platform->title.in(b.options.lang) : "?"),
           {"epready stacks"});
  for (const auto* list : {&b.solution.warnings, &b.solution.unknown})
    for (const auto& o : *list) {
      Finding f;
      f.code = o.rule;
      f.severity = Severity::warn;
      f.title = o.truth == Truth::unknown ? w("not known: {}", "无法确认：{}", o.text) : o.text;
      f.cause = o.evidence;
      f.fix = {o.change};
      f.evidence = {{o.source, 0, o.evidence}};
      b.plan.notes.push_back(std::move(f));
    }
  if (b.platform)
    for (const auto& n : b.platform->notes)
      b.note("platform", Severity::info, n.in(b.options.lang), b.platform->title.in(b.options.lang));
  if (!b.apt() && !b.plan.steps.empty() &&
      std::any_of(b.plan.steps.begin(), b.plan.steps.end(),
                  [](const Step& s) { return s.risk == Risk::packages; }))
    b.note("packages-by-hand", Severity::warn,
           w("Package steps are written for Debian and Ubuntu; this is {}",
             "软件包步骤面向 Debian 与 Ubuntu；此机为 {}", b.facts.os.id.value_or("unknown")),
           w("apply leaves package steps undone here; the names tell what is needed",
             "apply 在此不执行软件包步骤；名称说明需要什么"));
}

constexpr const char* kDriftFacts[] = {
    "os.id",      "os.version", "arch",       "gpu.count", "gpu.compute_capability",
    "nic.driver", "nic.count",  "link_layer", "container", "cloud"};

bool in_scope(void (*make)(Build&), PlanOptions::Scope scope) {
  const auto any = [&](std::initializer_list<void (*)(Build&)> of) {
    return std::find(of.begin(), of.end(), make) != of.end();
  };
  if (scope == PlanOptions::Scope::libs)
    return any({make_gdrcopy, make_python, make_torch, make_nccl, make_nvshmem, make_deepep});
  if (scope == PlanOptions::Scope::driver) return any({make_driver_options, make_peermem, make_reboot});
  return true;
}

/// Without root nothing is installed for the build: what is missing is said before an hour is lost.
void note_missing_for_libs(Build& b) {
  const Release* deepep = b.release("deepep");
  if (deepep && lists(deepep->traits, "wheel")) return;
  const Outcome nvcc = holds({"cuda", {b.version("cuda")}}, b.facts, b.options.lang);
  if (nvcc.verdict != Verdict::pass)
    b.note("no-toolkit", Severity::fail,
           b.w("DeepEP is compiled with nvcc {}", "DeepEP 需要 nvcc {} 编译", b.version("cuda")), nvcc.reason,
           {"epready plan --stack " + b.stack.id + "  (brings the toolkit, as root)",
            "epready libs --with deepep=2.1.0+sgl0.1.2  (a wheel: no compiler is needed)"});
}

Planned build_plan(const Facts& facts, const Recipe& recipe, const Stack& stack, const Platform* platform,
                   const PlanOptions& options, const Wishes& wishes, Solution solution) {
  Planned out;
  out.stack = &stack;
  out.platform = platform;
  out.solution = std::move(solution);
  Plan& plan = out.plan;
  plan.host_name = facts.os.hostname.ok() ? *facts.os.hostname : facts.host_name;
  plan.lane = stack.lane;
  plan.stack = stack.id;
  plan.platform = platform ? platform->id : "";
  plan.consumer = options.consumer;
  plan.prefix = options.prefix;
  if (stack.lane != "local")
    for (const char* name : kDriftFacts) {
      const auto found = out.solution.scope.find(name);
      if (found != out.solution.scope.end() && found->second.known)
        plan.facts_used[name] = found->second.present ? found->second.text : "absent";
    }
  out.commits = wishes.commits;
  Build b{facts, recipe, stack, platform, out.solution, wishes, options, plan, Words{options.lang}, {}};
  for (const auto& row : kMakers)
    if (lists(stack.parts, row.part) && in_scope(row.make, options.scope)) row.make(b);
  if (lists(stack.parts, "python")) pin_wheels(b, out);
  if (options.scope == PlanOptions::Scope::all) make_consumer(b);
  if (const auto joined = join_installs(plan, "torch"); !joined.empty())
    for (auto& s : plan.steps)
      if (s.id == "torch")
        s.title += b.w(", and in the same call what these steps need: {}",
                       "，并在同一次调用中装入这些步骤所需：{}", join(joined, ", "));
  if (options.scope == PlanOptions::Scope::libs) note_missing_for_libs(b);
  add_notes(b);
  return out;
}

}  // namespace

std::vector<std::string> unpinned_keys(const Plan& plan) {
  std::vector<std::string> out;
  for (const auto& s : plan.steps)
    for (const auto& a : s.actions)
      if (const auto* source = std::get_if<AddAptSource>(&a))
        if (source->key_fingerprint.empty() && source->key_sha256.empty() && !lists(out, s.component))
          out.push_back(s.component);
  return out;
}

const Platform* detect_platform(const Recipe& recipe, const Scope& scope) {
  for (const auto& p : recipe.platforms)
    if (all_hold(p.when, scope) == Truth::yes) return &p;
  return nullptr;
}

std::vector<const Stack*> fitting_stacks(const Recipe& recipe, const Scope& scope, const Platform* platform,
                                         std::string_view lane, std::string_view consumer, bool all) {
  std::vector<const Stack*> out;
  for (const auto& s : recipe.stacks) {
    if (!lane.empty() && s.lane != lane) continue;
    if (s.lane != "local" && !lists(s.consumers, consumer)) continue;
    if (!lists(s.platforms, "any") && !(platform && lists(s.platforms, platform->id))) continue;
    if (!all && all_hold(s.when, scope) == Truth::no) continue;
    out.push_back(&s);
  }
  return out;
}

Result<SolveInput> solve_input(const Facts& facts, const Recipe& recipe, const Stack& stack,
                               const Platform* platform, const PlanOptions& options) {
  auto wishes = parse_wishes(options.with, recipe, &stack);
  if (!wishes) return Failure(wishes.error());
  SolveInput in;
  in.recipe = &recipe;
  in.stack = &stack;
  in.consumer = options.consumer;
  in.platform = platform ? platform->id : "";
  in.facts = fact_scope(facts);
  in.wishes = std::move(*wishes);
  in.lang = options.lang;
  if (const Component* cuda = recipe.component("cuda")) {
    const auto have = installed_cuda(facts, *cuda);
    if (!have.empty())
      (options.scope == PlanOptions::Scope::libs || (platform && platform->skip.count("cuda"))
           ? in.only
           : in.installed)["cuda"] = have;
  }
  return in;
}

std::string refusal_text(const Solution& solution, Lang lang) {
  const Words w{lang};
  std::vector<std::string> parts;
  for (const auto& r : solution.refusals)
    parts.push_back(fmt::format("{} ({}) [{}]", r.text, r.evidence, r.rule));
  std::string out = join(parts, "; ");
  if (!solution.changes.empty())
    out +=
        w("; what would allow it: {}", "；可行的最小改动：{}", join(solution.changes, w(" and ", " 并且 ")));
  return out;
}

Result<Planned> make_plan(const Facts& facts, const Recipe& recipe, const PlanOptions& options) {
  const Words w{options.lang};
  if (auto ok = check_words(recipe, options); !ok) return Failure(ok.error());
  Scope scope = fact_scope(facts);
  if (auto wishes = parse_wishes(options.with, recipe, nullptr); !wishes)
    return Failure(wishes.error());
  else
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
  const Stack* first = candidates.front();
  Solution first_refusal;
  for (const Stack* stack : candidates) {
    auto input = solve_input(facts, recipe, *stack, platform, options);
    if (!input) return Failure(input.error());
    Solution solution = solve(*input);
    const Deviation off =
        deviation(*stack, recipe, solution, input->wishes, platform ? platform->id : std::string());
    if (solution.found && off.other_generation) {
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
    }
    if (solution.found)
      return build_plan(facts, recipe, *stack, platform, options, input->wishes, std::move(solution));
    if (stack == first) first_refusal = std::move(solution);
  }
  Error e{
      ErrorKind::unsupported,
      w("lane {} is not possible here (stack {})", "此机无法使用通道 {}（组合 {}）", first->lane, first->id),
      facts.host_name,
      {},
      {},
      {}};
  std::vector<std::string> why;
  for (const auto& r : first_refusal.refusals)
    why.push_back(fmt::format("{} ({}) [{}]", r.text, r.evidence, r.rule));
  e.why = join(why, "; ");
  if (!first_refusal.changes.empty())
    e.trace.push_back(w("what would allow it: {}", "可行的最小改动：{}",
                        join(first_refusal.changes, w(" and ", " 并且 "))));
  e.next = "epready lanes";
  return Failure(std::move(e));
}

}  // namespace ep
