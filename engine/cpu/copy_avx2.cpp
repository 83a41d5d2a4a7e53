// Copy functions for CPUs with AVX2 and FMA. Compiled with those flags; see copy_kernels.h for what that
// forbids.
#include <immintrin.h>

#include "cpu/copy.h"
#include "cpu/copy_vec16.h"

namespace {

struct Vec {
  static constexpr size_t kBytes = 32;
  using Int = __m256i;
  using Float = __m256;
  static Int load(const char* p) { return _mm256_loadu_si256(reinterpret_cast<const Int*>(p)); }
  static void stream(char* p, Int v) { _mm256_stream_si256(reinterpret_cast<Int*>(p), v); }
  static void store(char* p, Int v) { _mm256_storeu_si256(reinterpret_cast<Int*>(p), v); }
  static Int splat_byte(uint8_t b) { return _mm256_set1_epi8(static_cast<char>(b)); }
  static Int exclusive_or(Int a, Int b) { return _mm256_xor_si256(a, b); }
  static Float zero() { return _mm256_setzero_ps(); }
  static Float even(Int v) { return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16)); }
  static Float odd(Int v) {
    return _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static Float add(Float a, Float b) { return _mm256_add_ps(a, b); }
  static Float multiply_add(float weight, Float value, Float sum) {
    return _mm256_fmadd_ps(_mm256_set1_ps(weight), value, sum);
  }
  static Int round(Float value) {
    const Int bits = _mm256_castps_si256(value);
    const Int lsb = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const Int rounded = _mm256_add_epi32(bits, _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7fff)));
    const Int quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const Int is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(rounded, quiet, is_nan);
  }
  static Int join(Float even_sum, Float odd_sum) {
    return _mm256_blend_epi16(_mm256_srli_epi32(round(even_sum), 16), round(odd_sum), 0xaa);
  }
};

}  // namespace

#include "cpu/copy_kernels.h"

namespace ep::engine::cpu {
extern const CopyOps kAvx2Ops;
const CopyOps kAvx2Ops = {"avx2", copy, fan_out, fill, combine, merge, fence};
}  // namespace ep::engine::cpu
