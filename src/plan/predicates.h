// The table of conditions that steps use before and after: pure functions of facts. Pass says what satisfies
// it, fail what is missing, unknown what could not be read; unknown is never taken as satisfied.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/text.h"
#include "facts/facts.h"
#include "plan/plan.h"

namespace ep {

struct PredicateRow {
  std::string_view name;
  std::string_view args;  ///< names of the arguments; "..." takes any number
  Text what;
  Outcome (*holds)(const Facts&, const std::vector<std::string>& args, Lang lang);
};
const std::vector<PredicateRow>& predicate_rows();

/// Unknown for a name that the table lacks: a plan of another version must not be taken as satisfied.
Outcome holds(const Predicate& predicate, const Facts& facts, Lang lang = Lang::en);
/// All of them: pass when every one passes; else the worst, with its reason.
Outcome all_hold(const std::vector<Predicate>& predicates, const Facts& facts, Lang lang = Lang::en);
/// "name(arg, arg)", for logs and explain.
std::string to_string(const Predicate& predicate);

/// Keys and numbers of a RegistryDwords value, as the driver splits it: "A=1;B=0x2".
std::vector<std::pair<std::string, std::string>> split_registry_dwords(std::string_view value);
/// `pending` with our keys set: others kept, in order. What a modprobe line must say so that nothing is lost.
std::string merge_registry_dwords(std::string_view pending, std::string_view key, std::string_view value);

}  // namespace ep
