// Test data must be able to show an error: vectors differ, orders matter, shifted guards and moved words are
// seen.
#include "pattern.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "expect.h"
#include "oracle.h"

namespace ep::engine {
namespace {

Shape make_shape(int ranks, int tokens, int experts, int topk, Pattern pattern) {
  Shape shape;
  shape.ranks = ranks;
  shape.max_tokens = tokens;
  shape.experts = experts;
  shape.topk = topk;
  shape.hidden = 256;
  set_tokens(shape, pattern);
  return shape;
}

TEST(Pattern, VectorsDifferByPlaceAndCanBeRead) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp8}) {
    std::set<std::string> seen;
    for (int rank : {0, 1, 63}) {
      for (int token : {0, 1, 255, 256, 8191}) {
        for (int v : {0, 1, 2, 447, 895}) {
          const Vector16 value = row_vector(dtype, 7, rank, token, v);
          seen.insert(std::string(reinterpret_cast<const char*>(&value), sizeof value));
          uint64_t code = 0;
          ASSERT_TRUE(read_code(dtype, value, code));
          EXPECT_EQ(code, vector_code(7, rank, token, v));
          EXPECT_EQ(code & 0xff, static_cast<uint64_t>(rank));
          EXPECT_EQ(code >> 8 & 0xffffff, static_cast<uint64_t>(token));
          EXPECT_EQ(code >> 32 & 0xffff, static_cast<uint64_t>(v));
        }
      }
    }
    EXPECT_EQ(seen.size(), 75u);
    Vector16 poison;
    std::memset(&poison, kPoisonByte, sizeof poison);
    uint64_t code = 0;
    EXPECT_FALSE(read_code(dtype, poison, code));
  }
  EXPECT_NE(vector_code(1, 2, 3, 4), vector_code(2, 2, 3, 4))
      << "a stale exchange must not look like the present one";
}

TEST(Pattern, RoutingIsLegalInEveryPattern) {
  for (const PatternInfo& info : all_patterns()) {
    for (const auto& [experts, topk] : {std::pair{256, 8}, {7, 7}, {3, 2}, {16, 16}, {1, 1}}) {
      const Shape shape = make_shape(4, 100, experts, topk, info.pattern);
      ASSERT_EQ(validate(shape), "") << info.name;
      for (int r = 0; r < 4; ++r) {
        const Routing routing = make_routing(shape, r, info.pattern, 3);
        ASSERT_EQ(routing.topk_idx.size(), static_cast<size_t>(shape.tokens[r] * topk));
        for (int t = 0; t < shape.tokens[r]; ++t) {
          std::set<int> ids;
          float sum = 0;
          int valid = 0;
          for (int k = 0; k < topk; ++k) {
            const int id = routing.topk_idx[static_cast<size_t>(t * topk + k)];
            const float weight = routing.topk_weight[static_cast<size_t>(t * topk + k)];
            ASSERT_GE(id, -1);
            ASSERT_LT(id, experts);
            if (id < 0) {
              ASSERT_EQ(weight, 0.0f);
              continue;
            }
            ++valid;
            ASSERT_TRUE(ids.insert(id).second) << "an expert was selected twice";
            ASSERT_GT(weight, 0.0f);
            sum += weight;
          }
          if (valid > 0) {
            ASSERT_NEAR(sum, 1.0f, 1e-5f);
          }
        }
        EXPECT_EQ(make_routing(shape, r, info.pattern, 3).topk_idx, routing.topk_idx);
      }
    }
  }
}

TEST(Pattern, PatternsAreWhatTheySay) {
  const auto ids_of = [](Pattern pattern) {
    return make_routing(make_shape(4, 400, 64, 8, pattern), 0, pattern, 1).topk_idx;
  };
  const auto hot = ids_of(Pattern::kHot);
  for (size_t t = 0; t < 400; ++t) EXPECT_EQ(hot[t * 8], 0);
  const auto masked = ids_of(Pattern::kMasked);
  int minus = 0, empty = 0;
  for (size_t t = 0; t < 400; ++t) {
    int here = 0;
    for (size_t k = 0; k < 8; ++k) here += masked[t * 8 + k] < 0;
    minus += here;
    empty += here == 8;
  }
  EXPECT_GT(minus, 800);
  EXPECT_LT(minus, 1600);
  EXPECT_GT(empty, 5);
  for (const int id : ids_of(Pattern::kOneRank)) EXPECT_GE(id, 48);
  const Shape uneven = make_shape(4, 400, 64, 8, Pattern::kUneven);
  EXPECT_EQ(std::set<int>(uneven.tokens, uneven.tokens + 4).size(), 4u);
  const Shape zero = make_shape(4, 400, 64, 8, Pattern::kZero);
  EXPECT_EQ(zero.tokens[0], 400);
  EXPECT_EQ(zero.tokens[1], 0);
  EXPECT_EQ(make_shape(4, 400, 64, 8, Pattern::kAllZero).total_tokens(), 0u);
  // Uniform: distinct ranks of a token for E 256, K 8, R 8 are 5.295 on average (R * (1 -
  // C(E-E/R,K)/C(E,K))).
  const Shape wide = make_shape(8, 4000, 256, 8, Pattern::kUniform);
  double ranks = 0;
  const Routing routing = make_routing(wide, 0, Pattern::kUniform, 9);
  for (int t = 0; t < 4000; ++t)
    ranks += __builtin_popcountll(wide.rank_mask(routing.topk_idx.data() + t * 8));
  EXPECT_NEAR(ranks / 4000, 5.295, 0.06);
}

