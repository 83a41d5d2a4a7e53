// The running machine (or a mounted image below `root`): system calls and probes, nothing kept.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "host/probes.h"
#include "host/process.h"
#include "host/snapshot.h"

extern char** environ;

namespace ep {

namespace {

// The word people search for, and the sentence.
std::string errno_words(int e) {
  const char* name = strerrorname_np(e);
  return name ? fmt::format("{} ({})", name, strerror(e)) : std::string(strerror(e));
}

Failure failure(const std::string& path, int e) {
  if (e == ENOENT || e == ENOTDIR) return not_there(path);
  if (e == ELOOP) return refused(path, {ErrorKind::unreadable, "Too many levels of symbolic links"});
  return refused(path, {ErrorKind::unreadable, errno_words(e)});
}

std::optional<std::string> read_link(const std::string& path) {
  char buffer[4096];
  ssize_t n = readlink(path.c_str(), buffer, sizeof buffer);
  if (n < 0 || n == ssize_t(sizeof buffer)) return std::nullopt;
  return std::string(buffer, size_t(n));
}

const char* space_type(long magic) {
  switch (magic) {
    case 0xEF53:
      return "ext4";
    case 0x58465342:
      return "xfs";
    case 0x9123683E:
      return "btrfs";
    case 0x01021994:
      return "tmpfs";
    case 0x794C7630:
      return "overlay";
    case 0x6969:
      return "nfs";
    case 0x0BD00BD0:
      return "lustre";
    case 0x65735546:
      return "fuse";
    case 0xFF534D42:
      return "cifs";
    case 0x2FC12FC1:
      return "zfs";
    case 0x73717368:
      return "squashfs";
    case 0x47504653:
      return "gpfs";
    default:
      return "";
  }
}

// What dpkg-query would print of an image, from its own database: one row a package, in the probe's columns,
// for the patterns that the probe names. dpkg(1): a stanza a package, fields "Package", "Version", "Status".
std::string packages_of_image(std::string_view status, const ProbeRow& row) {
  std::string out, name, version, state;
  const auto flush = [&] {
    bool wanted = false;
    for (size_t i = 3; i < row.argv.size(); ++i)
      wanted = wanted || fnmatch(row.argv[i], name.c_str(), 0) == 0;
    if (wanted && !name.empty()) out += fmt::format("{}\t{}\t{}\n", name, version, state);
    name = version = state = "";
  };
  for (const auto line : lines(status)) {
    if (line.empty()) flush();
    for (const auto& [field, into] : {std::pair<std::string_view, std::string*>{"Package: ", &name},
                                      {"Version: ", &version},
                                      {"Status: ", &state}})
      if (starts_with(line, field)) *into = std::string(trim(line.substr(field.size())));
  }
  flush();
  return out;
}

class LiveHost final : public Host {
 public:
  explicit LiveHost(std::string root) : root_(std::move(root)) {
    while (ends_with(root_, "/")) root_.pop_back();  // "/" becomes empty: paths are used as they are
  }
  HostKind kind() const override { return HostKind::live; }
  std::string name() const override { return root_.empty() ? "this machine" : root_; }

  Result<std::string> read(const std::string& path, size_t limit) const override {
    int fd = open(real(path, true).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return failure(path, errno);
    struct stat st {};
    std::string out;
    int error = 0;
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
      close(fd);
      return refused(path,
                     {ErrorKind::unreadable, S_ISDIR(st.st_mode) ? "Is a directory" : "not a regular file"});
    }
    // Sizes in /proc and /sys lie: read until the end.
    size_t step = st.st_size > 0 ? std::min<size_t>(size_t(st.st_size) + 1, limit) : 4096;
    while (out.size() < limit) {
      size_t have = out.size(), want = std::min(std::max<size_t>(step, 1), limit - have);
      out.resize(have + want);
      ssize_t n = ::read(fd, out.data() + have, want);
      if (n < 0) error = errno;
      out.resize(have + size_t(std::max<ssize_t>(n, 0)));
      if (n < 0 && error == EINTR) {
        error = 0;
        continue;
      }
      if (n <= 0) break;
      step = std::min<size_t>(std::max<size_t>(step, 4096) * 2, 1u << 20);
    }
    close(fd);
    if (error) return failure(path, error);
    return out;
  }

  Result<std::string> read_at(const std::string& path, uint64_t offset, size_t size) const override {
    int fd = open(real(path, true).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return failure(path, errno);
    std::string out(size, '\0');
    size_t have = 0;
    int error = 0;
    while (have < size) {
      ssize_t n = pread(fd, out.data() + have, size - have, off_t(offset + have));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) error = errno;
      if (n <= 0) break;
      have += size_t(n);
    }
    close(fd);
    if (error) return failure(path, error);
    out.resize(have);
    return out;
  }

