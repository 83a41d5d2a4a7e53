#include "plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "plan/fact_scope.h"
#include "plan/hosts_for_test.h"
#include "plan/plan_json.h"
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

Planned planned(const Facts& facts, PlanOptions options = {}) {
  auto p = make_plan(facts, recipe(), options);
  EXPECT_TRUE(p) << p.error().text();
  return p ? *p : Planned{};
}

const Step* step(const Plan& plan, std::string_view id) {
  for (const auto& s : plan.steps)
    if (s.id == id) return &s;
  return nullptr;
}
const Step* step(Plan&&, std::string_view) = delete;  // would point into a plan that is gone
const SkippedStep* skipped(Plan&&, std::string_view) = delete;
const SkippedStep* skipped(const Plan& plan, std::string_view id) {
  for (const auto& s : plan.skipped)
    if (s.id == id) return &s;
  return nullptr;
}
std::vector<std::string> ids(const Plan& plan) {
  std::vector<std::string> out;
  for (const auto& s : plan.steps) out.push_back(s.id);
  return out;
}

TEST(Planner, AMinimalSystemFirstGetsWhatDownloadsKeys) {
  Facts f = gcp_a4_fresh();
  f.tools = {{"curl", absent<std::string>("PATH", "in no folder of PATH"), {}}};
  Plan plan = planned(f).plan;
  ASSERT_TRUE(step(plan, "download-tools"));
  const Step* source = step(plan, "cuda-repository");
  ASSERT_TRUE(source);
  EXPECT_TRUE(std::count(source->needs_steps.begin(), source->needs_steps.end(), "download-tools"));
  f.tools.back().path = known<std::string>("/usr/bin/curl", "PATH");
  plan = planned(f).plan;
  EXPECT_FALSE(step(plan, "download-tools"));
}

TEST(Planner, FreshGcpMachineGetsTheRunbooksPhasesWithReasons) {
  const Plan plan = planned(gcp_a4_fresh()).plan;
  EXPECT_EQ(plan.stack, "v1-gcp-b200");
  EXPECT_EQ(plan.platform, "gcp-a4");
  std::set<std::string> phases;
  for (const auto& s : plan.steps) {
    EXPECT_FALSE(s.why.empty()) << s.id;
    phases.insert(s.runbook_phase);
  }
  for (const char* p : {"Phase 1", "Phase 2", "Phase 3", "Phase 3, 4", "Phase 5", "Phase 7", "Phase 8",
                        "Phase 9", "Phase 10"})
    EXPECT_TRUE(phases.count(p)) << p;
  ASSERT_NE(skipped(plan, "gdrcopy"), nullptr);
  EXPECT_EQ(skipped(plan, "gdrcopy")->runbook_phase, "Phase 6");
  ASSERT_NE(skipped(plan, "driver"), nullptr);
  const Step* options = step(plan, "driver-options");
  ASSERT_NE(options, nullptr);
  EXPECT_TRUE(std::holds_alternative<RefreshInitramfs>(options->actions.back()));
  const Step* deepep = step(plan, "deepep");
  ASSERT_NE(deepep, nullptr);
  EXPECT_EQ(std::get<GitCheckout>(deepep->actions[0]).commit, "29d31c095796f3c8ece47ee9cdcc167051bbeed9");
  const auto& pip = std::get<PipInstall>(deepep->actions[deepep->actions.size() - 2]);
  EXPECT_EQ(pip.env.at("TORCH_CUDA_ARCH_LIST"), "10.0");
  EXPECT_EQ(pip.env.at("CUDA_HOME"), "/usr/local/cuda-12.9");
  EXPECT_EQ(pip.overrides, std::vector<std::string>{"nvidia-nvshmem-cu12==3.5.19"});
  const Step* torch = step(plan, "torch");
  ASSERT_NE(torch, nullptr);
  EXPECT_EQ(std::get<PipInstall>(torch->actions[0]).index_url, "https://download.pytorch.org/whl/cu129");
  const auto order = ids(plan);
  const auto at = [&](const char* id) { return std::find(order.begin(), order.end(), id) - order.begin(); };
  EXPECT_LT(at("cuda-toolkit"), at("deepep"));
  EXPECT_LT(at("torch"), at("nvshmem"));
  EXPECT_LT(at("nvshmem"), at("deepep"));
  EXPECT_LT(at("reboot"), at("env"));
  if (const char* out = std::getenv("EP_PRINT")) std::ofstream(out) << plan_to_json(plan);
}

