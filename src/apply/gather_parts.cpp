// Downloads, keys, repositories and wheels of a plan. Packages are gather_packages.cpp's.
#include "apply/gather_parts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "apply/actions.h"
#include "base/digest.h"
#include "base/text.h"

namespace ep {
namespace {

namespace fs = std::filesystem;

// A submodule's address as git resolves it: "../x" is relative to the repository that names it.
std::string resolve(const std::string& base, std::string url) {
  if (!starts_with(url, "./") && !starts_with(url, "../")) return url;
  std::string out = base;
  while (ends_with(out, "/")) out.pop_back();
  for (;;) {
    if (starts_with(url, "./")) {
      url = url.substr(2);
    } else if (starts_with(url, "../")) {
      url = url.substr(3);
      size_t cut = out.find_last_of("/:");
      if (cut != std::string::npos) out.resize(cut);
    } else {
      return out + "/" + url;
    }
  }
}

struct Submodule {
  std::string path, url, commit;
};

// From the commit itself, without a checkout: gitlinks of the tree and addresses of its .gitmodules.
Result<std::vector<Submodule>> submodules_of(const std::string& dir, const std::string& url,
                                             const std::string& commit, Job& job) {
  auto tree = run_git(dir, {"ls-tree", "-r", commit}, job, {0}, true);
  if (!tree) return Failure(tree.error());
  std::map<std::string, std::string> commits, paths, urls;  // by path; by name
  for (auto line : lines(tree->out)) {
    auto words = split_ws(line.substr(0, line.find('\t')));
    if (words.size() == 3 && words[1] == "commit")
      commits[std::string(line.substr(line.find('\t') + 1))] = words[2];
  }
  if (commits.empty()) return std::vector<Submodule>{};
  auto config = run_git(dir, {"config", "--blob", commit + ":.gitmodules", "--get-regexp", "^submodule\\."},
                        job, {0, 1, 128}, true);
  if (!config) return Failure(config.error());
  for (auto line : lines(config->out)) {
    size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    std::string key(line.substr(0, blank)), value(line.substr(blank + 1));
    if (ends_with(key, ".path")) paths[key.substr(0, key.size() - 5)] = value;
    if (ends_with(key, ".url")) urls[key.substr(0, key.size() - 4)] = value;
  }
  std::vector<Submodule> out;
  for (const auto& [name, path] : paths)
    if (commits.count(path) && urls.count(name))
      out.push_back({path, resolve(url, urls[name]), commits[path]});
  return out;
}

Result<> gather_commit(const std::string& url, const std::string& commit, bool submodules,
                       OfflineFolder& folder, Job& job) {
  if (!is_commit(commit))
    return fail(ErrorKind::malformed, "git source without a full commit is refused", url, commit);
  if (folder.repository(url, commit)) return {};
  std::string path = repository_path(url), dir = folder.dir + "/" + path;
  if (!fs::exists(dir + "/HEAD"))
    if (auto r = run_git(folder.dir, {"init", "--quiet", "--bare", dir}, job); !r) return Failure(r.error());
  auto has = [&]() -> Result<bool> {
    auto r = run_git(dir, {"cat-file", "-e", commit + "^{commit}"}, job, {0, 1, 128}, true);
    if (!r) return Failure(r.error());
    return r->exit_code == 0;
  };
  auto there = has();
  if (!there) return Failure(there.error());
  if (!*there) {
    // Servers hand out a single commit when they allow it (GitHub does); otherwise fetch all and look for it.
    auto one = run_git(dir, {"fetch", "--quiet", "--depth", "1", "--", url, commit}, job, {0, 1, 128});
    if (!one) return Failure(one.error());
    if (one->exit_code != 0)
      if (auto all = run_git(dir, {"fetch", "--quiet", "--", url, "+refs/*:refs/source/*"}, job); !all)
        return Failure(all.error());
    there = has();
    if (!there) return Failure(there.error());
  }
  if (!*there)
    return fail(ErrorKind::failed, "the repository does not have this commit", url, commit,
                "its history was rewritten or its tag was moved, or the mirror is behind");
  if (auto r = run_git(dir, {"update-ref", "refs/heads/epready-" + commit, commit}, job); !r)
    return Failure(r.error());
  if (submodules) {
    auto list = submodules_of(dir, url, commit, job);
    if (!list) return Failure(list.error());
    for (const auto& s : *list)
      if (auto r = gather_commit(s.url, s.commit, true, folder, job); !r)
        return add_context(r.error(), "submodule " + s.path + " of " + url);
  }
  folder.repositories.push_back({url, commit, path});
  return {};
}

}  // namespace

Result<> gather_file(const std::string& url, const std::string& sha256, const std::string& dir, Job& job) {
  if (!is_sha256_hex(sha256))
    return fail(ErrorKind::malformed, "download without a SHA-256 is refused", url, "got '" + sha256 + "'");
  std::string hash = lower(sha256), path = dir + "/sha256/" + hash;
  if (auto there = sha256_file(path); there && *there == hash) {
    job.say("already here: " + url);
    return {};
  }
  return download_verified(url, hash, path + ".part", path, job);
}

Result<> gather_key(const AddAptSource& source, const std::string& dir, Job& job) {
  if (!source.key_sha256.empty()) return gather_file(source.key_url, source.key_sha256, dir, job);
  if (source.key_fingerprint.empty())
    return fail(ErrorKind::malformed, "signing key is pinned by nothing", source.key_url,
                "neither its SHA-256 nor its fingerprint is known",
                "get the fingerprint from its publisher over another way; it belongs into the plan");
  std::string path = dir + "/keys/key-" + source.name, part = path + ".part";
  std::error_code none;
  fs::create_directories(dir + "/cache/gnupg", none);
  fs::permissions(dir + "/cache/gnupg", fs::perms::owner_all, none);
  unlink(part.c_str());
  if (auto r = download(mirrored(source.key_url, job.site().options->mirrors), part, job); !r) return r;
  auto fits = check_fingerprint(part, source.key_fingerprint, job);
  fs::remove_all(dir + "/cache", none);
  if (!fits) {
    unlink(part.c_str());
    return fits;
  }
  if (rename(part.c_str(), path.c_str()) != 0) return os_failure("cannot name the key", path, errno);
  return {};
}

Result<> gather_repository(const GitCheckout& checkout, OfflineFolder& folder, Job& job) {
  return gather_commit(checkout.url, checkout.commit, checkout.submodules, folder, job);
}

std::vector<std::string> downloads_of(const PipInstall& wanted) {
  std::vector<std::string> out;
  for (const auto* list : {&wanted.requirements, &wanted.overrides})
    for (const auto& r : *list)
      if (!is_local_requirement(r)) out.push_back(r);
  return out;
}

Result<> gather_wheels(const PipInstall& wanted, const std::string& python, const std::string& dir,
                       Job& job) {
  std::string venv = dir + "/pip", program = venv + "/bin/python";
  Call call;
  call.limit_s = 600;
  if (!fs::exists(venv + "/whole")) {
    call.argv = {python.empty() ? "python3" : python, "-m", "venv", "--clear", venv};
    if (auto r = job.call(call); !r) return Failure(r.error());
    Entry mark;
    mark.kind = Entry::Kind::file;
    mark.mode = 0644;
    mark.uid = geteuid();
    mark.gid = getegid();
    if (auto r = job.site().tree.write_file(venv + "/whole", mark); !r) return r;
  }
  call.limit_s = wanted.limit_s;
  call.env = {{"PIP_DISABLE_PIP_VERSION_CHECK", "1"}, {"PIP_NO_INPUT", "1"}};
  auto download_wheels = [&](const std::vector<std::string>& what, bool no_deps) -> Result<> {
    call.argv = {program, "-m", "pip", "download", "--only-binary", ":all:", "--dest", dir + "/wheels"};
    std::string index = wanted.index_url.empty() ? kPublicIndex : wanted.index_url;
    call.argv.insert(call.argv.end(), {"--index-url", mirrored(index, job.site().options->mirrors)});
    if (no_deps) call.argv.push_back("--no-deps");
    call.argv.insert(call.argv.end(), wanted.extra_args.begin(), wanted.extra_args.end());
    size_t before = call.argv.size();
    // The hashes that the plan names are checked where the wheels are installed.
    for (const auto& r : without_hashes(what))
      if (!is_local_requirement(r)) call.argv.push_back(r);
    if (call.argv.size() == before) return {};
    auto answer = job.call(call);
    if (!answer) return Failure(answer.error());
    return {};
  };
  if (auto r = download_wheels(wanted.requirements, wanted.no_deps); !r) return r;
  return download_wheels(wanted.overrides, true);
}

}  // namespace ep
