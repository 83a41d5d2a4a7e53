// Correctness: every byte of dispatch and combine against the reference, over a visible table of shapes, with
// every copy function this CPU has and 1 to 4 threads a rank. Each row runs in ranks of its own, several
// exchanges long, so that what one exchange leaves behind meets the next.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "cpu/cases.h"
#include "cpu/exchange.h"
#include "expect.h"
#include "json.h"

namespace ep::engine::cpu {

namespace {

struct CheckRow {
  int ranks, tokens, hidden, experts, topk;
  Dtype dtype;
  Pattern pattern;
};

constexpr Dtype kBf16 = Dtype::kBf16, kFp8 = Dtype::kFp8;

// Small on purpose: the reference is slow. Odd numbers on purpose: rows that are no whole cache lines,
// experts that do not divide by ranks, fewer experts than ranks, a scale group that is cut off.
constexpr CheckRow kRows[] = {
    {1, 16, 128, 8, 2, kBf16, Pattern::kUniform},   {2, 33, 256, 16, 8, kBf16, Pattern::kUniform},
    {4, 64, 512, 256, 8, kBf16, Pattern::kUniform}, {4, 20, 7168, 256, 8, kBf16, Pattern::kUniform},
    {4, 20, 7168, 256, 8, kFp8, Pattern::kUniform}, {3, 40, 136, 10, 3, kBf16, Pattern::kUniform},
    {5, 23, 144, 7, 7, kFp8, Pattern::kMasked},     {4, 31, 24, 6, 1, kBf16, Pattern::kHot},
    {8, 17, 64, 60, 16, kBf16, Pattern::kMasked},   {4, 32, 256, 3, 2, kBf16, Pattern::kUniform},
    {4, 48, 256, 64, 8, kBf16, Pattern::kOneRank},  {4, 48, 272, 64, 8, kFp8, Pattern::kOneRank},
    {4, 50, 256, 64, 8, kBf16, Pattern::kUneven},   {6, 29, 400, 100, 6, kFp8, Pattern::kUneven},
    {4, 50, 256, 64, 8, kBf16, Pattern::kZero},     {3, 50, 256, 65, 5, kFp8, Pattern::kZero},
    {4, 8, 256, 64, 8, kBf16, Pattern::kAllZero},   {4, 0, 256, 64, 8, kFp8, Pattern::kUniform},
    {4, 1, 8, 4, 4, kBf16, Pattern::kUniform},      {16, 9, 48, 100, 6, kFp8, Pattern::kMasked},
    {4, 64, 520, 48, 16, kBf16, Pattern::kHot},     {7, 30, 1040, 33, 12, kFp8, Pattern::kHot},
};

constexpr int kExchanges = 3;  // per row, each with other routing and data

Shape shape_of(const CheckRow& row) {
  Shape shape;
  shape.ranks = row.ranks;
  shape.max_tokens = row.tokens;
  shape.hidden = row.hidden;
  shape.experts = row.experts;
  shape.topk = row.topk;
  shape.dtype = row.dtype;
  set_tokens(shape, row.pattern);
  return shape;
}

/// All ranks' inputs, kept where views can point to them.
struct Inputs {
  std::vector<Routing> routing;
  std::vector<std::vector<uint64_t>> x, scale;
  std::vector<SourceView> views;

  Inputs(const Shape& shape, Pattern pattern, uint64_t seed) {
    for (int r = 0; r < shape.ranks; ++r) {
      const size_t tokens = static_cast<size_t>(shape.tokens[r]);
      routing.push_back(make_routing(shape, r, pattern, seed));
      x.emplace_back(tokens * shape.row_bytes() / 8 + 2);
      scale.emplace_back(tokens * shape.scale_row_bytes() / 8 + 2);
      fill_rows(shape, r, seed, x[r].data(), scale[r].data());
    }
    for (int r = 0; r < shape.ranks; ++r) {
      views.push_back(
          {x[r].data(), scale[r].data(), routing[r].topk_idx.data(), routing[r].topk_weight.data()});
    }
  }
};

/// One rank's part of one row of the table.
class RankCheck {
 public:
  RankCheck(Member& member, const Place& place, const CopyOps& ops, int threads, Pattern pattern)
      : member_(member),
        place_(place),
        shape_(place.shape),
        pattern_(pattern),
        team_(threads),
        exchange_(member, place, ops, team_),
        out_(static_cast<size_t>(shape_.tokens[member.rank()]) * shape_.hidden / 4 + 2) {}

