// The mend of a finding: only what was applied and no longer holds, in the place where it was applied.
#include "plan/mend.h"

#include <gtest/gtest.h>

#include "plan/fact_scope.h"
#include "plan/hosts_for_test.h"
#include "plan/planner.h"

namespace ep {
namespace {

using namespace ep::test;

Plan plan_for(const Facts& facts, PlanOptions options) {
  auto recipe = load_recipe("", condition_names());
  EXPECT_TRUE(recipe);
  auto p = make_plan(facts, *recipe, options);
  EXPECT_TRUE(p) << (p ? "" : p.error().text());
  return p ? p->plan : Plan();
}

Facts hopper() {
  Facts f = h100_infiniband();
  f.driver.version = known<std::string>("580.95.05", "version");
  f.cuda.clear();
  add_cuda(f, "13.1");
  return f;
}

PlanOptions libs(const std::string& prefix) {
  PlanOptions o;
  o.lane = "v2";
  o.consumer = "sglang";
  o.scope = PlanOptions::Scope::libs;
  o.prefix = prefix;
  return o;
}

/// The host after `plan` was applied.
Facts applied(Facts facts, const Plan& plan) {
  for (const auto& s : plan.steps)
    for (const auto& p : s.after) assume(facts, p);
  return facts;
}

PythonPackage& package(Facts& facts, const std::string& root, const std::string& name) {
  for (auto& e : facts.python)
    for (auto& p : e.packages)
      if (e.root == root && p.name == name) return p;
  throw std::runtime_error(name + " is not in " + root);
}

std::vector<std::string> ids(const Plan& p) {
  std::vector<std::string> out;
  for (const auto& s : p.steps) out.push_back(s.id);
  return out;
}

TEST(Mend, ADowngradedWheelIsTheOnlyStep) {
  const Plan plan = plan_for(hopper(), libs("/w"));
  Facts facts = applied(hopper(), plan);
  MendInput in{{"nccl", "nvshmem"}, {plan}, {}};
  EXPECT_TRUE(mend_plan(in, facts, Lang::en).empty()) << "nothing was undone";
  package(facts, "/w/venv", "nvidia-nccl-cu13").version = "2.28.9";
  const Plan mend = mend_plan(in, facts, Lang::en);
  EXPECT_EQ(ids(mend), std::vector<std::string>{"nccl"});
  EXPECT_EQ(mend.prefix, "/w");
  EXPECT_TRUE(mend.steps[0].needs_steps.empty());
  const auto& pip = std::get<PipInstall>(mend.steps[0].actions[0]);
  EXPECT_TRUE(pip.no_deps);
  EXPECT_EQ(pip.venv, "/w/venv");
  // Done, nothing is left to mend.
  package(facts, "/w/venv", "nvidia-nccl-cu13").version = "2.30.7";
  EXPECT_TRUE(mend_plan(in, facts, Lang::en).empty());
}

TEST(Mend, StepsThatNoFindingNamesAreLeftAlone) {
  const Plan plan = plan_for(hopper(), libs("/w"));
  Facts facts = applied(hopper(), plan);
  package(facts, "/w/venv", "nvidia-nccl-cu13").version = "2.28.9";
  EXPECT_TRUE(mend_plan({{"nvshmem"}, {plan}, {}}, facts, Lang::en).empty());
  EXPECT_TRUE(mend_plan({{}, {plan}, {}}, facts, Lang::en).empty());
}

TEST(Mend, AnEnvironmentMadeByHandIsMendedWhereItIs) {
  const Plan plan = plan_for(hopper(), libs("/w"));
  Facts facts = hopper();
  PythonEnvironment e;
  e.root = "/home/me/venv";
  e.interpreter = e.root + "/bin/python3";
  e.is_virtual = true;
  e.packages = {{"sgl-deep-ep", "0.1.2", ""}, {"nvidia-nccl-cu13", "2.29.7", ""}};
  facts.python.push_back(e);
  MendInput in{{"nccl"}, {}, plan};
  const Plan mend = mend_plan(in, facts, Lang::en);
  ASSERT_EQ(ids(mend), std::vector<std::string>{"nccl"});
  EXPECT_EQ(std::get<PipInstall>(mend.steps[0].actions[0]).venv, "/home/me/venv");
  EXPECT_EQ(mend.steps[0].after[0].args[0], "/home/me/venv");
  facts.python.back().is_virtual = false;
  EXPECT_TRUE(mend_plan(in, facts, Lang::en).empty()) << "the system's Python is not ours to change";
  facts.python.back().is_virtual = true;
  facts.python.back().packages[1].name = "nvidia-nccl-cu12";
  EXPECT_TRUE(mend_plan(in, facts, Lang::en).empty()) << "a wheel of another CUDA major is not added beside";
}

TEST(Mend, KernelOptionsBringTheirReboot) {
  PlanOptions o;
  o.lane = "v1";
  const Plan plan = plan_for(gcp_a4_fresh(), o);
  const Plan mend = mend_plan({{"driver-options"}, {}, plan}, gcp_a4_fresh(), Lang::en);
  const auto got = ids(mend);
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got.back(), "reboot");
  EXPECT_NE(std::find(got.begin(), got.end(), "driver-options"), got.end());
  for (const auto& s : mend.steps)
    for (const auto& need : s.needs_steps)
      EXPECT_NE(std::find(got.begin(), got.end(), need), got.end()) << s.id << " needs " << need;
}

TEST(Mend, FollowsThePlanOfThePrefixAndNeverTheLocalLane) {
  Plan local, other, ours;
  local.lane = "local", local.prefix = "/opt/epready";
  other.lane = "v1", other.prefix = "/opt/other";
  ours.lane = "v2", ours.prefix = "/srv/ws";
  const std::vector<Plan> all = {local, other, ours};
  EXPECT_EQ(plan_to_follow(all, "/srv/ws"), &all[2]);
  EXPECT_EQ(plan_to_follow(all, ""), &all[1]);
  EXPECT_EQ(plan_to_follow(all, "/opt/epready"), nullptr);
  EXPECT_EQ(plan_to_follow({local}, ""), nullptr);
}

}  // namespace
}  // namespace ep
