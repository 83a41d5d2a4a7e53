#include "base/version.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text.h"

namespace ep {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Digit strings of any length, compared as numbers.
int compare_digits(std::string_view a, std::string_view b) {
  while (!a.empty() && a.front() == '0') a.remove_prefix(1);
  while (!b.empty() && b.front() == '0') b.remove_prefix(1);
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  int c = a.compare(b);
  return c < 0 ? -1 : c > 0;
}

std::string_view take_digits(std::string_view& s) {
  size_t n = 0;
  while (n < s.size() && is_digit(s[n])) ++n;
  std::string_view out = s.substr(0, n);
  s.remove_prefix(n);
  return out;
}

// ---- Debian: deb-version(7), "Sorting algorithm" ----

// End of part sorts after ~ and before letters; letters before everything else.
int debian_rank(std::string_view s, size_t i) {
  if (i >= s.size() || is_digit(s[i])) return 0;
  if (s[i] == '~') return -1;
  return is_alpha(s[i]) ? (unsigned char)s[i] : (unsigned char)s[i] + 256;
}

int compare_debian_part(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    size_t i = 0;
    while ((i < a.size() && !is_digit(a[i])) || (i < b.size() && !is_digit(b[i]))) {
      int x = debian_rank(a, i), y = debian_rank(b, i);
      if (x != y) return x < y ? -1 : 1;
      ++i;
    }
    a.remove_prefix(std::min(i, a.size()));
    b.remove_prefix(std::min(i, b.size()));
    if (int c = compare_digits(take_digits(a), take_digits(b))) return c;
  }
  return 0;
}

int compare_debian(std::string_view a, std::string_view b) {
  auto parts = [](std::string_view v) {
    std::array<std::string_view, 3> p{"0", v, ""};  // epoch, upstream, revision
    if (size_t colon = v.find(':'); colon != v.npos) {
      p[0] = v.substr(0, colon);
      v.remove_prefix(colon + 1);
    }
    size_t dash = v.rfind('-');
    p[1] = v.substr(0, dash);
    if (dash != v.npos) p[2] = v.substr(dash + 1);
    return p;
  };
  auto x = parts(trim(a)), y = parts(trim(b));
  if (int c = compare_digits(x[0], y[0])) return c;
  if (int c = compare_debian_part(x[1], y[1])) return c;
  return compare_debian_part(x[2], y[2]);
}

// ---- PEP 440 (https://peps.python.org/pep-0440/): epoch, release, pre, post, dev, local ----

struct Pep440 {
  std::string epoch = "0";
  std::vector<std::string> release;
  int pre_phase = 3;  // 0 a, 1 b, 2 rc, 3 none; -1: dev release without pre sorts before all pre-releases
  std::string pre = "0";
  bool has_post = false, has_dev = false;
  std::string post = "0", dev = "0";
  std::vector<std::string> local;
  bool valid = true;
};

bool take_word(std::string_view& s, std::string_view word) {
  if (!starts_with(s, word)) return false;
  s.remove_prefix(word.size());
  return true;
}

void skip_separator(std::string_view& s) {
  if (!s.empty() && (s[0] == '.' || s[0] == '-' || s[0] == '_')) s.remove_prefix(1);
}

// "[.-_]?WORD[.-_]?N?"; leaves s alone when no word of the table is there.
int take_phase(std::string_view& s, std::initializer_list<std::pair<std::string_view, int>> words,
               std::string& number) {
  std::string_view t = s;
  skip_separator(t);
  for (auto [word, phase] : words) {
    if (!take_word(t, word)) continue;
    std::string_view u = t;
    skip_separator(u);
    std::string_view digits = take_digits(u);
    if (!digits.empty()) t = u;
    number = digits.empty() ? "0" : std::string(digits);
    s = t;
    return phase;
  }
  return -2;
}

