// The ways that a plan has to one end, chosen by --with or by what the host lacks: names of NICs, NVSHMEM,
// GDRCopy, the link to the toolkit, limits.
#include <fmt/format.h>

#include <algorithm>

#include "plan/fact_scope.h"
#include "plan/hosts_for_test.h"
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

bool has(const Plan& plan, std::string_view id) {
  return step(plan, id) != nullptr;
}

TEST(Ways, AnArchiveOfNvshmemIsProvenByItsHashOrNotUnpacked) {
  PlanOptions o;
  o.with = {"nvshmem-source=archive", "nvshmem=3.4.5", "deepep=1.2.1+73b6ea4"};
  o.stack = "v1-hopper";
  Facts f = h100_infiniband();
  f.rdma_readable = known(true, "x");
  const Plan plan = planned(f, o).plan;
  const Step* s = step(plan, "nvshmem");
  ASSERT_NE(s, nullptr);
  const auto& fetch = std::get<Fetch>(s->actions[0]);
  EXPECT_NE(fetch.url.find("/linux-x86_64/libnvshmem-linux-x86_64-3.4.5_cuda12-archive.tar.xz"),
            std::string::npos);
  EXPECT_EQ(fetch.sha256, "058cbaddc4ff8646b8d1bd9322e93c90eae54c86e1ac8922f20d8a55a7fa8b7e");
  EXPECT_EQ(std::get<Unpack>(s->actions[1]).to, "/opt/epready/nvshmem");
  EXPECT_EQ(std::get<PipInstall>(step(plan, "deepep")->actions[1]).env.at("NVSHMEM_DIR"),
            "/opt/epready/nvshmem");
  EXPECT_NE(step(plan, "archive-tools"), nullptr);
  add_package(f, "xz-utils");
  EXPECT_FALSE(has(planned(f, o).plan, "archive-tools"));

  o.with[1] = "nvshmem=3.3.24";  // no hash of it is on record
  const Plan unproven = planned(f, o).plan;
  EXPECT_EQ(step(unproven, "nvshmem"), nullptr);
  EXPECT_TRUE(std::any_of(unproven.notes.begin(), unproven.notes.end(), [](const Finding& n) {
    return n.code == "archive-not-pinned" && n.severity == Severity::fail;
  }));
  o.with.push_back("nvshmem-sha256=" + std::string(64, 'a'));
  const Plan told = planned(f, o).plan;
  ASSERT_NE(step(told, "nvshmem"), nullptr);
  EXPECT_EQ(std::get<Fetch>(step(told, "nvshmem")->actions[0]).sha256, std::string(64, 'a'));
}

TEST(Ways, NamesOfNicsTheLightWay) {
  PlanOptions o;
  o.with = {"rdma-names=kernel"};
  Facts f = gcp_a4_fresh();
  std::swap(f.rdma.front(), f.rdma.back());  // facts come in the order of names, the kernel counts by address
  const Plan plan = planned(f, o).plan;
  EXPECT_EQ(step(plan, "doca-ofed"), nullptr);
  EXPECT_EQ(step(plan, "doca-ofed-repository"), nullptr);
  const Step* s = step(plan, "rdma-names");
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(std::get<WriteFile>(s->actions[0]).path, "/etc/udev/rules.d/60-rdma-persistent-naming.rules");
  const auto& argv = std::get<RunArgv>(s->actions[2]).argv;
  ASSERT_EQ(argv.size(), 2 + 2 * f.rdma.size());
  std::vector<std::string> addresses;
  for (size_t i = 2; i < argv.size(); i += 2) {
    addresses.push_back(argv[i]);
    EXPECT_EQ(argv[i + 1], fmt::format("mlx5_{}", (i - 2) / 2));
  }
  EXPECT_TRUE(std::is_sorted(addresses.begin(), addresses.end()));
  const auto& back = std::get<RunArgv>(s->undo[0]).argv;
  EXPECT_EQ(back.back(), f.rdma.front().name);  // the last by address has its own name again
  EXPECT_EQ(std::count_if(s->actions.begin(), s->actions.end(),
                          [](const Action& a) { return std::holds_alternative<RefreshInitramfs>(a); }),
            0);
  f.driver.initramfs_tool = known<std::string>("dracut", "x");  // its images hold the rule
  const Plan dracut = planned(f, o).plan;
  EXPECT_TRUE(std::holds_alternative<RefreshInitramfs>(step(dracut, "rdma-names")->actions.back()));

  f.rdma[1].name = "mlx5_0";  // one that has the name already keeps it, and no other gets it
  const Plan some = planned(f, o).plan;
  const auto& fewer = std::get<RunArgv>(step(some, "rdma-names")->actions[2]).argv;
  EXPECT_EQ(fewer.size(), argv.size() - 2);
  EXPECT_EQ(std::count(fewer.begin(), fewer.end(), "mlx5_0"), 0);
}

