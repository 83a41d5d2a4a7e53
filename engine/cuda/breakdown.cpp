#include "breakdown.h"

#include <algorithm>
#include <cstdio>

#include "failure.h"

namespace ep::engine::gpu {

namespace {

std::string fixed(double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.2f", value);
  return buffer;
}

}  // namespace

void add_breakdown(Rank& rank, Meter& meter, const Options& options, BenchReport& report, bool combine) {
  const int blocks = combine ? rank.combine_tile(options.combine).ctas : rank.dispatch_tile().ctas;
  const size_t words = static_cast<size_t>(blocks) * kStampCount;
  const Buffer stamps(words * 8);
  std::vector<uint64_t> host(words);
  struct Step {
    int stamp;
    const char* name;
  };
  const CombineMode mode = rank.resolve(options.combine);
  const bool streamed = combine && mode == CombineMode::kStream;
  const bool by_words = combine && mode == CombineMode::kWords;
  const std::vector<Step> steps =
      !combine   ? std::vector<Step>{{kStampStart, "blocks started"},    {kStampRouted, "routing read"},
                                     {kStampSent, "counts sent"},        {kStampCounts, "counts known"},
                                     {kStampDrained, "rows drained"},    {kStampAnnounced, "flags sent"},
                                     {kStampFlags, "peers' rows landed"}}
      : streamed ? std::vector<Step>{{kStampStart, "blocks started"},   {kStampCounts, "rows known"},
                                     {kStampFirst, "first rows added"}, {kStampDrained, "rows pushed"},
                                     {kStampAnnounced, "flags sent"},   {kStampFlags, "rows added"}}
      : by_words ? std::vector<Step>{{kStampStart, "blocks started"},
                                     {kStampCounts, "rows known"},
                                     {kStampFirst, "first rows added"},
                                     {kStampDrained, "rows pushed"},
                                     {kStampFlags, "rows added"}}
                 : std::vector<Step>{{kStampStart, "blocks started"},
                                     {kStampCounts, "peers ready"},
                                     {kStampFirst, "first rows here"},
                                     {kStampFlags, "rows added"}};
  std::vector<std::vector<double>> last(steps.size()), middle(steps.size());
  for (int i = 0; i < 15; ++i) {
    EP_CUDA(cudaMemsetAsync(stamps.as(), 0, words * 8, rank.stream()));
    meter.run(
        {1, 0, !options.warm, false}, [] {},
        [&] {
          if (combine)
            rank.combine(options.combine, false, stamps.as<uint64_t>());
          else
            rank.dispatch(false, stamps.as<uint64_t>());
        },
        [] {});
    EP_CUDA(cudaMemcpy(host.data(), stamps.as(), words * 8, cudaMemcpyDeviceToHost));
    const auto at = [&](int block, int stamp) {
      return host[static_cast<size_t>(block) * kStampCount + static_cast<size_t>(stamp)];
    };
    uint64_t start = ~uint64_t{0};
    for (int c = 0; c < blocks; ++c) start = std::min(start, at(c, kStampStart));
    for (size_t k = 0; k < steps.size(); ++k) {
      std::vector<double> us;
      for (int c = 0; c < blocks; ++c) {
        const uint64_t t = at(c, steps[k].stamp);
        us.push_back(t >= start ? static_cast<double>(t - start) * 1e-3 : 0);
      }
      std::sort(us.begin(), us.end());
      last[k].push_back(us.back());
      middle[k].push_back(us[us.size() / 2]);
    }
  }
  std::string each;
  for (const auto& of_rank : rank.group().gather_samples(last.back()))
    each += (each.empty() ? "" : ", ") + fixed(summarize(of_rank).median);
  report.notes.push_back({std::string(combine ? "combine" : "dispatch") + " us of each rank's kernel", each});
  for (size_t k = 0; k < steps.size(); ++k) {
    const Summary s = summarize(max_over_ranks(rank.group().gather_samples(last[k])));
    const Summary m = summarize(max_over_ranks(rank.group().gather_samples(middle[k])));
    report.notes.push_back({std::string(combine ? "combine" : "dispatch") + " us until " + steps[k].name,
                            fixed(s.median) + " (half of the blocks " + fixed(m.median) + ")"});
  }
}

}  // namespace ep::engine::gpu
