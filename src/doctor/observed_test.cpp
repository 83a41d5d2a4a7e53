#include "doctor/observed.h"

namespace ep {
namespace {

Truth judge(const std::string& text, const Observed& o) {
  auto c = FactCondition::parse(text);
  EXPECT_TRUE(c.has_value()) << text;
  return c ? c->judge(o).truth : Truth::unknown;
}

TEST(FactCondition, VersionsNumbersAndText) {
  Observed o;
  o.add("nvshmem.version", "3.5.19", {"log", 3, "NVSHMEM v3.5.19"});
  o.add("nodes", "2", {});
  o.add("nic.names", "mlx5_0", {});
  o.add("nic.names", "rocep1s0", {});
  o.add("driver.open", "true", {});
  EXPECT_EQ(judge("nvshmem.version >= 3.5.19", o), Truth::yes);
  EXPECT_EQ(judge("nvshmem.version < 3.5", o), Truth::no);
  EXPECT_EQ(judge("nodes > 1", o), Truth::yes);
  EXPECT_EQ(judge("nic.names matches ^roce", o), Truth::yes);
  EXPECT_EQ(judge("nic.names == mlx5_0", o), Truth::yes);
  EXPECT_EQ(judge("driver.open == yes", o), Truth::yes);
  EXPECT_EQ(judge("link_layer == Ethernet", o), Truth::unknown);
  EXPECT_EQ(judge("link_layer == Ethernet | nodes == 2", o), Truth::yes);
  EXPECT_EQ(judge("link_layer == Ethernet | nodes == 3", o), Truth::unknown);
  EXPECT_EQ(judge("nodes in 2, 4", o), Truth::yes);
}

TEST(FactCondition, TheRunningCopyBeatsTheInstalledOne) {
  Observed o;
  o.add("nccl.version", "2.30.4", {}, Trust::running);
  o.add("nccl.version", "2.28.9", {}, Trust::installed);
  EXPECT_EQ(judge("nccl.version >= 2.30.4", o), Truth::yes);
}

TEST(FactCondition, TheLaterInstallBeatsTheEarlier) {
  Observed o;
  o.add("nccl.version", "2.30.4", {});
  o.add("nccl.version", "2.28.9", {});
  EXPECT_EQ(judge("nccl.version >= 2.30.4", o), Truth::no);
}

TEST(FactCondition, UnsetIsUnknownInALogAndKnownOnAHost) {
  Observed o;
  EXPECT_EQ(judge("env.NVSHMEM_IBGDA_NUM_DCT unset", o), Truth::unknown);
  o.environment_known = true;
  EXPECT_EQ(judge("env.NVSHMEM_IBGDA_NUM_DCT unset", o), Truth::yes);
  o.add("env.NVSHMEM_IBGDA_NUM_DCT", "2", {});
  EXPECT_EQ(judge("env.NVSHMEM_IBGDA_NUM_DCT set", o), Truth::yes);
}

TEST(FactCondition, RefusesUnknownWordsWithTheNearest) {
  auto c = FactCondition::parse("nvshmem.verison >= 3");
  ASSERT_FALSE(c.has_value());
  EXPECT_NE(c.error().why.find("nvshmem.version"), std::string::npos);
  EXPECT_FALSE(FactCondition::parse("nodes => 3").has_value());
  EXPECT_FALSE(FactCondition::parse("nodes >").has_value());
  EXPECT_FALSE(FactCondition::parse("nodes set 3").has_value());
  EXPECT_FALSE(FactCondition::parse("nic.names matches (").has_value());
  EXPECT_FALSE(FactCondition::parse("").has_value());
}

TEST(FactCondition, ContestedWhenMoreThanHearsaySaysBoth) {
  const auto peermem = FactCondition::parse("kernel.peermem == true");
  ASSERT_TRUE(peermem.has_value());
  Observed o;
  o.add("kernel.peermem", "true", {}, Trust::running);
  EXPECT_FALSE(peermem->contested(o));
  o.add("kernel.peermem", "false", {}, Trust::mentioned);
  EXPECT_FALSE(peermem->contested(o));
  o.add("kernel.peermem", "false", {}, Trust::running);
  EXPECT_TRUE(peermem->contested(o));
}

}  // namespace
}  // namespace ep