TEST(Planner, OtherRegistryKeysAreKept) {
  Facts f = gcp_a4_fresh();
  f.driver.options[0].pending =
      known<std::string>("RmKeep=0x3;PeerMappingOverride=0", "/etc/modprobe.d/a.conf");
  const Plan plan = planned(f).plan;
  const auto& merge = std::get<MergeModuleOptions>(step(plan, "driver-options")->actions[0]);
  EXPECT_EQ(merge.options.at("NVreg_RegistryDwords"), "RmKeep=0x3;PeerMappingOverride=1");
}

TEST(Planner, OptionsAlreadyInAFileNeedOnlyTheReboot) {
  Facts f = gcp_a4_fresh();
  f.driver.options[0].pending = known<std::string>("PeerMappingOverride=0x1", "/etc/modprobe.d/a.conf");
  const Plan plan = planned(f).plan;
  EXPECT_NE(skipped(plan, "driver-options"), nullptr);
  EXPECT_NE(step(plan, "reboot"), nullptr);
  f.driver.initramfs_has_nvidia_options =
      known(false, "lsinitramfs");  // the file would never reach the driver
  const Plan again = planned(f).plan;
  EXPECT_NE(step(again, "driver-options"), nullptr);
}

TEST(Planner, UnknownIsNotSatisfied) {
  Facts f = gcp_a4_fresh();
  f.packages_readable = unreadable<bool>("dpkg", "permission denied");
  f.packages.clear();
  const Plan plan = planned(f).plan;
  const Step* s = step(plan, "build-tools");
  ASSERT_NE(s, nullptr);
  EXPECT_NE(s->why.find("permission denied"), std::string::npos) << s->why;
}

TEST(Planner, LaptopGetsTheLocalLaneAndOnlyAnEnvironmentFile) {
  const Plan plan = planned(laptop()).plan;
  EXPECT_EQ(plan.lane, "local");
  EXPECT_EQ(ids(plan), std::vector<std::string>{"env"});
  EXPECT_FALSE(plan.steps[0].needs_root);
}

TEST(Planner, TheDefaultStackOfAFreshA4PinsEveryKey) {
  const Plan plan = planned(gcp_a4_fresh()).plan;
  EXPECT_TRUE(unpinned_keys(plan).empty());
  const Step* s = step(plan, "doca-ofed-repository");
  ASSERT_NE(s, nullptr);
  const auto& source = std::get<AddAptSource>(s->actions[0]);
  EXPECT_EQ(source.key_fingerprint, "70454E6BF5D9C2D3B78709E8DC726C5E41B9CC50");
  // The file that older recipes fetch lacks this key.
  EXPECT_EQ(source.key_url,
            "https://linux.mellanox.com/public/repo/doca/3.2.1/ubuntu24.04/x86_64/doca_keyring.gpg");
  for (const auto& n : plan.notes) EXPECT_NE(n.code, "key-not-pinned");
}

TEST(Planner, AKeyThatNothingPinsIsNamedWithTheWayToIt) {
  Recipe r = recipe();
  for (auto& c : r.components)
    if (c.id == "doca-ofed") c.apt[0].key_fingerprint.clear();
  const auto p = make_plan(gcp_a4_fresh(), r, {});
  ASSERT_TRUE(p);
  EXPECT_EQ(unpinned_keys(p->plan), std::vector<std::string>{"doca-ofed"});
  std::string fix;
  for (const auto& n : p->plan.notes)
    if (n.code == "key-not-pinned") fix = join(n.fix, "; ");
  EXPECT_NE(fix.find("--with doca-ofed-key=FINGERPRINT"), std::string::npos);
  EXPECT_EQ(fix.find("curl"), std::string::npos) << "the same address proves nothing";
}

TEST(Planner, LaneThatCannotBeSaysWhyAndWhatWouldAllowIt) {
  PlanOptions o;
  o.lane = "v1";
  auto p = make_plan(aws_b200_efa(), recipe(), o);
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().kind, ErrorKind::unsupported);
  EXPECT_NE(p.error().text().find("efa-no-ibgda"), std::string::npos) << p.error().text();
  EXPECT_NE(p.error().text().find("--with nodes=1"), std::string::npos) << p.error().text();
  o.with = {"nodes=1"};
  EXPECT_TRUE(make_plan(aws_b200_efa(), recipe(), o));
}

TEST(Planner, PodStepsLeaveTheNodeAlone) {
  const Plan plan = planned(gke_pod()).plan;
  EXPECT_EQ(plan.stack, "v1-gke-b200");
  for (const auto& s : plan.steps) EXPECT_NE(s.risk, Risk::kernel_options) << s.id;
  EXPECT_EQ(step(plan, "reboot"), nullptr);
  EXPECT_EQ(step(plan, "cuda-toolkit"), nullptr);
  for (const char* id : {"doca-ofed", "driver-options", "gdrcopy"})
    EXPECT_NE(skipped(plan, id), nullptr) << id;
  EXPECT_NE(step(plan, "deepep"), nullptr);
}

