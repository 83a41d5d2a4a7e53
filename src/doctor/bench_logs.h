// Harmless logs of the kinds that fill disks, for measuring the doctor's scan: made here line by line in the
// shape that the programs print, different numbers on every line, so that a figure holds for more than one
// log. Not fixtures: nothing about answers is tested with them.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ep {

struct BenchLog {
  std::string_view name, what;
};

/// vllm, sglang, nccl, train, build, kernel, progress, json, deepep, complaints, mixed.
const std::vector<BenchLog>& bench_logs();

/// About `bytes` of one kind, the same for the same seed. Empty for an unknown name.
std::string make_bench_log(std::string_view name, size_t bytes, unsigned seed);

}  // namespace ep
