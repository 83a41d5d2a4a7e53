// Traffic of the NICs between two samples: a bar each, where it was read, errors that grew, whether it was
// even.
#pragma once
#include <string>
#include <vector>

#include "facts/counters.h"
#include "report/look.h"

namespace ep {

std::string traffic_text(const std::vector<NicTraffic>& traffic, const Evenness& evenness, double seconds,
                         const Look& look);
/// `drift`: findings about the GID tables between the first and the last sample.
std::string traffic_json(const std::vector<NicTraffic>& traffic, const Evenness& evenness, double seconds,
                         const std::vector<Finding>& drift = {});

}  // namespace ep
