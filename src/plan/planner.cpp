// From facts and recipe to a plan: which stack, which versions, which steps in which order.
#include "plan/planner.h"

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
    {"driver", make_reboot},
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

}  // namespace

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
  Build b{facts, recipe, stack, platform, out.solution, wishes, options, plan, Words{options.lang}, {}, {}};
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

std::vector<std::string> unpinned_keys(const Plan& plan) {
  std::vector<std::string> out;
  for (const auto& s : plan.steps)
    for (const auto& a : s.actions)
      if (const auto* source = std::get_if<AddAptSource>(&a))
        if (source->key_fingerprint.empty() && source->key_sha256.empty() && !lists(out, s.component))
          out.push_back(s.component);
  return out;
}

const Finding* unanswered(const Plan& plan) {
  for (const auto& n : plan.notes)
    if (n.code == "system-unknown") return &n;
  return nullptr;
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
  // A driver that is asked for is there once the plan is done: rules see it, not the loaded one.
  if (const auto wish = in.wishes.versions.find("driver");
      wish != in.wishes.versions.end() && !(platform && platform->skip.count("driver"))) {
    const Component* driver = recipe.component("driver");
    const Release* branch = driver ? driver->release(wish->second) : nullptr;
    if (branch && facts.driver.version.ok() &&
        compare_versions(VersionOrder::dotted, *facts.driver.version, driver_of_branch(*branch)) < 0) {
      in.facts["driver.version"] = {true, true, driver_of_branch(*branch), "the plan's driver step", {}};
      in.facts["driver.open"] = {true, true, "true", "the plan's driver step", {}};
    }
  }
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

}  // namespace ep
