// JSON, text and comparison of facts: every field comes out with its state, whatever its name.
#include <nlohmann/json.hpp>

#include "report/facts_json.h"
#include "report/facts_text.h"

namespace ep {
namespace {

Facts some_facts() {
  Facts f;
  f.host_name = "x";
  f.host_kind = "snapshot";
  f.os.id = known<std::string>("ubuntu", "/etc/os-release");
  f.os.libc = malformed<std::string>("probe libc", "expected \"glibc VERSION\"");
  f.kernel.cmdline = unreadable<std::string>("/proc/cmdline", "EACCES (Permission denied)");
  Gpu g;
  g.index = 3;
  g.name = known<std::string>("NVIDIA \xff B200", "PCI id");
  g.memory_bytes = known<uint64_t>(192000000000, "probe");
  f.gpus.push_back(g);
  RdmaDevice d;
  d.name = "mlx5_0";
  RdmaPort p;
  p.gids.push_back({3, "fe80::", known<std::string>("RoCE v2", "w"), absent<std::string>("n")});
  p.counters["port_xmit_data"] = known<uint64_t>(7, "c");
  d.ports.push_back(p);
  f.rdma.push_back(d);
  PythonEnvironment e;
  e.root = "/opt/v";
  e.packages = {{"torch", "2.9.1", "/opt/v/lib"}};
  f.python.push_back(e);
  Tool tool;
  tool.name = "git";
  tool.path = known<std::string>("/usr/bin/git", "PATH");
  f.tools = {tool, Tool{"uv", absent<std::string>("PATH"), absent<std::string>("PATH")}};
  ModuleOption option;
  option.name = "NVreg_Unset";
  f.driver.options.push_back(option);
  return f;
}

TEST(FactsJson, HasStatePlaceAndReason) {
  auto j = nlohmann::json::parse(facts_json(some_facts()));
  EXPECT_EQ(j["schema"], "epready-facts-1");
  EXPECT_EQ(j["os"]["id"]["value"], "ubuntu");
  EXPECT_EQ(j["os"]["id"]["state"], "known");
  EXPECT_EQ(j["os"]["libc"]["state"], "malformed");
  EXPECT_EQ(j["kernel"]["cmdline"]["why"], "EACCES (Permission denied)");
  EXPECT_FALSE(j["kernel"]["cmdline"].contains("value"));
  EXPECT_EQ(j["os"]["codename"]["state"], "absent");
  EXPECT_EQ(j["gpus"][0]["id"], "3");
  EXPECT_EQ(j["gpus"][0]["name"]["value"], "NVIDIA \xef\xbf\xbd B200") << "odd bytes are replaced";
  EXPECT_EQ(j["rdma"][0]["ports"][0]["gids"][0]["type"]["value"], "RoCE v2");
  EXPECT_EQ(j["rdma"][0]["ports"][0]["counters"]["port_xmit_data"]["value"], 7);
}

TEST(FactsJson, OneAreaAlone) {
  for (const auto& area : fact_areas()) {
    auto j = nlohmann::json::parse(facts_json(some_facts(), area));
    EXPECT_TRUE(j.contains(area)) << area;
    EXPECT_EQ(j.size(), 4u) << area << ": schema, tool, host and itself";
  }
}

TEST(FactsText, ShowsTroubleAndHidesNothingKnown) {
  auto text = facts_text(some_facts(), {}, Look{});
  EXPECT_THAT(text, testing::HasSubstr("ubuntu"));
  EXPECT_THAT(text, testing::HasSubstr("malformed: expected"));
  EXPECT_THAT(text, testing::HasSubstr("EACCES"));
  EXPECT_THAT(text, testing::HasSubstr("192.0 GB"));
  EXPECT_THAT(text, testing::HasSubstr("torch 2.9.1"));
  EXPECT_THAT(text, testing::HasSubstr("  git\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("NVreg_Unset"))) << "nothing is known about it";
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("codename")));
  EXPECT_THAT(facts_text(some_facts(), {"os", false}, Look{}), testing::HasSubstr("[/etc/os-release]"));
  auto all = facts_text(some_facts(), {"", true}, Look{});
  EXPECT_THAT(all, testing::HasSubstr("codename"));
  EXPECT_THAT(all, testing::HasSubstr("port_xmit_data"));
}

TEST(FactsText, ChineseWordsForStates) {
  Look look;
  look.lang = Lang::zh;
  EXPECT_THAT(facts_text(some_facts(), {}, look), testing::HasSubstr("无法读取"));
}

TEST(FactsCompare, MatchesByLabelAndLeavesVolatileOut) {
  Facts a = some_facts(), b = some_facts();
  EXPECT_TRUE(compare_facts(a, b, true).empty());
  b.os.id = known<std::string>("debian", "/etc/os-release");
  b.os.boot_id = known<std::string>("other", "w");
  b.rdma[0].ports[0].counters["port_xmit_data"].value = 9;
  b.rdma.insert(b.rdma.begin(), RdmaDevice{});
  b.rdma[0].name = "mlx5_9";
  auto d = compare_facts(a, b);
  ASSERT_FALSE(d.empty());
  EXPECT_EQ(d[0].path, "os/id");
  EXPECT_EQ(d[0].a + d[0].b, "ubuntudebian");
  for (const auto& x : d) EXPECT_TRUE(x.path == "os/id" || x.path.find("rdma/mlx5_9/") == 0) << x.path;
  EXPECT_GT(compare_facts(a, b, true).size(), d.size());
}

}  // namespace
}  // namespace ep
