#include "expect.h"

#include <cstring>

#include "oracle.h"

namespace ep::engine {

namespace {

void expect_rows(const Shape& shape, int rank, Expectation& out) {
  const int first = shape.expert_begin(rank), count = shape.experts_of(rank);
  out.expert_count.assign(count, 0);
  for (int s = 0; s < shape.ranks; ++s) {
    for (int t = 0; t < shape.tokens[s]; ++t) {
      const int32_t* ids = out.routing[s].topk_idx.data() + static_cast<size_t>(t) * shape.topk;
      bool here = false;
      for (int k = 0; k < shape.topk; ++k) {
        if (ids[k] < first || ids[k] >= first + count) continue;
        here = true;
        ++out.expert_count[ids[k] - first];
      }
      if (here) out.rows.emplace_back(s, t);
    }
  }
}

void expect_results(const Shape& shape, int rank, uint64_t seed, bool weighted,
                    const std::function<void()>& tick, Expectation& out) {
  const size_t hidden = static_cast<size_t>(shape.hidden);
  std::vector<uint16_t> rows(hidden * static_cast<size_t>(shape.ranks)), result(hidden);
  for (int t = 0; t < shape.tokens[rank]; ++t) {
    if (t % 64 == 0) tick();
    const size_t at = static_cast<size_t>(t) * shape.topk;
    const int32_t* ids = out.routing[rank].topk_idx.data() + at;
    const uint64_t mask = shape.rank_mask(ids);
    const uint16_t* from[kMaxRanks];
    float weights[kMaxRanks];
    int count = 0;
    for (int r = 0; r < shape.ranks; ++r) {
      if ((mask >> r & 1) == 0) continue;
      uint16_t* row = rows.data() + hidden * static_cast<size_t>(count);
      fill_combine_row(shape, seed, r, rank, t, row);
      weights[count] = rank_weight(shape, r, ids, out.routing[rank].topk_weight.data() + at);
      from[count++] = row;
    }
    oracle_combine_row(from, weighted ? weights : nullptr, count, hidden, result.data());
    out.result_hash.push_back(hash_row(result.data(), hidden * 2));
  }
}

}  // namespace

Expectation Expectation::of(const Shape& shape, int rank, Pattern pattern, uint64_t seed, bool weighted,
                            const std::function<void()>& tick) {
  Expectation out;
  for (int r = 0; r < shape.ranks; ++r) {
    out.routing.push_back(make_routing(shape, r, pattern, seed));
    tick();
  }
  expect_rows(shape, rank, out);
  expect_results(shape, rank, seed, weighted, tick, out);
  return out;
}

void expert_row(const Shape& shape, int rank, const void* x, const void* scale, void* y) {
  const float factor = static_cast<float>(1 + rank % 4);
  for (int c = 0; c < shape.hidden; ++c) {
    float value;
    if (shape.dtype == Dtype::kBf16) {
      uint16_t bits;
      std::memcpy(&bits, static_cast<const char*>(x) + 2 * static_cast<size_t>(c), 2);
      value = bf16_to_float(bits);
    } else {
      float group;
      std::memcpy(&group, static_cast<const char*>(scale) + sizeof(float) * (c / kScaleGroup), sizeof group);
      value = e4m3_to_float(static_cast<const uint8_t*>(x)[c]) * group;
    }
    const uint16_t result = float_to_bf16(value * factor);
    std::memcpy(static_cast<char*>(y) + 2 * static_cast<size_t>(c), &result, 2);
  }
}

std::string explain_row(const Shape& shape, uint64_t seed, int source, int token, const void* row) {
  for (int v = 0; v < static_cast<int>(shape.row_vectors()); ++v) {
    const Vector16 good = row_vector(shape.dtype, seed, source, token, v);
    Vector16 found, poison;
    std::memcpy(&found, static_cast<const char*>(row) + static_cast<size_t>(v) * kVectorBytes, sizeof found);
    std::memset(&poison, kPoisonByte, sizeof poison);
    if (std::memcmp(&good, &found, sizeof good) == 0) continue;
    const std::string where = "vector " + std::to_string(v) + " holds ";
    uint64_t code;
    if (std::memcmp(&poison, &found, sizeof found) == 0) return where + "poison (never written)";
    if (!read_code(shape.dtype, found, code)) return where + "unknown bytes";
    return where + "vector " + std::to_string(code >> 32 & 0xffff) + " of rank " +
           std::to_string(code & 0xff) + " token " + std::to_string(code >> 8 & 0xffffff);
  }
  return {};
}

}  // namespace ep::engine
