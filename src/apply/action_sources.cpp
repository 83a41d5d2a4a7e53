// Sources: downloads by hash, archives, git commits, patches. Nothing gets its final name before it is
// verified.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "apply/actions.h"
#include "base/digest.h"
#include "base/text.h"

namespace ep {
namespace {

constexpr int kConnectS = 30, kStallS = 60;   // curl gives up when nothing moves for this long
constexpr double kDownloadLimitS = 6 * 3600;  // a CUDA toolkit over a slow line

Result<> make_parent(const std::string& path, Job& job) {
  size_t slash = path.rfind('/');
  return job.site().keeper->make_dirs(slash == 0 ? "/" : path.substr(0, slash));
}

Failure wrong_hash(const std::string& url, const std::string& wanted, const std::string& got) {
  return fail(ErrorKind::failed, "downloaded bytes have another SHA-256", redact(url),
              "expected " + wanted + ", got " + got,
              "the file moved or was tampered with: compare with its publisher; nothing of it was used");
}

}  // namespace

Result<> download(const std::string& url, const std::string& part, Job& job) {
  Call call;
  call.argv = {"curl",
               "--fail",
               "--location",
               "--show-error",
               "--silent",
               "--retry",
               "3",
               "--retry-connrefused",
               "--connect-timeout",
               std::to_string(kConnectS),
               "--speed-limit",
               "1",
               "--speed-time",
               std::to_string(kStallS),
               "--proto",
               "=https,http,file",
               "--proto-redir",
               "=https,http",
               "--continue-at",
               "-",
               "--output",
               part,
               "--url",
               url};
  call.in_root = false;
  call.limit_s = kDownloadLimitS;
  auto answer = job.call(call);
  if (answer) return {};
  Error e = answer.error();
  if (e.kind == ErrorKind::failed) {
    e.next = "run the same command again: the download goes on where it stopped";
    e.trace.push_back(
        "a site mirror can be named with --mirror FROM=TO, a folder of epready fetch with --offline");
  }
  return Failure(std::move(e));
}

bool is_commit(const std::string& id) {
  return id.size() == 40 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string mirrored(const std::string& url, const std::map<std::string, std::string>& mirrors) {
  const std::pair<const std::string, std::string>* best = nullptr;
  for (const auto& m : mirrors)
    if (starts_with(url, m.first) && (!best || m.first.size() > best->first.size())) best = &m;
  return best ? best->second + url.substr(best->first.size()) : url;
}

Result<std::string> fetch_to_cache(const std::string& url, const std::string& sha256, Job& job) {
  Site& site = job.site();
  if (!is_sha256_hex(sha256))
    return fail(ErrorKind::malformed, "download without a SHA-256 is refused", redact(url),
                "got '" + sha256 + "'");
  std::string hash = lower(sha256);
  std::string cached = site.prefix + "/cache/" + hash, part = cached + ".part";
  if (auto r = site.keeper->make_dirs(site.prefix + "/cache"); !r) return Failure(r.error());
  if (auto there = sha256_file(site.tree.real(cached)); there && *there == hash) {
    job.say("already here: " + redact(url));
    return cached;
  }
  std::string real_part = site.tree.real(part);
  if (site.offline) {
    std::string from = site.offline->dir + "/sha256/" + hash;
    auto digest = sha256_file(from);
    if (!digest)
      return fail(ErrorKind::absent, "the offline folder does not hold this download", from, redact(url),
                  "gather it on a machine with network: epready fetch");
    if (*digest != hash) return wrong_hash("file " + from, hash, *digest);
    Call copy;
    copy.argv = {"cp", "--reflink=auto", "--", from, real_part};
    copy.in_root = false;
    if (auto r = job.call(copy); !r) return Failure(r.error());
    if (auto r = site.tree.publish(part, cached); !r) return Failure(r.error());
    return cached;
  }
  if (auto r = download_verified(url, hash, real_part, site.tree.real(cached), job); !r)
    return Failure(r.error());
  return cached;
}

Result<> download_verified(const std::string& url, const std::string& sha256, const std::string& part,
                           const std::string& final, Job& job) {
  std::string address = mirrored(url, job.site().options->mirrors);
  bool resumed = access(part.c_str(), F_OK) == 0;
  if (auto r = download(address, part, job); !r) return r;
  auto digest = sha256_file(part);
  if (digest && *digest != sha256 && resumed) {
    job.say("the part from an earlier try does not fit: from the beginning");
    unlink(part.c_str());
    if (auto r = download(address, part, job); !r) return r;
    digest = sha256_file(part);
  }
  if (!digest) return Failure(digest.error());
  if (*digest != sha256) {
    unlink(part.c_str());
    return wrong_hash(url, sha256, *digest);
  }
  if (rename(part.c_str(), final.c_str()) != 0) return os_failure("cannot name the download", final, errno);
  return {};
}

Result<std::string> fetch_unpinned(const std::string& url, const std::string& name, Job& job) {
  Site& site = job.site();
  std::string to = site.prefix + "/cache/" + name, real = site.tree.real(to);
  if (auto r = site.keeper->make_dirs(site.prefix + "/cache"); !r) return Failure(r.error());
  unlink(real.c_str());
  std::string from = mirrored(url, site.options->mirrors);
  if (site.offline) {
    auto keys = check_hashes(*site.offline, "keys/");
    if (!keys) return Failure(keys.error());
    from = "file://" + site.offline->dir + "/keys/" + name;
  }
  if (auto r = download(from, real, job); !r) return Failure(r.error());
  return to;
}

Result<> act(const Fetch& a, Job& job) {
  Site& site = job.site();
  std::string to = site.path(a.to);
  auto cached = fetch_to_cache(a.url, a.sha256, job);
  if (!cached) return Failure(cached.error());
  if (auto there = sha256_file(site.tree.real(to)); there && *there == lower(a.sha256)) return {};
  if (!site.keeper->inside_prefix(to)) {
    auto bytes = site.tree.read(*cached);
    if (!bytes) return Failure(bytes.error());
    return act(WriteFile{to, bytes->content, 0644}, job);
  }
  if (auto r = make_parent(to, job); !r) return r;
  std::string scratch = to + ".epready-part";
  Call copy;
  copy.argv = {"cp", "--reflink=auto", "--", site.tree.real(*cached), site.tree.real(scratch)};
  copy.in_root = false;
  if (auto r = job.call(copy); !r) return Failure(r.error());
  return site.tree.publish(scratch, to);
}

bool escapes(std::string_view member) {
  if (starts_with(member, "/")) return true;
  for (auto part : split(member, '/'))
    if (part == "..") return true;
  return false;
}

Result<> act(const Unpack& a, Job& job) {
  Site& site = job.site();
  std::string archive = site.path(a.archive), to = site.path(a.to), scratch = to + ".epready-new";
  if (!site.keeper->inside_prefix(to))
    return fail(ErrorKind::malformed, "archives are unpacked below the prefix only", to);
  auto digest = sha256_file(site.tree.real(archive));
  if (!digest) return Failure(digest.error());
  std::string mark = to + "/.epready-unpacked";
  if (auto there = site.tree.read(mark); there && there->content == *digest + "\n") {
    job.say("already unpacked: " + to);
    return {};
  }
  Call list;
  list.argv = {"tar", "--list", "--file", archive};
  list.quiet = true;
  list.limit_s = 1800;
  list.max_out_bytes = 256u << 20;
  auto names = job.call(list);
  if (!names) return add_context(names.error(), "the archive cannot be read: " + archive);
  std::vector<std::string_view> members = lines(names->out);
  for (auto name : members)
    if (escapes(name))
      return fail(ErrorKind::failed, "archive has a member outside its own folder", archive,
                  std::string(name), "do not use this archive; nothing was unpacked");
  // One top folder ("nvshmem-3.5.19/...") is left out, so that `to` is the thing itself.
  std::string top = members.empty() ? "" : std::string(members[0].substr(0, members[0].find('/')));
  bool one_top = !top.empty() && top != "." && std::all_of(members.begin(), members.end(), [&](auto m) {
    return m == top || starts_with(m, top + "/");
  }) && members.size() > 1;
  if (auto r = site.tree.remove_tree(scratch); !r) return r;
  if (auto r = site.keeper->make_dirs(scratch); !r) return r;
  // GNU tar itself refuses to write through links that the archive made; owner and special bits are not taken
  // over.
  Call extract;
  extract.argv = {"tar",
                  "--extract",
                  "--file",
                  archive,
                  "--directory",
                  scratch,
                  "--no-same-owner",
                  "--no-same-permissions",
                  "--delay-directory-restore"};
  if (one_top) extract.argv.push_back("--strip-components=1");
  extract.limit_s = 3600;
  if (auto r = job.call(extract); !r) return Failure(r.error());
  if (auto r = act(WriteFile{scratch + "/.epready-unpacked", *digest + "\n", 0644}, job); !r) return r;
  return site.tree.publish(scratch, to);
}

Result<Answer> run_git(const std::string& dir, std::vector<std::string> args, Job& job, std::vector<int> good,
                       bool quiet) {
  Site& site = job.site();
  std::map<std::string, std::string> instead;  // address -> what is used for it
  if (site.offline) {
    auto folder = site.offline_part("git/");
    if (!folder) return Failure(folder.error());
    for (const auto& r : site.offline->repositories) instead[r.url] = *folder + r.path.substr(4);
  } else {
    instead = site.options->mirrors;
  }
  Call call;
  call.argv = {"git", "-C", dir, "-c", "advice.detachedHead=false", "-c", "core.hooksPath=/dev/null"};
  auto set = [&](const std::string& what) { call.argv.insert(call.argv.end(), {"-c", what}); };
  set("protocol.ext.allow=never");
  bool local = std::any_of(instead.begin(), instead.end(), [](const auto& i) {
    return starts_with(i.second, "/") || starts_with(i.second, "file:");
  });
  if (local) set("protocol.file.allow=always");  // for submodules, to which git does not allow it by itself
  // git takes what stands before the first '=' for the setting's name.
  for (const auto& [from, to] : instead)
    if (!contains(to, "=")) set("url." + to + ".insteadOf=" + from);
  call.argv.insert(call.argv.end(), args.begin(), args.end());
  call.env = {
      {"GIT_TERMINAL_PROMPT", "0"}, {"GIT_CONFIG_NOSYSTEM", "1"}, {"GIT_CEILING_DIRECTORIES", site.prefix}};
  call.limit_s = 3600;
  call.good = std::move(good);
  call.quiet = quiet;
  return job.call(call);
}

Result<> act(const GitCheckout& a, Job& job) {
  Site& site = job.site();
  std::string to = site.path(a.to), scratch = to + ".epready-new";
  if (!is_commit(a.commit))
    return fail(ErrorKind::malformed, "git source without a full commit is refused", redact(a.url), a.commit);
  if (!site.keeper->inside_prefix(to))
    return fail(ErrorKind::malformed, "sources live below the prefix only", to);
  auto git = [&](const std::string& dir, std::vector<std::string> args, std::vector<int> good = {0}) {
    return run_git(dir, std::move(args), job, std::move(good));
  };
  if (auto there = site.tree.read(to + "/.git"); there && there->kind == Entry::Kind::directory) {
    auto head = git(to, {"rev-parse", "HEAD"}, {0, 128});
    if (head && trim(head->out) == a.commit) {
      job.say("already at " + a.commit);
      return {};
    }
  }
  // git itself puts the mirror in; only one that -c cannot carry is put in here.
  std::string url = mirrored(a.url, site.options->mirrors);
  if (!contains(url, "=")) url = a.url;
  if (site.offline) {
    const OfflineRepository* there = site.offline->repository(a.url, a.commit);
    if (!there)
      return fail(ErrorKind::absent, "the offline folder does not hold this repository at this commit",
                  site.offline->dir, redact(a.url) + " at " + a.commit,
                  "gather it on a machine with network: epready fetch");
    url = a.url;
  }
  if (auto r = site.tree.remove_tree(scratch); !r) return r;
  if (auto r = site.keeper->make_dirs(scratch); !r) return r;
  if (auto r = git(scratch, {"init", "--quiet"}); !r) return Failure(r.error());
  // Submodules may name their source relative to this one.
  if (auto r = git(scratch, {"config", "remote.origin.url", a.url}); !r) return Failure(r.error());
  // Servers hand out a single commit when they allow it (GitHub does); otherwise fetch all and look for it.
  auto one = git(scratch, {"fetch", "--quiet", "--depth", "1", "--", url, a.commit}, {0, 1, 128});
  if (!one) return Failure(one.error());
  if (one->exit_code != 0) {
    auto all = git(scratch, {"fetch", "--quiet", "--tags", "--", url, "+refs/*:refs/remotes/source/*"});
    if (!all) return Failure(all.error());
  }
  auto checkout = git(scratch, {"checkout", "--quiet", "--detach", a.commit}, {0, 1, 128});
  if (!checkout) return Failure(checkout.error());
  auto head = git(scratch, {"rev-parse", "HEAD"}, {0, 128});
  if (!head) return Failure(head.error());
  if (checkout->exit_code != 0 || trim(head->out) != a.commit)
    return fail(ErrorKind::failed, "the repository does not have this commit", redact(a.url), a.commit,
                "its history was rewritten, or the mirror is behind; nothing of it was used");
  if (a.submodules)
    if (auto r = git(scratch, {"submodule", "update", "--init", "--recursive", "--depth", "1"}); !r)
      return Failure(r.error());
  return site.tree.publish(scratch, to);
}

Result<> act(const ApplyPatch& a, Job& job) {
  Site& site = job.site();
  std::string dir = site.path(a.dir), patch = site.path(a.patch_path);
  size_t slash = dir.rfind('/');
  auto git_apply = [&](std::vector<std::string> flags) {
    Call call;
    call.argv = {"git", "-C", dir, "apply", "-p1"};
    call.argv.insert(call.argv.end(), flags.begin(), flags.end());
    call.argv.push_back(patch);
    // A folder that is no repository of its own must not be taken for part of one further up.
    call.env = {{"GIT_CONFIG_NOSYSTEM", "1"}, {"GIT_CEILING_DIRECTORIES", dir.substr(0, slash)}};
    call.good = {0, 1, 128};
    return job.call(call);
  };
  auto back = git_apply({"--check", "--reverse"});
  if (!back) return Failure(back.error());
  if (back->exit_code == 0) {
    job.say("patch is in already: " + patch);
    return {};
  }
  auto check = git_apply({"--check"});
  if (!check) return Failure(check.error());
  if (check->exit_code == 0) {
    auto done = git_apply({});
    if (!done) return Failure(done.error());
    if (done->exit_code == 0) return {};
    check = done;
  }
  return fail(
      ErrorKind::failed, "patch does not apply; nothing was changed", patch,
      std::string(trim(check->err.empty() ? check->out : check->err)),
      "the source in " + dir + " is not the one that the stack names: remove that folder, apply again");
}

}  // namespace ep
