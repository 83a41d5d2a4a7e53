#include "doctor/problem.h"

#include <re2/re2.h>

#include <algorithm>
#include <set>
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/embedded.h"
#include "doctor/literal_scan.h"

namespace ep {

bool LinePattern::matches(std::string_view line) const {
  for (const auto& l : literals)
    if (!(ignore_case ? icontains(line, l) : contains(line, l))) return false;
  return !regex || re2::RE2::PartialMatch(line, *regex);
}

size_t LinePattern::anchor() const {
  size_t best = 0;
  double best_cost = 1e300;
  for (size_t i = 0; i < literals.size(); ++i) {
    if (literals[i].size() < LiteralScan::kMinLength) continue;
    const double cost = LiteralScan::commonness(literals[i]);
    if (cost < best_cost) {
      best_cost = cost;
      best = i;
    }
  }
  return best;
}

const Problem* Catalogue::find(std::string_view kind) const {
  for (const Problem& p : problems)
    if (p.kind == kind) return &p;
  return nullptr;
}

namespace {

/// Reads one table of the file: takes keys out, remembers the first error, and complains about keys nobody took.
class Reader {
 public:
  Reader(const toml::table& table, std::string file, Error* error)
      : table_(table), file_(std::move(file)), error_(error) {}

  void bad(const std::string& what, const toml::source_region& at, const std::string& why = {}) {
    if (!error_->what.empty()) return;
    *error_ = Error{ErrorKind::malformed, what, file_ + ":" + std::to_string(at.begin.line), why, "epready data lint", {}};
  }
  void bad(const std::string& what, const std::string& why = {}) { bad(what, table_.source(), why); }

  std::string text(const char* key, bool needed = false) {
    const toml::node* n = take(key);
    if (!n) {
      if (needed) bad(std::string("`") + key + "` is missing");
      return {};
    }
    auto v = n->value<std::string>();
    if (!n->is_string() || (needed && v->empty())) {
      bad(std::string("`") + key + "` must be text", n->source());
      return {};
    }
    return *v;
  }
  std::string one_of(const char* key, const std::vector<std::string>& allowed, bool needed = true) {
    std::string v = text(key, needed);
    if (v.empty() || std::find(allowed.begin(), allowed.end(), v) != allowed.end()) return v;
    bad(std::string("`") + key + "` = \"" + v + "\"", "one of: " + join(allowed, " "));
    return v;
  }
  bool flag(const char* key) {
    const toml::node* n = take(key);
    if (n && !n->is_boolean()) bad(std::string("`") + key + "` must be true or false", n->source());
    return n && n->value_or(false);
  }
  int number(const char* key) {
    const toml::node* n = take(key);
    if (n && !n->is_integer()) bad(std::string("`") + key + "` must be a number", n->source());
    return n ? int(n->value_or<int64_t>(0)) : 0;
  }
  std::vector<std::string> list(const char* key) {
    std::vector<std::string> out;
    const toml::node* n = take(key);
    if (!n) return out;
    if (!n->is_array()) {
      bad(std::string("`") + key + "` must be a list", n->source());
      return out;
    }
    for (const auto& e : *n->as_array()) {
      if (!e.is_string()) bad(std::string("`") + key + "` must hold text only", e.source());
      else out.push_back(*e.value<std::string>());
    }
    return out;
  }
  std::vector<Condition> conditions(const char* key) {
    std::vector<Condition> out;
    const toml::node* n = table_.get(key);
    for (const auto& one : list(key)) {
      auto c = Condition::parse(one);
      if (c) out.push_back(std::move(*c));
      else bad(c.error().what, n->source(), c.error().where + ": " + c.error().why);
    }
    return out;
  }
  Words words(bool needed = true) {
    Words w{text("en", needed), text("zh", needed)};
    return w;
  }
  Words word_table(const char* key) {
    const toml::node* n = take(key);
    if (!n || !n->is_table()) {
      bad(std::string("[") + key + "] is missing");
      return {};
    }
    Reader r(*n->as_table(), file_, error_);
    Words w = r.words();
    r.done();
    return w;
  }
  template <class F>
  void each(const char* key, F f) {
    const toml::node* n = take(key);
    if (!n) return;
    if (!n->is_array()) return bad(std::string("[[") + key + "]] must be a list of tables", n->source());
    for (const auto& e : *n->as_array()) {
      if (!e.is_table()) return bad(std::string("[[") + key + "]] must be a list of tables", e.source());
      Reader r(*e.as_table(), file_, error_);
      f(r);
      r.done();
    }
  }
  LinePattern pattern() {
    LinePattern p;
    p.literals = list("literals");
    p.regex_text = text("regex");
    p.ignore_case = flag("ignore_case");
    size_t longest = 0;
    for (const auto& l : p.literals) {
      longest = std::max(longest, l.size());
      if (l.find('\n') != std::string::npos) bad("a literal spans lines", l);
    }
    if (longest < LiteralScan::kMinLength)
      bad("a signature needs one literal of " + std::to_string(LiteralScan::kMinLength) + " bytes or more");
    if (!p.regex_text.empty()) {
      re2::RE2::Options o;
      o.set_log_errors(false);
      o.set_case_sensitive(!p.ignore_case);
      o.set_max_mem(8 << 20);
      auto re = std::make_shared<re2::RE2>(p.regex_text, o);
      if (!re->ok()) bad("regular expression does not compile", p.regex_text + ": " + re->error());
      p.regex = std::move(re);
    }
    return p;
  }
  /// Every key must have been asked for.
  void done() {
    std::vector<std::string> known(asked_.begin(), asked_.end());
    for (auto&& [key, node] : table_) {
      std::string name(key.str());
      if (asked_.count(name)) continue;
      auto near = closest(name, known);
      bad("unknown key `" + name + "`", node.source(), near ? "did you mean `" + *near + "`?" : "known: " + join(known, " "));
    }
  }

