// Traffic of the NICs between two samples: a bar each, errors that grew, and whether it was even.
#pragma once
#include <string>
#include <vector>

#include "facts/counters.h"
#include "report/look.h"

namespace ep {

std::string traffic_text(const std::vector<NicTraffic>& traffic, const Evenness& evenness, double seconds,
                         const Look& look);
std::string traffic_json(const std::vector<NicTraffic>& traffic, const Evenness& evenness, double seconds);

}  // namespace ep
