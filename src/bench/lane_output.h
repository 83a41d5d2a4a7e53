// What the tests of DeepEP print, read into figures: V1 (test_intranode, test_internode, test_low_latency),
// V2 and V2.5 (test_ep). Pure. Their byte rules are theirs and are kept: bandwidths are logical, a rank's own
// rows included. Formats: DeepEP tests at the commits named in data/components/deepep.toml; lines behind
// prefixes
// ([rank 3], node7:) are read all the same.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ep {

struct LaneFigure {
  std::string op;             ///< dispatch, combine, dispatch+combine
  std::string mode;           ///< best (V1, tuned), low-latency, full, expanded, cached, reduced
  std::string dtype;          ///< fp8, bf16; empty: not said
  double scale_out_gbps = 0;  ///< between nodes, logical, 1e9 bytes a second; 0: not printed
  double scale_up_gbps = 0;   ///< inside a node, logical
  double time_us = 0;         ///< of the slowest rank that printed it; 0: not printed
  double bytes = 0;           ///< received by that rank; 0: not printed
  int ranks = 0;              ///< how many ranks printed it
};

struct LaneOutput {
  std::vector<LaneFigure> figures;  ///< in the order of their first line
  int num_passed = 0;               ///< "[testing] ... passed"
  std::string unfinished;           ///< the "[testing]" line that did not say passed
  std::string config;               ///< what the test says of its shape, one line
  std::string error;                ///< the last line of a traceback, an assertion or a DeepEP error
};

/// Reads the whole output. Time linear in its size; unknown lines are passed over.
LaneOutput parse_lane_output(std::string_view text);

}  // namespace ep
