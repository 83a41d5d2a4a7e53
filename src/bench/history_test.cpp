#include "bench/history.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace ep;

namespace {

BenchResult run_of(double median, double min, double p95) {
  std::string json =
      R"({"schema":"epready.engine.bench/1","case":"bench","engine":"cpu","device":"d","verdict":"PASS","dtype":"bf16","ranks":2,
    "phases":[{"name":"dispatch","mode":"full","time_us":{"median":)" +
      std::to_string(median) + R"(,"p95":)" + std::to_string(p95) + R"(,"min":)" + std::to_string(min) +
      R"(,"max":1e9}}],"checks":{"rows_checked":5,"mismatches":0}})";
  return parse_bench(json).value();
}

struct Scratch {
  std::string dir;
  Scratch() {
    char name[] = "/tmp/ep-history-XXXXXX";
    dir = mkdtemp(name);
  }
  ~Scratch() { std::filesystem::remove_all(dir); }
};

}  // namespace

TEST(History, AppendsReadsAndSurvivesATornLine) {
  Scratch s;
  std::string path = s.dir + "/a/b/history.jsonl";
  EXPECT_TRUE(read_history(path)->entries.empty());
  ASSERT_TRUE(append_history(path, {0, "2026-11-30T00:00:00Z", "h", "0.1.0", run_of(100, 90, 110)}));
  {
    std::ofstream torn(path, std::ios::app);
    torn << "{\"schema\":\"epready-hist";
  }
  ASSERT_TRUE(append_history(path, {0, "2026-11-30T00:00:01Z", "h", "0.1.0", run_of(200, 190, 210)}));
  auto h = read_history(path);
  ASSERT_TRUE(h);
  ASSERT_EQ(h->entries.size(), 2u);
  EXPECT_EQ(h->num_unreadable, 1);
  EXPECT_EQ(find_entry(path, "last")->result.phases[0].time.median_us, 200);
  EXPECT_EQ(find_entry(path, "1")->result.phases[0].time.median_us, 100);
  EXPECT_FALSE(find_entry(path, "2"));  // the torn one
  EXPECT_EQ(find_entry(path, "nowhere").error().kind, ErrorKind::absent);
}

TEST(History, CompareKnowsNoiseFromChange) {
  auto same = compare(run_of(100, 90, 120), run_of(110, 95, 130));
  EXPECT_EQ(same.phases[0].kind, PhaseChange::Kind::same);
  auto slower = compare(run_of(100, 90, 120), run_of(200, 190, 210));
  EXPECT_EQ(slower.phases[0].kind, PhaseChange::Kind::slower);
  EXPECT_EQ(slower.phases[0].ratio, 2);
  EXPECT_EQ(compare(run_of(200, 190, 210), run_of(100, 90, 120)).phases[0].kind, PhaseChange::Kind::faster);
  EXPECT_TRUE(slower.differences.empty());
}
