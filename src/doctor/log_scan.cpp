#include "doctor/log_scan.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/text.h"
#include "doctor/rank.h"
#include "doctor/text_find.h"
#include "doctor/text_stream.h"

namespace ep {

namespace {

constexpr size_t kBlock = 256 << 10;    // stays in the second-level cache while it is searched
constexpr size_t kLongLine = 64 << 10;  // a line above this is looked at in windows
constexpr size_t kWindow = 8 << 10;     // bytes of a long line before and after a literal
constexpr size_t kOverlap = 2 * kWindow;
constexpr int64_t kWakeEvery = 32;    // blocks
constexpr int kTaste = 8;             // lines of such a block, for a pattern that has had enough
constexpr int64_t kPlacesALine = 16;  // so many places looked at closely cost about as much as one line tried

int64_t occurrences(std::string_view text, std::string_view word) {
  int64_t n = 0;
  for (size_t at = 0; (at = find_word(text, word, true)) != std::string_view::npos; ++n)
    text.remove_prefix(at + 1);
  return n;
}

}  // namespace

LogScan::LogScan(std::vector<ScanPattern> patterns) : patterns_(std::move(patterns)) {
  for (const ScanPattern& s : patterns_) {
    const LinePattern& p = *s.pattern;
    anchors_.push_back({{p.literals[p.anchor()], p.ignore_case}});
    from_start_.push_back(p.regex && asks_for_start(p.regex_text));
  }
}

LogScan::Finder LogScan::build(const std::vector<AnchorSet>& sets, std::string_view sample) {
  std::vector<LiteralScan::Literal> literals;
  std::vector<std::vector<uint32_t>> patterns;
  std::map<std::pair<std::string, bool>, size_t> index;
  for (uint32_t p = 0; p < sets.size(); ++p)
    for (const auto& l : sets[p]) {
      auto [it, fresh] = index.emplace(std::make_pair(l.text, l.ignore_case), literals.size());
      if (fresh) {
        literals.push_back(l);
        patterns.emplace_back();
      }
      patterns[it->second].push_back(p);
    }
  return {LiteralScan(std::move(literals), sample), std::move(patterns)};
}

/// The state of one run: where we are in the text, and what each pattern has seen.
struct LogScan::Pass {
  LogScan& self;
  const Hit& hit;
  std::vector<Load>& seen;
  ScanNotes notes;
  Finder finder;
  std::vector<AnchorSet> sets;
  std::vector<bool> awake;  ///< by literal
  bool full = false, was_every = true, had_enough = false;
  bool tasting = false;  ///< this block is one for patterns that have had enough, too
  std::vector<int> tasted;
  std::vector<int64_t> last_line;
  int64_t line = 1, blocks = 0;
  std::vector<std::pair<size_t, uint32_t>> found;

  // The line, or piece of a line, in hand.
  int64_t piece = 0;
  size_t begin = 0, end = 0;
  const char* counted = nullptr;         ///< `line` is the line of this place
  std::vector<int64_t> tried;            ///< the piece that a pattern was last tried on
  std::vector<uint32_t> matched;         ///< patterns
  std::string_view text;                 ///< without escape sequences
  std::string plain, plain_next;         ///< where a copy had to be made for that
  std::optional<std::string_view> past;  ///< past_prefix of it

  // Work, and the choice of words.
  int64_t places = 0, lines_tried = 0, next_choice = 0;
  bool chosen = false;
  std::map<uint32_t, Anchors> anchors;  ///< of patterns that made work
  struct Check {                        ///< one of these must stand on the line, too
    WordSet words;
    int64_t when = -1;  ///< the piece that they were last looked for in
    bool there = false;
  };
  std::vector<Check> checks;
  std::vector<int> check_of;  ///< of each pattern: index, or -1
  std::vector<int64_t> tries_then;
  std::map<std::pair<std::string, bool>, double> counts;  ///< the most that a word stood in a sample

  Pass(LogScan& s, const Hit& h)
      : self(s),
        hit(h),
        seen(s.loads_),
        finder(build(s.anchors_, {})),
        sets(s.anchors_),
        awake(finder.patterns.size(), true),
        tasted(s.patterns_.size()),
        last_line(s.patterns_.size(), -1),
        tried(s.patterns_.size(), -1),
        next_choice(s.patience_),
        check_of(s.patterns_.size(), -1),
        tries_then(s.patterns_.size()) {
    seen.assign(s.patterns_.size(), {});
  }

  bool enough(uint32_t p) const {
    return seen[p].hits >= self.patterns_[p].enough_hits || seen[p].tries >= self.patterns_[p].enough_tries;
  }

