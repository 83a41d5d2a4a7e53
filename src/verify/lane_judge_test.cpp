#include "verify/lane_judge.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

using namespace ep;

namespace {

Topology eight_nics() {
  Topology t;
  for (int i = 0; i < 8; ++i) {
    TopologyNic n;
    n.name = "mlx5_" + std::to_string(i);
    n.rate_gbps = 400;
    n.usable = true;
    t.nics.push_back(n);
    t.mapping.pairs[i] = n.name;
  }
  return t;
}

std::vector<NicTraffic> even_traffic(uint64_t bytes, int busy = 8) {
  std::vector<NicTraffic> out;
  for (int i = 0; i < 8; ++i) {
    NicTraffic t;
    t.name = "mlx5_" + std::to_string(i);
    t.source = ByteSource::port;
    t.tx_bytes = t.rx_bytes = i < busy ? bytes : 0;
    out.push_back(t);
  }
  return out;
}

LaneTestRun internode(double rdma) {
  LaneTestRun r;
  r.ok = true;
  r.log = "/p/verify/v1-level3-node0.log";
  r.script = "/p/src/deepep/tests/test_internode.py";
  r.output.num_passed = 12;
  LaneFigure f;
  f.op = "dispatch";
  f.mode = "best";
  f.dtype = "bf16";
  f.scale_out_gbps = rdma;
  f.scale_up_gbps = rdma * 3.3;
  f.ranks = 1;
  r.output.figures = {f};
  return r;
}

LaneContext two_b200(const Topology& t) {
  LaneContext c;
  c.level = 3;
  c.nodes = 2;
  c.ranks = 16;
  c.gpu = "NVIDIA B200";
  c.sm = 100;
  c.topology = &t;
  c.traffic = even_traffic(50u << 20);
  Baseline b;
  b.id = "v1-gcp-b200-ep16-rdma";
  b.lane = "v1";
  b.op = "dispatch";
  b.scope = "rdma";
  b.gpu = "B200";
  b.nodes = 2;
  b.ranks = 16;
  b.tokens = 2048;
  b.gbps = 66;
  b.bandwidth = "logical";
  c.baselines = {b};
  return c;
}

const VerifyItem* find(const std::vector<VerifyItem>& items, const std::string& id) {
  for (const auto& i : items)
    if (i.id == id) return &i;
  return nullptr;
}

}  // namespace

TEST(LaneJudge, GoodRunBetweenTwoNodes) {
  const Topology t = eight_nics();
  const auto items = judge_lane(internode(66), two_b200(t), Lang::en);
  ASSERT_EQ(items.size(), 3u);
  for (const auto& i : items) EXPECT_EQ(i.outcome.verdict, Verdict::pass) << i.id << ": " << i.outcome.reason;
  const auto* speed = find(items, "speed.dispatch.best.bf16");
  ASSERT_TRUE(speed);
  EXPECT_NE(speed->outcome.reason.find("33.0 GB/s net, 66 % of the NIC's 50.0 GB/s"), std::string::npos)
      << speed->outcome.reason;
  EXPECT_NE(speed->outcome.reason.find("100 % of the published 66 GB/s"), std::string::npos);
}

TEST(LaneJudge, TheRunbooksOneNicForAllGpusIsFoundByPathAndSpeed) {
  const Topology t = eight_nics();
  LaneContext c = two_b200(t);
  c.traffic = even_traffic(400u << 20, 1);
  const auto items = judge_lane(internode(6.5), c, Lang::en);
  EXPECT_EQ(find(items, "lane.v1.right")->outcome.verdict, Verdict::pass);
  EXPECT_EQ(find(items, "lane.nics")->outcome.verdict, Verdict::fail);
  EXPECT_EQ(find(items, "speed.dispatch.best.bf16")->outcome.verdict, Verdict::warn);
  EXPECT_NE(find(items, "speed.dispatch.best.bf16")->next.find("epready doctor"), std::string::npos);
}

TEST(LaneJudge, TheRunIsARecordThatHistoryReadsBack) {
  const Topology t = eight_nics();
  const BenchResult r = lane_result(internode(66), two_b200(t));
  const auto back = parse_bench(r.raw_json);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->lane, "v1");
  EXPECT_EQ(back->outcome.verdict, Verdict::pass);
  ASSERT_EQ(back->phases.size(), 1u);
  EXPECT_EQ(back->phases[0].mode, "best-bf16");
  EXPECT_DOUBLE_EQ(back->phases[0].gbps, 66);
  LaneTestRun bad = internode(66);
  bad.ok = false;
  bad.how = "exit 1";
  EXPECT_EQ(lane_result(bad, two_b200(t)).outcome.verdict, Verdict::fail);
  EXPECT_EQ(lane_result(LaneTestRun{"s", "l", true, "", 0, {}}, two_b200(t)).outcome.verdict,
            Verdict::unknown);
}

