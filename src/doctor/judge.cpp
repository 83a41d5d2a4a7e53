#include "doctor/judge.h"

#include <algorithm>
#include <cmath>
#include <map>

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
constexpr double kConfident = 0.7, kShow = 0.2, kFail = 0.5, kTie = 0.2;

using LineKey = std::pair<int, int64_t>;

struct Candidate {
  const Problem* problem = nullptr;
  std::vector<size_t> hits;      ///< signatures of role cause that count
  std::vector<size_t> symptoms;  ///< after-effects seen
  std::vector<const FactRule*> rules;
  int decisive = 0, supporting = 0;
  Truth required = Truth::yes;
  std::string unknown_fact;  ///< of the first require that nobody observed
  std::vector<std::pair<std::string, const Observation*>> conditions;  ///< true ones, for evidence
  double confidence = 0;
  Severity severity = Severity::fail;
  Place first, last;
  std::vector<LineKey> lines;  ///< where its lines stand
  std::string ruled_out_by;    ///< not empty: it is not this
};

struct Case {
  const Catalogue& catalogue;
  const LogEvidence& logs;
  const Observed& observed;
  Lang lang;
  std::string say(std::string_view en, std::string_view zh) const {
    return std::string(lang == Lang::zh ? zh : en);
  }
};

bool signature_counts(const Case& c, const Problem& p, const LogEvidence::OfProblem& seen, size_t i) {
  const Signature& s = p.signatures[i];
  if (seen.signatures[i].count == 0) return false;
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
  }
}

void apply_conditions(const Case& c, Candidate& cand, const LogEvidence::OfProblem& seen) {
  const Problem& p = *cand.problem;
  for (const FactRule& r : p.rules)
    if (judge_all(r.all, c.observed) == Truth::yes) {
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
    if (v.truth == Truth::yes) {
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

/// Mere hints beside signs of a living run are not worth an alarm.
bool only_hints(const Case& c, const Candidate& cand) {
  if (cand.decisive > 0 || cand.confidence >= kConfident || c.logs.hard_errors.count > 0) return false;
  return c.logs.run_success.count > 0 || later(c.logs.alive, cand.last);
}

Severity severity_for(const Case& c, const Candidate& cand) {
  const Problem& p = *cand.problem;
  Severity s = p.severity;
  if (cand.hits.empty() && !cand.rules.empty()) {
    s = Severity::info;
    for (const FactRule* r : cand.rules) s = std::max(s, r->severity);
  }
  if (!p.survives_success && !cand.hits.empty()) {
    if (run_succeeded(c, cand) || only_hints(c, cand)) return Severity::info;
  }
  if (s == Severity::fail && cand.confidence < kFail) s = Severity::warn;
  return s;
}

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
  return out;
}

bool better(const Candidate& a, const Candidate& b) {
  const bool sure_a = a.confidence >= kConfident, sure_b = b.confidence >= kConfident;
  if (sure_a != sure_b) return sure_a;
  if (sure_a && a.severity != b.severity) return a.severity > b.severity;
  if (sure_a && !a.hits.empty() && !b.hits.empty() &&
      (earlier(a.first, b.first) || earlier(b.first, a.first)))
    return earlier(a.first, b.first);
  if (sure_a && a.hits.empty() != b.hits.empty()) return !a.hits.empty();
  if (a.confidence != b.confidence) return a.confidence > b.confidence;
  if (a.problem->reports != b.problem->reports) return a.problem->reports > b.problem->reports;
  return a.problem->kind < b.problem->kind;
}

/// All lines of `weak` are lines of `strong` too, or `strong` names it as its after-effect and came first.
bool explains(const Candidate& strong, const Candidate& weak) {
  const auto& list = strong.problem->after_effects;
  const bool named = std::find(list.begin(), list.end(), weak.problem->kind) != list.end();
  if (named && (weak.decisive == 0 || !strong.first.known() || !earlier(weak.first, strong.first)))
    return true;
  if (weak.decisive > 0 || weak.hits.empty()) return false;
  return std::all_of(weak.lines.begin(), weak.lines.end(), [&](const LineKey& k) {
    return std::find(strong.lines.begin(), strong.lines.end(), k) != strong.lines.end();
  });
}

void add_evidence(const Case& c, const Candidate& cand, Finding* f) {
  const auto& seen = c.logs.problems[size_t(cand.problem - c.catalogue.problems.data())];
  std::vector<size_t> order = cand.hits;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto& p = cand.problem->signatures;
    if (p[a].decisive != p[b].decisive) return bool(p[a].decisive);
    return earlier(seen.signatures[a].first.front().place, seen.signatures[b].first.front().place);
  });
  order.insert(order.end(), cand.symptoms.begin(), cand.symptoms.end());
  for (size_t i : order) {
    const Sightings& s = seen.signatures[i];
    const Sighting& one = s.first.front();
    std::string text = one.text;
    if (s.count > 1)
      text += c.say("  (" + std::to_string(s.count) + " lines" +
                        (s.who.size() > 1 ? ", " + std::to_string(s.who.size()) + " ranks)" : ")"),
                    "  (共 " + std::to_string(s.count) + " 行" +
                        (s.who.size() > 1 ? "，" + std::to_string(s.who.size()) + " 个 rank)" : ")"));
    Evidence e{c.logs.names[size_t(one.place.source)], int(one.place.line), text};
    if (std::none_of(f->evidence.begin(), f->evidence.end(),
                     [&](const Evidence& x) { return x.source == e.source && x.line == e.line; }))
      f->evidence.push_back(std::move(e));
  }
  for (const FactRule* r : cand.rules) f->evidence.push_back({c.say("facts", "事实"), 0, r->seen.in(c.lang)});
  for (const auto& [condition, by] : cand.conditions) {
    Evidence e = by->where;
    if (e.source.empty()) e.source = c.say("facts", "事实");
    const std::string fact = condition.substr(0, condition.find(' '));
    e.text = fact + " = " + by->value + (e.text.empty() ? "" : "  <- " + e.text);
    if (std::none_of(f->evidence.begin(), f->evidence.end(),
                     [&](const Evidence& x) { return x.text == e.text; }))
      f->evidence.push_back(std::move(e));
  }
}

