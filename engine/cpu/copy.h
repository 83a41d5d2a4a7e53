// Moving and adding rows on a CPU: non-temporal copies, fan-out to several receivers, combine. One table of
// functions per instruction set, chosen at run time; all of them give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ep::engine::cpu {

/// Every length is a multiple of 16 bytes and every address 16-byte aligned. Streaming stores are weakly
/// ordered: call `fence` before telling another rank that the data is there.
struct CopyOps {
  const char* name;
  void (*copy)(void* dst, const void* src, size_t bytes);
  /// Reads `src` once and writes it to `count` receivers.
  void (*fan_out)(void* const* dst, int count, const void* src, size_t bytes);
  void (*fill)(void* dst, uint8_t byte, size_t bytes);
  /// out[c] = bf16(sum over i ascending of rows[i][c]) in float from +0; with `weights`, fma(weights[i], row,
  /// sum).
  void (*combine)(uint16_t* out, const uint16_t* const* rows, const float* weights, int count, size_t hidden);
  /// Bitwise xor of the rows: the memory traffic of combine without its arithmetic, for the ceiling.
  void (*merge)(void* out, const void* const* rows, int count, size_t bytes);
  void (*fence)();
};

/// Tables by name: "plain", "sse2", "avx2", "avx512"; null when unknown or when this CPU lacks the
/// instructions.
const CopyOps* copy_ops(const char* name);
/// The widest that this CPU has.
const CopyOps& best_copy_ops();

}  // namespace ep::engine::cpu
