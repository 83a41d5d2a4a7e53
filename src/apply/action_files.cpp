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

std::string with_shm_size(std::string_view fstab, const std::string& size) {
  const std::string line = "tmpfs /dev/shm tmpfs nosuid,nodev,size=" + size + " 0 0";
  std::string out;
  bool placed = false;
  for (auto each : lines(fstab)) {
    auto fields = split_ws(each);
    if (fields.size() < 4 || starts_with(fields[0], "#") || fields[1] != "/dev/shm") {
      out += std::string(each) + "\n";
      continue;
    }
    if (placed) continue;  // a second line for one place is read after the first and would win
    placed = true;
    std::vector<std::string> options;
    for (auto o : split(fields[3], ','))
      if (!starts_with(o, "size=") && o != "defaults") options.emplace_back(o);
    options.push_back("size=" + size);
    out += fmt::format("{} /dev/shm tmpfs {} 0 0\n", fields[0], join(options, ","));
  }
  return placed ? out : out + line + "\n";
}

namespace {

// systemd mounts /dev/shm itself and takes its options from fstab at boot (systemd-remount-fs(8)); now by a
// remount.
Result<> set_shm(const std::string& size, Job& job) {
  Site& site = job.site();
  auto fstab = site.tree.read("/etc/fstab");
  if (!fstab) return Failure(fstab.error());
  Entry entry = std::move(*fstab);
  if (entry.kind == Entry::Kind::absent) entry = file_entry("", 0644);
  if (entry.kind != Entry::Kind::file)
    return fail(ErrorKind::failed, "/etc/fstab is no file: the size of /dev/shm cannot be kept",
                "/etc/fstab");
  entry.content = with_shm_size(entry.content, size);
  if (auto r = change(job, "/etc/fstab", std::move(entry)); !r) return r;
  if (site.tree.root() != "/") return {};  // an image: it is mounted so when it boots
  Call remount;
  remount.argv = {"mount", "-o", "remount,size=" + size, "/dev/shm"};
  remount.limit_s = 60;
  return run_call(remount, job);
}

bool is_size(const std::string& value) {  // tmpfs(5): bytes, with k, m, g, or a share of the memory with %
  size_t digits = value.find_first_not_of("0123456789");
  if (digits == 0 || value.empty()) return false;
  return digits == std::string::npos ||
         (digits + 1 == value.size() && contains("kmgKMG%", value.substr(digits)));
}

}  // namespace

// pam_limits(8) for login sessions and systemd-system.conf(5) for services; "*" of pam_limits leaves root
// out. "shm" is the size of /dev/shm.
Result<> act(const SetLimits& a, Job& job) {
  std::string pam = "# Written by epready: RDMA registers memory, which counts as locked.\n";
  std::string units = "# Written by epready.\n[Manager]\n", shm;
  bool any = false;
  for (const auto& [name, value] : a.limits) {
    if (name == "shm" && is_size(value)) {
      shm = value;
      continue;
    }
    std::string key = name == "memlock" ? "MEMLOCK" : name == "nofile" ? "NOFILE" : "";
    bool number = parse_int(value).has_value();
    if (key.empty() || (!number && value != "unlimited"))
      return fail(ErrorKind::malformed, "limit is not known", name + "=" + value,
                  "memlock, nofile and shm can be set",
                  "write the plan again with this version: epready plan -o FILE");
    any = true;
    for (const char* who : {"*", "root"})
      for (const char* kind : {"soft", "hard"}) pam += fmt::format("{} {} {} {}\n", who, kind, name, value);
    // pam counts memlock in KiB, systemd in bytes.
    std::string unit_value = value == "unlimited" ? "infinity" : name == "memlock" ? value + "K" : value;
    units += fmt::format("DefaultLimit{}={}\n", key, unit_value);
  }
  if (!shm.empty())
    if (auto r = set_shm(shm, job); !r) return r;
  if (!any) return {};
  if (auto r = change(job, "/etc/security/limits.d/99-epready.conf", file_entry(pam, 0644)); !r) return r;
  if (job.site().host.has_systemd || job.site().tree.root() != "/")
    return change(job, "/etc/systemd/system.conf.d/99-epready.conf", file_entry(units, 0644));
  return {};
}

}  // namespace ep
