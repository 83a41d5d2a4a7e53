// Layout: who owns what, where rows go, what sizes say; each property against the plainest possible
// restatement.
#include "layout.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace ep::engine {
namespace {

Shape make_shape(int ranks, int tokens, int experts, int topk) {
  Shape shape;
  shape.ranks = ranks;
  shape.experts = experts;
  shape.topk = topk;
  shape.hidden = 128;
  shape.set_even_tokens(tokens);
  return shape;
}

std::vector<int32_t> random_ids(const Shape& shape, int tokens, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids;
  for (int i = 0; i < tokens * shape.topk; ++i) {
    ids.push_back(static_cast<int32_t>(random() % (static_cast<unsigned>(shape.experts) + 1)) - 1);
  }
  return ids;
}

TEST(Layout, EveryExpertHasOneOwnerAndBlocksAreContiguous) {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    for (const int experts : {1, 2, 3, 7, 8, 63, 64, 65, 100, 256, 257, 4096}) {
      const Shape shape = make_shape(ranks, 1, experts, 1);
      int next = 0, most = 0, least = experts;
      for (int r = 0; r < ranks; ++r) {
        ASSERT_EQ(shape.expert_begin(r), next);
        for (int i = 0; i < shape.experts_of(r); ++i) ASSERT_EQ(shape.expert_rank(next + i), r);
        next += shape.experts_of(r);
        most = std::max(most, shape.experts_of(r));
        least = std::min(least, shape.experts_of(r));
      }
      ASSERT_EQ(next, experts);
      ASSERT_LE(most - least, 1);
      ASSERT_EQ(most, shape.max_local_experts());
    }
  }
}

TEST(Layout, MaskIsTheSetOfOwners) {
  for (int ranks : {1, 2, 3, 8, 64}) {
    const Shape shape = make_shape(ranks, 200, 67, 9);
    const auto ids = random_ids(shape, 200, 5);
    for (int t = 0; t < 200; ++t) {
      std::set<int> owners;
      for (int k = 0; k < shape.topk; ++k) {
        const int id = ids[static_cast<size_t>(t * shape.topk + k)];
        if (id >= 0) owners.insert(shape.expert_rank(id));
      }
      uint64_t mask = 0;
      for (const int owner : owners) mask |= uint64_t{1} << owner;
      EXPECT_EQ(shape.rank_mask(ids.data() + t * shape.topk), mask);
    }
  }
}

TEST(Layout, SlotsOfAllSourcesFillEachReceiverWithoutGapsInOrder) {
  Shape shape = make_shape(5, 40, 23, 4);
  for (int r = 0; r < 5; ++r) shape.tokens[r] = 40 - 9 * r;  // 40 31 22 13 4
  std::vector<SourceLayout> layouts;
  std::vector<int32_t> counts(25);
  for (int s = 0; s < 5; ++s) {
    layouts.push_back(source_layout(shape, s, random_ids(shape, shape.tokens[s], 70 + s).data()));
    for (int d = 0; d < 5; ++d) counts[static_cast<size_t>(s * 5 + d)] = layouts.back().rank_count[d];
  }
  for (int d = 0; d < 5; ++d) {
    int64_t next = 0;
    for (int s = 0; s < 5; ++s) {
      EXPECT_EQ(slot_base(5, counts.data(), s, d), next);
      for (int t = 0; t < shape.tokens[s]; ++t) {
        const int position = layouts[s].position[static_cast<size_t>(t * 5 + d)];
        ASSERT_EQ(position >= 0, (layouts[s].mask[t] >> d & 1) == 1);
        if (position >= 0) {
          ASSERT_EQ(slot_base(5, counts.data(), s, d) + position, next++);
        }
      }
    }
    EXPECT_EQ(slot_base(5, counts.data(), 5, d), next);
    EXPECT_LE(static_cast<size_t>(next), shape.capacity());
  }
}

