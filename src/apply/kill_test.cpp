// Killed at any journal point (before a record, with half of it written, after it), a second run converges to
// the same host, and undo, itself killed anywhere, gives the first host back.
#include <signal.h>
#include <sys/wait.h>

#include "apply/journal.h"
#include "apply/test_bench.h"
#include "base/digest.h"

namespace ep {
namespace {

using test::Bench;
using test::slurp;
using test::spill;

class KillTest : public Bench {
 public:
  KillTest() {
    put("/etc/x", "old", 0600);
    put("/etc/modprobe.d/nvidia.conf", "options nvidia A=0 B=1\n");
    put("/usr/sbin/update-initramfs", "", 0755);
    tool("update-initramfs", "cat $EP_FAKE_ROOT/etc/modprobe.d/*.conf > $EP_FAKE_ROOT/boot-image");
    put("/boot-image", "stale");
    spill(dir + "/src", "payload");
    Step files =
        step("files", {WriteFile{"/etc/x", "new"}, WriteFile{"/etc/deep/y", "y"}, MakeLink{"/etc/l", "x"}});
    files.before = files.after = {
        {"content", {"/etc/x", "new"}}, {"content", {"/etc/deep/y", "y"}}, {"exists", {"/etc/l"}}};
    Step load = step("load", {Fetch{"file://" + dir + "/src", sha256_hex("payload"), "dl/p"}});
    load.before = load.after = {{"content", {"/opt/epready/dl/p", "payload"}}};
    Step option = step("option",
                       {MergeModuleOptions{"nvidia", {{"A", "1"}}, "/etc/modprobe.d/epready-nvidia.conf"},
                        RefreshInitramfs{}},
                       {"files"});
    // True before the image is built, as on a host: what files say is no proof that the image was.
    option.before = option.after = {{"exists", {"/etc/modprobe.d/epready-nvidia.conf"}}};
    option.risk = Risk::kernel_options;
    plan.steps = {files, load, option};
    options.jobs = 1;  // the same order of journal points in every run
  }
  /// Runs `what` in a child that kills itself at journal point n (0: never). Returns true when it was killed.
  bool child(int n, const std::function<int()>& what, int* exit_code = nullptr) {
    pid_t pid = fork();
    if (pid == 0) {
      kill_at_journal_point(n);
      _exit(what());
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (exit_code) *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  /// The host without what differs from run to run: journal, logs.
  std::string result() const {
    std::string out, all = picture();
    for (auto line : lines(all))
      if (!contains(line, "/opt/epready/state/journal") && !contains(line, "/opt/epready/log/"))
        out += std::string(line) + "\n";
    return out;
  }
  void reset(const std::string& copy) {
    std::filesystem::remove_all(root);
    std::filesystem::copy(
        copy, root, std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  }
};

TEST_F(KillTest, ApplyConvergesFromEveryJournalPoint) {
  std::string start = dir + "/start";
  std::filesystem::copy(
      root, start, std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  int code = 0;
  ASSERT_FALSE(child(
      0, [&] { return apply().exit_code(); }, &code));
  ASSERT_EQ(code, 0);
  std::string wanted = result();
  int killed = 0;
  for (int n = 1; n < 500; ++n) {
    reset(start);
    if (!child(n, [&] { return apply().exit_code(); })) break;
    ++killed;
    child(
        0, [&] { return apply().exit_code(); }, &code);
    ASSERT_EQ(code, 0) << "after a kill at point " << n;
    ASSERT_EQ(result(), wanted) << "after a kill at point " << n;
  }
  std::printf("killed at %d journal points, converged from each\n", killed);
  EXPECT_GT(killed, 60);
}

TEST_F(KillTest, UndoAfterAKillAnywhereGivesTheFirstHostBack) {
  std::string start = dir + "/start";
  std::filesystem::copy(
      root, start, std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  // The stand-in image is rebuilt by undo; what is compared is /etc.
  auto first = [&] { return picture("/etc"); };
  std::string wanted = first();
  int code = 0, killed = 0;
  for (int n = 1; n < 500; n += 2) {
    reset(start);
    if (!child(n, [&] { return apply().exit_code(); })) break;
    ++killed;
    child(
        0,
        [&] {
          auto progress = silent_progress();
          UndoOptions o;
          o.root = root;
          o.world = world.get();
          o.yes = {Risk::packages, Risk::kernel_options};
          auto r = undo_prefix(plan.prefix, o, *progress);
          // Killed before the first whole record: nothing was applied, and that is said.
          return r ? r->exit_code() : r.error().kind == ErrorKind::absent ? 0 : 99;
        },
        &code);
    ASSERT_EQ(code, 0) << "undo after a kill at point " << n;
    ASSERT_EQ(first(), wanted) << "undo after a kill at point " << n;
  }
  EXPECT_GT(killed, 30);
}

TEST_F(KillTest, UndoKilledAnywhereConverges) {
  std::string start = dir + "/start", applied = dir + "/applied";
  auto copy = std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks;
  std::filesystem::copy(root, start, copy);
  std::string wanted = picture("/etc");
  ASSERT_EQ(apply().exit_code(), 0);
  std::filesystem::copy(root, applied, copy);
  int code = 0, killed = 0;
  for (int n = 1; n < 500; ++n) {
    reset(applied);
    if (!child(n, [&] { return undo().exit_code(); })) break;
    ++killed;
    child(
        0, [&] { return undo().exit_code(); }, &code);
    ASSERT_EQ(code, 0) << "after a kill at point " << n;
    ASSERT_EQ(picture("/etc"), wanted) << "after a kill at point " << n;
    ASSERT_FALSE(std::filesystem::exists(root + "/opt/epready")) << "after a kill at point " << n;
  }
  EXPECT_GT(killed, 10);
}

}  // namespace
}  // namespace ep
