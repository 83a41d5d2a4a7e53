// Every set of copy functions gives the same bytes as the reference and touches nothing else, at every
// alignment that rows can have.
#include "cpu/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "dtype.h"
#include "oracle.h"

namespace ep::engine::cpu {
namespace {

class Copy : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ops_ = copy_ops(GetParam());
    if (ops_ == nullptr) GTEST_SKIP() << "this CPU cannot run " << GetParam();
  }
  const CopyOps* ops_ = nullptr;
  std::mt19937 random_{42};
};

/// Bytes at a chosen distance from a 64-byte boundary, with a margin that must stay as it is.
struct Buffer {
  static constexpr size_t kMargin = 128;
  std::vector<char> memory;
  char* data;
  size_t bytes;
  Buffer(size_t size, size_t offset) : memory(size + 2 * kMargin + 128, 0x5a), bytes(size) {
    data = memory.data() + kMargin;
    data += (64 - reinterpret_cast<uintptr_t>(data) % 64) % 64 + offset;
  }
  bool margin_intact() const {
    const auto intact = [](char c) { return c == 0x5a; };
    return std::all_of(data - 64, data, intact) && std::all_of(data + bytes, data + bytes + 48, intact);
  }
};

TEST_P(Copy, CopiesFillsAndFansOut) {
  for (const size_t bytes : {0, 16, 32, 48, 64, 128, 176, 256, 272, 1040, 14336}) {
    for (size_t to = 0; to < 64; to += 16) {
      for (size_t from = 0; from < 64; from += 16) {
        Buffer src(bytes, from), dst(bytes, to), other(bytes, from);
        for (size_t i = 0; i < bytes; ++i) src.data[i] = static_cast<char>(random_());
        ops_->copy(dst.data, src.data, bytes);
        ops_->fence();
        ASSERT_EQ(std::memcmp(dst.data, src.data, bytes), 0) << bytes << " to " << to << " from " << from;
        ops_->fill(dst.data, 0xff, bytes);
        ASSERT_TRUE(std::all_of(dst.data, dst.data + bytes, [](char c) { return c == char(0xff); }));
        void* both[] = {dst.data, other.data};
        ops_->fan_out(both, 2, src.data, bytes);
        ops_->fence();
        ASSERT_EQ(std::memcmp(dst.data, src.data, bytes), 0);
        ASSERT_EQ(std::memcmp(other.data, src.data, bytes), 0);
        ASSERT_TRUE(dst.margin_intact() && other.margin_intact());
      }
    }
  }
}

// All bit patterns, NaN and denormals among them, so that rounding and its exceptions are the reference's.
TEST_P(Copy, CombinesToTheReferencesBits) {
  for (const size_t hidden : {8, 16, 24, 32, 40, 72, 136, 512, 7168}) {
    for (const int count : {0, 1, 2, 3, 4, 5, 8, 9, 33, 64}) {
      for (const size_t offset : {0, 16, 48}) {
        std::vector<std::vector<uint16_t>> rows(static_cast<size_t>(count), std::vector<uint16_t>(hidden));
        std::vector<const uint16_t*> pointers;
        std::vector<float> weights;
        for (auto& row : rows) {
          for (auto& bits : row) {
            bits = static_cast<uint16_t>(random_());
            // One NaN at most for each value: which payload survives two is the instruction's choice.
            if (&row != &rows[0] && (bits & 0x7f80) == 0x7f80) bits &= 0xbfff;
          }
          pointers.push_back(row.data());
          weights.push_back(static_cast<float>(random_() % 1000) / 250.0f - 1.0f);
        }
        for (const float* w :
             {static_cast<const float*>(nullptr), static_cast<const float*>(weights.data())}) {
          std::vector<uint16_t> want(hidden);
          oracle_combine_row(pointers.data(), w, count, hidden, want.data());
          Buffer out(hidden * 2, offset);
          ops_->combine(reinterpret_cast<uint16_t*>(out.data), pointers.data(), w, count, hidden);
          ops_->fence();
          for (size_t c = 0; c < hidden; ++c) {
            uint16_t got;
            std::memcpy(&got, out.data + 2 * c, 2);
            const float value = bf16_to_float(want[c]);
            if (value != value)
              ASSERT_TRUE(bf16_to_float(got) != bf16_to_float(got));
            else
              ASSERT_EQ(got, want[c]) << "hidden " << hidden << " count " << count << " value " << c;
          }
          ASSERT_TRUE(out.margin_intact());
        }
      }
    }
  }
}

TEST_P(Copy, MergesAsXor) {
  for (const size_t bytes : {16, 64, 80, 528}) {
    for (size_t offset = 0; offset < 64; offset += 16) {
      Buffer a(bytes, 0), b(bytes, 16), out(bytes, offset);
      for (size_t i = 0; i < bytes; ++i) {
        a.data[i] = static_cast<char>(random_());
        b.data[i] = static_cast<char>(random_());
      }
      const void* rows[] = {a.data, b.data};
      ops_->merge(out.data, rows, 2, bytes);
      ops_->fence();
      for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(out.data[i], static_cast<char>(a.data[i] ^ b.data[i]));
      ASSERT_TRUE(out.margin_intact());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Copy, testing::Values("plain", "sse2", "avx2", "avx512"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(CopyTable, UnknownNamesAreNotFoundAndThereIsAlwaysABest) {
  EXPECT_EQ(copy_ops("mmx"), nullptr);
  EXPECT_NE(copy_ops("plain"), nullptr);
  EXPECT_NE(copy_ops(best_copy_ops().name), nullptr);
}

}  // namespace
}  // namespace ep::engine::cpu
