// Benchmark and verification results as text and JSON.
#pragma once
#include <string>

#include "bench/bench.h"
#include "report/look.h"
#include "verify/verify.h"

namespace ep {

/// The table, in the nccl-tests manner, with bars against the ceiling of the same run, then notes and
/// verdict.
std::string bench_text(const BenchResult& result, const Look& look);
/// {schema: epready-bench-1, tool, outcome, result: the engine's own record}.
std::string bench_json(const BenchResult& result);

std::string verify_item_text(const VerifyItem& item, const Look& look);
/// Counts and the overall verdict; items are printed as they come.
std::string verify_summary_text(const VerifyReport& report, const Look& look);
std::string verify_json(const VerifyReport& report);

}  // namespace ep
