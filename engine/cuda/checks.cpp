// Cases that prove: exact comparison over many shapes, long runs with random delays, and what happens when a
// rank does not come.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cases.h"
#include "failure.h"
#include "json.h"
#include "measure.h"
#include "outcome.h"
#include "verify.h"

namespace ep::engine::gpu {

RankSetup setup_of(const Options& o, const std::vector<Shape>& shapes) {
  RankSetup s;
  s.devices = o.devices;
  s.provider = o.provider;
  s.path = o.path;
  s.dispatch = o.dispatch_tuning();
  s.combine = o.combine_tuning();
  s.timeout_s = o.timeout_s;
  for (const Shape& shape : shapes) {
    s.arena_bytes = std::max(s.arena_bytes, Rank::arena_bytes(shape));
    s.local_bytes = std::max(s.local_bytes, Rank::local_bytes(shape));
  }
  return s;
}

Shape shape_of(const Options& o, int tokens) {
  Shape s = o.shape;
  s.ranks = static_cast<int>(o.devices.size());
  s.meta_align = kVectorBytes;
  s.max_tokens = tokens;
  set_tokens(s, o.pattern);
  for (int r = 0; r < s.ranks; ++r) s.max_tokens = std::max(s.max_tokens, s.tokens[r]);
  if (const std::string wrong = validate(s); !wrong.empty()) throw Failure(2, wrong);
  return s;
}

std::string first_text(Group& group, const std::string& mine) {
  for (const std::string& text : group.gather_text(mine)) {
    if (!text.empty()) return text;
  }
  return {};
}

namespace {

/// Rows of nothing but the pattern by which combine by words knows what has not arrived: it must neither wait
/// for ever nor return anything else than the pull does. Leaves the returned rows overwritten.
std::string check_pattern_rows(Rank& rank, Verifier& v) {
  const size_t bytes = v.rows() * rank.shape().combine_row_bytes();
  if (bytes > 0)
    EP_CUDA(cudaMemsetAsync(rank.region(rank.rank(), rank.plan().y), 0xff, bytes, rank.stream()));
  rank.finish();
  rank.group().barrier();
  std::vector<uint16_t> out[2];
  for (const CombineMode mode : {CombineMode::kPull, CombineMode::kWords}) {
    v.poison_combine();
    rank.combine(mode, false);
    rank.finish();
    auto& values = out[mode == CombineMode::kWords];
    values.resize(rank.out_bytes() / 2);
    if (!values.empty())
      EP_CUDA(cudaMemcpy(values.data(), rank.out(), rank.out_bytes(), cudaMemcpyDeviceToHost));
    rank.group().barrier();
  }
  const bool nan = std::any_of(out[0].begin(), out[0].end(), [](uint16_t x) { return x == 0x7fff; });
  if (!out[0].empty() && !nan && v.sends()) return "rows of NaNs gave no NaN";
  return out[0] == out[1] ? "" : "rows of NaNs: words and pull differ";
}

/// One shape, everything compared byte for byte. Empty when right.
/// `rows`: received rows that were compared.
std::string check_once(Rank& rank, const Shape& shape, Pattern pattern, uint64_t seed, uint64_t& rows) {
  Verifier v(rank, shape, pattern, seed, true);
  rows = v.rows();
  v.poison_dispatch();
  rank.dispatch();
  std::string wrong = v.compare_dispatch();
  rank.group().barrier();
  if (wrong.empty()) {  // again through the cached layout: rows only
    const ArenaPlan& plan = rank.plan();
    EP_CUDA(cudaMemsetAsync(rank.region(rank.rank(), plan.recv_x), kPoisonByte, v.rows() * shape.row_bytes(),
                            rank.stream()));
    rank.finish();
    rank.group().barrier();
    rank.dispatch(true);
    wrong = v.compare_dispatch();
    if (!wrong.empty()) wrong = "cached: " + wrong;
  }
  v.fill_returns();
  rank.finish();
  rank.group().barrier();
  struct Way {
    CombineMode mode;
    bool weighted;
    const char* name;
  };
  for (const Way& way :
       {Way{CombineMode::kAuto, false, "auto"}, Way{CombineMode::kStream, false, "stream"},
        Way{CombineMode::kStream, true, "stream, weighted"}, Way{CombineMode::kWords, false, "words"},
        Way{CombineMode::kWords, true, "words, weighted"}, Way{CombineMode::kPull, false, "pull"},
        Way{CombineMode::kPull, true, "pull, weighted"},
        Way{CombineMode::kPullPlain, true, "plain pull, weighted"}}) {
    v.poison_combine();
    rank.combine(way.mode, way.weighted);
    const std::string bad = v.compare_combine(way.weighted);
    rank.group().barrier();
    if (wrong.empty() && !bad.empty()) wrong = std::string(way.name) + ": " + bad;
  }
  const std::string bad = check_pattern_rows(rank, v);
  if (wrong.empty()) wrong = bad;
  return first_text(rank.group(), wrong);
}

struct CheckShape {
  int tokens, hidden, experts, topk;
  Dtype dtype;
  Pattern pattern;
};

/// Corners first, then the sizes that are benchmarked.
std::vector<CheckShape> check_shapes(const Options& o, int ranks) {
  std::vector<CheckShape> out;
  for (const auto& p : all_patterns()) {
    out.push_back({130, 7168, 256, 8, Dtype::kBf16, p.pattern});
    out.push_back({67, 512, 8 * ranks + 3, 4, Dtype::kFp8, p.pattern});
  }
  for (const int topk : {1, 3, 16}) out.push_back({301, 1032, 40, topk, Dtype::kBf16, Pattern::kMasked});
  for (const int hidden : {16, 48, 2064, 16384})
    out.push_back({77, hidden, 20, 5, Dtype::kFp8, Pattern::kUneven});
  out.push_back({1, 8, ranks, 1, Dtype::kBf16, Pattern::kUniform});
  out.push_back({3, 64, 1, 1, Dtype::kBf16, Pattern::kUniform});
  out.push_back({4099, 256, 96, 6, Dtype::kBf16, Pattern::kUniform});
  for (const int tokens : o.token_list) {
    out.push_back({tokens, o.shape.hidden, o.shape.experts, o.shape.topk, o.shape.dtype, o.pattern});
  }
  return out;
}

Shape shape_of_check(const Options& o, const CheckShape& c) {
  Options one = o;
  one.shape.hidden = c.hidden;
  one.shape.experts = c.experts;
  one.shape.topk = c.topk;
  one.shape.dtype = c.dtype;
  one.pattern = c.pattern;
  return shape_of(one, c.tokens);
}

std::string describe(const Shape& s, Pattern pattern) {
  return std::to_string(s.max_tokens) + " tokens, hidden " + std::to_string(s.hidden) + ", experts " +
         std::to_string(s.experts) + ", topk " + std::to_string(s.topk) + ", " +
         ep::engine::name_of(s.dtype) + ", " + ep::engine::name_of(pattern);
}

}  // namespace

namespace {

/// As the CPU engine's, see README.md. `problems`: of each shape, empty when right.
std::string check_json(const Rank& rank, const std::vector<CheckShape>& list,
                       const std::vector<Shape>& shapes, const std::vector<std::string>& problems,
                       uint64_t rows, int wrong) {
  const char* path = rank.setup().path == Path::kBulk ? "bulk" : "plain";
  Json json;
  json.begin_object().value("schema", "epready.engine.check/1").value("tool", "epready-engine-gpu");
  json.value("case", "check").value("engine", "cuda").value("verdict", wrong == 0 ? "PASS" : "FAIL");
  json.value("provider", name_of(rank.setup().provider)).begin_array("rows");
  for (size_t i = 0; i < list.size(); ++i) {
    const Shape& s = shapes[i];
    json.begin_object().value("ranks", s.ranks).value("num_tokens", s.max_tokens).value("hidden", s.hidden);
    json.value("num_experts", s.experts).value("num_topk", s.topk);
    json.value("dtype", ep::engine::name_of(s.dtype));
    json.value("pattern", ep::engine::name_of(list[i].pattern)).value("copy", path);
    if (problems[i].empty())
      json.null("problem");
    else
      json.value("problem", problems[i]);
    json.value("verdict", problems[i].empty() ? "PASS" : "FAIL").end_object();
  }
  json.end_array().begin_object("checks").value("rows_checked", rows).value("mismatches", wrong);
  json.end_object().end_object();
  return json.text() + "\n";
}

/// The result of a case that proves and has no table.
void write_proof(const Options& o, const std::string& wrong, int done) {
  Json json;
  json.begin_object().value("schema", "epready.engine.proof/1").value("tool", "epready-engine-gpu");
  json.value("case", o.case_name).value("engine", "cuda").value("verdict", wrong.empty() ? "PASS" : "FAIL");
  json.value("passed", done);
  if (wrong.empty())
    json.null("problem");
  else
    json.value("problem", wrong);
  json.end_object();
  std::printf("%s\n", json.text().c_str());
  note_written();
}

}  // namespace

int case_check(Group& group, const Options& o) {
  const auto list = check_shapes(o, group.size());
  std::vector<Shape> shapes;
  for (const auto& c : list) shapes.push_back(shape_of_check(o, c));
  Rank rank(group, setup_of(o, shapes));
  const bool writes = group.rank() == 0;
  std::vector<std::string> problems;
  uint64_t rows = 0;
  int wrong_count = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    uint64_t mine = 0;
    const std::string wrong = check_once(rank, shapes[i], list[i].pattern, o.seed + i, mine);
    for (const uint64_t n : group.gather(mine)) rows += n;
    wrong_count += !wrong.empty();
    problems.push_back(wrong);
    if (writes && !o.json && !wrong.empty())
      std::printf("WRONG  %s: %s\n", describe(shapes[i], list[i].pattern).c_str(), wrong.c_str());
  }
  if (writes && o.json) {
    std::fputs(check_json(rank, list, shapes, problems, rows, wrong_count).c_str(), stdout);
    note_written();
  } else if (writes) {
    std::printf("# check: %zu shapes on %d ranks, path %s, provider %s: %d wrong\n", list.size(),
                group.size(), rank.setup().path == Path::kBulk ? "bulk" : "plain", name_of(o.provider),
                wrong_count);
    std::printf("# verdict %s\n", wrong_count == 0 ? "PASS" : "FAIL");
  }
  return wrong_count == 0 ? 0 : 1;
}

