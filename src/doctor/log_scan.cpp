#include "doctor/log_scan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "base/text.h"

namespace ep {

namespace {

constexpr size_t kBlock = 256 << 10;    // stays in the second-level cache while it is searched
constexpr size_t kLongLine = 64 << 10;  // a line above this is looked at in windows
constexpr size_t kWindow = 8 << 10;     // bytes of a long line before and after a literal
constexpr size_t kOverlap = 2 * kWindow;

/// UTF-16 to UTF-8, block by block. Unpaired surrogates become U+FFFD.
class Utf16 {
 public:
  explicit Utf16(bool big) : big_(big) {}
  void decode(const char* data, size_t n, std::string* out) {
    for (size_t i = 0; i < n; ++i) {
      if (!have_) {
        low_ = static_cast<unsigned char>(data[i]);
        have_ = true;
        continue;
      }
      have_ = false;
      const auto b = static_cast<unsigned char>(data[i]);
      unit(big_ ? uint32_t(low_) << 8 | b : uint32_t(b) << 8 | low_, out);
    }
  }

 private:
  void unit(uint32_t u, std::string* out) {
    if (u >= 0xD800 && u < 0xDC00) {
      high_ = u;
      return;
    }
    if (u >= 0xDC00 && u < 0xE000) u = high_ ? 0x10000 + ((high_ - 0xD800) << 10) + (u - 0xDC00) : 0xFFFD;
    high_ = 0;
    if (u == 0xFEFF) return;
    if (u < 0x80) {
      *out += char(u);
    } else if (u < 0x800) {
      *out += char(0xC0 | u >> 6);
      *out += char(0x80 | (u & 63));
    } else if (u < 0x10000) {
      *out += char(0xE0 | u >> 12);
      *out += char(0x80 | (u >> 6 & 63));
      *out += char(0x80 | (u & 63));
    } else {
      *out += char(0xF0 | u >> 18);
      *out += char(0x80 | (u >> 12 & 63));
      *out += char(0x80 | (u >> 6 & 63));
      *out += char(0x80 | (u & 63));
    }
  }
  bool big_, have_ = false;
  unsigned char low_ = 0;
  uint32_t high_ = 0;
};

enum class Encoding { bytes, utf16_le, utf16_be };

/// By byte order mark, or by NULs standing at nearly all even or odd places of the beginning.
Encoding guess(std::string_view start) {
  if (start.size() >= 2 && start[0] == '\xFF' && start[1] == '\xFE') return Encoding::utf16_le;
  if (start.size() >= 2 && start[0] == '\xFE' && start[1] == '\xFF') return Encoding::utf16_be;
  const size_t n = std::min<size_t>(start.size(), 4096) & ~size_t(1);
  size_t even = 0, odd = 0;
  for (size_t i = 0; i < n; i += 2) {
    even += start[i] == 0;
    odd += start[i + 1] == 0;
  }
  if (n >= 64 && odd * 2 > n * 7 / 10 && even * 20 < n) return Encoding::utf16_le;
  if (n >= 64 && even * 2 > n * 7 / 10 && odd * 20 < n) return Encoding::utf16_be;
  return Encoding::bytes;
}

/// Sums of bytes first, in sixteen columns: the compiler turns the inner loop into one compare and one add.
int64_t count_newlines(const char* from, const char* to) {
  constexpr int kColumns = 16, kRows = 128;
  int64_t n = 0;
  for (; to - from >= kColumns * kRows; from += kColumns * kRows) {
    uint8_t sums[kColumns] = {};
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) sums[c] = uint8_t(sums[c] + (from[r * kColumns + c] == '\n'));
    for (uint8_t s : sums) n += s;
  }
  for (; from != to; ++from) n += *from == '\n';
  return n;
}

/// The text in hand: filled at its end, emptied at its front. Bytes go in without a copy in between.
class Buffer {
 public:
  const char* data() const { return data_.get(); }
  size_t size() const { return size_; }
  char* room(size_t n) {
    if (size_ + n > capacity_) {
      capacity_ = 2 * (size_ + n);
      std::unique_ptr<char[]> more(new char[capacity_]);
      std::memcpy(more.get(), data_.get(), size_);
      data_ = std::move(more);
    }
    return data_.get() + size_;
  }
  void added(size_t n) { size_ += n; }
  void drop_front(size_t n) {
    size_ -= n;
    std::memmove(data_.get(), data_.get() + n, size_);
  }

 private:
  size_t size_ = 0, capacity_ = 2 * kBlock;
  std::unique_ptr<char[]> data_{new char[2 * kBlock]};
};

}  // namespace

LogScan::LogScan(std::vector<ScanPattern> patterns)
    : patterns_(std::move(patterns)), scan_(std::vector<LiteralScan::Literal>{}) {
  std::vector<LiteralScan::Literal> literals;
  std::map<std::pair<std::string, bool>, uint32_t> index;
  for (uint32_t i = 0; i < patterns_.size(); ++i) {
    const LinePattern& p = *patterns_[i].pattern;
    anchors_.push_back(p.anchor());
    const auto key = std::make_pair(p.literals[anchors_.back()], p.ignore_case);
    auto [it, fresh] = index.emplace(key, uint32_t(literals.size()));
    if (fresh) {
      literals.push_back({key.first, key.second});
      by_literal_.emplace_back();
    }
    by_literal_[it->second].push_back(i);
  }
  scan_ = LiteralScan(std::move(literals));
}

