// The executor's behaviour: order, consent, side by side, reboot, refusals. Files are the simplest action.
#include <thread>

#include "apply/journal.h"
#include "apply/lock.h"
#include "apply/test_bench.h"

namespace ep {
namespace {

using test::Bench;
using test::slurp;
using test::spill;

class ExecutorTest : public Bench {
 public:
  StepState state(const ApplyReport& r, const std::string& id) {
    for (const auto& s : r.steps)
      if (s.id == id) return s.state;
    ADD_FAILURE() << "no step " << id;
    return StepState::not_run;
  }
  std::string reason(const ApplyReport& r, const std::string& id) {
    for (const auto& s : r.steps)
      if (s.id == id) return s.reason + " | " + s.next;
    return "";
  }
  Error refused() {
    auto progress = silent_progress();
    auto r = apply_plan(plan, options, *progress);
    EXPECT_FALSE(r);
    return r ? Error{} : r.error();
  }
};

TEST_F(ExecutorTest, DoesStepsInOrderAndSaysSo) {
  plan.steps = {step("one", {WriteFile{"/etc/one", "1", 0640}}),
                step("two", {WriteFile{"/etc/two", "2"}}, {"one"})};
  plan.steps[0].after = {{"content", {"/etc/one", "1"}}};
  auto r = apply();
  EXPECT_EQ(r.exit_code(), 0);
  EXPECT_EQ(r.count(StepState::done), 2);
  EXPECT_EQ(at("/etc/two"), "2");
  auto status = read_status(plan.prefix, root);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->steps[1].state, StepState::done);
  EXPECT_EQ(status->num_files, 2u);
  EXPECT_TRUE(status->running.empty());
  EXPECT_FALSE(status->ended.empty());
}

TEST_F(ExecutorTest, SatisfiedStepsAreLeftAlone) {
  put("/etc/one", "1");
  plan.steps = {step("one", {RunArgv{{"false"}, "", {}, 5}})};
  plan.steps[0].before = {{"content", {"/etc/one", "1"}}};
  auto r = apply();
  EXPECT_EQ(state(r, "one"), StepState::satisfied);
  EXPECT_EQ(r.exit_code(), 0);
}

TEST_F(ExecutorTest, EmptyPlanLeavesNoTrace) {
  std::string before = picture();
  EXPECT_EQ(apply().exit_code(), 0);
  EXPECT_EQ(picture(), before);
}

TEST_F(ExecutorTest, UnknownPredicateIsNeverTakenAsTrue) {
  plan.steps = {step("one", {WriteFile{"/etc/one", "1"}})};
  plan.steps[0].before = {{"unheard-of", {}}};
  plan.steps[0].after = {{"unheard-of", {}}};
  auto r = apply();
  EXPECT_EQ(at("/etc/one"), "1");
  EXPECT_EQ(state(r, "one"), StepState::failed);
}

TEST_F(ExecutorTest, WhatCouldNotBeToldAtOnceIsAskedAgainAndNeverTakenAsTrue) {
  Step late = step("late", {WriteFile{"/etc/late", "x"}});
  late.after = {{"late", {"2"}}};
  Step never = step("never", {WriteFile{"/etc/never", "x"}});
  never.after = {{"late", {"1000"}}};
  // Without `before`, `after` is asked once before the actions.
  late.before = never.before = {{"no", {}}};
  plan.steps = {late, never};
  options.jobs = 1;
  auto r = apply();
  EXPECT_EQ(state(r, "late"), StepState::done);
  EXPECT_EQ(state(r, "never"), StepState::failed);
}

TEST_F(ExecutorTest, AFailureBlocksOnlyWhatNeedsIt) {
  plan.steps = {step("bad", {RunArgv{{"sh", "-c", "echo the reason >&2; exit 3"}, "", {}, 10}}),
                step("needs-bad", {WriteFile{"/etc/x", "x"}}, {"bad"}),
                step("other", {WriteFile{"/etc/y", "y"}})};
  auto r = apply();
  EXPECT_EQ(r.exit_code(), 1);
  EXPECT_EQ(state(r, "bad"), StepState::failed);
  EXPECT_NE(reason(r, "bad").find("the reason"), std::string::npos);
  EXPECT_EQ(state(r, "needs-bad"), StepState::blocked);
  EXPECT_EQ(state(r, "other"), StepState::done);
  EXPECT_NE(at("/opt/epready/log/bad.log").find("the reason"), std::string::npos);
}

TEST_F(ExecutorTest, ActionsThatRanWithoutEffectFail) {
  plan.steps = {step("one", {WriteFile{"/etc/one", "1"}})};
  plan.steps[0].after = {{"no", {"option is not live"}}};
  auto r = apply();
  EXPECT_EQ(state(r, "one"), StepState::failed);
  EXPECT_NE(reason(r, "one").find("option is not live"), std::string::npos);
}

TEST_F(ExecutorTest, ConsentIsAskedOncePerClass) {
  options.yes = {};
  int asked = 0;
  options.ask = [&](Risk risk, const std::vector<const Step*>& steps) {
    ++asked;
    EXPECT_EQ(risk, Risk::kernel_options);
    EXPECT_EQ(steps.size(), 2u);
    return false;
  };
  plan.steps = {step("free", {WriteFile{"/etc/f", "f"}}), step("k1", {WriteFile{"/etc/k1", "1"}}),
                step("k2", {WriteFile{"/etc/k2", "2"}})};
  plan.steps[1].risk = plan.steps[2].risk = Risk::kernel_options;
  auto r = apply();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(state(r, "free"), StepState::done);
  EXPECT_EQ(state(r, "k1"), StepState::declined);
  EXPECT_EQ(r.exit_code(), 3);
  EXPECT_TRUE(at("/etc/k1").empty());
  EXPECT_NE(reason(r, "k1").find("--yes=kernel"), std::string::npos);
}

TEST_F(ExecutorTest, ConsentWordsAreChecked) {
  EXPECT_EQ(parse_consent("packages,kernel")->size(), 2u);
  EXPECT_EQ(parse_consent("all")->size(), 3u);
  EXPECT_TRUE(parse_consent("")->empty());
  auto bad = parse_consent("packages,kernle");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().where, "kernle");
  EXPECT_EQ(bad.error().exit_code(), 2);
}

