// Which stack a plan is made of, and what is said where none works: old drivers, EFA, GPUs without NVLink,
// hosts that the facts show in part.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/fact_scope.h"
#include "plan/hosts_for_test.h"
#include "plan/lanes.h"
#include "plan/planner.h"
#include "plan/predicates.h"

namespace ep {
namespace {

using namespace ep::test;

const Recipe& recipe() {
  static const Recipe r = [] {
    auto loaded = load_recipe("", condition_names());
    if (!loaded) throw std::runtime_error(loaded.error().text());
    return *loaded;
  }();
  return r;
}
const Step* step(const Plan& plan, std::string_view id) {
  for (const auto& s : plan.steps)
    if (s.id == id) return &s;
  return nullptr;
}
const Finding* note(const Plan& plan, std::string_view code) {
  for (const auto& n : plan.notes)
    if (n.code == code) return &n;
  return nullptr;
}

TEST(Choose, AnOldDriverGetsTheBestLaneWithTheDriverStep) {
  Facts f = h100_infiniband();
  f.driver.version = known<std::string>("470.256.02", "x");
  const auto p = make_plan(f, recipe(), {});
  ASSERT_TRUE(p) << p.error().text();
  EXPECT_EQ(p->plan.lane, "v2");
  EXPECT_NE(step(p->plan, "driver"), nullptr);
  EXPECT_NE(step(p->plan, "reboot"), nullptr);
  ASSERT_NE(note(p->plan, "driver-upgrade"), nullptr);
  EXPECT_NE(note(p->plan, "driver-upgrade")->title.find("470.256.02"), std::string::npos);
  // As the stack is pinned: nothing is moved for the driver that goes away.
  EXPECT_EQ(p->solution.choice("cuda")->version, recipe().stack(p->plan.stack)->pins.at("cuda"));
  // In a container the driver is not ours: the lane is refused, with the reason.
  f.container.runtime = known<std::string>("docker", "x");
  const auto inside = make_plan(f, recipe(), {});
  ASSERT_FALSE(inside);
  EXPECT_NE(inside.error().text().find("driver"), std::string::npos);
}

TEST(Choose, ATestedSetThatNeedsANewerDriverIsOffered) {
  Facts f = h100_infiniband();
  f.driver.version = known<std::string>("570.172.08", "x");
  f.driver.open_kernel_module = known(true, "x");
  const auto as_is = make_plan(f, recipe(), {});
  ASSERT_TRUE(as_is);
  EXPECT_EQ(step(as_is->plan, "driver"), nullptr) << "a driver that serves is left alone";
  ASSERT_NE(note(as_is->plan, "stack-untested"), nullptr);
  PlanOptions o;
  o.with = {"driver=580"};
  const auto newer = make_plan(f, recipe(), o);
  ASSERT_TRUE(newer) << newer.error().text();
  ASSERT_NE(step(newer->plan, "driver"), nullptr);
  EXPECT_EQ(newer->solution.choice("cuda")->version, "13.1");
  EXPECT_EQ(note(newer->plan, "stack-untested"), nullptr);
  // What the driver step promises is what the reboot proves.
  const auto& after = step(newer->plan, "reboot")->after;
  EXPECT_TRUE(std::any_of(after.begin(), after.end(), [](const Predicate& x) {
    return x.name == "driver-at-least" && x.args[0] == "580.65.06";
  }));
}

TEST(Choose, EfaStopsWithWhatWorksThere) {
  const auto p = make_plan(aws_b200_efa(), recipe(), {});
  ASSERT_FALSE(p) << p->plan.stack;
  EXPECT_EQ(p.error().kind, ErrorKind::unsupported);
  for (const char* word : {"amazon-contributing", "--lane v2 --with nodes=1", "--lane local"})
    EXPECT_NE(p.error().text().find(word), std::string::npos) << p.error().text();
  EXPECT_EQ(p.error().text().find("epready driver"), std::string::npos);
  PlanOptions o;
  o.lane = "v2";
  o.with = {"nodes=1"};
  const auto one = make_plan(aws_b200_efa(), recipe(), o);
  ASSERT_TRUE(one) << one.error().text();
  EXPECT_EQ(step(one->plan, "driver-options"), nullptr);
  EXPECT_EQ(step(one->plan, "reboot"), nullptr);
  // Every command speaks of the lane that was refused, not of one that was never planned.
  EXPECT_EQ(lane_of(aws_b200_efa(), recipe(), {}), "v2");
  // `driver` there: nothing to set.
  PlanOptions d;
  d.lane = "v2";
  d.scope = PlanOptions::Scope::driver;
  const auto options = make_plan(aws_b200_efa(), recipe(), d);
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->plan.empty());
}

TEST(Choose, AmpereIsPlannedInsideOneNodeWithoutNvshmem) {
  Facts f = a100_roce();
  for (auto& g : f.gpus) g.nvlinks_up = known(12, "nvidia-smi nvlink -s");
  const auto p = make_plan(f, recipe(), {});
  ASSERT_TRUE(p) << p.error().text();
  EXPECT_EQ(p->plan.stack, "v1-ampere");
  for (const char* id : {"driver-options", "reboot", "peermem", "nic-map", "nvshmem", "doca-ofed"})
    EXPECT_EQ(step(p->plan, id), nullptr) << id;
  const Step* deepep = step(p->plan, "deepep");
  ASSERT_NE(deepep, nullptr);
  const PipInstall* pip = nullptr;
  bool hides = false;
  for (const auto& a : deepep->actions) {
    if (const auto* x = std::get_if<PipInstall>(&a)) pip = x;
    if (const auto* x = std::get_if<WriteFile>(&a))
      hides |= x->path.find("nvidia/__init__.py") != x->path.npos;
  }
  ASSERT_NE(pip, nullptr);
  EXPECT_EQ(pip->env.at("DISABLE_SM90_FEATURES"), "1");
  EXPECT_EQ(pip->env.at("TORCH_CUDA_ARCH_LIST"), "8.0");
  EXPECT_TRUE(hides) << "torch brings NVSHMEM's wheel, which the build must not see";
  // Hopper inside one node keeps NVSHMEM and all its features.
  PlanOptions o;
  o.lane = "v1";
  o.with = {"nodes=1"};
  const auto hopper = make_plan(h100_infiniband(), recipe(), o);
  ASSERT_TRUE(hopper) << hopper.error().text();
  EXPECT_NE(step(hopper->plan, "nvshmem"), nullptr);
  EXPECT_EQ(step(hopper->plan, "reboot"), nullptr);
}

TEST(Choose, GpusWithoutNvlinkGetTheLocalLaneAndTheReason) {
  Facts f = laptop();
  add_gpus(f, 4, "NVIDIA L40S", 89);
  add_driver(f, "580.95.05", true, "");
  add_nics(f, 2, "mlx5_", "mlx5_core", "InfiniBand");
  const auto p = make_plan(f, recipe(), {});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->plan.lane, "local");
  ASSERT_NE(note(p->plan, "why-local"), nullptr);
  EXPECT_NE(note(p->plan, "why-local")->cause.find("NVLink"), std::string::npos)
      << note(p->plan, "why-local")->cause;
}

