// Which versions go together on these facts for this consumer: the rules of data/components applied to a
// stack's parts. Answers a working set with the reason for every version, or why there is none and the
// smallest change that allows one. Pure.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "recipe/recipe.h"

namespace ep {

/// What the user asked for with --with NAME=VALUE, sorted out.
struct Wishes {
  std::map<std::string, std::string> versions;  ///< component -> release
  std::map<std::string, std::string> options;   ///< option -> value
  std::map<std::string, std::string> commits;   ///< component -> full commit (deepep-commit=...)
  std::map<std::string, std::string>
      keys;  ///< component -> fingerprint of its repository's key (doca-ofed-key=...)
  std::map<std::string, std::string> hashes;  ///< component -> SHA-256 of its archive (nvshmem-sha256=...)
};
/// Errors: usage, naming the nearest component, release or option.
Result<Wishes> parse_wishes(const std::vector<std::string>& with, const Recipe& recipe, const Stack* stack);
/// Options a stack may carry, with their meaning: the list that --with and the linter know.
struct OptionRow {
  std::string_view name, values;
  Text what;
};
const std::vector<OptionRow>& option_rows();

struct Choice {
  std::string component, version;
  const Release* release = nullptr;
  std::string why;
};

/// A rule that does not hold, or cannot be judged, with the facts and versions that say so.
struct Objection {
  std::string rule, text, change, evidence, source;
  Truth truth = Truth::no;  ///< no: broken; unknown: could not be judged
};

struct SolveInput {
  const Recipe* recipe = nullptr;
  const Stack* stack = nullptr;
  std::string consumer, platform;
  Scope facts;
  Wishes wishes;
  std::map<std::string, std::vector<std::string>>
      only;  ///< component -> releases that are there already and must be used
  std::map<std::string, std::vector<std::string>>
      installed;  ///< component -> releases that are there and are preferred to others
  Lang lang = Lang::en;
};

struct Solution {
  bool found = false;
  std::vector<Choice> choices;      ///< in the stack's order
  std::vector<Objection> warnings;  ///< rules of severity warn that do not hold
  std::vector<Objection> unknown;   ///< forbidding rules that could not be judged
  std::vector<Objection> refusals;  ///< not found: what stands against it
  std::vector<std::string>
      changes;  ///< not found: the smallest change that allows a set, all of these together
  Scope scope;  ///< facts, options and chosen versions, as the rules saw them
  std::string option(std::string_view name) const;
  const Choice* choice(std::string_view component) const;
};

Solution solve(const SolveInput& input);

/// "9.0;10.3" or "90,103" -> {"90", "103"}.
std::vector<std::string> split_arch_list(std::string_view text);

}  // namespace ep
