#include "verify/lane_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "host/process.h"

namespace ep {
namespace {

bool is_file(const std::string& path) {
  struct stat s {};
  return stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode);
}

/// Checkouts that the plan made: prefix/src/deepep-COMMIT, and the runbook's prefix/DeepEP.
std::vector<std::string> checkouts(const std::string& prefix) {
  std::vector<std::string> out;
  const std::string folder = prefix + "/src";
  if (DIR* d = opendir(folder.c_str())) {
    while (const dirent* e = readdir(d))
      if (starts_with(e->d_name, "deepep-")) out.push_back(folder + "/" + e->d_name);
    closedir(d);
  }
  std::sort(out.begin(), out.end());
  out.push_back(prefix + "/DeepEP");
  return out;
}

/// Everything printed, as it comes, so that a killed run leaves it too.
class LogFile {
 public:
  static Result<LogFile> create(const std::string& path) {
    const std::string folder = path.substr(0, path.rfind('/'));
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return failed(folder);
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return failed(path);
    return LogFile(fd);
  }
  LogFile(LogFile&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  LogFile& operator=(LogFile&&) = delete;
  ~LogFile() {
    if (fd_ >= 0) close(fd_);
  }
  /// A full disk must not end the run: what was not written is counted.
  void line(std::string_view text) {
    std::string whole(text);
    whole += '\n';
    if (write(fd_, whole.data(), whole.size()) != ssize_t(whole.size())) ++num_lost;
  }
  int num_lost = 0;

 private:
  explicit LogFile(int fd) : fd_(fd) {}
  static Failure failed(const std::string& path) {
    return fail(ErrorKind::failed, "the log of the test cannot be written", path, std::strerror(errno),
                "epready verify --prefix a folder that you may write to");
  }
  int fd_;
};

}  // namespace

std::vector<std::string> lane_test_places(const std::string& lane, int level) {
  if (lane == "v2") return {"tests/ep/test_ep.py", "tests/elastic/test_ep.py"};
  const std::string name = level == 2 ? "test_intranode.py" : "test_internode.py";
  return {"tests/" + name, "tests/legacy/" + name};
}

Result<std::string> find_lane_test(const LaneTestRequest& q) {
  const auto places = lane_test_places(q.lane, q.level);
  std::vector<std::string> looked;
  for (const auto& root : q.tests.empty() ? checkouts(q.prefix) : std::vector<std::string>{q.tests})
    for (const auto& place : places) {
      // --tests may name the checkout or the folder that holds the script.
      for (const auto& path : {root + "/" + place, root + place.substr(place.rfind('/'))}) {
        if (is_file(path)) return path;
      }
      looked.push_back(root + "/" + place);
    }
  return fail(ErrorKind::absent, fmt::format("lane {}'s own test is not on this host", q.lane),
              join(looked, ", "), "a wheel does not carry it; a build from source leaves it in its checkout",
              "epready verify --tests CHECKOUT_OF_DEEPEP");
}

Result<> check_lane_ranks(const LaneTestRequest& q) {
  // V1's kernels inside a node are compiled for these numbers of ranks and stop with "Unsupported ranks"
  // otherwise (csrc/kernels/launch.cuh).
  if (q.lane != "v1" || q.level > 2 || q.gpus == 2 || q.gpus == 4 || q.gpus == 8) return {};
  return fail(
      ErrorKind::unsupported,
      fmt::format("DeepEP V1 does not run with {} rank{} inside a node", q.gpus, q.gpus == 1 ? "" : "s"), {},
      "its kernels are for 2, 4 or 8 ranks, one on each GPU",
      q.gpus > 2 ? fmt::format("epready verify -r 2 --lane v1 --ranks {}", q.gpus > 8   ? 8
                                                                           : q.gpus > 4 ? 4
                                                                                        : 2)
                 : "epready verify -r 2");
}

std::vector<std::string> lane_test_argv(const LaneTestRequest& q, const std::string& script) {
  std::vector<std::string> out = {q.prefix + "/venv/bin/python",
                                  "-u",
                                  script,
                                  "--num-processes",
                                  std::to_string(q.gpus),
                                  "--num-tokens",
                                  std::to_string(q.shape.num_tokens),
                                  "--hidden",
                                  std::to_string(q.shape.hidden),
                                  "--num-experts",
                                  std::to_string(q.shape.num_experts),
                                  "--num-topk",
                                  std::to_string(q.shape.num_topk)};
  out.insert(out.end(), q.extra.begin(), q.extra.end());
  return out;
}

Result<LaneTestRun> run_lane_test(const LaneTestRequest& q,
                                  const std::function<void(std::string_view)>& on_line,
                                  const std::atomic<bool>* interrupt) {
  auto script = find_lane_test(q);
  if (!script) return Failure(script.error());
  const std::string python = q.prefix + "/venv/bin/python", env_file = q.prefix + "/env/env.sh";
  for (const auto& path : {python, env_file})
    if (!is_file(path))
      return fail(ErrorKind::absent, "the lane is not installed here", path, "no such file",
                  "epready plan --lane " + q.lane);
  LaneTestRun out;
  out.script = *script;
  out.log = fmt::format("{}/verify/{}-level{}{}.log", q.prefix, q.lane, q.level,
                        q.level > 2 ? fmt::format("-node{}", q.nodes.rank) : "");
  auto log = LogFile::create(out.log);
  if (!log) return Failure(log.error());
  Spawn spawn;
  // The file that users source is part of what is proven; paths are arguments, never text of the shell.
  spawn.argv = {"/bin/sh", "-c", ". \"$1\" && shift && exec \"$@\"", "sh", env_file};
  for (auto& a : lane_test_argv(q, *script)) spawn.argv.push_back(std::move(a));
  spawn.cwd = script->substr(0, script->rfind('/'));
  spawn.env = base_environment();
  set_variable(spawn.env, "PYTHONFAULTHANDLER", "1");
  set_variable(spawn.env, "WORLD_SIZE", std::to_string(q.level > 2 ? q.nodes.count : 1));
  set_variable(spawn.env, "RANK", std::to_string(q.level > 2 ? q.nodes.rank : 0));
  set_variable(spawn.env, "MASTER_ADDR", q.level > 2 ? q.nodes.master : "127.0.0.1");
  set_variable(spawn.env, "MASTER_PORT", std::to_string(q.nodes.port));
  spawn.limit_s = q.shape.limit_s;
  spawn.interrupt = interrupt;
  spawn.end_group = true;
  spawn.max_out_bytes = 32u << 20;
  spawn.on_out = spawn.on_err = [&](std::string_view line) {
    log->line(line);
    if (on_line) on_line(line);
  };
  auto ended = run(spawn);
  if (!ended) return add_context(ended.error(), "while running " + *script);
  if (ended->interrupted)
    return fail(ErrorKind::interrupted, "interrupted", *script, {}, "the same command again");
  out.ok = ended->ok();
  out.how = ended->how(spawn.limit_s);
  out.wall_s = ended->wall_s;
  out.output = parse_lane_output(ended->out + "\n" + ended->err, out.ok);
  return out;
}

}  // namespace ep
