// Cases that measure: the table of one shape, and a search over tilings. What they time is checked in the
// same iterations.
#include <algorithm>
#include <cstdio>

#include "breakdown.h"
#include "cases.h"
#include "failure.h"
#include "json.h"
#include "measure.h"
#include "outcome.h"
#include "peers.h"
#include "verify.h"

namespace ep::engine::gpu {

namespace {

double mean_over_ranks(Group& group, double mine) {
  double sum = 0;
  for (const double v : group.gather(mine)) sum += v;
  return sum / group.size();
}

std::string fixed(double value, int digits = 1) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

/// Everything that the measurements of one shape share.
struct Bench {
  Rank& rank;
  Meter& meter;
  Verifier& data;
  const Options& options;
  BenchReport& report;
  Summary store_ceiling, load_ceiling;
  std::string store_what, load_what;
  double wire_rows, logical_rows;

  Plan plan(bool graph = false) const {
    Plan p;
    p.iters = options.iters;
    p.warmup = options.warmup;
    p.cold = !options.warm;
    p.graph = graph;
    return p;
  }
  void keep_checks() {
    const HashTotals totals = data.take_hashes();
    uint64_t rows = 0, wrong = 0;
    for (const uint64_t v : rank.group().gather(totals.rows)) rows += v;
    for (const uint64_t v : rank.group().gather(totals.wrong)) wrong += v;
    report.rows_checked += rows;
    report.mismatches += wrong;
    const std::string first = first_text(rank.group(), totals.first);
    if (report.first_mismatch.empty()) report.first_mismatch = first;
  }
  void add(const char* name, const std::string& mode, Summary time, bool combine, double min_share) {
    const Shape& s = rank.shape();
    const double row = combine ? static_cast<double>(s.combine_row_bytes())
                               : static_cast<double>(s.row_bytes() + s.scale_row_bytes());
    PhaseResult p;
    p.name = name;
    p.mode = mode;
    p.bytes_logical = logical_rows * row;
    p.bytes_wire = wire_rows * row;
    p.time_us = time;
    const Summary& ceiling = combine ? load_ceiling : store_ceiling;
    p.has_ceiling = ceiling.count > 0;
    p.ceiling_us = ceiling;
    const auto same = [&](const PhaseResult& other) { return other.name == name; };
    if (std::none_of(report.phases.begin(), report.phases.end(), same))
      p.ceiling_what = combine ? load_what : store_what;
    p.min_share = p.has_ceiling ? min_share : 0;
    report.phases.push_back(p);
  }
  Summary dispatch(const Plan& p, bool cached) {
    return meter.time(
        p,
        [&] {
          if (!cached) data.poison_dispatch();
        },
        [&] { rank.dispatch(cached); }, [&] { data.hash_dispatch(); });
  }
  Summary combine(const Plan& p, CombineMode mode, bool weighted) {
    return meter.time(
        p, [&] { data.poison_combine(); }, [&] { rank.combine(mode, weighted); },
        [&] { data.hash_combine(weighted); });
  }
};

/// The same bytes by plain means, both directions of every link at once: what the phases are compared with.
void measure_ceilings(Bench& b) {
  if (b.rank.group().size() < 2) return;
  const Shape& s = b.rank.shape();
  const int sms = b.rank.max_ctas();
  struct Way {
    Probe kind;
    const char* name;
  };
  const auto best = [&](std::initializer_list<Way> ways, size_t bytes, Summary& out, std::string& what) {
    for (const Way& w : ways) {
      if (!b.rank.limits().bulk && (w.kind == Probe::kBulkStore || w.kind == Probe::kBulkLoad)) continue;
      const Summary t = b.meter.time(b.plan(), [&] { b.meter.move_plain(w.kind, sms, bytes); });
      if (out.count == 0 || t.median < out.median) {
        out = t;
        what = std::string(w.name) + ", same remote bytes, all directions at once, " + std::to_string(sms) +
               " SMs";
      }
    }
  };
  const size_t rows = b.data.rows_out();
  best({{Probe::kBulkStore, "bulk stores"}, {Probe::kPlainStore, "16-byte stores"}},
       rows * (s.row_bytes() + s.scale_row_bytes()), b.store_ceiling, b.store_what);
  best({{Probe::kBulkLoad, "bulk loads"},
        {Probe::kPlainLoad, "16-byte loads"},
        {Probe::kBulkStore, "bulk stores"},
        {Probe::kPlainStore, "16-byte stores"}},
       rows * s.combine_row_bytes(), b.load_ceiling, b.load_what);
}

void sweep_sms(Bench& b) {
  const Tuning dispatch = b.options.dispatch_tuning(), combine = b.options.combine_tuning();
  double full[2] = {0, 0};
  std::string knee[2];
  for (const int sms : {b.rank.max_ctas(), 64, 32, 24, 16, 8, 4}) {
    if (sms > b.rank.max_ctas() || (sms == b.rank.max_ctas() && full[0] > 0)) continue;
    Tuning d = dispatch, c = combine;
    d.ctas = c.ctas = sms;
    b.rank.retune(d, c);
    b.rank.reset();
    const Summary td = b.dispatch(b.plan(), false), tc = b.combine(b.plan(), b.options.combine, false);
    b.keep_checks();
    const std::string mode = std::to_string(sms) + " SMs";
    b.add("dispatch", mode, td, false, 0);
    b.add("combine", mode, tc, true, 0);
    const double medians[2] = {td.median, tc.median};
    for (int i = 0; i < 2; ++i) {
      if (full[i] == 0) full[i] = medians[i];
      if (medians[i] * 0.9 <= full[i]) knee[i] = std::to_string(sms);
    }
  }
  b.report.notes.push_back({"fewest SMs with 0.9 of the full rate, dispatch", knee[0]});
  b.report.notes.push_back({"fewest SMs with 0.9 of the full rate, combine", knee[1]});
  b.rank.retune(dispatch, combine);
  b.rank.reset();
}

void run_phases(Bench& b) {
  Rank& rank = b.rank;
  const double judged = rank.shape().max_tokens >= 1024 ? 0.85 : 0;
  b.add("dispatch", "full", b.dispatch(b.plan(), false), false, judged);
  b.add("dispatch", "cached", b.dispatch(b.plan(), true), false, 0);
  b.add("dispatch", "graph", b.dispatch(b.plan(true), false), false, 0);
  b.data.fill_returns();
  rank.finish();
  rank.group().barrier();
  const CombineMode mode = b.options.combine;
  b.add("combine", "full", b.combine(b.plan(), mode, false), true, judged);
  b.add("combine", "weighted", b.combine(b.plan(), mode, true), true, 0);
  b.add("combine", "graph", b.combine(b.plan(true), mode, false), true, 0);
  b.add("combine", "stream", b.combine(b.plan(), CombineMode::kStream, false), true, 0);
  b.add("combine", "words", b.combine(b.plan(), CombineMode::kWords, false), true, 0);
  b.add("combine", "pull", b.combine(b.plan(), CombineMode::kPull, false), true, 0);
  b.add("combine", "plain pull", b.combine(b.plan(), CombineMode::kPullPlain, false), true, 0);
  const Summary both = b.meter.time(
      b.plan(), [&] { b.data.poison_combine(); },
      [&] {
        rank.dispatch();
        rank.combine(mode, false);
      },
      [&] { b.data.hash_combine(false); });
  b.add("roundtrip", "full", both, true, 0);
  b.report.phases.back().has_ceiling = false;
  b.keep_checks();
  // What an operation costs among others in a captured graph: ten in a row, no events between them.
  constexpr int kChain = 10;
  b.add("dispatch", "chain", b.meter.chain(b.plan(), kChain, [&] { rank.dispatch(); }), false, 0);
  // Pushes need a dispatch between them.
  const CombineMode resolved = rank.resolve(mode);
  if (resolved != CombineMode::kStream && resolved != CombineMode::kWords)
    b.add("combine", "chain", b.meter.chain(b.plan(), kChain, [&] { rank.combine(mode, false); }), true, 0);
  const Summary pair = b.meter.chain(b.plan(), kChain, [&] {
    rank.dispatch();
    rank.combine(mode, false);
  });
  b.add("roundtrip", "chain", pair, true, 0);
  b.report.phases.back().has_ceiling = false;
  Plan warm = b.plan();
  warm.cold = false;
  b.add("dispatch", "warm", b.meter.time(warm, [&] { rank.dispatch(); }), false, 0);
  b.add("combine", "warm", b.meter.time(warm, [&] { rank.combine(mode, false); }), true, 0);
}

BenchReport bench_shape(Rank& rank, Meter& meter, const Options& o, const Shape& shape,
                        const GateResult& gate) {
  BenchReport report;
  report.tool = "epready-engine-gpu";
  report.case_name = o.case_name;
  report.engine = "cuda";
  report.device = gate.gpus.empty() ? "" : std::to_string(gate.gpus.size()) + "x " + gate.gpus[0].name;
  report.shape = shape;
  report.pattern = name_of(o.pattern);
  report.seed = o.seed;
  report.iters = o.iters;
  report.warmup = o.warmup;
  report.requested_tokens = shape.max_tokens;
  report.memory_bytes = Rank::arena_bytes(shape) + Rank::local_bytes(shape);
  report.worst_case_bytes = ArenaPlan::of(shape).total;
  Verifier data(rank, shape, o.pattern, o.seed, true);
  Bench b = {rank, meter, data, o, report, {}, {}, {}, {}, 0, 0};
  b.wire_rows = mean_over_ranks(rank.group(), static_cast<double>(data.rows_out()));
  b.logical_rows = mean_over_ranks(rank.group(), static_cast<double>(data.rows()));
  measure_ceilings(b);
  data.poison_dispatch();
  rank.dispatch();
  report.first_mismatch = first_text(rank.group(), data.compare_dispatch());
  report.mismatches += !report.first_mismatch.empty();
  run_phases(b);
  report.notes.push_back({"us of an empty kernel between the same events",
                          fixed(meter.time(b.plan(), [&] { empty(rank.stream()); }).median, 2)});
  report.notes.push_back({"cache", o.warm ? "warm" : "cold"});
  const Tiling& t = rank.dispatch_tile();
  report.notes.push_back({"dispatch tiling", std::to_string(t.ctas) + " SMs x " + std::to_string(t.warps) +
                                                 " warps x " + std::to_string(t.stages) + " stages x " +
                                                 std::to_string(t.seg_bytes) + " bytes, lag " +
                                                 std::to_string(t.lag)});
  const Tiling& c = rank.combine_tile(o.combine);
  report.notes.push_back({"combine tiling", std::to_string(c.ctas) + " SMs x " + std::to_string(c.warps) +
                                                " warps x " + std::to_string(c.stages) + " stages x " +
                                                std::to_string(c.seg_bytes) + " bytes a row"});
  report.notes.push_back({"provider", name_of(o.provider)});
  for (const auto& doubt : gate.doubts) report.notes.push_back({"doubt", doubt});
  for (const auto& stop : gate.stop) report.notes.push_back({"gate", stop});
  add_breakdown(rank, meter, o, report, false);
  add_breakdown(rank, meter, o, report, true);
  if (shape.max_tokens >= 1024) sweep_sms(b);
  const auto median = [&](const char* name, const char* mode) {
    for (const auto& p : report.phases) {
      if (p.name == name && p.mode == mode) return p.time_us.median;
    }
    return 0.0;
  };
  if (o.peers)
    report.peers = run_peers(rank, meter, data, o, median("dispatch", "full"), median("combine", "full"));
  return report;
}

std::vector<Shape> shapes_of(const Options& o) {
  std::vector<Shape> out;
  for (const int tokens : o.token_list) out.push_back(shape_of(o, tokens));
  return out;
}

}  // namespace

int case_bench(Group& group, const Options& o) {
  const auto shapes = shapes_of(o);
  const bool writes = group.rank() == 0;
  std::vector<std::string> documents;
  const auto write_json = [&] {
    if (!writes || !o.json || documents.empty()) return;
    const bool several = shapes.size() > 1;
    for (size_t i = 0; i < documents.size(); ++i)
      std::printf("%s%s", !several ? "" : i == 0 ? "[\n" : ",\n", documents[i].c_str());
    std::fputs(several ? "]\n" : "", stdout);
    std::fflush(stdout);
    note_written();
  };
  size_t at = 0;
  bool good = true;
  try {
    const GateResult gate = pass_gate(group, o);
    Rank rank(group, setup_of(o, shapes));
    Meter meter(rank);
    if (writes && !o.json) std::fputs(to_text(gate).c_str(), stdout);
    for (; at < shapes.size(); ++at) {
      const BenchReport report = bench_shape(rank, meter, o, shapes[at], gate);
      good = good && report.verdict() != "FAIL";
      if (!writes) continue;
      if (o.json) {
        documents.push_back(to_json(report));
        continue;
      }
      std::fputs(to_text(report).c_str(), stdout);
      for (const auto& [name, value] : report.notes) std::printf("# %s: %s\n", name.c_str(), value.c_str());
      std::fflush(stdout);
    }
  } catch (const Failure& f) {  // what was measured is kept, what failed is said
    note_failure(group.rank(), f);
    const Outcome outcome = first_failure();
    if (at < shapes.size() && !(documents.empty() && says_nothing(outcome)))
      documents.push_back(to_json(failed_report(o, shapes[at], outcome)));
    write_json();
    throw;
  }
  write_json();
  return good ? 0 : 1;
}

namespace {

std::vector<int> or_zero(const std::vector<int>& list) {
  return list.empty() ? std::vector<int>{0} : list;
}

/// Runs `each` for every combination of the lists.
template <class F>
void for_combinations(const std::vector<std::vector<int>>& lists, F each) {
  std::vector<size_t> at(lists.size(), 0);
  for (;;) {
    std::vector<int> values;
    for (size_t i = 0; i < lists.size(); ++i) values.push_back(lists[i][at[i]]);
    each(values);
    size_t i = 0;
    while (i < lists.size() && ++at[i] == lists[i].size()) at[i++] = 0;
    if (i == lists.size()) return;
  }
}

}  // namespace

int case_tune(Group& group, const Options& o) {
  if (o.json) throw Failure(2, "tune writes no JSON: leave --json out");
  const auto shapes = shapes_of(o);
  Rank rank(group, setup_of(o, shapes));
  Meter meter(rank);
  const bool chief = group.rank() == 0;
  for (const Shape& shape : shapes) {
    Verifier data(rank, shape, o.pattern, o.seed, true);
    BenchReport report;
    Bench b = {rank, meter, data, o, report, {}, {}, {}, {}, 0, 0};
    rank.dispatch();
    data.fill_returns();
    rank.finish();
    group.barrier();
    const auto line = [&](const char* op, const Tiling& t, const Summary& s) {
      if (!chief) return;
      std::printf(
          "%-9s %5d tokens  %s  %3d SMs %2d warps %2d stages lag %d ahead %d own %d seg %5d adders %d x %d  "
          "median %7.2f min %7.2f p95 %7.2f us%s\n",
          op, shape.max_tokens, ep::engine::name_of(shape.dtype), t.ctas, t.warps, t.stages, t.lag, t.ahead,
          t.own, t.seg_bytes, t.adders, t.add_stages, s.median, s.min, s.p95,
          report.mismatches > 0 ? "  WRONG" : "");
      std::fflush(stdout);
    };
    const auto attempt = [&](const Tuning& d, const Tuning& c, bool combine) {
      try {
        rank.retune(d, c);
      } catch (const Failure& f) {
        if (chief) std::printf("%s: %s\n", combine ? "combine" : "dispatch", f.what());
        return;
      }
      rank.reset();
      const Summary s = combine ? b.combine(b.plan(), o.combine, false) : b.dispatch(b.plan(), false);
      b.keep_checks();
      line(combine ? "combine" : "dispatch", combine ? rank.combine_tile(o.combine) : rank.dispatch_tile(),
           s);
    };
    const std::vector<int> choose = {-1};
    for_combinations({or_zero(o.sms), or_zero(o.warps), or_zero(o.stages), or_zero(o.lag), or_zero(o.seg),
                      or_zero(o.unroll), o.ahead.empty() ? choose : o.ahead, o.own.empty() ? choose : o.own},
                     [&](const std::vector<int>& v) {
                       Tuning d, c;
                       c.ctas = d.ctas = v[0], d.warps = v[1], d.stages = v[2], d.lag = v[3];
                       d.seg_bytes = v[4], d.unroll = v[5], d.ahead = v[6], d.own = v[7];
                       attempt(d, c, false);
                     });
    for_combinations({or_zero(o.sms), or_zero(o.combine_warps), or_zero(o.combine_stages),
                      or_zero(o.combine_seg), or_zero(o.adders), o.push_sms.empty() ? choose : o.push_sms},
                     [&](const std::vector<int>& v) {
                       Tuning d, c;
                       d.ctas = c.ctas = v[0], c.warps = v[1], c.stages = v[2], c.seg_bytes = v[3];
                       c.adders = v[4], c.push_ctas = v[5];
                       attempt(d, c, true);
                     });
  }
  return 0;
}

}  // namespace ep::engine::gpu
