// The environment before the plan is carried out, and the inside of an image.
#include "plan/ahead.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "host/host.h"
#include "plan/fact_scope.h"
#include "recipe/variables.h"

namespace ep {
namespace {

const Recipe& recipe() {
  static const Recipe r = *load_recipe("", condition_names());
  return r;
}

Facts sample(const char* name) {
  auto host = snapshot_host(std::string("sample/") + name);
  EXPECT_TRUE(host) << name;
  return read_facts(**host);
}

EnvAhead ahead(const Facts& f, const PlanOptions& o = {}) {
  auto planned = make_plan(f, recipe(), o);
  EXPECT_TRUE(planned);
  return environment_ahead(f, *planned, *load_variables(""), Lang::en);
}

std::string value(const EnvAhead& e, const std::string& name) {
  for (const auto& l : e.plan.lines)
    if (l.name == name) return l.value;
  return {};
}

// The fresh A4 has rocep* names, no option, no toolkit, no Python; after the plan it has all of them.
TEST(EnvAhead, AFreshHostGetsTheEnvironmentOfTheFinishedOne) {
  const EnvAhead e = ahead(sample("gcp-a4-fresh"));
  EXPECT_EQ(e.nics.size(), 8u);
  for (const auto& [mark, address] : e.nics) EXPECT_EQ(address.substr(0, 5), "0000:");
  EXPECT_EQ(e.text.find("=rocep"), std::string::npos);
  EXPECT_EQ(value(e, "NVSHMEM_IBGDA_NIC_HANDLER"), "gpu");
  EXPECT_EQ(value(e, "CUDA_HOME"), "/usr/local/cuda-12.9");
  EXPECT_EQ(value(e, "VIRTUAL_ENV"), "/opt/epready/venv");
  EXPECT_EQ(value(e, "NVSHMEM_HCA_PREFIX"), "") << "the names change on the way";
  // With the marks filled in it is the mapping by PCI address that topology derives from today's names.
  std::string mapping = value(e, "DEEP_EP_DEVICE_TO_HCA_MAPPING");
  const Topology t = read_topology(sample("gcp-a4-fresh"));
  for (const auto& [mark, address] : e.nics)
    for (const auto& n : t.nics)
      if (n.address == address) mapping = replace_all(mapping, mark, n.name);
  EXPECT_EQ(mapping, t.strings.deep_ep);
}

TEST(EnvAhead, MarksAreWholeNames) {
  const Facts f = sample("h100-ib");
  const EnvAhead e = ahead(f);
  for (const auto& n : read_topology(f).nics)
    if (!n.address.empty() && n.usable) {
      for (const auto& l : e.plan.lines)
        EXPECT_FALSE(contains(l.value + ",", n.name + ",")) << l.name << " " << l.value;
    }
}

TEST(InsideImage, NothingOfTheHostsUserlandCounts) {
  const Facts pod = sample("gke-a4-pod");  // has git, make, g++, a toolkit and NVIDIA's torch
  auto planned = make_plan(inside_image(pod, "kubernetes", "12.9"), recipe(), {});
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->plan.platform, "gke-cos-pod");
  EXPECT_EQ(image_for(*planned), "nvcr.io/nvidia/pytorch:25.06-py3");
  std::vector<std::string> names;
  for (const auto& s : planned->plan.steps) {
    EXPECT_NE(s.component, "cuda");
    EXPECT_EQ(s.risk == Risk::kernel_options || s.risk == Risk::reboot, false) << s.id;
    for (const auto& a : s.actions)
      if (const auto* p = std::get_if<InstallPackages>(&a)) names = p->names;
  }
  for (const char* want : {"git", "build-essential", "libibverbs-dev", "rdma-core", "cmake", "ninja-build"})
    EXPECT_NE(std::find(names.begin(), names.end(), want), names.end()) << want;
}

TEST(InsideImage, OtherToolkitsGetTheirOwnImage) {
  PlanOptions o;
  o.lane = "v2";
  auto planned = make_plan(inside_image(sample("h100-ib"), "docker", ""), recipe(), o);
  ASSERT_TRUE(planned) << planned.error().text();
  const Choice* cuda = planned->solution.choice("cuda");
  ASSERT_NE(cuda, nullptr);
  EXPECT_EQ(image_for(*planned).find("nvidia/cuda:" + cuda->version), 0u) << image_for(*planned);
}

}  // namespace
}  // namespace ep
