// Lanes are judged by planning them: what cannot be planned is not possible, what needs no step is installed.
#include "plan/lanes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "plan/fact_scope.h"

namespace ep {
namespace {

void take_plan(const Planned& p, LaneStatus& out, const Words& w) {
  out.stack = p.plan.stack;
  if (p.plan.lane == "local") {  // the engine is part of this program; the environment file is no condition
    out.installed = {Verdict::pass, {}};
    return;
  }
  out.platform = p.plan.platform;
  for (const auto& s : p.plan.steps) {
    out.missing.push_back(s.id);
    out.needs_root = out.needs_root || s.needs_root;
    out.needs_reboot = out.needs_reboot || s.risk == Risk::reboot;
    out.estimate_s += s.estimate_s;
  }
  out.installed = p.plan.empty()
                      ? Outcome{Verdict::pass, {}}
                      : Outcome{Verdict::fail, w("{} steps missing", "缺少 {} 个步骤", p.plan.steps.size())};
  const auto broken = std::find_if(p.plan.notes.begin(), p.plan.notes.end(),
                                   [](const Finding& f) { return f.severity == Severity::fail; });
  if (broken != p.plan.notes.end()) out.installed = {Verdict::fail, broken->title};
}

LaneStatus judge(const Facts& facts, const Recipe& recipe, Lang lang, PlanOptions options,
                 const std::string& lane) {
  const Words w{lang};
  LaneStatus out;
  out.lane = options.lane = lane;
  options.lang = lang;
  out.proven = {Verdict::not_run, w("no verification of this lane is on record", "没有该通道的验证记录")};
  auto planned = make_plan(facts, recipe, options);
  if (planned) {
    out.possible = {Verdict::pass, {}};
    take_plan(*planned, out, w);
    if (!planned->solution.unknown.empty()) {
      const Objection& o = planned->solution.unknown.front();
      out.possible = {Verdict::unknown, w("not known: {} ({})", "无法确认：{}（{}）", o.text, o.evidence)};
    }
    if (const Finding* open = unanswered(planned->plan)) out.possible = {Verdict::unknown, open->title};
    if (lane != "local" && planned->solution.option("nodes") == "1")
      out.possible = {Verdict::warn, w("inside one node", "仅限单机")};
    return out;
  }
  const Error error = planned.error();
  out.possible = {error.kind == ErrorKind::unsupported ? Verdict::fail : Verdict::unknown,
                  error.why.empty() ? error.what : error.why};
  for (const auto& line : error.trace) out.changes.push_back(line);
  out.installed = {Verdict::skip, w("not possible here", "此机无法使用")};
  // Between nodes or not at all? Inside one node less is needed.
  options.with.push_back("nodes=1");
  if (auto one_node = make_plan(facts, recipe, options)) {
    out.possible = {Verdict::warn, w("inside one node only: {}", "仅限单机：{}", out.possible.reason)};
    take_plan(*one_node, out, w);
  }
  return out;
}

bool works(const LaneStatus& s) {
  return s.possible.verdict == Verdict::pass || s.possible.verdict == Verdict::warn;
}

}  // namespace

std::vector<PodGap> pod_gaps(const Platform* platform, const Scope& scope, Lang lang) {
  std::vector<PodGap> out;
  if (!platform) return out;
  for (const auto& line : platform->pod) {
    Truth has = Truth::no;
    for (const auto& c : line.unless) {
      const Truth t = c.holds(scope);
      if (t == Truth::yes) has = Truth::yes;
      if (t == Truth::unknown && has == Truth::no) has = Truth::unknown;
    }
    if (has != Truth::yes) out.push_back({line.at, line.yaml, line.why.in(lang), has});
  }
  return out;
}

std::vector<LaneStatus> judge_lanes(const Facts& facts, const Recipe& recipe, Lang lang,
                                    const PlanOptions& base) {
  std::vector<LaneStatus> out;
  PlanOptions options = base;
  options.stack.clear();
  for (const char* lane : {"local", "v1", "v2"}) out.push_back(judge(facts, recipe, lang, options, lane));
  // The nearest lane that works: the other GPU lane before the local one.
  for (auto& s : out) {
    if (s.possible.verdict == Verdict::pass || s.possible.verdict == Verdict::unknown) continue;
    for (const char* other : {"v2", "v1", "local"})
      for (const auto& o : out)
        if (o.lane == other && o.lane != s.lane && works(o) && s.nearest.empty() && !works(s))
          s.nearest = other;
  }
  const Scope scope = fact_scope(facts);
  const Platform* platform = detect_platform(recipe, scope);
  for (auto& s : out)
    if (s.lane != "local") s.pod = pod_gaps(platform, scope, lang);
  return out;
}

}  // namespace ep