 private:
  const toml::node* take(const char* key) {
    asked_.insert(key);
    return table_.get(key);
  }
  const toml::table& table_;
  std::string file_;
  Error* error_;
  std::set<std::string> asked_;
};

Severity severity_of(const std::string& s) {
  return s == "fail" ? Severity::fail : s == "warn" ? Severity::warn : Severity::info;
}

const std::vector<std::string> kSeverities = {"fail", "warn", "info"};
const std::vector<std::string> kLayers = {"toolchain", "packages", "nvshmem", "nccl", "deepep", "driver", "kernel",
                                          "nic", "fabric", "container", "launch", "framework"};
const std::vector<std::string> kPhases = {"build", "import", "launch", "init", "run", "host"};
const std::vector<std::string> kWeights = {"decisive", "supporting"};

void read_patterns(Reader& r, Problem& p) {
  r.each("signature", [&](Reader& s) {
    Signature sig;
    sig.pattern = s.pattern();
    sig.decisive = s.one_of("weight", kWeights) == "decisive";
    sig.after_effect = s.one_of("role", {"cause", "after-effect"}, false) == "after-effect";
    sig.id = s.text("id");
    sig.with = s.list("with");
    sig.within = s.number("within");
    sig.only_if = s.conditions("if");
    p.signatures.push_back(std::move(sig));
  });
  r.each("not", [&](Reader& s) {
    CounterSign c;
    c.pattern = s.pattern();
    c.why = s.words();
    p.against.push_back(std::move(c));
  });
  r.each("rule", [&](Reader& s) {
    FactRule rule;
    rule.all = s.conditions("all");
    if (rule.all.empty()) s.bad("a rule needs conditions in `all`");
    rule.decisive = s.one_of("weight", kWeights) == "decisive";
    std::string sev = s.one_of("severity", kSeverities, false);
    rule.severity = sev.empty() ? p.severity : severity_of(sev);
    rule.seen = s.words();
    p.rules.push_back(std::move(rule));
  });
}

void read_advice(Reader& r, Problem& p) {
  r.each("lookalike", [&](Reader& s) {
    LookAlike l;
    l.kind = s.text("kind", true);
    l.decide = s.words();
    l.command = s.text("command");
    p.look_alikes.push_back(std::move(l));
  });
  r.each("fix", [&](Reader& s) {
    Fix f;
    f.text = s.words();
    f.commands = s.list("commands");
    f.root = s.flag("root");
    f.reboot = s.flag("reboot");
    f.only_if = s.conditions("if");
    p.fixes.push_back(std::move(f));
  });
  r.each("source", [&](Reader& s) {
    p.sources.push_back({s.text("url", true), s.text("date", true), s.text("says", true)});
  });
}

void check_ids(Reader& r, const Problem& p) {
  std::set<std::string> ids;
  for (const auto& s : p.signatures)
    if (!s.id.empty() && !ids.insert(s.id).second) r.bad("two signatures have the id `" + s.id + "`");
  for (const auto& s : p.signatures)
    for (const auto& w : s.with)
      if (!ids.count(w)) r.bad("`with` names no signature of this file", w);
  if (p.signatures.empty() && p.rules.empty()) r.bad("a problem needs a [[signature]] or a [[rule]]");
  if (p.fixes.empty()) r.bad("a problem needs a [[fix]]");
  if (p.sources.empty()) r.bad("a problem needs a [[source]]");
}

}  // namespace

Result<Problem> parse_problem(std::string_view text, const std::string& name) {
  toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const auto& e = parsed.error();
    return fail(ErrorKind::malformed, "not TOML", name + ":" + std::to_string(e.source().begin.line),
                std::string(e.description()));
  }
  Error error;
  Reader r(parsed.table(), name, &error);
  Problem p;
  p.file = name;
  p.kind = r.text("kind", true);
  p.severity = severity_of(r.one_of("severity", kSeverities));
  p.layer = r.one_of("layer", kLayers);
  p.phase = r.one_of("phase", kPhases);
  p.lanes = r.list("lanes");
  for (const auto& l : p.lanes)
    if (l != "v1" && l != "v2" && l != "local") r.bad("lane `" + l + "`", "one of: v1 v2 local");
  p.first_seen = r.text("first_seen", true);
  p.reports = r.number("reports");
  p.survives_success = r.flag("survives_success");
  p.after_effects = r.list("after_effects");
  p.require = r.conditions("require");
  p.support = r.conditions("support");
  p.exclude = r.conditions("exclude");
  p.title = r.word_table("title");
  p.cause = r.word_table("cause");
  read_patterns(r, p);
  read_advice(r, p);
  check_ids(r, p);
  r.done();
  if (!error.what.empty()) return Failure(std::move(error));
  return p;
}

Catalogue load_catalogue(const std::vector<std::pair<std::string, std::string>>& files, std::vector<Error>* errors) {
  Catalogue c;
  for (const auto& [name, text] : files) {
    auto p = parse_problem(text, name);
    if (!p) {
      errors->push_back(std::move(p.error()));
      continue;
    }
    if (c.find(p->kind)) {
      errors->push_back(Error{ErrorKind::malformed, "kind `" + p->kind + "` is defined twice", name,
                              "also in " + c.find(p->kind)->file, "", {}});
      continue;
    }
    c.problems.push_back(std::move(*p));
  }
  std::sort(c.problems.begin(), c.problems.end(), [](const auto& a, const auto& b) { return a.kind < b.kind; });
  return c;
}

std::vector<std::pair<std::string, std::string>> embedded_problem_files() {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::string_view path : embedded_below("data/problems/"))
    if (ends_with(path, ".toml")) out.emplace_back(std::string(path), std::string(*embedded(path)));
  return out;
}

}  // namespace ep
