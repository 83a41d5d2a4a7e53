// What a second terminal sees of a run, and what the next run takes over from it.
#include <sys/stat.h>

#include <sstream>
#include <thread>

#include "apply/test_bench.h"

namespace ep {
namespace {

using test::slurp;
using test::spill;

class StatusTest : public test::Bench {};

// As `epready status` in another terminal: who works, where it stands, without disturbing it.
TEST_F(StatusTest, StatusBesideARunningApply) {
  plan.steps = {
      step("one", {WriteFile{"/etc/one", "1"}}),
      step("slow",
           {RunArgv{{"sh", "-c", "touch " + dir + "/begun; until [ -e " + dir + "/go ]; do sleep 0.01; done"},
                    "",
                    {},
                    120}},
           {"one"}),
      step("last", {WriteFile{"/etc/last", "l"}}, {"slow"})};
  Result<StatusReport> seen;
  bool undo_refused = false;
  std::thread user([&] {
    while (!std::filesystem::exists(dir + "/begun")) std::this_thread::yield();
    seen = read_status(plan.prefix, root);
    UndoOptions u;
    u.root = root;
    u.world = world.get();
    auto quiet = silent_progress();
    undo_refused = !undo_prefix(plan.prefix, u, *quiet);
    spill(dir + "/go", "");
  });
  EXPECT_EQ(apply().exit_code(), 0);
  user.join();
  ASSERT_TRUE(seen);
  EXPECT_NE(seen->running.find("process " + std::to_string(getpid())), std::string::npos) << seen->running;
  EXPECT_EQ(seen->ended, "");
  ASSERT_EQ(seen->steps.size(), 3u);
  EXPECT_EQ(seen->steps[0].state, StepState::done);
  EXPECT_EQ(seen->steps[1].state, StepState::running);
  EXPECT_NE(seen->steps[1].reason.find("action 1 (run)"), std::string::npos) << seen->steps[1].reason;
  EXPECT_EQ(seen->steps[2].state, StepState::not_run);
  EXPECT_TRUE(undo_refused);
  EXPECT_EQ(read_status(plan.prefix, root)->running, "");
}

TEST_F(StatusTest, ResumeGoesOnWithTheMirrorsAndTheFolderOfTheRunBefore) {
  tool("curl", "echo \"$@\" >> " + dir + "/asked; exit 7");
  plan.steps = {step("get", {Fetch{"https://vendor.example/x", std::string(64, 'a'), "x"}})};
  options.mirrors = {{"https://vendor.example/", "https://user:word@mirror.example/"}};
  EXPECT_EQ(apply().exit_code(), 1);
  options.mirrors.clear();
  options.resume = true;
  EXPECT_EQ(apply().exit_code(), 1);
  std::istringstream asked(slurp(dir + "/asked"));
  int calls = 0;
  for (std::string line; std::getline(asked, line); ++calls)
    EXPECT_NE(line.find("mirror.example/x"), std::string::npos) << line;
  EXPECT_GE(calls, 2);
  // The password is where only the owner reads.
  struct stat st {};
  ASSERT_EQ(stat((root + "/opt/epready/state/journal.jsonl").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 077, 0u);
  EXPECT_EQ(slurp(root + "/opt/epready/log/get.log").find("user:word"), std::string::npos);
}

}  // namespace
}  // namespace ep