// Each step waits until the other has begun: one after the other would run into the limit.
TEST_F(ExecutorTest, IndependentStepsRunSideBySide) {
  auto meet = [&](const std::string& me, const std::string& other) {
    std::string script = "touch " + dir + "/" + me + "; for i in $(seq 200); do [ -e " + dir + "/" + other +
                         " ] && exit 0; sleep 0.05; done; exit 1";
    return RunArgv{{"sh", "-c", script}, "", {}, 30};
  };
  plan.steps = {step("a", {meet("a", "b")}), step("b", {meet("b", "a")})};
  options.jobs = 2;
  EXPECT_EQ(apply().exit_code(), 0);
}

TEST_F(ExecutorTest, JobLimitOfOneIsKept) {
  auto alone = [&](const std::string&) {
    std::string script = "mkdir " + dir + "/busy || exit 1; sleep 0.1; rmdir " + dir + "/busy";
    return RunArgv{{"sh", "-c", script}, "", {}, 30};
  };
  plan.steps = {step("a", {alone("a")}), step("b", {alone("b")}), step("c", {alone("c")})};
  options.jobs = 1;
  EXPECT_EQ(apply().exit_code(), 0);
}

TEST_F(ExecutorTest, InterruptStopsChildrenAndASecondRunGoesOn) {
  std::atomic<bool> stop{false};
  options.stop = &stop;
  plan.steps = {
      step("one", {WriteFile{"/etc/one", "1"}}),
      step("slow",
           {RunArgv{
               {"sh", "-c", "touch " + dir + "/begun; [ -e " + dir + "/fast ] || sleep 60"}, "", {}, 120}},
           {"one"}),
      step("last", {WriteFile{"/etc/last", "l"}}, {"slow"})};
  std::thread user([&] {
    while (!std::filesystem::exists(dir + "/begun")) std::this_thread::yield();
    stop = true;
  });
  auto r = apply();
  user.join();
  EXPECT_EQ(r.exit_code(), 5);
  EXPECT_EQ(state(r, "slow"), StepState::interrupted);
  EXPECT_LT(r.seconds, 30);
  stop = false;
  spill(dir + "/fast", "");
  r = apply();
  EXPECT_EQ(r.exit_code(), 0);
  EXPECT_EQ(at("/etc/last"), "l");
}