  bool run(uint64_t seed) {
    const std::string error = place_.arena[member_.rank()].reserve();
    if (!error.empty()) {
      std::snprintf(member_.self().message, sizeof member_.self().message, "%s", error.c_str());
      return false;
    }
    for (int i = 0; i < kExchanges; ++i) exchange_once(seed + static_cast<uint64_t>(i) * 1000);
    return true;
  }

 private:
  void exchange_once(uint64_t seed) {
    const int me = member_.rank();
    const Inputs inputs(shape_, pattern_, seed);
    const Region all[] = {place_.plan.recv_x, place_.plan.recv_scale, place_.plan.recv_meta, place_.plan.y};
    for (const Region& region : all) {
      std::memset(place_.at(me, region), kPoisonByte, region.bytes);
      fill_guard(place_.at(me, region) - kGuardBytes, kGuardBytes);
      fill_guard(place_.at(me, region) + region.bytes, kGuardBytes);
    }
    member_.meet();
    exchange_.dispatch(inputs.views[me]);
    member_.enter(Phase::kVerify);
    std::vector<Received> want;
    for (int r = 0; r < shape_.ranks; ++r) want.push_back(oracle_dispatch(shape_, inputs.views, r));
    check_dispatch(want[me]);

    member_.enter(Phase::kExpert);
    auto y = returned_rows(want, seed);
    put_y(y[me]);
    check_combine(inputs, y, false, "combine");
    check_combine(inputs, y, true, "weighted combine");
    member_.meet();  // peers may still read the rows that are replaced now

    member_.enter(Phase::kExpert);
    for (int r = 0; r < shape_.ranks; ++r) y[r] = expert_rows(want[r], r);
    put_y(expert_rows_received());
    check_combine(inputs, y, true, "combine of the expert's rows");
    member_.meet();
    for (const Region& region : all) {
      check(check_guard(place_.at(me, region) - kGuardBytes, kGuardBytes) < 0,
            "guard before a buffer overwritten");
      check(check_guard(place_.at(me, region) + region.bytes, kGuardBytes) < 0,
            "guard after a buffer overwritten");
    }
  }

  void check(bool good, const std::string& what) {
    if (!good) member_.mismatch("rank " + std::to_string(member_.rank()) + ": " + what);
  }

  /// The region holds `want`, then poison to its end.
  void check_region(const Region& region, const std::vector<uint8_t>& want, size_t row, const char* name) {
    const char* at = place_.at(member_.rank(), region);
    check(want.size() <= region.bytes, std::string(name) + ": more rows than fit");
    const size_t size = std::min(want.size(), region.bytes);
    for (size_t i = 0; i < size; ++i) {
      if (static_cast<uint8_t>(at[i]) == want[i]) continue;
      check(false, std::string(name) + " row " + std::to_string(i / row) + " differs at byte " +
                       std::to_string(i % row));
      break;
    }
    const bool rest = std::all_of(at + size, at + region.bytes,
                                  [](char c) { return static_cast<uint8_t>(c) == kPoisonByte; });
    check(rest, std::string(name) + ": written after the last row");
  }

  void check_dispatch(const Received& want) {
    const int me = member_.rank();
    const Control& control = place_.control();
    check(exchange_.rows_received() == static_cast<int64_t>(want.rows), "number of rows differs");
    for (int s = 0; s < shape_.ranks; ++s) {
      check(control.counts[s * shape_.ranks + me] == want.rows_from[s], "rows of a source differ");
    }
    for (int e = 0; e < shape_.experts_of(me); ++e) {
      int32_t sum = 0;
      for (int s = 0; s < shape_.ranks; ++s) sum += control.expert_counts[s][shape_.expert_begin(me) + e];
      check(sum == want.expert_count[e], "count of local expert " + std::to_string(e) + " differs");
    }
    check_region(place_.plan.recv_x, want.x, shape_.row_bytes(), "row");
    if (shape_.dtype == Dtype::kFp8)
      check_region(place_.plan.recv_scale, want.scale, shape_.scale_row_bytes(), "scale");
    check_region(place_.plan.recv_meta, want.meta, shape_.meta_bytes(), "metadata");
    member_.self().rows_checked += want.rows;
  }

