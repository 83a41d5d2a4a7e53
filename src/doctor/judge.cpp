#include "doctor/judge.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "doctor/candidates.h"
#include "doctor/text_look.h"

namespace ep {

namespace {

constexpr double kShow = 0.2, kTie = 0.2;

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

bool facts_decide(const Candidate& c) {
  return std::any_of(c.rules.begin(), c.rules.end(), [](const FactRule* r) { return r->decisive; });
}

/// All lines of `weak` are lines of `strong` too, or `strong` names it as its after-effect and came first.
bool explains(const Candidate& strong, const Candidate& weak) {
  const auto& list = strong.problem->after_effects;
  const bool named = std::find(list.begin(), list.end(), weak.problem->kind) != list.end();
  const Place& cause = strong.decisive > 0 ? strong.first_decisive : strong.first;
  // What a build left out was left out before anything ran, wherever the paste shows it.
  const bool built = strong.problem->phase == "build" && weak.problem->phase != "build";
  // A fact of the host was there before the first line of the log.
  if (named && (built || facts_decide(strong) || weak.decisive == 0 || !cause.known() ||
                !earlier(weak.first_decisive, cause)))
    return true;
  if (((weak.decisive > 0 || facts_decide(weak)) && !named) || weak.hits.empty()) return false;
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
  const bool guide = l.guide && !l.own;
  const bool tested =
      s && l.tests_failed.count == 0 && l.tests_passed.count > 0 && !earlier(l.tests_passed.last, s->last);
  if (!s || guide || tested || (s == &l.soft_errors && (success_last || l.run_success.count > 0))) {
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
    if (n.bytes == 0) d->notes.push_back(name + c.say(": nothing to read in it", "：无可读内容"));
    if (n.utf16) d->notes.push_back(name + c.say(": read as UTF-16", "：按 UTF-16 读取"));
    if (n.binary) d->notes.push_back(name + c.say(": holds binary bytes", "：含二进制字节"));
    if (n.long_lines)
      d->notes.push_back(name + c.say(": ", "：") + std::to_string(n.long_lines) +
                         c.say(" lines above 64 KiB were matched in windows of 16 KiB",
                               " 行超过 64 KiB，按 16 KiB 的窗口匹配"));
  }
  d->errors = c.logs.errors;
  size_t unread = 0;
  for (size_t i = 0; i < c.logs.unreadable.size() && i < c.logs.names.size(); ++i) {
    const std::string why = unreadable_text(c.logs.unreadable[i], c.logs.names[i], c.lang);
    if (!why.empty()) d->notes.push_back(why);
    unread += !why.empty() || (i < c.logs.notes.size() && c.logs.notes[i].bytes == 0);
  }
  d->nothing_read = !c.logs.names.empty() && (d->bytes == 0 || unread == c.logs.names.size());
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

/// "Spoken of, not seen": a pointer for the reader of a runbook or of a question, no finding.
void note_mentions(const Case& c, Diagnosis* d) {
  int told = 0;
  for (size_t i = 0; i < c.catalogue.problems.size() && told < 3; ++i) {
    const Problem& p = c.catalogue.problems[i];
    Place at;
    for (size_t k = 0; k < p.signatures.size(); ++k) {
      const Sightings& s = c.logs.problems[i].signatures[k];
      if (!p.signatures[k].decisive) continue;
      if (s.mention.known()) at = s.mention;
      if (!at.known() && (c.logs.guide ? s.count : s.quoted) > 0 && !c.logs.trouble())
        at = s.first.front().place;
    }
    const bool found = std::any_of(d->findings.begin(), d->findings.end(),
                                   [&](const Finding& f) { return f.code == p.kind; });
    if (!at.known() || found) continue;
    ++told;
    d->notes.push_back(
        c.logs.names[size_t(at.source)] + ":" + std::to_string(at.line) +
        c.say(" speaks of it without having it: epready explain ", " 只是提到，并未发生：epready explain ") +
        p.kind);
  }
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

/// Beside a log that shows trouble, facts that nothing in it points to (a small /dev/shm, say) come after
/// what the log says: they may be true and harmless here.
void facts_after_lines(std::vector<Candidate>* live, const std::map<std::string, std::string>& explained_by) {
  const auto from_log = [](const Candidate& x) {
    return !x.hits.empty() && x.severity != Severity::info && x.confidence >= kShow;
  };
  if (std::none_of(live->begin(), live->end(), from_log)) return;
  std::stable_partition(live->begin(), live->end(), [&](const Candidate& x) {
    return !x.hits.empty() || std::any_of(explained_by.begin(), explained_by.end(),
                                          [&](const auto& pair) { return pair.second == x.problem->kind; });
  });
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
  // A cause may stand behind its after-effect in this order: the named after-effects go first. A cause that
  // the run lived with matters as much as what it left (slow, not broken).
  for (auto& strong : live)
    if (strong.confidence >= kConfident)
      for (const auto& weak : live)
        if (&weak != &strong && weak.problem != strong.problem && explains(strong, weak) &&
            !explains(weak, strong)) {
          explained_by.emplace(weak.problem->kind, strong.problem->kind);
          if (weak.problem->survives_success) strong.severity = std::max(strong.severity, weak.severity);
        }
  std::erase_if(live, [&](const Candidate& x) { return explained_by.count(x.problem->kind) != 0; });
  live = explained(std::move(live), &explained_by);
  facts_after_lines(&live, explained_by);

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
  if (alarms.empty() && !d.nothing_read) unmatched(c, &d);
  note_mentions(c, &d);
  return d;
}

}  // namespace ep
