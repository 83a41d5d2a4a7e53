// Test data: routing of tokens to experts, rows whose every 16-byte vector says where it belongs, values that
// make the order of additions visible, poison, guards, and a hash per row. All of it is a function of its
// arguments, so any rank, on the host or on a device, can produce or expect it without communication.
#pragma once

#include <string>
#include <vector>

#include "dtype.h"
#include "layout.h"

namespace ep::engine {

/// The mixer of splitmix64 (Steele, Lea, Flood 2014): a bijection whose output bits all depend on all input
/// bits.
EP_HD inline uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

struct Vector16 {
  uint32_t word[4];
};

/// Code of one 16-byte vector of a source row: rank (8 bits), token (24), vector (16), check over these and
/// the seed (16). No two vectors of an exchange are equal, and a misplaced one can be read: see `read_code`.
EP_HD inline uint64_t vector_code(uint64_t seed, int rank, int token, int vector) {
  const uint64_t place = static_cast<uint64_t>(rank & 0xff) | static_cast<uint64_t>(token & 0xffffff) << 8 |
                         static_cast<uint64_t>(vector & 0xffff) << 32;
  return place | (mix64(place + (seed + 1) * kGolden) & 0xffff) << 48;
}

/// bf16: eight whole numbers 0..255. fp8: sixteen whole numbers 0..15. All exact, none NaN, so that the
/// payload survives any honest numeric path and never looks like poison.
EP_HD inline Vector16 encode_vector(Dtype dtype, uint64_t code) {
  Vector16 out = {{0, 0, 0, 0}};
  if (dtype == Dtype::kBf16) {
    for (int i = 0; i < 8; ++i) {
      const uint32_t half = float_to_bf16(static_cast<float>((code >> (8 * i)) & 0xff));
      out.word[i / 2] |= half << (16 * (i % 2));
    }
  } else {
    for (int i = 0; i < 16; ++i) {
      const uint32_t byte = float_to_e4m3(static_cast<float>((code >> (4 * i)) & 0xf));
      out.word[i / 4] |= byte << (8 * (i % 4));
    }
  }
  return out;
}

/// Inverse of `encode_vector` for messages about misplaced data. False when the vector holds no such code.
inline bool read_code(Dtype dtype, const Vector16& v, uint64_t& code) {
  code = 0;
  const int count = dtype == Dtype::kBf16 ? 8 : 16, bits = dtype == Dtype::kBf16 ? 8 : 4;
  for (int i = 0; i < count; ++i) {
    const float value = dtype == Dtype::kBf16
                            ? bf16_to_float(static_cast<uint16_t>(v.word[i / 2] >> (16 * (i % 2))))
                            : e4m3_to_float(static_cast<uint8_t>(v.word[i / 4] >> (8 * (i % 4))));
    if (!(value >= 0 && value < static_cast<float>(1 << bits))) return false;
    const auto digit = static_cast<uint64_t>(value);
    if (static_cast<float>(digit) != value) return false;
    code |= digit << (bits * i);
  }
  return true;
}

EP_HD inline Vector16 row_vector(Dtype dtype, uint64_t seed, int rank, int token, int vector) {
  return encode_vector(dtype, vector_code(seed, rank, token, vector));
}

/// fp8 scale of one group of a source row: positive, exact in float, different for neighbours.
EP_HD inline float row_scale(uint64_t seed, int rank, int token, int group) {
  const uint64_t place =
      static_cast<uint64_t>(rank) << 40 | static_cast<uint64_t>(token) << 16 | static_cast<uint64_t>(group);
  return static_cast<float>(1 + (mix64(place ^ (seed + 3) * kGolden) & 0xfffff)) / 1024.0f;
}

/// Eight bf16 values that rank `rank` returns in combine for a token. Half of them are small; the others are
/// one large value that is the same for all ranks but for its sign. Large ones cancel, and whether a small
/// one survives depends on whether it was added before or after, so that a wrong order of addition is seen
/// even after rounding to bf16.
EP_HD inline Vector16 combine_vector(uint64_t seed, int rank, int source, int token, int vector) {
  const uint64_t place = static_cast<uint64_t>(source) << 48 | static_cast<uint64_t>(token) << 20 |
                         static_cast<uint64_t>(vector);
  const uint64_t shared = mix64(place ^ (seed + 5) * kGolden);
  Vector16 out = {{0, 0, 0, 0}};
  for (int half = 0; half < 2; ++half) {
    const uint64_t all = mix64(shared + static_cast<uint64_t>(half));
    const uint64_t own = mix64(all + static_cast<uint64_t>(rank + 1) * kGolden);
    for (int i = 0; i < 4; ++i) {
      const auto a = static_cast<uint32_t>(all >> (16 * i)), r = static_cast<uint32_t>(own >> (16 * i));
      const uint32_t large = (149u + (a >> 7 & 3u)) << 7 | (a & 0x7fu);   // exponents 22..25
      const uint32_t small = (119u + (r >> 7 & 15u)) << 7 | (r & 0x7fu);  // exponents -8..7
      const uint32_t bits = (r & 0x8000u) | ((r & 0x4000u) != 0 ? large : small);
      out.word[2 * half + i / 2] |= bits << (16 * (i % 2));
    }
  }
  return out;
}

/// Fill of every output before a run: NaN in bf16, in e4m3 and in float; -1 as an integer.
inline constexpr uint8_t kPoisonByte = 0xff;

/// Guard areas hold words that differ by place, so a shifted copy of a guard is seen too.
EP_HD inline uint64_t guard_word(size_t index) {
  return 0xa5c3e1f05a3c1e0full ^ (index * 0x0001000100010001ull);
}

/// Hash of a row as the sum of its mixed 64-bit words, each tied to its place: words may be added in any
/// order or in parallel, and swapped words are seen. `bytes` is a multiple of 8.
EP_HD inline uint64_t hash_word(uint64_t word, size_t index) {
  uint64_t x = (word ^ (static_cast<uint64_t>(index + 1) * kGolden)) * 0xff51afd7ed558ccdull;
  x ^= x >> 32;
  return x * 0xc4ceb9fe1a85ec53ull;
}
using AliasedWord [[gnu::may_alias]] = uint64_t;
EP_HD inline uint64_t hash_row(const void* row, size_t bytes) {
  const AliasedWord* words = static_cast<const AliasedWord*>(row);
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes / 8; ++i) sum += hash_word(words[i], i);
  return sum;
}

