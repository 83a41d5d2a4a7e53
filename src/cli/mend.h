// `doctor --fix`: from findings to the plan that mends them.
#pragma once
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "doctor/judge.h"
#include "doctor/problem.h"
#include "facts/facts.h"
#include "plan/plan.h"

namespace ep {

/// Steps that the findings' problems name (`[[fix]] steps`), from the plans applied on this host, else from
/// one made now. Empty plan: nothing of the mend is a step. Errors: the built-in data cannot be read.
Result<Plan> plan_mend(const Context& c, const Catalogue& catalogue, const Diagnosis& diagnosis,
                       const Host& host, const Facts& facts, const std::string& prefix);

/// The first Python environment that holds DeepEP; nullptr: none.
const PythonEnvironment* environment_of_deepep(const Facts& facts);
/// Absolute form of --prefix; empty stays empty.
std::string absolute_prefix(const std::string& given);

}  // namespace ep
