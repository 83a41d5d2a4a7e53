// Undo is the identity on every file we touched; what people changed since is theirs.
#include "apply/undo.h"

#include <rapidcheck.h>

#include "apply/journal.h"
#include "apply/test_bench.h"

namespace ep {
namespace {

using test::Bench;
using test::spill;

class UndoTest : public Bench {
 public:
  std::string reasons(const UndoReport& r) {
    std::string out;
    for (const auto& i : r.items) out += i.what + " [" + i.reason + "]\n";
    return out;
  }
};

TEST_F(UndoTest, PutsFilesBackByteForByteWithModeAndLinks) {
  put("/etc/a", std::string("old\0bytes", 9), 0604);
  std::filesystem::create_symlink("/usr/local/cuda-12.8", root + "/etc/cuda");
  std::string before = picture();
  plan.steps = {step("s", {WriteFile{"/etc/a", "new"}, WriteFile{"/etc/deep/er/b", "b"},
                           MakeLink{"/etc/cuda", "/usr/local/cuda-12.9"}, WriteFile{"/etc/a", "newer"},
                           RemoveFile{"/etc/a"}, WriteFile{"/etc/a", "last"}})};
  EXPECT_EQ(apply().exit_code(), 0);
  EXPECT_NE(picture(), before);
  auto dry = undo(true);
  EXPECT_EQ(at("/etc/a"), "last");
  EXPECT_FALSE(dry.items.empty());
  auto u = undo();
  EXPECT_EQ(u.exit_code(), 0) << reasons(u);
  EXPECT_EQ(picture(), before);
}

TEST_F(UndoTest, FilesChangedByHandStay) {
  put("/etc/a", "old");
  plan.steps = {step("s", {WriteFile{"/etc/a", "ours"}, WriteFile{"/etc/b", "ours"}})};
  apply();
  put("/etc/a", "theirs");
  auto u = undo();
  EXPECT_EQ(u.exit_code(), 3);
  EXPECT_EQ(at("/etc/a"), "theirs");
  EXPECT_FALSE(std::filesystem::exists(root + "/etc/b"));
  EXPECT_NE(reasons(u).find("changed by hand"), std::string::npos);
  // The original is still to be had, since somebody may want it.
  EXPECT_TRUE(std::filesystem::exists(root + "/opt/epready/state/originals"));
}

TEST_F(UndoTest, ADryRunSaysWhatWouldReallyBeDone) {
  put("/etc/a", "old");
  plan.steps = {step("s", {WriteFile{"/etc/a", "new"}, WriteFile{"/etc/b", "new"}})};
  apply();
  put("/etc/a", "mine");
  const std::string before = picture("/etc");
  const auto said = [this](bool dry) {
    std::string out;
    for (const auto& i : undo(dry).items) out += i.what + "|" + i.reason + "\n";
    return out;
  };
  const std::string would = said(true);
  EXPECT_EQ(picture("/etc"), before);
  EXPECT_NE(would.find("/etc/a|changed by hand since"), std::string::npos) << would;
  EXPECT_NE(would.find("remove /etc/b|"), std::string::npos) << would;
  EXPECT_NE(would.find("remove /opt/epready but for state and log|"), std::string::npos) << would;
  const std::string did = said(false);
  EXPECT_TRUE(std::filesystem::exists(root + "/opt/epready/state")) << did;
  put("/etc/a", "new");  // the hand's change is gone: the same command takes the rest
  EXPECT_EQ(undo().exit_code(), 0);
  EXPECT_EQ(at("/etc/a"), "old");
  EXPECT_FALSE(std::filesystem::exists(root + "/opt/epready"));
}

TEST_F(UndoTest, AHandChangeBetweenTwoRunsIsWhatComesBack) {
  put("/etc/a", "old");
  plan.steps = {step("s", {WriteFile{"/etc/a", "first"}})};
  apply();
  put("/etc/a", "theirs");
  plan.steps = {step("s", {WriteFile{"/etc/a", "second"}})};
  apply();
  auto u = undo();
  EXPECT_EQ(at("/etc/a"), "theirs");
  EXPECT_EQ(u.exit_code(), 0) << reasons(u);
}

TEST_F(UndoTest, WhatWasInThePrefixBeforeStays) {
  put("/opt/epready/mine", "precious");
  plan.steps = {step("s", {WriteFile{"sub/x", "x"}})};
  apply();
  EXPECT_EQ(undo().exit_code(), 0);
  EXPECT_EQ(at("/opt/epready/mine"), "precious");
  EXPECT_FALSE(std::filesystem::exists(root + "/opt/epready/sub"));
  EXPECT_FALSE(std::filesystem::exists(root + "/opt/epready/state"));
}

TEST_F(UndoTest, FoldersOthersUseByNowStay) {
  plan.steps = {step("s", {WriteFile{"/etc/new/ours", "x"}})};
  apply();
  put("/etc/new/theirs", "y");
  EXPECT_EQ(undo().exit_code(), 0);
  EXPECT_EQ(at("/etc/new/theirs"), "y");
  EXPECT_FALSE(std::filesystem::exists(root + "/etc/new/ours"));
}

TEST_F(UndoTest, StepsWithTheirOwnWayBackRunIt) {
  plan.steps = {step("s", {RunArgv{{"touch", root + "/flag"}, "", {}, 5}})};
  plan.steps[0].undo = {RunArgv{{"rm", root + "/flag"}, "", {}, 5}};
  apply();
  EXPECT_TRUE(std::filesystem::exists(root + "/flag"));
  EXPECT_EQ(undo().exit_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(root + "/flag"));
}

TEST_F(UndoTest, NothingAppliedIsSaid) {
  auto progress = silent_progress();
  UndoOptions o;
  o.root = root;
  o.world = world.get();
  auto r = undo_prefix("/opt/epready", o, *progress);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().exit_code(), 3);
}

TEST_F(UndoTest, KernelOptionsWantConsentAndRefreshTheInitramfs) {
  put("/usr/sbin/update-initramfs", "", 0755);
  tool("update-initramfs", "echo run >> $EP_FAKE_ROOT/refreshed");
  plan.steps = {
      step("k", {MergeModuleOptions{"nvidia", {{"A", "1"}}, "/etc/modprobe.d/epready-nvidia.conf"}})};
  apply();
  auto progress = silent_progress();
  UndoOptions o;
  o.root = root;
  o.world = world.get();
  auto r = undo_prefix("/opt/epready", o, *progress);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->exit_code(), 3);
  EXPECT_TRUE(std::filesystem::exists(root + "/etc/modprobe.d/epready-nvidia.conf"));
  auto u = undo();
  EXPECT_TRUE(u.initramfs_refreshed);
  EXPECT_TRUE(u.reboot_advised);
  EXPECT_FALSE(std::filesystem::exists(root + "/etc/modprobe.d/epready-nvidia.conf"));
}

