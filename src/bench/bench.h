// Runs cases of the EP engine as child processes and reads their answer. Measures nothing itself: the engine
// does, against ceilings of the same run. Contract with the engine: engine/README.md (schema
// epready.engine.bench/1).
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/finding.h"
#include "base/result.h"

namespace ep {

/// Microseconds, over iterations, of the slowest rank in each.
struct Timing {
  double median_us = 0, p95_us = 0, min_us = 0, max_us = 0;
};

struct BenchPhase {
  std::string name, mode;                    ///< dispatch, combine, roundtrip; full, cached, weighted ...
  double bytes_logical = 0, bytes_wire = 0;  ///< per rank and iteration; logical counts the rank's own rows
  Timing time;
  double gbps = 0, wire_gbps = 0;      ///< 1e9 bytes a second at the median
  std::optional<Timing> ceiling_time;  ///< the same bytes by the fastest plain means, in the same run
  double ceiling_gbps = 0, ceiling_share = 0, min_share = 0;
  std::string ceiling_what;
};

struct BenchPeer {
  std::string name, phase, status;  ///< status "ok", else why there is no number
  Timing time;
  double ratio = 0;  ///< peer's median over ours
};

struct BenchResult {
  std::string case_name, engine, device, dtype, pattern;
  std::string lane = "local";  ///< v1, v2: figures of the library's own test
  int ranks = 0, num_tokens = 0, hidden = 0, num_experts = 0, num_topk = 0, iters = 0, warmup = 0;
  std::vector<BenchPhase> phases;
  uint64_t rows_checked = 0, mismatches = 0;
  int test_checks = 0;  ///< lanes v1, v2: checks of the library's test that passed
  std::string first_mismatch;
  std::string scaled_down_why;
  int requested_tokens = 0;
  uint64_t memory_bytes = 0, worst_case_bytes = 0;
  std::vector<BenchPeer> peers;
  std::string failure, failed_phase;
  int failed_rank = -1;
  std::vector<std::pair<std::string, std::string>> settings;
  Outcome outcome;       ///< the engine's verdict; reason from failure, mismatch or the phase below its share
  std::string raw_json;  ///< as the engine wrote it
  std::string text;      ///< the engine's own table
};

struct BenchRequest {
  std::string case_name = "bench";
  bool gpu = false;
  int ranks = 4, num_tokens = 2048, hidden = 7168, num_experts = 256, num_topk = 8, iters = 20, warmup = 3;
  std::string dtype = "bf16";
  double limit_s = 300;
  std::vector<std::string> extra;  ///< further flags of the engine, as they are
};

/// Path of the engine: $EPREADY_ENGINE's folder, beside this program, in engine/ beside it,
/// ../libexec/epready. Error `absent` names the places that were looked at.
Result<std::string> find_engine(bool gpu);
std::vector<std::string> engine_argv(const std::string& engine, const BenchRequest& request);

/// Reads an engine's JSON. Malformed or unknown schema is an error with the place.
Result<BenchResult> parse_bench(std::string_view json);

/// Reads an engine's word that there was no run (schema epready.engine.failure/1): `unsupported` when this
/// host cannot run it (exit 3), `usage` when it was asked wrongly (2), else `failed` with rank and phase.
/// Nothing: another schema.
std::optional<Error> parse_engine_failure(std::string_view json);

/// One run. A run that ends badly (rank died, timeout) is a BenchResult with a failure when the engine could
/// still say so, else an Error. `on_line` gets the engine's talk.
Result<BenchResult> run_bench(const BenchRequest& request,
                              const std::function<void(std::string_view)>& on_line,
                              const std::atomic<bool>* interrupt);

}  // namespace ep
