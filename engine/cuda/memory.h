// Memory that peers can write: one arena per rank, and everybody's address of it. Providers differ in how the
// addresses come about; the kernels do not know which one it was.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "group.h"

namespace ep::engine::gpu {

enum class Provider {
  kP2p,  // threads: cudaMalloc and peer access
  kIpc,  // processes: CUDA IPC handles
  kVmm,  // both: cuMemCreate, exported as POSIX file descriptors
};
const char* name_of(Provider provider);
bool parse_provider(const std::string& text, Provider& out);

class SharedMemory {
 public:
  /// Collective. `devices[r]` is the device of rank r; the current device is this rank's. Throws Failure.
  SharedMemory(Group& group, Provider provider, const std::vector<int>& devices, size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  char* at(int rank) const { return static_cast<char*>(address_[rank]); }
  size_t bytes() const { return bytes_; }

 private:
  void open_p2p(const std::vector<int>& devices);
  void open_ipc();
  void open_vmm(const std::vector<int>& devices);
  void* map_vmm(unsigned long long handle, const std::vector<int>& devices);

  Group& group_;
  Provider provider_;
  int rank_;
  size_t bytes_, mapped_ = 0;
  std::vector<void*> address_;
};

}  // namespace ep::engine::gpu