Finding finding(const Case& c, const Candidate& cand) {
  const Problem& p = *cand.problem;
  Finding f;
  f.code = p.kind;
  f.severity = cand.severity;
  f.confidence = std::round(cand.confidence * 100) / 100;
  f.title = p.title.in(c.lang);
  f.cause = p.cause.in(c.lang);
  for (const Fix& fix : p.fixes) {
    if (judge_all(fix.only_if, c.observed) == Truth::no) continue;
    std::string text = fix.text.in(c.lang);
    if (fix.reboot) text += c.say(" (needs a reboot)", "（需要重启）");
    f.fix.push_back(std::move(text));
    for (const auto& command : fix.commands) f.fix.push_back("$ " + command);
  }
  add_evidence(c, cand, &f);
  return f;
}

const LookAlike* look_alike(const Problem& p, const std::string& kind) {
  for (const auto& l : p.look_alikes)
    if (l.kind == kind) return &l;
  return nullptr;
}

std::string observation(const Case& c, const LookAlike& l) {
  return l.decide.in(c.lang) + (l.command.empty() ? "" : ": " + l.command);
}

/// What decides between the finding and its nearest rival, or the fact that its condition waits for.
std::string next_step(const Case& c, const Candidate& top, const Candidate* rival) {
  if (rival)
    if (const LookAlike* l = look_alike(*top.problem, rival->problem->kind)) return observation(c, *l);
  if (rival)
    if (const LookAlike* l = look_alike(*rival->problem, top.problem->kind)) return observation(c, *l);
  if (top.confidence < kConfident && !top.problem->look_alikes.empty())
    return observation(c, top.problem->look_alikes.front());
  if (!top.unknown_fact.empty()) return c.say("find out: ", "请确认：") + top.unknown_fact;
  return "epready explain " + top.problem->kind;
}

void unmatched(const Case& c, Diagnosis* d) {
  const auto& l = c.logs;
  const Sightings* s = l.hard_errors.count > 0   ? &l.hard_errors
                       : l.soft_errors.count > 0 ? &l.soft_errors
                                                 : nullptr;
  const bool success_last = s && l.run_success.count > 0 && !earlier(l.run_success.last, s->last);
  if (!s || (s == &l.soft_errors && (success_last || l.run_success.count > 0))) {
    d->healthy = true;
    return;
  }
  const Sighting* first = &s->first.front();
  d->start = Evidence{l.names[size_t(first->place.source)], int(first->place.line), first->text};
  d->collect = {c.say("the log of every rank from its first line: NCCL_DEBUG=INFO NVSHMEM_DEBUG=INFO python3 "
                      "... 2>&1 | tee rank$RANK.log",
                      "每个 rank 从头开始的日志：NCCL_DEBUG=INFO NVSHMEM_DEBUG=INFO python3 ... 2>&1 | tee "
                      "rank$RANK.log"),
                c.say("the versions: python3 -m pip list | grep -i -e nvshmem -e nccl -e torch -e deep",
                      "版本：python3 -m pip list | grep -i -e nvshmem -e nccl -e torch -e deep"),
                c.say("the host: epready snapshot -o host.snap (then: epready doctor --from host.snap LOG)",
                      "主机：epready snapshot -o host.snap（然后 epready doctor --from host.snap LOG）")};
}

