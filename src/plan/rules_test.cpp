// Every rule of data/ has a row here: facts and wishes that break it. The row must show the rule at work, and
// must not show it once the rule is taken out of the recipe; a rule without a row fails the test.
#include <algorithm>
#include <functional>

#include "plan/fact_scope.h"
#include "plan/hosts_for_test.h"
#include "plan/planner.h"

namespace ep {
namespace {

using namespace ep::test;

struct RuleCase {
  const char* rule;
  const char* stack;
  std::vector<std::string> with;
  std::function<void(Facts&)> change;
  const char* consumer = "plain";
};

void set_cc(Facts& f, int cc) {
  for (auto& g : f.gpus) g.compute_capability = known(cc, "nvidia-smi");
}
void set_driver(Facts& f, const char* version, bool open = true) {
  f.driver.version = known<std::string>(version, "x");
  f.driver.open_kernel_module = known(open, "x");
}
void none(Facts&) {}

const std::vector<RuleCase>& cases() {
  static const std::vector<RuleCase> rows = {
      {"cuda-driver-13", "v2-vllm", {"cuda=13.1"}, [](Facts& f) { set_driver(f, "570.1"); }},
      {"cuda-driver-12", "v1-gcp-b200", {}, [](Facts& f) { set_driver(f, "520.61.05"); }},
      {"cuda-sm100", "v1-gcp-b200", {"cuda=12.6"}, none},
      {"cuda-sm103", "v1-blackwell", {"cuda=12.8"}, [](Facts& f) { set_cc(f, 103); }},
      {"cccl-headers", "v2-vllm", {"cccl=none"}, none},
      {"driver-open-blackwell", "v1-gcp-b200", {}, [](Facts& f) { set_driver(f, "580.95.05", false); }},
      {"gpu-present", "v1-gcp-b200", {}, [](Facts& f) { f.gpus.clear(); }},
      {"gpu-mig",
       "v1-gcp-b200",
       {},
       [](Facts& f) { f.gpus[3].mig_mode = known<std::string>("Enabled", "x"); }},
      {"gpu-p2p",
       "v1-gcp-b200",
       {},
       [](Facts& f) {
         f.p2p_known = known(true, "x");
         f.p2p_bad_pairs = {"0-3 read: CNS"};
       }},
      {"handler-gpu-override", "v1-gcp-b200", {"driver-options=none"}, none},
      {"doca-secure-boot", "v1-gcp-b200", {}, [](Facts& f) { f.kernel.secure_boot = known(true, "x"); }},
      {"hca-names",
       "v1-gcp-b200",
       {"rdma-names=keep", "nvshmem=3.4.5"},
       [](Facts& f) {
         for (auto& d : f.rdma) d.ports[0].link_layer = known<std::string>("InfiniBand", "x");
       }},
      {"rdma-core-gin",
       "v2-vllm",
       {},
       [](Facts& f) {
         f.packages.clear();
         add_package(f, "rdma-core", "39.0-1");
       }},
      {"gcc-cxx20-format",
       "v25-plain",
       {},
       [](Facts& f) {
         f.tools.push_back(
             {"gcc", known<std::string>("/usr/bin/gcc", "x"), known<std::string>("12.2.0", "x")});
       }},
      {"handler-cpu-gdrdrv",
       "v1-gcp-b200",
       {"nic-handler=cpu"},
       [](Facts& f) {
         f.container.runtime = known<std::string>("docker", "/.dockerenv");
         f.kernel.gdrdrv_device = absent<bool>("/dev/gdrdrv");
       }},
      {"handler-cpu-hang",
       "v1-gcp-b200",
       {"nic-handler=cpu"},
       [](Facts& f) { f.kernel.gdrdrv_device = known(true, "/dev/gdrdrv"); }},
      {"python-v2",
       "v25-plain",
       {},
       [](Facts& f) { f.python[0].version = known<std::string>("3.9.2", "x"); }},
      {"peermem-or-dmabuf",
       "v1-gcp-b200",
       {},
       [](Facts& f) { f.kernel.dmabuf_config = known<std::string>("n", "x"); }},
      {"vllm-wants-elastic", "v2-vllm", {"deepep=2.5.0+db8166d", "nccl=2.32.3"}, none, "vllm"},
      {"vllm-wants-buffer", "v1-blackwell", {"deepep=2.5.0+db8166d"}, none, "vllm"},
      {"vllm-shm",
       "v2-vllm",
       {},
       [](Facts& f) { f.limits.shm_bytes = known<uint64_t>(64u << 20, "x"); },
       "vllm"},
      {"sglang-wants-elastic", "v2-sglang", {"deepep=2.5.0+db8166d", "nccl=2.32.3"}, none, "sglang"},
      {"nvshmem-create-ah-v2", "v2-vllm", {}, none, "vllm"},
      {"nvshmem-create-ah-legacy", "v2-vllm", {}, none},
      {"ampere-no-nvshmem", "v1-hopper", {"nodes=1"}, [](Facts& f) { set_cc(f, 80); }},
      {"hopper-nvshmem", "v1-ampere", {}, none},
      {"v1-nvlink",
       "v1-ampere",
       {},
       [](Facts& f) {
         set_cc(f, 89);
         for (auto& g : f.gpus) g.nvlinks_up = known(0, "nvidia-smi nvlink -s");
       }},
      {"sglang-torch-058", "v1-gcp-b200", {"sglang=0.5.8", "torch=2.10.0"}, none, "sglang"},
      {"nvshmem-min",
       "v1-gcp-b200",
       {"nvshmem=3.2.5"},
       [](Facts& f) {
         for (auto& d : f.rdma) d.ports[0].link_layer = known<std::string>("InfiniBand", "x");
       }},
      {"nvshmem-rc-qp", "v1-gcp-b200", {"deepep=1.2.1+73b6ea4", "nvshmem=3.5.19"}, none},
      {"nvshmem-host-newer",
       "v1-gcp-b200",
       {},
       [](Facts& f) {
         assume(f, {"part", {"deepep", "/opt/epready", "nvshmem=3.4.5"}});
         assume(f, {"wheel", {"/opt/epready/venv", "nvidia-nvshmem-cu12", "==3.6.5"}});
       }},
      {"nvshmem-host-older",
       "v1-gcp-b200",
       {},
       [](Facts& f) {
         assume(f, {"part", {"deepep", "/opt/epready", "nvshmem=3.5.19"}});
         assume(f, {"wheel", {"/opt/epready/venv", "nvidia-nvshmem-cu12", "==3.3.20"}});
       }},
      {"nvshmem-create-ah",
       "v1-gcp-b200",
       {"nvshmem=3.4.5"},
       [](Facts& f) {
         for (size_t i = 0; i < f.rdma.size(); ++i) f.rdma[i].name = "mlx5_" + std::to_string(i);
       }},
      {"nvshmem-cuda",
       "v1-gcp-b200",
       {"nvshmem=3.3.9", "cuda=13.0"},
       [](Facts& f) {
         for (size_t i = 0; i < f.rdma.size(); ++i) {
           f.rdma[i].name = "mlx5_" + std::to_string(i);
           f.rdma[i].ports[0].link_layer = known<std::string>("InfiniBand", "x");
         }
       }},
      {"handler-host-memory",
       "v1-hopper",
       {"nic-handler=cpu_host_memory", "nvshmem=3.3.24"},
       [](Facts& f) {
         set_cc(f, 90);
         for (size_t i = 0; i < f.rdma.size(); ++i) {
           f.rdma[i].name = "mlx5_" + std::to_string(i);
           f.rdma[i].ports[0].link_layer = known<std::string>("InfiniBand", "x");
         }
       }},
      {"nvshmem-torch-pin", "v1-gcp-b200", {}, none},
      {"nccl-v2-min", "v2-vllm", {"nccl=2.28.9"}, none},
      {"nccl-v25-min", "v25-plain", {"nccl=2.31.2"}, none},
      {"nccl-cuda-major", "v2-vllm", {}, none},
      {"nccl-one-package",
       "v2-vllm",
       {},
       [](Facts& f) {
         assume(f, {"wheel", {"/venv", "nvidia-nccl-cu12", "==2.28.9"}});
         assume(f, {"wheel", {"/venv", "nvidia-nccl-cu13", "==2.28.9"}});
       }},
      {"nccl-efa-gin",
       "v2-vllm",
       {"nccl=2.30.7"},
       [](Facts& f) {
         for (auto& d : f.rdma) d.driver = known<std::string>("efa", "x");
       }},
      {"nccl-vllm-2312", "v2-vllm", {"vllm=0.27.0", "nccl=2.31.2"}, none, "vllm"},
      {"nccl-torch-pin", "v2-vllm", {}, none},
      {"torch-cuda", "v2-vllm", {}, none},
      {"torch-v2-min", "v2-vllm", {"torch=2.9.1"}, none},
      {"torch-driver",
       "v1-gcp-b200",
       {},
       [](Facts& f) { f.python[0].version = known<std::string>("3.9.2", "x"); }},
      {"deepep-lane-v1", "v1-gcp-b200", {"deepep=2.0.0+d4f41e4"}, none},
      {"deepep-lane-v2", "v2-vllm", {"deepep=1.2.1+29d31c0"}, none},
      {"deepep-v25-consumers", "v2-vllm", {"deepep=2.5.0+db8166d", "nccl=2.32.3"}, none, "vllm"},
      {"deepep-v25-cuda", "v25-plain", {"cuda=13.0"}, none},
      {"deepep-wheel-cuda13", "v2-sglang", {"cuda=12.9"}, [](Facts& f) { set_cc(f, 90); }, "sglang"},
      {"deepep-wheel-torch", "v2-sglang", {"torch=2.14.1", "deepep=2.1.0+sgl0.1.2"}, none, "sglang"},
      {"hopper-v1", "v1-hopper", {}, [](Facts& f) { set_cc(f, 80); }},
      {"ampere-v1", "v1-hopper", {"nodes=1"}, [](Facts& f) { set_cc(f, 75); }},
      {"hopper-v2", "v2-vllm", {}, [](Facts& f) { set_cc(f, 80); }},
      {"consumer-gpu", "v2-vllm", {}, [](Facts& f) { set_cc(f, 120); }},
      {"ptxas-blackwell", "v2-vllm", {"cuda=13.0"}, none},
      {"arch-list", "v1-gcp-b200", {"arch=9.0"}, none},
      {"efa-no-ibgda",
       "v1-gcp-b200",
       {},
       [](Facts& f) {
         for (auto& d : f.rdma) d.driver = known<std::string>("efa", "x");
       }},
      {"v1-needs-nic", "v1-gcp-b200", {}, [](Facts& f) { f.rdma.clear(); }},
      {"v2-efa-fork",
       "v2-vllm",
       {"nccl=2.31.2"},
       [](Facts& f) {
         for (auto& d : f.rdma) d.driver = known<std::string>("efa", "x");
       }},
      {"v2-one-node", "v2-vllm", {}, [](Facts& f) { f.rdma.clear(); }},
      {"v2-kernel",
       "v2-vllm",
       {},
       [](Facts& f) { f.os.kernel_release = known<std::string>("5.4.0-100-generic", "x"); }},
      {"v1-eight-gpus", "v1-gcp-b200", {}, [](Facts& f) { f.gpus.resize(4); }},
      {"pod-privileged",
       "v1-gke-b200",
       {},
       [](Facts& f) {
         f.container.runtime = known<std::string>("kubernetes", "x");
         f.container.privileged = known(false, "x");
       }},
      {"rocm-host", "v1-gcp-b200", {}, [](Facts& f) { f.num_amd_gpus = known(8, "pci"); }},
  };
  return rows;
}

const Recipe& recipe() {
  static const Recipe r = *load_recipe("", condition_names());
  return r;
}

Recipe without(std::string_view rule) {
  Recipe r = recipe();
  for (auto& c : r.components)
    c.rules.erase(std::remove_if(c.rules.begin(), c.rules.end(), [&](const Rule& x) { return x.id == rule; }),
                  c.rules.end());
  return r;
}

struct Seen {
  bool shown = false;  ///< among refusals, warnings, or as the reason that a version is out
  bool found = false;  ///< a working set
  std::string picture;
};

Seen look(const Recipe& r, const RuleCase& c) {
  Facts f = gcp_a4_fresh();
  c.change(f);
  PlanOptions o;
  o.with = c.with;
  o.consumer = c.consumer;
  auto in = solve_input(f, r, *r.stack(c.stack), nullptr, o);
  EXPECT_TRUE(in) << in.error().text();
  const Solution s = solve(*in);
  Seen out;
  out.found = s.found;
  const std::string mark = std::string("[") + c.rule + "]";
  for (const auto* list : {&s.refusals, &s.warnings})
    for (const auto& x : *list) {
      out.picture += x.rule + " ";
      out.shown = out.shown || x.rule == c.rule;
      EXPECT_FALSE(x.text.empty() || x.change.empty() || x.source.empty()) << x.rule;
    }
  for (const auto& x : s.choices) {
    out.picture += x.component + "=" + x.version + " ";
    out.shown = out.shown || x.why.find(mark) != std::string::npos;
  }
  return out;
}

TEST(Rules, EachRuleWorksAndIsNeeded) {
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.rule);
    // Two rules guard pairs that the domains never mix by themselves: they are looked at below.
    if (std::string_view(c.rule) == "nccl-cuda-major" || std::string_view(c.rule) == "torch-cuda") continue;
    const Seen with_rule = look(recipe(), c);
    EXPECT_TRUE(with_rule.shown) << with_rule.picture;
    const Recipe fewer = without(c.rule);
    const Seen without_rule = look(fewer, c);
    EXPECT_FALSE(without_rule.shown);
    EXPECT_NE(with_rule.picture, without_rule.picture) << "taking the rule away changes nothing";
  }
}

