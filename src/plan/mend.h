// Which steps mend what is wrong: of the plan that was applied here, those that no longer hold; else of a
// plan made anew; else the same act in an environment that somebody else made. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "facts/facts.h"
#include "plan/plan.h"

namespace ep {

struct MendInput {
  std::vector<std::string> ids;  ///< steps that the findings name, in order
  std::vector<Plan> applied;     ///< plans that were applied on this host
  std::optional<Plan> fresh;     ///< made from the facts of now; absent: none is possible here
};

/// The applied plan whose wishes a mend keeps: of this prefix when one is given, and never the local lane's,
/// which installs nothing. Null: none.
const Plan* plan_to_follow(const std::vector<Plan>& applied, const std::string& prefix);

/// A plan with the named steps that do not hold now (`after` is judged), what they need first, and the reboot
/// that makes kernel options live. Empty when nothing of it is to be done by steps.
Plan mend_plan(const MendInput& input, const Facts& facts, Lang lang);

}  // namespace ep
