// What the cases share: fitting into memory, choosing functions, exit codes.
#include <cstdio>
#include <fstream>

#include "cpu/cases.h"
#include "cpu/exchange.h"

namespace ep::engine::cpu {

namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 10, "model name") != 0) continue;
    const size_t colon = line.find(':');
    return colon == std::string::npos ? "" : line.substr(line.find_first_not_of(" \t", colon + 1));
  }
  return "unknown CPU";
}

std::string megabytes(uint64_t bytes) {
  return std::to_string(bytes / 1000000) + " MB";
}

}  // namespace

std::string fit_to_memory(Options& options, std::string& why) {
  Budget budget = memory_budget(options.backing);
  if (options.memory_limit_mb > 0 && options.memory_limit_mb * 1000000 < budget.bytes) {
    budget = {options.memory_limit_mb * 1000000, "--memory-limit-mb"};
  }
  // A tenth is left for page tables, the programs themselves and everyone else.
  const uint64_t may_use = budget.bytes / 10 * 9;
  const auto needs = [&](int tokens) {
    Shape shape = options.shape;
    shape.max_tokens = tokens;
    return worst_case_bytes(shape) + static_cast<uint64_t>(shape.ranks) * (8 << 20);
  };
  const int asked = options.shape.max_tokens;
  int tokens = asked;
  while (tokens > 0 && needs(tokens) > may_use) tokens /= 2;
  if (tokens == asked) return {};
  const std::string shortage = "needs " + megabytes(needs(asked)) + ", and " + budget.limited_by +
                               " allows " + megabytes(budget.bytes);
  if (tokens == 0) {
    return "not even one token a rank fits into memory: " + shortage +
           "\n  next: fewer --ranks, a smaller --hidden" +
           (budget.limited_by == "/dev/shm" ? ", or --shm memfd" : "");
  }
  why = shortage;
  options.shape.max_tokens = tokens;
  set_tokens(options.shape, options.pattern);
  return {};
}

int exit_code(const Outcome& outcome) {
  switch (outcome.kind) {
    case Outcome::kOk:
      return kGood;
    case Outcome::kInterrupted:
      return kInterrupted;
    case Outcome::kGaveUp:
      return kCannot;
    default:
      return kFailed;
  }
}

const CopyOps* chosen_copy(const Options& options, std::string& error) {
  if (options.copy == "auto") return &best_copy_ops();
  const CopyOps* ops = copy_ops(options.copy.c_str());
  if (ops == nullptr)
    error = "this CPU cannot run the copy functions '" + options.copy + "'; use --copy auto";
  return ops;
}

WorldOptions world_options(const Options& options) {
  WorldOptions out;
  out.ranks = options.shape.ranks;
  out.stall_limit_s = options.timeout_s;
  out.pin = options.pin == "on" ||
            (options.pin == "auto" && options.threads == 1 && options.shape.ranks <= allowed_cpus());
  out.fault = options.fault;
  return out;
}

std::string device_text(const Options& options, const CopyOps& ops) {
  return std::to_string(allowed_cpus()) + " CPUs (" + cpu_model() + "), " + ops.name + ", " +
         (options.backing == Backing::kMemfd ? "memfd" : "posix shared memory");
}

}  // namespace ep::engine::cpu
