// The copy functions over a vector type `Vec`, which the including file defines for its instruction set.
// Everything here has internal linkage and calls no inline function of other headers: these files are
// compiled with instruction set flags, and code that the linker might share with the rest of the program must
// not carry them.
//
// `Vec` offers: kBytes; Int, Float; load (unaligned), stream (aligned, non-temporal), store (unaligned);
// zero, even, odd (the bf16 halves of each 32-bit lane as floats), add, multiply_add, join (two float vectors
// rounded to bf16 and interleaved back), exclusive_or, splat_byte, splat_float.
#pragma once

namespace {

using ep::engine::cpu::CopyOps;

bool is_aligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % Vec::kBytes == 0;
}

void copy_16(char* dst, const char* src) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(dst), _mm_loadu_si128(reinterpret_cast<const __m128i*>(src)));
}

void copy(void* to, const void* from, size_t bytes) {
  char* dst = static_cast<char*>(to);
  const char* src = static_cast<const char*>(from);
  for (; bytes > 0 && !is_aligned(dst); dst += 16, src += 16, bytes -= 16) copy_16(dst, src);
  for (; bytes >= 4 * Vec::kBytes; dst += 4 * Vec::kBytes, src += 4 * Vec::kBytes, bytes -= 4 * Vec::kBytes) {
    const auto a = Vec::load(src), b = Vec::load(src + Vec::kBytes);
    const auto c = Vec::load(src + 2 * Vec::kBytes), d = Vec::load(src + 3 * Vec::kBytes);
    Vec::stream(dst, a);
    Vec::stream(dst + Vec::kBytes, b);
    Vec::stream(dst + 2 * Vec::kBytes, c);
    Vec::stream(dst + 3 * Vec::kBytes, d);
  }
  for (; bytes >= Vec::kBytes; dst += Vec::kBytes, src += Vec::kBytes, bytes -= Vec::kBytes) {
    Vec::stream(dst, Vec::load(src));
  }
  for (; bytes > 0; dst += 16, src += 16, bytes -= 16) copy_16(dst, src);
}

/// The row is in the first-level cache after the first copy, so receivers are served one after the other: one
/// stream of full lines at a time suits the few write-combining buffers of a core best.
void fan_out(void* const* dst, int count, const void* src, size_t bytes) {
  for (int i = 0; i < count; ++i) copy(dst[i], src, bytes);
}

void fill(void* to, uint8_t byte, size_t bytes) {
  char* dst = static_cast<char*>(to);
  const __m128i small = _mm_set1_epi8(static_cast<char>(byte));
  const auto value = Vec::splat_byte(byte);
  for (; bytes > 0 && !is_aligned(dst); dst += 16, bytes -= 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(dst), small);
  }
  for (; bytes >= Vec::kBytes; dst += Vec::kBytes, bytes -= Vec::kBytes) Vec::stream(dst, value);
  for (; bytes > 0; dst += 16, bytes -= 16) _mm_stream_si128(reinterpret_cast<__m128i*>(dst), small);
}

template <class V, bool kWeighted>
void combine_vectors(char* out, const char* const* rows, const float* weights, int count, size_t bytes) {
  const bool aligned = reinterpret_cast<uintptr_t>(out) % V::kBytes == 0;
  for (size_t at = 0; at < bytes; at += V::kBytes) {
    auto even = V::zero(), odd = V::zero();
    for (int i = 0; i < count; ++i) {
      const auto row = V::load(rows[i] + at);
      if constexpr (kWeighted) {
        even = V::multiply_add(weights[i], V::even(row), even);
        odd = V::multiply_add(weights[i], V::odd(row), odd);
      } else {
        even = V::add(even, V::even(row));
        odd = V::add(odd, V::odd(row));
      }
    }
    const auto joined = V::join(even, odd);
    if (aligned)
      V::stream(out + at, joined);
    else
      V::store(out + at, joined);
  }
}

void combine(uint16_t* out, const uint16_t* const* rows, const float* weights, int count, size_t hidden) {
  const char* from[64];
  for (int i = 0; i < count; ++i) from[i] = reinterpret_cast<const char*>(rows[i]);
  char* to = reinterpret_cast<char*>(out);
  const size_t bytes = hidden * 2, whole = bytes / Vec::kBytes * Vec::kBytes;
  if (weights != nullptr)
    combine_vectors<Vec, true>(to, from, weights, count, whole);
  else
    combine_vectors<Vec, false>(to, from, weights, count, whole);
  if (whole == bytes) return;
  for (int i = 0; i < count; ++i) from[i] += whole;
  if (weights != nullptr)
    combine_vectors<Vec16, true>(to + whole, from, weights, count, bytes - whole);
  else
    combine_vectors<Vec16, false>(to + whole, from, weights, count, bytes - whole);
}

void merge(void* out, const void* const* rows, int count, size_t bytes) {
  char* to = static_cast<char*>(out);
  size_t at = 0;
  if (is_aligned(out)) {
    for (; at + Vec::kBytes <= bytes; at += Vec::kBytes) {
      auto sum = Vec::splat_byte(0);
      for (int i = 0; i < count; ++i) {
        sum = Vec::exclusive_or(sum, Vec::load(static_cast<const char*>(rows[i]) + at));
      }
      Vec::stream(to + at, sum);
    }
  }
  for (; at < bytes; at += 16) {
    auto sum = Vec16::splat_byte(0);
    for (int i = 0; i < count; ++i) {
      sum = Vec16::exclusive_or(sum, Vec16::load(static_cast<const char*>(rows[i]) + at));
    }
    Vec16::store(to + at, sum);
  }
}

void fence() {
  _mm_sfence();
}

}  // namespace
