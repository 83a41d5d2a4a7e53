// Packages of a plan with what they need, by apt in a state of its own: sources of this machine and of the
// plan, the dpkg status of the host that will be changed. Signatures are apt's to check; hashes come from its
// indexes.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "apply/actions.h"
#include "apply/gather_parts.h"
#include "apply/package_set.h"
#include "base/digest.h"
#include "base/text.h"

namespace ep {
namespace {

namespace fs = std::filesystem;

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Result<> spill(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) return fail(ErrorKind::failed, "cannot write", path);
  return {};
}

// This machine's sources, and those of the plan that it does not have yet. A key's file name tells apt its
// form.
Result<> write_sources(const Plan& plan, const std::string& dir, const std::string& own, Job& job) {
  std::error_code error;
  fs::create_directories(own + "/sources.list.d", error);
  std::string all = slurp("/etc/apt/sources.list");
  for (const auto& e : fs::directory_iterator("/etc/apt/sources.list.d", error)) {
    std::string name = e.path().filename().string(), text = slurp(e.path().string());
    if (!ends_with(name, ".list") && !ends_with(name, ".sources")) continue;
    all += text;
    if (auto r = spill(own + "/sources.list.d/" + name, text); !r) return r;
  }
  for (const auto& step : plan.steps)
    for (const auto& action : step.actions) {
      const auto* a = std::get_if<AddAptSource>(&action);
      std::string uri = a ? mirrored(a->uri, job.site().options->mirrors) : "";
      if (!a || contains(all, uri)) continue;
      std::string key =
          dir + (a->key_sha256.empty() ? "/keys/key-" + a->name : "/sha256/" + lower(a->key_sha256));
      std::string bytes = slurp(key);
      if (bytes.empty())
        return fail(ErrorKind::absent, "signing key of the repository was not gathered", a->name, key);
      std::string ring = own + "/" + a->name + (starts_with(trim(bytes), "-----BEGIN") ? ".asc" : ".gpg");
      if (auto r = spill(ring, bytes); !r) return r;
      std::string text = fmt::format("Types: deb\nURIs: {}\nSuites: {}\n", uri, a->suite);
      if (!a->components.empty()) text += "Components: " + a->components + "\n";
      if (auto r = spill(own + "/sources.list.d/epready-" + a->name + ".sources",
                         text + "Signed-By: " + ring + "\n");
          !r)
        return r;
    }
  return {};
}

// Names with an epoch hold %3a, which apt would decode in an address.
std::string plain_name(const std::string& name) {
  return replace_all(replace_all(name, "%3a", "_"), "%", "_");
}

/// A flat repository's index of everything in DIR/debs.
Result<> write_index(const std::string& debs, Job& job) {
  std::vector<std::string> names;
  for (const auto& e : fs::directory_iterator(debs))
    if (ends_with(e.path().string(), ".deb")) names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  std::string text;
  for (const auto& name : names) {
    Call call;
    call.argv = {"dpkg-deb", "--field", debs + "/" + name};
    call.quiet = true;
    auto control = job.call(call);
    if (!control) return Failure(control.error());
    auto digest = sha256_file(debs + "/" + name);
    if (!digest) return Failure(digest.error());
    text += fmt::format("{}\nFilename: ./{}\nSize: {}\nSHA256: {}\n\n", trim(control->out), name,
                        fs::file_size(debs + "/" + name), *digest);
  }
  return spill(debs + "/Packages", text);
}

}  // namespace

std::vector<PackageFile> package_files(std::string_view print_uris) {
  std::vector<PackageFile> out;
  for (auto line : lines(print_uris)) {
    auto words = split_ws(line);
    if (words.size() < 3 || !starts_with(words[0], "'") || !ends_with(words[0], "'")) continue;
    PackageFile f;
    f.url = words[0].substr(1, words[0].size() - 2);
    f.name = words[1];
    if (words.size() > 3 && starts_with(words[3], "SHA256:")) f.sha256 = lower(words[3].substr(7));
    out.push_back(std::move(f));
  }
  return out;
}

