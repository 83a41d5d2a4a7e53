#include "verify/verify.h"

#include <cstdlib>

using namespace ep;

namespace {
VerifyItem item(Verdict v) {
  return {"x", "x", "gate", {v, "because"}, {}, {}};
}
}  // namespace

TEST(Verify, SummaryIsTheWorstAndNeverPassWithoutEvidence) {
  EXPECT_EQ(summary({}).verdict, Verdict::unknown);
  EXPECT_EQ(summary({item(Verdict::skip)}).verdict, Verdict::skip);
  EXPECT_EQ(summary({item(Verdict::pass), item(Verdict::skip)}).verdict, Verdict::pass);
  EXPECT_EQ(summary({item(Verdict::pass), item(Verdict::unknown)}).verdict, Verdict::unknown);
  EXPECT_EQ(summary({item(Verdict::unknown), item(Verdict::fail)}).verdict, Verdict::fail);
  EXPECT_EQ(summary({item(Verdict::warn), item(Verdict::not_run)}).verdict, Verdict::warn);
}

TEST(Verify, ExitCodes) {
  VerifyReport r;
  for (auto [v, code] : {std::pair{Verdict::pass, 0},
                         {Verdict::warn, 0},
                         {Verdict::fail, 1},
                         {Verdict::unknown, 3},
                         {Verdict::not_run, 3},
                         {Verdict::skip, 3}}) {
    r.overall.verdict = v;
    EXPECT_EQ(r.exit_code(), code);
  }
  r.interrupted = true;
  EXPECT_EQ(r.exit_code(), 5);
}

TEST(Verify, BusyGpuClosesTheGate) {
  Facts f;
  Gpu g;
  g.index = 0;
  g.in_use = known(true, "probe:apps");
  f.gpus = {g};
  f.limits.shm_bytes = known<uint64_t>(8ull << 30, "/dev/shm");
  f.cpu.memory_available_bytes = known<uint64_t>(64ull << 30, "/proc/meminfo");
  VerifyOptions o;
  o.level = 2;
  o.bench.gpu = true;
  auto r = verify(f, o);
  EXPECT_EQ(r.overall.verdict, Verdict::fail);
  EXPECT_FALSE(r.bench.has_value());
  EXPECT_EQ(r.items.back().id, "gate.idle");
}

TEST(Verify, SmallShmClosesTheGate) {
  Facts f;
  f.limits.shm_bytes = known<uint64_t>(64u << 20, "/dev/shm");
  f.cpu.memory_available_bytes = known<uint64_t>(64ull << 30, "/proc/meminfo");
  VerifyOptions o;
  o.level = 2;
  auto r = verify(f, o);
  EXPECT_EQ(r.overall.verdict, Verdict::fail);
  EXPECT_FALSE(r.bench.has_value());
}

TEST(Verify, TheLocalLaneHasNoLevelsBetweenNodes) {
  Facts f;
  f.limits.shm_bytes = known<uint64_t>(8ull << 30, "/dev/shm");
  f.cpu.memory_available_bytes = known<uint64_t>(64ull << 30, "/proc/meminfo");
  VerifyOptions o;
  o.level = 4;
  auto r = verify(f, o);
  EXPECT_EQ(r.items.back().id, "level.4");
  EXPECT_EQ(r.items.back().outcome.verdict, Verdict::not_run);
  EXPECT_EQ(r.exit_code(), 3);
}

TEST(Verify, WhatNicsLackKeepsNoTestInsideOneNodeFromRunning) {
  Facts f;
  Gpu g;
  g.index = 0;
  g.name = known<std::string>("NVIDIA H200", "x");
  g.compute_capability = known(90, "x");
  g.in_use = known(true, "probe:apps");
  f.gpus = {g};
  f.rdma_readable = known(true, "/sys/class/infiniband");
  f.driver.version = known<std::string>("580.95.05", "/proc/driver/nvidia/version");
  VerifyOptions o;
  o.lane = "v1";
  o.level = 2;
  const auto one = verify(f, o);
  bool warns = false;
  for (const auto& i : one.items) {
    warns |= i.id == "ib.devices" && i.outcome.verdict == Verdict::warn;
    if (i.id != "krn.dmabuf") continue;
    EXPECT_EQ(i.outcome.verdict, Verdict::skip) << i.outcome.reason;
  }
  ASSERT_TRUE(warns) << "no failure of level 2, and not passed over";
  for (const auto& i : one.items) EXPECT_NE(i.id, "gate.level1") << "closed by what only NICs need";
  EXPECT_EQ(one.items.back().id, "gate.idle");
  o.level = 3;
  const auto two = verify(f, o);
  EXPECT_EQ(two.items.back().id, "gate.level1");
  bool fails = false;
  for (const auto& i : two.items) {
    if (i.id != "krn.dmabuf") continue;
    EXPECT_EQ(i.outcome.verdict, Verdict::unknown) << "between nodes it matters";
  }
  for (const auto& i : two.items) fails |= i.id == "ib.devices" && i.outcome.verdict == Verdict::fail;
  EXPECT_TRUE(fails);
}
