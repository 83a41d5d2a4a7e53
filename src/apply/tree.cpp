// Tree: safe walking, reading and atomic publishing below a root.
#include "apply/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "host/snapshot.h"

namespace ep {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel's own limit for path resolution

std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> out;
  size_t i = 0;
  while (i < path.size()) {
    size_t j = path.find('/', i);
    if (j == std::string::npos) j = path.size();
    if (j > i && path.substr(i, j - i) != ".") out.push_back(path.substr(i, j - i));
    i = j + 1;
  }
  return out;
}

// A folder or link on the way may belong to root or to us only: anybody else could swap it under our feet.
bool trusted(const struct stat& st) {
  return st.st_uid == 0 || st.st_uid == geteuid();
}

Failure untrusted(const std::string& path, const struct stat& st) {
  return fail(ErrorKind::failed, "refused to write through a folder that somebody else controls", path,
              fmt::format("owner is user {}, mode {:o}", st.st_uid, st.st_mode & 07777),
              "choose a prefix below folders that belong to root or to you");
}

Result<std::string> read_link(int dir, const std::string& name, const std::string& shown) {
  char buf[4096];
  ssize_t n = readlinkat(dir, name.c_str(), buf, sizeof buf);
  if (n < 0) return os_failure("cannot read link", shown, errno);
  return std::string(buf, size_t(n));
}

Result<std::string> read_all(int fd, const std::string& shown) {
  std::string out;
  char buf[65536];
  for (;;) {
    ssize_t n = ::read(fd, buf, sizeof buf);
    if (n == 0) return out;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_failure("cannot read", shown, errno);
    out.append(buf, size_t(n));
  }
}

Result<> write_all(int fd, std::string_view bytes, const std::string& shown) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_failure("cannot write", shown, errno);
    bytes.remove_prefix(size_t(n));
  }
  return {};
}

constexpr int kScratchNames = 64;  // writers of one file at one time

// Few fixed names a target, so that what a killed run left is found and replaced by the next one, or taken
// away by undo. A writer that lives holds a lock on its file.
std::string scratch_name(const std::string& name, int i = 0) {
  return "." + name + ".epready-new" + (i ? std::to_string(i) : "");
}

struct Scratch {
  Fd fd;
  std::string name;
};

