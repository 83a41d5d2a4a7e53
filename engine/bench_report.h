// The result of a benchmark and its two forms: JSON (the contract with the program that runs the engine,
// described in README.md) and a table for people. It decides the verdict from the numbers; it measures
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "layout.h"
#include "stats.h"

namespace ep::engine {

/// One measured phase. Bytes are per rank, mean over ranks, in one iteration: `bytes_logical` are the rows
/// (with scales, without metadata) that a rank receives, its own included, as DeepEP counts; `bytes_wire`
/// leave out what stays on the rank.
struct PhaseResult {
  std::string name;  // dispatch, combine, roundtrip, ...
  std::string mode;  // "full", "cached", "weighted", ...
  double bytes_logical = 0;
  double bytes_wire = 0;
  Summary time_us;  // of the slowest rank in each iteration
  bool has_ceiling = false;
  Summary ceiling_us;  // the same bytes moved by the fastest plain means, measured in the same run
  std::string ceiling_what;
  double min_share = 0;  // ceiling_share below this is a WARN; 0 = not judged

  double gbps() const { return rate(bytes_logical, time_us.median); }
  double wire_gbps() const { return rate(bytes_wire, time_us.median); }
  double ceiling_gbps() const { return has_ceiling ? rate(bytes_logical, ceiling_us.median) : 0; }
  /// Ceiling's median time / phase's median time.
  double ceiling_share() const {
    return has_ceiling && time_us.median > 0 ? ceiling_us.median / time_us.median : 0;
  }
  static double rate(double bytes, double us) { return us > 0 ? bytes / us * 1e-3 : 0; }
};

struct PeerResult {
  std::string name, phase;
  std::string status = "ok";  // "ok", else why there is no number
  Summary time_us;
  double ratio = 0;  // peer's median / ours: how many times faster we are
};

struct BenchReport {
  std::string tool, case_name, engine;  // engine: "cpu", "cuda"
  std::string device;                   // one line for people
  Shape shape;
  std::string pattern;
  uint64_t seed = 0;
  int iters = 0, warmup = 0;
  std::vector<PhaseResult> phases;
  uint64_t rows_checked = 0, mismatches = 0;
  std::string first_mismatch;
  int requested_tokens = 0;  // differs from shape.max_tokens when scaled down
  std::string scaled_down_why;
  uint64_t memory_bytes = 0, worst_case_bytes = 0;
  std::vector<PeerResult> peers;
  std::string failure;  // why the run did not finish; empty when it did
  int failed_rank = -1;
  std::string failed_phase;
  std::vector<std::pair<std::string, std::string>> notes;  // further settings, name and value

  /// FAIL: did not finish or wrong data. WARN: right, but a phase is below its share of the ceiling. Else
  /// PASS. UNKNOWN when nothing was checked although there was something to check.
  std::string verdict() const;
};

std::string to_json(const BenchReport& report);
std::string to_text(const BenchReport& report);

}  // namespace ep::engine
