// Shapes of an expert-parallel exchange: who owns which expert, which ranks a token goes to, in which
// slot of the receiver its row stands, and how large every buffer is. Host and device code share this file;
// it moves no data and knows no transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#if defined(__CUDACC__)
#define EP_HD __host__ __device__
#else
#define EP_HD
#endif

namespace ep::engine {

inline constexpr int kMaxRanks = 64;  // a token's destinations are one 64-bit mask
inline constexpr int kMaxTopk = 16;
inline constexpr int kMaxExperts = 4096;
inline constexpr int kScaleGroup = 128;      // fp8: one float scale per 128 values of a row
inline constexpr int kVectorBytes = 16;      // rows are whole numbers of 16-byte vectors
inline constexpr size_t kGuardBytes = 4096;  // guard area before and after every buffer of an arena
inline constexpr size_t kRegionAlign = 4096;

enum class Dtype : int32_t { kBf16 = 0, kFp8 = 1 };

EP_HD constexpr size_t round_up(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// One exchange. Plain data: it may be passed to a kernel by value. `tokens[r]` may differ per rank and be 0;
/// `max_tokens` sizes buffers (every rank must agree on it) and is at least the largest of them.
struct Shape {
  int32_t ranks = 4;
  int32_t max_tokens = 2048;
  int32_t hidden = 7168;
  int32_t experts = 256;
  int32_t topk = 8;
  int32_t meta_align = 64;  // see meta_bytes
  Dtype dtype = Dtype::kBf16;
  int32_t tokens[kMaxRanks] = {};

  // Sizes of one row of each array, in bytes. Dispatch moves rows, scales and metadata; combine moves bf16
  // rows.
  EP_HD size_t row_bytes() const { return static_cast<size_t>(hidden) * (dtype == Dtype::kBf16 ? 2 : 1); }
  EP_HD size_t combine_row_bytes() const { return static_cast<size_t>(hidden) * 2; }
  EP_HD int scale_groups() const {
    return dtype == Dtype::kFp8 ? (hidden + kScaleGroup - 1) / kScaleGroup : 0;
  }
  /// Scales of a row, padded with zeros to whole vectors (7168 values: 56 scales, 224 bytes, no padding).
  EP_HD size_t scale_row_bytes() const { return round_up(scale_groups() * sizeof(float), kVectorBytes); }
  /// One metadata record, see `Meta`. On CPUs whole 64-byte lines, so that no two records share one; on GPUs
  /// whole vectors, because every byte crosses the link.
  EP_HD size_t meta_bytes() const { return round_up(8 + 8 * static_cast<size_t>(topk), meta_align); }
  /// All that travels for one token to one rank.
  EP_HD size_t record_bytes() const { return row_bytes() + scale_row_bytes() + meta_bytes(); }
  EP_HD size_t row_vectors() const { return row_bytes() / kVectorBytes; }
  EP_HD size_t combine_row_vectors() const { return combine_row_bytes() / kVectorBytes; }

  /// Most rows that a rank can receive: de-duplication lets each token of each rank arrive at most once.
  EP_HD size_t capacity() const { return static_cast<size_t>(ranks) * static_cast<size_t>(max_tokens); }

  // Experts are dealt out in contiguous blocks; when they do not divide, the first `experts % ranks` ranks
  // own one more. With fewer experts than ranks the last ranks own none.
  EP_HD int expert_begin(int rank) const {
    const int share = experts / ranks, extra = experts % ranks;
    return rank * share + (rank < extra ? rank : extra);
  }
  EP_HD int experts_of(int rank) const { return experts / ranks + (rank < experts % ranks ? 1 : 0); }
  EP_HD int max_local_experts() const { return (experts + ranks - 1) / ranks; }
  EP_HD int expert_rank(int expert) const {
    const int share = experts / ranks, extra = experts % ranks, wide = extra * (share + 1);
    return expert < wide ? expert / (share + 1) : extra + (expert - wide) / share;
  }

  /// The ranks that own at least one of a token's experts. Ids below 0 are masked selections and count
  /// nowhere.
  EP_HD uint64_t rank_mask(const int32_t* topk_idx) const {
    uint64_t mask = 0;
    for (int k = 0; k < topk; ++k) {
      if (topk_idx[k] >= 0) mask |= uint64_t{1} << expert_rank(topk_idx[k]);
    }
    return mask;
  }

  void set_even_tokens(int count) {
    max_tokens = count;
    for (int r = 0; r < kMaxRanks; ++r) tokens[r] = r < ranks ? count : 0;
  }
  size_t total_tokens() const {
    size_t sum = 0;
    for (int r = 0; r < ranks; ++r) sum += static_cast<size_t>(tokens[r]);
    return sum;
  }
};

/// Metadata record of a received row, as 32-bit words: source rank, source token, `topk` local expert ids
/// (counted from the receiver's first expert; -1 when the selection is masked or belongs to another rank),
/// `topk` weights as float bits (0 where the id is -1), then zeros up to `meta_bytes()`.
struct Meta {
  static constexpr int kSourceRank = 0;
  static constexpr int kSourceToken = 1;
  static constexpr int kExperts = 2;
  EP_HD static constexpr int weights(int topk) { return kExperts + topk; }
};

EP_HD inline uint32_t float_bits(float value) {
  union {
    float f;
    uint32_t u;
  } both = {value};
  return both.u;
}

EP_HD inline float bits_float(uint32_t bits) {
  union {
    uint32_t u;
    float f;
  } both = {bits};
  return both.f;
}

/// Writes the metadata record of `token` of `source` for the rank that owns `count` experts from `begin` on.
/// `out` has `meta_bytes()` bytes.
EP_HD inline void write_meta(const Shape& shape, int source, int token, int begin, int count,
                             const int32_t* topk_idx, const float* topk_weight, uint32_t* out) {
  const int words = static_cast<int>(shape.meta_bytes() / 4), weights = Meta::weights(shape.topk);
  out[Meta::kSourceRank] = static_cast<uint32_t>(source);
  out[Meta::kSourceToken] = static_cast<uint32_t>(token);
  for (int k = 0; k < shape.topk; ++k) {
    const int local = topk_idx[k] - begin;
    const bool here = topk_idx[k] >= 0 && local >= 0 && local < count;
    out[Meta::kExperts + k] = here ? static_cast<uint32_t>(local) : 0xffffffffu;
    out[weights + k] = here ? float_bits(topk_weight[k]) : 0u;
  }
  for (int w = weights + shape.topk; w < words; ++w) out[w] = 0;
}
EP_HD inline void write_meta(const Shape& shape, int source, int token, int dst, const int32_t* topk_idx,
                             const float* topk_weight, uint32_t* out) {
  write_meta(shape, source, token, shape.expert_begin(dst), shape.experts_of(dst), topk_idx, topk_weight,
             out);
}

/// Weight that rank `dst` has in the weighted combine of one token: the weights of the selections it owns,
/// added in ascending k.
EP_HD inline float rank_weight(const Shape& shape, int dst, const int32_t* topk_idx,
                               const float* topk_weight) {
  float sum = 0.0f;
  for (int k = 0; k < shape.topk; ++k) {
    if (topk_idx[k] >= 0 && shape.expert_rank(topk_idx[k]) == dst) sum += topk_weight[k];
  }
  return sum;
}

/// Byte range inside an arena; `kGuardBytes` of guard words stand directly before and after it.
struct Region {
  size_t offset = 0;
  size_t bytes = 0;
};

/// The symmetric receive memory of one rank: every rank has the same plan, so a peer's address is its base
/// plus the same offset. Rows, scales and metadata are separate arrays that a GEMM can consume in place.
struct ArenaPlan {
  Region recv_x;      // capacity x row_bytes, written by peers in dispatch
  Region recv_scale;  // capacity x scale_row_bytes (empty for bf16)
  Region recv_meta;   // capacity x meta_bytes
  Region y;  // capacity x combine_row_bytes, read by peers in combine; slot = slot of the received row
  size_t total = 0;

  static ArenaPlan of(const Shape& shape);
};

/// Where the rows of one source rank go, from its own routing alone.
struct SourceLayout {
  std::vector<uint64_t> mask;         // [tokens] destination ranks of each token
  std::vector<int32_t> position;      // [tokens x ranks] place among this source's rows for that rank, or -1
  std::vector<int32_t> rank_count;    // [ranks] rows for each rank
  std::vector<int32_t> expert_count;  // [experts] selections of each expert
};

/// Order: tokens ascending. `topk_idx` is [tokens x topk]. The second form reuses the memory of `out`.
SourceLayout source_layout(const Shape& shape, int source, const int32_t* topk_idx);
void source_layout(const Shape& shape, int source, const int32_t* topk_idx, SourceLayout& out);

/// First slot of `source` on `dst`, given the exchanged counts [source x dst]: received rows stand source
/// rank after source rank, each source's tokens ascending, without gaps.
EP_HD inline int64_t slot_base(int ranks, const int32_t* counts, int source, int dst) {
  int64_t base = 0;
  for (int s = 0; s < source; ++s) base += counts[s * ranks + dst];
  return base;
}

/// Empty when the shape can be run; else what is wrong, where, and what would be right.
std::string validate(const Shape& shape);

const char* name_of(Dtype dtype);
bool parse_dtype(const std::string& text, Dtype& out);

}  // namespace ep::engine