// True when the name was left by a run that is no more, and is free now.
bool clear_leftover(int dir, const std::string& name) {
  Fd old(openat(dir, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (old && flock(old.get(), LOCK_EX | LOCK_NB) != 0) return false;
  return unlinkat(dir, name.c_str(), 0) == 0 || errno == ENOENT;
}

Result<Scratch> open_scratch(int dir, const std::string& target, const std::string& shown) {
  for (int i = 0, tries = 0; i < kScratchNames && tries < 4 * kScratchNames; ++tries) {
    Scratch s{Fd(), scratch_name(target, i)};
    s.fd = Fd(openat(dir, s.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!s.fd && errno != EEXIST) return os_failure("cannot write", shown, errno);
    if (!s.fd) {
      if (!clear_leftover(dir, s.name)) ++i;
      continue;
    }
    // Between making and locking it another writer may have taken it for a leftover: then it has no name any
    // more.
    struct stat st;
    if (flock(s.fd.get(), LOCK_EX | LOCK_NB) == 0 && fstat(s.fd.get(), &st) == 0 && st.st_nlink == 1)
      return s;
  }
  return fail(ErrorKind::failed, "cannot write: too many writers at once", shown);
}

// Unlinks everything in an open folder. `device`: a mount inside is somebody else's and stays.
Result<> empty_dir(int dir, dev_t device, const std::string& shown) {
  int copy = fcntl(dir, F_DUPFD_CLOEXEC, 0);
  DIR* handle = copy < 0 ? nullptr : fdopendir(copy);
  if (!handle) return os_failure("cannot list", shown, errno);
  std::vector<std::string> names;
  while (const dirent* e = readdir(handle)) names.emplace_back(e->d_name);
  closedir(handle);
  for (const auto& name : names) {
    if (name == "." || name == "..") continue;
    std::string path = shown + "/" + name;
    struct stat st;
    if (fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(st.st_mode)) {
      if (st.st_dev != device) return os_failure("cannot remove a mount point", path, EBUSY);
      // Build trees and module caches carry folders without write permission; they are ours. Where that does
      // not help, the next call says so.
      [[maybe_unused]] const int widened =
          (st.st_mode & 0700) != 0700 ? fchmodat(dir, name.c_str(), 0700, 0) : 0;
      Fd sub(openat(dir, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!sub) return os_failure("cannot open", path, errno);
      if (auto r = empty_dir(sub.get(), device, path); !r) return r;
      if (unlinkat(dir, name.c_str(), AT_REMOVEDIR) != 0) return os_failure("cannot remove", path, errno);
    } else if (unlinkat(dir, name.c_str(), 0) != 0) {
      return os_failure("cannot remove", path, errno);
    }
  }
  return {};
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool Entry::same_as(const Entry& other) const {
  if (kind != other.kind) return false;
  switch (kind) {
    case Kind::absent:
    case Kind::other:
      return true;
    case Kind::link:
      return content == other.content;
    case Kind::directory:
      return true;
    case Kind::file:
      return content == other.content && mode == other.mode && uid == other.uid && gid == other.gid;
  }
  return false;
}

std::string_view to_string(Entry::Kind kind) {
  switch (kind) {
    case Entry::Kind::absent:
      return "absent";
    case Entry::Kind::file:
      return "file";
    case Entry::Kind::link:
      return "link";
    case Entry::Kind::directory:
      return "directory";
    case Entry::Kind::other:
      return "other";
  }
  return "other";
}

Failure os_failure(std::string what, const std::string& path, int err) {
  std::string next;
  ErrorKind kind = ErrorKind::failed;
  if (err == ENOSPC || err == EDQUOT)
    next = "free some space (df -h " + path + ") and run the same command again";
  if (err == EROFS) {
    kind = ErrorKind::unsupported;
    next =
        "this file system is mounted read-only: use --root or --prefix on a writable one, or change the "
        "image";
  }
  if (err == EACCES || err == EPERM) {
    bool root = geteuid() == 0, sudo = access("/usr/bin/sudo", X_OK) == 0;
    kind = root ? ErrorKind::unreadable : ErrorKind::unsupported;
    next = root   ? "the file system or a security module refuses root: see dmesg"
           : sudo ? "run it with sudo"
                  : "run it as root (there is no sudo here)";
  }
  if (err == ENOENT) kind = ErrorKind::absent;
  return fail(kind, std::move(what), path, std::strerror(err), std::move(next));
}

Result<Tree> Tree::open(const std::string& root) {
  Tree tree;
  tree.root_ = root.empty() ? "/" : root;
  while (tree.root_.size() > 1 && tree.root_.back() == '/') tree.root_.pop_back();
  Fd fd(::open(tree.root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return os_failure("cannot open the root folder", tree.root_, errno);
  return tree;
}

std::string Tree::real(const std::string& path) const {
  if (root_ == "/") return path;
  const auto inside = canonical_path(path, true, [&](const std::string& p) -> std::optional<std::string> {
    char target[4096];
    const ssize_t n = readlink((root_ + p).c_str(), target, sizeof target);
    if (n <= 0 || n == ssize_t(sizeof target)) return std::nullopt;
    return std::string(target, size_t(n));
  });
  return root_ + (inside ? *inside : "/proc/link-loop");  // a name that nothing can be made at
}

Result<Tree::Place> Tree::parent_of(const std::string& path) const {
  if (path.empty() || path[0] != '/') return fail(ErrorKind::internal, "path is not absolute", path);
  std::vector<std::string> todo = components(path);
  for (const auto& c : todo)
    if (c == "..") return fail(ErrorKind::usage, "path climbs with ..", path);
  if (todo.empty()) return fail(ErrorKind::usage, "path names the root folder itself", path);
  std::string last = todo.back();
  todo.pop_back();
  std::vector<std::string> rest(todo.rbegin(), todo.rend());  // a stack: next component at the back
  std::vector<Fd> way;
  way.emplace_back(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!way.back()) return os_failure("cannot open", root_, errno);
  int links = 0;
  while (!rest.empty()) {
    std::string name = rest.back();
    rest.pop_back();
    if (name == "..") {  // only out of a link's target; never above the root
      if (way.size() > 1) way.pop_back();
      continue;
    }
    struct stat st;
    if (fstatat(way.back().get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
      return os_failure("no such folder", path, errno);
    if (!trusted(st)) return untrusted(path, st);
    if (S_ISLNK(st.st_mode)) {
      if (++links > kMaxLinks) return os_failure("cannot resolve", path, ELOOP);
      auto target = read_link(way.back().get(), name, path);
      if (!target) return Failure(target.error());
      if (!target->empty() && (*target)[0] == '/') way.erase(way.begin() + 1, way.end());
      auto more = components(*target);
      rest.insert(rest.end(), more.rbegin(), more.rend());
      continue;
    }
    if (!S_ISDIR(st.st_mode)) return os_failure("cannot walk", path, ENOTDIR);
    if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX)) return untrusted(path, st);
    Fd next(openat(way.back().get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return os_failure("cannot open", path, errno);
    way.push_back(std::move(next));
  }
  return Place{std::move(way.back()), std::move(last)};
}

Result<Entry> Tree::read(const std::string& path) const {
  auto place = parent_of(path);
  if (!place && place.error().kind == ErrorKind::absent) return Entry{};
  if (!place) return Failure(place.error());
  struct stat st;
  if (fstatat(place->dir.get(), place->name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return Entry{};
    return os_failure("cannot look at", path, errno);
  }
  Entry entry;
  entry.mode = st.st_mode & 07777;
  entry.uid = st.st_uid;
  entry.gid = st.st_gid;
  if (S_ISDIR(st.st_mode)) {
    entry.kind = Entry::Kind::directory;
  } else if (S_ISLNK(st.st_mode)) {
    entry.kind = Entry::Kind::link;
    auto target = read_link(place->dir.get(), place->name, path);
    if (!target) return Failure(target.error());
    entry.content = std::move(*target);
  } else if (S_ISREG(st.st_mode)) {
    entry.kind = Entry::Kind::file;
    Fd fd(openat(place->dir.get(), place->name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return os_failure("cannot read", path, errno);
    auto content = read_all(fd.get(), path);
    if (!content) return Failure(content.error());
    entry.content = std::move(*content);
  } else {
    entry.kind = Entry::Kind::other;
  }
  return entry;
}

Result<> Tree::write_file(const std::string& path, const Entry& entry) const {
  auto place = parent_of(path);
  if (!place) return Failure(place.error());
  int dir = place->dir.get();
  auto made = open_scratch(dir, place->name, path);
  if (!made) return Failure(made.error());
  const Fd& fd = made->fd;
  const std::string& scratch = made->name;
  auto give_up = [&](Failure f) -> Result<> {
    unlinkat(dir, scratch.c_str(), 0);
    return f;
  };
  if (auto r = write_all(fd.get(), entry.content, path); !r) return give_up(Failure(r.error()));
  bool ours = entry.uid == geteuid() && entry.gid == getegid();
  if (!ours && fchown(fd.get(), entry.uid, entry.gid) != 0)
    return give_up(os_failure("cannot set the owner of", path, errno));
  if (fchmod(fd.get(), entry.mode) != 0) return give_up(os_failure("cannot set the mode of", path, errno));
  if (fsync(fd.get()) != 0) return give_up(os_failure("cannot write", path, errno));
  if (renameat(dir, scratch.c_str(), dir, place->name.c_str()) != 0)
    return give_up(os_failure("cannot put in place", path, errno));
  Fd real_dir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (real_dir) fsync(real_dir.get());
  return {};
}

Result<> Tree::write_link(const std::string& path, const std::string& target) const {
  auto place = parent_of(path);
  if (!place) return Failure(place.error());
  std::string scratch = scratch_name(place->name);
  unlinkat(place->dir.get(), scratch.c_str(), 0);
  if (symlinkat(target.c_str(), place->dir.get(), scratch.c_str()) != 0)
    return os_failure("cannot make link", path, errno);
  if (renameat(place->dir.get(), scratch.c_str(), place->dir.get(), place->name.c_str()) != 0) {
    int err = errno;
    unlinkat(place->dir.get(), scratch.c_str(), 0);
    return os_failure("cannot put link in place", path, err);
  }
  return {};
}

Result<> Tree::make_dir(const std::string& path, uint32_t mode) const {
  auto place = parent_of(path);
  if (!place) return Failure(place.error());
  if (mkdirat(place->dir.get(), place->name.c_str(), 0700) != 0) {
    int err = errno;
    struct stat st;
    bool is_dir =
        err == EEXIST && fstatat(place->dir.get(), place->name.c_str(), &st, 0) == 0 && S_ISDIR(st.st_mode);
    if (is_dir) return {};
    return os_failure("cannot make folder", path, err);
  }
  if (fchmodat(place->dir.get(), place->name.c_str(), mode, 0) != 0)
    return os_failure("cannot set the mode of", path, errno);
  return {};
}

Result<> Tree::remove(const std::string& path) const {
  auto place = parent_of(path);
  if (!place && place.error().kind == ErrorKind::absent) return {};
  if (!place) return Failure(place.error());
  for (int i = 0; i < kScratchNames; ++i) {
    struct stat st;
    std::string name = scratch_name(place->name, i);
    if (fstatat(place->dir.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0)
      clear_leftover(place->dir.get(), name);
    else
      break;
  }
  if (unlinkat(place->dir.get(), place->name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno == EISDIR || errno == EPERM) {
    if (unlinkat(place->dir.get(), place->name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  }
  return os_failure("cannot remove", path, errno);
}

Result<> Tree::remove_tree(const std::string& path) const {
  auto place = parent_of(path);
  if (!place && place.error().kind == ErrorKind::absent) return {};
  if (!place) return Failure(place.error());
  Fd dir(openat(place->dir.get(), place->name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir && errno == ENOENT) return {};
  if (!dir && (errno == ENOTDIR || errno == ELOOP)) return remove(path);
  if (!dir) return os_failure("cannot open", path, errno);
  struct stat st;
  if (fstat(dir.get(), &st) != 0) return os_failure("cannot look at", path, errno);
  if (auto r = empty_dir(dir.get(), st.st_dev, path); !r) return r;
  if (unlinkat(place->dir.get(), place->name.c_str(), AT_REMOVEDIR) != 0)
    return os_failure("cannot remove", path, errno);
  return {};
}

Result<> Tree::publish(const std::string& from, const std::string& to) const {
  auto source = parent_of(from);
  if (!source) return Failure(source.error());
  auto target = parent_of(to);
  if (!target) return Failure(target.error());
  int sdir = source->dir.get(), tdir = target->dir.get();
  const char *sname = source->name.c_str(), *tname = target->name.c_str();
  if (renameat(sdir, sname, tdir, tname) == 0) return {};
  if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR && errno != EISDIR)
    return os_failure("cannot put in place", to, errno);
  // An older entry is there: swap in one move, so that at every moment one whole entry has the name.
  if (renameat2(sdir, sname, tdir, tname, RENAME_EXCHANGE) != 0) {
    if (auto r = remove_tree(to); !r)
      return r;  // file systems without exchange: a short gap, never a half one
    if (renameat(sdir, sname, tdir, tname) != 0) return os_failure("cannot put in place", to, errno);
    return {};
  }
  return remove_tree(from);
}

}  // namespace ep
