// The command line of epready-engine-gpu: one case and its settings. Parsing only.
#pragma once

#include <string>
#include <vector>

#include "pattern.h"
#include "rank.h"

namespace ep::engine::gpu {

struct Options {
  std::string case_name;
  Shape shape;  // ranks 0 until known
  Pattern pattern = Pattern::kUniform;
  uint64_t seed = 1;
  std::vector<int> devices;  // empty: one rank per GPU
  int ranks = 0;
  CombineMode combine = CombineMode::kAuto;
  bool procs = false;
  Provider provider = Provider::kP2p;
  bool provider_set = false;
  Path path = Path::kBulk;
  int iters = 50, warmup = 10, epochs = 2000;
  bool warm = false;  // leave the L2 cache as it is between iterations
  bool json = false, gate_only_warns = false, peers = true;
  double timeout_s = 10, limit_s = 240;
  std::string nccl;
  // Lists, for the tune case; other cases take the first value.
  std::vector<int> token_list, sms, warps, stages, lag, seg, unroll, ahead, own;
  std::vector<int> combine_warps, combine_stages, combine_seg, adders, push_sms;

  Tuning dispatch_tuning() const;
  Tuning combine_tuning() const;
};

/// Empty on success, else a sentence. `help`: the text of --help was asked for.
std::string parse_options(int argc, char** argv, Options& out, bool& help);
std::string option_help();

}  // namespace ep::engine::gpu