  /// Literals all of whose patterns have had enough rest in most blocks.
  void choose_awake(bool all) {
    tasting = !all && blocks % kWakeEvery == 0;
    if (tasting) std::fill(tasted.begin(), tasted.end(), 0);
    ++blocks;
    full = all;
    const bool every = all || tasting;
    if (every == was_every && !had_enough) return;
    was_every = every;
    had_enough = false;
    bool change = false;
    for (size_t l = 0; l < awake.size(); ++l) {
      bool wanted = every;
      for (uint32_t p : finder.patterns[l]) wanted = wanted || !enough(p);
      change |= wanted != awake[l];
      awake[l] = wanted;
    }
    if (change) finder.scan.set_awake(awake);
  }

  /// Searches [data, data+size); hits that begin in [from, to) count. Moves `line` to the line of data+size.
  void search(const char* data, size_t size, size_t from, size_t to) {
    found.clear();
    places += int64_t(finder.scan.scan(data, size, [&](uint32_t literal, size_t at) {
      if (at >= from && at < to) found.emplace_back(at, literal);
    }));
    std::sort(found.begin(), found.end());
    counted = data;
    end = 0;
    for (const auto& [at, literal] : found) {
      if (at >= end) {
        report(data, size);
        cut_piece(data, size, at);
      }
      for (uint32_t p : finder.patterns[literal]) look(p);
      // A window of a long line is this hit's own.
      if (end - begin > kWindow) report(data, size), end = at + 1;
    }
    report(data, size);
    line += count_newlines(counted, data + size);
  }

  void cut_piece(const char* data, size_t size, size_t at) {
    begin = piece_begin(data, at, at > kWindow ? at - kWindow : 0);
    end = piece_end(data, at, std::min(size, at + kWindow));
    text = without_escapes({data + begin, end - begin}, plain);
    ++piece;
    past.reset();
  }

  static std::string_view without_escapes(std::string_view s, std::string& copy) {
    if (s.empty() || !std::memchr(s.data(), '\x1b', s.size())) return s;
    return copy = strip_ansi(s);
  }

  void look(uint32_t p) {
    if (tried[p] == piece) return;
    if (!full && enough(p) && (!tasting || ++tasted[p] > kTaste)) return;
    tried[p] = piece;
    ++lines_tried;
    if (fits(p))
      matched.push_back(p);
    else
      had_enough |= ++seen[p].tries == self.patterns_[p].enough_tries;
  }

  bool passes(Check& c) {
    if (c.when != piece) c.when = piece, c.there = c.words.any_in(text);
    return c.there;
  }

  bool fits(uint32_t p) {
    const LinePattern& x = *self.patterns_[p].pattern;
    const bool known = !chosen && x.literals.size() == 1;  // it is what the scan found
    for (const auto& l : x.literals)
      if (!known && !has_word(text, l, x.ignore_case)) return false;
    if (check_of[p] >= 0 && !passes(checks[size_t(check_of[p])])) return false;
    if (!x.regex || re2::RE2::PartialMatch(text, *x.regex)) return true;
    if (!self.from_start_[p]) return false;
    if (!past) past = past_prefix(text);
    return past->size() < text.size() && re2::RE2::PartialMatch(*past, *x.regex);
  }

  static std::string_view following(const char* data, size_t size, size_t end) {
    constexpr size_t kNext = 512;
    while (end < size && data[end] == '\r') ++end;
    if (end >= size || data[end] != '\n') return {};
    const std::string_view rest(data + end + 1, std::min(kNext, size - end - 1));
    return rest.substr(0, rest.find_first_of("\r\n"));
  }

  /// Tells of the piece in hand, in the order in which the patterns' first words stand on it.
  void report(const char* data, size_t size) {
    if (matched.empty()) return;
    line += count_newlines(counted, data + begin);
    counted = data + begin;
    const LogLine l{text, line, without_escapes(following(data, size, end), plain_next), piece};
    if (chosen && matched.size() > 1) {
      std::vector<std::pair<size_t, uint32_t>> order;
      for (uint32_t p : matched)
        order.emplace_back(find_word(l.text, self.anchors_[p][0].text, self.anchors_[p][0].ignore_case), p);
      std::sort(order.begin(), order.end());
      for (size_t i = 0; i < order.size(); ++i) matched[i] = order[i].second;
    }
    for (uint32_t p : matched) {
      if (last_line[p] == line) continue;  // a piece of the same line before it
      had_enough |= ++seen[p].hits == self.patterns_[p].enough_hits;
      last_line[p] = line;
      hit(p, l);
    }
    matched.clear();
  }