/// A release that lacks a wheel for the CUDA major is out, whatever else speaks for it.
TEST(Rules, WheelsOfTheOtherCudaMajorAreOut) {
  for (const char* id : {"nccl", "torch"}) {
    Recipe r = recipe();
    for (auto& c : r.components)
      if (c.id == id)
        for (auto& release : c.releases)
          if (release.version == "2.30.7" || release.version == "2.13.0")
            release.traits.erase(std::remove(release.traits.begin(), release.traits.end(), "cuda13"),
                                 release.traits.end());
    PlanOptions o;
    const Facts f = gcp_a4_fresh();
    const auto chosen = [&](const Recipe& from) {
      return solve(*solve_input(f, from, *from.stack("v2-vllm"), nullptr, o)).choice(id)->version;
    };
    EXPECT_NE(chosen(r), recipe().stack("v2-vllm")->pins.at(id)) << id;
    Recipe no_rule = r;
    for (auto& c : no_rule.components)
      c.rules.erase(
          std::remove_if(c.rules.begin(), c.rules.end(),
                         [](const Rule& x) { return x.id == "nccl-cuda-major" || x.id == "torch-cuda"; }),
          c.rules.end());
    EXPECT_EQ(chosen(no_rule), recipe().stack("v2-vllm")->pins.at(id)) << id;
  }
}

TEST(Rules, EveryRuleHasARow) {
  for (const auto& c : recipe().components)
    for (const auto& rule : c.rules)
      EXPECT_TRUE(
          std::any_of(cases().begin(), cases().end(), [&](const RuleCase& x) { return rule.id == x.rule; }))
          << rule.place << ": " << rule.id;
}

TEST(Rules, EveryStackSolvesOnAHostItIsMadeFor) {
  for (const auto& s : recipe().stacks) {
    if (s.lane == "local") continue;
    Facts f = gcp_a4_fresh();
    if (s.id == "v1-hopper") {
      f = h100_infiniband();
      set_driver(f, "580.95.05");
    }
    if (s.id == "v1-ampere") f = a100_roce();
    if (s.id == "v1-gke-b200") f = gke_pod();
    PlanOptions o;
    o.stack = s.id;
    o.consumer = s.consumers.front();
    auto p = make_plan(f, recipe(), o);
    EXPECT_TRUE(p) << s.id << ": " << (p ? "" : p.error().text());
  }
}

}  // namespace
}  // namespace ep