/// The state of one run: where we are in the text, and what each pattern has seen.
struct LogScan::Pass {
  LogScan& self;
  const Hit& hit;
  ScanNotes notes;
  std::vector<int64_t> hits, tries, last_line;
  std::vector<bool> awake;
  bool rested = false;
  int64_t line = 1, blocks = 0;
  std::vector<std::pair<size_t, uint32_t>> found;
  std::string plain, plain_next;  ///< the line in hand and the one after it without escape sequences

  Pass(LogScan& s, const Hit& h)
      : self(s),
        hit(h),
        hits(s.patterns_.size()),
        tries(s.patterns_.size()),
        last_line(s.patterns_.size(), -1),
        awake(s.by_literal_.size(), true) {
    self.scan_.set_awake(awake);
  }

  bool enough(uint32_t p) const {
    return hits[p] >= self.patterns_[p].enough_hits || tries[p] >= self.patterns_[p].enough_tries;
  }

  /// Literals that have shown enough rest in most blocks.
  void choose_awake(bool all) {
    constexpr int64_t kWakeEvery = 32;
    all |= blocks++ % kWakeEvery == 0;
    bool change = false;
    for (size_t l = 0; l < awake.size(); ++l) {
      bool wanted = all;
      for (uint32_t p : self.by_literal_[l]) wanted = wanted || !enough(p);
      change |= wanted != awake[l];
      awake[l] = wanted;
    }
    if (change) self.scan_.set_awake(awake);
  }

  /// Searches [data, data+size); hits that begin in [from, to) count. Moves `line` to the line of data+size.
  void search(const char* data, size_t size, size_t from, size_t to) {
    found.clear();
    self.scan_.scan(data, size, [&](uint32_t literal, size_t at) {
      if (at >= from && at < to) found.emplace_back(at, literal);
    });
    std::sort(found.begin(), found.end());
    const char* counted = data;
    for (const auto& [at, literal] : found) {
      line += count_newlines(counted, data + at);
      counted = data + at;
      for (uint32_t p : self.by_literal_[literal]) look(data, size, at, p);
    }
    line += count_newlines(counted, data + size);
  }

  static std::string_view following(const char* data, size_t size, size_t end) {
    constexpr size_t kNext = 512;
    while (end < size && data[end] == '\r') ++end;
    if (end >= size || data[end] != '\n') return {};
    const std::string_view rest(data + end + 1, std::min(kNext, size - end - 1));
    return rest.substr(0, rest.find_first_of("\r\n"));
  }

  void look(const char* data, size_t size, size_t at, uint32_t pattern) {
    if (last_line[pattern] == line) return;
    size_t begin = at > kWindow ? at - kWindow : 0, end = std::min(size, at + kWindow);
    for (char stop : {'\n', '\r'}) {
      if (const void* p = memrchr(data + begin, stop, at - begin))
        begin = size_t(static_cast<const char*>(p) - data) + 1;
      if (const void* p = std::memchr(data + at, stop, end - at))
        end = size_t(static_cast<const char*>(p) - data);
    }
    LogLine l{{data + begin, end - begin}, line, following(data, size, end)};
    if (std::memchr(l.text.data(), '\x1b', l.text.size())) {
      plain = strip_ansi(l.text);
      l.text = plain;
    }
    if (!l.next.empty() && std::memchr(l.next.data(), '\x1b', l.next.size()))
      l.next = plain_next = strip_ansi(l.next);
    if (!self.patterns_[pattern].pattern->matches_beside(self.anchors_[pattern], l.text)) {
      ++tries[pattern];
      return;
    }
    ++hits[pattern];
    last_line[pattern] = line;
    hit(pattern, l);
  }
};

Result<ScanNotes> LogScan::run(const ReadBlock& read, const Hit& hit) {
  Pass pass(*this, hit);
  Buffer buffer;
  bool first = true, end = false;
  size_t skip = 0;  // begin of the buffer that was already reported (inside a long line)
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
      encoding = guess({fresh, got});
      decoder = Utf16(encoding == Encoding::utf16_be);
      pass.notes.utf16 = encoding != Encoding::bytes;
      first = false;
    }
    if (encoding == Encoding::bytes) {
      if (!pass.notes.binary) pass.notes.binary = got > 0 && std::memchr(fresh, 0, got) != nullptr;
      buffer.added(got);
    } else {
      std::string text;
      decoder.decode(fresh, got, &text);
      std::memcpy(buffer.room(text.size()), text.data(), text.size());
      buffer.added(text.size());
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
    pass.search(buffer.data(), whole, skip, whole);
    buffer.drop_front(whole);
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
