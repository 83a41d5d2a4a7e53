// epready.lock: the answer of a plan, component by component, so that it can be asked for again.
// Deterministic bytes: the same facts and data give the same lock, whatever of it is installed already. Pure.
// Holds full commits, exact requirements, and every wheel that comes in, dependencies included, with version,
// origin and SHA-256. What cannot be pinned (torch of an index of its own) says so under `unpinned`.
#pragma once
#include <string>
#include <string_view>

#include "plan/planner.h"

namespace ep {

std::string lock_text(const Planned& planned);
/// Ok when the lock says what the plan chose. Errors: drifted, naming each line that differs; malformed, when
/// it is no lock.
Result<> check_lock(std::string_view text, const std::string& file, const Planned& planned);

}  // namespace ep
