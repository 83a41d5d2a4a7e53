// The exchange at a shape large enough that threads and ranks really run side by side: same bits for any
// number of threads and any set of copy functions. (The reference itself is compared in the check case.)
#include "cpu/exchange.h"

#include <gtest/gtest.h>

#include <cstring>

#include "cpu/rank_data.h"

namespace ep::engine::cpu {
namespace {

/// Hash of everything all ranks received and combined.
uint64_t run_once(const Shape& shape, const char* copy, int threads, bool weighted) {
  const CopyOps* ops = copy_ops(copy);
  if (ops == nullptr) return 0;
  Place place;
  EXPECT_EQ(Place::make(shape, Backing::kMemfd, sizeof(uint64_t) * shape.ranks, place), "");
  auto* hashes = reinterpret_cast<uint64_t*>(place.samples.data());
  WorldOptions options;
  options.ranks = shape.ranks;
  const Outcome outcome = run_world(place.control(), options, [&](Member& member) {
    RankData data(member, place, *ops);
    const std::string error = data.prepare(Pattern::kMasked, 5, weighted);
    if (!error.empty()) throw std::runtime_error(error);
    Team team(threads);
    Exchange exchange(member, place, *ops, team);
    exchange.dispatch(data.source());
    data.check_received();
    exchange.combine(data.source(), data.out(), weighted);
    data.check_combined();
    const int me = member.rank();
    for (const Region& region : {place.plan.recv_x, place.plan.recv_scale, place.plan.recv_meta}) {
      hashes[me] = mix64(hashes[me] + hash_row(place.at(me, region), region.bytes));
    }
    hashes[me] = mix64(hashes[me] + hash_row(data.out(), data.out_bytes()));
    member.meet();
    return true;
  });
  EXPECT_EQ(outcome.kind, Outcome::kOk) << outcome.text;
  uint64_t all = 0;
  for (int r = 0; r < shape.ranks; ++r) {
    EXPECT_EQ(place.control().rank[r].mismatches, 0u) << place.control().rank[r].message;
    EXPECT_GT(place.control().rank[r].rows_checked, 0u);
    all = mix64(all + hashes[r]);
  }
  return all;
}

TEST(Exchange, SameBitsForAnyNumberOfThreadsAndAnyCopyFunctions) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp8}) {
    Shape shape;
    shape.ranks = 4;
    shape.hidden = 1040;  // no whole number of cache lines
    shape.experts = 30;
    shape.topk = 6;
    shape.dtype = dtype;
    shape.max_tokens = 150;
    set_tokens(shape, Pattern::kMasked);
    for (const bool weighted : {false, true}) {
      const uint64_t want = run_once(shape, "plain", 1, weighted);
      ASSERT_NE(want, 0u);
      for (const char* copy : {"plain", "sse2", "avx2", "avx512"}) {
        if (copy_ops(copy) == nullptr) {
          std::printf("skipped: this CPU cannot run %s\n", copy);
          continue;
        }
        for (int threads = 1; threads <= 4; ++threads) {
          EXPECT_EQ(run_once(shape, copy, threads, weighted), want) << copy << " threads " << threads;
        }
      }
    }
  }
}

TEST(Team, EveryThreadWorksOnceARound) {
  for (int threads = 1; threads <= 5; ++threads) {
    Team team(threads);
    std::vector<int> calls(static_cast<size_t>(threads));
    for (int round = 0; round < 100; ++round) {
      team.run([&](int i) { ++calls[static_cast<size_t>(i)]; });
    }
    EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(threads), 100));
  }
}

TEST(Memory, SharedMemoryLeavesNoNameAndBudgetsAreBounded) {
  for (const Backing backing : {Backing::kMemfd, Backing::kPosix}) {
    Mapping memory;
    ASSERT_EQ(Mapping::shared(backing, 1 << 20, memory), "");
    ASSERT_EQ(memory.reserve(), "");
    for (size_t i = 0; i < memory.size(); i += 4096) ASSERT_EQ(memory.data()[i], 0);
    EXPECT_GT(memory_budget(backing).bytes, 0u);
  }
  EXPECT_LE(memory_budget(Backing::kPosix).bytes, memory_budget(Backing::kMemfd).bytes + (64 << 20));
  Mapping absurd;
  const std::string error = Mapping::anonymous(size_t{1} << 60, absurd);
  EXPECT_NE(error.find("private memory"), std::string::npos);
  EXPECT_EQ(absurd.data(), nullptr);
}

}  // namespace
}  // namespace ep::engine::cpu
