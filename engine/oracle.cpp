// The reference in its plainest form. Speed does not matter here; being plainly right does.
#include "oracle.h"

#include <cmath>
#include <cstring>

#include "dtype.h"

namespace ep::engine {

namespace {

/// Does this token have an unmasked expert on `dst`? Asked by comparing with every expert that `dst` owns.
bool goes_to(const Shape& shape, const SourceView& source, int token, int dst) {
  const int first = shape.expert_begin(dst), last = first + shape.experts_of(dst);
  for (int k = 0; k < shape.topk; ++k) {
    const int id = source.topk_idx[static_cast<size_t>(token) * shape.topk + k];
    for (int expert = first; expert < last; ++expert) {
      if (id == expert) return true;
    }
  }
  return false;
}

void append(std::vector<uint8_t>& to, const void* array, size_t row, size_t bytes) {
  if (bytes == 0) return;
  const auto* begin = static_cast<const uint8_t*>(array) + row * bytes;
  to.insert(to.end(), begin, begin + bytes);
}

/// Slot of every (source, token) on `dst`, -1 where it does not go: [source][token].
std::vector<std::vector<int64_t>> slots_on(const Shape& shape, const std::vector<SourceView>& sources,
                                           int dst) {
  std::vector<std::vector<int64_t>> slots(shape.ranks);
  int64_t next = 0;
  for (int s = 0; s < shape.ranks; ++s) {
    for (int t = 0; t < shape.tokens[s]; ++t) {
      slots[s].push_back(goes_to(shape, sources[s], t, dst) ? next++ : -1);
    }
  }
  return slots;
}

}  // namespace

Received oracle_dispatch(const Shape& shape, const std::vector<SourceView>& sources, int dst) {
  Received out;
  out.rows_from.assign(shape.ranks, 0);
  out.expert_count.assign(shape.experts_of(dst), 0);
  std::vector<uint32_t> record(shape.meta_bytes() / 4);
  for (int s = 0; s < shape.ranks; ++s) {
    for (int t = 0; t < shape.tokens[s]; ++t) {
      if (!goes_to(shape, sources[s], t, dst)) continue;
      const size_t first = static_cast<size_t>(t) * shape.topk;
      append(out.x, sources[s].x, t, shape.row_bytes());
      append(out.scale, sources[s].scale, t, shape.scale_row_bytes());
      write_meta(shape, s, t, dst, sources[s].topk_idx + first, sources[s].topk_weight + first,
                 record.data());
      append(out.meta, record.data(), 0, shape.meta_bytes());
      for (int k = 0; k < shape.topk; ++k) {
        const auto local = static_cast<int32_t>(record[Meta::kExperts + k]);
        if (local >= 0) ++out.expert_count[local];
      }
      ++out.rows_from[s];
      ++out.rows;
    }
  }
  return out;
}

void oracle_combine_row(const uint16_t* const* rows, const float* weights, int count, size_t hidden,
                        uint16_t* out) {
  for (size_t c = 0; c < hidden; ++c) {
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) {
      const float value = bf16_to_float(rows[i][c]);
      sum = weights != nullptr ? std::fmaf(weights[i], value, sum) : sum + value;
    }
    out[c] = float_to_bf16(sum);
  }
}

std::vector<uint16_t> oracle_combine(const Shape& shape, const std::vector<SourceView>& sources,
                                     const std::vector<const void*>& y, int source, bool weighted) {
  const size_t hidden = static_cast<size_t>(shape.hidden), tokens = static_cast<size_t>(shape.tokens[source]);
  std::vector<std::vector<int64_t>> slots;
  for (int r = 0; r < shape.ranks; ++r) slots.push_back(slots_on(shape, sources, r)[source]);
  std::vector<uint16_t> out(tokens * hidden);
  for (size_t t = 0; t < tokens; ++t) {
    const size_t first = t * static_cast<size_t>(shape.topk);
    std::vector<const uint16_t*> rows;
    std::vector<float> weights;
    for (int r = 0; r < shape.ranks; ++r) {
      if (slots[r][t] < 0) continue;
      rows.push_back(static_cast<const uint16_t*>(y[r]) + static_cast<size_t>(slots[r][t]) * hidden);
      weights.push_back(
          rank_weight(shape, r, sources[source].topk_idx + first, sources[source].topk_weight + first));
    }
    oracle_combine_row(rows.data(), weighted ? weights.data() : nullptr, static_cast<int>(rows.size()),
                       hidden, out.data() + t * hidden);
  }
  return out;
}

}  // namespace ep::engine