TEST_F(ExecutorTest, RefusesAPlanOfAnotherHostOrSchema) {
  plan.steps = {step("one", {WriteFile{"/etc/one", "1"}})};
  plan.host_name = "other";
  options.root = "/";
  Error e = refused();
  EXPECT_EQ(e.exit_code(), 2);
  EXPECT_NE(e.text().find("another host"), std::string::npos);
  plan.host_name = "gpu-lab";
  plan.schema = "epready-plan-99";
  EXPECT_EQ(refused().exit_code(), 2);
  EXPECT_FALSE(std::filesystem::exists("/etc/one"));
}

TEST_F(ExecutorTest, RefusesWhenFactsDriftedBeforeTheFirstTouch) {
  options.may_drift = false;
  plan.facts_used = {{"driver.version", "580.1"}};
  world->facts = {{"driver.version", "570.2"}};
  plan.steps = {step("one", {WriteFile{"/etc/one", "1"}})};
  std::string before = picture();
  Error e = refused();
  EXPECT_EQ(e.kind, ErrorKind::drifted);
  EXPECT_NE(e.why.find("was '580.1', is '570.2'"), std::string::npos);
  EXPECT_EQ(picture(), before);
}

TEST_F(ExecutorTest, DriftMadeByOurselvesDoesNotStopTheSecondRun) {
  options.may_drift = false;
  plan.facts_used = {{"file", "absent"}};
  world->facts = {{"file", "absent"}};
  plan.steps = {step("one", {WriteFile{"/etc/one", "1"}}),
                step("bad", {RunArgv{{"false"}, "", {}, 5}}, {"one"})};
  plan.steps[0].before = {{"exists", {"/etc/one"}}};
  EXPECT_EQ(apply().exit_code(), 1);
  world->facts = {{"file", "present"}};
  auto r = apply();
  EXPECT_EQ(state(r, "one"), StepState::satisfied);
}

TEST_F(ExecutorTest, SecondRunAtTheSameTimeIsRefusedWithTheHolder) {
  plan.steps = {step("one", {WriteFile{"/etc/one", "1"}})};
  std::filesystem::create_directories(root + "/opt/epready");
  auto lock = PrefixLock::take(root + "/opt/epready");
  ASSERT_TRUE(lock);
  EXPECT_NE(refused().text().find("process " + std::to_string(getpid())), std::string::npos);
}

TEST_F(ExecutorTest, MalformedPlansAreRefused) {
  plan.steps = {step("a", {}), step("a", {})};
  EXPECT_NE(refused().text().find("two steps"), std::string::npos);
  plan.steps = {step("a", {}, {"later"}), step("later", {})};
  EXPECT_NE(refused().text().find("does not come before"), std::string::npos);
  plan.steps = {step("../x", {})};
  EXPECT_NE(refused().text().find("sane id"), std::string::npos);
  plan.steps = {step("a", {})};
  plan.prefix = "/";
  EXPECT_NE(refused().text().find("sane prefix"), std::string::npos);
}

