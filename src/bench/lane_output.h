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
  double epilogue_us =
      0;             ///< V2: the copy or reduction behind it, which its figures leave out; 0: not printed
  double bytes = 0;  ///< received by that rank; 0: not printed
  int ranks = 0;     ///< how many ranks printed it
  int cases = 1;     ///< V2 repeats it in every test case: this is the case in the middle by time
};

struct LaneOutput {
  std::vector<LaneFigure> figures;  ///< in the order of their first line
  int num_passed =
      0;  ///< V1: "[testing] ... passed"; V2: test cases that were followed by another, or the end
  std::string unfinished;  ///< the test case that was begun last and did not pass
  std::string config;      ///< what the test says of its shape, one line
  std::string error;       ///< the last line of a traceback, an assertion or a DeepEP error
};

/// Reads the whole output. V2 says nothing when a case is right: its last one counts when the test
/// `ended_well` (exit 0). Time linear in the text's size; unknown lines are passed over.
LaneOutput parse_lane_output(std::string_view text, bool ended_well = true);

}  // namespace ep