  Result<std::vector<std::string>> list(const std::string& path) const override {
    DIR* dir = opendir(real(path, true).c_str());
    if (!dir) {
      if (errno == ENOTDIR && exists(path)) return refused(path, {ErrorKind::unreadable, "Not a directory"});
      return failure(path, errno);
    }
    std::vector<std::string> names;
    errno = 0;
    while (dirent* entry = readdir(dir)) {
      std::string_view n = entry->d_name;
      if (n != "." && n != "..") names.emplace_back(n);
    }
    int error = errno;
    closedir(dir);
    if (error) return failure(path, error);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<std::string> link(const std::string& path) const override {
    if (auto target = read_link(real(path, false))) return *target;
    if (errno == EINVAL) return refused(path, {ErrorKind::unreadable, "not a symbolic link"});
    return failure(path, errno);
  }

  Result<FileInfo> info(const std::string& path) const override {
    std::string place = real(path, true);
    struct stat st {};
    if (stat(place.c_str(), &st) != 0) {
      int error = errno;
      place = real(path, false);
      if (error != ENOENT || lstat(place.c_str(), &st) != 0 || !S_ISLNK(st.st_mode))
        return failure(path, error);
    }
    FileInfo i;
    i.type = S_ISREG(st.st_mode)   ? FileInfo::Type::file
             : S_ISDIR(st.st_mode) ? FileInfo::Type::directory
             : S_ISLNK(st.st_mode) ? FileInfo::Type::link
                                   : FileInfo::Type::other;
    i.mode = st.st_mode & 07777;
    i.size = uint64_t(st.st_size);
    i.readable = access(place.c_str(), R_OK) == 0;
    i.writable = access(place.c_str(), W_OK) == 0;
    return i;
  }

  Result<SpaceInfo> space(const std::string& path) const override {
    struct statvfs v {};
    struct statfs f {};
    std::string place = real(path, true);
    if (statvfs(place.c_str(), &v) != 0 || statfs(place.c_str(), &f) != 0) return failure(path, errno);
    SpaceInfo s;
    s.total_bytes = uint64_t(v.f_blocks) * v.f_frsize;
    s.free_bytes = uint64_t(v.f_bavail) * v.f_frsize;
    s.type = space_type(long(f.f_type));
    return s;
  }

  ProbeResult probe(std::string_view probe_name) const override;

  std::map<std::string, std::string> environment() const override {
    std::map<std::string, std::string> out;
    for (char** e = environ; e && *e; ++e) {
      std::string_view entry = *e;
      size_t at = entry.find('=');
      if (at != entry.npos && at > 0) out.emplace(entry.substr(0, at), entry.substr(at + 1));
    }
    return out;
  }

 private:
  // Below a root, absolute links mean that root, as they will for the machine that boots from it.
  std::string real(const std::string& path, bool follow_last) const {
    if (root_.empty()) return path;
    auto where =
        canonical_path(path, follow_last, [&](const std::string& p) { return read_link(root_ + p); });
    return root_ + (where ? *where : path);
  }

  std::string root_;
};

ProbeResult LiveHost::probe(std::string_view probe_name) const {
  ProbeResult p;
  const ProbeRow* row = find_probe(probe_name);
  if (!row) {
    p.why = fmt::format("no probe is called {}", probe_name);
    return p;
  }
  if (!root_.empty() && probe_name == "dpkg") {
    const auto status = read("/var/lib/dpkg/status", 256u << 20);
    p.found = status || status.error().kind != ErrorKind::absent;
    if (status) {
      p.exit_code = 0;
      p.out = packages_of_image(*status, *row);
    } else {
      p.why = status.error().why.empty() ? "the image has no /var/lib/dpkg/status" : status.error().why;
    }
    return p;
  }
  if (!root_.empty()) {
    p.why = "probes do not run for a mounted image";
    return p;
  }
  Spawn s;
  utsname names{};
  uname(&names);
  for (const char* word : row->argv) s.argv.push_back(replace_all(word, "{kernel}", names.release));
  s.env = base_environment();
  set_variable(s.env, "LC_ALL", "C.UTF-8");
  s.limit_s = row->limit_s;
  s.grace_s = 1;
  s.max_out_bytes = row->max_bytes;
  s.max_err_bytes = 64u << 10;
  s.end_group = true;
  s.interrupt = probe_interrupt();
  auto r = run(s);
  if (!r) {
    p.found = r.error().kind != ErrorKind::absent;
    p.why = p.found ? r.error().what + ": " + r.error().why : "program not found";
    return p;
  }
  p.found = true;
  p.exit_code = r->signal ? 128 + r->signal : r->exit_code;
  p.timed_out = r->timed_out || r->unkillable || r->interrupted;
  p.out = std::move(r->out);
  p.err = std::move(r->err);
  if (p.timed_out)
    p.why = r->how(row->limit_s);
  else if (p.out.empty())
    p.why = r->how(row->limit_s);
  return p;
}

}  // namespace

std::unique_ptr<Host> live_host(std::string root) {
  return std::make_unique<LiveHost>(std::move(root));
}

}  // namespace ep
