// The shape options that bench, verify and up share, and their ranges.
#pragma once
#include <vector>

#include "bench/bench.h"
#include "cli/command.h"

namespace ep {

std::vector<Option> bench_options(BenchRequest& request);
Result<> check_bench_options(const BenchRequest& request, const char* command);

}  // namespace ep
