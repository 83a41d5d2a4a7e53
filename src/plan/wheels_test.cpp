// Closed sets of wheels: what is taken for a machine, how a requirement file says it, and one install for
// many steps.
#include "plan/wheels.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/fact_scope.h"
#include "recipe/load.h"

namespace ep {
namespace {

const std::string kA(64, 'a'), kB(64, 'b'), kC(64, 'c');

WheelSet small() {
  WheelSet s;
  s.wheels = {{"torch==2.0", "", {"torch-2.0-cp311-cp311-manylinux_2_28_x86_64.whl " + kA}},
              {"numpy==1.0", "python_version < '3.11'", {"numpy-1.0-py3-none-any.whl " + kB}},
              {"nvidia-x==3", "", {"nvidia_x-3-py3-none-manylinux_2_28_aarch64.whl " + kC}}};
  return s;
}

TEST(Wheels, AClosedSetIsOfThisMachineWithHashesAndMarkers) {
  EXPECT_EQ(closed_requirements(small(), "x86_64", {}),
            (std::vector<std::string>{"torch==2.0 --hash=sha256:" + kA,
                                      "numpy==1.0 ; python_version < '3.11' --hash=sha256:" + kB}));
  EXPECT_EQ(closed_requirements(small(), "aarch64", {"numpy"}),
            (std::vector<std::string>{"nvidia-x==3 --hash=sha256:" + kC}));
}

// Every set in data/: for each Python and machine exactly one version of a package, and torch itself.
TEST(Wheels, SetsOnRecordAreClosedForEveryMachine) {
  auto r = load_recipe("", condition_names());
  ASSERT_TRUE(r) << (r ? "" : r.error().text());
  ASSERT_GE(r->wheel_sets.size(), 7u);
  ASSERT_NE(r->wheel_set("build-tools"), nullptr);
  for (const auto& set : r->wheel_sets)
    for (const char* machine : {"x86_64", "aarch64"}) {
      std::set<std::string> whole, names;
      for (const auto& w : closed_set(set, machine, {})) {
        const std::string name = requirement_name(w.requirement);
        names.insert(name);
        if (w.marker.empty()) {
          EXPECT_TRUE(whole.insert(name).second) << set.id << ": two of " << name;
        }
      }
      for (const char* tool : {"numpy", "setuptools", "wheel", "ninja", "packaging"})
        EXPECT_TRUE(names.count(tool)) << set.id << " on " << machine << " lacks " << tool;
      if (set.id != "build-tools") {
        EXPECT_TRUE(names.count("torch")) << set.id;
        // For Arm the default index had builds without CUDA up to 2.10.
        const bool cuda = names.count("triton") != 0;
        const bool old = set.id == "torch-2.9.1" || set.id == "torch-2.10.0";
        EXPECT_TRUE(cuda || (machine == std::string("aarch64") && old)) << set.id;
        if (cuda) {
          EXPECT_GE(names.size(), 20u) << set.id << " on " << machine;
        }
      }
    }
}

Step install(const std::string& id, std::vector<std::string> requirements) {
  PipInstall pip;
  pip.venv = "/p/venv";
  pip.requirements = std::move(requirements);
  pip.no_deps = true;
  Step s;
  s.id = id;
  s.actions = {pip};
  s.estimate_s = 10;
  return s;
}

TEST(Wheels, OneCallForTheWheelsOfManySteps) {
  Plan p;
  p.steps = {
      install("tools", {"wheel==1 --hash=sha256:" + kA}),
      install("torch", {"torch==2 --hash=sha256:" + kA, "nvidia-nccl-cu13==2.29.7 --hash=sha256:" + kA}),
      install("nccl", {"nvidia-nccl-cu13==2.30.7 --hash=sha256:" + kB}), install("source", {"/p/src/deepep"}),
      install("other", {"unhashed==1"})};
  EXPECT_EQ(join_installs(p, "torch"), std::vector<std::string>{"nccl"});
  const auto& torch = std::get<PipInstall>(p.steps[1].actions[0]);
  EXPECT_EQ(torch.requirements, (std::vector<std::string>{"torch==2 --hash=sha256:" + kA,
                                                          "nvidia-nccl-cu13==2.30.7 --hash=sha256:" + kB}))
      << "torch's own NCCL never comes in";
  EXPECT_EQ(std::get<PipInstall>(p.steps[2].actions[0]).requirements.size(), 1u)
      << "it can still be done alone";
  EXPECT_EQ(std::get<PipInstall>(p.steps[0].actions[0]).requirements.size(), 1u) << "came before";
}

TEST(Wheels, WithoutTorchEachStepInstallsItsOwn) {
  Plan p;
  p.steps = {install("nccl", {"nvidia-nccl-cu13==2.30.7 --hash=sha256:" + kB}),
             install("nvshmem", {"nvidia-nvshmem-cu13==3.4.5 --hash=sha256:" + kC})};
  EXPECT_TRUE(join_installs(p, "torch").empty());
}

}  // namespace
}  // namespace ep
