// Distribution packages by apt-get, and vendor repositories with a keyring of their own.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <thread>

#include "apply/actions.h"
#include "apply/package_set.h"
#include "base/text.h"

namespace ep {
namespace {

constexpr int kLockWaitS = 300;  // how long somebody else's apt may take
constexpr int kLockRetryS = 3;
constexpr double kInstallLimitS = 7200;  // DOCA-OFED builds kernel modules: tens of minutes

bool is_lock_message(std::string_view text) {
  return contains(text, "Could not get lock") || contains(text, "is another process using it") ||
         contains(text, "Unable to acquire the dpkg frontend lock") ||
         contains(text, "Unable to lock directory");
}

std::string lock_line(std::string_view text) {
  for (auto line : lines(text))
    if (is_lock_message(line)) return std::string(trim(line));
  return "the package system is locked by another process";
}

Result<std::vector<InstalledPackage>> installed_packages(Job& job) {
  Call call;
  call.argv = {"dpkg-query", "-W", "-f", kDpkgFormat};
  call.quiet = true;
  call.max_out_bytes = 64u << 20;
  call.limit_s = 60;
  auto answer = job.call(call);
  if (!answer) return Failure(answer.error());
  return parse_installed(answer->out);
}

// Names that this prefix's journal has as brought by us, earlier runs included.
std::set<std::string> brought_by_us(const Site& site) {
  std::set<std::string> out;
  auto past = read_journal(site.tree.real(site.prefix + "/state/journal.jsonl"));
  if (!past) return out;
  for (const auto& r : past->records)
    if (r["e"] == "packages")
      for (const auto& name : r.value("new", std::vector<std::string>{})) out.insert(name);
  return out;
}

std::string base_name(const std::string& package) {
  return package.substr(0, package.find_first_of("=/:"));
}

bool valid_name(const std::string& name) {
  if (name.empty() || name[0] == '-') return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.=~:/_") ==
         std::string::npos;
}

}  // namespace

// The key's own words for its fingerprints: gpg --show-keys --with-colons prints "fpr:::::::::FINGERPRINT:".
Result<> check_fingerprint(const std::string& key_path, std::string wanted, Job& job) {
  wanted = lower(replace_all(wanted, " ", ""));
  Call call;
  call.argv = {"gpg",       "--no-options", "--no-keyring", "--with-colons", "--import-options",
               "show-only", "--import",     key_path};
  call.in_root = false;
  call.quiet = true;
  call.limit_s = 60;
  call.env["GNUPGHOME"] = job.site().tree.real(job.site().prefix + "/cache/gnupg");
  auto answer = job.call(call);
  if (!answer)
    return add_context(answer.error(), "the key's fingerprint could not be read (is gpg installed?)");
  for (auto line : lines(answer->out)) {
    auto fields = split(line, ':');
    if (fields.size() > 9 && fields[0] == "fpr" && lower(fields[9]) == wanted) return {};
  }
  return fail(ErrorKind::failed, "signing key has another fingerprint", key_path, "expected " + wanted,
              "do not trust this repository until its owner explains the new key");
}

namespace {

// --offline: a flat repository made of the folder's packages is the only source, with lists and caches of its
// own. Trusted because the hashes were checked against the manifest, which fetch wrote from signed
// repositories.
Result<std::vector<std::string>> apt_offline(Job& job) {
  Site& site = job.site();
  if (!site.offline) return std::vector<std::string>{};
  auto debs = site.offline_part("debs/");
  if (!debs) return Failure(debs.error());
  std::string own = site.prefix + "/cache/offline-apt", list = own + "/sources.list";
  if (auto r = site.keeper->make_dirs(own + "/lists/partial"); !r) return Failure(r.error());
  std::string address = replace_all(replace_all(debs->substr(0, debs->size() - 1), "%", "%25"), " ", "%20");
  if (auto r = act(WriteFile{list, "deb [trusted=yes] file:" + address + " ./\n", 0644}, job); !r)
    return Failure(r.error());
  std::vector<std::string> out;
  for (const std::string& option :
       {"Dir::Etc::sourcelist=" + list, std::string("Dir::Etc::sourceparts=/dev/null"),
        "Dir::State::lists=" + own + "/lists", "Dir::Cache::pkgcache=" + own + "/pkgcache.bin",
        "Dir::Cache::srcpkgcache=" + own + "/srcpkgcache.bin", std::string("APT::Sandbox::User=root")}) {
    out.push_back("-o");
    out.push_back(option);
  }
  return out;
}

}  // namespace

Result<std::map<std::string, std::string>> unfinished_packages(Job& job) {
  Call call;
  call.argv = {"dpkg-query", "-W", "-f", "${Package}\t${db:Status-Status}\t${db:Status-Eflag}\n"};
  call.quiet = true;
  call.max_out_bytes = 16u << 20;
  call.limit_s = 60;
  auto answer = job.call(call);
  if (!answer) return Failure(answer.error());
  std::map<std::string, std::string> out;
  for (auto line : lines(answer->out)) {
    auto fields = split(line, '\t');
    if (fields.size() < 2) continue;
    for (const char* status : {"half-installed", "unpacked", "half-configured"})
      if (fields[1] == status) out[std::string(fields[0])] = status;
    // Cut off at the end of unpacking: dpkg calls it unpacked, and refuses to configure it all the same.
    if (fields.size() > 2 && fields[2] == "reinstreq") out[std::string(fields[0])] = "half-installed";
  }
  return out;
}

Result<> apt_get(std::vector<std::string> args, double limit_s, Job& job) {
  auto begun = std::chrono::steady_clock::now();
  args.insert(args.begin(), {"apt-get", "-o", fmt::format("DPkg::Lock::Timeout={}", kLockWaitS), "-o",
                             "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"});
  for (;;) {
    Call call;
    call.argv = args;
    call.limit_s = limit_s;
    auto answer = job.call(call);
    if (answer) return {};
    std::string text = answer.error().text();
    if (!is_lock_message(text)) return Failure(answer.error());
    auto waited = std::chrono::steady_clock::now() - begun;
    if (waited > std::chrono::seconds(kLockWaitS))
      return fail(ErrorKind::timeout, "the package system stayed locked", "apt-get", lock_line(text),
                  "wait for it to end, then run the same command again");
    job.say("waiting: " + lock_line(text));
    for (int i = 0; i < kLockRetryS * 10 && !job.stopped(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (job.stopped()) return fail(ErrorKind::interrupted, "interrupted", job.step().id);
  }
}

namespace {

// A package of ours whose unpacking was cut off: apt-get install takes it for one that is there, and
// everything that needs it fails. Those of others are theirs to judge.
template <class WithSources>
Result<> reinstall_half_installed(const WithSources& with_sources, Job& job) {
  auto unfinished = unfinished_packages(job);
  if (!unfinished) return Failure(unfinished.error());
  const auto ours = brought_by_us(job.site());
  std::vector<std::string> args = {"install", "--reinstall", "-y", "--no-install-recommends", "--"};
  const size_t none = args.size();
  for (const auto& [name, status] : *unfinished)
    if (status == "half-installed" && ours.count(name)) args.push_back(name);
  if (args.size() == none) return {};
  job.say("cut off while it was unpacked, installed again: " +
          join(std::vector<std::string>(args.begin() + long(none), args.end()), " "));
  return apt_get(with_sources(args), kInstallLimitS, job);
}

}  // namespace

Result<> act(const InstallPackages& a, Job& job) {
  Site& site = job.site();
  std::lock_guard lock(site.system_mutex);
  for (const auto& name : a.names)
    if (!valid_name(name)) return fail(ErrorKind::malformed, "not a package name", name);
  auto before = installed_packages(job);
  if (!before) return Failure(before.error());
  auto offline = apt_offline(job);
  if (!offline) return Failure(offline.error());
  auto with_sources = [&](std::vector<std::string> args) {
    args.insert(args.begin(), offline->begin(), offline->end());
    return args;
  };
  if (!site.apt_lists_fresh) {
    if (auto r = apt_get(with_sources({"update"}), 600, job); !r) return r;
    site.apt_lists_fresh = true;
  }
  Call simulate;
  simulate.argv = with_sources({"-s", "install", "-y", "--no-install-recommends", "--"});
  simulate.argv.insert(simulate.argv.begin(), "apt-get");
  simulate.argv.insert(simulate.argv.end(), a.names.begin(), a.names.end());
  simulate.quiet = true;
  auto answer = job.call(simulate);
  if (!answer) {
    Error e = answer.error();
    e.next = "apt-cache policy " + join(a.names, " ") + " shows what the repositories offer";
    return Failure(std::move(e));
  }
  std::set<std::string> had;
  for (const auto& p : *before) had.insert(p.name);
  std::vector<std::string> fresh, removed = simulated_removals(answer->out);
  for (const auto& name : simulated_installs(answer->out))
    if (!had.count(name)) fresh.push_back(name);
  if (!removed.empty())
    return fail(ErrorKind::failed, "installing would remove packages of this host", join(removed, " "),
                "apt-get resolves " + join(a.names, " ") + " only by taking them away",
                "decide by hand which of them you need, then run the same command again");
  std::vector<std::string> named;
  for (const auto& name : a.names) named.push_back(base_name(name));
  auto r =
      site.journal->write({{"e", "packages"}, {"step", job.step().id}, {"named", named}, {"new", fresh}});
  if (!r) return Failure(r.error());
  // A kill in the middle of dpkg leaves half-configured packages: let dpkg finish them first.
  Call finish;
  finish.argv = {"dpkg", "--configure", "-a"};
  finish.quiet = true;
  finish.limit_s = kInstallLimitS;
  if (auto f = job.call(finish); !f && f.error().kind == ErrorKind::interrupted) return Failure(f.error());
  if (auto mended = reinstall_half_installed(with_sources, job); !mended) return mended;
  std::vector<std::string> args = {"install", "-y", "--no-install-recommends", "--"};
  args.insert(args.end(), a.names.begin(), a.names.end());
  return apt_get(with_sources(args), kInstallLimitS, job);
}

/// The bytes of one key out of a file of keys, by a keyring made for it.
Result<std::string> pinned_key_alone(const std::string& key_path, const std::string& fingerprint, Job& job) {
  const std::string home = job.site().prefix + "/cache/gnupg", ring = home + "/pinned.gpg";
  const auto gpg = [&](std::vector<std::string> args) {
    Call call;
    call.argv = {"gpg",
                 "--no-options",
                 "--batch",
                 "--quiet",
                 "--no-default-keyring",
                 "--keyring",
                 job.site().tree.real(ring)};
    call.argv.insert(call.argv.end(), args.begin(), args.end());
    call.in_root = false;
    call.quiet = true;
    call.limit_s = 60;
    call.env["GNUPGHOME"] = job.site().tree.real(home);
    return job.call(call);
  };
  ::unlink(job.site().tree.real(ring).c_str());
  if (auto in = gpg({"--import", job.site().tree.real(key_path)}); !in)
    return add_context(in.error(), "the key could not be read by gpg");
  auto out = gpg({"--armor", "--export", replace_all(fingerprint, " ", "")});
  ::unlink(job.site().tree.real(ring).c_str());
  if (!out) return add_context(out.error(), "the pinned key could not be taken out of its file");
  if (out->out.empty())
    return fail(ErrorKind::failed, "the pinned key is not in its file", key_path, fingerprint);
  return out->out;
}

Result<> act(const AddAptSource& a, Job& job) {
  Site& site = job.site();
  std::lock_guard lock(site.system_mutex);
  if (!valid_name(a.name) || contains(a.name, "/"))
    return fail(ErrorKind::malformed, "not a repository name", a.name);
  for (const auto& field : {a.uri, a.suite, a.components})
    if (contains(field, "\n")) return fail(ErrorKind::malformed, "repository has a line break", a.name);
  if (a.key_sha256.empty() && a.key_fingerprint.empty())
    return fail(ErrorKind::malformed, "signing key is pinned by nothing", redact(a.key_url),
                "neither its SHA-256 nor its fingerprint is known",
                "get the fingerprint from its publisher over another way; it belongs into the plan");
  if (auto r = site.keeper->make_dirs(site.prefix + "/cache/gnupg", 0700); !r) return r;
  // Without a hash the bytes may differ from day to day (a new user id, a new expiry): the fingerprint
  // decides.
  auto key = a.key_sha256.empty() ? fetch_unpinned(a.key_url, "key-" + a.name, job)
                                  : fetch_to_cache(a.key_url, a.key_sha256, job);
  if (!key) return Failure(key.error());
  if (!a.key_fingerprint.empty())
    if (auto r = check_fingerprint(site.tree.real(*key), a.key_fingerprint, job); !r) return r;
  auto bytes = site.tree.read(*key);
  if (!bytes) return Failure(bytes.error());
  // The file may hold other keys, which nothing vouches for: apt is given the pinned one alone.
  if (a.key_sha256.empty()) {
    auto alone = pinned_key_alone(*key, a.key_fingerprint, job);
    if (!alone) return Failure(alone.error());
    bytes->content = std::move(*alone);
  }
  // apt reads armoured keys as .asc and binary ones as .gpg (sources.list(5), Signed-By).
  bool armoured = starts_with(trim(bytes->content), "-----BEGIN");
  std::string ring = "/etc/apt/keyrings/" + a.name + (armoured ? ".asc" : ".gpg");
  if (auto r = act(WriteFile{ring, bytes->content, 0644}, job); !r) return r;
  std::string uri = mirrored(a.uri, site.options->mirrors);
  std::string text = fmt::format("# Written by epready.\nTypes: deb\nURIs: {}\nSuites: {}\n", uri, a.suite);
  // A flat repository (suite ends in /) has no components.
  if (!a.components.empty()) text += "Components: " + a.components + "\n";
  text += "Signed-By: " + ring + "\n";
  site.apt_lists_fresh = false;
  return act(WriteFile{"/etc/apt/sources.list.d/" + a.name + ".sources", text, 0644}, job);
}

}  // namespace ep