TEST_F(ExecutorTest, WhatBrokeOffInTheMiddleIsDoneAgainThoughFactsLookRight) {
  plan.steps = {step("s", {WriteFile{"/etc/first", "1"}, WriteFile{"/etc/second/x", "2"}})};
  plan.steps[0].before = plan.steps[0].after = {{"exists", {"/etc/first"}}};
  put("/etc/second", "a file where a folder is wanted");
  EXPECT_EQ(state(apply(), "s"), StepState::failed);
  std::filesystem::remove(root + "/etc/second");
  EXPECT_EQ(state(apply(), "s"), StepState::done);
  EXPECT_EQ(slurp(root + "/etc/second/x"), "2");
  EXPECT_EQ(state(apply(), "s"), StepState::satisfied);
}

TEST_F(ExecutorTest, ContainerLeavesHostStepsToTheHost) {
  world->host.container = "docker";
  plan.steps = {step("k", {WriteFile{"/etc/k", "k"}}), step("u", {WriteFile{"/etc/u", "u"}})};
  plan.steps[0].risk = Risk::kernel_options;
  auto r = apply();
  EXPECT_EQ(state(r, "k"), StepState::elsewhere);
  EXPECT_NE(reason(r, "k").find("host"), std::string::npos);
  EXPECT_EQ(state(r, "u"), StepState::done);
  EXPECT_EQ(r.exit_code(), 3);
}

TEST_F(ExecutorTest, WithoutRootRootStepsSaySo) {
  world->host.is_root = false;
  plan.steps = {step("r", {WriteFile{"/etc/r", "r"}})};
  plan.steps[0].needs_root = true;
  auto r = apply();
  EXPECT_EQ(state(r, "r"), StepState::elsewhere);
  EXPECT_NE(reason(r, "r").find("sudo epready apply --resume"), std::string::npos);
  world->host.has_sudo = false;
  r = apply();
  EXPECT_EQ(reason(r, "r").find("sudo"), std::string::npos);
  EXPECT_NE(reason(r, "r").find("as root: epready apply --resume"), std::string::npos);
}

// One call may bring what later steps want: they are asked again when their turn comes, and do nothing.
TEST_F(ExecutorTest, WhatAnEarlierStepBroughtIsNotDoneTwice) {
  Step first = step("first", {WriteFile{"/etc/a", "1", 0644}, WriteFile{"/etc/b", "2", 0644}});
  first.after = {{"content", {"/etc/a", "1"}}};
  Step second = step("second", {WriteFile{"/etc/b", "again", 0644}}, {"first"});
  second.before = second.after = {{"content", {"/etc/b", "2"}}};
  Step third = step("third", {WriteFile{"/etc/c", "3", 0644}}, {"first"});
  third.before = third.after = {{"content", {"/etc/c", "3"}}};
  plan.steps = {first, second, third};
  auto r = apply();
  EXPECT_EQ(state(r, "first"), StepState::done);
  EXPECT_EQ(state(r, "second"), StepState::satisfied);
  EXPECT_EQ(state(r, "third"), StepState::done);
  EXPECT_EQ(at("/etc/b"), "2");
}

TEST_F(ExecutorTest, ReadOnlyEtcFailsWithTheActThatHelps) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes everywhere; the lab tests a read-only /etc";
  std::filesystem::permissions(root + "/etc",
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  plan.steps = {step("r", {WriteFile{"/etc/r", "r"}})};
  auto r = apply();
  EXPECT_EQ(state(r, "r"), StepState::failed);
  std::filesystem::permissions(root + "/etc", std::filesystem::perms::owner_all);
}

// ---- reboot ----