/// How tokens choose experts and how many tokens ranks have.
enum class Pattern {
  kUniform,  // different experts, uniformly at random
  kHot,      // the first choice of every token is expert 0, the rest uniform
  kMasked,   // uniform, then about a third of the selections are -1, some tokens have none left
  kOneRank,  // all selections on the last rank that owns experts (as many as it has; the rest -1)
  kUneven,   // uniform; rank r has max_tokens minus a share that differs per rank
  kZero,     // uniform; every second rank has no tokens
  kAllZero,  // no rank has any token
};
struct PatternInfo {
  Pattern pattern;
  const char* name;
  const char* sentence;
};
const std::vector<PatternInfo>& all_patterns();
const char* name_of(Pattern pattern);
bool parse_pattern(const std::string& text, Pattern& out);

/// Sets `tokens[]` of the shape from `max_tokens`.
void set_tokens(Shape& shape, Pattern pattern);

/// Routing of one rank: expert ids and weights, [tokens x topk]. Weights of a token are positive and sum to 1
/// up to rounding over its unmasked selections; masked ones weigh 0.
struct Routing {
  std::vector<int32_t> topk_idx;
  std::vector<float> topk_weight;
};
Routing make_routing(const Shape& shape, int rank, Pattern pattern, uint64_t seed);

/// Source rows of a rank: [tokens x row_bytes] and, for fp8, [tokens x scale_row_bytes]. `scales` may be
/// null.
void fill_rows(const Shape& shape, int rank, uint64_t seed, void* rows, void* scales);
/// One row that `rank` returns in combine, `combine_row_bytes()` bytes.
void fill_combine_row(const Shape& shape, uint64_t seed, int rank, int source, int token, void* row);

/// Writes / checks guard words. `bytes` is a multiple of 8; the check returns the first wrong byte offset or
/// -1.
void fill_guard(void* at, size_t bytes);
long long check_guard(const void* at, size_t bytes);

}  // namespace ep::engine
