// What one rank must see at benchmark size, derived from shape, pattern and seed alone: which rows arrive in
// which slot, the counts, a hash of every source row and of every combined row. Memory is small, so that
// every iteration can be checked; the byte-for-byte reference is oracle.h.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "pattern.h"

namespace ep::engine {

struct Expectation {
  std::vector<Routing> routing;           // of every rank
  std::vector<std::pair<int, int>> rows;  // (source rank, source token) in slot order
  std::vector<int32_t> expert_count;      // selections of each local expert
  std::vector<uint64_t> result_hash;      // [tokens of this rank] combined rows when all ranks return
                                          // fill_combine_row()

  /// `tick` is called every few rows; large shapes take seconds.
  static Expectation of(
      const Shape& shape, int rank, Pattern pattern, uint64_t seed, bool weighted,
      const std::function<void()>& tick = [] {});
};

/// Stands in for the expert between dispatch and combine: every value (fp8: times its scale) times 1 + rank %
/// 4, rounded once to bf16. `y` has combine_row_bytes().
void expert_row(const Shape& shape, int rank, const void* x, const void* scale, void* y);

/// Where the first vector of a received row that is not as it should be stands and what it holds, in words;
/// "" when the row is right.
std::string explain_row(const Shape& shape, uint64_t seed, int source, int token, const void* row);

}  // namespace ep::engine
