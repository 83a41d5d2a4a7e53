// The program as a whole: exit codes, JSON, faults from outside, and what it leaves behind.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "cpu/world.h"

namespace ep::engine::cpu {
namespace {

struct Result {
  int exit = -1;
  std::string out, error;
};

/// A started program with its output on pipes.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments, const char* program = EP_ENGINE_PROGRAM) {
    int out[2], error[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0) std::abort();
    arguments.insert(arguments.begin(), program);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      dup2(error[1], STDERR_FILENO);
      std::vector<char*> argv;
      for (auto& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(out[1]);
    close(error[1]);
    out_ = out[0];
    error_ = error[0];
  }
  pid_t pid() const { return pid_; }
  Result end() {
    Result result;
    read_all(out_, result.out);
    read_all(error_, result.error);
    int status = 0;
    waitpid(pid_, &status, 0);
    result.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
  }

 private:
  static void read_all(int fd, std::string& text) {
    char buffer[4096];
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(got));
    close(fd);
  }
  pid_t pid_;
  int out_ = -1, error_ = -1;
};

Result run(std::vector<std::string> arguments) {
  return Program(std::move(arguments)).end();
}

std::vector<std::string> small(std::vector<std::string> more) {
  std::vector<std::string> out = {"bench", "--num-tokens", "32", "--hidden", "512", "--num-experts",
                                  "32",    "--iters",      "3",  "--warmup", "1",   "--peers",
                                  "none"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

/// True when the whole text is one JSON value. Enough of a reader to refuse a missing comma or quote.
class JsonReader {
 public:
  static bool valid(const std::string& text) {
    JsonReader reader(text);
    const bool good = reader.value();
    reader.space();
    return good && reader.at_ == text.size();
  }

 private:
  explicit JsonReader(const std::string& text) : text_(text) {}
  void space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool eat(char c) {
    space();
    return at_ < text_.size() && text_[at_] == c && ++at_;
  }
  bool string() {
    if (!eat('"')) return false;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return false;
      if (text_[at_] == '\\') ++at_;
    }
    return eat('"');
  }
  bool list(char close, bool keys) {
    if (eat(close)) return true;
    do {
      if (keys && (!string() || !eat(':'))) return false;
      if (!value()) return false;
    } while (eat(','));
    return eat(close);
  }
  bool value() {
    space();
    if (at_ >= text_.size()) return false;
    if (text_[at_] == '"') return string();
    if (eat('{')) return list('}', true);
    if (eat('[')) return list(']', false);
    for (const char* word : {"true", "false", "null"}) {
      if (text_.compare(at_, std::strlen(word), word) == 0) return at_ += std::strlen(word), true;
    }
    char* end = nullptr;
    std::strtod(text_.c_str() + at_, &end);
    const size_t next = static_cast<size_t>(end - text_.c_str());
    return next > at_ ? (at_ = next, true) : false;
  }
  const std::string& text_;
  size_t at_ = 0;
};

/// The value after "key": as text, first occurrence.
std::string field(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\": ");
  if (at == std::string::npos) return "absent";
  const size_t begin = at + key.size() + 4;
  return json.substr(begin, json.find_first_of(",\n", begin) - begin);
}

std::vector<std::string> shared_memory_names() {
  std::vector<std::string> names;
  if (DIR* folder = opendir("/dev/shm")) {
    while (const dirent* entry = readdir(folder)) {
      if (std::strncmp(entry->d_name, "epready", 7) == 0) names.push_back(entry->d_name);
    }
    closedir(folder);
  }
  return names;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  DIR* folder = opendir("/proc");
  while (const dirent* entry = readdir(folder)) {
    std::ifstream file(std::string("/proc/") + entry->d_name + "/stat");
    std::string stat;
    if (!std::isdigit(static_cast<unsigned char>(entry->d_name[0])) || !std::getline(file, stat)) continue;
    int of = 0;
    char state = 0;
    std::sscanf(stat.c_str() + stat.rfind(')') + 1, " %c %d", &state, &of);
    if (of == parent && state != 'Z') out.push_back(std::atoi(entry->d_name));
  }
  closedir(folder);
  return out;
}

