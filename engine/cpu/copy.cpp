// Choice of the copy functions, and their portable form.
#include "cpu/copy.h"

#include <atomic>
#include <cmath>
#include <cstring>

#include "dtype.h"

namespace ep::engine::cpu {

#if defined(__x86_64__)
extern const CopyOps kSse2Ops, kAvx2Ops, kAvx512Ops;
#endif

namespace {

void plain_copy(void* dst, const void* src, size_t bytes) {
  std::memcpy(dst, src, bytes);
}

void plain_fan_out(void* const* dst, int count, const void* src, size_t bytes) {
  for (int i = 0; i < count; ++i) std::memcpy(dst[i], src, bytes);
}

void plain_fill(void* dst, uint8_t byte, size_t bytes) {
  std::memset(dst, byte, bytes);
}

void plain_combine(uint16_t* out, const uint16_t* const* rows, const float* weights, int count,
                   size_t hidden) {
  for (size_t c = 0; c < hidden; ++c) {
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) {
      const float value = bf16_to_float(rows[i][c]);
      sum = weights != nullptr ? std::fmaf(weights[i], value, sum) : sum + value;
    }
    out[c] = float_to_bf16(sum);
  }
}

void plain_merge(void* out, const void* const* rows, int count, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 8) {
    uint64_t sum = 0;
    for (int i = 0; i < count; ++i) {
      uint64_t word;
      std::memcpy(&word, static_cast<const char*>(rows[i]) + at, 8);
      sum ^= word;
    }
    std::memcpy(static_cast<char*>(out) + at, &sum, 8);
  }
}

void plain_fence() {
  std::atomic_thread_fence(std::memory_order_release);
}

const CopyOps kPlainOps = {"plain",       plain_copy,  plain_fan_out, plain_fill,
                           plain_combine, plain_merge, plain_fence};

bool runs_here(const CopyOps& ops) {
#if defined(__x86_64__)
  if (&ops == &kAvx2Ops) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (&ops == &kAvx512Ops) return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
#endif
  (void)ops;
  return true;
}

const CopyOps* const kTable[] = {
#if defined(__x86_64__)
    &kAvx512Ops, &kAvx2Ops, &kSse2Ops,
#endif
    &kPlainOps};

}  // namespace

const CopyOps* copy_ops(const char* name) {
  for (const CopyOps* ops : kTable) {
    if (std::strcmp(ops->name, name) == 0) return runs_here(*ops) ? ops : nullptr;
  }
  return nullptr;
}

const CopyOps& best_copy_ops() {
  for (const CopyOps* ops : kTable) {
    if (runs_here(*ops)) return *ops;
  }
  return kPlainOps;
}

}  // namespace ep::engine::cpu
