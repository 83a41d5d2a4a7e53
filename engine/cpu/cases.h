// The cases that the CPU engine runs, one per process, and their exit codes.
#pragma once

#include <string>
#include <vector>

#include "bench_report.h"
#include "cpu/copy.h"
#include "cpu/options.h"

namespace ep::engine::cpu {

inline constexpr char kTool[] = "epready-engine";

// Exit codes, the same as everywhere in this project.
inline constexpr int kGood = 0, kFailed = 1, kUsage = 2, kCannot = 3, kInterrupted = 5;

struct Case {
  const char* name;
  const char* sentence;
  const char* not_measured;  // what a reader might expect and does not get
  int (*run)(Options&);
};
const std::vector<Case>& all_cases();

int run_bench(Options& options);  // also dispatch, combine, roundtrip, ceiling: a choice of the same phases
int run_check(Options& options);

/// Lowers `max_tokens` until the run fits into memory; "" or why not even one token fits. `why` is set when
/// lowered.
std::string fit_to_memory(Options& options, std::string& why);
/// Exit code of a world that did not end well.
int exit_code(const Outcome& outcome);
const CopyOps* chosen_copy(const Options& options, std::string& error);
WorldOptions world_options(const Options& options);
/// "2 CPUs (model), avx512, memfd".
std::string device_text(const Options& options, const CopyOps& ops);

/// Runs the comparison programs that are installed beside this one and adds their results. False when the
/// user interrupted it.
bool run_peers(const Options& options, BenchReport& report);

}  // namespace ep::engine::cpu
