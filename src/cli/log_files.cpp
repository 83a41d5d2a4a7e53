#include "cli/log_files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace ep {

namespace {

/// A file descriptor that closes itself; shared because std::function copies.
struct Descriptor {
  int fd;
  explicit Descriptor(int f) : fd(f) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd > STDERR_FILENO) ::close(fd);
  }
};

Result<std::shared_ptr<Descriptor>> open_for_reading(const std::string& path) {
  if (path == "-") return std::make_shared<Descriptor>(STDIN_FILENO);
  auto d = std::make_shared<Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (d->fd < 0)
    return fail(errno == ENOENT ? ErrorKind::absent : ErrorKind::unreadable, "cannot open the log", path,
                std::strerror(errno), "epready doctor FILE..., or pipe it in: ... | epready doctor -");
  struct stat s {};
  if (::fstat(d->fd, &s) == 0 && S_ISDIR(s.st_mode))
    return fail(ErrorKind::usage, "a folder is not a log", path, "name its files",
                "epready doctor " + path + "/*.log");
  ::posix_fadvise(d->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  return d;
}

Result<size_t> read_some(int fd, char* into, size_t most, const std::string& name) {
  for (;;) {
    const ssize_t n = ::read(fd, into, most);
    if (n >= 0) return size_t(n);
    if (errno != EINTR)
      return fail(ErrorKind::unreadable, "cannot read the log to its end", name, std::strerror(errno));
  }
}

}  // namespace

Result<LogInput> open_log(const std::string& path) {
  auto d = open_for_reading(path);
  if (!d) return Failure(std::move(d.error()));
  const std::string name = path == "-" ? "stdin" : path;
  return LogInput{name,
                  [d = *d, name](char* into, size_t most) { return read_some(d->fd, into, most, name); }};
}

Result<LogInput> follow_log(const std::string& path, std::function<void()> idle,
                            const std::atomic<bool>* stop) {
  auto d = open_for_reading(path);
  if (!d) return Failure(std::move(d.error()));
  const bool pipe = path == "-";
  return LogInput{
      pipe ? "stdin" : path,
      [d = *d, path, pipe, idle = std::move(idle), stop](char* into, size_t most) -> Result<size_t> {
        for (bool told = false;;) {
          if (*stop) return size_t(0);
          auto n = read_some(d->fd, into, most, path);
          if (!n || *n > 0 || pipe) return n;
          if (!told) idle();
          told = true;
          struct stat s {};
          if (::fstat(d->fd, &s) == 0 && ::lseek(d->fd, 0, SEEK_CUR) > s.st_size) ::lseek(d->fd, 0, SEEK_SET);
          ::poll(nullptr, 0, 200);
        }
      }};
}

}  // namespace ep
