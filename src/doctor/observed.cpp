#include "doctor/observed.h"

#include <re2/re2.h>

#include "base/text.h"
#include "base/version.h"
#include "doctor/fact_names.h"

namespace ep {

namespace {

constexpr size_t kKeep = 256;  ///< observations of one fact; more are repetitions of a long log

bool is_true(std::string_view v) {
  const std::string s = lower(v);
  return s == "true" || s == "1" || s == "yes" || s == "y" || s == "on" || s == "active" || s == "enabled";
}

bool equal(FactType type, std::string_view seen, std::string_view wanted) {
  switch (type) {
    case FactType::boolean:
      return is_true(seen) == is_true(wanted);
    case FactType::version:
      return compare_versions(VersionOrder::dotted, seen, wanted) == 0;
    case FactType::number: {
      auto a = parse_double(seen), b = parse_double(wanted);
      return a && b && *a == *b;
    }
    case FactType::text:
      return lower(seen) == lower(wanted);
  }
  return false;
}

/// <0, 0, >0, or nothing when one of them is no number.
std::optional<int> order(FactType type, std::string_view seen, std::string_view wanted) {
  if (type == FactType::version) return compare_versions(VersionOrder::dotted, seen, wanted);
  auto a = parse_double(seen), b = parse_double(wanted);
  if (!a || !b) return std::nullopt;
  return *a < *b ? -1 : *a > *b ? 1 : 0;
}

}  // namespace

void Observed::add(std::string_view fact, std::string value, Evidence where, Trust trust) {
  auto& list = values_[std::string(fact)];
  if (list.size() < kKeep) list.push_back({std::move(value), std::move(where), trust});
}

void Observed::add_absent(std::string_view fact) {
  absent_.insert(std::string(fact));
}

const Observation* Observed::best(std::string_view fact) const {
  const auto* list = all(fact);
  if (!list) return nullptr;
  const Observation* best = nullptr;
  for (const Observation& o : *list)
    if (!best || int(o.trust) >= int(best->trust)) best = &o;
  return best;
}

const std::vector<Observation>* Observed::all(std::string_view fact) const {
  auto it = values_.find(fact);
  return it == values_.end() || it->second.empty() ? nullptr : &it->second;
}

Result<FactCondition> FactCondition::parse(std::string_view text) {
  static const std::vector<std::string> kOperators = {
      "==", "!=", "<", "<=", ">", ">=", "in", "contains", "matches", "set", "unset"};
  FactCondition c;
  c.text_ = std::string(trim(text));
  std::string rest = c.text_;
  size_t from = 0;
  while (from <= rest.size()) {
    size_t bar = rest.find(" | ", from);
    std::string_view one =
        trim(std::string_view(rest).substr(from, bar == std::string::npos ? bar : bar - from));
    from = bar == std::string::npos ? rest.size() + 1 : bar + 3;
    Term t;
    size_t space = one.find(' ');
    t.fact = std::string(one.substr(0, space));
    std::string_view tail = space == std::string_view::npos ? "" : trim(one.substr(space));
    space = tail.find(' ');
    t.op = std::string(tail.substr(0, space));
    t.value = space == std::string_view::npos ? "" : std::string(trim(tail.substr(space)));
    if (!find_fact_name(t.fact)) {
      std::vector<std::string> names;
      for (const FactName& f : fact_names()) names.emplace_back(f.name);
      auto near = closest(t.fact, names);
      return fail(ErrorKind::malformed, "unknown fact `" + t.fact + "` in a condition", c.text_,
                  near ? "did you mean `" + *near + "`?" : "see data/VOCABULARY.md");
    }
    bool known_op = false;
    for (const auto& op : kOperators) known_op |= op == t.op;
    if (!known_op)
      return fail(ErrorKind::malformed, "unknown operator `" + t.op + "`", c.text_, join(kOperators, " "));
    const bool bare = t.op == "set" || t.op == "unset";
    if (bare != t.value.empty())
      return fail(ErrorKind::malformed, bare ? "`" + t.op + "` takes no value" : "the value is missing",
                  c.text_);
    if (t.op == "matches") {
      t.regex = std::make_shared<re2::RE2>(t.value, re2::RE2::Quiet);
      if (!t.regex->ok()) return fail(ErrorKind::malformed, "regular expression", c.text_, t.regex->error());
    }
    c.any_.push_back(std::move(t));
  }
  return c;
}

Truth FactCondition::judge_term(const Term& t, const Observed& observed, const Observation** by) {
  const bool environment = starts_with(t.fact, "env.");
  const auto* list = observed.all(t.fact);
  if (!list) {
    const bool gone = observed.absent(t.fact) || (environment && observed.environment_known);
    if (!gone) return Truth::unknown;
    return t.op == "unset" || t.op == "!=" ? Truth::yes : Truth::no;
  }
  const FactType type = find_fact_name(t.fact)->type;
  *by = observed.best(t.fact);
  if (t.op == "set") return Truth::yes;
  if (t.op == "unset") return Truth::no;
  if (t.op == "<" || t.op == "<=" || t.op == ">" || t.op == ">=") {
    auto o = order(type, (*by)->value, t.value);
    if (!o) return Truth::unknown;
    const bool yes = t.op == "<" ? *o < 0 : t.op == "<=" ? *o <= 0 : t.op == ">" ? *o > 0 : *o >= 0;
    return yes ? Truth::yes : Truth::no;
  }
  auto fits = [&](const Observation& o) {
    if (t.op == "==" || t.op == "!=") return equal(type, o.value, t.value);
    if (t.op == "contains") return icontains(o.value, t.value);
    if (t.op == "matches") return re2::RE2::PartialMatch(o.value, *t.regex);
    for (std::string_view one : split(t.value, ','))
      if (equal(type, o.value, trim(one))) return true;
    return false;
  };
  // Text facts may have several values (device names): one that fits is enough. Others have one truth.
  bool any = false;
  if (type == FactType::text && !environment) {
    for (const Observation& o : *list)
      if (fits(o)) {
        any = true;
        *by = &o;
        break;
      }
  } else {
    any = fits(**by);
  }
  return any != (t.op == "!=") ? Truth::yes : Truth::no;
}

FactCondition::Verdict FactCondition::judge(const Observed& observed) const {
  Verdict v{Truth::no, nullptr, any_.front().fact};
  for (const Term& t : any_) {
    const Observation* by = nullptr;
    const Truth truth = judge_term(t, observed, &by);
    if (truth == Truth::yes) return {truth, by, t.fact};
    if (truth == Truth::unknown) v = {truth, nullptr, t.fact};
    if (truth == Truth::no && v.truth == Truth::no) v = {truth, by, t.fact};
  }
  return v;
}

bool FactCondition::contested(const Observed& observed) const {
  bool yes = false, no = false;
  for (const Term& t : any_) {
    const auto* list = observed.all(t.fact);
    if (!list) continue;
    for (const Observation& o : *list) {
      if (o.trust == Trust::mentioned) continue;
      Observed alone;
      alone.add(t.fact, o.value, {}, o.trust);
      const Observation* by = nullptr;
      const Truth truth = judge_term(t, alone, &by);
      yes |= truth == Truth::yes;
      no |= truth == Truth::no;
    }
  }
  return yes && no;
}

Truth judge_all(const std::vector<FactCondition>& conditions, const Observed& observed) {
  Truth all = Truth::yes;
  for (const FactCondition& c : conditions) {
    const Truth t = c.judge(observed).truth;
    if (t == Truth::no) return Truth::no;
    if (t == Truth::unknown) all = Truth::unknown;
  }
  return all;
}

}  // namespace ep
