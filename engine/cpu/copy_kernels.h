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

// What is done with the vectors of several rows that stand at the same place.

template <class V>
struct Sum {
  typename V::Float even = V::zero(), odd = V::zero();
  void add(typename V::Int row, float) {
    even = V::add(even, V::even(row));
    odd = V::add(odd, V::odd(row));
  }
  typename V::Int result() const { return V::join(even, odd); }
};

template <class V>
struct WeightedSum {
  typename V::Float even = V::zero(), odd = V::zero();
  void add(typename V::Int row, float weight) {
    even = V::multiply_add(weight, V::even(row), even);
    odd = V::multiply_add(weight, V::odd(row), odd);
  }
  typename V::Int result() const { return V::join(even, odd); }
};

template <class V>
struct Xor {
  typename V::Int sum = V::splat_byte(0);
  void add(typename V::Int row, float) { sum = V::exclusive_or(sum, row); }
  typename V::Int result() const { return sum; }
};

// Rows are read this far ahead of their use. The loop's many instructions would else fill the core's window
// with few reads under way; past a row's end stands, as a rule, the next one that will be read.
constexpr size_t kAheadBytes = 1024;

/// `kCount` rows, or `count` when it is 0: constant numbers keep the rows' addresses in registers.
template <class V, template <class> class Op, int kCount>
void fold_rows(char* out, const char* const* rows, const float* weights, int count, size_t bytes) {
  const int n = kCount > 0 ? kCount : count;
  const bool aligned = reinterpret_cast<uintptr_t>(out) % V::kBytes == 0;
  for (size_t at = 0; at < bytes; at += V::kBytes) {
    Op<V> op;
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) {
      if (at % 64 == 0) _mm_prefetch(rows[i] + at + kAheadBytes, _MM_HINT_T0);
      op.add(V::load(rows[i] + at), weights[i]);
    }
    if (aligned)
      V::stream(out + at, op.result());
    else
      V::store(out + at, op.result());
  }
}

template <class V, template <class> class Op>
void fold(char* out, const char* const* rows, const float* weights, int count, size_t bytes) {
  switch (count) {
    case 1:
      return fold_rows<V, Op, 1>(out, rows, weights, count, bytes);
    case 2:
      return fold_rows<V, Op, 2>(out, rows, weights, count, bytes);
    case 3:
      return fold_rows<V, Op, 3>(out, rows, weights, count, bytes);
    case 4:
      return fold_rows<V, Op, 4>(out, rows, weights, count, bytes);
    case 5:
      return fold_rows<V, Op, 5>(out, rows, weights, count, bytes);
    case 6:
      return fold_rows<V, Op, 6>(out, rows, weights, count, bytes);
    case 7:
      return fold_rows<V, Op, 7>(out, rows, weights, count, bytes);
    case 8:
      return fold_rows<V, Op, 8>(out, rows, weights, count, bytes);
    default:
      return fold_rows<V, Op, 0>(out, rows, weights, count, bytes);
  }
}

/// Whole vectors of the widest kind, the rest in small ones.
template <template <class> class Op>
void fold_all(void* out, const void* const* rows, const float* weights, int count, size_t bytes) {
  const char* from[64] = {};
  for (int i = 0; i < count; ++i) from[i] = static_cast<const char*>(rows[i]);
  char* to = static_cast<char*>(out);
  const size_t whole = bytes / Vec::kBytes * Vec::kBytes;
  fold<Vec, Op>(to, from, weights, count, whole);
  if (whole == bytes) return;
  for (int i = 0; i < count; ++i) from[i] += whole;
  fold<Vec16, Op>(to + whole, from, weights, count, bytes - whole);
}

constexpr float kNoWeights[64] = {};

void combine(uint16_t* out, const uint16_t* const* rows, const float* weights, int count, size_t hidden) {
  const void* from[64] = {};
  for (int i = 0; i < count; ++i) from[i] = rows[i];
  if (weights != nullptr)
    fold_all<WeightedSum>(out, from, weights, count, hidden * 2);
  else
    fold_all<Sum>(out, from, kNoWeights, count, hidden * 2);
}

void merge(void* out, const void* const* rows, int count, size_t bytes) {
  fold_all<Xor>(out, rows, kNoWeights, count, bytes);
}

void fence() {
  _mm_sfence();
}

}  // namespace
