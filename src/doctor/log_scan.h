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
};

struct ScanNotes {
  int64_t bytes = 0, lines = 0;
  int64_t long_lines = 0;  ///< lines above 64 KiB, looked at through windows
  bool utf16 = false;
  bool binary = false;  ///< NUL bytes in what is not UTF-16
};

/// A pattern to look for and how much of it is enough. When all patterns of a literal have had enough, the
/// literal is looked at only in one block of 32 and in short (last) ones: counts are then lower bounds, and
/// the place of the last occurrence may lag. A log that repeats itself a million times costs no more than one
/// that does not.
struct ScanPattern {
  const LinePattern* pattern;  ///< outlives the scan
  int64_t enough_hits = 2048;
  int64_t enough_tries = INT64_MAX;  ///< lines with the literal that the rest of the pattern refused
};

class LogScan {
 public:
  explicit LogScan(std::vector<ScanPattern> patterns);

  /// Calls hit(index of pattern, line) for every line and pattern that match, in line order.
  using Hit = std::function<void(size_t pattern, const LogLine& line)>;
  Result<ScanNotes> run(const ReadBlock& read, const Hit& hit);

 private:
  struct Pass;
  std::vector<ScanPattern> patterns_;
  LiteralScan scan_;
  std::vector<std::vector<uint32_t>> by_literal_;  ///< literal -> patterns
  std::vector<size_t> anchors_;                    ///< of each pattern
};

/// A block reader over text in memory.
ReadBlock read_text(std::string_view text);

}  // namespace ep
