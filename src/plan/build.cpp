// The bench of step makers: keeping, skipping, names that several makers share.
#include "plan/build.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"

namespace ep {

std::string Build::version(const std::string& id) const {
  const Choice* c = solution.choice(id);
  return c ? c->version : std::string();
}

const Release* Build::release(const std::string& id) const {
  const Choice* c = solution.choice(id);
  return c ? c->release : nullptr;
}

std::string Build::phase(const std::string& id) const {
  const auto found = stack.phases.find(id);
  return found == stack.phases.end() ? std::string() : found->second;
}

std::string Build::cuda_home() const {
  const std::string want = version("cuda");
  for (const auto& t : facts.cuda) {
    const std::string have = t.version.ok() ? *t.version : t.nvcc_version.value_or("");
    // A text that shows `nvcc --version` does not say where it stands.
    if ((have == want || starts_with(have, want + ".")) && starts_with(t.root, "/")) return t.root;
  }
  return "/usr/local/cuda-" + want;
}

std::string Build::cuda_major() const {
  return std::string(split(version("cuda"), '.')[0]);
}

std::vector<std::string> Build::archs() const {
  const std::string asked = option("arch");
  if (!asked.empty() && asked != "auto") return split_arch_list(asked);
  std::set<int> seen;
  for (const auto& g : facts.gpus)
    if (g.compute_capability.ok()) seen.insert(*g.compute_capability);
  std::vector<std::string> out;
  for (int cc : seen) out.push_back(std::to_string(cc));
  if (out.empty())
    out = {"90", "100"};  // a build machine that was not told: both generations of data-centre GPUs
  return out;
}

std::string Build::arch_list(bool dotted) const {
  std::vector<std::string> out;
  for (const auto& a : archs())
    out.push_back(dotted ? a.substr(0, a.size() - 1) + "." + a.substr(a.size() - 1) : a);
  return join(out, ";");
}

bool Build::apt() const {
  const std::string id = facts.os.id.value_or("");
  return id == "ubuntu" || id == "debian";
}

std::string Build::machine() {
  if (!facts.os.architecture.ok()) unanswered.insert("machine");
  return facts.os.architecture.value_or("x86_64");
}

std::string Build::driver_floor() const {
  const std::string floor = cuda_major() == "13" ? "580.65.06" : "525.60.13";
  const Release* r = release("driver");
  if (!r || !wishes.versions.count("driver")) return floor;
  const std::string branch = driver_of_branch(*r);
  return compare_versions(VersionOrder::dotted, branch, floor) > 0 ? branch : floor;
}

std::string driver_of_branch(const Release& branch) {
  const auto first = branch.pins.find("driver");
  return first == branch.pins.end() ? branch.version : first->second;
}

void Build::skip(const std::string& id, const std::string& title, const std::string& reason) {
  std::string where;
  for (const auto& part : stack.parts)
    if (id == part || starts_with(id, part + "-")) where = phase(part);
  plan.skipped.push_back({id, title, reason, where});
}

bool Build::platform_skips(const std::string& id, const std::string& step_id, const std::string& title) {
  if (!platform) return false;
  const auto found = platform->skip.find(id);
  if (found == platform->skip.end()) return false;
  wants.emplace(step_id, std::vector<std::string>());
  skip(step_id, title, found->second.in(options.lang));
  return true;
}

void Build::note(std::string code, Severity severity, std::string title, std::string cause,
                 std::vector<std::string> fix) {
  Finding f;
  f.code = std::move(code);
  f.severity = severity;
  f.title = std::move(title);
  f.cause = std::move(cause);
  f.fix = std::move(fix);
  plan.notes.push_back(std::move(f));
}

void Build::consider(Step step, std::vector<std::string> needs) {
  const Outcome already = all_hold(step.before, facts, options.lang);
  wants[step.id] = needs;
  if (!step.before.empty() && already.verdict == Verdict::pass) {
    plan.skipped.push_back({step.id, step.title, already.reason, step.runbook_phase});
    return;
  }
  // Below the prefix a text never shows anything: said once, in a note.
  const bool silent = facts.host_kind == "paste" && step.risk == Risk::user_files &&
                      already.verdict == Verdict::unknown && !step.why.empty();
  if (!already.reason.empty() && !silent) {
    const std::string seen = already.verdict == Verdict::unknown
                                 ? w("cannot tell: {}", "无法判断：{}", already.reason)
                                 : already.reason;
    step.why = step.why.empty() ? seen : seen + "; " + step.why;
  }
  // A step that is skipped hands its own needs on.
  std::vector<std::string> open(needs.rbegin(), needs.rend());
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const bool kept =
        std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& s) { return s.id == id; });
    if (kept) {
      step.needs_steps.push_back(id);
    } else if (const auto further = wants.find(id); further != wants.end()) {
      open.insert(open.end(), further->second.rbegin(), further->second.rend());
    }
  }
  plan.steps.push_back(std::move(step));
}

Step user_step(const Build& b, std::string id, const std::string& component, std::string title) {
  Step s;
  s.id = std::move(id);
  s.component = component;
  s.title = std::move(title);
  s.risk = Risk::user_files;
  s.needs_network = true;
  s.runbook_phase = b.phase(component);
  if (const Choice* c = b.solution.choice(component)) s.why = c->why;
  return s;
}

bool has_trait(const Release* r, const char* trait) {
  return r && std::find(r->traits.begin(), r->traits.end(), trait) != r->traits.end();
}

WriteFile stamp_file(const std::string& root, const std::map<std::string, std::string>& values) {
  std::string text = "# Written by epready when this part was published; facts read it back.\n";
  for (const auto& [key, value] : values) text += key + "=" + value + "\n";
  return {root + "/.epready-part", text, 0644};
}

Predicate part_predicate(const std::string& name, const std::string& prefix,
                         const std::map<std::string, std::string>& values) {
  Predicate p{"part", {name, prefix}};
  for (const auto& [key, value] : values) p.args.push_back(key + "=" + value);
  return p;
}

}  // namespace ep
