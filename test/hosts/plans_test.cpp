// What the program plans for the hosts that travel in it: the promises of the first screen.
#include <algorithm>
#include <set>

#include "facts/facts.h"
#include "host/host.h"
#include "plan/fact_scope.h"
#include "plan/lanes.h"
#include "plan/planner.h"

namespace ep {
namespace {

const Recipe& recipe() {
  static const Recipe r = *load_recipe("", condition_names());
  return r;
}

Facts facts_of(const std::string& sample) {
  auto host = snapshot_host("sample/" + sample);
  EXPECT_TRUE(host) << sample;
  return host ? read_facts(**host) : Facts{};
}

Plan plan_of(const std::string& sample) {
  auto p = make_plan(facts_of(sample), recipe(), {});
  EXPECT_TRUE(p) << sample << ": " << p.error().text();
  return p ? p->plan : Plan{};
}

std::set<std::string> ids(const Plan& p) {
  std::set<std::string> out;
  for (const auto& s : p.steps) out.insert(s.id);
  return out;
}

TEST(SamplePlans, FreshA4ShowsTheRunbooksPhases) {
  const Plan p = plan_of("gcp-a4-fresh");
  EXPECT_EQ(p.stack, "v1-gcp-b200");
  std::set<std::string> phases;
  for (const auto& s : p.steps) {
    phases.insert(s.runbook_phase);
    EXPECT_FALSE(s.why.empty()) << s.id;
  }
  for (const auto& s : p.skipped) phases.insert(s.runbook_phase);
  for (const char* phase : {"Phase 1", "Phase 2", "Phase 3", "Phase 3, 4", "Phase 5", "Phase 6", "Phase 7",
                            "Phase 8", "Phase 9", "Phase 10"})
    EXPECT_TRUE(phases.count(phase)) << phase;
}

TEST(SamplePlans, FinishedA4HasNothingToDo) {
  const Plan p = plan_of("gcp-a4-done");
  EXPECT_EQ(p.stack, "v1-gcp-b200");
  EXPECT_EQ(ids(p), std::set<std::string>{}) << p.steps.front().why;
  for (const auto& lane : judge_lanes(facts_of("gcp-a4-done"), recipe(), Lang::en))
    if (lane.lane == "v1") {
      EXPECT_EQ(lane.installed.verdict, Verdict::pass) << lane.installed.reason;
    }
}

TEST(SamplePlans, PodLeavesTheNodeAloneAndKnowsItsGaps) {
  const Plan p = plan_of("gke-a4-pod");
  EXPECT_EQ(p.stack, "v1-gke-b200");
  for (const auto& s : p.steps) EXPECT_TRUE(s.risk != Risk::kernel_options && s.risk != Risk::reboot) << s.id;
}

TEST(SamplePlans, InfiniBandNodeAndLaptop) {
  EXPECT_EQ(plan_of("h100-ib").lane, "v2");
  EXPECT_FALSE(ids(plan_of("h100-ib")).count("doca-ofed"));
  const Plan laptop = plan_of("laptop");
  EXPECT_EQ(laptop.lane, "local");
  EXPECT_EQ(ids(laptop), std::set<std::string>{"env"});
}

}  // namespace
}  // namespace ep
