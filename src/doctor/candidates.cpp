#include "doctor/candidates.h"

#include <algorithm>
#include <optional>

namespace ep {

namespace {

/// What each piece of evidence leaves of the doubt (1 = no evidence). Documented in docs/doctor.md.
struct Weigh {
  double decisive = 0.12;       ///< a line that names the cause
  double decisive_again = 0.6;  ///< another such line
  double supporting = 0.65;     ///< a line that other causes print too, the first three
  double rule = 0.15;           ///< facts that show the problem
  double required = 0.35;       ///< the deciding condition is known to be true
  double condition = 0.85;      ///< a condition that fits, the first three
  double witnesses = 0.95;      ///< more than one rank or process says so
  double unknown = 0.6;         ///< factor: the deciding condition could not be observed
};
constexpr Weigh kWeigh;

bool signature_counts(const Case& c, const Problem& p, const LogEvidence::OfProblem& seen, size_t i) {
  const Signature& s = p.signatures[i];
  const Sightings& lines = seen.signatures[i];
  const int64_t only_quoted = c.logs.trouble() ? 0 : c.logs.guide ? lines.count : lines.quoted;
  if (lines.count - only_quoted < s.times) return false;
  if (judge_all(s.only_if, c.observed) != Truth::yes) return false;
  for (size_t k = 0; k < s.with.size(); ++k) {
    const int64_t gap = seen.gap[i][k];
    if (s.within > 0) {
      if (gap < 0 || gap > s.within) return false;
      continue;
    }
    bool there = gap >= 0;
    for (size_t j = 0; j < p.signatures.size(); ++j)
      there |= p.signatures[j].id == s.with[k] && seen.signatures[j].count > 0;
    if (!there) return false;
  }
  return true;
}

void collect_lines(const Case& c, Candidate& cand, const LogEvidence::OfProblem& seen) {
  const Problem& p = *cand.problem;
  for (size_t i = 0; i < p.signatures.size(); ++i) {
    if (!signature_counts(c, p, seen, i)) continue;
    const Sightings& s = seen.signatures[i];
    for (const auto& f : s.first) cand.lines.emplace_back(f.place.source, f.place.line);
    if (p.signatures[i].after_effect) {
      cand.symptoms.push_back(i);
      continue;
    }
    cand.hits.push_back(i);
    ++(p.signatures[i].decisive ? cand.decisive : cand.supporting);
    if (!cand.first.known() || earlier(s.first.front().place, cand.first)) cand.first = s.first.front().place;
    if (!cand.last.known() || earlier(cand.last, s.last)) cand.last = s.last;
    if (p.signatures[i].decisive &&
        (!cand.first_decisive.known() || earlier(s.first.front().place, cand.first_decisive)))
      cand.first_decisive = s.first.front().place;
  }
}

void forget_lines(Candidate& cand) {
  cand.hits.clear();
  cand.symptoms.clear();
  cand.lines.clear();
  cand.decisive = cand.supporting = 0;
  cand.first = cand.last = cand.first_decisive = Place{};
}

void apply_conditions(const Case& c, Candidate& cand, const LogEvidence::OfProblem& seen) {
  const Problem& p = *cand.problem;
  for (const FactRule& r : p.rules) {
    if (r.need && !c.logs.names.empty()) continue;  // the log says what failed
    if (judge_all(r.all, c.observed) != Truth::yes) continue;
    cand.rules.push_back(&r);
    for (const auto& one : r.all) {
      const auto v = one.judge(c.observed);
      if (v.by) cand.conditions.emplace_back(one.text(), v.by);
    }
  }
  for (const FactCondition& r : p.require) {
    const auto v = r.judge(c.observed);
    if (v.truth == Truth::no) {
      cand.ruled_out_by =
          v.by ? std::string(v.fact) + " = " + v.by->value : r.text() + c.say(" does not hold", " 不成立");
      return;
    }
    if (v.truth == Truth::unknown) {
      cand.required = Truth::unknown;
      if (cand.unknown_fact.empty()) cand.unknown_fact = std::string(v.fact);
    } else if (v.by) {
      cand.conditions.emplace_back(r.text(), v.by);
    }
  }
  for (const FactCondition& e : p.exclude) {
    const auto v = e.judge(c.observed);
    // Words of prose ("on InfiniBand it works") do not silence a line that names the cause.
    // Nor does a fact that another host or an earlier run of the same paste gainsays.
    const bool weak =
        v.by && cand.decisive > 0 && (v.by->trust == Trust::mentioned || e.contested(c.observed));
    if (v.truth == Truth::yes && !weak) {
      std::erase_if(cand.rules, [](const FactRule* r) { return !r->despite_exclude; });
      if (!cand.rules.empty()) {  // what stands beside the exclusion stands alone
        forget_lines(cand);
        continue;
      }
      cand.ruled_out_by = v.by ? std::string(v.fact) + " = " + v.by->value : e.text();
      return;
    }
  }
  for (size_t i = 0; i < p.against.size(); ++i)
    if (seen.against[i].count > 0) {
      const auto& f = seen.against[i].first.front();
      cand.ruled_out_by = p.against[i].why.in(c.lang) + " (" + c.logs.names[size_t(f.place.source)] + ":" +
                          std::to_string(f.place.line) + ")";
      return;
    }
  for (const FactCondition& s : p.support) {
    const auto v = s.judge(c.observed);
    if (v.truth == Truth::yes && v.by) cand.conditions.emplace_back(s.text(), v.by);
  }
}

double confidence(const Case& c, const Candidate& cand, const LogEvidence::OfProblem& seen) {
  double doubt = 1;
  for (int i = 0; i < cand.decisive; ++i) doubt *= i == 0 ? kWeigh.decisive : kWeigh.decisive_again;
  for (int i = 0; i < std::min(cand.supporting, 3); ++i) doubt *= kWeigh.supporting;
  for (const FactRule* r : cand.rules) doubt *= r->decisive ? kWeigh.rule : kWeigh.supporting;
  int fitting = 0;
  for (const FactCondition& s : cand.problem->support)
    if (s.judge(c.observed).truth == Truth::yes && ++fitting <= 3) doubt *= kWeigh.condition;
  if (!cand.problem->require.empty() && cand.required == Truth::yes) doubt *= kWeigh.required;
  for (size_t i : cand.hits)
    if (seen.signatures[i].who.size() > 1) {
      doubt *= kWeigh.witnesses;
      break;
    }
  const double sure = 1 - doubt;
  return std::min(0.99, cand.required == Truth::unknown && cand.rules.empty() ? sure * kWeigh.unknown : sure);
}

bool later(const Sightings& s, const Place& p) {
  return s.count > 0 && s.last.source == p.source && s.last.line > p.line;
}

/// Nothing died from the first line of the candidate on.
bool unharmed(const Case& c, const Candidate& cand) {
  return cand.first.known() &&
         (c.logs.hard_errors.count == 0 || earlier(c.logs.hard_errors.last, cand.first));
}

/// The run went on after the last line that speaks for the problem, and succeeded.
bool run_succeeded(const Case& c, const Candidate& cand) {
  const bool building = cand.problem->phase == "build" || cand.problem->phase == "import";
  return unharmed(c, cand) &&
         (later(c.logs.run_success, cand.last) || (building && later(c.logs.build_success, cand.last)));
}

/// All of it stands above the summary of a test runner that counts no failure: the tests wanted it.
bool expected(const Case& c, const Candidate& cand) {
  return c.logs.tests_failed.count == 0 && cand.last.known() && later(c.logs.tests_passed, cand.last);
}

/// Mere hints beside signs of a living run are not worth an alarm.
bool only_hints(const Case& c, const Candidate& cand) {
  if (cand.decisive > 0 || cand.confidence >= kConfident || c.logs.hard_errors.count > 0) return false;
  return c.logs.run_success.count > 0 || later(c.logs.alive, cand.last) ||
         later(c.logs.build_success, cand.last);
}

Severity severity_for(const Case& c, const Candidate& cand) {
  const Problem& p = *cand.problem;
  Severity s = p.severity;
  if (cand.hits.empty() && !cand.rules.empty()) {
    s = Severity::info;
    for (const FactRule* r : cand.rules) s = std::max(s, r->severity);
  }
  if (!p.survives_success && !cand.hits.empty()) {
    if (run_succeeded(c, cand) || only_hints(c, cand) || expected(c, cand)) return Severity::info;
  }
  if (s == Severity::fail && cand.confidence < kFail) s = Severity::warn;
  return s;
}

/// The first sign of success behind the candidate's last line, when no hard error stands before it.
std::optional<Place> success_before_trouble(const Case& c, const Candidate& cand) {
  if (!cand.first.known()) return std::nullopt;
  const auto next = [&](const Sightings& s, const Place& from, bool inclusive) -> std::optional<Place> {
    for (const Place& p : s.places)
      if (p.source == from.source && (p.line > from.line || (inclusive && p.line == from.line))) return p;
    return std::nullopt;
  };
  const auto success = next(c.logs.run_success, cand.last, false);
  const auto error = next(c.logs.hard_errors, cand.first, true);
  return success && (!error || earlier(*success, *error)) ? success : std::nullopt;
}

/// What the run survived is not the cause of its later death, when that has a sure cause of its own.
void demote_survived(const Case& c, std::vector<Candidate>* all) {
  for (Candidate& cand : *all) {
    if (cand.problem->survives_success || cand.severity == Severity::info) continue;
    const auto success = success_before_trouble(c, cand);
    if (!success) continue;
    const auto& follows = cand.problem->after_effects;
    for (const Candidate& other : *all)
      if (&other != &cand && other.decisive > 0 && other.confidence >= kConfident &&
          other.ruled_out_by.empty() && earlier(*success, other.first) &&
          std::find(follows.begin(), follows.end(), other.problem->kind) == follows.end())
        cand.severity = Severity::info;
  }
}

}  // namespace

std::vector<Candidate> gather(const Case& c) {
  std::vector<Candidate> out;
  for (size_t i = 0; i < c.catalogue.problems.size(); ++i) {
    Candidate cand;
    cand.problem = &c.catalogue.problems[i];
    const auto& seen = c.logs.problems[i];
    collect_lines(c, cand, seen);
    apply_conditions(c, cand, seen);
    if (cand.hits.empty() && cand.rules.empty()) continue;
    cand.confidence = confidence(c, cand, seen);
    cand.severity = severity_for(c, cand);
    out.push_back(std::move(cand));
  }
  demote_survived(c, &out);
  return out;
}

}  // namespace ep
