// The benchmark: dispatch, combine and round trip, each beside its ceiling in the same iteration, every
// iteration checked. Engine and ceiling take turns in being first, so that a machine that slows down slows
// both.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "cpu/cases.h"
#include "cpu/ceiling.h"
#include "cpu/rank_data.h"

namespace ep::engine::cpu {

namespace {

enum Series { kFanOut, kBulkCopy, kDispatch, kMerge, kCombine, kRoundTrip, kSeriesCount };

/// Begin and end of every (series, rank, iteration), written by ranks and read by the parent.
class Samples {
 public:
  Samples(const Place& place, int iterations)
      : at_(reinterpret_cast<int64_t*>(place.samples.data())),
        ranks_(place.shape.ranks),
        iterations_(iterations) {}
  static size_t bytes(int ranks, int iterations) {
    return sizeof(int64_t) * 2 * kSeriesCount * static_cast<size_t>(ranks) * static_cast<size_t>(iterations);
  }
  int64_t* pair(Series series, int rank, int iteration) const {
    return at_ + 2 * ((static_cast<size_t>(series) * ranks_ + rank) * iterations_ + iteration);
  }
  /// From the first rank's begin to the last rank's end, in microseconds, for iterations from..end.
  std::vector<double> times_us(Series series, int from) const {
    std::vector<double> out;
    for (int i = from; i < iterations_; ++i) {
      int64_t begin = INT64_MAX, end = 0;
      for (int r = 0; r < ranks_; ++r) {
        begin = std::min(begin, pair(series, r, i)[0]);
        end = std::max(end, pair(series, r, i)[1]);
      }
      out.push_back(static_cast<double>(end - begin) * 1e-3);
    }
    return out;
  }

 private:
  int64_t* at_;
  int ranks_, iterations_;
};

/// Which phases a case measures, and which ceilings they need.
struct Choice {
  bool dispatch, combine, roundtrip, ceiling;
  bool sends() const { return dispatch || roundtrip || ceiling; }
  bool returns() const { return combine || roundtrip || ceiling; }
};

Choice choice_of(const std::string& case_name) {
  const bool all = case_name == "bench";
  return {all || case_name == "dispatch", all || case_name == "combine", all || case_name == "roundtrip",
          case_name == "ceiling"};
}

/// One rank's run of the benchmark.
class RankBench {
 public:
  RankBench(Member& member, const Place& place, const Options& options, const CopyOps& ops)
      : member_(member),
        options_(options),
        samples_(place, options.iters + options.warmup),
        data_(member, place, ops),
        team_(options.threads),
        exchange_(member, place, ops, team_),
        ceiling_(member, place, ops, team_, exchange_) {}

  bool run() {
    const std::string error = data_.prepare(options_.pattern, options_.seed, options_.weighted);
    if (!error.empty()) {
      std::snprintf(member_.self().message, sizeof member_.self().message, "%s", error.c_str());
      return false;
    }
    exchange_.dispatch(data_.source());
    data_.check_received();
    const Choice choice = choice_of(options_.case_name);
    for (int i = 0; i < options_.iters + options_.warmup; ++i) {
      if (choice.sends()) dispatch_turns(i, choice);
      if (choice.returns()) combine_turns(i, choice);
      if (choice.roundtrip) round_trip(i);
    }
    member_.self().memory_bytes = proportional_bytes();
    member_.meet();
    return true;
  }

 private:
  template <class Work>
  void time(Series series, int iteration, const Work& work) {
    int64_t* pair = samples_.pair(series, member_.rank(), iteration);
    member_.meet();
    pair[0] = now_ns();
    work();
    pair[1] = now_ns();
  }

  template <class Work>
  void time_ceiling(Series series, int iteration, const Work& work) {
    data_.poison_receive();
    member_.enter(Phase::kCeiling);
    time(series, iteration, [&] {
      work();
      member_.meet();
    });
  }

  void dispatch_turns(int i, const Choice& choice) {
    const SourceView source = data_.source();
    const auto ceilings = [&] {
      time_ceiling(kFanOut, i, [&] { ceiling_.fan_out(source); });
      time_ceiling(kBulkCopy, i, [&] { ceiling_.bulk_copy(source); });
    };
    const auto engine = [&] {
      if (!choice.dispatch) return;
      data_.poison_receive();
      time(kDispatch, i, [&] { exchange_.dispatch(source); });
      data_.check_received();
    };
    take_turns(i, ceilings, engine);
  }