namespace {

/// Rounds of dispatch, returns and combine without host waits in between, ranks delayed at random, hashes of
/// all rows each round. Empty when right.
std::string stress_shape(Rank& rank, const Shape& shape, Pattern pattern, uint64_t seed, int epochs,
                         uint64_t& rows) {
  Verifier v(rank, shape, pattern, seed, true);
  uint64_t random = mix64(seed * kGolden + static_cast<uint64_t>(rank.rank()));
  std::string wrong;
  for (int e = 0; e < epochs && wrong.empty(); ++e) {
    random = mix64(random + kGolden);
    v.poison_dispatch();
    if (random % 4 == 0) delay(random >> 20 & 0x7fff, rank.stream());
    rank.dispatch(false);
    v.hash_dispatch();
    v.fill_returns();
    v.poison_combine();
    if (random % 4 == 1) delay(random >> 20 & 0x7fff, rank.stream());
    const bool weighted = e % 2 == 1;
    constexpr CombineMode kTurns[] = {CombineMode::kStream, CombineMode::kPull, CombineMode::kWords,
                                      CombineMode::kPullPlain, CombineMode::kWords};
    rank.combine(kTurns[e / 2 % 5], weighted);
    v.hash_combine(weighted);
    if (e % 50 != 49 && e + 1 != epochs) continue;
    const HashTotals totals = v.take_hashes();
    rows += totals.rows;
    wrong = first_text(rank.group(),
                       totals.wrong == 0 ? "" : totals.first + " within epochs up to " + std::to_string(e));
  }
  return wrong;
}

}  // namespace

