#include "doctor/bench_logs.h"

#include "doctor/bench_lines.h"

namespace ep {

namespace {

using namespace bench_lines;
using Kind = void (*)(Pen&);

struct Row {
  BenchLog log;
  Kind kind;
};
const Row kRows[] = {
    {{"vllm", "vLLM server of 16 data-parallel ranks: figures, accesses, requests"}, vllm},
    {{"sglang", "SGLang server of 16 ranks"}, sglang},
    {{"nccl", "NCCL INFO of 16 nodes: channels, trees, calls"}, nccl},
    {{"train", "Megatron and torchtitan iterations behind rank prefixes"}, train},
    {{"build", "nvcc, ptxas, CMake and pip"}, build},
    {{"kernel", "dmesg and syslog of a Kubernetes node"}, kernel},
    {{"progress", "progress bars, carriage returns and colours"}, progress},
    {{"json", "JSON lines and a profiler's trace"}, json},
    {{"deepep", "DeepEP tuning runs and NVSHMEM INFO"}, deepep},
    {{"complaints", "harmless warnings, tracebacks and refusals without end"}, complaints},
};

}  // namespace

const std::vector<BenchLog>& bench_logs() {
  static const std::vector<BenchLog> kAll = [] {
    std::vector<BenchLog> out;
    for (const Row& r : kRows) out.push_back(r.log);
    out.push_back({"mixed", "all of these in one file, some lines of each in turn"});
    return out;
  }();
  return kAll;
}

std::string make_bench_log(std::string_view name, size_t bytes, unsigned seed) {
  std::string out;
  out.reserve(bytes + 4096);
  Dice dice(seed);
  Pen pen{out, dice};
  Kind kind = nullptr;
  for (const Row& r : kRows)
    if (r.log.name == name) kind = r.kind;
  if (!kind && name != "mixed") return out;
  const auto rows = int(std::size(kRows));
  while (out.size() < bytes) {
    const Kind now = kind ? kind : kRows[dice.below(rows)].kind;
    for (int n = kind ? 1 : 1 + dice.below(12); n > 0; --n, ++pen.tick) now(pen);
  }
  return out;
}

}  // namespace ep
