// A second opinion on the reference: one example by hand, and a search that knows no slots.
#include "oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "dtype.h"
#include "pattern.h"

namespace ep::engine {
namespace {

// Two ranks, four experts (0 1 on rank 0, 2 3 on rank 1), top-2.
//   rank 0: token 0 -> experts 0, 1    token 1 -> experts 1, 3
//   rank 1: token 0 -> experts 2, -1   token 1 -> -1, -1   token 2 -> experts 3, 0
class ByHand : public testing::Test {
 protected:
  void SetUp() override {
    shape_.ranks = 2;
    shape_.experts = 4;
    shape_.topk = 2;
    shape_.hidden = 8;
    shape_.max_tokens = 3;
    shape_.tokens[0] = 2;
    shape_.tokens[1] = 3;
    views_ = {{x0_, nullptr, ids0_, w0_}, {x1_, nullptr, ids1_, w1_}};
  }
  Shape shape_;
  uint16_t x0_[16] = {10, 10, 10, 10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11, 11, 11};
  uint16_t x1_[24] = {20, 20, 20, 20, 20, 20, 20, 20, 21, 21, 21, 21,
                      21, 21, 21, 21, 22, 22, 22, 22, 22, 22, 22, 22};
  int32_t ids0_[4] = {0, 1, 1, 3}, ids1_[6] = {2, -1, -1, -1, 3, 0};
  float w0_[4] = {0.5f, 0.25f, 2.0f, 4.0f}, w1_[6] = {3.0f, 0, 0, 0, 1.0f, 0.125f};
  std::vector<SourceView> views_;
};

TEST_F(ByHand, Dispatch) {
  const Received r0 = oracle_dispatch(shape_, views_, 0), r1 = oracle_dispatch(shape_, views_, 1);
  const auto first_values = [](const Received& r) {
    std::vector<int> out;
    for (size_t i = 0; i < r.x.size(); i += 16) out.push_back(r.x[i]);
    return out;
  };
  EXPECT_EQ(first_values(r0), (std::vector<int>{10, 11, 22}));
  EXPECT_EQ(first_values(r1), (std::vector<int>{11, 20, 22}));
  EXPECT_EQ(r0.rows_from, (std::vector<int32_t>{2, 1}));
  EXPECT_EQ(r1.rows_from, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(r0.expert_count, (std::vector<int32_t>{2, 2}));
  EXPECT_EQ(r1.expert_count, (std::vector<int32_t>{1, 2}));
  uint32_t last[16];
  std::memcpy(last, r0.meta.data() + 2 * 64, 64);  // rank 1 token 2: local ids -1, 0
  EXPECT_EQ(last[0], 1u);
  EXPECT_EQ(last[1], 2u);
  EXPECT_EQ(static_cast<int32_t>(last[2]), -1);
  EXPECT_EQ(last[3], 0u);
  EXPECT_EQ(bits_float(last[5]), 0.125f);
}

TEST_F(ByHand, Combine) {
  const auto bf = [](float f) { return float_to_bf16(f); };
  std::vector<uint16_t> y0, y1;
  for (const float f : {1.0f, 2.0f, 4.0f}) y0.insert(y0.end(), 8, bf(f));     // slots: 0/0, 0/1, 1/2
  for (const float f : {16.0f, 32.0f, 64.0f}) y1.insert(y1.end(), 8, bf(f));  // slots: 0/1, 1/0, 1/2
  const std::vector<const void*> y = {y0.data(), y1.data()};
  const auto values = [&](int source, bool weighted) {
    std::vector<float> out;
    const auto rows = oracle_combine(shape_, views_, y, source, weighted);
    for (size_t i = 0; i < rows.size(); i += 8) out.push_back(bf16_to_float(rows[i]));
    return out;
  };
  EXPECT_EQ(values(0, false), (std::vector<float>{1, 2 + 16}));
  EXPECT_EQ(values(1, false), (std::vector<float>{32, 0, 4 + 64}));
  EXPECT_EQ(values(0, true), (std::vector<float>{0.75f * 1, 2 * 2 + 4 * 16}));
  EXPECT_EQ(values(1, true), (std::vector<float>{3 * 32, 0, 0.125f * 4 + 1 * 64}));
}

TEST(Oracle, SumsInFloatAscendingFromPlusZeroWithOneRounding) {
  const auto one = [](std::vector<float> values, const float* weights) {
    std::vector<uint16_t> bits;
    for (const float v : values) bits.push_back(float_to_bf16(v));
    std::vector<const uint16_t*> rows;
    for (const auto& b : bits) rows.push_back(&b);
    uint16_t out = 0xeeee;
    oracle_combine_row(rows.data(), weights, static_cast<int>(rows.size()), 1, &out);
    return out;
  };
  // In bf16 steps 1 + 2^-8 would stay 1 twice; in float the two halves add up to a step.
  const float step = std::ldexp(1.0f, -7), half = std::ldexp(1.0f, -8);
  EXPECT_EQ(one({1.0f, half, half}, nullptr), float_to_bf16(1.0f + step));
  // 2^24 + 1 is lost in float: ascending order gives 0, descending would give 1.
  const float big = std::ldexp(1.0f, 24);
  EXPECT_EQ(one({1.0f, big, -big}, nullptr), float_to_bf16(0.0f));
  EXPECT_EQ(one({big, -big, 1.0f}, nullptr), float_to_bf16(1.0f));
  EXPECT_EQ(one({}, nullptr), 0x0000);
  EXPECT_EQ(one({-0.0f}, nullptr), 0x0000) << "the sum begins at +0";
  // Fused: w * x = 1 + 2^-7 + 2^-23 + 2^-30 loses its last term when it is rounded before the addition.
  const float w[] = {1.0f, 1.0f + std::ldexp(1.0f, -23)}, x = 1.0f + std::ldexp(1.0f, -7);
  EXPECT_EQ(one({-x, x}, w), float_to_bf16(std::ldexp(1.0f, -23) + std::ldexp(1.0f, -30)));
}

// Follows each token through the metadata alone, without counts or slots.
TEST(Oracle, AgreesWithASearchOverRecords) {
  for (const Pattern pattern : {Pattern::kUniform, Pattern::kMasked, Pattern::kHot, Pattern::kUneven}) {
    Shape shape;
    shape.ranks = 5;
    shape.experts = 13;
    shape.topk = 4;
    shape.hidden = 32;
    shape.max_tokens = 21;
    shape.dtype = Dtype::kFp8;
    set_tokens(shape, pattern);
    std::vector<Routing> routing;
    std::vector<std::vector<uint64_t>> x, scale;
    std::vector<SourceView> views;
    for (int r = 0; r < 5; ++r) {
      routing.push_back(make_routing(shape, r, pattern, 11));
      x.emplace_back(21 * 4);
      scale.emplace_back(21 * 2);
      fill_rows(shape, r, 11, x[r].data(), scale[r].data());
    }
    for (int r = 0; r < 5; ++r) {
      views.push_back(
          {x[r].data(), scale[r].data(), routing[r].topk_idx.data(), routing[r].topk_weight.data()});
    }
    std::map<std::pair<int, int>, std::map<int, std::vector<uint16_t>>>
        returned;  // (source, token) -> rank -> row
    std::vector<std::vector<uint16_t>> y(5);
    std::vector<const void*> pointers;
    for (int r = 0; r < 5; ++r) {
      const Received got = oracle_dispatch(shape, views, r);
      for (size_t slot = 0; slot < got.rows; ++slot) {
        uint32_t record[16];
        std::memcpy(record, got.meta.data() + slot * 64, 64);
        const int source = static_cast<int>(record[0]), token = static_cast<int>(record[1]);
        EXPECT_EQ(std::memcmp(got.x.data() + slot * 32, x[source].data() + token * 4, 32), 0);
        EXPECT_EQ(std::memcmp(got.scale.data() + slot * 16, scale[source].data() + token * 2, 16), 0);
        std::vector<uint16_t> row(32);
        fill_combine_row(shape, 11, r, source, token, row.data());
        y[r].insert(y[r].end(), row.begin(), row.end());
        const bool first = returned[{source, token}].emplace(r, row).second;
        ASSERT_TRUE(first) << "a token arrived twice";
      }
      pointers.push_back(y[r].data());
    }
    for (int s = 0; s < 5; ++s) {
      const auto sum = oracle_combine(shape, views, pointers, s, true);
      for (int t = 0; t < shape.tokens[s]; ++t) {
        for (size_t c = 0; c < 32; ++c) {
          float acc = 0;
          for (const auto& [rank, row] : returned[{s, t}]) {
            float weight = 0;
            for (int k = 0; k < 4; ++k) {
              const int id = routing[s].topk_idx[static_cast<size_t>(t * 4 + k)];
              if (id >= 0 && shape.expert_rank(id) == rank)
                weight += routing[s].topk_weight[static_cast<size_t>(t * 4 + k)];
            }
            acc = std::fma(weight, bf16_to_float(row[c]), acc);
          }
          ASSERT_EQ(sum[static_cast<size_t>(t) * 32 + c], float_to_bf16(acc));
        }
      }
    }
  }
}

}  // namespace
}  // namespace ep::engine
