// Ranks as processes: starting them, letting them meet, watching them, and saying which one failed and where.
// It knows nothing of tokens.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "layout.h"

namespace ep::engine::cpu {

/// What a rank is doing, so that a failure can be named. Order of a run.
enum class Phase : uint32_t { kSetup, kCeiling, kLayout, kDispatch, kExpert, kCombine, kVerify, kDone };
inline constexpr int kPhases = static_cast<int>(Phase::kDone) + 1;
const char* name_of(Phase phase);
bool parse_phase(const std::string& text, Phase& out);

/// Injected for tests: one rank dies or hangs when it first enters a phase, or changes one byte of what that
/// phase left it with (dispatch: a received row, combine: a result), so that checks can be seen to fail.
struct Fault {
  enum Kind { kNone, kDie, kHang, kCorrupt } kind = kNone;
  int rank = 0;
  Phase phase = Phase::kSetup;
};
/// "die:RANK:PHASE", "hang:RANK:PHASE" or "corrupt:RANK:PHASE". Returns "" or what was expected.
std::string parse_fault(const std::string& text, Fault& out);

/// Shared by all ranks and the parent; lies in shared memory, zero at start.
struct Control {
  struct alignas(64) Rank {
    std::atomic<uint32_t> phase;
    std::atomic<uint32_t> waiting;   // inside a meeting
    std::atomic<uint32_t> progress;  // anything that changes while the rank is alive and working
    uint64_t rows_checked;
    uint64_t mismatches;
    uint64_t memory_bytes;
    char message[384];  // first mismatch, or why the rank gave up
  };
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> open;  // number of meetings that have ended
  Rank rank[kMaxRanks];
  int32_t counts[kMaxRanks * kMaxRanks];          // rows from source (major) to destination
  int32_t expert_counts[kMaxRanks][kMaxExperts];  // selections of each expert by each source
};

struct WorldOptions {
  int ranks = 4;
  double stall_limit_s = 30;  // no rank did anything for so long: the run is over
  bool pin = false;           // rank r on the r-th allowed CPU
  Fault fault;
};

struct Outcome {
  enum Kind { kOk, kDied, kHung, kGaveUp, kInterrupted } kind = kOk;
  int rank = -1;
  Phase phase = Phase::kSetup;
  std::string text;  // one sentence for people
};

/// A rank's handle on the world, valid in its process.
class Member {
 public:
  Member(Control& control, const WorldOptions& options, int rank)
      : control_(control), options_(options), rank_(rank) {}
  int rank() const { return rank_; }
  int ranks() const { return options_.ranks; }
  Control& control() const { return control_; }
  Control::Rank& self() const { return control_.rank[rank_]; }

  void enter(Phase phase);
  /// True when a fault asks this rank to spoil the result of a phase.
  bool corrupts(Phase phase) const {
    return options_.fault.kind == Fault::kCorrupt && options_.fault.rank == rank_ &&
           options_.fault.phase == phase;
  }
  void tick() const { self().progress.store(self().progress.load(std::memory_order_relaxed) + 1); }
  /// Returns when all ranks have called it. What a rank wrote before, every rank sees after.
  void meet();
  /// Notes a mismatch; the first text is kept.
  void mismatch(const std::string& text);

 private:
  Control& control_;
  const WorldOptions& options_;
  int rank_;
};

/// Forks the ranks, runs `body` in each (true = went well, false = gave up with a message in its
/// Control::Rank), and waits for all of them. A rank that dies, or a standstill, ends all ranks at once. No
/// child outlives the call.
Outcome run_world(Control& control, const WorldOptions& options, const std::function<bool(Member&)>& body);

/// CPUs that this process may use.
int allowed_cpus();
/// CLOCK_MONOTONIC, the same for all processes of a machine.
int64_t now_ns();

}  // namespace ep::engine::cpu
