// Every bf16 and every e4m3 value, and every boundary between neighbours.
#include "dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ep::engine {
namespace {

TEST(Bf16, EveryValueSurvives) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = bf16_to_float(static_cast<uint16_t>(bits));
    const uint16_t back = float_to_bf16(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(bf16_to_float(back)));
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

// Between two neighbours: the middle goes to the even one, one float step to either side goes to the nearer
// one.
TEST(Bf16, EveryBoundaryRoundsToNearestEven) {
  for (uint32_t low = 0; low < 0x7f80; ++low) {
    const auto at = [&](uint32_t fraction) { return float_to_bf16(bits_float(low << 16 | fraction)); };
    ASSERT_EQ(at(0x7fff), low);
    ASSERT_EQ(at(0x8000), low + (low & 1));
    ASSERT_EQ(at(0x8001), low + 1);
    ASSERT_EQ(float_to_bf16(bits_float(0x80000000u | low << 16 | 0x8001)), 0x8000u + low + 1);
  }
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);  // rounds to infinity
  EXPECT_EQ(float_to_bf16(-std::numeric_limits<float>::infinity()), 0xff80);
  EXPECT_EQ(float_to_bf16(bits_float(0x7f800001u)), 0x7fc0);  // a NaN whose upper half looks like infinity
}

float e4m3_by_definition(int bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return bits & 0x80 ? -magnitude : magnitude;
}

TEST(E4m3, EveryValueByDefinitionAndBack) {
  for (int bits = 0; bits < 256; ++bits) {
    const float value = e4m3_to_float(static_cast<uint8_t>(bits));
    if ((bits & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(float_to_e4m3(value) & 0x7f, 0x7f);
      continue;
    }
    EXPECT_EQ(value, e4m3_by_definition(bits));
    EXPECT_EQ(std::signbit(value), (bits & 0x80) != 0);
    EXPECT_EQ(float_to_e4m3(value), bits);
  }
}

TEST(E4m3, EveryBoundaryRoundsToNearestEven) {
  for (int low = 0; low < 0x7e; ++low) {
    const float a = e4m3_by_definition(low), b = e4m3_by_definition(low + 1);
    const float middle = (a + b) / 2;  // exact: both have four bits
    ASSERT_EQ(float_to_e4m3(middle), low + (low & 1));
    ASSERT_EQ(float_to_e4m3(std::nextafter(middle, a)), low);
    ASSERT_EQ(float_to_e4m3(std::nextafter(middle, b)), low + 1);
    ASSERT_EQ(float_to_e4m3(-std::nextafter(middle, b)), 0x80 | (low + 1));
  }
}

TEST(E4m3, SaturatesAndKeepsNan) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float big : {449.0f, 464.0f, 465.0f, 1e30f, inf}) {
    EXPECT_EQ(float_to_e4m3(big), 0x7e);
    EXPECT_EQ(float_to_e4m3(-big), 0xfe);
  }
  EXPECT_EQ(float_to_e4m3(std::nanf("")) & 0x7f, 0x7f);
  EXPECT_EQ(float_to_e4m3(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(E4m3, QuantizingStaysWithinHalfAStepOfTheGroup) {
  for (const float largest : {0.0f, 1e-6f, 0.3f, 1.0f, 447.0f, 1e6f}) {
    const float scale = e4m3_scale(largest);
    EXPECT_GT(scale, 0.0f);
    for (int i = -100; i <= 100; ++i) {
      const float value = largest * static_cast<float>(i) / 100.0f;
      const float back = e4m3_to_float(quantize_e4m3(value, largest)) * scale;
      // Half a step is 1/16 of the value, or half the smallest subnormal for values near zero.
      EXPECT_LE(std::abs(back - value), std::abs(value) / 16.0f * 1.0001f + scale / 1024.0f * 1.0001f);
    }
  }
}

}  // namespace
}  // namespace ep::engine
