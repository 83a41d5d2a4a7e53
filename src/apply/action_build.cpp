// Builds: programs that we start with an argument vector and a clean environment.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "apply/actions.h"
#include "base/text.h"

namespace ep {
namespace {

int allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

}  // namespace

Result<> run_call(const Call& call, Job& job) {
  auto answer = job.call(call);
  if (!answer) return Failure(answer.error());
  return {};
}

bool has_program(const std::string& name, Job& job) {
  Call call;
  call.argv = {name, "--version"};
  call.quiet = true;
  call.limit_s = 30;
  return job.call(call).has_value();
}

Result<> act(const RunArgv& a, Job& job) {
  Call call;
  call.argv = a.argv;
  call.cwd = job.site().path(a.cwd);
  call.env = a.env;
  call.limit_s = a.limit_s;
  if (!a.cwd.empty())
    if (auto there = job.site().tree.read(call.cwd); there && there->kind == Entry::Kind::absent)
      return fail(ErrorKind::absent, "folder to run in is not there", call.cwd, shell_join(a.argv));
  return run_call(call, job);
}

Result<> act(const CMakeBuild& a, Job& job) {
  Site& site = job.site();
  std::string source = site.path(a.source), build = site.path(a.build), to = site.path(a.install_prefix);
  std::string stage = site.prefix + "/stage/" + job.step().id;
  if (!site.keeper->inside_prefix(build) || !site.keeper->inside_prefix(to))
    return fail(ErrorKind::malformed, "builds live below the prefix only", build + ", " + to);
  Call call;
  call.env = a.env;
  call.limit_s = a.limit_s;
  call.argv = {
      "cmake", "-S", source, "-B", build, "-DCMAKE_INSTALL_PREFIX=" + to, "-DCMAKE_BUILD_TYPE=Release"};
  if (has_program("ninja", job)) call.argv.insert(call.argv.end(), {"-G", "Ninja"});
  call.argv.insert(call.argv.end(), a.options.begin(), a.options.end());
  if (auto r = run_call(call, job); !r) return r;
  call.argv = {"cmake", "--build", build, "--parallel", std::to_string(allowed_cpus())};
  if (auto r = run_call(call, job); !r) return r;
  // Installed into a stage under its final name (DESTDIR), then moved: the final folder is never half there.
  if (auto r = site.tree.remove_tree(stage); !r) return r;
  if (auto r = site.keeper->make_dirs(stage); !r) return r;
  call.env["DESTDIR"] = stage;
  call.argv = {"cmake", "--install", build};
  if (auto r = run_call(call, job); !r) return r;
  size_t slash = to.rfind('/');
  if (auto r = site.keeper->make_dirs(to.substr(0, slash)); !r) return r;
  if (auto r = site.tree.publish(stage + to, to); !r)
    return add_context(r.error(), "the build installed nothing into its prefix");
  return site.tree.remove_tree(stage);
}

Result<> act(const RunSelf& a, Job& job) {
  Call call;
  call.argv = {job.site().options->self.empty() ? "/proc/self/exe" : job.site().options->self};
  call.limit_s = a.limit_s;
  call.in_root = false;
  // What it would write goes through the tree like every other file: below the root, and undo can take it
  // back.
  std::string output;
  for (size_t i = 0; i < a.args.size(); ++i) {
    if (a.args[i] == "--output" && i + 1 < a.args.size())
      output = a.args[++i];
    else
      call.argv.push_back(a.args[i]);
  }
  if (const std::string& root = job.site().tree.root(); root != "/" && !a.args.empty() && a.args[0] == "env")
    call.argv.insert(call.argv.end(), {"--root", root});
  if (output.empty()) return run_call(call, job);
  call.quiet = true;
  auto answer = job.call(call);
  if (!answer) return Failure(answer.error());
  return act(WriteFile{output, answer->out, 0644}, job);
}

}  // namespace ep