class RebootTest : public ExecutorTest {
 public:
  RebootTest() {
    tool("systemctl", "echo \"$@\" >> " + dir + "/systemctl.log");
    Step option = step("option", {WriteFile{"/etc/modprobe.d/x.conf", "options x y=1\n"}});
    option.before = option.after = {{"exists", {"/etc/modprobe.d/x.conf"}}};
    option.risk = Risk::kernel_options;
    Step boot = step("boot", {Reboot{}}, {"option"});
    boot.before = boot.after = {{"exists", {"/live"}}};
    boot.risk = Risk::reboot;
    Step build = step("build", {WriteFile{"/etc/built", "b"}}, {"boot"});
    build.before = build.after = {{"exists", {"/etc/built"}}};
    plan.steps = {option, boot, build};
    // A step after the reboot runs on a running host only; the folder stands for one here.
    options.root = "/";
    plan.prefix = root + "/opt/epready";
    for (auto& s : plan.steps)
      for (auto& a : s.actions)
        if (auto* w = std::get_if<WriteFile>(&a)) w->path = root + w->path;
    plan.host_name = "gpu-lab";
    world->host.has_systemd = false;  // the resume unit would go to the real /etc
    tool("shutdown", "echo \"$@\" >> " + dir + "/shutdown.log");
  }
};

TEST_F(RebootTest, RebootsOnceEverythingElseIsDoneAndGoesOnAfterIt) {
  auto r = apply();
  EXPECT_EQ(state(r, "option"), StepState::done);
  EXPECT_EQ(state(r, "boot"), StepState::reboot);
  EXPECT_EQ(state(r, "build"), StepState::reboot);
  EXPECT_TRUE(r.reboot_begun);
  EXPECT_EQ(r.exit_code(), 4);
  EXPECT_EQ(slurp(dir + "/shutdown.log"), "-r now\n");
  put("/live", "");
  world->host.boot_id = "boot-2";
  r = apply();
  EXPECT_EQ(r.exit_code(), 0);
  EXPECT_EQ(state(r, "build"), StepState::done);
}

TEST_F(RebootTest, StillNotLiveAfterTheRebootIsAFindingNotALoop) {
  EXPECT_EQ(apply().exit_code(), 4);
  world->host.boot_id = "boot-2";
  auto r = apply();
  EXPECT_EQ(r.exit_code(), 1);
  EXPECT_EQ(state(r, "boot"), StepState::failed);
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].code, "not_live");
  EXPECT_EQ(slurp(dir + "/shutdown.log"), "-r now\n");  // one reboot, not two
  EXPECT_EQ(apply().exit_code(), 1);
}

TEST_F(RebootTest, AChangeSinceThenEarnsAnotherReboot) {
  EXPECT_EQ(apply().exit_code(), 4);
  world->host.boot_id = "boot-2";
  EXPECT_EQ(apply().exit_code(), 1);
  std::filesystem::remove(root + "/etc/modprobe.d/x.conf");  // the option step has something to do again
  auto r = apply();
  EXPECT_EQ(r.exit_code(), 4);
  EXPECT_EQ(slurp(dir + "/shutdown.log"), "-r now\n-r now\n");
}

TEST_F(RebootTest, RefusedRebootIsLeftToTheUserAndFoundLater) {
  options.yes = {Risk::kernel_options};
  auto r = apply();
  EXPECT_EQ(r.exit_code(), 4);
  EXPECT_FALSE(r.reboot_begun);
  EXPECT_FALSE(std::filesystem::exists(dir + "/shutdown.log"));
  put("/live", "");
  world->host.boot_id = "boot-2";
  EXPECT_EQ(apply().exit_code(), 0);
}

TEST_F(ExecutorTest, AnImageHasNoRebootButTheRestIsDone) {
  Step boot = step("boot", {Reboot{}});
  boot.risk = Risk::reboot;
  plan.steps = {step("one", {WriteFile{"/etc/one", "1"}}), boot};
  auto r = apply();
  EXPECT_EQ(state(r, "boot"), StepState::elsewhere);
  EXPECT_EQ(state(r, "one"), StepState::done);
}

}  // namespace
}  // namespace ep
