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
  bool good = false;
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

/// Runs a program to its end or the limit; stdout and stderr come back together.
Output run_child(const std::vector<std::string>& arguments, double limit_s) {
  Output result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {{}, std::strerror(errno), false};
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return {{}, std::string("fork: ") + std::strerror(errno), false};
  }
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    std::vector<char*> argv;
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  const int64_t limit = now_ns() + static_cast<int64_t>(limit_s * 1e9);
  for (;;) {
    const int64_t left_ms = (limit - now_ns()) / 1'000'000;
    pollfd wait = {ends[0], POLLIN, 0};
    const int ready = left_ms > 0 ? poll(&wait, 1, static_cast<int>(left_ms)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    char buffer[4096];
    const ssize_t got = ready > 0 ? read(ends[0], buffer, sizeof buffer) : -1;
    if (ready > 0 && got == 0) break;
    if (got <= 0) {
      close(ends[0]);
      end_child(pid);
      result.error = "no end within " + std::to_string(static_cast<int>(limit_s)) + " s";
      return result;
    }
    result.out.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  result.good = status == 0;
  if (!result.good) result.error = "mpirun ended with status " + std::to_string(WEXITSTATUS(status));
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

void run_peers(const Options& options, BenchReport& report) {
  if (options.peers == "none" || report.phases.empty() || options.case_name == "ceiling") return;
  const std::string mpirun = find_in_path("mpirun"), program = own_folder() + "/" + kPeerProgram;
  const auto fail = [&](const std::string& why) {
    PeerResult peer;
    peer.name = "mpi";
    peer.status = why;
    report.peers.push_back(peer);
  };
  const std::string reason = why_not(options, mpirun, program);
  if (!reason.empty()) return fail(reason);
  const Output output = run_child(peer_arguments(options, mpirun, program), kPeerLimitS);
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
}

}  // namespace ep::engine::cpu
