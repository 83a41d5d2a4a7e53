// Builds and Python: programs that we start with an argument vector and a clean environment.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "apply/actions.h"
#include "base/text.h"

namespace ep {
namespace {

// What pip and uv use when nothing is said; named so that a mirror map can replace it.
const char* const kPublicIndex = "https://pypi.org/simple";

int allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

Result<> run_call(Call call, Job& job) {
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

std::vector<std::string> pip_offline(const Site& site) {
  if (site.options->offline_dir.empty()) return {};
  return {"--no-index", "--find-links", site.options->offline_dir + "/wheels"};
}

}  // namespace

Result<> act(const RunArgv& a, Job& job) {
  Call call;
  call.argv = a.argv;
  call.cwd = job.site().path(a.cwd);
  call.env = a.env;
  call.limit_s = a.limit_s;
  if (!a.cwd.empty())
    if (auto there = job.site().tree.read(call.cwd); there && there->kind == Entry::Kind::absent)
      return fail(ErrorKind::absent, "folder to run in is not there", call.cwd, shell_join(a.argv));
  return run_call(std::move(call), job);
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

Result<> act(const PythonVenv& a, Job& job) {
  Site& site = job.site();
  std::string root = site.path(a.root), python = a.python.empty() ? "python3" : a.python;
  // An environment knows its own path, so it is made in place; the mark says that it is whole.
  std::string mark = root + "/.epready-venv";
  if (auto there = site.tree.read(mark); there && there->kind == Entry::Kind::file) {
    job.say("already there: " + root);
    return {};
  }
  if (!site.keeper->inside_prefix(root))
    return fail(ErrorKind::malformed, "environments live below the prefix", root);
  if (auto r = site.tree.remove_tree(root); !r) return r;
  if (auto r = site.keeper->make_dirs(root.substr(0, root.rfind('/'))); !r) return r;
  Call call;
  bool uv = has_program("uv", job);
  call.argv = uv ? std::vector<std::string>{"uv", "venv", "--seed", "--python", python, root}
                 : std::vector<std::string>{python, "-m", "venv", root};
  if (auto r = run_call(call, job); !r) {
    Error e = r.error();
    if (!uv && contains(e.text(), "ensurepip"))
      e.next = "apt-get install python3-venv, then run the same command again";
    return Failure(std::move(e));
  }
  return act(WriteFile{mark, "made by epready with " + python + "\n", 0644}, job);
}

Result<> act(const PipInstall& a, Job& job) {
  Site& site = job.site();
  std::string venv = site.path(a.venv);
  bool uv = has_program("uv", job);
  std::string overrides_path = venv + "/epready-overrides.txt";
  if (!a.overrides.empty())
    if (auto r = act(WriteFile{overrides_path, join(a.overrides, "\n") + "\n", 0644}, job); !r) return r;
  Call call;
  call.env = a.env;
  call.env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1";
  call.env["PIP_NO_INPUT"] = "1";
  call.limit_s = a.limit_s;
  auto command = [&](const std::vector<std::string>& what, bool no_deps) {
    std::vector<std::string> argv =
        uv ? std::vector<std::string>{"uv", "pip", "install", "--python", venv + "/bin/python"}
           : std::vector<std::string>{venv + "/bin/python", "-m", "pip", "install"};
    if (uv && !a.overrides.empty()) argv.insert(argv.end(), {"--override", overrides_path});
    auto offline = pip_offline(site);
    if (!offline.empty())
      argv.insert(argv.end(), offline.begin(), offline.end());
    else if (std::string index =
                 mirrored(a.index_url.empty() ? kPublicIndex : a.index_url, site.options->mirrors);
             !a.index_url.empty() || index != kPublicIndex)
      argv.insert(argv.end(), {"--index-url", index});
    if (no_deps) argv.push_back("--no-deps");
    if (a.no_build_isolation) argv.push_back("--no-build-isolation");
    argv.insert(argv.end(), a.extra_args.begin(), a.extra_args.end());
    for (const auto& r : what) argv.push_back(r[0] == '/' || r[0] != '.' ? r : site.path(r));
    return argv;
  };
  call.argv = command(a.requirements, a.no_deps);
  if (!a.requirements.empty())
    if (auto r = run_call(call, job); !r) return r;
  if (uv || a.overrides.empty()) return {};
  // pip has no overrides: what torch pins is replaced afterwards, without asking its dependencies.
  call.argv = command(a.overrides, true);
  return run_call(call, job);
}

Result<> act(const RunSelf& a, Job& job) {
  Call call;
  call.argv = {job.site().options->self.empty() ? "/proc/self/exe" : job.site().options->self};
  call.argv.insert(call.argv.end(), a.args.begin(), a.args.end());
  call.limit_s = a.limit_s;
  call.in_root = false;
  return run_call(std::move(call), job);
}

}  // namespace ep
