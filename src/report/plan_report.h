// A plan, its versions and refusals for people and for machines. Decides nothing.
#pragma once
#include <string>

#include "plan/lanes.h"
#include "plan/planner.h"
#include "report/look.h"

namespace ep {

/// Marks + ~ - and the restart sign, one reason a step, what is skipped and why, notes, one line of counts.
std::string plan_text(const Plan& plan, const Look& look);
/// Chosen versions with the reason for each.
std::string versions_text(const Solution& solution, const Look& look);
/// {schema: epready-plan-report-1, has_changes, versions[], plan{}, pod[] {at, yaml, why, known}}; plan is
/// what -o writes, pod what this pod's specification lacks.
std::string plan_report_json(const Planned& planned, const std::vector<PodGap>& pod = {});
/// "12 to add, 1 to change, 0 to remove, 1 reboot"
std::string plan_counts(const Plan& plan, const Look& look);

}  // namespace ep
