// PrefixLock by flock(2); the holder is found in /proc/locks by device and inode.
#include "apply/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "apply/job.h"
#include "base/text.h"

namespace ep {
namespace {

// /proc/locks: "1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF" (proc(5)).
std::string holder_of(const struct stat& st) {
  std::string place = fmt::format("{:02x}:{:02x}:{}", major(st.st_dev), minor(st.st_dev), st.st_ino);
  std::ifstream locks("/proc/locks");
  std::string line;
  while (std::getline(locks, line)) {
    auto words = split_ws(line);
    if (words.size() < 6 || words[1] != "FLOCK" || words[5] != place) continue;
    std::string pid(words[4]);
    std::ifstream file("/proc/" + pid + "/cmdline", std::ios::binary);
    std::string command((std::istreambuf_iterator<char>(file)), {});
    for (char& c : command)
      if (c == '\0') c = ' ';
    return fmt::format("process {}{}{}", pid, command.empty() ? "" : ": ", trim(redact(command)));
  }
  return "another process";
}

}  // namespace

Result<PrefixLock> PrefixLock::take(const std::string& folder) {
  PrefixLock lock;
  lock.fd_ = Fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.fd_) return os_failure("cannot open the prefix folder", folder, errno);
  // `epready status` holds it for a moment while it looks; a real run holds it for longer than these tries.
  for (int tries = 0; tries < 5; ++tries) {
    if (flock(lock.fd_.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (errno != EWOULDBLOCK) return os_failure("cannot lock the prefix folder", folder, errno);
  struct stat st;
  fstat(lock.fd_.get(), &st);
  return fail(ErrorKind::failed, "another run works in this prefix", folder, holder_of(st),
              "wait for it, or see epready status");
}

std::string PrefixLock::holder(const std::string& folder) {
  Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return {};
  if (flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return {};
  struct stat st;
  fstat(fd.get(), &st);
  return holder_of(st);
}

}  // namespace ep
