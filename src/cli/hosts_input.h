// Hosts that a command was given: the live one, snapshots, pastes. A paste may hold several.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/facts.h"

namespace ep {

/// `from` empty: the live host. `more`: further hosts or pastes, each with its own name.
Result<std::vector<Facts>> read_hosts(const std::string& from, const std::vector<std::string>& more);

}  // namespace ep