  /// Chooses the words of the patterns that made work anew, by how often they stand in `sample`.
  void choose_words(std::string_view sample) {
    if (self.patience_ < 0 || lines_tried + places / kPlacesALine < next_choice) return;
    next_choice = 2 * (lines_tried + places / kPlacesALine);
    if (self.patience_ == 0) next_choice = 0;
    for (uint32_t p = 0; p < sets.size(); ++p) {
      constexpr int64_t kWork = 32;
      if (seen[p].tries - tries_then[p] >= (self.patience_ == 0 ? 0 : kWork) && !anchors.count(p))
        anchors.emplace(p, Anchors(*self.patterns_[p].pattern));
      tries_then[p] = seen[p].tries;
    }
    count_words(sample);
    const auto cost = [&](const LiteralScan::Literal& l) {
      const double tie = l.text.size() < LiteralScan::kMinLength ? 0 : LiteralScan::commonness(l.text);
      return counts[{l.text, l.ignore_case}] + 1e-6 * tie;
    };
    checks.clear();
    std::map<std::vector<std::string>, int> index;
    for (auto& [p, a] : anchors) {
      sets[p] = a.cheapest(cost);
      std::vector<std::string> words;
      for (const auto& l : a.check(sets[p], cost)) words.push_back(l.text);
      check_of[p] = -1;
      if (words.empty()) continue;
      auto [it, fresh] = index.emplace(words, int(checks.size()));
      if (fresh) checks.push_back({WordSet(words)});
      check_of[p] = it->second;
    }
    finder = build(sets, sample);
    awake.assign(finder.patterns.size(), true);
    had_enough = chosen = true;
  }

  /// The most that each word stood in any sample.
  void count_words(std::string_view sample) {
    std::map<std::pair<std::string, bool>, double> now;
    AnchorSet long_words;
    for (const auto& [p, a] : anchors) {
      for (const auto& l : a.words())
        if (now.emplace(std::make_pair(l.text, l.ignore_case), 0).second) long_words.push_back(l);
      for (const auto& l : a.short_words())
        if (l.text.size() < LiteralScan::kMinLength)
          if (auto [it, fresh] = now.emplace(std::make_pair(l.text, true), 0); fresh)
            it->second = double(occurrences(sample, l.text));
    }
    std::vector<double> n(long_words.size());
    LiteralScan(long_words, sample).scan(sample.data(), sample.size(), [&](uint32_t w, size_t) { ++n[w]; });
    for (size_t i = 0; i < n.size(); ++i) now[{long_words[i].text, long_words[i].ignore_case}] = n[i];
    for (const auto& [word, times] : now) counts[word] = std::max(counts[word], times);
  }
};

Result<ScanNotes> LogScan::run(const ReadBlock& read, const Hit& hit) {
  Pass pass(*this, hit);
  TextBuffer buffer(2 * kBlock);
  bool first = true, end = false;
  bool escapes = false;  // in the buffer
  size_t skip = 0;       // begin of the buffer that was already reported (inside a long line)
  Encoding encoding = Encoding::bytes;
  Utf16 decoder(false);
  while (!end) {
    char* const fresh = buffer.room(kBlock);
    size_t got = 0;
    do {  // a pipe may begin with a few bytes; the encoding is guessed from more
      auto n = read(fresh + got, kBlock - got);
      if (!n) return Failure(std::move(n.error()));
      end = *n == 0;
      got += *n;
    } while (first && !end && got < 256);
    pass.notes.bytes += int64_t(got);
    if (first) {
      encoding = guess_encoding({fresh, got});
      decoder = Utf16(encoding == Encoding::utf16_be);
      pass.notes.utf16 = encoding != Encoding::bytes;
      first = false;
    }
    if (encoding == Encoding::bytes) {
      const Oddities odd = find_oddities(fresh, fresh + got);
      pass.notes.binary |= odd.nul;
      escapes |= odd.escape;
      buffer.added(got);
    } else {
      std::string text;
      decoder.decode(fresh, got, &text);
      std::memcpy(buffer.room(text.size()), text.data(), text.size());
      buffer.added(text.size());
      escapes |= text.find('\x1b') != std::string::npos;
    }
    pass.choose_awake(end || got < kBlock);
    size_t whole = buffer.size();
    if (!end) {
      const void* nl = memrchr(buffer.data(), '\n', buffer.size());
      whole = nl ? size_t(static_cast<const char*>(nl) - buffer.data()) + 1 : 0;
    }
    const size_t tail = buffer.size() - whole;
    if (tail > kLongLine && !end) {  // a long line: search all but the last window, keep two windows
      if (whole > 0 || skip == 0) ++pass.notes.long_lines;
      pass.search(buffer.data(), buffer.size(), skip, buffer.size() - kWindow);
      buffer.drop_front(buffer.size() - kOverlap);
      pass.line -= count_newlines(buffer.data(), buffer.data() + buffer.size());
      skip = kWindow;
      continue;
    }
    if (whole == 0) continue;
    const size_t plain = escapes && skip == 0 ? strip_ansi_lines(buffer.data(), whole) : whole;
    pass.search(buffer.data(), plain, skip, plain);
    pass.choose_words({buffer.data(), plain});
    buffer.drop_front(whole);
    escapes = escapes && std::memchr(buffer.data(), '\x1b', buffer.size()) != nullptr;
    skip = 0;
  }
  pass.notes.lines = pass.line;
  return pass.notes;
}

ReadBlock read_text(std::string_view text) {
  return [text](char* into, size_t most) mutable -> Result<size_t> {
    const size_t n = std::min(most, text.size());
    std::memcpy(into, text.data(), n);
    text.remove_prefix(n);
    return n;
  };
}

}  // namespace ep
