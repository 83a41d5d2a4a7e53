#include "recipe/condition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>

#include "base/text.h"
#include "base/version.h"

namespace ep {
namespace {

constexpr std::string_view kOps[] = {"==",  "!=",    "<=",       ">=",      "<",   ">",    "in",
                                     "has", "lacks", "contains", "matches", "set", "unset"};

bool is_true(std::string_view v) {
  const std::string s = lower(v);
  return s == "true" || s == "1" || s == "yes" || s == "y" || s == "on" || s == "active" || s == "enabled";
}
bool begins_with_digit(std::string_view s) {
  return !s.empty() && std::isdigit(static_cast<unsigned char>(s[0]));
}

bool equal(ValueKind kind, std::string_view seen, std::string_view wanted) {
  switch (kind) {
    case ValueKind::boolean:
      return is_true(seen) == is_true(wanted);
    case ValueKind::number: {
      const auto a = parse_double(seen), b = parse_double(wanted);
      return a && b && *a == *b;
    }
    case ValueKind::version:
      return compare_versions(VersionOrder::dotted, seen, wanted) == 0;
    case ValueKind::text:
      return lower(seen) == lower(wanted);
    case ValueKind::open:
      return lower(seen) == lower(wanted) || (begins_with_digit(seen) && begins_with_digit(wanted) &&
                                              compare_versions(VersionOrder::dotted, seen, wanted) == 0);
  }
  return false;
}

/// <0, 0, >0, or nothing where the two have no order.
std::optional<int> order(ValueKind kind, std::string_view seen, std::string_view wanted) {
  if (kind == ValueKind::version || kind == ValueKind::open)
    return compare_versions(VersionOrder::dotted, seen, wanted);
  const auto a = parse_double(seen), b = parse_double(wanted);
  if (!a || !b) return std::nullopt;
  return *a < *b ? -1 : *a > *b ? 1 : 0;
}

bool is_order(std::string_view op) {
  return op == "<" || op == "<=" || op == ">" || op == ">=";
}

Truth truth_of(bool b) {
  return b ? Truth::yes : Truth::no;
}

class InScope : public Names {
 public:
  explicit InScope(const Scope& scope) : scope_(scope) {}
  NameAnswer ask(std::string_view name) const override {
    const auto found = scope_.find(name);
    if (found == scope_.end() || !found->second.known) return {};
    const Named& n = found->second;
    NameAnswer a;
    a.known = true;
    a.present = n.present;
    if (n.present) a.values = {n.text};
    a.traits = &n.traits;
    return a;
  }

