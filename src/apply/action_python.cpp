// Python environments and what is installed into them. An install that fails or is cut leaves the environment
// as it was: a copy made of hard links stands beside it meanwhile.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "apply/actions.h"
#include "base/digest.h"
#include "base/text.h"
#include "facts/parsers.h"

namespace ep {

const char* const kPublicIndex = "https://pypi.org/simple";

namespace {

constexpr size_t kFew = 4;  // one pip does as well for these

Result<std::vector<std::string>> pip_offline(Site& site) {
  if (!site.offline) return std::vector<std::string>{};
  auto wheels = site.offline_part("wheels/");
  if (!wheels) return Failure(wheels.error());
  return std::vector<std::string>{"--no-index", "--find-links", *wheels};
}

/// The environment as it stands, beside itself. Installers replace files by new ones, so hard links keep the
/// old. A mark in the environment says that an install is going on: where it still stands, that install was
/// cut.
class Before {
 public:
  Before(std::string venv, Job& job)
      : venv_(std::move(venv)), copy_(venv_ + ".before"), mark_(venv_ + "/.epready-installing"), job_(job) {}

  Result<> take() {
    const Tree& tree = job_.site().tree;
    for (const char* left : {".copying", ".discard"})
      if (auto r = tree.remove_tree(venv_ + left); !r) return r;
    if (auto r = settle_earlier(); !r) return r;
    Call call;
    call.argv = {"cp", "-al", "--", venv_, venv_ + ".copying"};
    call.quiet = true;
    call.limit_s = 600;
    if (auto r = run_call(call, job_); !r) return r;
    if (auto r = tree.publish(venv_ + ".copying", copy_); !r) return r;
    return tree.write_file(mark_, {Entry::Kind::file, 0600, geteuid(), getegid(), job_.step().id + "\n"});
  }
  Result<> put_back() { return job_.site().tree.publish(copy_, venv_); }
  Result<> drop() {
    const Tree& tree = job_.site().tree;
    if (auto r = tree.remove(mark_); !r) return r;
    // Renamed first: half a removal must not be taken for a copy.
    if (auto r = tree.publish(copy_, venv_ + ".discard"); !r) return r;
    return tree.remove_tree(venv_ + ".discard");
  }

 private:
  Result<> settle_earlier() {
    const Tree& tree = job_.site().tree;
    auto copy = tree.read(copy_), mark = tree.read(mark_);
    if (!copy || copy->kind != Entry::Kind::directory) return {};
    if (!mark || mark->kind != Entry::Kind::file) return tree.remove_tree(copy_);  // that install was whole
    job_.say("an earlier install was cut off: the environment is put back first; the cut one is kept in " +
             venv_ + ".cut");
    if (auto r = tree.publish(venv_, venv_ + ".cut"); !r) return r;
    return put_back();
  }

  std::string venv_, copy_, mark_;
  Job& job_;
};

/// One install into one environment, by uv or pip.
class Install {
 public:
  Install(const PipInstall& a, std::string venv, bool uv, Job& job)
      : a_(a), venv_(std::move(venv)), uv_(uv), job_(job) {}

  Result<> run() {
    auto offline = pip_offline(job_.site());
    if (!offline) return Failure(offline.error());
    offline_ = std::move(*offline);
    if (!a_.overrides.empty())
      if (auto r =
              act(WriteFile{overrides_path(), join(without_hashes(a_.overrides), "\n") + "\n", 0644}, job_);
          !r)
        return r;
    if (a_.requirements.empty()) return uv_ ? Result<>() : override_afterwards();
    if (!uv_ && a_.no_deps && a_.requirements.size() > kFew && all_hashed(a_.requirements))
      return install_closed();
    if (uv_ || a_.no_deps || a_.no_build_isolation || a_.overrides.empty()) {
      if (auto r = call(command(a_.no_deps), a_.no_deps ? a_.requirements : without_hashes(a_.requirements),
                        "asked");
          !r)
        return r;
      return uv_ || a_.no_deps ? Result<>() : override_afterwards();
    }
    // pip has no overrides. So what belongs together is downloaded, the overridden wheels are exchanged, and
    // the rest is installed as it lies there.
    auto files = download();
    if (!files) return Failure(files.error());
    if (files->empty()) {
      if (auto r = call(command(false), without_hashes(a_.requirements), "asked"); !r) return r;
      return override_afterwards();
    }
    if (auto r = install_all(*files); !r) return r;
    return job_.site().tree.remove_tree(stage());
  }

 private:
  static std::string name_of(const std::string& requirement) {
    return requirement.substr(0, requirement.find_first_of("=<>!~@ "));
  }
  static bool all_hashed(const std::vector<std::string>& requirements) {
    return std::all_of(requirements.begin(), requirements.end(),
                       [](const auto& r) { return contains(r, " --hash="); });
  }
  static bool hashed(const std::vector<std::string>& requirements) {
    return std::any_of(requirements.begin(), requirements.end(),
                       [](const auto& r) { return contains(r, " --hash="); });
  }
  std::string overrides_path() const { return venv_ + "/epready-overrides.txt"; }