// Any sequence of file actions, in several runs, on any start: undo gives the start back.
TEST_F(UndoTest, UndoOfApplyIsTheIdentity) {
  rc::check("undo(apply(host)) = host", [this] {
    std::filesystem::remove_all(root);
    std::filesystem::create_directories(root + "/etc");
    const std::vector<std::string> paths = {"/etc/a", "/etc/b", "/etc/d/c", "/etc/d/e/f"};
    auto word = [] { return std::string(1, *rc::gen::inRange('a', 'e')); };
    for (const auto& p : paths) {
      int kind = *rc::gen::inRange(0, 3);
      if (kind == 1) put(p, word(), *rc::gen::element<mode_t>(0600, 0644, 0755));
      if (kind == 2) {
        std::filesystem::create_directories(std::filesystem::path(root + p).parent_path());
        std::filesystem::create_symlink(word(), root + p);
      }
    }
    std::string before = picture();
    for (int runs = *rc::gen::inRange(1, 4); runs > 0; --runs) {
      std::vector<Action> actions;
      for (int n = *rc::gen::inRange(0, 6); n > 0; --n) {
        std::string p = *rc::gen::elementOf(paths);
        switch (*rc::gen::inRange(0, 3)) {
          case 0:
            actions.push_back(WriteFile{p, word(), 0644});
            break;
          case 1:
            actions.push_back(RemoveFile{p});
            break;
          default:
            actions.push_back(MakeLink{p, word()});
        }
      }
      plan.steps = {step("s" + std::to_string(runs), std::move(actions))};
      RC_ASSERT(apply().exit_code() == 0);
    }
    auto u = undo();
    RC_ASSERT(u.exit_code() == 0);
    RC_ASSERT(picture() == before);
  });
}

}  // namespace
}  // namespace ep
