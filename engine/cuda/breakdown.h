// Where the time of one operation goes, by timestamps that its blocks take.
#pragma once

#include "bench_report.h"
#include "measure.h"
#include "options.h"

namespace ep::engine::gpu {

/// Adds notes to the report: for each step, when the last block had done it and when half of them had,
/// counted from the first block's start; slowest rank, median of 15 runs. Collective.
void add_breakdown(Rank& rank, Meter& meter, const Options& options, BenchReport& report, bool combine);

}  // namespace ep::engine::gpu
