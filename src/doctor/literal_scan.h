// LiteralScan: finds every occurrence of some hundreds of literals in one pass, a few bytes a cycle. It looks
// only at every third position: each literal is filed under three neighbouring 4-byte windows, one of which
// must stand on a looked-at position; a bit map says "surely none here" for nearly all of them. Plain integer
// code, no vector instructions, same answer as a naive search (tested by properties). Not a
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

  /// Every literal has kMinLength bytes or more. The same text may stand twice; each index is reported.
  explicit LiteralScan(std::vector<Literal> literals);
  LiteralScan(LiteralScan&&) = default;
  LiteralScan& operator=(LiteralScan&&) = default;

  /// Calls found(index of literal, position) for every occurrence that lies wholly in [data, data+size), once
  /// each; not in order of position, but never going back by more than the length of the longest literal.
  template <class Found>
  void scan(const char* data, size_t size, Found&& found) const;

  const std::vector<Literal>& literals() const { return literals_; }

  /// Literals whose `awake` is false are passed over, at no cost, until they are woken.
  void set_awake(const std::vector<bool>& awake);

  /// How often text of this kind stands in ordinary logs, relative; picks the best of several literals.
  static double commonness(std::string_view text);

 private:
  static constexpr size_t kStride = 3;
  static constexpr int kBits = 17;        ///< 16 KiB of bits: stays in the first-level cache
  static constexpr int kSecondBits = 16;  ///< 8 KiB more, asked only where the first says "perhaps"
  struct Entry {
    uint32_t window;   ///< folded 4 bytes
    uint32_t literal;  ///< index
    uint32_t offset;   ///< of the window in the literal
    int32_t next;      ///< chain, -1 ends
  };

  static uint32_t load(const char* p) {
    uint32_t w;
    std::memcpy(&w, p, 4);
    return w | 0x20202020u;  // letters in one case; other bytes collide a little, verified later
  }
  static uint32_t hash(uint32_t w) { return (w * 0x9E3779B1u) >> (32 - kBits); }
  static uint32_t second_hash(uint32_t w) { return (w * 0x85EBCA6Bu) >> (32 - kSecondBits); }
  bool verify(const Literal& literal, const char* at) const;

  /// Positions from *at on (a multiple of the stride) whose window may be filed; at most kBatch of them.
  /// Moves *at past what was looked at; the end is reached when *at + 4 > size.
  static constexpr size_t kBatch = 256;
  using Collect = size_t (*)(const uint32_t* bits, const char* data, size_t size, size_t* at,
                             uint32_t* positions);
  static size_t collect_plain(const uint32_t* bits, const char* data, size_t size, size_t* at,
                              uint32_t* positions);
  static size_t collect_avx2(const uint32_t* bits, const char* data, size_t size, size_t* at,
                             uint32_t* positions);
  static Collect choose();

  template <class Found>
  void look(const char* data, size_t size, size_t p, Found&& found) const;

  std::vector<Literal> literals_;
  std::vector<uint32_t> bits_, second_;
  std::vector<int32_t> heads_;  ///< by hash, into entries_
  std::vector<Entry> entries_;
  std::vector<bool> awake_;
  Collect collect_ = choose();

  friend struct LiteralScanTest;
};

template <class Found>
void LiteralScan::look(const char* data, size_t size, size_t p, Found&& found) const {
  const uint32_t w = load(data + p), h = second_hash(w);
  if (!((second_[h >> 5] >> (h & 31)) & 1)) return;
  for (int32_t i = heads_[hash(w)]; i >= 0; i = entries_[size_t(i)].next) {
    const Entry& e = entries_[size_t(i)];
    if (e.window != w || p < e.offset || !awake_[e.literal]) continue;
    const Literal& l = literals_[e.literal];
    const size_t start = p - e.offset;
    if (start + l.text.size() > size) continue;
    if (verify(l, data + start)) found(e.literal, start);
  }
}

template <class Found>
void LiteralScan::scan(const char* data, size_t size, Found&& found) const {
  if (literals_.empty()) return;
  uint32_t positions[kBatch + 16];
  for (size_t at = 0; at + 4 <= size;) {
    const size_t n = collect_(bits_.data(), data, size, &at, positions);
    for (size_t i = 0; i < n; ++i) look(data, size, positions[i], found);
  }
}

}  // namespace ep
