// Other ways to move the same rows, timed by the same meter in the same run: NCCL and the copy engines.
#pragma once

#include "bench_report.h"
#include "measure.h"
#include "options.h"
#include "verify.h"

namespace ep::engine::gpu {

/// `ours_dispatch`, `ours_combine`: medians in microseconds that the ratios are made with.
std::vector<PeerResult> run_peers(Rank& rank, Meter& meter, Verifier& data, const Options& options,
                                  double ours_dispatch, double ours_combine);

}  // namespace ep::engine::gpu