TEST(Program, BenchJsonHoldsTheContract) {
  const Result result = run(small({"--json", "--dtype", "fp8"}));
  EXPECT_EQ(result.exit, 0) << result.error;
  ASSERT_TRUE(JsonReader::valid(result.out)) << result.out;
  EXPECT_EQ(field(result.out, "schema"), "\"epready.engine.bench/1\"");
  EXPECT_EQ(field(result.out, "verdict"), "\"PASS\"");
  EXPECT_EQ(field(result.out, "mismatches"), "0");
  EXPECT_EQ(field(result.out, "scaled_down"), "null");
  EXPECT_EQ(field(result.out, "failure"), "null");
  EXPECT_GT(std::stoll(field(result.out, "rows_checked")), 4 * 32 * 4);
  EXPECT_GT(std::stod(field(result.out, "gbps")), 0);
  EXPECT_GT(std::stod(field(result.out, "ceiling_share")), 0);
  for (const char* name : {"\"dispatch\"", "\"combine\"", "\"roundtrip\""}) {
    EXPECT_NE(result.out.find(name), std::string::npos);
  }
}

TEST(Program, EveryCaseIsListedAndRuns) {
  const Result list = run({"--list"});
  EXPECT_EQ(list.exit, 0);
  for (const char* name : {"bench", "dispatch", "combine", "roundtrip", "check", "ceiling"}) {
    EXPECT_NE(list.out.find(std::string("  ") + name), std::string::npos);
    if (std::strcmp(name, "check") == 0) continue;
    std::vector<std::string> arguments = small({});
    arguments[0] = name;
    const Result result = run(arguments);
    EXPECT_EQ(result.exit, 0) << name << result.error;
    EXPECT_NE(result.out.find("# verdict PASS"), std::string::npos) << result.out;
  }
}

TEST(Program, CheckPassesAndSeesCorruption) {
  const Result good = run({"check", "--json"});
  EXPECT_EQ(good.exit, 0) << good.out;
  EXPECT_TRUE(JsonReader::valid(good.out));
  for (const char* fault : {"corrupt:1:dispatch", "corrupt:1:combine"}) {
    const Result check = run({"check", "--fault", fault});
    EXPECT_EQ(check.exit, 1) << fault;
    EXPECT_NE(check.out.find("# verdict FAIL"), std::string::npos);
    const Result bench = run(small({"--fault", fault, "--json"}));
    EXPECT_EQ(bench.exit, 1) << fault;
    EXPECT_EQ(field(bench.out, "verdict"), "\"FAIL\"");
    EXPECT_NE(field(bench.out, "mismatches"), "0");
    EXPECT_NE(field(bench.out, "first_mismatch"), "null");
  }
}

TEST(Program, EveryPatternDtypeAndBackingRuns) {
  for (const char* pattern : {"uniform", "hot", "masked", "one-rank", "uneven", "zero", "all-zero"}) {
    for (const char* dtype : {"bf16", "fp8"}) {
      const Result result = run(
          small({"--pattern", pattern, "--dtype", dtype, "--shm", "posix", "--weighted", "--threads", "2"}));
      EXPECT_EQ(result.exit, 0) << pattern << " " << dtype << result.out << result.error;
      EXPECT_NE(result.out.find("# verdict PASS"), std::string::npos) << result.out;
    }
  }
  EXPECT_EQ(shared_memory_names(), std::vector<std::string>{});
}

TEST(Program, UsageErrorsNameTheNearest) {
  const auto expect = [](std::vector<std::string> arguments, const char* text) {
    const Result result = run(std::move(arguments));
    EXPECT_EQ(result.exit, 2) << text;
    EXPECT_NE(result.error.find(text), std::string::npos) << result.error;
    EXPECT_EQ(result.out, "");
  };
  expect({"bench", "--num-tokns", "4"}, "did you mean --num-tokens?");
  expect({"bnch"}, "did you mean bench?");
  expect({}, "which case?");
  expect({"bench", "check"}, "one case at a time");
  expect({"bench", "--ranks", "four"}, "expected a whole number from 1 to 64");
  expect({"bench", "--ranks", "99999999999999"}, "expected a whole number");
  expect({"bench", "--dtype", "int4"}, "expected bf16 or fp8");
  expect({"bench", "--hidden"}, "--hidden needs a value");
  expect({"bench", "--json=yes"}, "--json takes no value");
  expect({"bench", "--hidden=100"}, "not a multiple of 8");
  expect({"bench", "--num-topk", "16", "--num-experts", "4"}, "more than --num-experts 4");
  expect({"bench", "--fault", "die:7:setup"}, "there are 4");
  expect({"bench", "--fault", "die:1:lunch"}, "one of these phases");
}

