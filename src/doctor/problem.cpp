#include "doctor/problem.h"

#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "doctor/literal_scan.h"
#include "doctor/rank.h"
#include "recipe/toml.h"

namespace ep {

bool LinePattern::matches(std::string_view line) const {
  for (const auto& l : literals)
    if (!(ignore_case ? icontains(line, l) : contains(line, l))) return false;
  if (!regex || re2::RE2::PartialMatch(line, *regex)) return true;
  if (!asks_for_start(regex_text)) return false;
  const std::string_view plain = past_prefix(line);
  return plain.size() < line.size() && re2::RE2::PartialMatch(plain, *regex);
}

bool asks_for_start(std::string_view regex) {
  bool class_begins = false;
  for (size_t i = 0; i < regex.size(); ++i) {
    if (regex[i] == '^' && !class_begins) return true;
    class_begins = regex[i] == '[';
    if (regex[i] == '\\') ++i;
  }
  return false;
}

size_t LinePattern::anchor() const {
  if (literals.size() == 1) return 0;
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

std::shared_ptr<const re2::RE2> compile_regex(const std::string& text, bool ignore_case, std::string* error) {
  re2::RE2::Options o;
  o.set_log_errors(false);
  o.set_case_sensitive(!ignore_case);
  o.set_max_mem(8 << 20);
  auto re = std::make_shared<re2::RE2>(text, o);
  if (!re->ok()) *error = re->error();
  return re;
}

namespace {

const std::vector<std::string> kSeverities = {"fail", "warn", "info"};
const std::vector<std::string> kLayers = {"toolchain", "packages",  "nvshmem", "nccl",
                                          "deepep",    "driver",    "kernel",  "nic",
                                          "fabric",    "container", "launch",  "framework"};
const std::vector<std::string> kPhases = {"build", "import", "launch", "init", "run", "host"};
const std::vector<std::string> kWeights = {"decisive", "supporting"};

Severity severity_of(const std::string& s) {
  return s == "fail" ? Severity::fail : s == "warn" ? Severity::warn : Severity::info;
}

std::vector<FactCondition> conditions(TomlReader& r, std::string_view key) {
  std::vector<FactCondition> out;
  for (const auto& one : r.strings(key)) {
    auto c = FactCondition::parse(one);
    if (c)
      out.push_back(std::move(*c));
    else
      r.complain(r.node(), c.error().what + " in `" + one + "`", c.error().why);
  }
  return out;
}

TwoTexts words(TomlReader& r) {
  return {r.text("en", true), r.text("zh", true)};
}

TwoTexts word_table(TomlReader& r, std::string_view key, std::vector<Error>& errors) {
  const TomlNode* t = r.table(key);
  if (!t) {
    r.complain(r.node(), std::string(key) + ": the table is missing");
    return {};
  }
  TomlReader inner(*t, r.file(), errors);
  TwoTexts w = words(inner);
  inner.finish();
  return w;
}

LinePattern pattern(TomlReader& r) {
  LinePattern p;
  p.literals = r.strings("literals");
  p.regex_text = r.text("regex");
  p.ignore_case = r.boolean("ignore_case");
  size_t longest = 0;
  for (const auto& l : p.literals) {
    longest = std::max(longest, l.size());
    if (l.empty() || l.find('\n') != std::string::npos)
      r.complain(r.node(), "a literal is empty or spans lines", l);
  }
  if (longest < LiteralScan::kMinLength)
    r.complain(r.node(), "one literal must have 6 bytes or more", "the scanner finds lines by it");
  if (!p.regex_text.empty()) {
    std::string error;
    p.regex = compile_regex(p.regex_text, p.ignore_case, &error);
    if (!error.empty())
      r.complain(r.node(), "regular expression does not compile", p.regex_text + ": " + error);
  }
  return p;
}

void read_patterns(TomlReader& r, Problem& p, std::vector<Error>& errors) {
  for (const TomlNode* n : r.tables("signature")) {
    TomlReader s(*n, r.file(), errors);
    Signature sig;
    sig.line_in_file = n->line;
    sig.pattern = pattern(s);
    sig.decisive = s.one_of("weight", kWeights) == "decisive";
    sig.after_effect = s.one_of("role", {"cause", "after-effect"}, "cause") == "after-effect";
    sig.id = s.text("id");
    sig.with = s.strings("with");
    sig.within = int(s.integer("within"));
    sig.times = std::max(1, int(s.integer("times")));
    sig.only_if = conditions(s, "if");
    s.finish();
    p.signatures.push_back(std::move(sig));
  }
  for (const TomlNode* n : r.tables("not")) {
    TomlReader s(*n, r.file(), errors);
    CounterSign c;
    c.pattern = pattern(s);
    c.why = words(s);
    s.finish();
    p.against.push_back(std::move(c));
  }
  for (const TomlNode* n : r.tables("rule")) {
    TomlReader s(*n, r.file(), errors);
    FactRule rule;
    rule.all = conditions(s, "all");
    if (rule.all.empty()) s.complain(*n, "a rule needs conditions in `all`");
    rule.decisive = s.one_of("weight", kWeights) == "decisive";
    rule.severity = s.has("severity") ? severity_of(s.one_of("severity", kSeverities)) : p.severity;
    rule.despite_exclude = s.boolean("despite_exclude");
    rule.need = s.boolean("need");
    rule.seen = words(s);
    s.finish();
    p.rules.push_back(std::move(rule));
  }
}

void read_advice(TomlReader& r, Problem& p, std::vector<Error>& errors) {
  for (const TomlNode* n : r.tables("lookalike")) {
    TomlReader s(*n, r.file(), errors);
    p.look_alikes.push_back({s.text("kind", true), words(s), s.text("command")});
    s.finish();
  }
  for (const TomlNode* n : r.tables("fix")) {
    TomlReader s(*n, r.file(), errors);
    Fix f;
    f.text = words(s);
    f.commands = s.strings("commands");
    f.steps = s.strings("steps");
    f.root = s.boolean("root");
    f.reboot = s.boolean("reboot");
    f.only_if = conditions(s, "if");
    s.finish();
    p.fixes.push_back(std::move(f));
  }
  for (const TomlNode* n : r.tables("source")) {
    TomlReader s(*n, r.file(), errors);
    p.sources.push_back({s.text("url", true), s.text("date", true), s.text("says", true)});
    s.finish();
  }
}

void check_shape(TomlReader& r, const Problem& p) {
  std::set<std::string> ids;
  for (const auto& s : p.signatures)
    if (!s.id.empty() && !ids.insert(s.id).second)
      r.complain(r.node(), "two signatures have the id `" + s.id + "`");
  for (const auto& s : p.signatures)
    for (const auto& w : s.with)
      if (!ids.count(w)) r.complain(r.node(), "`with` names no signature of this file: " + w);
  for (const auto& l : p.lanes)
    if (l != "v1" && l != "v2" && l != "local")
      r.complain(r.node(), "unknown lane `" + l + "`", "one of: v1 v2 local");
  if (p.signatures.empty() && p.rules.empty())
    r.complain(r.node(), "a problem needs a [[signature]] or a [[rule]]");
  if (p.fixes.empty()) r.complain(r.node(), "a problem needs a [[fix]]");
  if (p.sources.empty()) r.complain(r.node(), "a problem needs a [[source]]");
}

}  // namespace

Problem parse_problem(std::string_view text, const std::string& name, std::vector<Error>& errors) {
  Problem p;
  p.file = name;
  auto parsed = parse_toml(text, name);
  if (!parsed) {
    errors.push_back(std::move(parsed.error()));
    return p;
  }
  TomlReader r(*parsed, name, errors);
  p.kind = r.text("kind", true);
  p.severity = severity_of(r.one_of("severity", kSeverities));
  p.layer = r.one_of("layer", kLayers);
  p.phase = r.one_of("phase", kPhases);
  p.lanes = r.strings("lanes");
  p.first_seen = r.text("first_seen", true);
  p.reports = int(r.integer("reports"));
  p.survives_success = r.boolean("survives_success");
  p.after_effects = r.strings("after_effects");
  p.require = conditions(r, "require");
  p.support = conditions(r, "support");
  p.exclude = conditions(r, "exclude");
  p.title = word_table(r, "title", errors);
  p.cause = word_table(r, "cause", errors);
  read_patterns(r, p, errors);
  read_advice(r, p, errors);
  check_shape(r, p);
  r.finish();
  return p;
}

Catalogue load_catalogue(const std::vector<DataFile>& files, std::vector<Error>& errors) {
  Catalogue c;
  for (const DataFile& f : files) {
    const size_t before = errors.size();
    Problem p = parse_problem(f.content, f.shown, errors);
    if (errors.size() != before) continue;
    if (const Problem* twin = c.find(p.kind)) {
      errors.push_back(Error{ErrorKind::malformed,
                             "kind `" + p.kind + "` is defined twice",
                             f.shown,
                             "also in " + twin->file,
                             "",
                             {}});
      continue;
    }
    c.problems.push_back(std::move(p));
  }
  std::sort(c.problems.begin(), c.problems.end(),
            [](const auto& a, const auto& b) { return a.kind < b.kind; });
  return c;
}

}  // namespace ep
