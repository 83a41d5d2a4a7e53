// The shape options that bench, verify and up share, and their ranges.
#pragma once
#include <vector>

#include "bench/bench.h"
#include "cli/command.h"
#include "facts/facts.h"

namespace ep {

std::vector<Option> bench_options(BenchRequest& request);
/// Takes the GPU engine, one rank a GPU, when the host shows NVIDIA GPUs and the engine is there; says why
/// not.
void choose_engine(BenchRequest& request, const Facts& facts, bool ranks_given);
Result<> check_bench_options(const BenchRequest& request, const char* command);

}  // namespace ep
