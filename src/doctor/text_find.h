// Finds one word in a line, case ignored or not, 32 places at a time. For lines of a few hundred bytes
// that are asked for several words; whole logs are LiteralScan's.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ep {

/// Position of `word` (not empty) or npos. `ignore_case`: of ASCII letters; `word` may have either case.
size_t find_word(std::string_view text, std::string_view word, bool ignore_case);

inline bool has_word(std::string_view text, std::string_view word, bool ignore_case) {
  return find_word(text, word, ignore_case) != std::string_view::npos;
}

/// Several words (three bytes and more, case of ASCII letters ignored) asked for at once: their first three
/// bytes are looked up in tables, 32 places at a time.
class WordSet {
 public:
  static constexpr size_t kLeast = 3;
  explicit WordSet(std::vector<std::string> words);
  bool any_in(std::string_view text) const;

 private:
  bool any_avx2(std::string_view text) const;
  std::vector<std::string> words_;
  /// By place, by low and high half of a byte: one bit for every eighth word that has such a byte there.
  alignas(16) uint8_t low_[kLeast][16] = {}, high_[kLeast][16] = {};
};

}  // namespace ep
