// What the role steps share. Private to facts/topology_roles*.cpp.
#pragma once
#include <string>
#include <vector>

#include "facts/topology_parts.h"

namespace ep {

using Indices = std::vector<size_t>;

void exclude(TopologyNic& n, const char* role, BothWords reason);
const RdmaDevice* device_of(const Facts& f, const std::string& name);
/// Fills TopologyWork::group: components of NICs that are PIX to each other.
void group_nics(TopologyWork& w);
Indices members(const TopologyWork& w, int group, const Indices& among);
size_t gpus_near(const TopologyWork& w, size_t nic);
/// Not excluded yet, and its distances can be looked up.
Indices candidates(const TopologyWork& w);
/// Role of a NIC that is near to no GPU while others are, and the reason.
std::string far_role(const TopologyWork& w, size_t nic, BothWords& reason);
void choose_without_distances(TopologyWork& w);  ///< no GPU-NIC cell at all
void choose_far(TopologyWork& w, Indices cand);  ///< no NIC shares a switch with a GPU

}  // namespace ep