TEST(Layout, ExpertCountsCountSelectionsAndReuseLeavesNothingBehind) {
  const Shape shape = make_shape(4, 30, 10, 3);
  const auto first = random_ids(shape, 30, 1), second = random_ids(shape, 30, 2);
  SourceLayout reused;
  source_layout(shape, 1, first.data(), reused);
  source_layout(shape, 1, second.data(), reused);
  const SourceLayout fresh = source_layout(shape, 1, second.data());
  EXPECT_EQ(reused.mask, fresh.mask);
  EXPECT_EQ(reused.position, fresh.position);
  EXPECT_EQ(reused.rank_count, fresh.rank_count);
  EXPECT_EQ(reused.expert_count, fresh.expert_count);
  std::map<int, int> count;
  for (const int id : second) ++count[id];
  for (int e = 0; e < 10; ++e) EXPECT_EQ(fresh.expert_count[e], count[e]);
}

TEST(Layout, SizesOfTheReferenceShape) {
  Shape shape = make_shape(8, 4096, 256, 8);
  shape.hidden = 7168;
  EXPECT_EQ(shape.row_bytes(), 14336u);
  EXPECT_EQ(shape.scale_row_bytes(), 0u);
  shape.dtype = Dtype::kFp8;
  EXPECT_EQ(shape.row_bytes() + shape.scale_row_bytes(), 7392u);  // H + 4 * H / 128
  EXPECT_EQ(shape.combine_row_bytes(), 14336u);
  EXPECT_EQ(shape.meta_bytes(), 128u);
  EXPECT_EQ(shape.capacity(), 8u * 4096u);
  shape.hidden = 144;  // a scale group that is cut off, padded to a vector
  EXPECT_EQ(shape.scale_groups(), 2);
  EXPECT_EQ(shape.scale_row_bytes(), 16u);
}

TEST(Layout, ArenaRegionsAreApartAlignedAndGuarded) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp8}) {
    Shape shape = make_shape(3, 7, 5, 2);
    shape.dtype = dtype;
    const ArenaPlan plan = ArenaPlan::of(shape);
    size_t end = 0;
    for (const Region& region : {plan.recv_x, plan.recv_scale, plan.recv_meta, plan.y}) {
      EXPECT_EQ(region.offset % kRegionAlign, 0u);
      EXPECT_GE(region.offset, end + kGuardBytes);
      end = region.offset + region.bytes + kGuardBytes;
    }
    EXPECT_LE(end, plan.total);
    EXPECT_EQ(plan.recv_x.bytes, 21 * shape.row_bytes());
    EXPECT_EQ(plan.y.bytes, 21 * shape.combine_row_bytes());
  }
}

TEST(Layout, MetaRecordHoldsLocalIdsAndWeightsAndZeros) {
  const Shape shape = make_shape(2, 4, 6, 4);  // rank 1 owns experts 3..5
  const int32_t ids[] = {5, -1, 0, 3};
  const float weights[] = {0.5f, 9.0f, 0.25f, 0.125f};
  std::vector<uint32_t> record(shape.meta_bytes() / 4, 0xeeeeeeeeu);
  write_meta(shape, 0, 3, 1, ids, weights, record.data());
  const std::vector<uint32_t> want = {
      0, 3, 2, 0xffffffffu, 0xffffffffu, 0, float_bits(0.5f), 0, 0, float_bits(0.125f), 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(record, want);
  EXPECT_EQ(rank_weight(shape, 1, ids, weights), 0.625f);
  EXPECT_EQ(rank_weight(shape, 0, ids, weights), 0.25f);
}

TEST(Layout, ValidateNamesTheFlagAndTheReason) {
  EXPECT_EQ(validate(make_shape(4, 2048, 256, 8)), "");
  EXPECT_NE(validate(make_shape(65, 1, 256, 8)).find("--ranks 65"), std::string::npos);
  EXPECT_NE(validate(make_shape(4, 1, 256, 17)).find("--num-topk 17"), std::string::npos);
  EXPECT_NE(validate(make_shape(4, 1, 4, 5)).find("more than --num-experts 4"), std::string::npos);
  Shape odd = make_shape(4, 1, 8, 2);
  odd.hidden = 100;
  EXPECT_NE(validate(odd).find("multiple of 8"), std::string::npos);
  odd.hidden = 104;
  EXPECT_EQ(validate(odd), "");
  odd.dtype = Dtype::kFp8;
  EXPECT_NE(validate(odd).find("multiple of 16"), std::string::npos);
  Shape more = make_shape(2, 4, 8, 2);
  more.tokens[1] = 5;
  EXPECT_NE(validate(more).find("tokens of a rank 5"), std::string::npos);
}

}  // namespace
}  // namespace ep::engine