TEST(Pattern, HashSeesFlipsSwapsAndShifts) {
  std::vector<uint64_t> row(64);
  std::mt19937_64 random(1);
  for (auto& word : row) word = random();
  const uint64_t hash = hash_row(row.data(), 512);
  for (int bit = 0; bit < 64 * 64; ++bit) {
    row[bit / 64] ^= uint64_t{1} << bit % 64;
    ASSERT_NE(hash_row(row.data(), 512), hash);
    row[bit / 64] ^= uint64_t{1} << bit % 64;
  }
  std::swap(row[3], row[40]);
  EXPECT_NE(hash_row(row.data(), 512), hash);
  std::swap(row[3], row[40]);
  EXPECT_EQ(hash_row(row.data(), 512), hash);
  std::rotate(row.begin(), row.begin() + 2, row.end());
  EXPECT_NE(hash_row(row.data(), 512), hash);
}

TEST(Pattern, GuardsSeeOneByteAndAShift) {
  std::vector<uint64_t> guard(512);
  fill_guard(guard.data(), 4096);
  EXPECT_EQ(check_guard(guard.data(), 4096), -1);
  reinterpret_cast<char*>(guard.data())[801] ^= 1;
  EXPECT_EQ(check_guard(guard.data(), 4096), 800);
  fill_guard(guard.data(), 4096);
  EXPECT_EQ(check_guard(guard.data() + 2, 4000), 0);
}

// If the order of additions did not matter after rounding, a wrong order in combine could not be seen.
TEST(Pattern, CombineValuesMakeTheOrderVisible) {
  const Shape shape = make_shape(4, 1, 8, 4, Pattern::kUniform);
  std::vector<std::vector<uint16_t>> rows(4, std::vector<uint16_t>(256));
  const uint16_t *up[4], *down[4];
  for (int r = 0; r < 4; ++r) {
    fill_combine_row(shape, 1, r, 0, 0, rows[r].data());
    up[r] = down[3 - r] = rows[r].data();
    for (const uint16_t bits : rows[r]) {
      const float value = std::abs(bf16_to_float(bits));
      ASSERT_GT(value, 0.0f);
      ASSERT_LT(value, 1e9f);
    }
  }
  std::vector<uint16_t> forward(256), backward(256);
  oracle_combine_row(up, nullptr, 4, 256, forward.data());
  oracle_combine_row(down, nullptr, 4, 256, backward.data());
  int different = 0;
  for (size_t c = 0; c < 256; ++c) different += forward[c] != backward[c];
  EXPECT_GT(different, 256 / 16);
}

TEST(Expectation, AgreesWithTheReference) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp8}) {
    Shape shape = make_shape(3, 30, 10, 4, Pattern::kMasked);
    shape.dtype = dtype;
    std::vector<Routing> routing;
    std::vector<std::vector<uint64_t>> x, scale;
    std::vector<SourceView> views;
    for (int r = 0; r < 3; ++r) {
      routing.push_back(make_routing(shape, r, Pattern::kMasked, 4));
      x.emplace_back(30 * shape.row_bytes() / 8);
      scale.emplace_back(30 * shape.scale_row_bytes() / 8 + 1);
      fill_rows(shape, r, 4, x[r].data(), scale[r].data());
    }
    for (int r = 0; r < 3; ++r) {
      views.push_back(
          {x[r].data(), scale[r].data(), routing[r].topk_idx.data(), routing[r].topk_weight.data()});
    }
    std::vector<std::vector<uint16_t>> y(3);
    std::vector<const void*> pointers;
    for (int r = 0; r < 3; ++r) {
      const Expectation expect = Expectation::of(shape, r, Pattern::kMasked, 4, true);
      const Received received = oracle_dispatch(shape, views, r);
      ASSERT_EQ(expect.rows.size(), received.rows);
      EXPECT_EQ(expect.expert_count, received.expert_count);
      y[r].resize(received.rows * 256);
      for (size_t slot = 0; slot < received.rows; ++slot) {
        int32_t source[2];
        std::memcpy(source, received.meta.data() + slot * shape.meta_bytes(), sizeof source);
        EXPECT_EQ(std::pair(source[0], source[1]), expect.rows[slot]);
        EXPECT_EQ(explain_row(shape, 4, source[0], source[1], received.x.data() + slot * shape.row_bytes()),
                  "");
        EXPECT_NE(
            explain_row(shape, 4, source[0], source[1] + 1, received.x.data() + slot * shape.row_bytes()),
            "");
        fill_combine_row(shape, 4, r, source[0], source[1], y[r].data() + slot * 256);
      }
      pointers.push_back(y[r].data());
    }
    for (int r = 0; r < 3; ++r) {
      for (const bool weighted : {false, true}) {
        const Expectation expect = Expectation::of(shape, r, Pattern::kMasked, 4, weighted);
        const auto result = oracle_combine(shape, views, pointers, r, weighted);
        for (size_t t = 0; t < expect.result_hash.size(); ++t) {
          std::vector<uint64_t> row(64);
          std::memcpy(row.data(), result.data() + t * 256, 512);
          EXPECT_EQ(hash_row(row.data(), 512), expect.result_hash[t]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ep::engine
