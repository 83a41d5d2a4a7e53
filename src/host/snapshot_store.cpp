// Snapshots on disk: a folder (root/, probe/, manifest.json), the same as a tar archive, or one file. Reading
// never follows a link and never opens what is not a plain file; writing builds aside, syncs, then renames.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "host/process.h"
#include "host/snapshot.h"

namespace ep {

namespace {

namespace fs = std::filesystem;
using Type = FileInfo::Type;

struct Fd {
  int fd;
  explicit Fd(int f) : fd(f) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd >= 0) close(fd);
  }
};

Failure disk(const char* what, const std::string& path, int error) {
  auto kind = error == ENOENT || error == ENOTDIR ? ErrorKind::absent
              : error == EACCES || error == ELOOP ? ErrorKind::unreadable
                                                  : ErrorKind::failed;
  return fail(kind, what, path, strerror(error));
}

Failure too_large(const std::string& path, std::string why) {
  return fail(ErrorKind::failed, "this is no snapshot of ours", path, std::move(why));
}

// ---- reading ----

struct Budget {
  size_t bytes = kMaxSnapshotBytes, entries = kMaxSnapshotEntries;
};

Result<std::string> read_at(int dir, const char* name, const std::string& shown, Budget& budget) {
  Fd fd(openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.fd < 0) return disk("cannot read the snapshot", shown, errno);
  struct stat st {};
  if (fstat(fd.fd, &st) != 0 || !S_ISREG(st.st_mode))
    return too_large(shown, "not a plain file, folder or link");
  size_t limit = std::min(budget.bytes, kMaxSnapshotFileBytes);
  if (size_t(st.st_size) > limit)
    return too_large(shown, fmt::format("{} bytes are more than a snapshot may hold", st.st_size));
  std::string out;
  char buffer[1u << 16];
  for (;;) {
    ssize_t n = read(fd.fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return disk("cannot read the snapshot", shown, errno);
    if (n == 0) break;
    if (out.size() + size_t(n) > limit) return too_large(shown, "more bytes than a snapshot may hold");
    out.append(buffer, size_t(n));
  }
  budget.bytes -= out.size();
  return out;
}

Result<std::string> link_at(int dir, const char* name, const std::string& shown) {
  char buffer[4096];
  ssize_t n = readlinkat(dir, name, buffer, sizeof buffer);
  if (n < 0) return disk("cannot read the snapshot", shown, errno);
  return std::string(buffer, size_t(n));
}

// Depth first below root/; `path` is the path on the captured host ("" for /).
Result<> read_tree(int dir, const std::string& path, const std::string& shown, SnapshotData& d,
                   Budget& budget) {
  if (split(path, '/').size() > 64) return too_large(shown, "folders nested too deeply");
  Fd copy(dup(dir));
  DIR* stream = copy.fd < 0 ? nullptr : fdopendir(copy.fd);
  if (!stream) return disk("cannot read the snapshot", shown, errno);
  copy.fd = -1;
  std::vector<std::string> names;
  while (dirent* e = readdir(stream))
    if (std::string_view n = e->d_name; n != "." && n != "..") names.emplace_back(n);
  closedir(stream);
  for (const auto& name : names) {
    if (budget.entries-- == 0) return too_large(shown, "more entries than a snapshot may have");
    std::string here = path + "/" + name, where = shown + "/" + name;
    struct stat st {};
    if (fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
      return disk("cannot read the snapshot", where, errno);
    if (S_ISLNK(st.st_mode)) {
      auto target = link_at(dir, name.c_str(), where);
      if (!target) return Failure(target.error());
      d.link(here, *target);
    } else if (S_ISDIR(st.st_mode)) {
      d.add(here, Type::directory);
      Fd child(openat(dir, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (child.fd < 0) return disk("cannot read the snapshot", where, errno);
      if (auto ok = read_tree(child.fd, here, where, d, budget); !ok) return ok;
    } else {
      auto content = read_at(dir, name.c_str(), where, budget);
      if (!content) return Failure(content.error());
      d.file(here, std::move(*content));
    }
  }
  return {};
}

Result<SnapshotData> read_folder(const std::string& path) {
  Fd top(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (top.fd < 0) return disk("cannot read the snapshot", path, errno);
  SnapshotData d;
  d.add("/", Type::directory);
  Budget budget;
  auto manifest = read_at(top.fd, "manifest.json", path + "/manifest.json", budget);
  if (!manifest) {
    if (manifest.error().kind == ErrorKind::absent)
      return fail(ErrorKind::malformed, "not a snapshot", path, "it has no manifest.json",
                  "epready snapshot -o DIR takes one");
    return Failure(manifest.error());
  }
  if (auto ok = from_manifest(*manifest, path + "/manifest.json", d); !ok) return Failure(ok.error());
  Fd root(openat(top.fd, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (root.fd < 0)
    return fail(ErrorKind::malformed, "the snapshot is damaged", path + "/root", strerror(errno));
  if (auto ok = read_tree(root.fd, "", path + "/root", d, budget); !ok) return Failure(ok.error());
  Fd probes(openat(top.fd, "probe", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  for (auto& [name, p] : d.probes) {
    if (contains(name, "/"))
      return fail(ErrorKind::malformed, "the snapshot is damaged", path, "a probe's name has a slash");
    for (auto [suffix, into] : {std::pair(".out", &p.out), std::pair(".err", &p.err)}) {
      std::string file = name + suffix;
      auto text = read_at(probes.fd, file.c_str(), path + "/probe/" + file, budget);
      if (text)
        *into = std::move(*text);
      else if (text.error().kind != ErrorKind::absent)
        return Failure(text.error());
    }
  }
  return d;
}

Result<SnapshotData> sound(Result<SnapshotData> d, const std::string& source) {
  if (!d) return d;
  if (auto ok = check_sound(*d, source); !ok) return Failure(ok.error());
  return d;
}

std::string scratch_beside(const std::string& path) {
  static int counter = 0;
  fs::path p(path);
  return (p.parent_path() / fmt::format(".{}.{}.{}", p.filename().string(), getpid(), ++counter)).string();
}

Spawn tar(std::vector<std::string> args) {
  Spawn s;
  s.argv = {"tar"};
  s.argv.insert(s.argv.end(), args.begin(), args.end());
  s.env = base_environment();
  s.limit_s = 120;
  return s;
}

// Looks at the list before anything is unpacked: places, kinds and sizes.
Result<> inspect_archive(const std::string& path) {
  Budget budget;
  std::string trouble;
  Spawn s = tar({"--list", "--verbose", "--numeric-owner", "--quoting-style=escape", "-f", path});
  std::atomic<bool> stop{false};
  s.interrupt = &stop;
  s.max_out_bytes = 0;
  s.on_out = [&](std::string_view line) {
    auto words = split_ws(line);  // -rw------- 0/0 SIZE DATE TIME NAME [-> TARGET]
    if (!trouble.empty()) return;
    if (words.size() < 6 || !contains("-dl", words[0].substr(0, 1))) {
      trouble = fmt::format("it holds something else than files, folders and links: {}", line);
    } else {
      auto size = parse_int(words[2]);
      if (!size || size_t(*size) > budget.bytes || budget.entries == 0)
        trouble = "it is larger than a snapshot may be";
      else
        budget.bytes -= size_t(*size), --budget.entries;
      std::string_view name = words[5];
      if (starts_with(name, "/")) trouble = fmt::format("it holds the absolute path {}", name);
      for (auto part : split(name, '/'))
        if (part == "..") trouble = fmt::format("it holds a path that leaves it: {}", name);
    }
    if (!trouble.empty()) stop = true;
  };
  auto r = run(s);
  if (!r) return Failure(r.error());
  if (!trouble.empty()) return too_large(path, trouble);
  if (!r->ok())
    return fail(ErrorKind::malformed, "the snapshot archive is damaged", path, std::string(trim(r->err)));
  return {};
}

Result<SnapshotData> read_archive(const std::string& path) {
  if (auto ok = inspect_archive(path); !ok) return Failure(ok.error());
  std::string pattern = (fs::temp_directory_path() / "epready-snapshot-XXXXXX").string();
  if (!mkdtemp(pattern.data())) return disk("cannot make a scratch folder", pattern, errno);
  Result<SnapshotData> d = [&]() -> Result<SnapshotData> {
    auto r = run(tar({"--extract", "--no-same-owner", "--no-same-permissions", "--no-overwrite-dir", "-C",
                      pattern, "-f", path}));
    if (!r) return Failure(r.error());
    if (!r->ok())
      return fail(ErrorKind::malformed, "the snapshot archive is damaged", path, std::string(trim(r->err)));
    std::string top = pattern;
    std::error_code ec;
    // Packed with its folder or without: both are usual.
    if (!fs::exists(top + "/manifest.json", ec))
      for (const auto& entry : fs::directory_iterator(pattern, ec))
        if (fs::exists(entry.path() / "manifest.json", ec)) top = entry.path().string();
    return read_folder(top);
  }();
  std::error_code ec;
  fs::remove_all(pattern, ec);
  if (!d && contains(d.error().where, pattern)) d.error().where = replace_all(d.error().where, pattern, path);
  return d;
}

// ---- writing ----

Result<> write_file(const std::string& path, std::string_view bytes) {
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.fd < 0) return disk("cannot write", path, errno);
  while (!bytes.empty()) {
    ssize_t n = write(fd.fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return disk("cannot write", path, errno);
    bytes.remove_prefix(size_t(n));
  }
  return {};
}

// Once for the whole folder or file: a snapshot has thousands of small files, and one flush each takes
// minutes on a disk.
Result<> sync_at(const std::string& path, bool is_folder) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.fd < 0 || (is_folder ? syncfs(fd.fd) : fsync(fd.fd)) != 0) return disk("cannot write", path, errno);
  return {};
}

Result<> make_dir(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0) return disk("cannot make the folder", path, errno);
  return {};
}

void sync_dir(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.fd >= 0) fsync(fd.fd);
}

Result<> write_folder(const SnapshotData& d, const std::string& path) {
  for (auto dir : {std::string(), std::string("/root"), std::string("/probe")})
    if (auto ok = make_dir(path + dir); !ok) return ok;
  // Parents come before children in the map's order, and `sound` data has no child behind a link.
  for (const auto& [at, node] : d.nodes) {
    std::string to = path + "/root" + at;
    Result<> ok;
    if (at == "/") continue;
    if (node.type == Type::directory)
      ok = make_dir(to);
    else if (node.type == Type::link && symlink(node.target.c_str(), to.c_str()) != 0)
      ok = disk("cannot make the link", to, errno);
    else if (node.content)
      ok = write_file(to, *node.content);
    if (!ok) return ok;
  }
  for (const auto& [name, p] : d.probes) {
    if (!p.out.empty())
      if (auto ok = write_file(path + "/probe/" + name + ".out", p.out); !ok) return ok;
    if (!p.err.empty())
      if (auto ok = write_file(path + "/probe/" + name + ".err", p.err); !ok) return ok;
  }
  return write_file(path + "/manifest.json", to_manifest(d));
}

bool is_archive_name(std::string_view path) {
  return ends_with(path, ".tar.gz") || ends_with(path, ".tgz") || ends_with(path, ".tar");
}

Result<> write_any(const SnapshotData& d, const std::string& path, const std::string& scratch) {
  if (ends_with(path, ".snap")) return write_file(scratch, to_snap_text(d));
  if (!is_archive_name(path)) return write_folder(d, scratch);
  std::string folder = scratch + ".d";
  std::string inside = fs::path(path).filename().string();
  inside = inside.substr(0, inside.find(".t"));
  if (inside.empty()) inside = "snapshot";
  if (auto ok = make_dir(folder); !ok) return ok;
  Result<> result = write_folder(d, folder + "/" + inside);
  if (result) {
    auto r = run(tar(
        {ends_with(path, ".tar") ? "-cf" : "-czf", fs::absolute(scratch).string(), "-C", folder, inside}));
    if (!r)
      result = Failure(r.error());
    else if (!r->ok())
      result = fail(ErrorKind::failed, "cannot pack the snapshot", path, std::string(trim(r->err)));
    chmod(scratch.c_str(), 0600);
  }
  std::error_code ec;
  fs::remove_all(folder, ec);
  return result;
}

}  // namespace

Result<SnapshotData> read_snapshot(const std::string& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) return disk("cannot read the snapshot", path, errno);
  if (S_ISDIR(st.st_mode)) return sound(read_folder(path), path);
  Budget budget;
  char head[20] = {};
  {
    Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd.fd < 0 || read(fd.fd, head, sizeof head - 1) < 0)
      return disk("cannot read the snapshot", path, errno);
  }
  if (!starts_with(head, "epready-snapshot") && !ends_with(path, ".snap")) {
    if (starts_with(head, "\x1f\x8b") || is_archive_name(path)) return sound(read_archive(path), path);
    return fail(ErrorKind::malformed, "not a snapshot", path,
                "neither a folder with manifest.json, nor an archive, nor a .snap file");
  }
  auto text = read_at(AT_FDCWD, fs::canonical(path).c_str(), path, budget);
  if (!text) return Failure(text.error());
  return sound(from_snap_text(*text, path), path);
}

Result<> write_snapshot(const SnapshotData& data, const std::string& path_given) {
  std::string path = path_given;
  while (path.size() > 1 && ends_with(path, "/")) path.pop_back();
  std::error_code ec;
  if (fs::symlink_status(path, ec).type() != fs::file_type::not_found)
    return fail(ErrorKind::usage, "the place is taken", path, "a snapshot never overwrites",
                "name another place with -o");
  if (auto ok = check_sound(data, path); !ok) return ok;
  std::string scratch = scratch_beside(path);
  auto result = write_any(data, path, scratch);
  if (result) result = sync_at(scratch, !ends_with(path, ".snap") && !is_archive_name(path));
  if (result && rename(scratch.c_str(), path.c_str()) != 0)
    result = disk("cannot put the snapshot in place", path, errno);
  if (!result) {
    fs::remove_all(scratch, ec);
    return result;
  }
  auto parent = fs::path(path).parent_path().string();
  sync_dir(parent.empty() ? "." : parent);
  return {};
}

}  // namespace ep