TEST(Planner, WrongWordsNameTheNearest) {
  const auto error = [&](PlanOptions o) {
    auto p = make_plan(gcp_a4_fresh(), recipe(), o);
    EXPECT_FALSE(p);
    return p ? std::string() : p.error().text();
  };
  PlanOptions o;
  o.lane = "v11";
  EXPECT_NE(error(o).find("did you mean \"v1\""), std::string::npos);
  o = {};
  o.stack = "v1-gcp-b20";
  EXPECT_NE(error(o).find("v1-gcp-b200"), std::string::npos);
  o = {};
  o.with = {"nvshmm=3.4.5"};
  EXPECT_NE(error(o).find("did you mean \"nvshmem\""), std::string::npos);
  o.with = {"nvshmem=9"};
  EXPECT_NE(error(o).find("3.5.19"), std::string::npos);
  o.with = {"deepep-commit=abc"};
  EXPECT_NE(error(o).find("40"), std::string::npos);
  o.with = {"nvshmem"};
  EXPECT_NE(error(o).find("NAME=VALUE"), std::string::npos);
  o = {};
  o.prefix = "relative";
  EXPECT_NE(error(o).find("absolute"), std::string::npos);
}

TEST(Planner, SourceBuildOfNvshmemHasTheOptionsOfTheDocuments) {
  PlanOptions o;
  o.with = {"nvshmem-source=git", "nvshmem-commit=0123456789012345678901234567890123456789"};
  const Plan plan = planned(gcp_a4_fresh(), o).plan;
  const Step* s = step(plan, "nvshmem");
  ASSERT_NE(s, nullptr);
  const auto& build = std::get<CMakeBuild>(s->actions[1]);
  for (const char* want :
       {"-DNVSHMEM_IBGDA_SUPPORT=ON", "-DNVSHMEM_MPI_SUPPORT=OFF", "-DNVSHMEM_BUILD_TESTS=OFF",
        "-DNVSHMEM_USE_GDRCOPY=OFF", "-DCMAKE_CUDA_ARCHITECTURES=100"})
    EXPECT_NE(std::find(build.options.begin(), build.options.end(), want), build.options.end()) << want;
  const auto& pip = std::get<PipInstall>(step(plan, "deepep")->actions[1]);
  EXPECT_EQ(pip.env.at("NVSHMEM_DIR"), "/opt/epready/nvshmem");
}

// ---- the laws of a plan, on generated hosts ----

class Laws : public testing::TestWithParam<int> {
 protected:
  void each(const std::function<void(const Facts&, const PlanOptions&, const Plan&)>& check) {
    const char* lanes[] = {"", "v1", "v2"};
    int solved = 0;
    for (uint64_t seed = 0; seed < 400; ++seed) {
      const Facts f = random_host(seed);
      PlanOptions o;
      o.lane = lanes[seed % 3];
      if (seed % 7 == 0) o.consumer = "vllm";
      if (seed % 5 == 0) o.with = {"nodes=1"};
      auto p = make_plan(f, recipe(), o);
      if (!p) continue;
      ++solved;
      SCOPED_TRACE(fmt::format("seed {} stack {}", seed, p->plan.stack));
      check(f, o, p->plan);
      if (HasFailure()) return;
    }
    EXPECT_GT(solved, 150);
  }
};

Facts after(const Facts& facts, const Plan& plan, std::string_view except = {}) {
  Facts f = facts;
  for (const auto& s : plan.steps)
    if (s.id != except)
      for (const auto& p : s.after) assume(f, p);
  return f;
}

TEST_F(Laws, AssumingEveryAfterLeavesNothingToDo) {
  each([](const Facts& f, const PlanOptions& o, const Plan& plan) {
    auto again = make_plan(after(f, plan), recipe(), o);
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(ids(again->plan), std::vector<std::string>{}) << again->plan.steps[0].why;
  });
}

TEST_F(Laws, NoStepCanBeDropped) {
  each([](const Facts& f, const PlanOptions& o, const Plan& plan) {
    for (const auto& s : plan.steps) {
      const bool needed = std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& other) {
        return std::find(other.needs_steps.begin(), other.needs_steps.end(), s.id) != other.needs_steps.end();
      });
      if (needed) continue;
      auto again = make_plan(after(f, plan, s.id), recipe(), o);
      ASSERT_TRUE(again) << again.error().text();
      EXPECT_NE(step(again->plan, s.id), nullptr) << s.id;
    }
  });
}