  void combine_turns(int i, const Choice& choice) {
    const SourceView source = data_.source();
    const auto ceiling = [&] {
      data_.poison_out();
      member_.enter(Phase::kCeiling);
      time(kMerge, i, [&] {
        member_.meet();
        ceiling_.merge(data_.out());
      });
    };
    const auto engine = [&] {
      if (!choice.combine) return;
      data_.poison_out();
      member_.enter(Phase::kExpert);
      time(kCombine, i, [&] { exchange_.combine(source, data_.out(), options_.weighted); });
      data_.check_combined();
    };
    take_turns(i, ceiling, engine);
  }

  void round_trip(int i) {
    const SourceView source = data_.source();
    data_.poison_receive();
    data_.poison_out();
    time(kRoundTrip, i, [&] {
      exchange_.dispatch(source);
      member_.enter(Phase::kExpert);
      exchange_.combine(source, data_.out(), options_.weighted);
    });
    data_.check_received();
    data_.check_combined();
  }

  template <class First, class Second>
  void take_turns(int i, const First& first, const Second& second) {
    if (i % 2 == 0) {
      first();
      second();
    } else {
      second();
      first();
    }
  }

  Member& member_;
  const Options& options_;
  Samples samples_;
  RankData data_;
  Team team_;
  Exchange exchange_;
  Ceiling ceiling_;
};

/// Rows received by all ranks together, and those of them that crossed ranks.
struct Rows {
  double all = 0, crossing = 0;
};

Rows rows_of(const Place& place) {
  const Shape& shape = place.shape;
  Rows rows;
  for (int s = 0; s < shape.ranks; ++s) {
    for (int d = 0; d < shape.ranks; ++d) {
      const double count = place.control().counts[s * shape.ranks + d];
      rows.all += count;
      if (s != d) rows.crossing += count;
    }
  }
  return rows;
}

PhaseResult phase_result(const char* name, const char* mode, double bytes, double crossing,
                         std::vector<double> times, std::vector<double> ceiling, const char* ceiling_what,
                         double min_share) {
  PhaseResult out;
  out.name = name;
  out.mode = mode;
  out.bytes_logical = bytes;
  out.bytes_wire = crossing;
  out.time_us = summarize(std::move(times));
  out.has_ceiling = !ceiling.empty();
  out.ceiling_us = summarize(std::move(ceiling));
  out.ceiling_what = ceiling_what;
  out.min_share = min_share;
  return out;
}

void add_phases(const Options& options, const Place& place, BenchReport& report) {
  const Samples samples(place, options.iters + options.warmup);
  const Choice choice = choice_of(options.case_name);
  const Rows rows = rows_of(place);
  const double row = static_cast<double>(place.shape.row_bytes() + place.shape.scale_row_bytes());
  const double back = static_cast<double>(place.shape.combine_row_bytes()), n = place.shape.ranks;
  const char* mode = options.weighted ? "weighted" : "sum";
  // Small exchanges last as long as the ranks need to meet; a share of the memory's speed says nothing there.
  const double min_share = rows.all * row >= 64e6 ? options.min_share : 0;

  auto fan_out = samples.times_us(kFanOut, options.warmup),
       bulk = samples.times_us(kBulkCopy, options.warmup);
  const bool fan_wins = summarize(fan_out).median <= summarize(bulk).median;
  const auto& sending = fan_wins ? fan_out : bulk;
  const char* sending_what = fan_wins ? "each row read once, non-temporal stores to all its receivers"
                                      : "one contiguous non-temporal copy for each pair of ranks";
  const auto merging = samples.times_us(kMerge, options.warmup);
  if (choice.dispatch) {
    report.phases.push_back(phase_result("dispatch", "full", rows.all * row / n, rows.crossing * row / n,
                                         samples.times_us(kDispatch, options.warmup), sending, sending_what,
                                         min_share));
  }
  if (choice.combine) {
    report.phases.push_back(phase_result("combine", mode, rows.all * back / n, rows.crossing * back / n,
                                         samples.times_us(kCombine, options.warmup), merging,
                                         "the same rows read and xored, one row written for each token",
                                         min_share));
  }
  if (choice.roundtrip) {
    std::vector<double> both(sending);
    for (size_t i = 0; i < both.size(); ++i) both[i] += merging[i];
    report.phases.push_back(phase_result(
        "roundtrip", mode, rows.all * (row + back) / n, rows.crossing * (row + back) / n,
        samples.times_us(kRoundTrip, options.warmup), both, "the two ceilings added", min_share));
  }
  const auto add_ceiling = [&](const char* name, const char* how, double bytes, double crossing,
                               const std::vector<double>& times) {
    report.phases.push_back(
        phase_result(name, how, bytes * rows.all / n, crossing * rows.crossing / n, times, {}, "", 0));
  };
  if (choice.ceiling) {
    add_ceiling("dispatch", "fan-out", row, row, fan_out);
    add_ceiling("dispatch", "bulk copy", row, row, bulk);
    add_ceiling("combine", "xor", back, back, merging);
  }
}

void add_checks(const Place& place, BenchReport& report) {
  for (int r = 0; r < place.shape.ranks; ++r) {
    const Control::Rank& rank = place.control().rank[r];
    report.rows_checked += rank.rows_checked;
    report.mismatches += rank.mismatches;
    report.memory_bytes += rank.memory_bytes;
    if (report.first_mismatch.empty() && rank.mismatches > 0) report.first_mismatch = rank.message;
  }
}

BenchReport report_header(const Options& options, const CopyOps& ops) {
  BenchReport report;
  report.tool = kTool;
  report.case_name = options.case_name;
  report.engine = "cpu";
  report.device = device_text(options, ops);
  report.shape = options.shape;
  report.pattern = name_of(options.pattern);
  report.seed = options.seed;
  report.iters = options.iters;
  report.warmup = options.warmup;
  report.worst_case_bytes = worst_case_bytes(options.shape);
  report.notes = {{"copy", ops.name},
                  {"threads_per_rank", std::to_string(options.threads)},
                  {"pinned", world_options(options).pin ? "yes" : "no"},
                  {"shared_memory", options.backing == Backing::kMemfd ? "memfd" : "posix"}};
  return report;
}

}  // namespace

int run_bench(Options& options) {
  const int requested = options.shape.max_tokens;
  std::string why, error;
  const CopyOps* ops = chosen_copy(options, error);
  if (ops != nullptr) error = fit_to_memory(options, why);
  Place place;
  if (error.empty()) {
    error = Place::make(options.shape, options.backing,
                        Samples::bytes(options.shape.ranks, options.iters + options.warmup), place);
  }
  if (!error.empty()) {
    std::cerr << kTool << " " << options.case_name << ": " << error << "\n";
    return kCannot;
  }
  BenchReport report = report_header(options, *ops);
  report.requested_tokens = requested;
  report.scaled_down_why = why;
  std::cerr << kTool << " " << options.case_name << ": " << options.shape.ranks << " ranks, "
            << report.worst_case_bytes / 1000000 << " MB, " << options.warmup + options.iters
            << " iterations\n";
  bool interrupted = false;
  const Outcome outcome = run_world(place.control(), world_options(options), [&](Member& member) {
    return RankBench(member, place, options, *ops).run();
  });
  add_checks(place, report);
  if (outcome.kind == Outcome::kOk) {
    add_phases(options, place, report);
    place = Place();  // the peers get the memory
    if (report.mismatches == 0) interrupted = !run_peers(options, report);
  } else {
    report.failure = outcome.text;
    report.failed_rank = outcome.rank;
    report.failed_phase = outcome.rank >= 0 ? name_of(outcome.phase) : "";
    std::cerr << kTool << " " << options.case_name << ": " << outcome.text << "\n";
  }
  std::cout << (options.json ? to_json(report) : to_text(report));
  if (outcome.kind != Outcome::kOk) return exit_code(outcome);
  if (interrupted) return kInterrupted;
  return report.verdict() == "FAIL" ? kFailed : kGood;
}

}  // namespace ep::engine::cpu
