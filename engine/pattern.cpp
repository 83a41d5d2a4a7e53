// Host side of the test data: routing generators and whole rows.
#include "pattern.h"

#include <cstring>

namespace ep::engine {

const std::vector<PatternInfo>& all_patterns() {
  static const std::vector<PatternInfo> kTable = {
      {Pattern::kUniform, "uniform", "different experts, uniformly at random"},
      {Pattern::kHot, "hot", "every token chooses expert 0 first"},
      {Pattern::kMasked, "masked", "about a third of the selections are -1, some tokens keep none"},
      {Pattern::kOneRank, "one-rank", "all selections on one rank"},
      {Pattern::kUneven, "uneven", "ranks have different numbers of tokens"},
      {Pattern::kZero, "zero", "every second rank has no tokens"},
      {Pattern::kAllZero, "all-zero", "no rank has any token"},
  };
  return kTable;
}

const char* name_of(Pattern pattern) {
  for (const auto& row : all_patterns()) {
    if (row.pattern == pattern) return row.name;
  }
  return "?";
}

bool parse_pattern(const std::string& text, Pattern& out) {
  for (const auto& row : all_patterns()) {
    if (text == row.name) {
      out = row.pattern;
      return true;
    }
  }
  return false;
}

void set_tokens(Shape& shape, Pattern pattern) {
  shape.set_even_tokens(shape.max_tokens);
  for (int r = 0; r < shape.ranks; ++r) {
    int& tokens = shape.tokens[r];
    if (pattern == Pattern::kUneven)
      tokens -= static_cast<int>(static_cast<long long>(tokens) * (r % 5) / 7) + (r % 3);
    if (pattern == Pattern::kZero && r % 2 == 1) tokens = 0;
    if (pattern == Pattern::kAllZero) tokens = 0;
    if (tokens < 0) tokens = 0;
  }
}

namespace {

/// A stream of random numbers that belongs to one (seed, rank, token).
class Stream {
 public:
  Stream(uint64_t seed, int rank, int token)
      : state_(mix64(seed * kGolden + static_cast<uint64_t>(rank) * 0x100000001ull) ^
               mix64(static_cast<uint64_t>(token) + 17)) {}
  uint64_t next() { return mix64(state_ += kGolden); }
  /// Uniform in 0..limit-1; the bias of the multiplication is below 2^-50 for our limits.
  int below(int limit) { return static_cast<int>((next() >> 32) * static_cast<uint64_t>(limit) >> 32); }

 private:
  uint64_t state_;
};

bool contains(const int32_t* ids, int count, int id) {
  for (int i = 0; i < count; ++i) {
    if (ids[i] == id) return true;
  }
  return false;
}

/// `count` different ids from begin..begin+span-1, appended at ids[from...].
void choose(Stream& random, int begin, int span, int from, int count, int32_t* ids) {
  for (int k = from; k < from + count; ++k) {
    int id = begin + random.below(span);
    while (contains(ids, k, id)) id = begin + random.below(span);
    ids[k] = id;
  }
}

void choose_experts(const Shape& shape, Pattern pattern, Stream& random, int32_t* ids) {
  if (pattern == Pattern::kOneRank) {
    const int target = shape.expert_rank(shape.experts - 1);
    const int here = shape.experts_of(target);
    const int count = shape.topk < here ? shape.topk : here;
    for (int k = count; k < shape.topk; ++k) ids[k] = -1;
    choose(random, shape.expert_begin(target), here, 0, count, ids);
    return;
  }
  if (pattern == Pattern::kHot) {
    ids[0] = 0;
    choose(random, 0, shape.experts, 1, shape.topk - 1, ids);
    return;
  }
  choose(random, 0, shape.experts, 0, shape.topk, ids);
  if (pattern == Pattern::kMasked) {
    const bool all = random.below(16) == 0;
    for (int k = 0; k < shape.topk; ++k) {
      if (all || random.below(3) == 0) ids[k] = -1;
    }
  }
}

}  // namespace

Routing make_routing(const Shape& shape, int rank, Pattern pattern, uint64_t seed) {
  const size_t topk = static_cast<size_t>(shape.topk), tokens = static_cast<size_t>(shape.tokens[rank]);
  Routing out;
  out.topk_idx.assign(tokens * topk, -1);
  out.topk_weight.assign(tokens * topk, 0.0f);
  for (size_t t = 0; t < tokens; ++t) {
    Stream random(seed, rank, static_cast<int>(t));
    int32_t* ids = out.topk_idx.data() + t * topk;
    float* weights = out.topk_weight.data() + t * topk;
    choose_experts(shape, pattern, random, ids);
    float sum = 0;
    for (size_t k = 0; k < topk; ++k) {
      if (ids[k] < 0) continue;
      weights[k] = static_cast<float>(1 + random.below(1 << 16));
      sum += weights[k];
    }
    for (size_t k = 0; k < topk; ++k) {
      if (ids[k] >= 0) weights[k] /= sum;
    }
  }
  return out;
}

void fill_rows(const Shape& shape, int rank, uint64_t seed, void* rows, void* scales) {
  const int vectors = static_cast<int>(shape.row_vectors());
  for (int t = 0; t < shape.tokens[rank]; ++t) {
    char* row = static_cast<char*>(rows) + static_cast<size_t>(t) * shape.row_bytes();
    for (int v = 0; v < vectors; ++v) {
      const Vector16 value = row_vector(shape.dtype, seed, rank, t, v);
      std::memcpy(row + static_cast<size_t>(v) * kVectorBytes, &value, sizeof value);
    }
    if (scales == nullptr || shape.scale_groups() == 0) continue;
    char* scale_row = static_cast<char*>(scales) + static_cast<size_t>(t) * shape.scale_row_bytes();
    std::memset(scale_row, 0, shape.scale_row_bytes());
    for (int g = 0; g < shape.scale_groups(); ++g) {
      const float value = row_scale(seed, rank, t, g);
      std::memcpy(scale_row + static_cast<size_t>(g) * sizeof(float), &value, sizeof value);
    }
  }
}

void fill_combine_row(const Shape& shape, uint64_t seed, int rank, int source, int token, void* row) {
  const int vectors = static_cast<int>(shape.combine_row_vectors());
  for (int v = 0; v < vectors; ++v) {
    const Vector16 value = combine_vector(seed, rank, source, token, v);
    std::memcpy(static_cast<char*>(row) + static_cast<size_t>(v) * kVectorBytes, &value, sizeof value);
  }
}

void fill_guard(void* at, size_t bytes) {
  for (size_t i = 0; i < bytes / 8; ++i) {
    const uint64_t word = guard_word(i);
    std::memcpy(static_cast<char*>(at) + i * 8, &word, 8);
  }
}

long long check_guard(const void* at, size_t bytes) {
  for (size_t i = 0; i < bytes / 8; ++i) {
    const uint64_t want = guard_word(i);
    if (std::memcmp(static_cast<const char*>(at) + i * 8, &want, 8) != 0)
      return static_cast<long long>(i * 8);
  }
  return -1;
}

}  // namespace ep::engine
