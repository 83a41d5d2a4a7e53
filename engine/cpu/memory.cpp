#include "cpu/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

namespace ep::engine::cpu {

namespace {

std::string failure(const char* what, size_t bytes, int error) {
  return std::string(what) + " of " + std::to_string(bytes >> 20) + " MiB: " + std::strerror(error);
}

int open_posix(std::string& name) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    name = "/epready-engine-" + std::to_string(getpid()) + "-" + std::to_string(attempt);
    const int fd = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
      shm_unlink(name.c_str());
      return fd;
    }
    if (errno != EEXIST) return -1;
  }
  return -1;
}

/// First number in a file, or `otherwise` when there is none ("max" in control groups).
uint64_t number_in(const std::string& path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t value;
  return file >> value ? value : otherwise;
}

/// "Name:   123 kB" in a /proc file, in bytes.
uint64_t kilobytes_line(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, name.size(), name) == 0)
      return std::strtoull(line.c_str() + name.size(), nullptr, 10) << 10;
  }
  return 0;
}

constexpr uint64_t kUnlimited = ~uint64_t{0};

/// The number after a word at the begin of a line, or 0.
uint64_t word_line(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  uint64_t value = 0;
  for (std::string name; file >> name >> value;) {
    if (name == word) return value;
  }
  return 0;
}

/// File names of one version of control groups.
struct GroupFiles {
  const char *mark, *mount, *limit, *used, *reclaimable;
};
constexpr GroupFiles kGroups[] = {{"0::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
                                  {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                   "memory.usage_in_bytes", "total_inactive_file"}};

/// What one group still allows; file pages that can be dropped count as free.
uint64_t allows(const GroupFiles& files, const std::string& folder) {
  const uint64_t limit = number_in(folder + "/" + files.limit, kUnlimited);
  if (limit >= kUnlimited / 4) return kUnlimited;
  const uint64_t used = number_in(folder + "/" + files.used, 0);
  const uint64_t droppable = std::min(used, word_line(folder + "/memory.stat", files.reclaimable));
  return limit > used - droppable ? limit - (used - droppable) : 0;
}

/// What the tightest enclosing control group still allows, version 1 or 2. Inside a container the path may
/// name folders that are not visible; its own group is then the root of the mount.
uint64_t group_allows() {
  std::ifstream file("/proc/self/cgroup");
  uint64_t least = kUnlimited;
  for (std::string line; std::getline(file, line);) {
    for (const GroupFiles& files : kGroups) {
      const size_t mark = line.find(files.mark);
      if (mark == std::string::npos || (files.mark[0] == '0' && mark != 0)) continue;
      std::string path = line.substr(mark + std::string_view(files.mark).size());
      for (; path.size() > 1 && path[0] == '/'; path.resize(path.find_last_of('/')))
        least = std::min(least, allows(files, files.mount + path));
      least = std::min(least, allows(files, files.mount));
    }
  }
  return least;
}

}  // namespace

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, size_);
  if (fd_ >= 0) close(fd_);
}

void Mapping::swap(Mapping& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
}

std::string Mapping::shared(Backing backing, size_t bytes, Mapping& out) {
  Mapping made;
  std::string name;
  made.fd_ = backing == Backing::kMemfd ? memfd_create("epready-engine", MFD_CLOEXEC) : open_posix(name);
  if (made.fd_ < 0) {
    const int error = errno;
    return failure(backing == Backing::kMemfd ? "memfd_create" : "shm_open", bytes, error) +
           (backing == Backing::kMemfd ? "; try --shm posix" : "; is /dev/shm mounted? try --shm memfd");
  }
  if (ftruncate(made.fd_, static_cast<off_t>(bytes)) != 0)
    return failure("sizing shared memory", bytes, errno);
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd_, 0);
  if (at == MAP_FAILED) return failure("mapping shared memory", bytes, errno);
  madvise(at, bytes, MADV_HUGEPAGE);  // takes effect where the system allows it for shared memory
  made.data_ = static_cast<char*>(at);
  made.size_ = bytes;
  out = std::move(made);
  return {};
}

std::string Mapping::anonymous(size_t bytes, Mapping& out) {
  Mapping made;
  bytes = std::max<size_t>(bytes, 4096);
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return failure("mapping private memory", bytes, errno);
  madvise(at, bytes, MADV_HUGEPAGE);
  made.data_ = static_cast<char*>(at);
  made.size_ = bytes;
  out = std::move(made);
  return {};
}

std::string Mapping::reserve() const {
  const int error = posix_fallocate(fd_, 0, static_cast<off_t>(size_));
  if (error == 0) return {};
  return failure("reserving shared memory", size_, error) + "; use fewer --num-tokens or enlarge /dev/shm";
}

Budget memory_budget(Backing backing) {
  Budget budget{kilobytes_line("/proc/meminfo", "MemAvailable:"), "memory available"};
  if (budget.bytes == 0) budget.bytes = kUnlimited;
  const uint64_t group = group_allows();
  if (group < budget.bytes) budget = {group, "the control group's memory limit"};
  if (backing == Backing::kPosix) {
    struct statvfs shm = {};
    const uint64_t room =
        statvfs("/dev/shm", &shm) == 0 ? static_cast<uint64_t>(shm.f_bavail) * shm.f_frsize : uint64_t{0};
    if (room < budget.bytes) budget = {room, "/dev/shm"};
  }
  return budget;
}

uint64_t proportional_bytes() {
  return kilobytes_line("/proc/self/smaps_rollup", "Pss:");
}

}  // namespace ep::engine::cpu
