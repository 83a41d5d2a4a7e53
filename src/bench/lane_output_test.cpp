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

// V2's test prints no "passed": a case is right when the next one begins, the last one when the test ends
// well.
TEST(LaneOutput, CasesOfV2AreCountedAndToldApart) {
  const std::string text = R"(Config:
 > Ranks: 1 x 2
Running all test cases:
 > Testing with do_handle_copy=1, expert_alignment=128, use_fp8_dispatch=1, num_bias=0, with_previous_event=0, async_with_compute_stream=0, allocate_on_comm_stream=0 ...
   * EP:   0/2 | dispatch: 0 GB/s (SO), 300 GB/s (SU), 100.000 us, 30000000 bytes | copy: 900 GB/s, 20.500 us
   * EP:   1/2 | dispatch: 0 GB/s (SO), 250 GB/s (SU), 120.000 us, 30000000 bytes | copy: 900 GB/s, 21.500 us
 > Testing with do_handle_copy=1, expert_alignment=128, use_fp8_dispatch=0, num_bias=0, with_previous_event=0, async_with_compute_stream=0, allocate_on_comm_stream=0 ...
   * EP:   0/2 | dispatch: 0 GB/s (SO), 300 GB/s (SU), 200.000 us, 60000000 bytes | copy: 900 GB/s, 40.000 us
   @ EP:   0/2 | combine: 0 GB/s (SO), 300 GB/s (SU), 210.000 us, 60000000 bytes | reduce: 900 GB/s, 33.000 us
 > Testing with do_handle_copy=1, expert_alignment=1, use_fp8_dispatch=1, num_bias=0, with_previous_event=0, async_with_compute_stream=0, allocate_on_comm_stream=0 ...
   * EP:   0/2 | dispatch: 0 GB/s (SO), 300 GB/s (SU), 110.000 us, 30000000 bytes | copy: 900 GB/s, 20.000 us
   * EP:   1/2 | dispatch: 0 GB/s (SO), 300 GB/s (SU), 115.000 us, 30000000 bytes | copy: 900 GB/s, 20.000 us
 > Testing with do_handle_copy=1, expert_alignment=1, use_fp8_dispatch=1, num_bias=1, with_previous_event=0, async_with_compute_stream=0, allocate_on_comm_stream=0 ...
   * EP:   1/2 | dispatch: 0 GB/s (SO), 300 GB/s (SU), 900.000 us, 30000000 bytes | copy: 900 GB/s, 20.000 us
)";
  const auto o = parse_lane_output(text);
  EXPECT_EQ(o.num_passed, 4);
  EXPECT_EQ(o.config, "Ranks: 1 x 2");
  EXPECT_TRUE(o.unfinished.empty());
  const auto* fp8 = find(o, "dispatch", "full", "fp8");
  ASSERT_TRUE(fp8);
  EXPECT_DOUBLE_EQ(fp8->time_us, 120) << "slowest rank of the case in the middle of 120, 115 and 900";
  EXPECT_DOUBLE_EQ(fp8->epilogue_us, 21.5);
  EXPECT_DOUBLE_EQ(fp8->scale_up_gbps, 250);
  EXPECT_EQ(fp8->ranks, 2);
  EXPECT_EQ(fp8->cases, 3);
  EXPECT_DOUBLE_EQ(find(o, "dispatch", "full", "bf16")->time_us, 200);
  EXPECT_DOUBLE_EQ(find(o, "combine", "full", "bf16")->epilogue_us, 33);
  const auto killed = parse_lane_output(text, false);
  EXPECT_EQ(killed.num_passed, 3);
  EXPECT_NE(killed.unfinished.find("expert_alignment=1, use_fp8_dispatch=1, num_bias=1"), std::string::npos);
  const auto wrong = parse_lane_output(text + "AssertionError: Diff: 0.3\n");
  EXPECT_EQ(wrong.num_passed, 3);
  EXPECT_FALSE(wrong.unfinished.empty());
}

// Printed by DeepEP 1.2.1's test on an H200 with two ranks on it (engine/results/2026-11-30-1x-h200),
// shortened.
TEST(LaneOutput, IntranodeOfV1AsItWasSeen) {
  const auto o = parse_lane_output(R"([config] num_tokens=512, hidden=7168, num_topk=8
[layout] Kernel performance: 0.022 ms

[testing] Running with BF16, without top-k (async=False, previous=False) ... passed
[testing] Running with BF16, with top-k (async=False, previous=False) ... passed
[testing] Running with BF16, without top-k (async=False, previous=False) ... passed
[testing] Running with FP8, with top-k (async=True, previous=True) ... passed

[tuning] SMs 24, NVL chunk 4: 1.12 GB/s (NVL), avg_t: 6757.77 us
[tuning] SMs 24, NVL chunk default: 1.12 GB/s (NVL), avg_t: 6757.60 us
[tuning] Best dispatch (FP8): SMs 24, NVL chunk 32, 1.12 GB/s (NVL), t: 6757.48 us

[tuning] Best dispatch (BF16): SMs 24, NVL chunk 26, 2.18 GB/s (NVL), t: 6717.22 us

[tuning] SMs 24, NVL chunk default: 2.17 GB/s (NVL), avg_t: 6767.07 us
[tuning] Best combine: SMs 24, NVL chunk 11: 2.17 GB/s (NVL), t: 6766.74 us

)");
  EXPECT_EQ(o.num_passed, 4);
  EXPECT_EQ(o.config, "num_tokens=512, hidden=7168, num_topk=8");
  ASSERT_EQ(o.figures.size(), 3u);
  EXPECT_DOUBLE_EQ(find(o, "dispatch", "best", "fp8")->time_us, 6757.48);
  EXPECT_DOUBLE_EQ(find(o, "dispatch", "best", "fp8")->scale_up_gbps, 1.12);
  EXPECT_DOUBLE_EQ(find(o, "dispatch", "best", "bf16")->time_us, 6717.22);
  EXPECT_DOUBLE_EQ(find(o, "combine", "best", "bf16")->time_us, 6766.74);
  EXPECT_TRUE(o.error.empty());
  EXPECT_TRUE(o.unfinished.empty());
}

