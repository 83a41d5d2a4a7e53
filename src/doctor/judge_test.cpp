#include "doctor/judge.h"

#include <deque>

namespace ep {
namespace {

/// A problem with the parts a test needs; the rest is filler.
std::string problem(const std::string& kind, const std::string& rest, const std::string& top = {}) {
  return "kind = \"" + kind +
         "\"\nseverity = \"fail\"\nlayer = \"deepep\"\nphase = \"run\"\nfirst_seen = \"2026\"\n" + top +
         "\n[title]\nen = \"T\"\nzh = \"题\"\n[cause]\nen = \"C.\"\nzh = \"因。\"\n[[fix]]\nen = \"F\"\nzh = "
         "\"修\"\n"
         "[[source]]\nurl = \"https://example.org/x\"\ndate = \"2026\"\nsays = \"s\"\n" +
         rest;
}
std::string signature(const std::string& literal, const std::string& more = "weight = \"decisive\"") {
  return "[[signature]]\nliterals = [\"" + literal + "\"]\n" + more + "\n";
}

class JudgeTest : public testing::Test {
 protected:
  void add(const std::string& toml) {
    std::vector<Error> errors;
    catalogue.problems.push_back(parse_problem(toml, "test.toml", errors));
    for (const auto& e : errors) ADD_FAILURE() << e.text();
  }
  Diagnosis look(const std::string& text) { return look_at({{"a.log", text}}); }
  Diagnosis look_at(std::vector<std::pair<std::string, std::string>> texts) {
    std::vector<LogInput> logs;
    for (auto& [name, text] : texts) logs.push_back({name, read_text(kept.emplace_back(text))});
    Observed o = known;
    const LogEvidence e = read_logs(catalogue, std::move(logs), o);
    return judge(catalogue, e, o, Lang::en);
  }
  static std::string kinds(const Diagnosis& d) {
    std::string out;
    for (const auto& f : d.findings)
      if (f.severity != Severity::info) out += (out.empty() ? "" : " ") + f.code;
    return out;
  }
  Catalogue catalogue;
  Observed known;
  std::deque<std::string> kept;
};

TEST_F(JudgeTest, ALineThatNamesTheCauseIsCertainWithFileAndLine) {
  add(problem("a.one", signature("the broken thing")));
  auto d = look("fine\nRuntimeError: the broken thing\n");
  ASSERT_EQ(kinds(d), "a.one");
  EXPECT_GE(d.findings[0].confidence, 0.8);
  ASSERT_FALSE(d.findings[0].evidence.empty());
  EXPECT_EQ(d.findings[0].evidence[0].source, "a.log");
  EXPECT_EQ(d.findings[0].evidence[0].line, 2);
}

TEST_F(JudgeTest, WhatIsOnlySpokenOfIsANoteUnlessSomebodyHasIt) {
  add(problem("a.one", signature("the broken thing")));
  const std::string advice = "Before you begin\n\nIf you ever see `the broken thing`, call us.\n\nBye\n";
  auto d = look(advice);
  EXPECT_EQ(kinds(d), "");
  EXPECT_TRUE(d.healthy);
  ASSERT_EQ(d.notes.size(), 1u);
  EXPECT_NE(d.notes[0].find("a.log:3"), std::string::npos);
  EXPECT_EQ(kinds(look(advice + "RuntimeError: the broken thing\n")), "a.one");

  const std::string quote =
      "A text\n\n* \"the broken thing is here\": it was in a file that is on the host.\n\n";
  EXPECT_EQ(kinds(look(quote)), "");
  EXPECT_EQ(kinds(look(quote + "Since then we get a hang on all of our nodes.\n")), "a.one");
  EXPECT_EQ(kinds(look(quote + "Segmentation fault (core dumped)\n")), "a.one");
}

TEST_F(JudgeTest, APageAboutWhatMayGoWrongIsNoReport) {
  add(problem("a.one", signature("the broken thing")));
  const std::string page =
      "# Troubleshooting\n\nTraceback (most recent call last):\nE: the broken thing\n\nReinstall.\n";
  auto d = look(page);
  EXPECT_EQ(kinds(d), "");
  EXPECT_TRUE(d.healthy);
  EXPECT_EQ(kinds(look(page + "I did that and it still fails with the same words.\n")), "a.one");
}

TEST_F(JudgeTest, WhatTestsWantedIsNoTrouble) {
  add(problem("a.one", signature("the broken thing")));
  const std::string body =
      "t.py::test_a PASSED\n--- Captured stderr ---\nTraceback (most recent call last):\nE: the broken "
      "thing\n";
  EXPECT_EQ(kinds(look(body + "===== 4 passed, 1 xfailed in 2.10s =====\n")), "");
  EXPECT_EQ(kinds(look(body + "===== 1 failed, 4 passed in 2.10s =====\n")), "a.one");
  EXPECT_EQ(kinds(look("===== 4 passed in 2.10s =====\n" + body)), "a.one");
  EXPECT_EQ(kinds(look(body + "[  PASSED  ] 4 tests.\n[  FAILED  ] 1 test, listed below:\n")), "a.one");
}

TEST_F(JudgeTest, WhatIsNoTextIsNotJudged) {
  add(problem("a.one", signature("the broken thing")));
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += char((i * 7919 + i / 3) & 0xff);
  EXPECT_TRUE(look(bytes).nothing_read);
  EXPECT_FALSE(look(bytes).healthy);
  EXPECT_TRUE(look("\n \n").nothing_read);
  EXPECT_FALSE(look_at({{"a", bytes}, {"b", "fine\n"}}).nothing_read);
}

TEST_F(JudgeTest, ARequiredConditionDecidesRulesOutOrWaits) {
  add(problem("a.old", signature("shared words", "weight = \"supporting\""),
              "require = [\"nvshmem.version >= 3.5.19\"]"));
  add(problem(
      "a.net",
      signature("shared words", "weight = \"supporting\"") +
          "[[lookalike]]\nkind = \"a.old\"\nen = \"the version\"\nzh = \"版本\"\ncommand = \"pip list\"\n"));
  EXPECT_EQ(kinds(look("NVSHMEM v3.6.5\nRuntimeError: shared words\n")), "a.old");
  auto without = look("RuntimeError: shared words\n");
  EXPECT_EQ(kinds(without), "a.net a.old");
  EXPECT_LT(without.findings[0].confidence, 0.5);
  EXPECT_TRUE(without.undecided);
  EXPECT_NE(without.findings[0].next.find("pip list"), std::string::npos);
  auto older = look("NVSHMEM v3.4.5\nRuntimeError: shared words\n");
  EXPECT_EQ(kinds(older), "a.net");
  ASSERT_EQ(older.findings[0].ruled_out.size(), 1u);
  EXPECT_EQ(older.findings[0].ruled_out[0], "a.old: nvshmem.version = 3.4.5");
}

TEST_F(JudgeTest, TheFirstErrorBeatsWhatFollowsFromIt) {
  add(problem("a.cause", signature("could not load"), "after_effects = [\"a.effect\"]"));
  add(problem("a.effect", signature("gave up waiting", "weight = \"supporting\"") +
                              "[[lookalike]]\nkind = \"a.cause\"\nen = \"x\"\nzh = \"x\"\n"));
  auto d = look("could not load\nRuntimeError: gave up waiting\n");
  EXPECT_EQ(kinds(d), "a.cause");
}

TEST_F(JudgeTest, TwoCertainOnesAreOrderedByTime) {
  add(problem("a.late", signature("second failure")));
  add(problem("b.early", signature("first failure")));
  EXPECT_EQ(kinds(look("first failure\nsecond failure\n")), "b.early a.late");
  // Between files, time stamps decide, whatever the order on the command line.
  EXPECT_EQ(kinds(look_at({{"x.log", "2026-01-01 10:00:09 second failure\n"},
                           {"y.log", "2026-01-01 10:00:03 first failure\n"}})),
            "b.early a.late");
}

TEST_F(JudgeTest, ALineAgainstRulesOutWithItsReason) {
  add(problem(
      "a.one",
      signature("shared words", "weight = \"supporting\"") +
          "[[not]]\nliterals = [\"other vendor\"]\nen = \"another vendor's NIC\"\nzh = \"他家网卡\"\n" +
          "[[lookalike]]\nkind = \"a.two\"\nen = \"x\"\nzh = \"x\"\n"));
  add(problem("a.two", signature("shared words", "weight = \"supporting\"") +
                           "[[lookalike]]\nkind = \"a.one\"\nen = \"x\"\nzh = \"x\"\n"));
  auto d = look("RuntimeError: shared words\nother vendor\n");
  ASSERT_EQ(kinds(d), "a.two");
  EXPECT_EQ(d.findings[0].ruled_out[0], "a.one: another vendor's NIC (a.log:2)");
}

TEST_F(JudgeTest, ASuccessfulRunMakesWarningsHarmlessUnlessTheProblemSurvivesIt) {
  add(problem("a.warn", signature("cannot allocate here")));
  add(problem("p.slow", signature("only one used"), "survives_success = true"));
  EXPECT_EQ(kinds(look("cannot allocate here\n")), "a.warn");
  EXPECT_EQ(kinds(look("cannot allocate here\nINFO: Application startup complete.\n")), "");
  EXPECT_EQ(
      kinds(look(
          "cannot allocate here\nTraceback (most recent call last):\nINFO: Application startup complete.\n")),
      "a.warn");
  EXPECT_EQ(kinds(look("only one used\n[rank 0] Dispatch + combine bandwidth: 99 GB/s\n")), "p.slow");
}

TEST_F(JudgeTest, NeighbouringLinesAreTiedByDistance) {
  add(problem("a.near",
              signature("warm-up 2%", "id = \"warm\"\nweight = \"supporting\"") +
                  signature("gave up waiting", "weight = \"decisive\"\nwith = [\"warm\"]\nwithin = 5")));
  EXPECT_GE(look("warm-up 2%\nx\nx\nRuntimeError: gave up waiting\n").findings.at(0).confidence, 0.85);
  std::string far = "warm-up 2%\n" + std::string(20, '\n') + "RuntimeError: gave up waiting\n";
  EXPECT_LT(look(far).findings.at(0).confidence, 0.5);
}

TEST_F(JudgeTest, FactsAloneMakeAFinding) {
  add(problem(
      "a.facts",
      "[[rule]]\nall = [\"nvshmem.version >= 3.5.19\", \"deepep.rc_fix == false\"]\nweight = \"decisive\"\n"
      "severity = \"warn\"\nen = \"will hang\"\nzh = \"会挂起\"\n"));
  known.add("nvshmem.version", "3.6.5", {"site-packages", 0, "nvidia-nvshmem-cu13 3.6.5"});
  EXPECT_EQ(kinds(look("")), "");
  known.add("deepep.rc_fix", "false", {});
  auto d = look("");
  ASSERT_EQ(kinds(d), "a.facts");
  EXPECT_EQ(d.findings[0].severity, Severity::warn);
}

TEST_F(JudgeTest, NothingMatchedShowsTheFirstErrorAndWhatToCollect) {
  add(problem("a.one", signature("the broken thing")));
  auto d = look("fine\nRuntimeError: never seen before\nmore\n");
  EXPECT_EQ(kinds(d), "");
  ASSERT_TRUE(d.start.has_value());
  EXPECT_EQ(d.start->line, 2);
  EXPECT_FALSE(d.collect.empty());
  EXPECT_FALSE(d.healthy);
  EXPECT_TRUE(look("all is well\n").healthy);
}

TEST_F(JudgeTest, AtMostThreeFindings) {
  for (char k : std::string("abcdef"))
    add(problem(std::string("x.") + k, signature(std::string("broken part ") + k)));
  std::string text;
  for (char k : std::string("abcdef")) text += std::string("RuntimeError: broken part ") + k + "\n";
  EXPECT_EQ(kinds(look(text)), "x.a x.b x.c");
}

TEST_F(JudgeTest, RanksAreCountedAsWitnesses) {
  add(problem("a.one", signature("the broken thing", "weight = \"supporting\"") +
                           signature("another hint", "weight = \"decisive\"")));
  auto one = look("[rank1]: another hint\n"), two = look("[rank1]: another hint\n[rank2]: another hint\n");
  EXPECT_GT(two.findings.at(0).confidence, one.findings.at(0).confidence);
  EXPECT_NE(two.findings.at(0).evidence.at(0).text.find("2 lines, 2 ranks"), std::string::npos);
}

TEST_F(JudgeTest, AnUnreadableLogIsAnErrorNotSilence) {
  add(problem("a.one", signature("the broken thing")));
  std::vector<LogInput> logs;
  logs.push_back({"bad.log", [](char*, size_t) -> Result<size_t> {
                    return fail(ErrorKind::unreadable, "I/O error", "bad.log");
                  }});
  Observed o;
  const LogEvidence e = read_logs(catalogue, std::move(logs), o);
  EXPECT_EQ(judge(catalogue, e, o, Lang::en).errors.size(), 1u);
}

TEST_F(JudgeTest, SpeaksChinese) {
  add(problem("a.one", signature("the broken thing")));
  std::vector<LogInput> logs;
  logs.push_back({"a.log", read_text("RuntimeError: the broken thing\n")});
  Observed o;
  const LogEvidence e = read_logs(catalogue, std::move(logs), o);
  EXPECT_EQ(judge(catalogue, e, o, Lang::zh).findings.at(0).title, "题");
}

TEST_F(JudgeTest, WhatTheRunSurvivedIsNotTheCauseOfAnotherDeath) {
  add(problem("a.warn", signature("could not map")));
  add(problem("a.death", signature("killed by the cat")));
  const std::string lived = "WARN: could not map\nBest dispatch: 47.1 GB/s (RDMA)\n";
  auto d = look(lived + "starting the server\nRuntimeError: killed by the cat\n");
  EXPECT_EQ(kinds(d), "a.death");
  ASSERT_EQ(d.findings.size(), 2u);
  EXPECT_EQ(d.findings[1].code, "a.warn");
  EXPECT_EQ(d.findings[1].severity, Severity::info);
  // Without a cause of its own the later death may still be this one's.
  EXPECT_EQ(kinds(look(lived + "RuntimeError: something unknown\n")), "a.warn");
  // And one that died before the success is no survivor.
  EXPECT_EQ(
      kinds(look("could not map\nRuntimeError: x\nBest dispatch: 47.1 GB/s (RDMA)\nkilled by the cat\n")),
      "a.warn a.death");
}

TEST_F(JudgeTest, HearsayDoesNotSilenceALineThatNamesTheCause) {
  add(problem("a.one", signature("the broken thing"), "exclude = [\"link_layer == InfiniBand\"]"));
  EXPECT_EQ(kinds(look("on the InfiniBand cluster it works\nRuntimeError: the broken thing\n")), "a.one");
  EXPECT_EQ(kinds(look("link_layer: InfiniBand\nRuntimeError: the broken thing\n")), "");
}

TEST_F(JudgeTest, ALineThatMustBeSeenManyTimes) {
  add(problem("a.many", signature("took the first NIC", "times = 4\nweight = \"decisive\"")));
  EXPECT_EQ(kinds(look("took the first NIC\ntook the first NIC\ntook the first NIC\n")), "");
  EXPECT_EQ(kinds(look("took the first NIC\ntook the first NIC\ntook the first NIC\ntook the first NIC\n")),
            "a.many");
}

TEST_F(JudgeTest, AContestedFactDoesNotSilenceALineThatNamesTheCause) {
  add(problem("a.absent", signature("memory refused"), "exclude = [\"kernel.peermem == true\"]"));
  EXPECT_EQ(kinds(look("memory refused\nnvidia_peermem 16384 0\n")), "");
  EXPECT_EQ(kinds(look("memory refused\nlsmod | grep nvidia_peermem\n\nnvidia_peermem 16384 0\n")),
            "a.absent");
}

}  // namespace
}  // namespace ep