TEST(Ways, GdrcopysModuleIsBuiltForTheHandlerThatOpensIt) {
  PlanOptions o;
  EXPECT_FALSE(has(planned(gcp_a4_fresh(), o).plan, "gdrdrv"));
  o.with = {"nic-handler=cpu"};
  Facts f = gcp_a4_fresh();
  f.os.kernel_release = known<std::string>("6.8.0-79-generic", "uname");
  f.kernel.headers = known(false, "/lib/modules");
  f.kernel.gdrdrv_device = absent<bool>("/dev/gdrdrv");
  const Plan plan = planned(f, o).plan;
  ASSERT_NE(step(plan, "gdrcopy"), nullptr);
  const Step* s = step(plan, "gdrdrv");
  ASSERT_NE(s, nullptr);
  EXPECT_TRUE(s->needs_root);
  EXPECT_EQ(s->risk, Risk::kernel_options);
  EXPECT_EQ(std::get<GitCheckout>(s->actions[0]).commit, "c91ad9f178e5fb729fc5b6dc62a77c3bb364d6c9");
  EXPECT_NE(step(plan, "kernel-headers"), nullptr);
  EXPECT_NE(std::find(s->needs_steps.begin(), s->needs_steps.end(), "kernel-headers"), s->needs_steps.end());
  EXPECT_EQ(std::get<RunArgv>(s->undo[0]).argv.back(), "/lib/modules/6.8.0-79-generic/updates/gdrdrv.ko");
  f.kernel.gdrdrv_device = known(true, "/dev/gdrdrv");
  const Plan there = planned(f, o).plan;
  EXPECT_EQ(step(there, "gdrdrv"), nullptr);
  EXPECT_NE(skipped(there, "gdrdrv"), nullptr);
}

TEST(Ways, ToolkitsStandSideBySideAndTheLinkIsSomebodysChoice) {
  Facts f = gcp_a4_fresh();
  Plan plan = planned(f).plan;
  ASSERT_NE(step(plan, "cuda-link"), nullptr);  // none yet: made
  const auto& link = std::get<MakeLink>(step(plan, "cuda-link")->actions[0]);
  EXPECT_EQ(link.target, "/usr/local/cuda-12.9");
  EXPECT_EQ(step(plan, "cuda-link")->needs_steps, std::vector<std::string>{"cuda-toolkit"});

  add_cuda(f, "13.0");
  f.cuda_home_link = known<std::string>("/usr/local/cuda-13.0", "/usr/local/cuda");
  plan = planned(f).plan;
  EXPECT_NE(step(plan, "cuda-toolkit"), nullptr);  // 12.9 comes beside it
  EXPECT_EQ(step(plan, "cuda-link"), nullptr);
  ASSERT_NE(skipped(plan, "cuda-link"), nullptr);
  EXPECT_NE(skipped(plan, "cuda-link")->reason.find("/usr/local/cuda-13.0"), std::string::npos);
  const auto& deepep = step(plan, "deepep")->actions;
  EXPECT_EQ(std::get<PipInstall>(deepep[deepep.size() - 2]).env.at("CUDA_HOME"), "/usr/local/cuda-12.9");

  PlanOptions o;
  o.with = {"cuda-link=set"};
  EXPECT_TRUE(has(planned(f, o).plan, "cuda-link"));
  o.with = {"cuda-link=keep"};
  f.cuda_home_link = absent<std::string>("/usr/local/cuda");
  EXPECT_FALSE(has(planned(f, o).plan, "cuda-link"));
}

TEST(Ways, PeermemIsLoadedOnlyWhereDmabufIsNot) {
  Facts f = gcp_a4_fresh();
  EXPECT_FALSE(has(planned(f).plan, "peermem"));  // open modules and a kernel with DMA-BUF
  f.kernel.dmabuf_config = known<std::string>("n", "/boot/config");
  PlanOptions o;
  o.with = {"peermem=load"};  // without the wish a rule names both ways
  const Plan plan = planned(f, o).plan;
  const Step* s = step(plan, "peermem");
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(std::get<WriteFile>(s->actions[0]).path, "/etc/modules-load.d/epready-peermem.conf");
  EXPECT_EQ(std::get<RunArgv>(s->actions[1]).argv, (std::vector<std::string>{"modprobe", "nvidia_peermem"}));
  f.kernel.modules.push_back({"nvidia_peermem", known<std::string>("580.95.05", "/proc/modules")});
  EXPECT_FALSE(has(planned(f, o).plan, "peermem"));
}

TEST(Ways, OnlyLimitsThatAreTooLowAreLifted) {
  Facts f = gcp_a4_fresh();
  f.limits.memlock = known<std::string>("unlimited", "limits");
  f.limits.nofile_hard = known<uint64_t>(4096, "limits");
  f.limits.shm_bytes = known<uint64_t>(64u << 20, "/dev/shm");
  const auto limits = [](const Plan& plan) {
    const Step* s = step(plan, "limits");
    return s ? std::get<SetLimits>(s->actions[0]).limits : std::map<std::string, std::string>();
  };
  EXPECT_EQ(limits(planned(f).plan),
            (std::map<std::string, std::string>{{"nofile", "1048576"}, {"shm", "50%"}}));
  f.limits.nofile_hard = known<uint64_t>(1048576, "limits");
  EXPECT_EQ(limits(planned(f).plan), (std::map<std::string, std::string>{{"shm", "50%"}}));
  f.limits.shm_bytes = known<uint64_t>(2u << 30, "/dev/shm");
  EXPECT_FALSE(has(planned(f).plan, "limits"));
  f.limits.nofile_hard = known<uint64_t>(4096, "limits");
  f.limits.nofile_set_in = {"/etc/security/limits.d/99-epready.conf:3: * hard nofile 1048576"};
  EXPECT_FALSE(has(planned(f).plan, "limits"));  // set by us, in force at the next login
}

}  // namespace
}  // namespace ep