Pep440 parse_pep440(std::string_view text) {
  std::string low = lower(trim(text));
  std::string_view s = low;
  Pep440 v;
  take_word(s, "v");
  std::string_view first = s;
  std::string_view digits = take_digits(first);
  if (!digits.empty() && !first.empty() && first[0] == '!') {
    v.epoch = digits;
    s = first.substr(1);
  }
  for (;;) {
    std::string_view n = take_digits(s);
    if (n.empty()) v.valid = false;
    v.release.emplace_back(n);
    if (s.size() < 2 || s[0] != '.' || !is_digit(s[1])) break;
    s.remove_prefix(1);
  }
  int phase = take_phase(
      s, {{"alpha", 0}, {"a", 0}, {"beta", 1}, {"b", 1}, {"preview", 2}, {"pre", 2}, {"rc", 2}, {"c", 2}},
      v.pre);
  if (phase >= 0) v.pre_phase = phase;
  if (s.size() > 1 && s[0] == '-' && is_digit(s[1])) {  // implicit post release: 1.0-1
    s.remove_prefix(1);
    v.post = take_digits(s);
    v.has_post = true;
  } else if (take_phase(s, {{"post", 0}, {"rev", 0}, {"r", 0}}, v.post) == 0) {
    v.has_post = true;
  }
  v.has_dev = take_phase(s, {{"dev", 0}}, v.dev) == 0;
  if (v.has_dev && v.pre_phase == 3 && !v.has_post) v.pre_phase = -1;
  if (!s.empty() && s[0] == '+') {
    std::string_view local = s.substr(1);
    std::string piece;
    for (char c : local) {
      if (c == '.' || c == '-' || c == '_') {
        v.local.push_back(std::exchange(piece, {}));
      } else {
        piece += c;
      }
    }
    v.local.push_back(piece);
  } else if (!s.empty()) {
    v.valid = false;
  }
  while (v.release.size() > 1 && v.release.back().find_first_not_of('0') == std::string::npos)
    v.release.pop_back();
  return v;
}

int compare_local(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size()) return -1;
    if (i >= b.size()) return 1;
    auto numeric = [](const std::string& s) {
      return !s.empty() && s.find_first_not_of("0123456789") == s.npos;
    };
    bool x = numeric(a[i]), y = numeric(b[i]);
    if (x != y) return x ? 1 : -1;  // numbers sort after words
    int c = x ? compare_digits(a[i], b[i]) : a[i].compare(b[i]);
    if (c) return c < 0 ? -1 : 1;
  }
  return 0;
}

int compare_pep440(std::string_view a, std::string_view b) {
  Pep440 x = parse_pep440(a), y = parse_pep440(b);
  // Strings outside the grammar sort before all versions, by bytes, so that the order stays total.
  if (x.valid != y.valid) return x.valid ? 1 : -1;
  if (!x.valid) return a.compare(b) < 0 ? -1 : a.compare(b) > 0;
  if (int c = compare_digits(x.epoch, y.epoch)) return c;
  for (size_t i = 0; i < std::max(x.release.size(), y.release.size()); ++i) {
    std::string_view p = i < x.release.size() ? std::string_view(x.release[i]) : "0";
    std::string_view q = i < y.release.size() ? std::string_view(y.release[i]) : "0";
    if (int c = compare_digits(p, q)) return c;
  }
  if (x.pre_phase != y.pre_phase) return x.pre_phase < y.pre_phase ? -1 : 1;
  if (int c = compare_digits(x.pre, y.pre)) return c;
  if (x.has_post != y.has_post) return x.has_post ? 1 : -1;
  if (int c = compare_digits(x.post, y.post)) return c;
  if (x.has_dev != y.has_dev) return x.has_dev ? -1 : 1;  // a dev release precedes what it leads to
  if (int c = compare_digits(x.dev, y.dev)) return c;
  return compare_local(x.local, y.local);
}

// ---- Dotted ----

int compare_dotted(std::string_view a, std::string_view b) {
  auto prepare = [](std::string_view s) {
    s = trim(s);
    if (s.size() > 1 && (s[0] == 'v' || s[0] == 'V') && is_digit(s[1])) s.remove_prefix(1);
    size_t dash = s.find('-');
    return std::pair(s.substr(0, dash), dash == s.npos ? std::string_view{} : s.substr(dash + 1));
  };
  auto [x, xs] = prepare(a);
  auto [y, ys] = prepare(b);
  auto p = split(x, '.'), q = split(y, '.');
  for (size_t i = 0; i < std::max(p.size(), q.size()); ++i) {
    std::string_view u = i < p.size() ? p[i] : std::string_view{};
    std::string_view w = i < q.size() ? q[i] : std::string_view{};
    if (int c = compare_digits(take_digits(u), take_digits(w))) return c;
    if (u != w) return u < w ? -1 : 1;  // "rc1" and its like: letters after the number
  }
  if (xs == ys) return 0;
  return compare_debian_part(xs, ys);
}

}  // namespace

int compare_versions(VersionOrder order, std::string_view a, std::string_view b) {
  switch (order) {
    case VersionOrder::debian:
      return compare_debian(a, b);
    case VersionOrder::pep440:
      return compare_pep440(a, b);
    case VersionOrder::dotted:
      break;
  }
  return compare_dotted(a, b);
}

