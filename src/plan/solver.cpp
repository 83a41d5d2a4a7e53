#include "plan/solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/words.h"

namespace ep {
namespace {

struct Variable {
  const Component* component;
  std::vector<const Release*> domain;  // best first
};
struct Armed {
  const Rule* rule;
  int level;  // number of variables that must be assigned before it can be judged
};

class Search {
 public:
  explicit Search(const SolveInput& in) : in_(in) {
    base_ = in.facts;
    const auto put = [&](const std::string& name, const std::string& text) {
      base_[name] = {true, !text.empty(), text, "", {}};
    };
    put("lane", in.stack->lane);
    put("consumer", in.consumer);
    put("platform", in.platform);
    put("stack", in.stack->id);
    for (const auto& row : option_rows()) put("option." + std::string(row.name), "");
    for (const auto& [name, value] : in.stack->options) put("option." + name, value);
    for (const auto& [name, value] : in.wishes.options) put("option." + name, value);
    Named arch{true, true, base_["option.arch"].text, "", split_arch_list(base_["option.arch"].text)};
    base_["build.arch"] = arch;
    for (const auto& c : in.recipe->components) put(c.id, "");  // not part of this stack: absent
    put("torch.nvshmem", "");
    put("torch.nccl", "");
    make_variables();
    arm_rules();
    free_unruled();
  }

  bool run(const std::set<std::string>& ignored) {
    ignored_ = &ignored;
    scope_ = base_;
    assigned_.assign(variables_.size(), nullptr);
    return rules_hold(0) && descend(0);
  }

  const SolveInput& in_;
  Scope base_, scope_;
  std::vector<Variable> variables_;
  std::vector<Armed> rules_;
  std::vector<const Release*> assigned_;
  const std::set<std::string>* ignored_ = nullptr;
  std::map<std::string, Objection> broken_;  // every forbidding rule that broke, first evidence

  Objection object(const Rule& rule, const Scope& scope, Truth truth) const {
    std::vector<std::string> evidence;
    for (const auto* list : {&rule.need, &rule.when})
      for (const auto& c : *list) {
        if (list == &rule.when && c.holds(scope) == Truth::unknown && truth == Truth::no) continue;
        std::string text = c.evidence(scope);
        if (!text.empty() && std::find(evidence.begin(), evidence.end(), text) == evidence.end())
          evidence.push_back(std::move(text));
      }
    std::string source;
    if (!rule.sources.empty()) source = rule.sources[0].url + " (" + rule.sources[0].date + ")";
    return {
        rule.id, rule.text.in(in_.lang), rule.change.in(in_.lang), join(evidence, ", "), std::move(source),
        truth};
  }

  /// First forbidding rule that breaks when `variable` takes `release` and all others stay as they are.
  const Rule* why_not(size_t variable, const Release* release) const {
    Scope scope = scope_;
    std::vector<const Release*> trial = assigned_;
    trial[variable] = release;
    set_names(scope, trial);
    for (const auto& armed : rules_)
      if (armed.rule->forbids && judge(*armed.rule, scope) == Truth::no) return armed.rule;
    return nullptr;
  }

  Scope first_choice() const {
    Scope scope = base_;
    std::vector<const Release*> firsts;
    for (const auto& v : variables_) firsts.push_back(v.domain.front());
    set_names(scope, firsts);
    return scope;
  }
  std::vector<const Rule*> broken_at_first_choice() const {
    const Scope scope = first_choice();
    std::vector<const Rule*> out;
    for (const auto& armed : rules_)
      if (armed.rule->forbids && judge(*armed.rule, scope) == Truth::no) out.push_back(armed.rule);
    return out;
  }
  Objection object_at_first_choice(const Rule& rule) const { return object(rule, first_choice(), Truth::no); }

  Truth judge(const Rule& rule, const Scope& scope) const {
    const Truth when = all_hold(rule.when, scope);
    if (when == Truth::no) return Truth::yes;
    const Truth need = all_hold(rule.need, scope);
    if (need == Truth::yes) return Truth::yes;
    return when == Truth::yes && need == Truth::no ? Truth::no : Truth::unknown;
  }

