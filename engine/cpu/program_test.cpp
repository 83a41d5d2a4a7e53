// The program as a whole: exit codes, JSON, faults from outside, and what it leaves behind.
#include "cpu/program_test.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ep::engine::cpu {
namespace {

Result run(std::vector<std::string> arguments) {
  return Program(std::move(arguments)).end();
}

std::vector<std::string> small(std::vector<std::string> more) {
  std::vector<std::string> out = {"bench", "--num-tokens", "32", "--hidden", "512", "--num-experts",
                                  "32",    "--iters",      "3",  "--warmup", "1",   "--peers",
                                  "none"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(Program, BenchJsonHoldsTheContract) {
  const Result result = run(small({"--json", "--dtype", "fp8"}));
  EXPECT_EQ(result.exit, 0) << result.error;
  ASSERT_TRUE(JsonReader::valid(result.out)) << result.out;
  EXPECT_EQ(field(result.out, "schema"), "\"epready.engine.bench/1\"");
  EXPECT_EQ(field(result.out, "verdict"), "\"PASS\"");
  EXPECT_EQ(field(result.out, "mismatches"), "0");
  EXPECT_EQ(field(result.out, "scaled_down"), "null");
  EXPECT_EQ(field(result.out, "failure"), "null");
  EXPECT_GT(std::stoll(field(result.out, "rows_checked")), 4 * 32 * 4);
  EXPECT_GT(std::stod(field(result.out, "gbps")), 0);
  EXPECT_GT(std::stod(field(result.out, "ceiling_share")), 0);
  for (const char* name : {"\"dispatch\"", "\"combine\"", "\"roundtrip\""}) {
    EXPECT_NE(result.out.find(name), std::string::npos);
  }
}

TEST(Program, EveryCaseIsListedAndRuns) {
  const Result list = run({"--list"});
  EXPECT_EQ(list.exit, 0);
  EXPECT_TRUE(JsonReader::valid(run({"--list", "--json"}).out));
  for (const char* name : {"bench", "dispatch", "combine", "roundtrip", "check", "ceiling"}) {
    EXPECT_NE(list.out.find(std::string("  ") + name), std::string::npos);
    if (std::strcmp(name, "check") == 0) continue;
    std::vector<std::string> arguments = small({});
    arguments[0] = name;
    const Result result = run(arguments);
    EXPECT_EQ(result.exit, 0) << name << result.error;
    EXPECT_NE(result.out.find("# verdict PASS"), std::string::npos) << result.out;
  }
}

TEST(Program, CheckPassesAndSeesCorruption) {
  const Result good = run({"check", "--json"});
  EXPECT_EQ(good.exit, 0) << good.out;
  EXPECT_TRUE(JsonReader::valid(good.out));
  for (const char* fault : {"corrupt:1:dispatch", "corrupt:1:combine"}) {
    const Result check = run({"check", "--fault", fault});
    EXPECT_EQ(check.exit, 1) << fault;
    EXPECT_NE(check.out.find("# verdict FAIL"), std::string::npos);
    const Result bench = run(small({"--fault", fault, "--json"}));
    EXPECT_EQ(bench.exit, 1) << fault;
    EXPECT_EQ(field(bench.out, "verdict"), "\"FAIL\"");
    EXPECT_NE(field(bench.out, "mismatches"), "0");
    EXPECT_NE(field(bench.out, "first_mismatch"), "null");
  }
}

TEST(Program, EveryPatternDtypeAndBackingRuns) {
  for (const char* pattern : {"uniform", "hot", "masked", "one-rank", "uneven", "zero", "all-zero"}) {
    for (const char* dtype : {"bf16", "fp8"}) {
      const Result result = run(
          small({"--pattern", pattern, "--dtype", dtype, "--shm", "posix", "--weighted", "--threads", "2"}));
      EXPECT_EQ(result.exit, 0) << pattern << " " << dtype << result.out << result.error;
      EXPECT_NE(result.out.find("# verdict PASS"), std::string::npos) << result.out;
    }
  }
  EXPECT_EQ(shared_memory_names(), std::vector<std::string>{});
}

TEST(Program, UsageErrorsNameTheNearest) {
  const auto expect = [](std::vector<std::string> arguments, const char* text) {
    const Result result = run(std::move(arguments));
    EXPECT_EQ(result.exit, 2) << text;
    EXPECT_NE(result.error.find(text), std::string::npos) << result.error;
    EXPECT_EQ(result.out, "");
  };
  expect({"bench", "--num-tokns", "4"}, "did you mean --num-tokens?");
  expect({"bnch"}, "did you mean bench?");
  expect({}, "which case?");
  expect({"bench", "check"}, "one case at a time");
  expect({"bench", "--ranks", "four"}, "expected a whole number from 1 to 64");
  expect({"bench", "--ranks", "99999999999999"}, "expected a whole number");
  expect({"bench", "--dtype", "int4"}, "expected bf16 or fp8");
  expect({"bench", "--hidden"}, "--hidden needs a value");
  expect({"bench", "--json=yes"}, "--json takes no value");
  expect({"bench", "--hidden=100"}, "not a multiple of 8");
  expect({"bench", "--num-topk", "16", "--num-experts", "4"}, "more than --num-experts 4");
  expect({"bench", "--fault", "die:7:setup"}, "there are 4");
  expect({"bench", "--fault", "die:1:lunch"}, "one of these phases");
}

TEST(Program, ScalesDownAndSaysSoOrSaysWhyNot) {
  const Result result = run({"bench", "--num-tokens", "4096", "--hidden", "1024", "--iters", "1", "--warmup",
                             "0", "--peers", "none", "--memory-limit-mb", "100", "--json"});
  EXPECT_EQ(result.exit, 0) << result.error;
  EXPECT_EQ(field(result.out, "requested_tokens"), "4096");
  EXPECT_NE(result.out.find("--memory-limit-mb allows 100 MB"), std::string::npos) << result.out;
  EXPECT_LT(std::stoi(field(result.out, "num_tokens")), 4096);
  EXPECT_LE(std::stoll(field(result.out, "worst_case_bytes")), 100'000'000);
  const Result none = run({"bench", "--memory-limit-mb", "1"});
  EXPECT_EQ(none.exit, 3);
  EXPECT_NE(none.error.find("not even one token"), std::string::npos);
  EXPECT_NE(none.error.find("next:"), std::string::npos);
}

TEST(Program, MemoryStaysWithinATenthOfTheWorstCase) {
  const Result result = run({"bench", "--num-tokens", "512", "--hidden", "7168", "--iters", "2", "--warmup",
                             "0", "--peers", "none", "--min-share", "0", "--json"});
  ASSERT_EQ(result.exit, 0) << result.error;
  const double used = std::stod(field(result.out, "memory_bytes"));
  const double worst = std::stod(field(result.out, "worst_case_bytes"));
#if defined(__SANITIZE_ADDRESS__)
  std::printf("skipped: sanitizers take memory of their own (%.0f of %.0f)\n", used, worst);
#else
  EXPECT_GT(used, worst * 0.5);
  EXPECT_LT(used, worst * 1.1);
#endif
}

TEST(Program, FaultsEndTheRunInTimeAndLeaveNothing) {
  for (const char* kind : {"die", "hang"}) {
    for (const char* phase :
         {"setup", "ceiling", "layout", "dispatch", "expert", "combine", "verify", "done"}) {
      const int64_t begin = now_ns();
      const Result result = run(small(
          {"--fault", std::string(kind) + ":2:" + phase, "--timeout-s", "0.4", "--shm", "posix", "--json"}));
      EXPECT_EQ(result.exit, 1) << kind << " " << phase;
      EXPECT_LT(now_ns() - begin, 30'000'000'000);
      EXPECT_TRUE(JsonReader::valid(result.out));
      EXPECT_EQ(field(result.out, "verdict"), "\"FAIL\"");
      EXPECT_EQ(field(result.out, "rank"), "2") << result.out;
      EXPECT_EQ(field(result.out, "phase"), std::string("\"") + phase + "\"");
      EXPECT_NE(result.error.find("2"), std::string::npos);
    }
  }
  EXPECT_EQ(shared_memory_names(), std::vector<std::string>{});
}

/// Starts a run that cannot end by itself and waits until its ranks are there.
Program start_endless(std::vector<pid_t>& ranks) {
  Program program(small({"--fault", "hang:1:combine", "--timeout-s", "600", "--shm", "posix"}));
  for (const int64_t limit = now_ns() + 20'000'000'000; ranks.size() < 4 && now_ns() < limit;) {
    ranks = children_of(program.pid());
    poll(nullptr, 0, 5);
  }
  EXPECT_EQ(ranks.size(), 4u);
  return program;
}

TEST(Program, InterruptIsExitFiveAndNoRankStays) {
  for (const int number : {SIGINT, SIGTERM}) {
    std::vector<pid_t> ranks;
    Program program = start_endless(ranks);
    kill(program.pid(), number);
    const Result result = program.end();
    EXPECT_EQ(result.exit, 5) << result.error;
    EXPECT_NE(result.error.find("interrupted"), std::string::npos);
    for (const pid_t rank : ranks) EXPECT_TRUE(gone(rank));
  }
  EXPECT_EQ(shared_memory_names(), std::vector<std::string>{});
}

#if defined(EP_ENGINE_HAS_MPI)

std::vector<std::string> small_with_peer() {
  auto arguments = small({"--json"});
  *std::find(arguments.begin(), arguments.end(), "none") = "mpi";
  return arguments;
}

TEST(Program, APeerThatFailsCostsItsNumbersAndSaysWhy) {
  const auto status = [](const char* script) {
    const FakeMpirun fake(script);
    const Result result = run(small_with_peer());
    EXPECT_EQ(result.exit, 0);
    EXPECT_TRUE(JsonReader::valid(result.out));
    return field(result.out, "status");
  };
  EXPECT_EQ(status("echo all is lost\nexit 3\n"), "\"failed: mpirun ended with status 3: all is lost\"");
  EXPECT_EQ(status("echo dispatch 1 2 3\n"), "\"failed: no result in its output\"");
  EXPECT_EQ(status("echo checked 9\necho wrong 1\n"), "\"failed: its data was wrong\"");
}

TEST(Program, InterruptEndsTheComparisonToo) {
  const FakeMpirun fake("exec sleep 600\n");
  Program program(small_with_peer());
  std::vector<pid_t> peer;
  for (const int64_t limit = now_ns() + 60'000'000'000; peer.empty() && now_ns() < limit;
       poll(nullptr, 0, 5)) {
    for (const pid_t child : children_of(program.pid())) {
      std::ifstream file("/proc/" + std::to_string(child) + "/comm");
      std::string name;
      if (std::getline(file, name) && name == "sleep") peer.push_back(child);
    }
  }
  ASSERT_EQ(peer.size(), 1u);
  kill(program.pid(), SIGINT);
  const Result result = program.end();
  EXPECT_EQ(result.exit, 5) << result.error;
  EXPECT_TRUE(JsonReader::valid(result.out));
  EXPECT_NE(result.out.find("\"interrupted\""), std::string::npos);
  EXPECT_TRUE(gone(peer[0]));
}

#endif

TEST(Program, RanksDoNotOutliveAKilledParent) {
  std::vector<pid_t> ranks;
  Program program = start_endless(ranks);
  kill(program.pid(), SIGKILL);
  for (const pid_t rank : ranks) EXPECT_TRUE(gone(rank));
  EXPECT_EQ(program.end().exit, 128 + SIGKILL);
  EXPECT_EQ(shared_memory_names(), std::vector<std::string>{});
}

TEST(Program, MpiPeerMovesTheSameData) {
#if defined(EP_ENGINE_HAS_MPI)
  auto arguments = small_with_peer();
  for (const char* more : {"--dtype", "fp8", "--pattern", "masked", "--weighted", "--ranks", "2"}) {
    arguments.push_back(more);
  }
  const Result result = run(arguments);
  EXPECT_EQ(result.exit, 0) << result.error;
  if (result.out.find("no mpirun in PATH") != std::string::npos) GTEST_SKIP() << "no mpirun in PATH";
  ASSERT_EQ(field(result.out, "status"), "\"ok\"") << result.out;
  EXPECT_GT(std::stod(field(result.out, "ratio")), 0) << result.out;
#else
  GTEST_SKIP() << "built without MPI";
#endif
}

}  // namespace
}  // namespace ep::engine::cpu
