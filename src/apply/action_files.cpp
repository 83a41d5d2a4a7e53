// File actions: through the keeper, so that undo can put everything back.
#include <fmt/format.h>

#include "apply/actions.h"
#include "base/text.h"

namespace ep {
namespace {

std::string parent(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

Result<> change(Job& job, const std::string& path, Entry entry) {
  Site& site = job.site();
  if (entry.kind != Entry::Kind::absent)
    if (auto r = site.keeper->make_dirs(parent(path)); !r) return r;
  auto changed = site.keeper->change(path, std::move(entry));
  if (!changed) return Failure(changed.error());
  job.say((*changed ? "wrote " : "already so: ") + path);
  return {};
}

Entry file_entry(std::string content, uint32_t mode) {
  Entry entry;
  entry.kind = Entry::Kind::file;
  entry.mode = mode & 07775;  // never writable by everybody
  entry.content = std::move(content);
  return entry;
}

}  // namespace

Result<> act(const WriteFile& a, Job& job) {
  return change(job, job.site().path(a.path), file_entry(a.content, a.mode));
}

Result<> act(const RemoveFile& a, Job& job) {
  return change(job, job.site().path(a.path), Entry{});
}

Result<> act(const MakeLink& a, Job& job) {
  Entry entry;
  entry.kind = Entry::Kind::link;
  entry.content = a.target;
  return change(job, job.site().path(a.path), std::move(entry));
}

Result<> act(const MakeDir& a, Job& job) {
  return job.site().keeper->make_dirs(job.site().path(a.path), a.mode & 07775);
}

// pam_limits(8) for login sessions and systemd-system.conf(5) for services; "*" of pam_limits leaves root
// out.
Result<> act(const SetLimits& a, Job& job) {
  std::string pam = "# Written by epready: RDMA registers memory, which counts as locked.\n";
  std::string units = "# Written by epready.\n[Manager]\n";
  for (const auto& [name, value] : a.limits) {
    std::string key = name == "memlock" ? "MEMLOCK" : name == "nofile" ? "NOFILE" : "";
    bool number = parse_int(value).has_value();
    if (key.empty() || (!number && value != "unlimited"))
      return fail(ErrorKind::malformed, "limit is not known", name + "=" + value,
                  "memlock and nofile can be set",
                  "write the plan again with this version: epready plan -o FILE");
    for (const char* who : {"*", "root"})
      for (const char* kind : {"soft", "hard"}) pam += fmt::format("{} {} {} {}\n", who, kind, name, value);
    // pam counts memlock in KiB, systemd in bytes.
    std::string unit_value = value == "unlimited" ? "infinity" : name == "memlock" ? value + "K" : value;
    units += fmt::format("DefaultLimit{}={}\n", key, unit_value);
  }
  if (auto r = change(job, "/etc/security/limits.d/99-epready.conf", file_entry(pam, 0644)); !r) return r;
  if (job.site().host.has_systemd || job.site().tree.root() != "/")
    return change(job, "/etc/systemd/system.conf.d/99-epready.conf", file_entry(units, 0644));
  return {};
}

}  // namespace ep
