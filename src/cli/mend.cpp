#include "cli/mend.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "apply/apply.h"
#include "host/host.h"
#include "plan/fact_scope.h"
#include "plan/mend.h"
#include "plan/plan_json.h"
#include "plan/planner.h"

namespace ep {
namespace {

std::vector<std::string> step_ids(const Catalogue& catalogue, const Diagnosis& d) {
  std::vector<std::string> out;
  for (const auto& f : d.findings) {
    if (f.severity == Severity::info) continue;
    if (const Problem* p = catalogue.find(f.code))
      for (const auto& fix : p->fixes)
        for (const auto& id : fix.steps)
          if (std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
    if (d.undecided) break;  // the first candidate only: the others wait for the deciding observation
  }
  return out;
}

/// Plans that `apply` kept below the prefixes of this host.
std::vector<Plan> applied_plans(const Host& host, const Facts& facts, const std::string& prefix) {
  std::vector<std::string> prefixes = {prefix, default_prefix()};
  for (const auto& e : facts.python)
    if (ends_with(e.root, "/venv")) prefixes.push_back(e.root.substr(0, e.root.size() - 5));
  for (const auto& p : facts.parts) prefixes.push_back(p.root.substr(0, p.root.rfind('/')));
  std::vector<Plan> out;
  std::set<std::string> seen;
  for (const auto& p : prefixes) {
    if (p.empty() || !seen.insert(p).second) continue;
    auto text = host.read(p + "/state/plan.json", 64u << 20);
    if (!text) continue;
    if (auto plan = plan_from_json(*text)) out.push_back(std::move(*plan));
  }
  return out;
}

}  // namespace

const PythonEnvironment* environment_of_deepep(const Facts& facts) {
  for (const auto& e : facts.python)
    for (const auto& p : e.packages)
      if (p.name == "deep-ep" || starts_with(p.name, "sgl-deep-ep")) return &e;
  return nullptr;
}

std::string absolute_prefix(const std::string& given) {
  if (given.empty()) return given;
  std::error_code ec;
  std::string out = std::filesystem::absolute(given, ec).lexically_normal().string();
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

Result<Plan> plan_mend(const Context& c, const Catalogue& catalogue, const Diagnosis& diagnosis,
                       const Host& host, const Facts& facts, const std::string& prefix) {
  MendInput in;
  in.ids = step_ids(catalogue, diagnosis);
  if (in.ids.empty()) return Plan();
  in.applied = applied_plans(host, facts, prefix);
  auto recipe = load_recipe("", condition_names());
  if (!recipe) return Failure(recipe.error());
  PlanOptions options;
  options.lang = c.lang;
  options.prefix = prefix.empty() ? default_prefix() : prefix;
  if (const Plan* last = plan_to_follow(in.applied, prefix)) {
    options.prefix = last->prefix;
    options.lane = last->lane;
    options.stack = last->stack;
    options.consumer = last->consumer;
  }
  // The lane of every other command, unless the problem is of lanes that it is not among.
  if (options.lane.empty()) {
    options.lane = lane_of(facts, *recipe, options);
    for (const auto& f : diagnosis.findings)
      if (const Problem* p = catalogue.find(f.code); p && f.severity != Severity::info && !p->lanes.empty()) {
        if (std::find(p->lanes.begin(), p->lanes.end(), options.lane) == p->lanes.end())
          options.lane = p->lanes.front();
        break;
      }
  }
  if (facts.gpus.empty()) options.with.push_back("gpu=build-only");
  if (auto fresh = make_plan(facts, *recipe, options)) {
    // A prefix that stands is planned for as a whole: what is missing there may be taken from the new plan
    // too.
    in.applied.push_back(fresh->plan);
    in.fresh = std::move(fresh->plan);
  }
  return mend_plan(in, facts, c.lang);
}

}  // namespace ep
