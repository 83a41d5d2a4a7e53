// Copy functions for CPUs with AVX-512 F and BW: a store is a whole cache line. Compiled with those flags;
// see copy_kernels.h for what that forbids.
#include <immintrin.h>

#include "cpu/copy.h"
#include "cpu/copy_vec16.h"

namespace {

// NOTE: the bf16 conversion instruction of AVX512_BF16 is not used: it flushes denormals, so its bits differ
// from IEEE rounding (Intel SDM, VCVTNE2PS2BF16).
struct Vec {
  static constexpr size_t kBytes = 64;
  using Int = __m512i;
  using Float = __m512;
  static Int load(const char* p) { return _mm512_loadu_si512(p); }
  static void stream(char* p, Int v) { _mm512_stream_si512(reinterpret_cast<Int*>(p), v); }
  static void store(char* p, Int v) { _mm512_storeu_si512(p, v); }
  static Int splat_byte(uint8_t b) { return _mm512_set1_epi8(static_cast<char>(b)); }
  static Int exclusive_or(Int a, Int b) { return _mm512_xor_si512(a, b); }
  static Float zero() { return _mm512_setzero_ps(); }
  static Float even(Int v) { return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)); }
  static Float odd(Int v) {
    return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Float multiply_add(float weight, Float value, Float sum) {
    return _mm512_fmadd_ps(_mm512_set1_ps(weight), value, sum);
  }
  static Int round(Float value) {
    const Int bits = _mm512_castps_si512(value);
    const Int lsb = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const Int rounded = _mm512_add_epi32(bits, _mm512_add_epi32(lsb, _mm512_set1_epi32(0x7fff)));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
  }
  static Int join(Float even_sum, Float odd_sum) {
    return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(round(even_sum), 16), round(odd_sum));
  }
};

}  // namespace

#include "cpu/copy_kernels.h"

namespace ep::engine::cpu {
extern const CopyOps kAvx512Ops;
const CopyOps kAvx512Ops = {"avx512", copy, fan_out, fill, combine, merge, fence};
}  // namespace ep::engine::cpu
