// Command line of the CPU engine: what it may say, and what is wrong with what it said.
#pragma once

#include <string>
#include <vector>

#include "cpu/memory.h"
#include "cpu/world.h"
#include "layout.h"
#include "pattern.h"

namespace ep::engine::cpu {

struct Options {
  std::string case_name;
  bool list = false, help = false, json = false;
  Shape shape;
  Pattern pattern = Pattern::kUniform;
  uint64_t seed = 1;
  int iters = 20, warmup = 3;
  int threads = 1;  // per rank
  bool weighted = false;
  double timeout_s = 30;
  double min_share = 0.85;
  std::string copy = "auto";   // plain, sse2, avx2, avx512
  std::string pin = "auto";    // on, off
  std::string peers = "auto";  // none, mpi
  Backing backing = Backing::kMemfd;
  uint64_t memory_limit_mb = 0;  // 0 = what the machine has
  Fault fault;
};

/// Returns "" or one or two lines for stderr. The first argument without dashes is the case.
std::string parse_options(const std::vector<std::string>& arguments, Options& out);
/// The flags, one line each.
std::string flags_help();
/// The nearest of `names` to a mistyped word, or "".
std::string nearest(const std::string& word, const std::vector<std::string>& names);

}  // namespace ep::engine::cpu
