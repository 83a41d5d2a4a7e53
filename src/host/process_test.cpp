// The process runner on real children: limits, groups, pipes that outlive the program, odd output.
#include "host/process.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <thread>

#include "base/text.h"

namespace ep {
namespace {

Spawn sh(const std::string& script) {
  Spawn s;
  s.argv = {"sh", "-c", script};
  s.env = base_environment();
  return s;
}

bool gone(pid_t pid) {
  return kill(pid, 0) != 0;
}

// The end of a killed grandchild may lag behind its group's signal; bounded look, no fixed wait.
bool becomes_gone(pid_t pid) {
  for (int i = 0; i < 2000 && !gone(pid); ++i) {
    adopted_children();
    usleep(1000);
  }
  return gone(pid);
}

TEST(Process, KeepsStreamsApartAndInLines) {
  std::vector<std::string> out, err;
  Spawn s = sh("echo one; echo two >&2; printf three; exit 3");
  s.on_out = [&](std::string_view l) { out.emplace_back(l); };
  s.on_err = [&](std::string_view l) { err.emplace_back(l); };
  auto r = run(s);
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r->exit_code, 3);
  EXPECT_EQ(r->signal, 0);
  EXPECT_FALSE(r->ok());
  EXPECT_EQ(r->how(60), "exit 3");
  EXPECT_EQ(out, (std::vector<std::string>{"one", "three"}));
  EXPECT_EQ(err, (std::vector<std::string>{"two"}));
  EXPECT_EQ(r->out, "one\nthree");
  EXPECT_EQ(r->err, "two\n");
  EXPECT_GT(r->max_rss_bytes, 100000u);
}

TEST(Process, GivesExactlyTheEnvironmentAndFolder) {
  Spawn s;
  s.argv = {"/usr/bin/env"};
  s.env = {"ONLY=this", "PATH=/usr/bin:/bin"};
  auto r = run(s);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->out, "ONLY=this\nPATH=/usr/bin:/bin\n");
  s = sh("pwd; cat; echo end-of-input");
  s.cwd = "/usr";
  r = run(s);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->out, "/usr\nend-of-input\n");
}

TEST(Process, MissingThingsAreErrorsBeforeTheStart) {
  Spawn s = sh("true");
  s.argv = {"no-such-program-here"};
  EXPECT_EQ(run(s).error().kind, ErrorKind::absent);
  s.argv = {"/no/such/program"};
  EXPECT_EQ(run(s).error().kind, ErrorKind::absent);
  s.argv = {"/etc/passwd"};
  EXPECT_EQ(run(s).error().kind, ErrorKind::unreadable);
  s = sh("true");
  s.cwd = "/no/such/folder";
  EXPECT_EQ(run(s).error().kind, ErrorKind::absent);
  EXPECT_EQ(run(Spawn{}).error().kind, ErrorKind::internal);
}

TEST(Process, SignalIsNotAnExitCode) {
  auto r = run(sh("kill -SEGV $$"));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->signal, SIGSEGV);
  EXPECT_EQ(r->exit_code, -1);
  EXPECT_TRUE(contains(r->how(1), "signal 11"));
}

TEST(Process, TheEndIsTheProcessesEndNotThePipes) {
  Spawn s = sh("sleep 30 & echo $!");
  s.limit_s = 20;
  auto r = run(s);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->exit_code, 0);
  EXPECT_LT(r->wall_s, 5);
  pid_t daemon = pid_t(*parse_int(trim(r->out)));
  EXPECT_FALSE(gone(daemon)) << "a daemon may stay";
  kill(daemon, SIGKILL);
}

TEST(Process, EndGroupTakesWhatWasLeft) {
  become_subreaper();
  Spawn s = sh("sleep 30 & echo $!");
  s.end_group = true;
  auto r = run(s);
  ASSERT_TRUE(r);
  EXPECT_TRUE(becomes_gone(pid_t(*parse_int(trim(r->out)))));
}