TEST(Program, ScalesDownAndSaysSoOrSaysWhyNot) {
  const Result result = run({"bench", "--num-tokens", "4096", "--hidden", "1024", "--iters", "1", "--warmup",
                             "0", "--peers", "none", "--memory-limit-mb", "100", "--json"});
  EXPECT_EQ(result.exit, 0) << result.error;
  EXPECT_EQ(field(result.out, "requested_tokens"), "4096");
  EXPECT_NE(result.out.find("--memory-limit-mb allows 100 MB"), std::string::npos) << result.out;
  EXPECT_LT(std::stoi(field(result.out, "num_tokens")), 4096);
  EXPECT_LE(std::stoll(field(result.out, "worst_case_bytes")), 100'000'000);
  const Result none = run({"bench", "--memory-limit-mb", "1"});
  EXPECT_EQ(none.exit, 3);
  EXPECT_NE(none.error.find("not even one token"), std::string::npos);
  EXPECT_NE(none.error.find("next:"), std::string::npos);
}

TEST(Program, MemoryStaysWithinATenthOfTheWorstCase) {
  const Result result = run({"bench", "--num-tokens", "512", "--hidden", "7168", "--iters", "2", "--warmup",
                             "0", "--peers", "none", "--min-share", "0", "--json"});
  ASSERT_EQ(result.exit, 0) << result.error;
  const double used = std::stod(field(result.out, "memory_bytes"));
  const double worst = std::stod(field(result.out, "worst_case_bytes"));
#if defined(__SANITIZE_ADDRESS__)
  std::printf("skipped: sanitizers take memory of their own (%.0f of %.0f)\n", used, worst);
#else
  EXPECT_GT(used, worst * 0.5);
  EXPECT_LT(used, worst * 1.1);
#endif
}

