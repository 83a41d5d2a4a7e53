// What --from means: decides by looking which kind of host a word names.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "host/snapshot.h"

namespace ep {

// Hosts that hold whole files hand out pieces of them.
Result<std::string> Host::read_at(const std::string& path, uint64_t offset, size_t size) const {
  auto whole = read(path, SIZE_MAX);
  if (!whole) return whole;
  return offset < whole->size() ? whole->substr(size_t(offset), size) : std::string();
}

namespace {

// A snapshot shows itself by its first bytes or its manifest; everything else is text to be read as a paste.
bool looks_like_snapshot(const std::string& path, const struct stat& st) {
  if (S_ISDIR(st.st_mode)) return access((path + "/manifest.json").c_str(), F_OK) == 0;
  for (auto suffix : {".tar", ".tar.gz", ".tgz", ".snap"})
    if (ends_with(path, suffix)) return true;
  char head[17] = {};
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  ssize_t n = read(fd, head, sizeof head - 1);
  close(fd);
  std::string_view got(head, n > 0 ? size_t(n) : 0);
  return starts_with(got, "epready-snapshot") || starts_with(got, "\x1f\x8b");
}

}  // namespace

Result<std::unique_ptr<Host>> open_host(const std::string& from) {
  if (from.empty()) return live_host();
  if (starts_with(from, kSamplePrefix)) return snapshot_host(from);
  if (from == "-") return paste_host({from});
  struct stat st {};
  if (stat(from.c_str(), &st) != 0) {
    auto near = closest(from, sample_names());
    return fail(
        errno == EACCES ? ErrorKind::unreadable : ErrorKind::absent, "cannot open the host", from,
        std::string(strerror(errno)) + "; --from takes a snapshot, a text file or folder, - or sample/NAME",
        "the same command with --from sample/" + (near                     ? *near
                                                  : sample_names().empty() ? "NAME"
                                                                           : sample_names()[0]));
  }
  if (looks_like_snapshot(from, st)) return snapshot_host(from);
  return paste_host({from});
}

}  // namespace ep