TEST(Process, LimitEndsTheWholeGroup) {
  become_subreaper();
  Spawn s = sh("sleep 30 & echo $!; sleep 30 | cat");
  s.limit_s = 0.3;
  s.grace_s = 5;
  auto r = run(s);
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->timed_out);
  EXPECT_EQ(r->signal, SIGTERM);
  EXPECT_LT(r->wall_s, 4);
  EXPECT_EQ(r->how(0.3), "stopped at its limit of 0.3 s");
  EXPECT_TRUE(becomes_gone(pid_t(*parse_int(trim(r->out)))));
}

TEST(Process, IgnoredTermIsFollowedByKill) {
  Spawn s = sh("trap '' TERM; echo ready; while :; do sleep 1; done");
  s.limit_s = 0.3;
  s.grace_s = 0.3;
  auto r = run(s);
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->timed_out);
  EXPECT_EQ(r->signal, SIGKILL);
  EXPECT_GE(r->wall_s, 0.55);
  EXPECT_LT(r->wall_s, 5);
}

TEST(Process, TermGivesTheChildItsLastWords) {
  Spawn s = sh("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done");
  s.limit_s = 0.3;
  auto r = run(s);
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->timed_out);
  EXPECT_EQ(r->exit_code, 7);
  EXPECT_EQ(r->out, "ready\nbye\n");
}

TEST(Process, InterruptFlagEndsIt) {
  std::atomic<bool> flag{false};
  Spawn s = sh("echo up; sleep 30");
  s.interrupt = &flag;
  s.on_out = [&](std::string_view) { flag = true; };
  auto r = run(s);
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->interrupted);
  EXPECT_FALSE(r->timed_out);
  EXPECT_LT(r->wall_s, 5);
}

TEST(Process, TenMegabytesWithoutANewline) {
  Spawn s = sh("head -c 10000000 /dev/zero | tr '\\0' x");
  size_t seen = 0, longest = 0;
  s.on_out = [&](std::string_view l) {
    seen += l.size();
    longest = std::max(longest, l.size());
  };
  s.max_out_bytes = 1000;
  auto r = run(s);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->exit_code, 0);
  EXPECT_EQ(seen, 10000000u);
  EXPECT_LE(longest, s.max_line_bytes);
  EXPECT_EQ(r->out.size(), 1000u);
  EXPECT_TRUE(r->out_cut);
  EXPECT_FALSE(r->err_cut);
}

TEST(Process, SurvivesInterruptedSystemCalls) {
  struct sigaction action {
  }, old{};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, &old);
  itimerval timer{{0, 2000}, {0, 2000}}, off{};
  setitimer(ITIMER_REAL, &timer, nullptr);
  auto r = run(sh("i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done; sleep 0.1"));
  setitimer(ITIMER_REAL, &off, nullptr);
  sigaction(SIGALRM, &old, nullptr);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->exit_code, 0);
  EXPECT_EQ(lines(r->out).size(), 2000u);
  EXPECT_EQ(lines(r->out).back(), "1999");
}

TEST(Process, ManySideBySide) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5; ++k) {
        auto r = run(sh("echo " + std::to_string(i)));
        good += r && r->out == std::to_string(i) + "\n";
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(good, 40);
  EXPECT_TRUE(adopted_children().empty());
}

TEST(Process, FindsProgramsInAbsoluteFoldersOnly) {
  EXPECT_EQ(find_program("sh", "/nowhere:/bin"), "/bin/sh");
  EXPECT_EQ(find_program("sh", ".:bin"), "");
  EXPECT_EQ(find_program("passwd", "/etc"), "") << "not executable";
}

TEST(Process, EnvironmentHasEachNameOnce) {
  std::vector<std::string> env{"A=1", "AB=2"};
  set_variable(env, "A", "3");
  set_variable(env, "B", "");
  EXPECT_EQ(env, (std::vector<std::string>{"A=3", "AB=2", "B="}));
  auto base = base_environment();
  EXPECT_EQ(std::count(base.begin(), base.end(), "NCCL_NVLS_ENABLE=0"), 1);
}

}  // namespace
}  // namespace ep
