#include "bench/bench.h"

using namespace ep;

namespace {
const char* kGood =
    R"({"schema":"epready.engine.bench/1","tool":"epready-engine","case":"bench","engine":"cpu","device":"2 cores","verdict":"PASS",
 "shape":{"num_tokens":2048,"hidden":7168,"num_experts":256,"num_topk":8,"pattern":"uniform","seed":1,"tokens_per_rank":[2048,2048]},
 "dtype":"bf16","ranks":2,"iters":20,"warmup":3,
 "phases":[{"name":"dispatch","mode":"full","bytes_logical":1e8,"bytes_wire":5e7,"time_us":{"median":20000,"p95":21000,"min":19000,"max":22000},
   "gbps":5.0,"wire_gbps":2.5,"ceiling_time_us":{"median":18000,"p95":1,"min":1,"max":1},"ceiling_gbps":5.5,"ceiling_share":0.9,"ceiling":"copies","min_share":0.85}],
 "checks":{"rows_checked":8192,"mismatches":0,"first_mismatch":null},"scaled_down":null,"memory_bytes":1000,"worst_case_bytes":990,
 "peers":[{"name":"mpi","phase":"dispatch","status":"ok","time_us":{"median":60000,"p95":1,"min":1,"max":1},"ratio":3.0}],
 "failure":null,"settings":{"copy":"avx512"}})";

std::string with(std::string from, std::string to) {
  std::string s = kGood;
  auto at = s.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return s.replace(at, from.size(), to);
}
}  // namespace

TEST(Bench, ReadsTheEngine) {
  auto r = parse_bench(kGood);
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r->ranks, 2);
  EXPECT_EQ(r->num_tokens, 2048);
  ASSERT_EQ(r->phases.size(), 1u);
  EXPECT_EQ(r->phases[0].time.median_us, 20000);
  ASSERT_TRUE(r->phases[0].ceiling_time.has_value());
  EXPECT_EQ(r->phases[0].ceiling_share, 0.9);
  EXPECT_EQ(r->peers[0].ratio, 3.0);
  EXPECT_EQ(r->outcome.verdict, Verdict::pass);
}

TEST(Bench, NothingCheckedIsUnknownWhateverTheEngineSays) {
  auto r = parse_bench(with("\"rows_checked\":8192", "\"rows_checked\":0"));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->outcome.verdict, Verdict::unknown);
}

TEST(Bench, WrongRowsFail) {
  auto r = parse_bench(with("\"mismatches\":0", "\"mismatches\":3"));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->outcome.verdict, Verdict::fail);
  EXPECT_NE(r->outcome.reason.find("3 of 8192"), std::string::npos);
}

TEST(Bench, SlowPhaseIsNamed) {
  auto r = parse_bench(with("\"verdict\":\"PASS\"", "\"verdict\":\"WARN\""));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->outcome.verdict, Verdict::warn);
  std::string slow = with("\"verdict\":\"PASS\"", "\"verdict\":\"WARN\"");
  slow.replace(slow.find("\"ceiling_share\":0.9"), 19, "\"ceiling_share\":0.5");
  r = parse_bench(slow);
  ASSERT_TRUE(r);
  EXPECT_NE(r->outcome.reason.find("dispatch reaches 50 %"), std::string::npos) << r->outcome.reason;
}

TEST(Bench, FailureNamesRankAndPhase) {
  auto r =
      parse_bench(with("\"failure\":null",
                       "\"failure\":{\"text\":\"rank 2 died in combine\",\"rank\":2,\"phase\":\"combine\"}"));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->outcome.verdict, Verdict::fail);
  EXPECT_EQ(r->failed_rank, 2);
  EXPECT_EQ(r->failed_phase, "combine");
}

TEST(Bench, AnEngineThatCannotRunHereSaysNothingAboutTheHost) {
  const auto e = parse_engine_failure(
      R"({"schema":"epready.engine.failure/1","tool":"epready-engine-gpu","case":"bench","verdict":"UNKNOWN",
          "exit_code":3,"failure":{"text":"no usable NVIDIA GPU or driver here","rank":null,"phase":null}})");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->kind, ErrorKind::unsupported);
  EXPECT_EQ(e->why, "no usable NVIDIA GPU or driver here");
  const auto died = parse_engine_failure(
      R"({"schema":"epready.engine.failure/1","tool":"t","case":"bench","exit_code":1,
          "failure":{"text":"timeout","rank":1,"phase":"dispatch"}})");
  ASSERT_TRUE(died);
  EXPECT_EQ(died->kind, ErrorKind::failed);
  EXPECT_EQ(died->why, "timeout (rank 1, phase dispatch)");
  EXPECT_FALSE(parse_engine_failure("{}"));
  EXPECT_FALSE(parse_engine_failure("noise"));
}

TEST(Bench, OtherSchemaAndNoiseAreErrors) {
  EXPECT_FALSE(parse_bench("Segmentation fault"));
  EXPECT_FALSE(parse_bench("{}"));
  auto r = parse_bench(with("bench/1", "bench/9"));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, ErrorKind::malformed);
}
