// Comparison with MPI: finds mpirun and the peer program beside this one, runs it with the same shape, reads
// its lines. A peer that is not here or fails costs its numbers, never the run.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <map>
#include <sstream>

#include "cpu/cases.h"
#include "cpu/exchange.h"

namespace ep::engine::cpu {

namespace {

constexpr char kPeerProgram[] = "epready-engine-mpi-peer";
constexpr double kPeerLimitS = 120;

std::string own_folder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return ".";
  const std::string text(path, static_cast<size_t>(length));
  return text.substr(0, text.find_last_of('/'));
}

std::string find_in_path(const char* name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

struct Output {
  std::string out, error;
  bool good = false, interrupted = false;
};

/// While it lives, Ctrl-C and its like wait to be asked for, so that a child can be ended before we are.
class SignalsWait {
 public:
  SignalsWait() {
    sigemptyset(&mask_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&mask_, number);
    sigprocmask(SIG_BLOCK, &mask_, &old_);
  }
  ~SignalsWait() {
    while (one_came()) {  // a second one while the first was being obeyed
    }
    sigprocmask(SIG_SETMASK, &old_, nullptr);
  }
  const sigset_t& before() const { return old_; }
  bool one_came() const {
    const timespec now = {0, 0};
    return sigtimedwait(&mask_, nullptr, &now) > 0;
  }

 private:
  sigset_t mask_, old_;
};

/// Ends mpirun as it asks to be ended (it then ends its ranks), and for good when it does not go.
void end_child(pid_t pid) {
  kill(pid, SIGTERM);
  for (int i = 0; i < 40; ++i) {
    if (waitpid(pid, nullptr, WNOHANG) != 0) return;
    poll(nullptr, 0, 50);
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

[[noreturn]] void become(const std::vector<std::string>& arguments, int out, const SignalsWait& signals) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigprocmask(SIG_SETMASK, &signals.before(), nullptr);
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

/// Reads until the end of the stream. "" or why that did not come.
std::string read_to_end(int fd, double limit_s, const SignalsWait& signals, Output& result) {
  const int64_t limit = now_ns() + static_cast<int64_t>(limit_s * 1e9);
  while (now_ns() < limit) {
    if (signals.one_came()) {
      result.interrupted = true;
      return "interrupted";
    }
    pollfd wait = {fd, POLLIN, 0};
    if (poll(&wait, 1, 100) <= 0) continue;
    char buffer[4096];
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got <= 0) return got == 0 ? std::string() : std::string(std::strerror(errno));
    result.out.append(buffer, static_cast<size_t>(got));
  }
  return "no end within " + std::to_string(static_cast<int>(limit_s)) + " s";
}

/// ": the last line with words in it", or "".
std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t-=") != std::string::npos) last = ": " + line;
  }
  return last;
}

/// Runs a program to its end or the limit; stdout and stderr come back together.
Output run_child(const std::vector<std::string>& arguments, double limit_s) {
  Output result;
  int ends[2];
  result.error = pipe2(ends, O_CLOEXEC) == 0 ? "" : std::strerror(errno);
  if (!result.error.empty()) return result;
  const SignalsWait signals;
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) become(arguments, ends[1], signals);
  close(ends[1]);
  if (pid < 0)
    result.error = std::string("fork: ") + std::strerror(errno);
  else
    result.error = read_to_end(ends[0], limit_s, signals, result);
  close(ends[0]);
  if (pid > 0 && !result.error.empty()) end_child(pid);
  if (!result.error.empty()) return result;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  result.good = status == 0;
  if (!result.good)
    result.error = "mpirun ended with status " + std::to_string(WEXITSTATUS(status)) + last_line(result.out);
  return result;
}

std::vector<std::string> peer_arguments(const Options& options, const std::string& mpirun,
                                        const std::string& program) {
  const Shape& shape = options.shape;
  std::vector<std::string> out = {mpirun,
                                  "-np",
                                  std::to_string(shape.ranks),
                                  "--oversubscribe",
                                  "--bind-to",
                                  "none",
                                  program,
                                  "--num-tokens",
                                  std::to_string(shape.max_tokens),
                                  "--hidden",
                                  std::to_string(shape.hidden),
                                  "--num-experts",
                                  std::to_string(shape.experts),
                                  "--num-topk",
                                  std::to_string(shape.topk),
                                  "--dtype",
                                  name_of(shape.dtype),
                                  "--pattern",
                                  name_of(options.pattern),
                                  "--seed",
                                  std::to_string(options.seed),
                                  "--iters",
                                  std::to_string(options.iters),
                                  "--warmup",
                                  std::to_string(options.warmup)};
  if (options.weighted) out.push_back("--weighted");
  return out;
}

/// "name number number ..." lines.
std::map<std::string, std::vector<double>> number_lines(const std::string& text) {
  std::map<std::string, std::vector<double>> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::vector<double> numbers;
    words >> name;
    for (double value; words >> value;) numbers.push_back(value);
    if (words.eof() && !numbers.empty()) out[name] = numbers;
  }
  return out;
}

std::string why_not(const Options& options, const std::string& mpirun, const std::string& program) {
  if (access(program.c_str(), X_OK) != 0) {
    return std::string("not run: ") + kPeerProgram +
           " is not beside this program (built where Open MPI's "
           "development package is installed)";
  }
  if (mpirun.empty()) return "not run: no mpirun in PATH";
  const Budget budget = memory_budget(Backing::kMemfd);
  if (budget.bytes / 2 < worst_case_bytes(options.shape)) return "not run: packing needs twice the memory";
  return {};
}

}  // namespace

bool run_peers(const Options& options, BenchReport& report) {
  if (options.peers == "none" || report.phases.empty() || options.case_name == "ceiling") return true;
  const std::string mpirun = find_in_path("mpirun"), program = own_folder() + "/" + kPeerProgram;
  const auto fail = [&](const std::string& why) {
    PeerResult peer;
    peer.name = "mpi";
    peer.status = why;
    report.peers.push_back(peer);
    return true;
  };
  const std::string reason = why_not(options, mpirun, program);
  if (!reason.empty()) return fail(reason);
  std::cerr << kTool << " " << options.case_name << ": comparing with MPI\n";
  const Output output = run_child(peer_arguments(options, mpirun, program), kPeerLimitS);
  if (output.interrupted) return !fail("interrupted");
  if (!output.good) return fail("failed: " + output.error);
  auto lines = number_lines(output.out);
  if (lines["wrong"].empty() || lines["checked"].empty()) return fail("failed: no result in its output");
  if (lines["wrong"][0] != 0) return fail("failed: its data was wrong");
  const auto add = [&](const char* name, const char* phase, const char* line) {
    for (const PhaseResult& ours : report.phases) {
      if (ours.name != phase || lines[line].empty()) continue;
      PeerResult peer;
      peer.name = name;
      peer.phase = phase;
      peer.time_us = summarize(lines[line]);
      peer.ratio = ours.time_us.median > 0 ? peer.time_us.median / ours.time_us.median : 0;
      report.peers.push_back(peer);
    }
  };
  add("mpi alltoallv with packing", "dispatch", "dispatch");
  add("mpi alltoallv alone", "dispatch", "alltoallv");
  add("mpi alltoallv with sum", "combine", "combine");
  return true;
}

}  // namespace ep::engine::cpu
