// Facts of a host under the names that data/ uses in conditions (data/VOCABULARY.md, "Facts"): one table, so
// that what a rule can ask is what a reader can look up. Pure. Unknown stays unknown.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "facts/facts.h"
#include "recipe/condition.h"

namespace ep {

struct FactRow {
  std::string_view name;
  Text what;
  Named (*value)(const Facts&);
};
const std::vector<FactRow>& fact_rows();

/// Every row's value.
Scope fact_scope(const Facts& facts);
/// All names a condition may use besides components: facts, and what the solver itself defines.
std::vector<std::string> condition_names();
/// The compute NICs' driver, names and layer are those of the majority of the fastest devices (management
/// NICs do not count).
std::vector<const RdmaDevice*> compute_nics(const Facts& facts);

}  // namespace ep
