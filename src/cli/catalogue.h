// The catalogue as the commands see it: ours, and beside it a folder of the user's own problems.
#pragma once
#include <string>

#include "cli/command.h"
#include "doctor/problem.h"

namespace ep {

/// Shows every error of the user's folder; a mistake in our own data is our bug. `own_dir` empty: ours only.
Result<Catalogue> open_catalogue(const Context& context, const std::string& own_dir);

}  // namespace ep