TEST(Choose, AMachineWithoutGpusNeedsNoReason) {
  const auto p = make_plan(laptop(), recipe(), {});
  ASSERT_TRUE(p);
  EXPECT_EQ(note(p->plan, "why-local"), nullptr);
}

Facts in_part() {
  Facts f;
  f.host_name = "report.txt";
  f.host_kind = "paste";
  add_gpus(f, 8, "NVIDIA H100 80GB HBM3", 90);
  const auto silent = [](auto& fact) {
    fact.known = Known::unreadable;
    fact.why = "the text does not show it";
  };
  silent(f.os.id);
  silent(f.os.version_id);
  silent(f.os.architecture);
  silent(f.os.kernel_release);
  silent(f.driver.version);
  silent(f.driver.open_kernel_module);
  silent(f.container.runtime);
  silent(f.platform.cloud);
  silent(f.packages_readable);
  silent(f.rdma_readable);
  silent(f.limits.memlock);
  return f;
}

TEST(Choose, AnUnknownSystemIsAskedForAndNeverAssumed) {
  const auto p = make_plan(in_part(), recipe(), {});
  ASSERT_TRUE(p) << p.error().text();
  ASSERT_NE(unanswered(p->plan), nullptr);
  EXPECT_EQ(step(p->plan, "driver"), nullptr) << "a driver that is not shown may be there";
  EXPECT_NE(note(p->plan, "driver-unknown"), nullptr);
  for (const auto& s : p->plan.steps)
    for (const auto& a : s.actions)
      if (const auto* source = std::get_if<AddAptSource>(&a)) {
        EXPECT_EQ(source->uri.find("ubuntu"), std::string::npos) << source->uri;
        EXPECT_EQ(source->uri.find("x86_64"), std::string::npos) << source->uri;
      }
  PlanOptions o;
  o.with = {"os=ubuntu22.04", "machine=aarch64"};
  const auto told = make_plan(in_part(), recipe(), o);
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_EQ(unanswered(told->plan), nullptr);
  bool address = false;
  for (const auto& s : told->plan.steps)
    for (const auto& a : s.actions)
      if (const auto* source = std::get_if<AddAptSource>(&a))
        address |= source->uri.find("ubuntu2204/sbsa") != std::string::npos;
  EXPECT_TRUE(address);
  // A host that knows better is not overruled.
  const auto other = make_plan(h100_infiniband(), recipe(), o);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::usage);
}

TEST(Choose, WhatTheLoadedDriverHasIsKeptWhereFilesWereNotRead) {
  Facts f = in_part();
  f.driver.version = known<std::string>("580.95.05", "x");
  ModuleOption o;
  o.name = "NVreg_RegistryDwords";
  o.live = known<std::string>("RMForceStaticBar1=1;", "params");
  o.pending = unreadable<std::string>("", "the text does not show it");
  f.driver.options = {o};
  const auto p = make_plan(f, recipe(), {});
  ASSERT_TRUE(p);
  const Step* s = step(p->plan, "driver-options");
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(std::get<MergeModuleOptions>(s->actions[0]).options.at("NVreg_RegistryDwords"),
            "RMForceStaticBar1=1;PeerMappingOverride=1");
  EXPECT_NE(note(p->plan, "modprobe-unread"), nullptr);
}

}  // namespace
}  // namespace ep
