// Finds one word in a line, case ignored or not, 32 places at a time. For lines of a few hundred bytes
// that are asked for several words; whole logs are LiteralScan's.
#pragma once
#include <string_view>

namespace ep {

/// Position of `word` (not empty) or npos. `ignore_case`: of ASCII letters; `word` may have either case.
size_t find_word(std::string_view text, std::string_view word, bool ignore_case);

inline bool has_word(std::string_view text, std::string_view word, bool ignore_case) {
  return find_word(text, word, ignore_case) != std::string_view::npos;
}

}  // namespace ep
