// The ladder of lanes for people and for machines. Decides nothing.
#pragma once
#include <string>
#include <vector>

#include "plan/lanes.h"
#include "report/look.h"

namespace ep {

std::string lanes_text(const std::vector<LaneStatus>& lanes, const Look& look);
std::string lanes_json(const std::vector<LaneStatus>& lanes, const std::string& host_name);
/// The lines that a pod lacks, grouped by their place in the specification.
std::string pod_text(const std::vector<PodGap>& gaps, const Look& look);

}  // namespace ep
