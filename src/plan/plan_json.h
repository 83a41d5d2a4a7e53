// A plan as JSON text and back: `plan -o FILE` writes it, `apply FILE` reads it, and the journal keeps it.
// Deterministic: the same plan gives the same bytes (keys sorted, two-space indent, final newline). Reading
// is strict: an unknown action, key or schema is an error, because what is not understood must not be
// applied.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/plan.h"

namespace ep {

std::string plan_to_json(const Plan& plan);
/// Errors: malformed, with the place inside the document ("steps[2].actions[0].argv") and what was expected.
Result<Plan> plan_from_json(std::string_view text);

/// The word that names an action's type in JSON and in talk: "run", "write-file", "install-packages" ...
std::string_view action_kind(const Action& action);
std::string_view to_string(Mark mark);  ///< add change remove restart
std::string_view to_string(Risk risk);  ///< user_files packages kernel_options reboot

}  // namespace ep
