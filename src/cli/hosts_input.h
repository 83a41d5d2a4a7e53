// Hosts that a command was given: the live one, snapshots, pastes. A paste may hold several.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/facts.h"

namespace ep {

/// What makes a part of a paste a host: parts without it are left out by name, and a source that has no other
/// is an error.
struct Wanted {
  bool (*test)(const Facts&) = nullptr;
  std::vector<std::string>* left_out = nullptr;
};

/// `from` empty: the live host. `more`: further hosts or pastes, each with its own name.
Result<std::vector<Facts>> read_hosts(const std::string& from, const std::vector<std::string>& more,
                                      const Wanted& wanted = {});

}  // namespace ep
