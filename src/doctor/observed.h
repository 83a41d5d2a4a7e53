// Observed: the facts a diagnosis stands on, each with where it was seen; and FactCondition: a condition of a
// problem (recipe/condition.h: grammar and evaluator) over them. Pure; not the host's typed Facts
// (facts/facts.h), which fill it.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/result.h"
#include "recipe/condition.h"

namespace ep {

/// How near to the truth of the run an observation is: the copy that runs beats the copy that is installed.
enum class Trust { mentioned = 1, installed = 2, running = 3 };

struct Observation {
  std::string value;
  Evidence where;
  Trust trust = Trust::installed;
};

class Observed : public Names {
 public:
  void add(std::string_view fact, std::string value, Evidence where, Trust trust = Trust::installed);
  /// Known not to be there (an unset variable on a live host): different from never looked at.
  void add_absent(std::string_view fact);

  /// The most trusted observation, the latest among equals; nullptr when there is none.
  const Observation* best(std::string_view fact) const;
  const std::vector<Observation>* all(std::string_view fact) const;
  bool absent(std::string_view fact) const { return absent_.count(std::string(fact)) != 0; }
  const std::map<std::string, std::vector<Observation>, std::less<>>& table() const { return values_; }
  /// A text fact may have several values (device names); a variable and every other fact has one truth: the
  /// best. Values are those of all(fact), or the best alone.
  NameAnswer ask(std::string_view fact) const override;
  /// On a host every variable that is not set is known to be unset.
  bool environment_known = false;

 private:
  std::map<std::string, std::vector<Observation>, std::less<>> values_;
  std::set<std::string> absent_;
};

class FactCondition {
 public:
  /// Errors say which word is wrong; an unknown fact names the nearest known one.
  static Result<FactCondition> parse(std::string_view text);
  struct Verdict {
    Truth truth = Truth::unknown;
    const Observation* by = nullptr;  ///< what decided it; nullptr when unknown or by absence
    std::string_view fact;            ///< of the alternative that decided, for "observe this"
  };
  Verdict judge(const Observed& observed) const;
  /// More than hearsay says so and more than hearsay says the opposite: two hosts, two copies, two runs.
  bool contested(const Observed& observed) const;
  const std::string& text() const { return condition_.text; }

 private:
  Condition condition_;
};

/// All of them: no if one is no, else unknown if one is unknown, else yes (also when there are none).
Truth judge_all(const std::vector<FactCondition>& conditions, const Observed& observed);

}  // namespace ep
