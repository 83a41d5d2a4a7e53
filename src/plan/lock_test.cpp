// The lock: wheels with their hashes, the same bytes for the same question, and what makes it stale.
#include "plan/lock.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/fact_scope.h"
#include "plan/hosts_for_test.h"
#include "plan/wheels.h"

namespace ep {
namespace {

Planned planned(const Recipe& recipe, std::vector<std::string> with = {}, const char* arch = nullptr) {
  PlanOptions o;
  o.lane = "v2";
  o.consumer = "sglang";
  o.with = std::move(with);
  Facts facts = test::h100_infiniband();
  facts.cuda.clear();
  test::add_cuda(facts, "13.1");
  test::add_driver(facts, "580.95.05", true, "");  // CUDA 13 needs it
  if (arch) facts.os.architecture = known(std::string(arch), "test");
  auto p = make_plan(facts, recipe, o);
  EXPECT_TRUE(p) << (p ? "" : p.error().text());
  return p ? *p : Planned{};
}
Recipe recipe() {
  auto r = load_recipe("", condition_names());
  EXPECT_TRUE(r) << (r ? "" : r.error().text());
  return r ? *r : Recipe{};
}
size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(Lock, NamesTheWheelsOfThisMachineWithTheirHashes) {
  const Recipe r = recipe();
  const std::string text = lock_text(planned(r));
  EXPECT_EQ(count(text, "nvidia_nccl_cu13-2.30.7-py3-none-manylinux_2_18_x86_64.whl "), 1u) << text;
  EXPECT_EQ(count(text, "nvidia_nccl_cu12"), 0u) << "another package";
  EXPECT_EQ(count(text, "aarch64.whl"), 0u) << "another machine";
  EXPECT_GE(count(text, "sgl_deep_ep-0.1.2-cp312"), 1u);
  EXPECT_GE(count(text, "torch-2.13.0-cp312"), 1u);
  EXPECT_EQ(text, lock_text(planned(recipe()))) << "the same bytes";
  EXPECT_GE(count(lock_text(planned(r, {}, "aarch64")), "aarch64.whl"), 3u);
}

// What pip would resolve on its own is in the lock: each wheel with version, origin and hash, and none that
// the stack takes from elsewhere.
TEST(Lock, HoldsWhatTorchDependsOn) {
  const Recipe r = recipe();
  const std::string text = lock_text(planned(r));
  for (const char* name : {"nvidia-cublas", "nvidia-cudnn-cu13", "triton", "numpy", "setuptools", "jinja2"}) {
    const size_t at = text.find(std::string("[[wheel]]\nid = \"") + name + "\"\nversion = \"");
    ASSERT_NE(at, std::string::npos) << name;
    const std::string block = text.substr(at, text.find("]\n", at + 9) - at);
    EXPECT_NE(block.find("origin = \""), std::string::npos) << block;
    EXPECT_NE(block.find(".whl "), std::string::npos) << block;
  }
  EXPECT_EQ(text.find("2.29.7"), std::string::npos) << "the NCCL that torch pins";
  EXPECT_EQ(count(text, "id = \"torch\""), 1u);
}

// Installed or not, the question is the same and so is the answer.
TEST(Lock, DoesNotDependOnWhatIsInstalled) {
  const Recipe r = recipe();
  const Planned now = planned(r);
  Planned later = now;
  later.plan.steps.clear();
  EXPECT_EQ(lock_text(now), lock_text(later));
}

// torch of an index of its own decides on its dependencies: the lock says so instead of looking complete.
TEST(Lock, SaysWhatItCannotPin) {
  const Recipe r = recipe();
  Planned p = planned(r);
  p.torch_index = "https://example.org/whl/cu129";
  const std::string text = lock_text(p);
  EXPECT_NE(text.find("origin = \"https://example.org/whl/cu129\"\nunpinned = "), std::string::npos) << text;
  // A release without a hash on record.
  const std::string other = lock_text(planned(r, {"nvshmem=3.3.20"}));
  const size_t at = other.find("id = \"nvshmem\"");
  ASSERT_NE(at, std::string::npos) << other;
  EXPECT_NE(other.substr(at, 300).find("unpinned = "), std::string::npos) << other.substr(at, 300);
}

TEST(Lock, AnotherHashMakesItStale) {
  const Recipe r = recipe();
  const Planned now = planned(r);
  const std::string text = lock_text(now);
  EXPECT_TRUE(check_lock(text, "epready.lock", now));
  std::string other = text;
  const size_t at = other.find(".whl ") + 5;
  other[at] = other[at] == '0' ? '1' : '0';
  auto stale = check_lock(other, "epready.lock", now);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().kind, ErrorKind::drifted);
  EXPECT_FALSE(check_lock(text, "epready.lock", planned(r, {"nvshmem=3.3.24"})));
}

TEST(Lock, WheelsAreInstalledByHash) {
  const Recipe r0 = recipe();
  const Planned p = planned(r0);
  std::set<std::string> names;
  for (const auto& s : p.plan.steps)
    for (const auto& a : s.actions)
      if (const auto* pip = std::get_if<PipInstall>(&a); pip && s.component != "python") {
        for (const auto& r : pip->requirements) {
          EXPECT_NE(r.find(" --hash=sha256:"), std::string::npos) << s.id << ": " << r;
          EXPECT_NE(r.find("=="), std::string::npos) << s.id << ": " << r;
          names.insert(requirement_name(r));
        }
      }
  for (const char* name :
       {"torch", "nvidia-nccl-cu13", "nvidia-nvshmem-cu13", "sgl-deep-ep", "nvidia-cublas", "numpy"})
    EXPECT_TRUE(names.count(name)) << name;
}

}  // namespace
}  // namespace ep
