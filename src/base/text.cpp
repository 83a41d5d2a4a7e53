#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace ep {

namespace {
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? char(c + 32) : c;
}
}  // namespace

std::string_view trim(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> split(std::string_view s, char sep) {
  std::vector<std::string_view> out;
  for (;;) {
    size_t at = s.find(sep);
    out.push_back(s.substr(0, at));
    if (at == s.npos) return out;
    s.remove_prefix(at + 1);
  }
}

std::vector<std::string_view> split_ws(std::string_view s) {
  std::vector<std::string_view> out;
  size_t i = 0;
  while (i < s.size()) {
    while (i < s.size() && is_space(s[i])) ++i;
    size_t begin = i;
    while (i < s.size() && !is_space(s[i])) ++i;
    if (i > begin) out.push_back(s.substr(begin, i - begin));
  }
  return out;
}

std::vector<std::string_view> lines(std::string_view s) {
  std::vector<std::string_view> out;
  while (!s.empty()) {
    size_t at = s.find('\n');
    std::string_view line = s.substr(0, at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    out.push_back(line);
    if (at == s.npos) break;
    s.remove_prefix(at + 1);
  }
  return out;
}

std::string join(const std::vector<std::string>& parts, std::string_view sep) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out += sep;
    out += parts[i];
  }
  return out;
}

std::string lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), to_lower);
  return out;
}

bool starts_with(std::string_view s, std::string_view prefix) {
  return s.substr(0, prefix.size()) == prefix;
}
bool ends_with(std::string_view s, std::string_view suffix) {
  return s.size() >= suffix.size() && s.substr(s.size() - suffix.size()) == suffix;
}
bool contains(std::string_view s, std::string_view part) {
  return s.find(part) != s.npos;
}
bool icontains(std::string_view s, std::string_view part) {
  auto same = [](char a, char b) { return to_lower(a) == to_lower(b); };
  return std::search(s.begin(), s.end(), part.begin(), part.end(), same) != s.end() || part.empty();
}

std::string replace_all(std::string s, std::string_view from, std::string_view to) {
  if (from.empty()) return s;
  std::string out;
  size_t at = 0;
  for (size_t hit; (hit = s.find(from, at)) != s.npos; at = hit + from.size()) {
    out.append(s, at, hit - at);
    out += to;
  }
  return at == 0 ? s : out.append(s, at, s.npos);
}

std::optional<long long> parse_int(std::string_view s) {
  bool negative = false;
  if (!s.empty() && (s.front() == '-' || s.front() == '+')) {
    negative = s.front() == '-';
    s.remove_prefix(1);
  }
  int base = 10;
  if (s.size() > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
    base = 16;
    s.remove_prefix(2);
  }
  unsigned long long magnitude = 0;
  auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), magnitude, base);
  if (s.empty() || ec != std::errc() || end != s.data() + s.size()) return std::nullopt;
  const unsigned long long top = 1ull << 63;
  if (magnitude > (negative ? top : top - 1)) return std::nullopt;
  return negative ? (long long)(0 - magnitude) : (long long)magnitude;
}

std::optional<double> parse_double(std::string_view s) {
  // Only plain decimal numbers count: no "nan", "inf" or leading blanks from a tool's table.
  if (s.empty() || !(is_digit(s.front()) || s.front() == '-' || s.front() == '+' || s.front() == '.'))
    return std::nullopt;
  if (s.front() == '+') s.remove_prefix(1);
  double value = 0;
  auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (ec != std::errc() || end != s.data() + s.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows: a swap of neighbours looks two back (optimal string alignment).
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const auto& c : candidates) {
    size_t d = edit_distance(lower(word), lower(c));
    if (d < best_distance) {
      best_distance = d;
      best = c;
    }
  }
  return best;
}

std::string shell_quote(std::string_view s) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
           std::string_view("@%+=:,./-_").find(c) != std::string_view::npos;
  };
  // A word that starts with = or ~ means something to some shells; quote it.
  if (!s.empty() && s.front() != '=' && std::all_of(s.begin(), s.end(), plain)) return std::string(s);
  std::string out = "'";
  out += replace_all(std::string(s), "'", "'\\''");
  return out += '\'';
}

std::string shell_join(const std::vector<std::string>& argv) {
  std::string out;
  for (const auto& word : argv) {
    if (!out.empty()) out += ' ';
    out += shell_quote(word);
  }
  return out;
}

