// Finds the engine and runs one case in its own process group, under a limit.
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/text.h"
#include "bench/bench.h"
#include "host/process.h"

namespace ep {
namespace {

std::string own_folder() {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  std::string s(path, n > 0 ? size_t(n) : 0);
  return s.substr(0, s.rfind('/'));
}

}  // namespace

Result<std::string> find_engine(bool gpu) {
  std::string name = gpu ? "epready-engine-gpu" : "epready-engine";
  std::vector<std::string> folders;
  if (const char* set = std::getenv("EPREADY_ENGINE"); set && *set) folders.push_back(set);
  std::string here = own_folder();
  for (const char* below : {"", "/engine", "/engine/cuda", "/../libexec/epready"})
    folders.push_back(here + below);
  for (const auto& f : folders)
    if (std::string path = f + "/" + name; access(path.c_str(), X_OK) == 0) return path;
  return fail(
      ErrorKind::absent, fmt::format("the program {} is not there", name), join(folders, ", "),
      gpu ? "it is built where nvcc is" : "it is built beside epready",
      gpu ? "cmake -S engine -B build-gpu -DEP_GPU=ON && cmake --build build-gpu" : "./epready (builds it)");
}

std::vector<std::string> engine_argv(const std::string& engine, const BenchRequest& q) {
  std::vector<std::string> argv = {engine,
                                   q.case_name,
                                   "--json",
                                   "--ranks",
                                   std::to_string(q.ranks),
                                   "--num-tokens",
                                   std::to_string(q.num_tokens),
                                   "--hidden",
                                   std::to_string(q.hidden),
                                   "--num-experts",
                                   std::to_string(q.num_experts),
                                   "--num-topk",
                                   std::to_string(q.num_topk),
                                   "--dtype",
                                   q.dtype,
                                   "--iters",
                                   std::to_string(q.iters),
                                   "--warmup",
                                   std::to_string(q.warmup)};
  argv.insert(argv.end(), q.extra.begin(), q.extra.end());
  return argv;
}

Result<BenchResult> run_bench(const BenchRequest& request,
                              const std::function<void(std::string_view)>& on_line,
                              const std::atomic<bool>* interrupt) {
  auto engine = find_engine(request.gpu);
  if (!engine) return Failure(engine.error());
  Spawn spawn;
  spawn.argv = engine_argv(*engine, request);
  spawn.env = base_environment();
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"})
    if (const char* v = std::getenv(name)) set_variable(spawn.env, name, v);
  spawn.limit_s = request.limit_s;
  spawn.interrupt = interrupt;
  spawn.end_group = true;
  spawn.on_err = on_line;
  spawn.max_out_bytes = 16u << 20;
  auto ended = run(spawn);
  if (!ended) return add_context(ended.error(), "while running " + shell_join(spawn.argv));
  if (ended->interrupted)
    return fail(ErrorKind::interrupted, "interrupted", *engine, {}, "the same command again");
  // Ended from outside (a scheduler, an operator): says nothing about the host. 5 is the engine's word for
  // it.
  if (ended->exit_code == 5 || ended->signal == SIGINT || ended->signal == SIGTERM || ended->signal == SIGHUP)
    return fail(ErrorKind::interrupted, "the engine was ended from outside: " + ended->how(spawn.limit_s),
                *engine, {}, "the same command again");
  if (auto e = parse_engine_failure(ended->out)) return Failure(*e);
  if (auto r = parse_bench(ended->out))
    return r;
  else if (ended->ok())
    return add_context(r.error(), "while reading the answer of " + *engine);
  std::string last;
  for (auto line : lines(ended->err))
    if (!trim(line).empty()) last = trim(line);
  return fail(ended->timed_out ? ErrorKind::timeout : ErrorKind::failed,
              "the engine did not finish: " + ended->how(spawn.limit_s), shell_join(spawn.argv), last,
              "run the command above by hand to see all of its output");
}

}  // namespace ep
