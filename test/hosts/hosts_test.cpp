// Goldens of real machines: what read_topology says of each against the answer worked out by hand. The folder
// ../shared/corpus/third-party-xml holds files of other projects; its items are tested where it exists.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "facts/text_facts.h"
#include "facts/topology.h"
#include "host/paste.h"

namespace ep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string read_all(const fs::path& p) {
  std::ifstream in(p, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

struct Answer {
  Topology main;
  std::set<std::string> errors;
  Verdict verdict = Verdict::pass;
};

Answer ask(const fs::path& dir) {
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<fs::path> files;
  for (const auto& e : fs::directory_iterator(dir)) files.push_back(e.path());
  std::sort(files.begin(), files.end());
  for (const auto& f : files)
    if (f.filename() != "expect.json" && f.filename() != "source.json")
      texts.emplace_back(f.filename().string(), read_all(f));
  std::vector<Topology> all;
  std::vector<Facts> facts;
  for (const auto& h : take_apart(texts)) facts.push_back(facts_of_paste(h, h.name));
  for (const auto& f : facts) all.push_back(read_topology(f));
  auto shared = compare_hosts(all, facts);
  Answer a;
  a.verdict = topology_verdict(shared);
  for (const auto& t : all) {
    a.verdict = worst(a.verdict, t.shown);  // the answers judge what is shown; see expect.json
    for (const auto& f : t.findings)
      if (f.severity == Severity::fail) a.errors.insert(f.code);
  }
  a.main = std::move(all[0]);
  return a;
}

std::set<std::string> expand(const Json& list) {
  std::set<std::string> out;
  for (const auto& x : list) out.insert(x.get<std::string>());
  return out;
}

void check_nics(const Json& expect, const Answer& a) {
  auto kind = expect.value("completeness", "");
  if (kind == "gid-only" || kind == "params-only" || kind == "netdev-only") return;
  if (!expect.contains("rdma_nics") || !expect["rdma_nics"].contains("usable_for_ep") ||
      expect["rdma_nics"]["usable_for_ep"].is_null())
    return;
  auto names = a.main.usable();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), expand(expect["rdma_nics"]["usable_for_ep"]));
}

void check_mapping(const Json& expect, const Answer& a) {
  if (!expect.contains("mapping")) return;
  const Json& m = expect["mapping"];
  bool best = m.contains("best") && !m["best"].is_null(),
       partial = m.contains("partial_best") && !m["partial_best"].is_null();
  if (!m.value("derivable", false) || (!best && !partial)) {
    EXPECT_NE(a.main.mapping.confidence, Confidence::derived) << "nothing can be derived here";
    return;
  }
  const Json& want = best ? m["best"] : m["partial_best"];
  std::set<std::string> want_gpus, have_gpus;
  for (const auto& [g, d] : want.items()) want_gpus.insert(g);
  std::map<std::string, int> uses;
  for (const auto& [g, d] : a.main.mapping.pairs) {
    have_gpus.insert(std::to_string(g));
    ++uses[d];
    Json ok = m.contains("acceptable_per_gpu") && m["acceptable_per_gpu"].contains(std::to_string(g))
                  ? m["acceptable_per_gpu"][std::to_string(g)]
                  : Json::array({want.value(std::to_string(g), "")});
    EXPECT_TRUE(std::find(ok.begin(), ok.end(), d) != ok.end())
        << "GPU" << g << " got " << d << ", acceptable " << ok;
  }
  EXPECT_EQ(have_gpus, want_gpus);
  std::string constraint =
      m.contains("constraint") && m["constraint"].is_string() ? m["constraint"].get<std::string>() : "";
  int limit = constraint.rfind("max_gpus_per_nic:", 0) == 0 ? std::stoi(constraint.substr(17))
              : constraint == "distinct"                    ? 1
                                                            : 1000;
  for (const auto& [d, n] : uses) EXPECT_LE(n, limit) << d << " is used " << n << " times";
  if (constraint == "distinct_card") {
    for (const auto& card : m["cards"]) {
      int n = 0;
      for (const auto& d : card) n += uses.count(d) ? uses[d] : 0;
      EXPECT_LE(n, 1) << "card " << card;
    }
  }
  // One strings' value where the expectation has the very same pairs.
  bool same = best;
  for (const auto& [g, d] : a.main.mapping.pairs) same &= best && want.value(std::to_string(g), "") == d;
  if (same && m.contains("best_env") && a.main.mapping.confidence == Confidence::derived) {
    const Json& e = m["best_env"];
    EXPECT_EQ(a.main.strings.deep_ep, e.value("DEEP_EP_DEVICE_TO_HCA_MAPPING", ""));
    EXPECT_EQ(a.main.strings.hca_list, e.value("NVSHMEM_HCA_LIST", ""));
    if (e["NVSHMEM_HCA_PE_MAPPING"].is_string()) {
      EXPECT_EQ(a.main.strings.hca_pe_mapping, e["NVSHMEM_HCA_PE_MAPPING"].get<std::string>());
    }
  }
}