TEST(Program, FaultsEndTheRunInTimeAndLeaveNothing) {
  for (const char* kind : {"die", "hang"}) {
    for (const char* phase :
         {"setup", "ceiling", "layout", "dispatch", "expert", "combine", "verify", "done"}) {
      const int64_t begin = now_ns();
      const Result result = run(small(
          {"--fault", std::string(kind) + ":2:" + phase, "--timeout-s", "0.4", "--shm", "posix", "--json"}));
      EXPECT_EQ(result.exit, 1) << kind << " " << phase;
      EXPECT_LT(now_ns() - begin, 30'000'000'000);
      EXPECT_TRUE(JsonReader::valid(result.out));
      EXPECT_EQ(field(result.out, "verdict"), "\"FAIL\"");
      EXPECT_EQ(field(result.out, "rank"), "2") << result.out;
      EXPECT_EQ(field(result.out, "phase"), std::string("\"") + phase + "\"");
      EXPECT_NE(result.error.find("2"), std::string::npos);
    }
  }
  EXPECT_EQ(shared_memory_names(), std::vector<std::string>{});
}

/// Starts a run that cannot end by itself and waits until its ranks are there.
Program start_endless(std::vector<pid_t>& ranks) {
  Program program(small({"--fault", "hang:1:combine", "--timeout-s", "600", "--shm", "posix"}));
  for (const int64_t limit = now_ns() + 20'000'000'000; ranks.size() < 4 && now_ns() < limit;) {
    ranks = children_of(program.pid());
    poll(nullptr, 0, 5);
  }
  EXPECT_EQ(ranks.size(), 4u);
  return program;
}

/// True when the process is gone within the limit.
bool gone(pid_t pid) {
  for (const int64_t limit = now_ns() + 10'000'000'000; now_ns() < limit; poll(nullptr, 0, 5)) {
    if (kill(pid, 0) != 0) return true;
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat;
    if (!std::getline(file, stat) || stat.find(") Z ") != std::string::npos) return true;
  }
  return false;
}

TEST(Program, InterruptIsExitFiveAndNoRankStays) {
  for (const int number : {SIGINT, SIGTERM}) {
    std::vector<pid_t> ranks;
    Program program = start_endless(ranks);
    kill(program.pid(), number);
    const Result result = program.end();
    EXPECT_EQ(result.exit, 5) << result.error;
    EXPECT_NE(result.error.find("interrupted"), std::string::npos);
    for (const pid_t rank : ranks) EXPECT_TRUE(gone(rank));
  }
  EXPECT_EQ(shared_memory_names(), std::vector<std::string>{});
}

#if defined(EP_ENGINE_HAS_MPI)

/// A folder with a script named mpirun, first in PATH while it lives.
class FakeMpirun {
 public:
  explicit FakeMpirun(const std::string& script) : path_(std::getenv("PATH")) {
    char folder[] = "/tmp/ep_engine_test_XXXXXX";
    if (mkdtemp(folder) == nullptr) std::abort();
    folder_ = folder;
    std::ofstream(folder_ + "/mpirun") << "#!/bin/sh\n" << script;
    chmod((folder_ + "/mpirun").c_str(), 0755);
    setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
  }
  ~FakeMpirun() {
    setenv("PATH", path_.c_str(), 1);
    unlink((folder_ + "/mpirun").c_str());
    rmdir(folder_.c_str());
  }

 private:
  std::string path_, folder_;
};

std::vector<std::string> small_with_peer() {
  auto arguments = small({"--json"});
  *std::find(arguments.begin(), arguments.end(), "none") = "mpi";
  return arguments;
}

TEST(Program, APeerThatFailsCostsItsNumbersAndSaysWhy) {
  const auto status = [](const char* script) {
    const FakeMpirun fake(script);
    const Result result = run(small_with_peer());
    EXPECT_EQ(result.exit, 0);
    EXPECT_TRUE(JsonReader::valid(result.out));
    return field(result.out, "status");
  };
  EXPECT_EQ(status("echo all is lost\nexit 3\n"), "\"failed: mpirun ended with status 3: all is lost\"");
  EXPECT_EQ(status("echo dispatch 1 2 3\n"), "\"failed: no result in its output\"");
  EXPECT_EQ(status("echo checked 9\necho wrong 1\n"), "\"failed: its data was wrong\"");
}

TEST(Program, InterruptEndsTheComparisonToo) {
  const FakeMpirun fake("exec sleep 600\n");
  Program program(small_with_peer());
  std::vector<pid_t> peer;
  for (const int64_t limit = now_ns() + 60'000'000'000; peer.empty() && now_ns() < limit;
       poll(nullptr, 0, 5)) {
    for (const pid_t child : children_of(program.pid())) {
      std::ifstream file("/proc/" + std::to_string(child) + "/comm");
      std::string name;
      if (std::getline(file, name) && name == "sleep") peer.push_back(child);
    }
  }
  ASSERT_EQ(peer.size(), 1u);
  kill(program.pid(), SIGINT);
  const Result result = program.end();
  EXPECT_EQ(result.exit, 5) << result.error;
  EXPECT_TRUE(JsonReader::valid(result.out));
  EXPECT_NE(result.out.find("\"interrupted\""), std::string::npos);
  EXPECT_TRUE(gone(peer[0]));
}

#endif

TEST(Program, RanksDoNotOutliveAKilledParent) {
  std::vector<pid_t> ranks;
  Program program = start_endless(ranks);
  kill(program.pid(), SIGKILL);
  for (const pid_t rank : ranks) EXPECT_TRUE(gone(rank));
  EXPECT_EQ(program.end().exit, 128 + SIGKILL);
  EXPECT_EQ(shared_memory_names(), std::vector<std::string>{});
}

TEST(Program, MpiPeerMovesTheSameData) {
#if defined(EP_ENGINE_HAS_MPI)
  auto arguments = small_with_peer();
  for (const char* more : {"--dtype", "fp8", "--pattern", "masked", "--weighted", "--ranks", "2"}) {
    arguments.push_back(more);
  }
  const Result result = run(arguments);
  EXPECT_EQ(result.exit, 0) << result.error;
  if (result.out.find("no mpirun in PATH") != std::string::npos) GTEST_SKIP() << "no mpirun in PATH";
  ASSERT_EQ(field(result.out, "status"), "\"ok\"") << result.out;
  EXPECT_GT(std::stod(field(result.out, "ratio")), 0) << result.out;
#else
  GTEST_SKIP() << "built without MPI";
#endif
}

}  // namespace
}  // namespace ep::engine::cpu