TEST_F(Laws, OrderRespectsNeedsAndTwoRunsAreEqual) {
  each([](const Facts& f, const PlanOptions& o, const Plan& plan) {
    std::set<std::string> done;
    for (const auto& s : plan.steps) {
      for (const auto& n : s.needs_steps) EXPECT_TRUE(done.count(n)) << s.id << " needs " << n;
      EXPECT_TRUE(done.insert(s.id).second) << s.id << " twice";
      EXPECT_FALSE(s.actions.empty()) << s.id;
      EXPECT_FALSE(s.title.empty() || s.why.empty()) << s.id;
    }
    const std::string once = plan_to_json(plan);
    EXPECT_EQ(once, plan_to_json(make_plan(f, recipe(), o)->plan));
    auto back = plan_from_json(once);
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(plan_to_json(*back), once);
  });
}

TEST_F(Laws, StepsThatInstallIntoOneEnvironmentFollowEachOther) {
  each([](const Facts&, const PlanOptions&, const Plan& plan) {
    std::map<std::string, std::set<std::string>> behind;  // step -> all that come before it
    std::vector<std::string> pip;
    for (const auto& s : plan.steps) {
      for (const auto& n : s.needs_steps) {
        behind[s.id].insert(n);
        behind[s.id].insert(behind[n].begin(), behind[n].end());
      }
      const bool installs = std::any_of(s.actions.begin(), s.actions.end(), [](const Action& a) {
        return std::holds_alternative<PipInstall>(a);
      });
      if (!installs) continue;
      for (const auto& earlier : pip)
        EXPECT_TRUE(behind[s.id].count(earlier)) << s.id << " beside " << earlier;
      pip.push_back(s.id);
    }
  });
}

TEST_F(Laws, EveryPredicateOfAPlanIsInTheTable) {
  each([](const Facts&, const PlanOptions&, const Plan& plan) {
    for (const auto& s : plan.steps)
      for (const auto* list : {&s.before, &s.after})
        for (const auto& p : *list)
          EXPECT_TRUE(std::any_of(predicate_rows().begin(), predicate_rows().end(),
                                  [&](const PredicateRow& r) { return r.name == p.name; }))
              << p.name;
  });
}

TEST(PlannerSpeed, FastEnough) {
  const auto start = std::chrono::steady_clock::now();
  const int runs = 20;
  for (int i = 0; i < runs; ++i) planned(gcp_a4_fresh());
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / runs;
  std::printf("plan of a fresh A4: %.2f ms\n", ms);
  EXPECT_LT(ms, 50);
}

}  // namespace
}  // namespace ep

#include "plan/lock.h"

namespace ep {
namespace {

TEST(Lock, SameAnswerSameBytesAndAStaleOneIsRefused) {
  const Planned p = planned(gcp_a4_fresh());
  const std::string text = lock_text(p);
  EXPECT_EQ(text, lock_text(planned(gcp_a4_fresh())));
  EXPECT_NE(text.find("commit = \"29d31c095796f3c8ece47ee9cdcc167051bbeed9\""), std::string::npos);
  EXPECT_TRUE(check_lock(text, "epready.lock", p));
  PlanOptions o;
  o.with = {"nvshmem=3.6.5"};
  auto stale = check_lock(text, "epready.lock", planned(gcp_a4_fresh(), o));
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().kind, ErrorKind::drifted);
  EXPECT_NE(stale.error().why.find("3.6.5"), std::string::npos) << stale.error().why;
  EXPECT_EQ(check_lock("", "epready.lock", p).error().kind, ErrorKind::malformed);
}

TEST(Scopes, LibsNeedNoRootAndDriverNothingElse) {
  PlanOptions o;
  o.lane = "v2";
  o.scope = PlanOptions::Scope::libs;
  for (const auto& s : planned(gcp_a4_fresh(), o).plan.steps) EXPECT_FALSE(s.needs_root) << s.id;
  o.scope = PlanOptions::Scope::driver;
  EXPECT_EQ(ids(planned(gcp_a4_fresh(), o).plan), (std::vector<std::string>{"driver-options", "reboot"}));
  o.scope = PlanOptions::Scope::libs;
  o.wheel = true;
  const Plan wheel = planned(gcp_a4_fresh(), o).plan;
  const Step* s = step(wheel, "deepep");
  ASSERT_NE(s, nullptr);
  EXPECT_TRUE(std::any_of(s->actions.begin(), s->actions.end(), [](const Action& a) {
    const auto* run = std::get_if<RunArgv>(&a);
    return run && std::find(run->argv.begin(), run->argv.end(), "wheel") != run->argv.end();
  }));
}

}  // namespace
}  // namespace ep
