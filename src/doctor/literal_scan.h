// LiteralScan: finds every occurrence of some thousand literals in one pass, a few bytes a cycle. It looks
// only at every third position: each literal is filed under three neighbouring 4-byte windows, one of which
// must stand on a looked-at position; a bit map says "surely none here" for nearly all of them. Where it says
// "perhaps", the six bytes that the three windows cover are asked for in a second one. Plain integer code
// with or without vector instructions, same answer as a naive search (tested by properties). Not a
// regular-expression engine.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ep {

class LiteralScan {
 public:
  static constexpr size_t kMinLength = 6;

  struct Literal {
    std::string text;
    bool ignore_case = false;  ///< ASCII
  };

  /// Every literal has kMinLength bytes or more. The same text may stand twice; each index is reported. With
  /// a sample of the text to come, each literal is filed where that text has the fewest windows like it.
  explicit LiteralScan(std::vector<Literal> literals, std::string_view sample = {});
  LiteralScan(LiteralScan&&) = default;
  LiteralScan& operator=(LiteralScan&&) = default;

  /// Calls found(index of literal, position) for every occurrence that lies wholly in [data, data+size), once
  /// each; not in order of position, but never going back by more than the length of the longest literal.
  /// Returns how many places were looked at closely.
  template <class Found>
  size_t scan(const char* data, size_t size, Found&& found) const;

  const std::vector<Literal>& literals() const { return literals_; }

  /// Literals whose `awake` is false are passed over, at no cost, until they are woken.
  void set_awake(const std::vector<bool>& awake);

  /// How often text of this kind stands in ordinary logs, relative; picks the best of several literals.
  static double commonness(std::string_view text);

 private:
  static constexpr size_t kStride = 3;
  static constexpr size_t kCore = 4 + kStride - 1;  ///< bytes that the windows of a literal cover
  static constexpr int kBits = 18;                  ///< 32 KiB of bits: stays in the first-level cache
  static constexpr int kCoreBits = 16;              ///< 8 KiB more, asked only where the first says "perhaps"
  struct Entry {
    uint64_t core;     ///< folded
    uint32_t literal;  ///< index
    uint32_t offset;   ///< of the core in the literal
    int32_t next;      ///< chain, -1 ends
  };

  static uint32_t load(const char* p) {
    uint32_t w;
    std::memcpy(&w, p, 4);
    return w | 0x20202020u;  // letters in one case; other bytes collide a little, verified later
  }
  static uint32_t hash(uint32_t w) { return (w * 0x9E3779B1u) >> (32 - kBits); }
  static uint64_t load_core(const char* p) { return load(p) | uint64_t(load(p + kCore - 4)) << 32; }
  static uint32_t core_hash(uint64_t c) { return uint32_t((c * 0x9E3779B97F4A7C15u) >> (64 - kCoreBits)); }
  bool verify(const Literal& literal, const char* at) const;

  /// Positions from *at on (a multiple of the stride) whose window may be filed; at most kBatch of them.
  /// Moves *at past what was looked at; the end is reached when *at + 4 > size.
  static constexpr size_t kBatch = 256;
  using Collect = size_t (*)(const uint32_t* bits, const char* data, size_t size, size_t* at,
                             uint32_t* positions);
  static size_t collect_plain(const uint32_t* bits, const char* data, size_t size, size_t* at,
                              uint32_t* positions);
  static size_t collect_avx512(const uint32_t* bits, const char* data, size_t size, size_t* at,
                               uint32_t* positions);
  static size_t collect_avx2(const uint32_t* bits, const char* data, size_t size, size_t* at,
                             uint32_t* positions);
  static Collect choose();

  /// Of n positions those where a core may stand, each with the core's beginning in place of the window's.
  size_t keep_cores(const char* data, size_t size, const uint32_t* positions, size_t n,
                    uint32_t* cores) const;
  template <class Found>
  void look(const char* data, size_t size, size_t at, Found&& found) const;

  std::vector<Literal> literals_;
  std::vector<uint32_t> bits_, core_bits_;
  std::vector<int32_t> heads_;  ///< by hash of the core, into entries_
  std::vector<Entry> entries_;
  std::vector<bool> awake_;
  Collect collect_ = choose();

  friend struct LiteralScanTest;
};

template <class Found>
void LiteralScan::look(const char* data, size_t size, size_t at, Found&& found) const {
  const uint64_t core = load_core(data + at);
  for (int32_t i = heads_[core_hash(core)]; i >= 0; i = entries_[size_t(i)].next) {
    const Entry& e = entries_[size_t(i)];
    if (e.core != core || at < e.offset || !awake_[e.literal]) continue;
    const Literal& l = literals_[e.literal];
    const size_t start = at - e.offset;
    if (start + l.text.size() > size) continue;
    if (verify(l, data + start)) found(e.literal, start);
  }
}

template <class Found>
size_t LiteralScan::scan(const char* data, size_t size, Found&& found) const {
  if (literals_.empty()) return 0;
  uint32_t positions[kBatch + 32], cores[kStride * (kBatch + 32)];
  size_t places = 0;
  for (size_t at = 0; at + 4 <= size;) {
    const size_t n = collect_(bits_.data(), data, size, &at, positions);
    const size_t kept = keep_cores(data, size, positions, n, cores);
    for (size_t i = 0; i < kept; ++i) look(data, size, cores[i], found);
    places += n;
  }
  return places;
}

}  // namespace ep
