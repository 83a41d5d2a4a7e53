// Topology as JSON, by the contract of `topology --json` (docs/commands/topology.md). Decides nothing.
#pragma once
#include <string>
#include <vector>

#include "facts/topology.h"

namespace ep {

/// One host, or the first of several with the others under "hosts"; `shared` are findings between hosts,
/// which stand among the first host's. The verdict is the worst of all.
std::string topology_json(const std::vector<Topology>& hosts, const std::vector<Finding>& shared);

}  // namespace ep
