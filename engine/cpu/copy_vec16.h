// The 16-byte vector of SSE2: the whole engine of old machines and the tail of rows on new ones. Internal
// linkage, see copy_kernels.h.
#pragma once

#include <emmintrin.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#if defined(__FMA__)
#include <immintrin.h>
#endif

namespace {

struct Vec16 {
  static constexpr size_t kBytes = 16;
  using Int = __m128i;
  using Float = __m128;
  static Int load(const char* p) { return _mm_loadu_si128(reinterpret_cast<const Int*>(p)); }
  static void stream(char* p, Int v) { _mm_stream_si128(reinterpret_cast<Int*>(p), v); }
  static void store(char* p, Int v) { _mm_storeu_si128(reinterpret_cast<Int*>(p), v); }
  static Int splat_byte(uint8_t b) { return _mm_set1_epi8(static_cast<char>(b)); }
  static Int exclusive_or(Int a, Int b) { return _mm_xor_si128(a, b); }
  static Float zero() { return _mm_setzero_ps(); }
  static Float even(Int v) { return _mm_castsi128_ps(_mm_slli_epi32(v, 16)); }
  static Float odd(Int v) {
    return _mm_castsi128_ps(_mm_and_si128(v, _mm_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static Float add(Float a, Float b) { return _mm_add_ps(a, b); }
  static Float multiply_add(float weight, Float value, Float sum) {
#if defined(__FMA__)
    return _mm_fmadd_ps(_mm_set1_ps(weight), value, sum);
#else
    // Without the instruction the one rounding of fma comes from the C library: slow, and the same bits.
    alignas(16) float v[4], s[4];
    _mm_store_ps(v, value);
    _mm_store_ps(s, sum);
    for (int i = 0; i < 4; ++i) s[i] = ::fmaf(weight, v[i], s[i]);
    return _mm_load_ps(s);
#endif
  }
  /// To nearest even in the upper half of each lane; NaN stays a quiet NaN.
  static Int round(Float value) {
    const Int bits = _mm_castps_si128(value);
    const Int lsb = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
    const Int rounded = _mm_add_epi32(bits, _mm_add_epi32(lsb, _mm_set1_epi32(0x7fff)));
    const Int quiet = _mm_or_si128(bits, _mm_set1_epi32(0x400000));
    const Int is_nan = _mm_castps_si128(_mm_cmpunord_ps(value, value));
    return _mm_or_si128(_mm_and_si128(is_nan, quiet), _mm_andnot_si128(is_nan, rounded));
  }
  static Int join(Float even_sum, Float odd_sum) {
    return _mm_or_si128(_mm_srli_epi32(round(even_sum), 16),
                        _mm_and_si128(round(odd_sum), _mm_set1_epi32(static_cast<int>(0xffff0000u))));
  }
};

}  // namespace
