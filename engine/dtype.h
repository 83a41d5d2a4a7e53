// bf16 and fp8 e4m3 to and from float, each with one rounding (to nearest, ties to even). Integer arithmetic
// only, so host and device give the same bits. Not a tensor library.
#pragma once

#include "layout.h"

namespace ep::engine {

EP_HD inline float bf16_to_float(uint16_t bits) {
  return bits_float(static_cast<uint32_t>(bits) << 16);
}

/// NaN stays NaN (quiet); values beyond the largest bf16 become infinity, as IEEE rounding says.
EP_HD inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline constexpr float kE4m3Max = 448.0f;
inline constexpr uint8_t kE4m3Nan = 0x7f;

/// OCP fp8 e4m3: sign, 4 bits of exponent (bias 7), 3 of mantissa; no infinity, 0x7f and 0xff are NaN.
EP_HD inline float e4m3_to_float(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t exponent = (bits >> 3) & 0xfu, mantissa = bits & 7u;
  if ((bits & 0x7fu) == kE4m3Nan) return bits_float(sign | 0x7fc00000u);
  if (exponent == 0) {  // subnormal: mantissa * 2^-9, exact in float
    const float magnitude = static_cast<float>(mantissa) * (1.0f / 512.0f);
    return bits_float(sign | float_bits(magnitude));
  }
  return bits_float(sign | ((exponent + 120u) << 23) | (mantissa << 20));
}

/// Saturates: anything that would round beyond 448, infinity included, becomes +-448; NaN stays NaN.
EP_HD inline uint8_t float_to_e4m3(float value) {
  const uint32_t bits = float_bits(value);
  const uint8_t sign = static_cast<uint8_t>((bits >> 24) & 0x80u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | kE4m3Nan;
  if (magnitude >= 0x43e80000u) return sign | 0x7eu;  // 464 and more: beyond the tie between 448 and 480
  if (magnitude >= 0x3c800000u) {                     // 2^-6 and more: normal
    const uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
    return static_cast<uint8_t>(sign | ((rounded >> 20) - (120u << 3)));
  }
  // Subnormal: count of 2^-9 steps. Adding 2^14 leaves exactly those steps in the low mantissa bits, rounded
  // to nearest even by the one float addition (ulp of 2^14 is 2^-9).
  const float shifted = bits_float(magnitude) + 16384.0f;
  return static_cast<uint8_t>(sign | (float_bits(shifted) - float_bits(16384.0f)));
}

/// Scale of a group of fp8 values: largest magnitude (at least 1e-4) / 448. Stored value = x * (448 /
/// largest).
EP_HD inline float e4m3_amax(float largest) {
  return largest < 1e-4f ? 1e-4f : largest;
}
EP_HD inline float e4m3_scale(float largest) {
  return e4m3_amax(largest) / kE4m3Max;
}
EP_HD inline uint8_t quantize_e4m3(float value, float largest) {
  return float_to_e4m3(value * (kE4m3Max / e4m3_amax(largest)));
}

}  // namespace ep::engine
