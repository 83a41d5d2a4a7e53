// The report of a host, put together once for `up` and `report`: JSON, one HTML page, and their files.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apply/apply.h"
#include "bench/history.h"
#include "cli/command.h"
#include "facts/facts.h"
#include "plan/lanes.h"
#include "plan/plan.h"
#include "verify/verify.h"

namespace ep {

struct HostReport {
  const Facts* facts;
  std::vector<LaneStatus> lanes;
  const Plan* plan;              ///< null: none
  const ApplyReport* applied;    ///< null: nothing was applied
  const VerifyReport* verified;  ///< null: not verified
  Lang lang;
};

std::string report_json(const HostReport& report);
std::string report_html(const HostReport& report);

struct WrittenReport {
  std::string html, json;  ///< paths
};
/// report.html and report.json in a folder, written beside and renamed.
Result<WrittenReport> write_report(const HostReport& report, const std::string& folder);
/// Whole content to a file: beside, synced, renamed. "-" is stdout.
Result<> write_file(const std::string& path, std::string_view content);

/// UTC now, 2026-11-30T12:00:00Z.
std::string now_utc();
/// Fills `proven` of each lane from the newest run of it in this machine's history; no run: left as it is.
void fill_proven(std::vector<LaneStatus>& lanes, Lang lang);

/// What `verify` is to prove on a host.
struct VerifyLane {
  std::string lane;                        ///< as asked, else the plan's
  std::optional<LaneInstalled> installed;  ///< of lanes v1 and v2
};
/// The lane asked for; without one the lane that a plan is made for. Level 2 then takes the local lane where
/// that one is not installed: its engine needs nothing.
VerifyLane lane_to_verify(const Facts& facts, const Recipe& recipe, const PlanOptions& base,
                          const std::string& asked, int level, const std::string& from_option);
/// Adds a run to the history of this machine; a history that cannot be written is said and is no failure.
void remember(const Context& context, const BenchResult& result);

}  // namespace ep