  using Rows = std::vector<uint16_t>;

  std::vector<Rows> returned_rows(const std::vector<Received>& received, uint64_t seed) const {
    std::vector<Rows> y;
    for (int r = 0; r < shape_.ranks; ++r) {
      y.emplace_back(received[r].rows * static_cast<size_t>(shape_.hidden));
      for (size_t slot = 0; slot < received[r].rows; ++slot) {
        int32_t source[2];
        std::memcpy(source, received[r].meta.data() + slot * shape_.meta_bytes(), sizeof source);
        fill_combine_row(shape_, seed, r, source[0], source[1], y[r].data() + slot * shape_.hidden);
      }
    }
    return y;
  }

  Rows expert_rows(const Received& received, int rank) const {
    Rows y(received.rows * static_cast<size_t>(shape_.hidden));
    for (size_t slot = 0; slot < received.rows; ++slot) {
      expert_row(shape_, rank, received.x.data() + slot * shape_.row_bytes(),
                 received.scale.data() + slot * shape_.scale_row_bytes(), y.data() + slot * shape_.hidden);
    }
    return y;
  }

  /// The expert applied to what really arrived here.
  Rows expert_rows_received() const {
    const int me = member_.rank();
    const size_t rows = static_cast<size_t>(exchange_.rows_received());
    Rows y(rows * static_cast<size_t>(shape_.hidden));
    for (size_t slot = 0; slot < rows; ++slot) {
      expert_row(shape_, me, place_.at(me, place_.plan.recv_x) + slot * shape_.row_bytes(),
                 place_.at(me, place_.plan.recv_scale) + slot * shape_.scale_row_bytes(),
                 y.data() + slot * shape_.hidden);
    }
    return y;
  }

  void put_y(const Rows& y) {
    if (!y.empty()) std::memcpy(place_.at(member_.rank(), place_.plan.y), y.data(), y.size() * 2);
  }

  void check_combine(const Inputs& inputs, const std::vector<Rows>& y, bool weighted, const char* name) {
    const int me = member_.rank();
    const size_t bytes = static_cast<size_t>(shape_.tokens[me]) * shape_.combine_row_bytes();
    std::memset(out_.data(), kPoisonByte, out_.size() * 8);
    exchange_.combine(inputs.views[me], reinterpret_cast<uint16_t*>(out_.data()), weighted);
    member_.enter(Phase::kVerify);
    std::vector<const void*> pointers;
    for (const Rows& rows : y) pointers.push_back(rows.data());
    const auto want = oracle_combine(shape_, inputs.views, pointers, me, weighted);
    const auto* got = reinterpret_cast<const char*>(out_.data());
    for (size_t i = 0; i < want.size(); ++i) {
      if (std::memcmp(got + 2 * i, &want[i], 2) == 0) continue;
      check(false, std::string(name) + ": token " + std::to_string(i / shape_.hidden) + " differs at value " +
                       std::to_string(i % shape_.hidden));
      break;
    }
    check(std::all_of(got + bytes, got + out_.size() * 8,
                      [](char c) { return c == static_cast<char>(kPoisonByte); }),
          std::string(name) + ": written after the last token");
    member_.self().rows_checked += static_cast<size_t>(shape_.tokens[me]);
  }

