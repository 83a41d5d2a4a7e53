#include "doctor/rank.h"

#include <cmath>

namespace ep {
namespace {

TEST(LineTag, FormsOfTheField) {
  EXPECT_EQ(line_tag("[rank3]: Traceback").rank, 3);
  EXPECT_EQ(line_tag("[rank 12] Dispatch + combine").rank, 12);
  EXPECT_EQ(line_tag("[default7]:RuntimeError").rank, 7);
  EXPECT_EQ(line_tag("Global rank: 3, num_recv_tokens: -1").rank, 3);
  EXPECT_EQ(line_tag("(EngineCore_DP0 pid=4123) ERROR x").who, "EngineCore_DP0");
  EXPECT_EQ(line_tag("[2025-09-06 12:34:56 DP1 TP1 EP1] x").who, "DP1 TP1 EP1");
  EXPECT_EQ(line_tag("node7:4123:4321 [2] NCCL INFO x").host, "node7");
  EXPECT_EQ(line_tag("node7: [rank3]: x").host, "node7");
  EXPECT_EQ(line_tag("just text").who, "");
}

TEST(LineTime, OrdersEventsOfUsualForms) {
  EXPECT_LT(line_time("2025-09-06 12:34:56,123 INFO"), line_time("[2025-09-06T12:34:57] x"));
  EXPECT_LT(line_time("INFO 09-06 12:34:56 [a.py]"), line_time("E0906 12:34:57.1 x"));
  EXPECT_DOUBLE_EQ(line_time("[   12.500000] nvidia: x"), 12.5);
  EXPECT_DOUBLE_EQ(line_time("1970-01-02 00:00:01 x"), 86401);
  EXPECT_TRUE(std::isnan(line_time("no time here")));
}

TEST(PastPrefix, TakesWhatLaunchersAndLoggersPutInFront) {
  for (const char* prefix :
       {"[rank3]: ", "[1,3]<stderr>:", "11: ", "node7: ", "(EngineCore_DP0 pid=42) ", "> ", "    ",
        "worker-1  | ", "Nov 30 12:41:07 node7 vllm[42]: ", "2026-11-30T12:41:07.12Z ",
        "2026-11-30T12:41:07Z stderr F ", "#14 128.4 ", "[pod/decode-0/worker] ", "node7: [rank3]: "})
    EXPECT_EQ(past_prefix(std::string(prefix) + "NVreg_X=1"), "NVreg_X=1") << prefix;
  EXPECT_EQ(past_prefix("options nvidia NVreg_X=1"), "options nvidia NVreg_X=1");
  EXPECT_EQ(past_prefix(""), "");
}

}  // namespace
}  // namespace ep
