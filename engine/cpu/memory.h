// Memory of the CPU engine: shared segments that leave nothing behind, private buffers, and how much there
// is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ep::engine::cpu {

/// memfd: anonymous, not limited by the size of /dev/shm. posix: shm_open, unlinked before anything else
/// happens.
enum class Backing { kMemfd, kPosix };

/// A mapping that frees itself. Shared ones are inherited by children of fork under the same address.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept { swap(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Mapping();

  /// Both return "" or what failed, why, and what to do. Memory reads as zero until written.
  static std::string shared(Backing backing, size_t bytes, Mapping& out);
  static std::string anonymous(size_t bytes, Mapping& out);

  /// Takes the pages now, so that a lack of memory is an error here and not a signal later; on a NUMA machine
  /// the pages stand near the caller. Only for shared mappings.
  std::string reserve() const;

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void swap(Mapping& other) noexcept;
  char* data_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;
};

struct Budget {
  uint64_t bytes = 0;
  std::string limited_by;  // "memory available", "the control group's limit", "/dev/shm"
};

/// How much this process may take now: the least of free memory, control group limits and, for posix,
/// /dev/shm.
Budget memory_budget(Backing backing);

/// Proportional share of this process in bytes (shared pages divided among their users); 0 when not readable.
uint64_t proportional_bytes();

}  // namespace ep::engine::cpu