void take_notes(const Case& c, Diagnosis* d) {
  for (size_t i = 0; i < c.logs.notes.size(); ++i) {
    const ScanNotes& n = c.logs.notes[i];
    d->bytes += n.bytes;
    d->lines += n.lines;
    const std::string& name = c.logs.names[i];
    if (n.utf16) d->notes.push_back(name + c.say(": read as UTF-16", "：按 UTF-16 读取"));
    if (n.binary) d->notes.push_back(name + c.say(": holds binary bytes", "：含二进制字节"));
    if (n.long_lines)
      d->notes.push_back(name + c.say(": ", "：") + std::to_string(n.long_lines) +
                         c.say(" lines above 64 KiB were matched in windows of 16 KiB",
                               " 行超过 64 KiB，按 16 KiB 的窗口匹配"));
  }
  d->errors = c.logs.errors;
  // A host was looked at: rules that nobody could judge are no proof of health.
  if (!c.logs.names.empty() || c.observed.table().empty()) return;
  size_t rules = 0, unknown = 0;
  for (const Problem& p : c.catalogue.problems)
    for (const FactRule& r : p.rules) {
      ++rules;
      unknown += judge_all(r.all, c.observed) == Truth::unknown;
    }
  if (unknown > 0)
    d->notes.push_back(std::to_string(unknown) + c.say(" of ", " / ") + std::to_string(rules) +
                       c.say(" rules on facts could not be judged here: their facts are not known",
                             " 条事实规则无法判断：所需事实未知"));
}

/// Takes out what stronger candidates explain; remembers by what.
std::vector<Candidate> explained(std::vector<Candidate> in, std::map<std::string, std::string>* why) {
  std::vector<Candidate> out;
  for (auto& cand : in) {
    const Candidate* by = nullptr;
    for (const auto& strong : out)
      if (strong.confidence >= kConfident && explains(strong, cand)) by = &strong;
    if (by)
      (*why)[cand.problem->kind] = by->problem->kind;
    else
      out.push_back(std::move(cand));
  }
  return out;
}

}  // namespace

Diagnosis judge(const Catalogue& catalogue, const LogEvidence& logs, const Observed& observed, Lang lang) {
  const Case c{catalogue, logs, observed, lang};
  Diagnosis d;
  take_notes(c, &d);
  std::map<std::string, std::string> ruled_out, explained_by;
  std::vector<Candidate> live;
  for (auto& cand : gather(c)) {
    if (!cand.ruled_out_by.empty())
      ruled_out[cand.problem->kind] = cand.ruled_out_by;
    else
      live.push_back(std::move(cand));
  }
  std::sort(live.begin(), live.end(), better);
  // A cause may stand behind its after-effect in this order: the named after-effects go first.
  for (const auto& strong : live)
    if (strong.confidence >= kConfident)
      for (const auto& weak : live)
        if (&weak != &strong && weak.problem != strong.problem && explains(strong, weak) &&
            !explains(weak, strong))
          explained_by.emplace(weak.problem->kind, strong.problem->kind);
  std::erase_if(live, [&](const Candidate& x) { return explained_by.count(x.problem->kind) != 0; });
  live = explained(std::move(live), &explained_by);

  const bool sure =
      !live.empty() && live.front().confidence >= kConfident && live.front().severity != Severity::info;
  std::vector<const Candidate*> alarms, hints;
  for (const auto& cand : live) {
    if (cand.severity == Severity::info)
      hints.push_back(&cand);
    else if (alarms.size() < 3 && cand.confidence >= (sure ? kFail : kShow))
      alarms.push_back(&cand);
  }
  const Candidate* rival = alarms.size() > 1 && !sure && alarms[0]->confidence - alarms[1]->confidence < kTie
                               ? alarms[1]
                               : nullptr;
  d.undecided = rival != nullptr;
  for (const Candidate* cand : alarms) {
    Finding f = finding(c, *cand);
    f.next = next_step(c, *cand,
                       cand == alarms[0]                    ? rival
                       : alarms[0]->confidence < kConfident ? alarms[0]
                                                            : nullptr);
    for (const auto& l : cand->problem->look_alikes)
      if (auto it = ruled_out.find(l.kind); it != ruled_out.end())
        f.ruled_out.push_back(l.kind + ": " + it->second);
    for (const auto& [kind, by] : explained_by)
      if (by == cand->problem->kind)
        f.ruled_out.push_back(kind + c.say(": its lines follow from this cause", "：其日志行由本原因引起"));
    d.findings.push_back(std::move(f));
  }
  for (const Candidate* cand : hints) d.findings.push_back(finding(c, *cand));
  if (alarms.empty()) unmatched(c, &d);
  return d;
}

}  // namespace ep
