#include "plan/mend.h"

#include <algorithm>

#include "base/version.h"
#include "plan/fact_scope.h"
#include "plan/predicates.h"

namespace ep {
namespace {

const Step* step_of(const Plan& plan, const std::string& id) {
  for (const auto& s : plan.steps)
    if (s.id == id) return &s;
  return nullptr;
}

bool still_to_do(const Step& step, const Facts& facts, Lang lang) {
  const auto& condition = step.after.empty() ? step.before : step.after;
  return all_hold(condition, facts, lang).verdict != Verdict::pass;
}

/// A step whose folder is gone altogether belongs to a plan that nobody keeps. The environment file alone,
/// which the local lane leaves behind too, is no stack.
bool stands(const Plan& plan, const Facts& facts) {
  return std::any_of(facts.python.begin(), facts.python.end(),
                     [&](const auto& e) { return e.root == plan.prefix + "/venv"; }) ||
         std::any_of(facts.parts.begin(), facts.parts.end(), [&](const auto& p) {
           return p.name != "env" && starts_with(p.root, plan.prefix + "/");
         });
}

bool is_wheel(const Step& step) {
  return step.before.size() == 1 && step.before[0].name == "wheel" && step.before[0].args.size() == 3;
}

/// The step with its steps of preparation and, for kernel options, the reboot behind it. A wheel for an
/// environment that stands needs no preparation.
void take(const Plan& from, const Step& step, const Facts& facts, Lang lang, Plan& out) {
  if (step_of(out, step.id)) return;
  const bool ready =
      is_wheel(step) && std::any_of(facts.python.begin(), facts.python.end(),
                                    [&](const auto& e) { return e.root == step.before[0].args[0]; });
  if (!ready)
    for (const auto& need : step.needs_steps)
      if (const Step* s = step_of(from, need); s && still_to_do(*s, facts, lang))
        take(from, *s, facts, lang, out);
  Step copy = step;
  std::erase_if(copy.needs_steps, [&](const auto& id) { return !step_of(out, id); });
  out.steps.push_back(std::move(copy));
  if (step.risk != Risk::kernel_options) return;
  for (const auto& s : from.steps)
    if (s.risk == Risk::reboot && !step_of(out, s.id)) {
      Step reboot = s;
      std::erase_if(reboot.needs_steps, [&](const auto& id) { return !step_of(out, id); });
      out.steps.push_back(std::move(reboot));
    }
}

/// The virtual environment made by hand that holds DeepEP; nullptr: none.
const PythonEnvironment* foreign_environment(const Facts& facts, const std::string& own) {
  for (const auto& e : facts.python)
    for (const auto& p : e.packages)
      if ((p.name == "deep-ep" || starts_with(p.name, "sgl-deep-ep")) && e.is_virtual && e.root != own)
        return &e;
  return nullptr;
}

/// The same wheel step in another environment, where that environment has the package.
std::optional<Step> moved(const Step& step, const std::string& from, const PythonEnvironment& to) {
  if (!is_wheel(step)) return {};
  const std::string& name = step.before[0].args[1];
  if (std::none_of(to.packages.begin(), to.packages.end(), [&](const auto& p) { return p.name == name; }))
    return {};
  Step out = step;
  out.needs_steps.clear();
  for (auto* list : {&out.before, &out.after})
    for (auto& p : *list)
      if (p.args[0] == from) p.args[0] = to.root;
  for (auto& a : out.actions)
    if (auto* pip = std::get_if<PipInstall>(&a); pip && pip->venv == from) pip->venv = to.root;
  return out;
}

}  // namespace

const Plan* plan_to_follow(const std::vector<Plan>& applied, const std::string& prefix) {
  for (const auto& p : applied)
    if (p.lane != "local" && (prefix.empty() || p.prefix == prefix)) return &p;
  return nullptr;
}

Plan mend_plan(const MendInput& in, const Facts& facts, Lang lang) {
  Plan out;
  const Plan* base = nullptr;
  const auto begin = [&](const Plan& plan) {
    if (base) return base == &plan;
    base = &plan;
    out = plan;
    out.steps.clear();
    out.skipped.clear();
    out.notes.clear();
    return true;
  };
  for (const auto& id : in.ids) {
    bool known = false;
    for (const auto& plan : in.applied) {
      const Step* s = step_of(plan, id);
      if (!s || !stands(plan, facts)) continue;
      known = true;
      if (still_to_do(*s, facts, lang) && begin(plan)) take(plan, *s, facts, lang, out);
    }
    if (known || !in.fresh) continue;
    const Step* s = step_of(*in.fresh, id);
    if (!s) continue;
    const std::string venv = in.fresh->prefix + "/venv";
    if (is_wheel(*s)) {
      // A wheel goes where DeepEP is, never into an environment that does not exist yet.
      const PythonEnvironment* e = foreign_environment(facts, venv);
      auto there = e ? moved(*s, venv, *e) : std::nullopt;
      if (there && still_to_do(*there, facts, lang) && begin(*in.fresh))
        out.steps.push_back(std::move(*there));
    } else if (s->risk != Risk::user_files && still_to_do(*s, facts, lang) && begin(*in.fresh)) {
      take(*in.fresh, *s, facts, lang, out);
    }
  }
  // Drift is judged from now on, not from the day of the first plan.
  const Scope scope = fact_scope(facts);
  for (auto& [name, value] : out.facts_used)
    if (auto now = scope.find(name); now != scope.end() && now->second.known)
      value = now->second.present ? now->second.text : "absent";
  return out;
}

}  // namespace ep
