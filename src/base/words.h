// Words: a sentence with values in it, in the user's language. Format strings are literals of ours.
#pragma once
#include <fmt/core.h>

#include "base/text.h"

namespace ep {

struct Words {
  Lang lang = Lang::en;
  template <class... A>
  std::string operator()(const char* en, const char* zh, const A&... args) const {
    return fmt::format(fmt::runtime(lang == Lang::zh ? zh : en), args...);
  }
};

}  // namespace ep
