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
  std::string_view text;  ///< without line end; a window of at most 16 KiB of very long lines
  int64_t number = 0;     ///< 1-based
};

struct ScanNotes {
  int64_t bytes = 0, lines = 0;
  int64_t long_lines = 0;  ///< lines above 64 KiB, looked at through windows
  bool utf16 = false;
  bool binary = false;  ///< NUL bytes in what is not UTF-16
};

class LogScan {
 public:
  /// `patterns` outlive the scan.
  explicit LogScan(std::vector<const LinePattern*> patterns);

  /// Calls hit(index of pattern, line) for every line and pattern that match, in line order. After `limit`
  /// hits of one pattern only its literal is looked at (the rest of the pattern is taken for granted):
  /// bounded work on a log that repeats itself a million times.
  using Hit = std::function<void(size_t pattern, const LogLine& line)>;
  Result<ScanNotes> run(const ReadBlock& read, const Hit& hit);

  static constexpr int64_t kSaturated = 2048;

 private:
  struct Pass;
  std::vector<const LinePattern*> patterns_;
  LiteralScan scan_;
  std::vector<std::vector<uint32_t>> by_literal_;  ///< literal -> patterns
};

/// A block reader over text in memory.
ReadBlock read_text(std::string_view text);

}  // namespace ep
