#include "doctor/observed.h"

#include "base/text.h"
#include "base/version.h"
#include "doctor/fact_names.h"

namespace ep {

namespace {

constexpr size_t kKeep = 256;  ///< observations of one fact; more are repetitions of a long log

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

NameAnswer Observed::ask(std::string_view fact) const {
  const bool environment = starts_with(fact, "env.");
  NameAnswer out;
  const auto* list = all(fact);
  if (!list) {
    out.known = absent(fact) || (environment && environment_known);
    return out;
  }
  out.known = out.present = true;
  const FactName* row = find_fact_name(fact);
  out.kind = row ? row->type : ValueKind::text;
  const Observation* one = best(fact);
  if (out.kind != ValueKind::text || environment) {
    out.values = {one->value};
    return out;
  }
  for (const Observation& o : *list) out.values.push_back(o.value);
  out.counts = size_t(one - list->data());
  return out;
}

Result<FactCondition> FactCondition::parse(std::string_view text) {
  auto c = Condition::parse(text);
  if (!c) return Failure(c.error());
  for (const Atom& a : c->any_of) {
    if (a.op == "has" || a.op == "lacks")
      return fail(ErrorKind::malformed, "`" + a.op + "` asks releases, not facts", c->text);
    if (find_fact_name(a.name)) continue;
    std::vector<std::string> names;
    for (const FactName& f : fact_names()) names.emplace_back(f.name);
    auto near = closest(a.name, names);
    return fail(ErrorKind::malformed, "unknown fact `" + a.name + "` in a condition", c->text,
                near ? "did you mean `" + *near + "`?" : "see data/VOCABULARY.md");
  }
  FactCondition out;
  out.condition_ = std::move(*c);
  return out;
}

FactCondition::Verdict FactCondition::judge(const Observed& observed) const {
  const Judged j = condition_.judge(observed);
  const std::string& fact = condition_.any_of[j.atom].name;
  Verdict v{j.truth, nullptr, fact};
  if (j.value < 0) return v;
  const auto* list = observed.all(fact);
  v.by = list->size() == observed.ask(fact).values.size() ? &(*list)[size_t(j.value)] : observed.best(fact);
  return v;
}

bool FactCondition::contested(const Observed& observed) const {
  bool yes = false, no = false;
  for (const Atom& atom : condition_.any_of) {
    const auto* list = observed.all(atom.name);
    if (!list) continue;
    const Condition one{condition_.text, {atom}};
    for (const Observation& o : *list) {
      if (o.trust == Trust::mentioned) continue;
      Observed alone;
      alone.add(atom.name, o.value, {}, o.trust);
      const Truth truth = one.judge(alone).truth;
      yes |= truth == Truth::yes;
      no |= truth == Truth::no;
    }
  }
  return yes && no;
}

Truth judge_all(const std::vector<FactCondition>& conditions, const Observed& observed) {
  std::vector<Truth> truths;
  for (const FactCondition& c : conditions) truths.push_back(c.judge(observed).truth);
  return all_of(truths);
}

}  // namespace ep
