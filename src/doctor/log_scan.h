// LogScan: one pass over a text of any size for many line patterns. Blocks in, matching lines out; bounded
// memory, bounded work on lines of any length, UTF-16 and binary noise survived. Knows nothing of problems.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doctor/anchors.h"
#include "doctor/literal_scan.h"
#include "doctor/problem.h"

namespace ep {

/// Fills at most `most` bytes and says how many; 0 is the end. The caller opens files and pipes, not the
/// doctor.
using ReadBlock = std::function<Result<size_t>(char* into, size_t most)>;

struct LogLine {
  std::string_view
      text;  ///< without line end and escape sequences; a window of at most 16 KiB of very long lines
  int64_t number = 0;     ///< 1-based
  std::string_view next;  ///< beginning of the following line; empty at the end of what has been read
  int64_t serial = 0;     ///< the same for all hits on this text
};

struct ScanNotes {
  int64_t bytes = 0, lines = 0;
  int64_t long_lines = 0;  ///< lines above 64 KiB, looked at through windows
  bool utf16 = false;
  bool binary = false;  ///< NUL bytes in what is not UTF-16
};

/// A pattern to look for and how much of it is enough. What has had enough is looked at only in one block of
/// 32, a few lines of it, and in short (last) blocks: counts are then lower bounds, and the place of the last
/// occurrence may lag. A log that repeats itself a million times costs no more than one that does not.
struct ScanPattern {
  const LinePattern* pattern;  ///< outlives the scan
  int64_t enough_hits = 2048;
  int64_t enough_tries =
      INT64_MAX;  ///< lines with the words searched for that the rest of the pattern refused
};

/// Lines are found by literals. At first each pattern stands under the rarest of its own, by a guess; when
/// that makes work, the words by which the patterns are found are chosen anew, by what the log at hand holds
/// (anchors.h). A choice changes the work, never the lines that match.
class LogScan {
 public:
  explicit LogScan(std::vector<ScanPattern> patterns);

  /// Calls hit(index of pattern, line) for every line and pattern that match, in line order.
  using Hit = std::function<void(size_t pattern, const LogLine& line)>;
  Result<ScanNotes> run(const ReadBlock& read, const Hit& hit);

  /// How often the words are chosen anew: after so much work, then after twice as much, and so on. In lines
  /// tried; 0 chooses behind every block (for tests), a negative number never.
  void set_patience(int64_t lines) { patience_ = lines; }

  /// What a pattern cost in the last run, for those who write patterns.
  struct Load {
    int64_t hits = 0, tries = 0;  ///< lines that matched; lines that were tried in vain
  };
  const std::vector<Load>& loads() const { return loads_; }

 private:
  struct Pass;
  /// The scanner and whose literal is whose.
  struct Finder {
    LiteralScan scan;
    std::vector<std::vector<uint32_t>> patterns;  ///< of each literal
  };
  static Finder build(const std::vector<AnchorSet>& sets, std::string_view sample);

  std::vector<ScanPattern> patterns_;
  std::vector<bool> from_start_;    ///< the expression asks for the line's beginning
  std::vector<AnchorSet> anchors_;  ///< of each pattern, to begin with
  std::vector<Load> loads_;
  int64_t patience_ = 16384;
};

/// A block reader over text in memory.
ReadBlock read_text(std::string_view text);

}  // namespace ep