 private:
  /// DeepEP's generation decides most of the rest, so it is tried first: a wrong one fails at once.
  void make_variables() {
    const auto& parts = in_.stack->parts;
    if (std::find(parts.begin(), parts.end(), "deepep") != parts.end()) add_variable("deepep");
    for (const auto& part : parts)
      if (part != "deepep") add_variable(part);
    if (in_.wishes.versions.count(in_.consumer)) add_variable(in_.consumer);
  }
  /// A variable that no rule names has nothing to fail on: its first value is the answer.
  void free_unruled() {
    for (auto& v : variables_) {
      const bool ruled = std::any_of(rules_.begin(), rules_.end(), [&](const Armed& armed) {
        for (const auto* list : {&armed.rule->when, &armed.rule->need})
          for (const auto& name : names_in(*list))
            if (name == v.component->id ||
                (starts_with(name, "torch.") && (v.component->id == "torch" || v.component->id == "cuda")))
              return true;
        return false;
      });
      if (!ruled) v.domain.resize(1);
    }
  }
  void add_variable(const std::string& part) {
    const Component* c = in_.recipe->component(part);
    if (!c || c->releases.empty()) return;
    Variable v{c, {}};
    const auto add = [&](const Release* r) {
      if (r && std::find(v.domain.begin(), v.domain.end(), r) == v.domain.end()) v.domain.push_back(r);
    };
    if (const auto wish = in_.wishes.versions.find(part); wish != in_.wishes.versions.end()) {
      add(c->release(wish->second));
    } else if (const auto only = in_.only.find(part); only != in_.only.end()) {
      for (const auto& version : only->second) add(c->release(version));
    } else {
      if (const auto pin = in_.stack->pins.find(part); pin != in_.stack->pins.end())
        add(c->release(pin->second));
      if (const auto have = in_.installed.find(part); have != in_.installed.end())
        for (const auto& version : have->second) add(c->release(version));
      for (const auto& r : c->releases) add(&r);
    }
    if (!v.domain.empty()) variables_.push_back(std::move(v));
  }
  int level_of(const std::string& name) const {
    int level = 0;
    for (size_t i = 0; i < variables_.size(); ++i) {
      const std::string& id = variables_[i].component->id;
      const bool derived = starts_with(name, "torch.") && (id == "torch" || id == "cuda");
      if (id == name || derived) level = std::max(level, int(i) + 1);
    }
    return level;
  }
  /// Rules whose `when` is false for facts and options alone never apply: they are left out.
  void arm_rules() {
    for (const auto& c : in_.recipe->components)
      for (const auto& rule : c.rules) {
        int level = 0;
        bool applies = true;
        for (const auto& condition : rule.when) {
          int own = 0;
          for (const auto& name : names_in({condition})) own = std::max(own, level_of(name));
          if (own == 0 && condition.holds(base_) == Truth::no) applies = false;
          level = std::max(level, own);
        }
        for (const auto& name : names_in(rule.need)) level = std::max(level, level_of(name));
        if (applies) rules_.push_back({&rule, level});
      }
  }
  void set_names(Scope& scope, const std::vector<const Release*>& values) const {
    for (size_t i = 0; i < variables_.size(); ++i)
      if (values[i])
        scope[variables_[i].component->id] = {true, true, values[i]->version, "", values[i]->traits};
    const auto torch = in_.recipe->component("torch");
    const auto chosen = scope.find("torch");
    if (!torch || chosen == scope.end() || !chosen->second.present) return;
    const Release* r = torch->release(chosen->second.text);
    if (!r) return;
    if (const auto pin = r->pins.find("nvshmem"); pin != r->pins.end())
      scope["torch.nvshmem"] = {true, true, pin->second, "", {}};
    const auto nccl = r->pins.find(fill_in("nccl@{cuda.major}", scope));
    scope["torch.nccl"] =
        nccl != r->pins.end() ? Named{true, true, nccl->second, "", {}} : Named{true, false, "", "", {}};
  }
  bool rules_hold(int level) {
    for (const auto& armed : rules_) {
      if (armed.level != level || !armed.rule->forbids || ignored_->count(armed.rule->id)) continue;
      if (judge(*armed.rule, scope_) != Truth::no) continue;
      broken_.emplace(armed.rule->id, object(*armed.rule, scope_, Truth::no));
      return false;
    }
    return true;
  }
  bool descend(size_t i) {
    if (i == variables_.size()) return true;
    const Scope before = scope_;
    for (const Release* r : variables_[i].domain) {
      assigned_[i] = r;
      set_names(scope_, assigned_);
      if (rules_hold(int(i) + 1) && descend(i + 1)) return true;
      scope_ = before;
    }
    assigned_[i] = nullptr;
    return false;
  }
};

std::string reason(const Search& s, size_t i) {
  const SolveInput& in = s.in_;
  const Words w{in.lang};
  const Variable& v = s.variables_[i];
  const Release* chosen = s.assigned_[i];
  if (in.wishes.versions.count(v.component->id)) return w("asked for with --with", "由 --with 指定");
  if (in.only.count(v.component->id))
    return w("is there already and not ours to change", "已存在且不由我们更改");
  std::string text;
  const auto pin = in.stack->pins.find(v.component->id);
  if (pin != in.stack->pins.end() && pin->second == chosen->version)
    text = w("pinned by stack {} ({})", "由组合 {} 固定（{}）", in.stack->id,
             chosen->sources.empty() ? "" : chosen->sources[0].says);
  for (const Release* earlier : v.domain) {
    if (earlier == chosen) break;
    const Rule* rule = s.why_not(i, earlier);
    if (!text.empty()) text += "; ";
    text += rule ? w("{} is out: {} [{}]", "{} 不可用：{} [{}]", earlier->version, rule->text.in(in.lang),
                     rule->id)
                 : w("{} does not fit the other choices", "{} 与其他选择不相容", earlier->version);
  }
  if (text.empty()) text = w("first of the list that all rules allow", "列表中第一个满足所有规则的版本");
  return text;
}

/// Rules that a change of the host can mend: they name a fact. Rules among versions alone are never waived.
bool names_a_fact(const Rule& rule, const Scope& facts) {
  for (const auto* list : {&rule.need, &rule.when})
    for (const auto& name : names_in(*list))
      if (facts.count(name) && !starts_with(name, "option.")) return true;
  return false;
}

/// The smallest set of things that, given up, leaves a working set: a wish, else host rules, fewest first.
void find_changes(Search& search, Solution& out) {
  const Words w{search.in_.lang};
  for (const auto* kind : {&search.in_.wishes.versions, &search.in_.wishes.options})
    for (const auto& [name, value] : *kind) {
      SolveInput without = search.in_;
      without.wishes.versions.erase(name);
      without.wishes.options.erase(name);
      if (Search(without).run({})) {
        out.changes = {w("drop --with {}={}", "去掉 --with {}={}", name, value)};
        return;
      }
    }
  std::vector<std::string> rules;
  std::set<std::string> all;
  const auto collect = [&] {
    rules.clear();
    for (const auto& armed : search.rules_)
      if (search.broken_.count(armed.rule->id) && names_a_fact(*armed.rule, search.in_.facts))
        rules.push_back(armed.rule->id);
    return rules.size();
  };
  // Waiving what broke lets later rules break: go on until a set works, so that all candidates are known.
  while (!search.run(all)) {
    const size_t before = all.size();
    collect();
    all.insert(rules.begin(), rules.end());
    if (all.size() == before) return;
  }
  const auto answer = [&](const std::set<std::string>& waived) {
    for (const auto& id : waived) out.changes.push_back(search.broken_.at(id).change);
    // What another version would avoid is no obstacle: only what stands in every way is told.
    const auto needed = [&](const Objection& o) { return waived.count(o.rule) > 0; };
    if (std::any_of(out.refusals.begin(), out.refusals.end(), needed))
      std::erase_if(out.refusals, [&](const Objection& o) { return !needed(o); });
  };
  for (const auto& id : all)
    if (search.run({id})) return answer({id});
  for (const auto& a : all)
    for (const auto& b : all)
      if (a < b && search.run({a, b})) return answer({a, b});
  // More than two: drop from the whole what is not needed.
  std::set<std::string> least = all;
  for (const auto& id : all) {
    std::set<std::string> fewer = least;
    fewer.erase(id);
    if (search.run(fewer)) least = std::move(fewer);
  }
  answer(least);
}

}  // namespace

std::string Solution::option(std::string_view name) const {
  const auto it = scope.find("option." + std::string(name));
  return it == scope.end() ? std::string() : it->second.text;
}

const Choice* Solution::choice(std::string_view component) const {
  for (const auto& c : choices)
    if (c.component == component) return &c;
  return nullptr;
}

Solution solve(const SolveInput& input) {
  Search search(input);
  Solution out;
  out.found = search.run({});
  out.scope = search.scope_;
  if (!out.found) {
    // Told against the set that the stack itself names: what people expected to get.
    for (const Rule* rule : search.broken_at_first_choice())
      out.refusals.push_back(search.object_at_first_choice(*rule));
    if (out.refusals.empty())
      for (const auto& [id, objection] : search.broken_) out.refusals.push_back(objection);
    find_changes(search, out);
    return out;
  }
  std::vector<size_t> order(search.variables_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto rank = [&](size_t i) {
    const auto& parts = input.stack->parts;
    return std::find(parts.begin(), parts.end(), search.variables_[i].component->id) - parts.begin();
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  for (size_t i : order)
    out.choices.push_back({search.variables_[i].component->id, search.assigned_[i]->version,
                           search.assigned_[i], reason(search, i)});
  for (const auto& armed : search.rules_) {
    const Truth t = search.judge(*armed.rule, search.scope_);
    if (t == Truth::no && !armed.rule->forbids)
      out.warnings.push_back(search.object(*armed.rule, search.scope_, t));
    if (t == Truth::unknown && armed.rule->forbids)
      out.unknown.push_back(search.object(*armed.rule, search.scope_, t));
  }
  return out;
}

}  // namespace ep
