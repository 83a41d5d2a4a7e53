#include "report/look.h"

#include <algorithm>
#include <cmath>

namespace ep {

std::string verdict_mark(const Look& look, Verdict verdict) {
  Style style = Style::plain;
  switch (verdict) {
    case Verdict::pass:
      style = Style::green;
      break;
    case Verdict::fail:
      style = Style::red;
      break;
    case Verdict::warn:
    case Verdict::unknown:
      style = Style::yellow;
      break;
    default:
      style = Style::dim;
  }
  return look.paint(style, pad(to_string(verdict), 7));
}

std::string severity_mark(const Look& look, Severity severity) {
  Style style = severity == Severity::fail   ? Style::red
                : severity == Severity::warn ? Style::yellow
                                             : Style::dim;
  return look.paint(style, pad(to_string(severity), 4));
}

std::string bar(const Look& look, double share, int width) {
  double cells = std::clamp(share, 0.0, 1.0) * width;
  std::string out;
  if (!look.unicode) {
    int n = int(std::lround(cells));
    return std::string(size_t(n), '#') + std::string(size_t(width - n), '.');
  }
  static const char* part[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  int whole = int(cells), eighths = int((cells - whole) * 8);
  for (int i = 0; i < whole; ++i) out += "█";
  if (whole < width) out += part[eighths];
  int used = whole + (whole < width && eighths > 0 ? 1 : 0);
  return out + std::string(size_t(width - used), ' ');
}

std::string wrap(std::string_view text, int width, int indent) {
  std::string out, line;
  size_t used = 0;
  bool first = true;
  auto flush = [&] {
    out += (first ? "" : "\n" + std::string(size_t(indent), ' ')) + line;
    first = false;
    line.clear();
    used = 0;
  };
  for (auto word : split_ws(text)) {
    size_t w = display_width(word);
    if (used > 0 && int(used + 1 + w) > width - indent) flush();
    if (used > 0) line += ' ', ++used;
    line += word;
    used += w;
  }
  flush();
  return out;
}

}  // namespace ep