TEST(LaneJudge, FailureNamesTheErrorAndNoSpeedIsJudged) {
  const Topology t = eight_nics();
  LaneTestRun r = internode(66);
  r.ok = false;
  r.how = "exit 1";
  r.output.error = "RuntimeError: DeepEP error: timeout (dispatch CPU)";
  r.output.unfinished = "Running with BF16 ...";
  const auto items = judge_lane(r, two_b200(t), Lang::en);
  EXPECT_EQ(items[0].outcome.verdict, Verdict::fail);
  EXPECT_NE(items[0].outcome.reason.find("timeout (dispatch CPU)"), std::string::npos);
  EXPECT_EQ(items[0].next, "epready doctor /p/verify/v1-level3-node0.log");
  EXPECT_FALSE(find(items, "speed.dispatch.best.bf16"));
}

TEST(LaneJudge, RanksThatShareAGpuAreNotJudgedBySpeed) {
  const Topology t = eight_nics();
  LaneContext c = two_b200(t);
  c.level = 2;
  c.nodes = 1;
  c.ranks = 2;
  c.gpus_shared = true;
  LaneTestRun r = internode(66);
  r.output.figures[0].time_us = 5000;
  r.output.figures[0].epilogue_us = 30;
  const auto items = judge_lane(r, c, Lang::en);
  const auto* speed = find(items, "speed.dispatch.best.bf16");
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->outcome.verdict, Verdict::skip);
  EXPECT_NE(speed->outcome.reason.find("5000.0 us and 30.0 us for the copy behind it"), std::string::npos)
      << speed->outcome.reason;
  EXPECT_NE(speed->outcome.reason.find("share a GPU"), std::string::npos) << speed->outcome.reason;
}

TEST(LaneJudge, NothingRecognisedIsUnknown) {
  LaneTestRun r;
  r.ok = true;
  LaneContext c;
  const auto items = judge_lane(r, c, Lang::en);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].outcome.verdict, Verdict::unknown);
}

TEST(LaneJudge, UnreadCountersAreUnknown) {
  const Topology t = eight_nics();
  LaneContext c = two_b200(t);
  c.traffic.clear();
  EXPECT_EQ(find(judge_lane(internode(66), c, Lang::en), "lane.nics")->outcome.verdict, Verdict::unknown);
}

TEST(LaneJudge, BaselineNeedsTheSameKindOfMachine) {
  const Topology t = eight_nics();
  LaneContext c = two_b200(t);
  const LaneFigure f = internode(50).output.figures[0];
  EXPECT_TRUE(baseline_for(c, f, true));
  EXPECT_FALSE(baseline_for(c, f, false));
  c.ranks = 4;
  EXPECT_FALSE(baseline_for(c, f, true));
  c = two_b200(t);
  c.gpu = "NVIDIA H100 80GB HBM3";
  EXPECT_FALSE(baseline_for(c, f, true));
  c.baselines[0].gpu = "SM90";
  c.sm = 90;
  EXPECT_TRUE(baseline_for(c, f, true));
  c.sm = 0;
  EXPECT_FALSE(baseline_for(c, f, true));
}

TEST(LaneJudge, LineRateIsSharedAndUnknownWhenOneIsUnknown) {
  Topology t = eight_nics();
  EXPECT_DOUBLE_EQ(line_rate_per_gpu(t), 50);
  t.mapping.pairs[7] = "mlx5_0";
  EXPECT_DOUBLE_EQ(line_rate_per_gpu(t), 25);
  t.nics[3].rate_gbps = 0;
  EXPECT_DOUBLE_EQ(line_rate_per_gpu(t), 0);
}

TEST(LaneTest, V1InsideANodeNeedsTwoFourOrEightRanks) {
  LaneTestRequest q;
  q.lane = "v1";
  for (const int good : {2, 4, 8}) {
    q.gpus = good;
    EXPECT_TRUE(check_lane_ranks(q)) << good;
  }
  for (const auto& [bad, next] : {std::pair{1, "epready verify -r 2"},
                                  {3, "epready verify -r 2 --lane v1 --ranks 2"},
                                  {6, "epready verify -r 2 --lane v1 --ranks 4"},
                                  {16, "epready verify -r 2 --lane v1 --ranks 8"}}) {
    q.gpus = bad;
    const auto can = check_lane_ranks(q);
    ASSERT_FALSE(can) << bad;
    EXPECT_EQ(can.error().kind, ErrorKind::unsupported);
    EXPECT_EQ(can.error().next, next);
  }
  q.lane = "v2";
  EXPECT_TRUE(check_lane_ranks(q));
  q.extra = {"--test-first-only"};
  EXPECT_EQ(lane_test_argv(q, "t.py").back(), "--test-first-only");
}

