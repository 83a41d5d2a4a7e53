// The slow, obvious reference: what dispatch must leave on every rank and what combine must return, byte for
// byte. It shares nothing with the engines but the shape and the record layout, uses plain loops, and is
// never timed.
#pragma once

#include <cstdint>
#include <vector>

#include "layout.h"

namespace ep::engine {

/// What one rank brings to the exchange. Pointers are borrowed.
struct SourceView {
  const void* x = nullptr;             // [tokens x row_bytes]
  const void* scale = nullptr;         // [tokens x scale_row_bytes], null for bf16
  const int32_t* topk_idx = nullptr;   // [tokens x topk], -1 = masked
  const float* topk_weight = nullptr;  // [tokens x topk]
};

/// What a rank holds after dispatch: rows of all sources, source rank ascending, then token ascending.
struct Received {
  size_t rows = 0;
  std::vector<uint8_t> x, scale, meta;  // rows x row_bytes, x scale_row_bytes, x meta_bytes
  std::vector<int32_t> rows_from;       // [ranks] rows of each source
  std::vector<int32_t> expert_count;    // [experts of this rank] selections of each local expert
};

/// `sources` has one view per rank.
Received oracle_dispatch(const Shape& shape, const std::vector<SourceView>& sources, int dst);

/// One combined row from the rows of its ranks in ascending rank order. Sum in float from +0: unweighted
/// acc = acc + y; with `weights` (one per row) acc = fma(w, y, acc); then one rounding to bf16. No rows give
/// +0.
void oracle_combine_row(const uint16_t* const* rows, const float* weights, int count, size_t hidden,
                        uint16_t* out);

/// Combined rows of `source`, bf16 bits [tokens x hidden]. `y[r]` are the rows that rank r returns, in the
/// slots that dispatch gave them, combine_row_bytes() each. Weights are those of rank_weight().
std::vector<uint16_t> oracle_combine(const Shape& shape, const std::vector<SourceView>& sources,
                                     const std::vector<const void*>& y, int source, bool weighted);

}  // namespace ep::engine
