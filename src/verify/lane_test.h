// Runs the test that a lane's library brings (DeepEP's tests of V1 and V2) as its users do: the environment
// file sourced, the stack's Python, the runbook's shape. Judges nothing; lane_judge.h does. The output is
// kept in a file, which the doctor can read. This project's own tests use a stand-in for DeepEP.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/bench.h"
#include "bench/lane_output.h"
#include "verify/nodes.h"

namespace ep {

struct LaneTestRequest {
  std::string lane = "v1";  ///< v1, v2
  int level = 2;            ///< 2 one node, 3 and 4 between nodes
  std::string prefix;       ///< folder that epready owns: venv/, env/env.sh, src/
  std::string tests;  ///< folder of DeepEP's tests (or its checkout); empty: looked for below prefix/src
  int gpus = 0;       ///< ranks on this node; 0: one for each GPU
  std::vector<std::string> extra;  ///< further flags of the test, as they are
  BenchRequest shape;              ///< num_tokens, hidden, num_experts, num_topk, limit_s
  Nodes nodes;                     ///< of levels 3 and 4
};

/// Places of a lane's test below a DeepEP checkout, newest layout last (V2 moved V1's to tests/legacy).
std::vector<std::string> lane_test_places(const std::string& lane, int level);

/// Its path. Error `absent`: no test at any place; next says how to get one.
Result<std::string> find_lane_test(const LaneTestRequest& request);

/// Why the lane's test cannot run with so many ranks on a node, and what can; empty: it can, as far as is
/// known.
Result<> check_lane_ranks(const LaneTestRequest& request);

/// The command without the environment file: python, script, shape.
std::vector<std::string> lane_test_argv(const LaneTestRequest& request, const std::string& script);

struct LaneTestRun {
  std::string script, log;  ///< paths; the log holds all that it printed
  bool ok = false;          ///< ended by itself with exit 0
  std::string how;          ///< "exit 1", "stopped at its limit of 600 s"
  double wall_s = 0;
  LaneOutput output;
};

/// One run. Errors: absent (test, Python or environment file), interrupted, or what kept the log from being
/// written.
Result<LaneTestRun> run_lane_test(const LaneTestRequest& request,
                                  const std::function<void(std::string_view)>& on_line,
                                  const std::atomic<bool>* interrupt);

}  // namespace ep
