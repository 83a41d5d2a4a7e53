#include "bench/lane_output.h"

#include <gtest/gtest.h>

using namespace ep;

namespace {

const LaneFigure* find(const LaneOutput& o, std::string_view op, std::string_view mode,
                       std::string_view dtype = {}) {
  for (const auto& f : o.figures)
    if (f.op == op && f.mode == mode && (dtype.empty() || f.dtype == dtype)) return &f;
  return nullptr;
}

}  // namespace

TEST(LaneOutput, InternodeOfV1) {
  const auto o = parse_lane_output(R"([config] num_tokens=2048, hidden=7168, num_topk_groups=2, num_topk=8
[layout] Kernel performance: 0.051 ms

[testing] Running with BF16, without top-k (async=False, previous=False) ... passed
[testing] Running with FP8, with top-k (async=True, previous=True) ... passed

[tuning] SMs 24, NVL chunk 4, RDMA chunk 8: 31.20 GB/s (RDMA), 101.80 GB/s (NVL)
[tuning] Best dispatch (FP8): SMs 24, NVL chunk 28, RDMA chunk 24: 66.10 GB/s (RDMA), 217.40 GB/s (NVL)
[tuning] Best dispatch (BF16): SMs 24, NVL chunk 20, RDMA chunk 32: 75.80 GB/s (RDMA), 249.00 GB/s (NVL)
[tuning] Best combine: SMs 24, NVL chunk 2, RDMA chunk 20: 81.00 GB/s (RDMA), 271.00 GB/s (NVL)
)");
  EXPECT_EQ(o.num_passed, 2);
  EXPECT_EQ(o.config, "num_tokens=2048, hidden=7168, num_topk_groups=2, num_topk=8");
  ASSERT_EQ(o.figures.size(), 3u);
  const auto* fp8 = find(o, "dispatch", "best", "fp8");
  ASSERT_TRUE(fp8);
  EXPECT_DOUBLE_EQ(fp8->scale_out_gbps, 66.10);
  EXPECT_DOUBLE_EQ(fp8->scale_up_gbps, 217.40);
  EXPECT_DOUBLE_EQ(find(o, "combine", "best")->scale_up_gbps, 271.0);
  EXPECT_TRUE(o.error.empty());
  EXPECT_TRUE(o.unfinished.empty());
}

TEST(LaneOutput, NewerV1SaysTimesOnTheSameLine) {
  const auto o = parse_lane_output(
      "node7: [tuning] Best dispatch (FP8): SMs 24, NVL chunk 28, RDMA chunk 24, transmit: 903.10 us, "
      "notify: "
      "44.00 us, BW: 38.19 GB/s (RDMA), 124.92 GB/s (NVL)\n"
      "[tuning] Best combine: SMs 24, NVL chunk 4: 161.30 GB/s (NVL), avg_t: 412.00 us\n");
  ASSERT_EQ(o.figures.size(), 2u);
  EXPECT_DOUBLE_EQ(o.figures[0].time_us, 903.10);
  EXPECT_DOUBLE_EQ(o.figures[0].scale_out_gbps, 38.19);
  EXPECT_DOUBLE_EQ(o.figures[1].scale_out_gbps, 0);
  EXPECT_DOUBLE_EQ(o.figures[1].scale_up_gbps, 161.30);
}

TEST(LaneOutput, SlowestRankOfLowLatencyAndElastic) {
  const auto o = parse_lane_output(R"(Config:
 > Ranks: 1 x 2
 > Experts: 8/256
   * EP:   0/2  | dispatch: 0 GB/s (SO), 330 GB/s (SU), 200.000 us, 60000000 bytes | copy: 4791 GB/s, 187.879 us
   * EP:   1/2  | dispatch: 0 GB/s (SO), 300 GB/s (SU), 250.000 us, 60000000 bytes | copy: 4791 GB/s, 187.879 us
   @ EP:   0/2  | combine: 0 GB/s (SO), 341 GB/s (SU), 210.000 us, 60000000 bytes
[rank 0] Dispatch + combine bandwidth: 99.09 GB/s, avg_t=222.52 us, min_t=217.31 us, max_t=228.74 us
[rank 0] Dispatch bandwidth: 63.00 GB/s, avg_t=118.00 us | Combine bandwidth: 74.00 GB/s, avg_t=195.00 us
[rank 1] Dispatch bandwidth: 60.00 GB/s, avg_t=121.00 us | Combine bandwidth: 75.00 GB/s, avg_t=194.00 us
)");
  const auto* full = find(o, "dispatch", "full");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->ranks, 2);
  EXPECT_DOUBLE_EQ(full->time_us, 250);
  EXPECT_DOUBLE_EQ(full->scale_up_gbps, 240);  // bytes over time, not the rounded figure
  EXPECT_DOUBLE_EQ(full->scale_out_gbps, 0);
  EXPECT_DOUBLE_EQ(find(o, "combine", "full")->time_us, 210);
  EXPECT_DOUBLE_EQ(find(o, "dispatch", "low-latency")->time_us, 121);
  EXPECT_DOUBLE_EQ(find(o, "combine", "low-latency")->time_us, 195);
  EXPECT_DOUBLE_EQ(find(o, "dispatch+combine", "low-latency")->time_us, 222.52);
  EXPECT_EQ(o.config, "Ranks: 1 x 2; Experts: 8/256");
}

TEST(LaneOutput, ErrorsAndWhatDidNotFinish) {
  const auto o =
      parse_lane_output(R"([testing] Running with BF16, with top-k (async=False, previous=False) ...
Traceback (most recent call last):
  File "buffer.py", line 1
RuntimeError: DeepEP error: timeout (dispatch CPU)
AssertionError: later
)");
  EXPECT_EQ(o.num_passed, 0);
  EXPECT_EQ(o.unfinished, "Running with BF16, with top-k (async=False, previous=False) ...");
  EXPECT_EQ(o.error, "RuntimeError: DeepEP error: timeout (dispatch CPU)");
}

TEST(LaneOutput, NoiseGivesNothing) {
  const auto o = parse_lane_output(
      "\n|EP:| us bytes\nEP: | dispatch\n[tuning] Best \n[tuning] Best dispatch (\n"
      "x bandwidth: y | bandwidth: \n[testing] \n* EP: | . us\n");
  EXPECT_TRUE(o.figures.empty());
  EXPECT_EQ(o.num_passed, 0);
}