std::string nccl_version(int code) {
  if (code <= 0) return "";
  // Up to 2.8 the code was major*1000 + minor*100 + patch; 2.9 changed it (nccl.h, NCCL_VERSION).
  if (code < 10000) return fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100);
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

int nccl_code(std::string_view version) {
  auto parts = split(split(trim(version), '-')[0], '.');
  if (parts.size() < 2 || parts.size() > 3) return 0;
  long long n[3] = {0, 0, 0};
  for (size_t i = 0; i < parts.size(); ++i) {
    auto v = parse_int(parts[i]);
    if (!v || *v < 0 || *v > 99) return 0;
    n[i] = *v;
  }
  if (n[0] < 1) return 0;
  return int(n[0] <= 2 && n[1] <= 8 ? n[0] * 1000 + n[1] * 100 + n[2] : n[0] * 10000 + n[1] * 100 + n[2]);
}

namespace {

struct Clause {
  std::string_view op, version;
};

// One "OP VERSION" clause; the operator is empty when the text has none.
Clause parse_clause(std::string_view text) {
  text = trim(text);
  for (std::string_view op : {"==", "!=", ">=", "<=", ">", "<"})
    if (starts_with(text, op)) return {op, trim(text.substr(op.size()))};
  return {"", text};
}

bool has_prefix_star(std::string_view version) {
  return ends_with(version, ".*");
}

// "1.2" is a prefix of 1.2, 1.2.0, 1.2.9 and of 1.2.9+cu129, not of 1.20.
bool matches_prefix(VersionOrder order, std::string_view version, std::string_view prefix) {
  auto want = split(prefix, '.');
  std::string_view v = trim(version);
  if (order != VersionOrder::debian && v.size() > 1 && (v[0] == 'v' || v[0] == 'V')) v.remove_prefix(1);
  auto have = split(v.substr(0, v.find_first_of("+-")), '.');
  for (size_t i = 0; i < want.size(); ++i) {
    std::string_view h = i < have.size() ? have[i] : "0";
    if (compare_digits(take_digits(h), want[i])) return false;
    if (!h.empty() && i + 1 < want.size()) return false;
  }
  return true;
}

}  // namespace

bool VersionRange::contains(std::string_view version) const {
  if (trim(text).empty()) return true;
  for (auto piece : split(text, ',')) {
    Clause c = parse_clause(piece);
    bool ok = true;
    if (has_prefix_star(c.version)) {
      bool match = matches_prefix(order, version, c.version.substr(0, c.version.size() - 2));
      ok = c.op == "!=" ? !match : match;
    } else {
      std::string_view v = version;
      // PEP 440: a clause without local label ignores the candidate's ("2.9.1+cu129" satisfies ==2.9.1).
      if (order == VersionOrder::pep440 && c.version.find('+') == c.version.npos)
        v = v.substr(0, v.find('+'));
      int d = compare_versions(order, v, c.version);
      ok = c.op == "=="   ? d == 0
           : c.op == "!=" ? d != 0
           : c.op == ">=" ? d >= 0
           : c.op == "<=" ? d <= 0
           : c.op == ">"  ? d > 0
                          : d < 0;
    }
    if (!ok) return false;
  }
  return true;
}

Result<VersionRange> VersionRange::parse(VersionOrder order, std::string_view text) {
  const char* expected = "expected clauses like \">=2.30.4, <3\" with == != >= <= > < and ==X.*";
  VersionRange range{order, std::string(trim(text))};
  if (range.text.empty()) return range;
  for (auto piece : split(range.text, ',')) {
    Clause c = parse_clause(piece);
    std::string_view v = c.version;
    if (c.op.empty() || v.empty() || split_ws(v).size() != 1)
      return fail(ErrorKind::malformed, "version range not understood", range.text, expected);
    if (has_prefix_star(v)) {
      if (c.op != "==" && c.op != "!=")
        return fail(ErrorKind::malformed, "version range not understood", range.text,
                    "X.* goes with == and != only");
      v.remove_suffix(2);
    }
    size_t start = v.size() > 1 && (v[0] == 'v' || v[0] == 'V') ? 1 : 0;
    bool bad_start = v.empty() || !is_digit(v[start]);
    bool bad_pep = order == VersionOrder::pep440 && !bad_start && !parse_pep440(v).valid;
    if (bad_start || bad_pep || v.find_first_of("*=<>") != v.npos)
      return fail(ErrorKind::malformed, "version range not understood", range.text, expected);
  }
  return range;
}

}  // namespace ep
