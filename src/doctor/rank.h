// Who printed a line: rank, node and time, read from the tags that launchers and libraries put in front.
// Pure.
#pragma once
#include <limits>
#include <string>
#include <string_view>

namespace ep {

struct LineTag {
  std::string
      who;  ///< "rank 3", "DP0 TP1 EP1", "EngineCore_DP0", "node7:4123 [0]"; empty when the line says nothing
  std::string host;  ///< "node7", where the tag names it
  int rank = -1;     ///< global rank, where the tag is one
};

LineTag line_tag(std::string_view line);

/// The line behind what launchers, loggers and shells put in front: ranks, time stamps, journald and
/// container prefixes, quote marks, blanks. Generous: only for patterns that want the beginning of a line.
std::string_view past_prefix(std::string_view line);

/// Seconds; absolute forms (dates) count from 1970 as if UTC, missing years are the year 2000. Not a number
/// when there is no time stamp in the first 160 bytes.
double line_time(std::string_view line);

}  // namespace ep
