// What the patterns of a catalogue cost the scan, measured on made logs of ordinary kinds (bench_logs.h): so
// many lines are tried in vain for each. For those who write patterns; says nothing about answers.
#pragma once
#include <string>
#include <vector>

#include "doctor/problem.h"

namespace ep {

struct PatternCost {
  std::string where;    ///< data/problems/KIND.toml:LINE
  std::string literal;  ///< the word that the scan begins with
  std::string log;      ///< the kind of log that it costs most in
  double tries_per_mb = 0;
};

/// A pattern above this takes some 5 % of the time that a scan of 1 GB/s has.
constexpr double kDearTriesPerMb = 300;

/// Signatures and counter-signs above the limit, dearest first. About 50 ms for a thousand patterns.
std::vector<PatternCost> dear_patterns(const Catalogue& catalogue, double limit = kDearTriesPerMb);

}  // namespace ep
