// Words: a sentence with values in it, in the user's language or in both. Format strings are literals of
// ours.
#pragma once
#include <fmt/core.h>

#include <string>

#include "base/text.h"

namespace ep {

struct Words {
  Lang lang = Lang::en;
  template <class... A>
  std::string operator()(const char* en, const char* zh, const A&... args) const {
    return fmt::format(fmt::runtime(lang == Lang::zh ? zh : en), args...);
  }
};

/// A finished sentence in both languages: for values that are made before anybody knows who reads them.
struct BothWords {
  std::string en, zh;
  /// English where there is no Chinese.
  const std::string& in(Lang lang) const { return lang == Lang::zh && !zh.empty() ? zh : en; }
  bool empty() const { return en.empty(); }
};

/// Fills both sentences with the same values; a translation that wants another order numbers its braces.
template <class... A>
BothWords both(const char* en, const char* zh, const A&... args) {
  return {fmt::format(fmt::runtime(en), args...), fmt::format(fmt::runtime(zh), args...)};
}

}  // namespace ep
