// epready.lock: the answer of a plan, component by component, so that it can be asked for again.
// Deterministic bytes: the same facts and data give the same lock. Pure. Holds full commits and exact
// requirements, and the wheels with their SHA-256 where the data know them.
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