void check_gid(const Json& expect, const Answer& a) {
  if (!expect.contains("gid") || !expect["gid"].value("derivable", false) ||
      expect["gid"]["needed"] != Json(true))
    return;
  const Json& g = expect["gid"];
  const auto& have = a.main.gid.per_device;
  std::set<int> alternatives;
  if (g.contains("alternatives"))
    for (const auto& x : g["alternatives"]) alternatives.insert(x.get<int>());
  EXPECT_FALSE(have.empty()) << "no index given";
  if (!g.contains("per_device")) return;
  for (const auto& [d, i] : g["per_device"].items()) {
    ASSERT_TRUE(have.count(d)) << d;
    EXPECT_TRUE(have.at(d) == i.get<int>() || alternatives.count(have.at(d)))
        << d << " got " << have.at(d) << " want " << i;
  }
}

void check_verdict(const Json& expect, const Answer& a) {
  std::string have = a.verdict == Verdict::pass   ? "ok"
                     : a.verdict == Verdict::warn ? "warn"
                     : a.verdict == Verdict::fail ? "fail"
                                                  : "unknown";
  // A machine whose verdict can be argued about has none in its answer, and is not judged by it.
  const std::string want = expect.value("verdict", "");
  if (!want.empty()) {
    EXPECT_EQ(have, want);
  }
  for (const auto& w : expect["warnings"])
    if (w["severity"] == "error") {
      EXPECT_TRUE(a.errors.count(w["code"].get<std::string>())) << "not found: " << w["code"];
    }
  if (want == "ok") {
    EXPECT_TRUE(a.errors.empty());
  }
}

std::vector<fs::path> items(const fs::path& top) {
  std::vector<fs::path> out;
  if (fs::exists(top))
    for (const auto& e : fs::directory_iterator(top))
      if (fs::exists(e.path() / "expect.json")) out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

void check_item(const fs::path& dir) {
  SCOPED_TRACE(dir.filename().string());
  Json expect = Json::parse(read_all(dir / "expect.json"));
  Answer a = ask(dir);
  check_nics(expect, a);
  check_mapping(expect, a);
  check_gid(expect, a);
  check_verdict(expect, a);
}

class Golden : public ::testing::TestWithParam<fs::path> {};
TEST_P(Golden, IsRightInEveryDimension) {
  check_item(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Hosts, Golden, ::testing::ValuesIn(items(fs::path(EP_SOURCE_DIR) / "test/hosts")),
                         [](const auto& param) {
                           std::string s = param.param.filename().string();
                           std::replace_if(
                               s.begin(), s.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
                           return s;
                         });

// A Chinese sentence for every English one: findings, reasons of roles, mapping and GIDs.
void check_chinese(const Topology& t) {
  auto chinese = [](const std::string& s) {
    return std::any_of(s.begin(), s.end(), [](unsigned char c) { return c >= 0xe4 && c <= 0xe9; });
  };
  for (const auto& f : t.findings) {
    EXPECT_TRUE(chinese(f.title_zh)) << f.code << ": " << f.title;
    EXPECT_EQ(f.cause.empty(), f.cause_zh.empty()) << f.code;
  }
  for (const auto& n : t.nics) EXPECT_TRUE(chinese(n.reason.zh)) << n.name << ": " << n.reason.en;
  if (!t.mapping.reason.empty()) {
    EXPECT_TRUE(chinese(t.mapping.reason.zh)) << t.mapping.reason.en;
  }
  for (const auto& [gpu, why] : t.mapping.unmapped) EXPECT_TRUE(chinese(why.zh)) << why.en;
  if (!t.gid.reason.empty()) {
    EXPECT_TRUE(chinese(t.gid.reason.zh)) << t.gid.reason.en;
  }
}

TEST(Goldens, SayEverythingInChineseToo) {
  for (const auto& dir : items(fs::path(EP_SOURCE_DIR) / "test/hosts")) {
    SCOPED_TRACE(dir.filename().string());
    check_chinese(ask(dir).main);
  }
}

TEST(Goldens, AreAllThere) {
  EXPECT_GE(items(fs::path(EP_SOURCE_DIR) / "test/hosts").size(), 40u);
}

TEST(ThirdPartyXml, IsRightWhereTheFilesAre) {
  auto list = items(fs::path(EP_SOURCE_DIR) / "../shared/corpus/third-party-xml");
  if (list.empty()) GTEST_SKIP() << "skipped: ../shared/corpus/third-party-xml is not here";
  for (const auto& dir : list) check_item(dir);
}

}  // namespace
}  // namespace ep
