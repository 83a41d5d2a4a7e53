// Exact assignment of GPUs to NICs: least total distance, then even use of cards, then of NICs, then lowest
// rail order. Knows numbers only.
#pragma once
#include <vector>

namespace ep {

struct AssignProblem {
  std::vector<std::vector<int>> cost;  ///< [gpu][nic], smaller is nearer; -1 not allowed. Order = rail order
  std::vector<int> card;               ///< of each NIC; equal numbers are one card
  int max_gpus_per_nic = 1;
};

/// NIC of each GPU, -1 where none is left under the constraint. As many GPUs as possible are served.
/// Deterministic. Successive shortest paths with convex arcs for cards and NICs: exact; 32 GPUs x 64 NICs
/// take well under 5 ms.
std::vector<int> assign_nics(const AssignProblem& problem);

/// The smallest max_gpus_per_nic that serves every GPU; 0 when some GPU has no allowed NIC at all.
int least_sharing(const AssignProblem& problem);

}  // namespace ep