  std::vector<std::string> command(bool no_deps) const {
    const Site& site = job_.site();
    // pip compiles what it installs; uv is told to, so that the first import is no slower.
    std::vector<std::string> argv =
        uv_ ? std::vector<std::string>{"uv",       "pip",
                                       "install",  "--compile-bytecode",
                                       "--python", venv_ + "/bin/python"}
            : std::vector<std::string>{venv_ + "/bin/python", "-m", "pip", "install"};
    if (uv_ && !a_.overrides.empty() && !no_deps) argv.insert(argv.end(), {"--override", overrides_path()});
    if (!offline_.empty())
      argv.insert(argv.end(), offline_.begin(), offline_.end());
    else if (std::string index =
                 mirrored(a_.index_url.empty() ? kPublicIndex : a_.index_url, site.options->mirrors);
             !a_.index_url.empty() || index != kPublicIndex)
      argv.insert(argv.end(), {"--index-url", index});
    if (no_deps) argv.push_back("--no-deps");
    if (a_.no_build_isolation) argv.push_back("--no-build-isolation");
    argv.insert(argv.end(), a_.extra_args.begin(), a_.extra_args.end());
    return argv;
  }
  /// Runs it for these requirements; pip takes hashes from a file only.
  Result<> call(std::vector<std::string> argv, const std::vector<std::string>& what,
                const std::string& list_name) {
    Site& site = job_.site();
    if (hashed(what)) {
      auto list = write_list(what, list_name);
      if (!list) return Failure(list.error());
      argv.insert(argv.end(), {"--require-hashes", "-r", *list});
    } else {
      for (const auto& r : what) argv.push_back(r[0] == '/' || r[0] != '.' ? r : site.path(r));
    }
    return run_call(program(std::move(argv)), job_);
  }
  Result<std::string> write_list(const std::vector<std::string>& what, const std::string& name) {
    Site& site = job_.site();
    std::string list = site.prefix + "/state/wheels-" + job_.step().id + "-" + name + ".txt";
    auto r =
        site.tree.write_file(list, {Entry::Kind::file, 0600, geteuid(), getegid(), join(what, "\n") + "\n"});
    if (!r) return Failure(r.error());
    return list;
  }
  Call program(std::vector<std::string> argv) const {
    Call c;
    c.argv = std::move(argv);
    c.env = a_.env;
    c.env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1";
    c.env["PIP_NO_INPUT"] = "1";
    c.env["PIP_PROGRESS_BAR"] = "off";
    c.limit_s = a_.limit_s;
    return c;
  }
  /// What torch pins is replaced without asking its dependencies.
  Result<> override_afterwards() {
    if (a_.overrides.empty()) return {};
    return call(command(true), a_.overrides, "overrides");
  }

  /// A closed set, each wheel by its hash: nothing to resolve, so parts of it are downloaded and installed
  /// side by side, straight from the index: a second copy of gigabytes would cost more than it saves. Small
  /// parts, because what pip holds in its temporary folder meanwhile is then gone before the disk has written
  /// it.
  Result<> install_closed() {
    const size_t workers = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 4);
    std::vector<std::vector<std::string>> parts(std::min(3 * workers, a_.requirements.size()));
    for (size_t i = 0; i < a_.requirements.size(); ++i) parts[i % parts.size()].push_back(a_.requirements[i]);
    std::atomic<size_t> next{0};
    std::vector<Result<>> results(parts.size());
    std::vector<std::thread> threads;
    const auto install = [&](size_t i) {
      auto argv = command(true);
      argv.insert(argv.end(), {"--only-binary", ":all:"});
      return call(std::move(argv), parts[i], std::to_string(i));
    };
    for (size_t w = 0; w < workers; ++w)
      threads.emplace_back([&] {
        for (size_t i = next++; i < parts.size(); i = next++)
          if (results[i] = install(i); !results[i]) next = parts.size();
      });
    for (auto& t : threads) t.join();
    for (size_t i = 0; i < parts.size(); ++i)
      if (!results[i] && met_in_one_folder(results[i].error())) {
        job_.say("two installers met in one folder: once more, alone");
        for (; i < parts.size(); ++i)  // and those that were not begun then
          if (auto again = install(i); !again) return again;
        return {};
      } else if (!results[i]) {
        return results[i];
      }
    return {};
  }
  /// Wheels of one vendor share folders, and some carry the same file there (nvidia/__init__.py).
  static bool met_in_one_folder(const Error& e) {
    return contains(e.why, "FileNotFoundError") || contains(e.why, "FileExistsError");
  }

  std::string stage() const { return job_.site().prefix + "/stage/wheels-" + job_.step().id; }

