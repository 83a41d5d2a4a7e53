// Statistics, JSON, and the verdict that follows from numbers.
#include "bench_report.h"

#include <gtest/gtest.h>

#include <limits>

#include "json.h"

namespace ep::engine {
namespace {

TEST(Stats, MedianP95AndExtremes) {
  const Summary odd = summarize({5, 1, 3});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 5);
  EXPECT_EQ(summarize({4, 1, 3, 2}).median, 2.5);
  std::vector<double> hundred;
  for (int i = 1; i <= 100; ++i) hundred.push_back(101 - i);
  EXPECT_EQ(summarize(hundred).p95, 95);
  EXPECT_EQ(summarize({7}).p95, 7);
  EXPECT_EQ(summarize({}).count, 0u);
  EXPECT_EQ(max_over_ranks({{1, 9, 3}, {4, 2, 3}}), (std::vector<double>{4, 9, 3}));
}

TEST(Json, EscapesNestsAndRefusesWhatJsonCannotSay) {
  Json json;
  json.begin_object()
      .value("a\"b", "line\nquote\" back\\ \x01")
      .value("n", 0.1)
      .value("i", uint64_t{1} << 60);
  json.value("inf", std::numeric_limits<double>::infinity()).value("yes", true).begin_array("l").value("", 1);
  json.value("", "x").end_array().begin_object("e").end_object().null("z").end_object();
  EXPECT_EQ(json.text(),
            "{\n  \"a\\\"b\": \"line\\u000aquote\\\" back\\\\ \\u0001\",\n  \"n\": 0.1,\n"
            "  \"i\": 1152921504606846976,\n  \"inf\": null,\n  \"yes\": true,\n  \"l\": [\n    1,\n    "
            "\"x\"\n  ],\n"
            "  \"e\": {},\n  \"z\": null\n}");
}

BenchReport good_report() {
  BenchReport report;
  report.tool = "epready-engine";
  report.case_name = "bench";
  report.engine = "cpu";
  report.shape.set_even_tokens(8);
  report.rows_checked = 100;
  PhaseResult phase;
  phase.name = "dispatch";
  phase.bytes_logical = 2e6;
  phase.bytes_wire = 1e6;
  phase.time_us = summarize({1000});
  phase.has_ceiling = true;
  phase.ceiling_us = summarize({900});
  phase.min_share = 0.85;
  report.phases.push_back(phase);
  return report;
}

TEST(BenchReport, NumbersFollowFromBytesAndTimes) {
  const PhaseResult phase = good_report().phases[0];
  EXPECT_DOUBLE_EQ(phase.gbps(), 2.0);
  EXPECT_DOUBLE_EQ(phase.wire_gbps(), 1.0);
  EXPECT_DOUBLE_EQ(phase.ceiling_share(), 0.9);
  EXPECT_DOUBLE_EQ(phase.gbps() / phase.ceiling_gbps(), phase.ceiling_share());
}

TEST(BenchReport, VerdictNeverPassesWithoutEvidence) {
  EXPECT_EQ(good_report().verdict(), "PASS");
  BenchReport report = good_report();
  report.phases[0].ceiling_us = summarize({800});
  EXPECT_EQ(report.verdict(), "WARN");
  report.mismatches = 1;
  EXPECT_EQ(report.verdict(), "FAIL");
  report = good_report();
  report.failure = "rank 1 died";
  EXPECT_EQ(report.verdict(), "FAIL");
  report = good_report();
  report.rows_checked = 0;
  EXPECT_EQ(report.verdict(), "UNKNOWN");
  report.shape.set_even_tokens(0);
  EXPECT_EQ(report.verdict(), "PASS");
}

TEST(BenchReport, BothFormsCarryTheFacts) {
  BenchReport report = good_report();
  report.requested_tokens = 16;
  report.scaled_down_why = "needs 2 MB, and memory available allows 1 MB";
  report.first_mismatch = "rank 1 slot 2";
  report.failure = "rank 3 in phase combine died";
  report.failed_rank = 3;
  report.failed_phase = "combine";
  report.peers.push_back({"mpi", "", "not run: no mpirun in PATH", {}, 0});
  const std::string text = to_text(report), json = to_json(report);
  for (const char* part : {"SCALED DOWN: 16 tokens", "needs 2 MB", "rank 1 slot 2",
                           "rank 3 in phase combine died", "no mpirun in PATH", "verdict FAIL"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  for (const char* part : {"\"schema\": \"epready.engine.bench/1\"", "\"ceiling_share\": 0.9", "\"gbps\": 2",
                           "\"requested_tokens\": 16", "\"first_mismatch\": \"rank 1 slot 2\"", "\"rank\": 3",
                           "\"ratio\": null", "\"verdict\": \"FAIL\""}) {
    EXPECT_NE(json.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace ep::engine
