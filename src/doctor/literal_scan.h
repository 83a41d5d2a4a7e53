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
  static constexpr int kStride = 3;
  static constexpr int kBits = 17;  ///< 16 KiB of bits: stays in the first-level cache
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
  bool maybe(uint32_t h) const { return (bits_[h >> 6] >> (h & 63)) & 1; }
  bool verify(const Literal& literal, const char* at) const;

  template <class Found>
  void look(const char* data, size_t size, size_t p, Found&& found) const;

  std::vector<Literal> literals_;
  std::vector<uint64_t> bits_;
  std::vector<int32_t> heads_;  ///< by hash, into entries_
  std::vector<Entry> entries_;
  std::vector<bool> awake_;
};

template <class Found>
void LiteralScan::look(const char* data, size_t size, size_t p, Found&& found) const {
  const uint32_t w = load(data + p);
  for (int32_t i = heads_[hash(w)]; i >= 0; i = entries_[i].next) {
    const Entry& e = entries_[i];
    if (e.window != w || p < e.offset || !awake_[e.literal]) continue;
    const Literal& l = literals_[e.literal];
    const size_t start = p - e.offset;
    if (start + l.text.size() > size) continue;
    if (verify(l, data + start)) found(e.literal, start);
  }
}

template <class Found>
void LiteralScan::scan(const char* data, size_t size, Found&& found) const {
  size_t p = 0;
  if (literals_.empty()) return;
  for (; p + 3 * kStride + 4 <= size; p += 4 * kStride) {
    const uint32_t h0 = hash(load(data + p)), h1 = hash(load(data + p + kStride)),
                   h2 = hash(load(data + p + 2 * kStride)), h3 = hash(load(data + p + 3 * kStride));
    if (!(maybe(h0) | maybe(h1) | maybe(h2) | maybe(h3))) continue;
    if (maybe(h0)) look(data, size, p, found);
    if (maybe(h1)) look(data, size, p + kStride, found);
    if (maybe(h2)) look(data, size, p + 2 * kStride, found);
    if (maybe(h3)) look(data, size, p + 3 * kStride, found);
  }
  for (; p + 4 <= size; p += kStride)
    if (maybe(hash(load(data + p)))) look(data, size, p, found);
}

}  // namespace ep