 private:
  const Scope& scope_;
};

std::string filled(std::string_view text, const Names& names) {
  std::string out;
  while (!text.empty()) {
    const size_t open = text.find('{');
    const size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) break;
    out += text.substr(0, open);
    std::string_view name = text.substr(open + 1, close - open - 1);
    const bool major = ends_with(name, ".major");
    if (major) name.remove_suffix(6);
    const NameAnswer a = names.ask(name);
    if (!a.present)
      out += text.substr(open, close - open + 1);
    else
      out += major ? split(a.values[a.counts], '.')[0] : a.values[a.counts];
    text.remove_prefix(close + 1);
  }
  out += text;
  return out;
}

Truth ask(const Atom& atom, const Names& names, int& by) {
  const NameAnswer a = names.ask(atom.name);
  if (!a.known) return Truth::unknown;
  const std::string& op = atom.op;
  if (a.present) by = int(a.counts);
  if (op == "set") return truth_of(a.present);
  if (op == "unset") return truth_of(!a.present);
  const std::string value = op == "matches" ? atom.value : filled(atom.value, names);
  if (op != "matches" && value.find('{') != std::string::npos) return Truth::unknown;
  if (op == "has" || op == "lacks") {
    if (!a.traits) return Truth::unknown;
    if (!a.present) return Truth::no;
    const bool has = std::find(a.traits->begin(), a.traits->end(), value) != a.traits->end();
    return truth_of(has == (op == "has"));
  }
  if (!a.present) return truth_of(op == "!=");
  if (is_order(op)) {
    const auto c = order(a.kind, a.values[a.counts], value);
    if (!c) return Truth::unknown;
    return truth_of(op == "<" ? *c < 0 : op == "<=" ? *c <= 0 : op == ">" ? *c > 0 : *c >= 0);
  }
  const auto fits = [&](std::string_view seen) {
    if (op == "==" || op == "!=") return equal(a.kind, seen, value);
    if (op == "contains") return icontains(seen, value);
    if (op == "matches") return re2::RE2::PartialMatch(seen, *atom.regex);
    for (std::string_view word : split(value, ','))
      if (equal(a.kind, seen, trim(word))) return true;
    return false;
  };
  bool any = false;
  for (size_t i = 0; i < a.values.size() && !any; ++i) {
    any = fits(a.values[i]);
    if (any) by = int(i);
  }
  return truth_of(any != (op == "!="));
}

bool good_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

Result<Condition> Condition::parse(std::string_view text) {
  Condition out;
  out.text = std::string(trim(text));
  const auto wrong = [&](std::string why) -> Failure {
    return fail(ErrorKind::malformed, "not a condition", out.text, std::move(why));
  };
  std::string_view rest = text;
  for (bool more = true; more;) {
    // With its blanks: a regular expression may hold a bar of its own.
    const size_t bar = rest.find(" | ");
    more = bar != std::string_view::npos;
    const std::string_view piece = trim(rest.substr(0, bar));
    if (more) rest.remove_prefix(bar + 3);
    const auto words = split_ws(piece);
    if (words.size() < 2) return wrong("expected NAME OP VALUE");
    if (!good_name(words[0])) return wrong(fmt::format("\"{}\" is not a name", words[0]));
    if (std::find(std::begin(kOps), std::end(kOps), words[1]) == std::end(kOps))
      return wrong(fmt::format("unknown operator \"{}\"; known: {}", words[1], fmt::join(kOps, " ")));
    Atom atom{std::string(words[0]), std::string(words[1]), {}, nullptr};
    if (words.size() > 2) atom.value = trim(piece.substr(size_t(words[2].data() - piece.data())));
    const bool bare = atom.op == "set" || atom.op == "unset";
    if (bare != atom.value.empty())
      return wrong(bare ? fmt::format("\"{}\" takes no value", atom.op) : "the value is missing");
    if (ends_with(atom.value, " |") || atom.value == "|")
      return wrong("an alternative is missing behind \"|\"");
    if (atom.op == "matches") {
      re2::RE2::Options options(re2::RE2::Quiet);
      auto regex = std::make_shared<const re2::RE2>(atom.value, options);
      if (!regex->ok()) return wrong("regular expression: " + regex->error());
      atom.regex = std::move(regex);
    }
    out.any_of.push_back(std::move(atom));
  }
  return out;
}

Judged Condition::judge(const Names& names) const {
  Judged out;
  bool first = true;
  for (size_t i = 0; i < any_of.size(); ++i) {
    int by = -1;
    const Truth t = ask(any_of[i], names, by);
    if (t == Truth::yes) return {t, i, by};
    if (t == Truth::unknown) out = {t, i, -1};
    if (t == Truth::no && (first || out.truth == Truth::no)) out = {t, i, by};
    first = false;
  }
  return out;
}

Truth Condition::holds(const Scope& scope) const {
  return judge(InScope(scope)).truth;
}

std::string Condition::evidence(const Scope& scope) const {
  std::vector<std::string> parts;
  for (const auto& atom : any_of) {
    // The user knows what was asked for; facts and versions are what decides.
    if (atom.name == "lane" || atom.name == "consumer" || starts_with(atom.name, "option.")) continue;
    const auto found = scope.find(atom.name);
    std::string part;
    if (found == scope.end() || !found->second.known)
      part = fmt::format(
          "{} is not known{}", atom.name,
          found != scope.end() && !found->second.why.empty() ? " (" + found->second.why + ")" : "");
    else if (!found->second.present)
      part = fmt::format("{} is absent", atom.name);
    else
      part = fmt::format("{} is {}", atom.name, found->second.text);
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  }
  return join(parts, ", ");
}

Truth all_of(const std::vector<Truth>& truths) {
  Truth out = Truth::yes;
  for (Truth t : truths) {
    if (t == Truth::no) return Truth::no;
    if (t == Truth::unknown) out = Truth::unknown;
  }
  return out;
}

Truth all_hold(const std::vector<Condition>& conditions, const Scope& scope) {
  std::vector<Truth> truths;
  for (const auto& c : conditions) truths.push_back(c.holds(scope));
  return all_of(truths);
}

std::vector<std::string> names_in(const std::vector<Condition>& conditions) {
  std::vector<std::string> out;
  const auto add = [&](std::string name) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
  };
  for (const auto& c : conditions)
    for (const auto& a : c.any_of) {
      add(a.name);
      for (size_t at = a.value.find('{'); at != std::string::npos; at = a.value.find('{', at + 1)) {
        std::string name = a.value.substr(at + 1, a.value.find('}', at) - at - 1);
        if (ends_with(name, ".major")) name.resize(name.size() - 6);
        add(std::move(name));
      }
    }
  return out;
}

std::string fill_in(std::string_view text, const Scope& scope) {
  return filled(text, InScope(scope));
}

}  // namespace ep
