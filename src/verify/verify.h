// Levels of proof. 1: facts, ABI and consistency, seconds, changes nothing. 2: one node, real tokens between
// ranks. 3: two nodes, 4: all nodes, one epready a node. Lane local runs epready's engine, v1 and v2 run the
// library's own test. Gates fail closed: what a level stands on is judged before anything is
// loaded.
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "base/words.h"
#include "bench/bench.h"
#include "facts/counters.h"
#include "facts/facts.h"
#include "recipe/recipe.h"
#include "verify/lane_test.h"

namespace ep {

struct VerifyItem {
  std::string id, title, group;  ///< group: gate, consistency, correctness, path, speed
  Outcome outcome;
  Evidence evidence;
  std::string next;
};

/// What the lane's plan says of this host: a proof of a lane stands on its being there.
struct LaneInstalled {
  Outcome outcome;   ///< pass: no step is missing
  std::string next;  ///< the command that mends it
};

struct VerifyOptions {
  int level = 1;
  std::string lane = "local";              ///< local, v1, v2
  std::optional<LaneInstalled> installed;  ///< of the lane; none: not judged (the local lane needs nothing)
  BenchRequest bench;                      ///< shape of level 2
  LaneTestRequest lane_test;        ///< lanes v1 and v2: where their test is, and the nodes of levels 3 and 4
  std::vector<Baseline> baselines;  ///< published figures to show beside ours
  std::function<CounterSample()> counters;  ///< reads the NICs' counters; empty: not sampled
  Lang lang = Lang::en;
  std::function<void(const VerifyItem&)> on_item;  ///< as they come
  std::function<void(std::string_view)> on_line;   ///< the engine's talk
  const std::atomic<bool>* interrupt = nullptr;
};

struct VerifyReport {
  int level = 1;
  std::string lane;
  std::vector<VerifyItem> items;
  std::optional<BenchResult> bench;  ///< of level 2
  std::string log;                   ///< what the lane's own test printed
  bool interrupted = false;
  Outcome overall;  ///< worst of the items that matter; reason names the first of them
  /// 0 PASS or WARN, 1 FAIL, 3 UNKNOWN or not run, 5 interrupted.
  int exit_code() const;
};

/// Runs the levels up to `level` for a lane. Level 1 reads facts only; level 2 starts the engine.
VerifyReport verify(const Facts& facts, const VerifyOptions& options);
/// What the items amount to.
Outcome summary(const std::vector<VerifyItem>& items);

}  // namespace ep