Result<> gather_packages(const InstallPackages& wanted, const Plan& plan, const GatherOptions& options,
                         Job& job) {
  Site& site = job.site();
  const std::string dir = options.dir, own = dir + "/apt", archives = own + "/archives", debs = dir + "/debs";
  std::error_code error;
  for (const char* part : {"/lists/partial", "/archives/partial", "/none/partial"})
    fs::create_directories(own + part, error);
  std::string status = options.dpkg_status;
  if (status.empty() && plan.host_name == site.host.host_name) status = "/var/lib/dpkg/status";
  if (status.empty()) {
    status = own + "/status";
    if (auto r = spill(status, ""); !r) return r;
  }
  std::vector<std::string> base;
  for (const std::string& o :
       {"Dir::Etc::sourceparts=" + own + "/sources.list.d", "Dir::State::lists=" + own + "/lists",
        "Dir::State::status=" + status, "Dir::State::extended_states=" + own + "/extended_states",
        "Dir::Cache::pkgcache=" + own + "/pkgcache.bin",
        "Dir::Cache::srcpkgcache=" + own + "/srcpkgcache.bin", std::string("APT::Sandbox::User=root"),
        std::string("Acquire::ForceHash=SHA256"), std::string("Debug::NoLocking=true")})
    base.insert(base.end(), {"-o", o});
  auto with = [&](std::vector<std::string> args, const std::string& cache, bool names) {
    args.insert(args.begin(), base.begin(), base.end());
    args.insert(args.begin(), {"-o", "Dir::Cache::archives=" + cache});
    if (names) {
      args.insert(args.end(), {"-y", "--no-install-recommends", "install", "--"});
      args.insert(args.end(), wanted.names.begin(), wanted.names.end());
    }
    return args;
  };
  if (!site.apt_lists_fresh) {
    if (auto r = write_sources(plan, dir, own, job); !r) return r;
    if (auto r = apt_get(with({"update"}, archives, false), 900, job); !r) return r;
    site.apt_lists_fresh = true;
  }
  // Against an empty cache apt names every file with its hash.
  Call list;
  list.argv = with({"--print-uris"}, own + "/none", true);
  list.argv.insert(list.argv.begin(), "apt-get");
  list.quiet = true;
  auto printed = job.call(list);
  if (!printed) return Failure(printed.error());
  auto files = package_files(printed->out);
  for (const auto& f : files) {
    if (f.sha256.empty())
      return fail(ErrorKind::unsupported, "the repository's index gives no SHA-256", f.name, f.url);
    std::string have = debs + "/" + plain_name(f.name);
    if (auto digest = sha256_file(have); digest && *digest == f.sha256)
      fs::rename(have, archives + "/" + f.name, error);
    if (starts_with(f.url, "file:"))  // apt leaves these where they are
      fs::copy_file(f.url.substr(f.url.find_first_not_of('/', 5) - 1), archives + "/" + f.name,
                    fs::copy_options::overwrite_existing, error);
  }
  if (auto r = apt_get(with({"--download-only"}, archives, true), 6 * 3600, job); !r) return r;
  for (const auto& f : files) {
    std::string got = archives + "/" + f.name;
    auto digest = sha256_file(got);
    if (!digest) return Failure(digest.error());
    if (*digest != f.sha256) {
      fs::remove(got, error);
      return fail(ErrorKind::failed, "downloaded bytes have another SHA-256", f.url,
                  "expected " + f.sha256 + ", got " + *digest,
                  "nothing of it was used; run the same command again");
    }
    fs::rename(got, debs + "/" + plain_name(f.name), error);
    if (error) return os_failure("cannot keep the package", debs + "/" + f.name, error.value());
  }
  return write_index(debs, job);
}

}  // namespace ep
