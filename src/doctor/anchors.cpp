#include "doctor/anchors.h"

#include <re2/filtered_re2.h>

#include <algorithm>

#include "base/text.h"

namespace ep {

namespace {

constexpr size_t kShortWord = 3;
constexpr double kNever = 1e300;

/// Where the piece of an expression that begins at `i` ends: one character, an escape, a class.
size_t piece_end(std::string_view r, size_t i) {
  if (r[i] == '\\') {
    if (i + 2 < r.size() && (r[i + 1] == 'x' || r[i + 1] == 'p' || r[i + 1] == 'P') && r[i + 2] == '{')
      return std::min(r.size(), r.find('}', i)) + 1;
    if (i + 1 < r.size() && r[i + 1] == 'x') return std::min(r.size(), i + 4);
    if (i + 1 < r.size() && (r[i + 1] == 'p' || r[i + 1] == 'P')) return std::min(r.size(), i + 3);
    return std::min(r.size(), i + 2);
  }
  if (r[i] != '[') return i + 1;
  size_t k = i + 1;
  if (k < r.size() && r[k] == '^') ++k;
  if (k < r.size() && r[k] == ']') ++k;
  for (; k < r.size() && r[k] != ']'; ++k) {
    if (r[k] == '\\') ++k;
    if (r[k] == '[' && k + 1 < r.size() && r[k + 1] == ':') k = r.find(":]", k) + 1;
  }
  return std::min(r.size(), k + 1);
}

/// A class of many characters: all that it says is that something stands there.
bool is_wide(std::string_view piece) {
  if (piece.size() == 2 && piece[0] == '\\') return contains("dDwWsS", piece.substr(1));
  return piece[0] == '[' && (piece[1] == '^' || piece.find('-', 2) < piece.size() - 2 ||
                             contains(piece, "\\") || contains(piece, "[:"));
}

/// (5.|6.) as (?:(5|6).): `group` is the whole group; the dot that ends every branch goes behind it, so that
/// what is left can be words. As often as it can be done.
std::string dots_behind(std::string group) {
  size_t begin = 1;
  if (group.size() > 2 && group[1] == '?') begin = group.find_first_of(":>", 2) + 1;
  if (begin == 0) return group;
  std::string dots;
  for (;;) {
    std::vector<size_t> ends;  // of the branches
    int depth = 0;
    for (size_t i = begin; i + 1 < group.size();) {
      const size_t end = piece_end(group, i);
      depth += (group[i] == '(') - (group[i] == ')');
      if (group[i] == '|' && depth == 0) ends.push_back(i);
      i = end;
    }
    ends.push_back(group.size() - 1);
    size_t from = begin;
    for (size_t end : ends) {
      if (end == from || group[end - 1] != '.' || (end - from > 1 && group[end - 2] == '\\')) from = 0;
      if (from == 0) break;
      from = end + 1;
    }
    if (from == 0 || ends.size() < 2) break;
    for (size_t k = ends.size(); k-- > 0;) group.erase(ends[k] - 1, 1);
    dots += '.';
  }
  return dots.empty() ? group : "(?:" + group + dots + ")";
}

}  // namespace

std::string relaxed(std::string_view r) {
  if (contains(r, "\\Q")) return std::string(r);
  std::string out;
  std::vector<size_t> open;  // beginnings of groups in `out`
  size_t last = 0;           // beginning of the last whole piece in `out`
  for (size_t i = 0; i < r.size();) {
    if (r[i] == '(') {
      open.push_back(out.size());
      out += r[i++];
      if (i < r.size() && r[i] == '?')  // its flags or name are no pieces
        for (bool more = true; more && i < r.size();)
          more = r[i] != ':' && r[i] != ')' && r[i] != '>', out += r[i++];
      if (out.back() == ')') last = open.back(), open.pop_back();
    } else if (r[i] == ')') {
      out += r[i++];
      if (open.empty()) return std::string(r);
      last = open.back();
      open.pop_back();
      const std::string group = dots_behind(out.substr(last));
      out.replace(last, std::string::npos, group);
    } else if (r[i] == '?') {
      const char before = i > 0 ? r[i - 1] : '|';
      const bool lazy =
          (before == '*' || before == '+' || before == '?' || before == '}') && (i < 2 || r[i - 2] != '\\');
      if (lazy || out.empty()) {
        out += r[i++];
        continue;
      }
      out.insert(last, "(?:");
      out += "|)";
      ++i;
      if (i < r.size() && r[i] == '?') ++i;
    } else if (r[i] == '*' || r[i] == '+' || r[i] == '|') {
      out += r[i++];
    } else if (r[i] == '{') {
      const size_t end = std::min(r.size(), r.find('}', i)) + 1;
      out += r.substr(i, end - i);
      i = end;
    } else {
      const size_t end = piece_end(r, i);
      const std::string_view piece = r.substr(i, end - i);
      last = out.size();
      out += is_wide(piece) ? "." : piece;
      i = end;
    }
  }
  return out;
}

/// RE2's account of the words that an expression needs.
class Anchors::Needs {
 public:
  static std::unique_ptr<Needs> of(const std::string& regex, bool ignore_case, size_t shortest) {
    auto n = std::make_unique<Needs>(shortest);
    re2::RE2::Options o;
    o.set_log_errors(false);
    o.set_case_sensitive(!ignore_case);
    o.set_max_mem(8 << 20);
    int id = 0;
    if (n->re_.Add(regex, o, &id) != re2::RE2::NoError) return nullptr;
    std::vector<std::string> atoms;
    n->re_.Compile(&atoms);
    n->atoms_ = atoms.size();
    for (size_t i = 0; i < atoms.size(); ++i) {
      const bool ascii =
          std::all_of(atoms[i].begin(), atoms[i].end(), [](char c) { return (c & 0x80) == 0; });
      if (!ascii || atoms[i].size() < shortest) continue;
      n->words.push_back({atoms[i], true});
      n->atom_of_.push_back(i);
    }
    return n->words.empty() ? nullptr : std::move(n);
  }
  explicit Needs(size_t shortest) : re_(int(shortest)) {}

