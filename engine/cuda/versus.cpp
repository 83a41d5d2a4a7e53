// Ways of combine against the one that is chosen by itself: in turns within one run, so that what changes on
// the host meanwhile changes all of them, and paired round by round. Every iteration is checked.
#include <algorithm>
#include <cstdio>

#include "cases.h"
#include "failure.h"
#include "measure.h"
#include "verify.h"

namespace ep::engine::gpu {

namespace {

constexpr int kRounds = 7;

struct Variant {
  std::string name;
  CombineMode mode;
  Tuning tuning;
  std::vector<double> samples, of_round = {};  // all; the median of each round
};

std::vector<int> or_one(const std::vector<int>& list, int otherwise) {
  return list.empty() ? std::vector<int>{otherwise} : list;
}

/// The first is what the others are held against.
std::vector<Variant> variants_of(const Options& o) {
  std::vector<Variant> out = {{"auto", CombineMode::kAuto, {}, {}},
                              {"pull", CombineMode::kPull, {}, {}},
                              {"stream", CombineMode::kStream, {}, {}}};
  for (const int warps : or_one(o.combine_warps, 0)) {
    for (const int adders : or_one(o.adders, 0)) {
      for (const int push : or_one(o.push_sms, -1)) {
        Variant v = {"words", CombineMode::kWords, {}, {}};
        v.tuning.warps = warps, v.tuning.adders = adders, v.tuning.push_ctas = push;
        if (warps > 0) v.name += " warps " + std::to_string(warps);
        if (adders > 0) v.name += " adders " + std::to_string(adders);
        if (push >= 0) v.name += " push-sms " + std::to_string(push);
        out.push_back(v);
      }
    }
  }
  return out;
}

/// One turn of a variant. Says what was wrong, empty when all was right.
std::string take_turn(Rank& rank, Meter& meter, Verifier& data, const Options& o, Variant& v) {
  Tuning combine = v.tuning;
  combine.ctas = o.combine_tuning().ctas;
  rank.retune(o.dispatch_tuning(), combine);
  rank.reset();
  Plan plan;
  plan.iters = std::max(1, o.iters / kRounds);
  plan.warmup = 3;
  plan.cold = !o.warm;
  const auto mine = meter.run(
      plan, [&] { data.poison_combine(); }, [&] { rank.combine(v.mode, false); },
      [&] { data.hash_combine(false); });
  const auto slowest = max_over_ranks(rank.group().gather_samples(mine));
  v.samples.insert(v.samples.end(), slowest.begin(), slowest.end());
  v.of_round.push_back(summarize(slowest).median);
  const HashTotals totals = data.take_hashes();
  return first_text(rank.group(), totals.wrong == 0 ? "" : v.name + ": " + totals.first);
}

}  // namespace

int case_versus(Group& group, const Options& o) {
  if (o.json) throw Failure(2, "versus writes no JSON: leave --json out");
  std::vector<Shape> shapes;
  for (const int tokens : o.token_list) shapes.push_back(shape_of(o, tokens));
  const bool chief = group.rank() == 0;
  pass_gate(group, o);
  Rank rank(group, setup_of(o, shapes));
  Meter meter(rank);
  std::string wrong;
  for (size_t i = 0; i < shapes.size() && wrong.empty(); ++i) {
    Verifier data(rank, shapes[i], o.pattern, o.seed, true);
    rank.dispatch();
    data.fill_returns();
    rank.finish();
    group.barrier();
    auto variants = variants_of(o);
    for (int round = 0; round < kRounds && wrong.empty(); ++round) {
      for (Variant& v : variants) {
        if (wrong.empty()) wrong = take_turn(rank, meter, data, o, v);
      }
    }
    if (!chief || !wrong.empty()) continue;
    std::printf("# combine, %d tokens, hidden %d, %d ranks, %s cache, %d rounds in turns; us, slowest rank\n",
                shapes[i].max_tokens, shapes[i].hidden, group.size(), o.warm ? "warm" : "cold", kRounds);
    std::printf("# %-32s %9s %9s %9s   against the first, median over rounds\n", "way", "median", "min",
                "p95");
    for (const Variant& v : variants) {
      std::vector<double> gain;
      for (size_t r = 0; r < v.of_round.size(); ++r) gain.push_back(v.of_round[r] - variants[0].of_round[r]);
      const Summary s = summarize(v.samples), g = summarize(gain);
      std::printf("  %-32s %9.2f %9.2f %9.2f   %+.2f (%+.2f to %+.2f)\n", v.name.c_str(), s.median, s.min,
                  s.p95, g.median, g.min, g.max);
    }
    std::fflush(stdout);
  }
  if (chief) {
    if (!wrong.empty()) std::printf("WRONG  %s\n", wrong.c_str());
    std::printf("# verdict %s\n", wrong.empty() ? "PASS" : "FAIL");
  }
  return wrong.empty() ? 0 : 1;
}

}  // namespace ep::engine::gpu
