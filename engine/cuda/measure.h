// Timing of one operation on all ranks: ranks aligned on the device, events around the operation, a cold
// cache by default, the check outside the timed part. Returns this rank's microseconds per iteration.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rank.h"
#include "stats.h"

namespace ep::engine::gpu {

struct Plan {
  int iters = 50, warmup = 10;
  bool cold = true;    // write 256 MB between iterations
  bool graph = false;  // the operation and its events replayed from a captured graph
};

class Meter {
 public:
  explicit Meter(Rank& rank);
  ~Meter();

  using Step = std::function<void()>;
  /// Every iteration: `before`, flush, align, start, `op`, stop, `after`. Collective.
  std::vector<double> run(const Plan& plan, const Step& before, const Step& op, const Step& after);
  /// The same, then the maximum over ranks and its summary.
  Summary time(const Plan& plan, const Step& before, const Step& op, const Step& after);
  Summary time(const Plan& plan, const Step& op) {
    const Step nothing = [] {};
    return time(plan, nothing, op, nothing);
  }

  /// `length` times `op` in one captured graph; time of one. Warm: they follow each other.
  Summary chain(const Plan& plan, int length, const Step& op);

  /// `bytes` to (stores) or from (loads) the peers, divided equally, by plain means without protocol.
  /// Overwrites `y` of the peers; `bytes` at most what combine can move.
  void move_plain(Probe kind, int ctas, size_t bytes);
  /// `bytes` to the peers by the copy engines.
  void move_copy_engine(size_t bytes);

 private:
  void run_graph(const Plan& plan, const Step& before, const Step& op, const Step& after,
                 std::vector<double>& out);
  void fork();
  void join();
  Rank& rank_;
  Buffer flush_, sink_;
  std::vector<cudaStream_t> side_;
  cudaEvent_t forked_ = nullptr, joined_ = nullptr;
};

}  // namespace ep::engine::gpu
