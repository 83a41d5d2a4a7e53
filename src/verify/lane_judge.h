// What a run of a lane's own test proves: tokens right, which NICs carried them, how fast against published
// figures of the same kind of machine and against the NICs' line rate. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "facts/counters.h"
#include "facts/topology.h"
#include "recipe/recipe.h"
#include "verify/lane_test.h"
#include "verify/verify.h"

namespace ep {

struct LaneContext {
  std::string lane = "v1";
  int level = 2, nodes = 1, ranks = 8;  ///< ranks of all nodes
  bool gpus_shared = false;             ///< more ranks than GPUs on this node: its speed says nothing
  std::string gpu;                      ///< name as the driver says it; empty unknown
  int sm = 0;                           ///< compute capability times ten; 0 unknown
  const Topology* topology = nullptr;   ///< line rate and the NICs that should carry the traffic
  std::vector<Baseline> baselines;      ///< published figures; empty: none known
  std::vector<NicTraffic> traffic;      ///< around the run; empty: not sampled
  BenchRequest shape;
};

/// Line rate of the slowest mapped NIC, in GB/s of 1e9 bytes; 0 unknown. One NIC for several GPUs is shared.
double line_rate_per_gpu(const Topology& topology);

/// The published figure for this lane, op and scope on this kind of GPU and number of nodes, if there is one.
const Baseline* baseline_for(const LaneContext& context, const LaneFigure& figure, bool between_nodes);

/// correctness, path (between nodes), speed: in this order. Nothing recognised is UNKNOWN, never PASS.
std::vector<VerifyItem> judge_lane(const LaneTestRun& run, const LaneContext& context, Lang lang);

/// The run as a record that history, compare and reports know: phases are the test's figures.
BenchResult lane_result(const LaneTestRun& run, const LaneContext& context);

}  // namespace ep