  /// Everything that the requirements pull in, as files. A download that was cut goes on with what is there.
  Result<std::vector<std::string>> download() {
    Site& site = job_.site();
    if (auto r = site.keeper->make_dirs(stage()); !r) return Failure(r.error());
    auto argv = command(false);
    std::replace(argv.begin(), argv.end(), std::string("install"), std::string("download"));
    argv.insert(argv.end(), {"--dest", stage()});  // pip runs inside the root
    for (const auto& r : without_hashes(a_.requirements)) argv.push_back(r);
    if (auto r = run_call(program(std::move(argv)), job_); !r) return Failure(r.error());
    std::error_code ec;
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(site.tree.real(stage()), ec)) {
      const std::string path = entry.path().string(), file = entry.path().filename().string();
      const std::string name = normalize_package(file.substr(0, file.find('-')));
      bool exchanged = false;
      for (const auto& o : a_.overrides) exchanged |= normalize_package(name_of(o)) == name;
      if (exchanged) continue;
      for (const auto& r : a_.requirements)
        if (hashed({r}) && normalize_package(name_of(r)) == name)
          if (auto same = check_hash(path, r); !same) return Failure(same.error());
      out.push_back(path);
    }
    // The large ones first, so that they spread over the installers.
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
      std::error_code e;
      const auto left = std::filesystem::file_size(a, e), right = std::filesystem::file_size(b, e);
      return left != right ? left > right : a < b;
    });
    return out;
  }
  /// The file's hash must be one of those that the requirement names.
  Result<> check_hash(const std::string& path, const std::string& requirement) {
    auto digest = sha256_file(path);
    if (!digest) return Failure(digest.error());
    if (contains(requirement, *digest)) return {};
    return fail(ErrorKind::failed, "the index offers a wheel with another SHA-256", path,
                "hash mismatch: " + *digest + " is none of those that the plan names");
  }

  /// Disjoint wheels without dependencies: several installers side by side. Whatever goes wrong there is
  /// tried once more in one go.
  Result<> install_all(const std::vector<std::string>& files) {
    const size_t groups =
        std::min<size_t>({files.size(), 4, std::max(1u, std::thread::hardware_concurrency())});
    std::vector<std::vector<std::string>> lists(groups);
    for (size_t i = 0; i < files.size(); ++i) lists[i % groups].push_back(files[i]);
    std::vector<Result<>> results(groups);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < groups; ++i)
      threads.emplace_back([&, i] { results[i] = call(local(), lists[i], ""); });
    for (auto& t : threads) t.join();
    for (const auto& r : results) {
      if (r) continue;
      if (job_.stopped() || r.error().kind == ErrorKind::interrupted) return r;
      job_.say("once more, one after the other");
      if (auto again = call(local(), files, ""); !again) return again;
      break;
    }
    return override_afterwards();
  }
  std::vector<std::string> local() const {
    return {venv_ + "/bin/python", "-m", "pip", "install", "--no-index", "--no-deps"};
  }

  const PipInstall& a_;
  const std::string venv_;
  const bool uv_;
  Job& job_;
  std::vector<std::string> offline_;  ///< where wheels come from without network; empty: the index
};

}  // namespace

std::vector<std::string> without_hashes(std::vector<std::string> requirements) {
  for (auto& r : requirements) r = r.substr(0, r.find(" --hash="));
  return requirements;
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
  // Python's own venv brings its pip along. Where a distribution took that out, uv can; it does not download
  // pip then, since nobody pinned it, and installs by itself.
  Call call;
  call.argv = {python, "-m", "venv", root};
  if (auto r = run_call(call, job); !r) {
    Error e = r.error();
    if (!contains(e.text(), "ensurepip")) return Failure(std::move(e));
    e.next = "apt-get install python3-venv, then run the same command again";
    if (!has_program("uv", job)) return Failure(std::move(e));
    job.say("this Python cannot make environments by itself: uv makes it");
    if (auto gone = site.tree.remove_tree(root); !gone) return gone;
    call.argv = {"uv", "venv", "--offline", "--python", python, root};
    if (auto made = run_call(call, job); !made) return made;
  }
  return act(WriteFile{mark, "made by epready with " + python + "\n", 0644}, job);
}

Result<> act(const PipInstall& a, Job& job) {
  Site& site = job.site();
  const std::string venv = site.path(a.venv);
  const bool uv = has_program("uv", job);
  Before before(venv, job);
  const bool ours = site.keeper->inside_prefix(venv);
  if (ours)
    if (auto r = before.take(); !r) return r;
  auto done = Install(a, venv, uv, job).run();
  if (done) return ours ? before.drop() : done;
  if (ours)
    if (auto r = before.put_back(); !r) return add_context(r.error(), done.error().text());
  return Failure(explain_pip(done.error(), venv));
}

}  // namespace ep