bool natural_less(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      size_t i0 = i, j0 = j;
      while (i < a.size() && is_digit(a[i])) ++i;
      while (j < b.size() && is_digit(b[j])) ++j;
      std::string_view x = a.substr(i0, i - i0), y = b.substr(j0, j - j0);
      while (x.size() > 1 && x.front() == '0') x.remove_prefix(1);
      while (y.size() > 1 && y.front() == '0') y.remove_prefix(1);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return (unsigned char)a[i] < (unsigned char)b[j];
      ++i;
      ++j;
    }
  }
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  return a < b;  // differ in leading zeros only: still a total order
}

namespace {
// Next code point of UTF-8; broken bytes count as one character each.
char32_t next_rune(std::string_view s, size_t& i) {
  unsigned char c = (unsigned char)s[i++];
  int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
  char32_t rune = more == 3 ? c & 7 : more == 2 ? c & 15 : more == 1 ? c & 31 : c;
  for (; more > 0 && i < s.size() && ((unsigned char)s[i] & 0xc0) == 0x80; --more)
    rune = rune << 6 | ((unsigned char)s[i++] & 0x3f);
  return more > 0 || (c >= 0x80 && c < 0xc0) ? 0xfffd : rune;
}

// East Asian Wide and Fullwidth blocks that the product's text uses (Unicode TR 11, whole blocks).
bool is_wide(char32_t r) {
  return (r >= 0x1100 && r <= 0x115f) || (r >= 0x2e80 && r <= 0xa4cf && r != 0x303f) ||
         (r >= 0xac00 && r <= 0xd7a3) || (r >= 0xf900 && r <= 0xfaff) || (r >= 0xfe30 && r <= 0xfe6f) ||
         (r >= 0xff00 && r <= 0xff60) || (r >= 0xffe0 && r <= 0xffe6) || (r >= 0x1f300 && r <= 0x1faff) ||
         (r >= 0x20000 && r <= 0x3fffd);
}
bool is_combining(char32_t r) {
  return (r >= 0x300 && r <= 0x36f) || r == 0x200b || r == 0x200d || (r >= 0xfe00 && r <= 0xfe0f);
}
}  // namespace

size_t display_width(std::string_view s) {
  size_t width = 0;
  for (size_t i = 0; i < s.size();) {
    char32_t r = next_rune(s, i);
    if (r >= 0x20 && r != 0x7f && !is_combining(r)) width += is_wide(r) ? 2 : 1;
  }
  return width;
}

std::string pad(std::string_view s, size_t width) {
  std::string out(s);
  size_t have = display_width(s);
  if (have < width) out.append(width - have, ' ');
  return out;
}

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int u = 0;
  // 999.95 and up would print as "1000.0": step over.
  while (std::fabs(bytes) >= (u == 0 ? 1000 : 999.95) && u < 5) {
    bytes /= 1000;
    ++u;
  }
  return u == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[u]);
}

namespace {

/// So many bytes from `at` on hold no control character; eight at a time.
size_t printable_run(std::string_view s, size_t at) {
  const size_t begin = at;
  constexpr uint64_t kOnes = 0x0101010101010101u, kHigh = kOnes * 0x80;
  for (uint64_t x; at + 8 <= s.size(); at += 8) {
    std::memcpy(&x, s.data() + at, 8);
    const uint64_t below_space = (x - kOnes * 0x20) & ~x & kHigh, del = x ^ (kOnes * 0x7f);
    if (below_space | ((del - kOnes) & ~del & kHigh)) break;
  }
  while (at < s.size() && static_cast<unsigned char>(s[at]) >= 0x20 && s[at] != 0x7f) ++at;
  return at - begin;
}

}  // namespace

std::string strip_ansi(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    if (c == 0x1b && i + 1 < s.size() && s[i + 1] == '[') {
      i += 2;
      while (i < s.size() && !((unsigned char)s[i] >= 0x40 && (unsigned char)s[i] <= 0x7e)) ++i;
      i += i < s.size();
    } else if (c == 0x1b && i + 1 < s.size() && s[i + 1] == ']') {
      i += 2;
      while (i < s.size() && s[i] != '\a' && !(s[i] == '\x1b' && i + 1 < s.size() && s[i + 1] == '\\')) ++i;
      i += i < s.size() ? (s[i] == '\a' ? 1 : 2) : 0;
    } else if (c == 0x1b) {
      i += i + 1 < s.size() ? 2 : 1;
    } else if (c == '\n' || c == '\t') {
      out += s[i++];
    } else if (const size_t run = printable_run(s, i)) {
      out.append(s, i, run);
      i += run;
    } else {
      ++i;
    }
  }
  return out;
}

}  // namespace ep