int case_stress(Group& group, const Options& o) {
  std::vector<CheckShape> list = {
      {512, 1024, 64, 8, Dtype::kBf16, Pattern::kUniform},
      {97, 7168, 256, 8, Dtype::kFp8, Pattern::kMasked},
      {1, 256, 32, 2, Dtype::kBf16, Pattern::kUniform},
      {300, 512, 60, 4, Dtype::kBf16, Pattern::kUneven},
      {o.token_list[0], o.shape.hidden, o.shape.experts, o.shape.topk, o.shape.dtype, o.pattern}};
  std::vector<Shape> shapes;
  for (const auto& c : list) shapes.push_back(shape_of_check(o, c));
  Rank rank(group, setup_of(o, shapes));
  std::string wrong;
  uint64_t rows = 0;
  int done = 0;
  for (size_t i = 0; i < list.size() && wrong.empty(); ++i, ++done) {
    wrong = stress_shape(rank, shapes[i], list[i].pattern, o.seed + i,
                         std::max(1, o.epochs / static_cast<int>(list.size())), rows);
    if (!wrong.empty()) wrong = describe(shapes[i], list[i].pattern) + ": " + wrong;
  }
  if (group.rank() == 0 && o.json) {
    write_proof(o, wrong, done);
  } else if (group.rank() == 0) {
    if (!wrong.empty()) std::printf("WRONG  %s\n", wrong.c_str());
    std::printf("# stress: %d epochs over %d shapes, %llu rows hashed on rank 0\n# verdict %s\n", o.epochs,
                done, static_cast<unsigned long long>(rows), wrong.empty() ? "PASS" : "FAIL");
  }
  return wrong.empty() ? 0 : 1;
}

