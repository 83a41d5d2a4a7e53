// Summaries of repeated measurements. Times of a phase are the maximum over ranks in each iteration; the
// summary is over iterations. Nothing is dropped.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace ep::engine {

struct Summary {
  double median = 0, p95 = 0, min = 0, max = 0;
  size_t count = 0;
};

/// Median: mean of the middle two for an even count. p95: nearest rank. All zero for no samples.
inline Summary summarize(std::vector<double> samples) {
  Summary out;
  out.count = samples.size();
  if (samples.empty()) return out;
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  out.min = samples.front();
  out.max = samples.back();
  out.median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  out.p95 = samples[static_cast<size_t>(std::ceil(0.95 * static_cast<double>(n))) - 1];
  return out;
}

/// `per_rank[r][i]` -> largest over r for each i. All ranks must have the same number of samples.
inline std::vector<double> max_over_ranks(const std::vector<std::vector<double>>& per_rank) {
  std::vector<double> out;
  for (const auto& samples : per_rank) {
    if (out.empty()) out = samples;
    for (size_t i = 0; i < out.size() && i < samples.size(); ++i) out[i] = std::max(out[i], samples[i]);
  }
  return out;
}

}  // namespace ep::engine