  Member& member_;
  const Place& place_;
  const Shape& shape_;
  Pattern pattern_;
  Team team_;
  Exchange exchange_;
  std::vector<uint64_t> out_;  // rows of bf16, and poison after them
};

struct RowResult {
  CheckRow row;
  std::string copy;
  int threads = 1;
  uint64_t rows_checked = 0, mismatches = 0;
  std::string problem;  // first mismatch, or why it did not finish
  int exit = kGood;
};

RowResult run_row(const CheckRow& row, const CopyOps& ops, int threads, const Options& options) {
  RowResult result{row, ops.name, threads, 0, 0, {}, kGood};
  Place place;
  result.problem = Place::make(shape_of(row), options.backing, 0, place);
  if (!result.problem.empty()) {
    result.exit = kCannot;
    return result;
  }
  WorldOptions world = world_options(options);
  world.ranks = row.ranks;
  world.pin = false;
  const Outcome outcome = run_world(place.control(), world, [&](Member& member) {
    return RankCheck(member, place, ops, threads, row.pattern).run(options.seed);
  });
  for (int r = 0; r < row.ranks; ++r) {
    const Control::Rank& rank = place.control().rank[r];
    result.rows_checked += rank.rows_checked;
    result.mismatches += rank.mismatches;
    if (result.problem.empty() && rank.mismatches > 0) result.problem = rank.message;
  }
  if (outcome.kind != Outcome::kOk) result.problem = outcome.text;
  result.exit = outcome.kind != Outcome::kOk ? exit_code(outcome) : result.mismatches > 0 ? kFailed : kGood;
  return result;
}

std::string row_text(const RowResult& r) {
  char line[256];
  std::snprintf(line, sizeof line, "  %5d %6d %6d %7d %5d  %-5s %-9s %-7s %7d %9llu %6llu  %s\n", r.row.ranks,
                r.row.tokens, r.row.hidden, r.row.experts, r.row.topk, name_of(r.row.dtype),
                name_of(r.row.pattern), r.copy.c_str(), r.threads,
                static_cast<unsigned long long>(r.rows_checked),
                static_cast<unsigned long long>(r.mismatches), r.exit == kGood ? "PASS" : "FAIL");
  return line + (r.problem.empty() ? "" : "#   " + r.problem + "\n");
}

std::string rows_json(const std::vector<RowResult>& rows, int exit) {
  uint64_t checked = 0, wrong = 0;
  Json json;
  json.begin_object().value("schema", "epready.engine.check/1").value("tool", kTool).value("case", "check");
  json.value("engine", "cpu").value("verdict", exit == kGood ? "PASS" : "FAIL");
  json.begin_array("rows");
  for (const RowResult& r : rows) {
    checked += r.rows_checked;
    wrong += r.mismatches;
    json.begin_object()
        .value("ranks", r.row.ranks)
        .value("num_tokens", r.row.tokens)
        .value("hidden", r.row.hidden);
    json.value("num_experts", r.row.experts)
        .value("num_topk", r.row.topk)
        .value("dtype", name_of(r.row.dtype));
    json.value("pattern", name_of(r.row.pattern)).value("copy", r.copy).value("threads", r.threads);
    json.value("rows_checked", r.rows_checked).value("mismatches", r.mismatches);
    if (r.problem.empty())
      json.null("problem");
    else
      json.value("problem", r.problem);
    json.value("verdict", r.exit == kGood ? "PASS" : "FAIL").end_object();
  }
  json.end_array().begin_object("checks").value("rows_checked", checked).value("mismatches", wrong);
  json.end_object().end_object();
  return json.text() + "\n";
}

}  // namespace

int run_check(Options& options) {
  std::vector<RowResult> results;
  int exit = kGood;
  for (const char* name : {"plain", "sse2", "avx2", "avx512"}) {
    const CopyOps* ops = copy_ops(name);
    if (ops == nullptr || (options.copy != "auto" && options.copy != name)) continue;
    int threads = options.threads;
    for (const CheckRow& row : kRows) {
      if (options.fault.kind != Fault::kNone && options.fault.rank >= row.ranks) continue;
      results.push_back(run_row(row, *ops, threads, options));
      exit = std::max(exit, results.back().exit);
      threads = threads % 4 + 1;
      if (exit == kInterrupted || exit == kCannot || (exit != kGood && options.fault.kind != Fault::kNone))
        break;
    }
    if (exit != kGood) break;
  }
  if (results.empty()) {
    std::cerr << kTool << " check: this CPU cannot run the copy functions '" << options.copy << "'\n";
    return kCannot;
  }
  if (options.json) {
    std::cout << rows_json(results, exit);
    return exit;
  }
  std::cout
      << "# " << kTool << " check  engine cpu  seed " << options.seed << "  each row: " << kExchanges
      << " exchanges, dispatch and three combines, every byte\n"
      << "# ranks tokens hidden experts  topk  dtype pattern   copy    threads   checked  wrong  verdict\n";
  for (const RowResult& row : results) std::cout << row_text(row);
  std::cout << "# verdict " << (exit == kGood ? "PASS" : "FAIL") << "\n# next: " << kTool
            << (exit == kGood ? " bench   (how fast)" : " check --json   (all rows, for a report)") << "\n";
  return exit;
}

}  // namespace ep::engine::cpu
