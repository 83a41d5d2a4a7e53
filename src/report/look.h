// Look: how a human report may look (language, colour, Unicode, width), and the marks that all reports share.
#pragma once
#include <string>
#include <string_view>

#include "base/finding.h"
#include "base/term.h"
#include "base/words.h"

namespace ep {

struct Look {
  Lang lang = Lang::en;
  bool color = false, unicode = false;
  int width = 100;
  std::string_view tr(Text text) const { return text.in(lang); }
  std::string paint(Style style, std::string_view text) const { return ep::paint(style, text, color); }
};

/// "PASS" in green, "FAIL" in red ... padded to 7 columns so that lists line up.
std::string verdict_mark(const Look& look, Verdict verdict);
std::string severity_mark(const Look& look, Severity severity);
/// A bar of `width` cells filled to `share` (0..1): blocks with Unicode, # without.
std::string bar(const Look& look, double share, int width);
/// Wraps running text at words to `width` columns, every line after the first indented.
std::string wrap(std::string_view text, int width, int indent);

}  // namespace ep