int case_fault(Group& group, const Options& o) {
  Options mine = o;
  mine.timeout_s = std::min(o.timeout_s, 0.3);
  const Shape shape = shape_of(mine, std::min(64, o.token_list[0]));
  Rank rank(group, setup_of(mine, {shape}));
  if (group.size() < 2) throw Failure(3, "a fault needs two ranks: give --ranks 2");
  Verifier v(rank, shape, o.pattern, o.seed, true);
  const int absent = group.size() - 1;
  struct Fault {
    const char* name;
    const char* phase;  // the beginning of what must be reported: who waits first is a matter of chance
    CombineMode mode;   // kAuto: dispatch
  };
  std::string wrong;
  int done = 0;
  for (const Fault& fault :
       {Fault{"a rank never starts dispatch", "dispatch: ", CombineMode::kAuto},
        Fault{"a rank never starts a pulled combine", "combine: rows ready", CombineMode::kPull},
        Fault{"a rank never starts a streamed combine", "combine: rows landed", CombineMode::kStream},
        Fault{"a rank never starts a combine by words", "combine: rows landed", CombineMode::kWords}}) {
    if (fault.mode != CombineMode::kAuto) rank.dispatch();
    const auto start = std::chrono::steady_clock::now();
    std::string said = "no timeout";
    bool right = rank.rank() == absent;
    try {
      if (rank.rank() != absent) {
        if (fault.mode == CombineMode::kAuto)
          rank.dispatch();
        else
          rank.combine(fault.mode, false);
      }
      rank.finish();
    } catch (const Failure& f) {
      said = f.what();
      right = f.failed_rank == absent && f.failed_phase.rfind(fault.phase, 0) == 0;
    }
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (rank.rank() == 0 && !o.json) std::printf("%s: %s (%.2f s)\n", fault.name, said.c_str(), s);
    ++done;
    const std::string one = right && s < 5 ? ""
                                           : std::string(fault.name) + ": rank " +
                                                 std::to_string(rank.rank()) + " said '" + said + "'";
    wrong = first_text(group, wrong.empty() ? one : wrong);
    rank.reset();
    uint64_t rows = 0;
    if (wrong.empty()) wrong = check_once(rank, shape, o.pattern, o.seed, rows);  // and it works again
    // Freeing its buffers waits for the GPU, which may be another rank's too: let all have done so.
    group.barrier();
  }
  if (rank.rank() == 0 && o.json) {
    write_proof(o, wrong, done);
  } else if (rank.rank() == 0) {
    if (!wrong.empty()) std::printf("WRONG  %s\n", wrong.c_str());
    std::printf("# verdict %s\n", wrong.empty() ? "PASS" : "FAIL");
  }
  return wrong.empty() ? 0 : 1;
}

}  // namespace ep::engine::gpu
