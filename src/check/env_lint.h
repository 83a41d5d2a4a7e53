// Judges variables that are set against the versions present and the host's topology: unknown, misspelt,
// without effect, contradictory, dangerous. Pure.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "facts/topology.h"
#include "recipe/variables.h"

namespace ep {

struct EnvLintInput {
  std::map<std::string, std::string> environment;  ///< every variable; others than EP's are ignored
  std::string nvshmem, nccl;                  ///< versions; empty = not known, version rules are silent then
  std::string lane;                           ///< v1, v2, or empty: both
  const Topology* topology = nullptr;         ///< nullptr: names and indices are not checked
  std::optional<bool> peer_mapping_override;  ///< of the loaded driver; nothing: not known
  const Facts* facts = nullptr;               ///< interfaces, modules, ports, wheels; nullptr: not checked
};

/// Codes: env-unknown, env-misspelt, env-version, env-no-effect, env-overwritten, env-value,
/// env-contradiction, env-danger. Worst first; a clean environment gives nothing.
/// What the loaded driver's parameters say about PeerMappingOverride.
std::optional<bool> peer_mapping_override(const Facts& facts);
std::vector<Finding> lint_environment(const EnvLintInput& input, const Variables& variables);

}  // namespace ep