  AnchorSet cheapest(const LiteralCost& cost) const {
    std::vector<std::pair<double, size_t>> dearest;
    std::vector<bool> in(words.size());
    for (size_t i = 0; i < words.size(); ++i) {
      dearest.emplace_back(cost(words[i]), i);
      in[i] = dearest.back().first < kNever;
    }
    if (!enough(in)) return {};
    std::sort(dearest.rbegin(), dearest.rend());
    for (const auto& [c, i] : dearest) {
      if (!in[i]) continue;
      in[i] = false;
      if (!enough(in)) in[i] = true;
    }
    double sum = 0;
    AnchorSet out;
    for (const auto& [c, i] : dearest)
      if (in[i]) out.push_back(words[i]), sum += c;
    for (const auto& [c, i] : dearest) {  // one word alone may be cheaper than many that are rarer each
      if (c >= sum) continue;
      std::vector<bool> alone(words.size());
      alone[i] = true;
      if (enough(alone)) out = {words[i]}, sum = c;
    }
    return out;
  }

  std::vector<LiteralScan::Literal> words;

 private:
  /// Enough are words when a text without any of them, and with all others, cannot match. Beginning with all,
  /// the dearest are left out one by one as long as that holds.
  bool enough(const std::vector<bool>& in) const {
    std::vector<bool> gone(atoms_);
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i]) gone[atom_of_[i]] = true;
    std::vector<int> there, still;
    for (size_t a = 0; a < atoms_; ++a)
      if (!gone[a]) there.push_back(int(a));
    re_.AllPotentials(there, &still);
    return still.empty();
  }

  re2::FilteredRE2 re_;
  std::vector<size_t> atom_of_;  ///< number among RE2's atoms
  size_t atoms_ = 0;
};

Anchors::Anchors(const LinePattern& pattern) {
  for (const auto& l : pattern.literals)
    if (l.size() >= LiteralScan::kMinLength) own_.push_back({l, pattern.ignore_case});
  if (pattern.regex_text.empty()) return;
  const std::string regex = relaxed(pattern.regex_text);
  long_ = Needs::of(regex, pattern.ignore_case, LiteralScan::kMinLength);
  short_ = Needs::of(regex, pattern.ignore_case, kShortWord);
}

Anchors::~Anchors() = default;
Anchors::Anchors(Anchors&&) noexcept = default;
Anchors& Anchors::operator=(Anchors&&) noexcept = default;

std::vector<LiteralScan::Literal> Anchors::words() const {
  auto all = own_;
  if (long_) all.insert(all.end(), long_->words.begin(), long_->words.end());
  return all;
}

std::vector<LiteralScan::Literal> Anchors::short_words() const {
  return short_ ? short_->words : std::vector<LiteralScan::Literal>{};
}

AnchorSet Anchors::cheapest(const LiteralCost& cost) const {
  AnchorSet best;
  double least = 0;
  const auto offer = [&](AnchorSet set) {
    if (set.empty()) return;
    double sum = 0;
    for (const auto& l : set) sum += cost(l);
    if (best.empty() || sum < least) best = std::move(set), least = sum;
  };
  for (const auto& l : own_) offer({l});
  if (long_) offer(long_->cheapest(cost));
  return best;
}

AnchorSet Anchors::check(const AnchorSet& found, const LiteralCost& cost) const {
  if (!short_) return {};
  return short_->cheapest([&](const LiteralScan::Literal& l) {
    for (const auto& f : found)
      if (icontains(f.text, l.text)) return kNever;
    return cost(l);
  });
}

}  // namespace ep
