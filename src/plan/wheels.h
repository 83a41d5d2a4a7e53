// Inside src/plan only: wheels as requirement files name them, with their hashes; closed sets of them; one
// install for the wheels of many steps. No file is read and no index asked.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "recipe/recipe.h"

namespace ep {

/// "torch" of "torch==2.13.0; python_version < '3.12' --hash=...".
std::string requirement_name(const std::string& requirement);
/// "FILE.whl SHA256" of a release that are of this requirement and machine (x86_64, aarch64).
std::vector<std::string> wheels_for(const Release& release, const std::string& requirement,
                                    const std::string& machine);
/// The requirement, and behind it the hash of each file.
std::string hashed_requirement(const std::string& requirement, const std::vector<std::string>& files);
/// A closed set for this machine without the packages named in `except`.
std::vector<LockedWheel> closed_set(const WheelSet& set, const std::string& machine,
                                    const std::vector<std::string>& except);
/// The same as lines of a requirement file, hashes included.
std::vector<std::string> closed_requirements(const WheelSet& set, const std::string& machine,
                                             const std::vector<std::string>& except);

/// The step `id` installs what later steps bring by hash into the same environment too, in one call: one
/// start of pip, all downloads side by side, one copy of the environment as it was. Those steps stay in the
/// plan and find themselves satisfied. Returns the ids of what came in.
std::vector<std::string> join_installs(Plan& plan, std::string_view id);

}  // namespace ep
