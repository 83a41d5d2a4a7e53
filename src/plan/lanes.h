// The ladder of lanes on a host: for each, is it possible, is it installed, is it proven, what does it lack,
// and which lane is the nearest that works. Pure.
#pragma once
#include <string>
#include <vector>

#include "base/finding.h"
#include "plan/planner.h"

namespace ep {

/// A line that a pod's specification lacks for a stack.
struct PodGap {
  std::string at;    ///< place in the specification: spec.containers[0].securityContext
  std::string yaml;  ///< the line to add there
  std::string why;
  Truth truth = Truth::no;  ///< no: lacking; unknown: could not be told
};

struct LaneStatus {
  std::string lane;
  Outcome possible;   ///< warn: with a restriction (inside one node); unknown: a fact is missing
  Outcome installed;  ///< of the best stack; fail names the missing steps
  Outcome proven;  ///< not_run until a verification of this lane is on record (the caller fills it from the
                   ///< history)
  std::string stack, platform;
  std::vector<std::string> missing;  ///< ids of steps
  std::vector<std::string> changes;  ///< not possible: the smallest change that allows it
  std::string nearest;               ///< not possible: the lane that works here
  bool needs_root = false, needs_reboot = false;
  int estimate_s = 0;
  std::vector<PodGap> pod;  ///< in a container
};

std::vector<LaneStatus> judge_lanes(const Facts& facts, const Recipe& recipe, Lang lang,
                                    const PlanOptions& base = {});
std::vector<PodGap> pod_gaps(const Platform* platform, const Scope& scope, Lang lang);

}  // namespace ep