// The same of DeepEP 2.0.0's test, --test-first-only; the second rank's lines come first.
TEST(LaneOutput, ElasticOfV2AsItWasSeen) {
  const auto o = parse_lane_output(R"(Failed to get NVLink connection speed: 
Config:
 > Ranks: 1 x 2
 > Experts: 8/256
 > Tokens: 512 (max: 512), hidden: 7168
 > #SM: 64, #QPs: 129/129

Running all test cases:
 > Testing with do_handle_copy=1, expert_alignment=128, use_fp8_dispatch=1, num_bias=0, with_previous_event=0, async_with_compute_stream=0, allocate_on_comm_stream=0 ...
Failed to get NVLink connection speed: 
   * EP:   1/2 | dispatch: 0 GB/s (SO), 1 GB/s (SU), 5253.000 us, 7645248 bytes | copy: 2629 GB/s, 5.816 us
   * EP:   0/2 | dispatch: 0 GB/s (SO), 1 GB/s (SU), 5238.000 us, 7645248 bytes | copy: 2652 GB/s, 5.766 us
   - EP:   1/2 | expanded dispatch: 0 GB/s (SO), 1 GB/s (SU), 5248.000 us, 7645248 bytes | copy: 8365 GB/s, 15.493 us
   - EP:   0/2 | expanded dispatch: 0 GB/s (SO), 1 GB/s (SU), 5234.000 us, 7645248 bytes | copy: 8412 GB/s, 15.417 us
   # EP:   1/2 | cached dispatch: 0 GB/s (SO), 2 GB/s (SU), 3971.000 us, 7645248 bytes | copy: 6 GB/s, 2364.000 us
   # EP:   0/2 | cached dispatch: 0 GB/s (SO), 2 GB/s (SU), 3909.000 us, 7645248 bytes | copy: 7 GB/s, 2295.000 us
   @ EP:   1/2 | combine: 0 GB/s (SO), 4 GB/s (SU), 3884.000 us, 14669728 bytes | reduce: 1726 GB/s, 8.506 us
   @ EP:   0/2 | combine: 0 GB/s (SO), 4 GB/s (SU), 3945.000 us, 14669728 bytes | reduce: 1705 GB/s, 8.628 us
   + EP:   1/2 | reduced combine: 0 GB/s (SO), 4 GB/s (SU), 3904.000 us, 14669728 bytes | reduce: 1786 GB/s, 8.220 us
   + EP:   0/2 | reduced combine: 0 GB/s (SO), 4 GB/s (SU), 3964.000 us, 14669728 bytes | reduce: 1771 GB/s, 8.306 us


)");
  EXPECT_EQ(o.num_passed, 1);
  EXPECT_EQ(o.config,
            "Ranks: 1 x 2; Experts: 8/256; Tokens: 512 (max: 512), hidden: 7168; #SM: 64, #QPs: 129/129");
  ASSERT_EQ(o.figures.size(), 5u);
  const auto* full = find(o, "dispatch", "full", "fp8");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->ranks, 2);
  EXPECT_DOUBLE_EQ(full->time_us, 5253);
  EXPECT_DOUBLE_EQ(full->epilogue_us, 5.816);
  EXPECT_NEAR(full->scale_up_gbps, 1.455, 0.001) << "bytes over time: the test printed 1";
  EXPECT_DOUBLE_EQ(find(o, "dispatch", "expanded", "fp8")->time_us, 5248);
  EXPECT_DOUBLE_EQ(find(o, "dispatch", "cached", "fp8")->time_us, 3971);
  EXPECT_DOUBLE_EQ(find(o, "combine", "full", "bf16")->epilogue_us, 8.628);
  EXPECT_DOUBLE_EQ(find(o, "combine", "reduced", "bf16")->time_us, 3964);
}

TEST(LaneOutput, WhatNcclSaidLastIsTheError) {
  const auto o = parse_lane_output(R"(Traceback (most recent call last):
    eager_backend.eager_connect_single_device(device_id)
torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.30.7
ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
Last error:
Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration.

)",
                                   false);
  EXPECT_EQ(
      o.error,
      "Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this "
      "configuration.");
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
