// NCCL's host API by dlopen, whatever version is found: the library that our numbers stand beside. Declares
// only what the peer cases call; the calls used have kept their meaning since NCCL 2.7 (AlltoAll: 2.28).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace ep::engine::gpu {

class Group;

/// One communicator of one rank. Every call takes a CUDA stream as an opaque pointer and throws Failure.
class Nccl {
 public:
  /// Collective over the group. `path` may be empty: then the usual places are tried. On failure every rank
  /// gets null and the same `why`.
  static std::unique_ptr<Nccl> open(Group& group, const std::string& path, std::string& why);
  ~Nccl();

  int version() const { return version_; }
  const std::string& path() const { return path_; }
  bool has_all_to_all() const { return all_to_all_ != nullptr; }

  struct Part {
    const void* send;
    void* receive;
    size_t send_bytes, receive_bytes;
  };
  /// One send and one receive per rank, in one group: an all-to-all with sizes of its own ("v").
  void send_receive(const std::vector<Part>& parts, void* stream);
  void all_to_all(const void* send, void* receive, size_t bytes_per_rank, void* stream);
  void all_gather(const void* send, void* receive, size_t bytes, void* stream);

 private:
  Nccl() = default;
  std::string load(const std::string& path);
  void check(int code, const char* what) const;

  struct Id {
    char bytes[128];
  };
  using Comm = void*;
  void* library_ = nullptr;
  std::string path_;
  int version_ = 0;
  Comm comm_ = nullptr;
  int (*get_version_)(int*) = nullptr;
  int (*get_id_)(Id*) = nullptr;
  int (*init_)(Comm*, int, Id, int) = nullptr;
  int (*destroy_)(Comm) = nullptr;
  int (*group_start_)() = nullptr;
  int (*group_end_)() = nullptr;
  int (*send_)(const void*, size_t, int, int, Comm, void*) = nullptr;
  int (*receive_)(void*, size_t, int, int, Comm, void*) = nullptr;
  int (*all_to_all_)(const void*, void*, size_t, int, Comm, void*) = nullptr;
  int (*all_gather_)(const void*, void*, size_t, int, Comm, void*) = nullptr;
  const char* (*error_)(int) = nullptr;
};

}  // namespace ep::engine::gpu
