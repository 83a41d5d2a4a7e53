// The report of a host as one HTML page: what it is, its picture, lanes, steps, verdicts with evidence,
// bandwidth. Chooses what stands on the page; report/html.cpp draws it.
#pragma once
#include <string>
#include <vector>

#include "apply/apply.h"
#include "facts/facts.h"
#include "plan/plan.h"
#include "report/html.h"
#include "verify/verify.h"

namespace ep {

/// A lane as the page shows it: possible here, or why not and what is nearest.
struct PageLane {
  std::string name;
  Outcome possible, installed, proven;
  std::vector<std::string> lacks;
  std::string nearest;
};

/// Null parts are left out of the page.
struct HostPageInput {
  Lang lang = Lang::en;
  std::string when, version;  ///< UTC time, program version
  const Facts* facts = nullptr;
  std::vector<PageLane> lanes;
  const Plan* plan = nullptr;
  const ApplyReport* applied = nullptr;
  const VerifyReport* verified = nullptr;
  std::string topology_svg;  ///< empty: no GPUs or NICs to draw
  std::vector<Finding> findings;
  std::string json;  ///< the same as data
};

HtmlPage host_page(const HostPageInput& input);

}  // namespace ep