// A stand-in for Python and for DeepEP's test: says what it was given, then what the real one prints.
TEST(LaneTest, RunsWithTheEnvironmentFileAndKeepsTheLog) {
  char folder[] = "/tmp/epready-lane-XXXXXX";
  ASSERT_TRUE(mkdtemp(folder));
  const std::string prefix = folder;
  for (const char* d : {"/venv", "/venv/bin", "/env", "/DeepEP", "/DeepEP/tests"})
    mkdir((prefix + d).c_str(), 0755);
  LaneTestRequest q;
  q.prefix = prefix;
  q.level = 3;
  q.gpus = 8;
  q.nodes = {2, 1, "first", 1234, ""};
  q.shape.limit_s = 60;
  std::ofstream(prefix + "/DeepEP/tests/test_internode.py") << "\n";
  auto missing = run_lane_test(q, {}, nullptr);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::absent);
  std::ofstream(prefix + "/env/env.sh") << "export NVSHMEM_IB_ENABLE_IBGDA=1\n";
  std::ofstream(prefix + "/venv/bin/python")
      << "#!/bin/sh\n"
         "echo \"ibgda=$NVSHMEM_IB_ENABLE_IBGDA world=$WORLD_SIZE rank=$RANK "
         "master=$MASTER_ADDR:$MASTER_PORT args=$*\"\n"
         "echo '[testing] Running with BF16, with top-k (async=False, previous=False) ... passed'\n"
         "echo '[tuning] Best combine: SMs 24, NVL chunk 2, RDMA chunk 20: 44.37 GB/s (RDMA), 145.16 GB/s "
         "(NVL)' >&2\n"
         "exit ${STANDIN_CODE:-0}\n";
  chmod((prefix + "/venv/bin/python").c_str(), 0755);
  int lines_seen = 0;
  auto ran = run_lane_test(
      q, [&](std::string_view) { ++lines_seen; }, nullptr);
  ASSERT_TRUE(ran) << ran.error().text();
  EXPECT_TRUE(ran->ok);
  EXPECT_EQ(lines_seen, 3);
  EXPECT_EQ(ran->output.num_passed, 1);
  ASSERT_EQ(ran->output.figures.size(), 1u);
  EXPECT_DOUBLE_EQ(ran->output.figures[0].scale_out_gbps, 44.37);
  std::ifstream log(ran->log);
  std::string all((std::istreambuf_iterator<char>(log)), {});
  EXPECT_NE(all.find("ibgda=1 world=2 rank=1 master=first:1234"), std::string::npos) << all;
  EXPECT_NE(all.find("--num-processes 8 --num-tokens 2048 --hidden 7168"), std::string::npos) << all;
  std::ofstream(prefix + "/env/env.sh", std::ios::app) << "export STANDIN_CODE=3\n";
  ran = run_lane_test(q, {}, nullptr);
  ASSERT_TRUE(ran);
  EXPECT_FALSE(ran->ok);
  EXPECT_EQ(ran->how, "exit 3");
  ASSERT_EQ(0, system(("rm -rf " + prefix).c_str()));
}

TEST(LaneTest, PlacesOfTheTestAreLookedForAndNamed) {
  char folder[] = "/tmp/epready-lane-XXXXXX";
  ASSERT_TRUE(mkdtemp(folder));
  const std::string prefix = folder;
  LaneTestRequest q;
  q.prefix = prefix;
  auto none = find_lane_test(q);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::absent);
  EXPECT_NE(none.error().next.find("--tests"), std::string::npos);
  for (const char* d :
       {"/src", "/src/deepep-29d31c0", "/src/deepep-29d31c0/tests", "/src/deepep-29d31c0/tests/legacy"})
    mkdir((prefix + d).c_str(), 0755);
  const std::string script = prefix + "/src/deepep-29d31c0/tests/legacy/test_intranode.py";
  std::ofstream(script) << "print()\n";
  auto found = find_lane_test(q);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, script);
  q.tests = prefix + "/src/deepep-29d31c0/tests/legacy";
  ASSERT_TRUE(find_lane_test(q));
  const auto argv = lane_test_argv(q, *found);
  EXPECT_EQ(argv[0], prefix + "/venv/bin/python");
  EXPECT_EQ(std::vector<std::string>(argv.end() - 2, argv.end()),
            (std::vector<std::string>{"--num-topk", "8"}));
  ASSERT_EQ(0, system(("rm -rf " + prefix).c_str()));
}
