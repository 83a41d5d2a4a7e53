// The report of a host as one HTML page: what it is, its picture, lanes, steps, verdicts with evidence,
// bandwidth. Chooses what stands on the page; report/html.cpp draws it.
#pragma once
#include <string>
#include <vector>

#include "apply/apply.h"
#include "facts/facts.h"
#include "plan/lanes.h"
#include "plan/plan.h"
#include "report/html.h"
#include "report/look.h"
#include "verify/verify.h"

namespace ep {

/// Null parts are left out of the page.
struct HostPageInput {
  Lang lang = Lang::en;
  std::string when, version;  ///< UTC time, program version
  const Facts* facts = nullptr;
  std::vector<LaneStatus> lanes;
  const Plan* plan = nullptr;
  const ApplyReport* applied = nullptr;
  const VerifyReport* verified = nullptr;
  std::string topology_svg;  ///< empty: no GPUs or NICs to draw
  std::vector<Finding> findings;
  std::string json;  ///< the same as data
};

HtmlPage host_page(const HostPageInput& input);
/// What a host is in a handful of labelled lines, for `up` and `report`.
std::vector<std::pair<std::string, std::string>> host_lines(const Facts& facts, Lang lang);
std::string host_text(const Facts& facts, const Look& look);

}  // namespace ep
