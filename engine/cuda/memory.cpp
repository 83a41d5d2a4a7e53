// The three providers. The driver's functions are looked up at run time, so that the program starts on
// machines without one.
#include "memory.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include "failure.h"

namespace ep::engine::gpu {

void check_cuda(int code, const char* what, const char* file, int line) {
  if (code == cudaSuccess) return;
  const auto error = static_cast<cudaError_t>(code);
  const bool here = error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver;
  throw Failure(here ? 3 : 1, std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) +
                                  ") from " + what + " at " + file + ":" + std::to_string(line));
}

const char* name_of(Provider provider) {
  return provider == Provider::kP2p ? "p2p" : provider == Provider::kIpc ? "ipc" : "vmm";
}
bool parse_provider(const std::string& text, Provider& out) {
  for (const Provider p : {Provider::kP2p, Provider::kIpc, Provider::kVmm}) {
    if (text == name_of(p)) {
      out = p;
      return true;
    }
  }
  return false;
}

namespace {

/// Driver API, by name from libcuda.
struct Driver {
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) free_address;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;
  decltype(&cuMemExportToShareableHandle) export_handle;
  decltype(&cuMemImportFromShareableHandle) import_handle;
  decltype(&cuMemGetAllocationGranularity) granularity;
};

const Driver& driver() {
  static const Driver loaded = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) throw Failure(3, "libcuda.so.1 cannot be loaded: no NVIDIA driver here");
    const auto find = [library](const char* name) {
      void* symbol = dlsym(library, name);
      if (symbol == nullptr)
        throw Failure(3, std::string(name) + " is missing in libcuda.so.1: the driver is too old");
      return symbol;
    };
    Driver d;
    d.create = reinterpret_cast<decltype(d.create)>(find("cuMemCreate"));
    d.release = reinterpret_cast<decltype(d.release)>(find("cuMemRelease"));
    d.reserve = reinterpret_cast<decltype(d.reserve)>(find("cuMemAddressReserve"));
    d.free_address = reinterpret_cast<decltype(d.free_address)>(find("cuMemAddressFree"));
    d.map = reinterpret_cast<decltype(d.map)>(find("cuMemMap"));
    d.unmap = reinterpret_cast<decltype(d.unmap)>(find("cuMemUnmap"));
    d.set_access = reinterpret_cast<decltype(d.set_access)>(find("cuMemSetAccess"));
    d.export_handle = reinterpret_cast<decltype(d.export_handle)>(find("cuMemExportToShareableHandle"));
    d.import_handle = reinterpret_cast<decltype(d.import_handle)>(find("cuMemImportFromShareableHandle"));
    d.granularity = reinterpret_cast<decltype(d.granularity)>(find("cuMemGetAllocationGranularity"));
    return d;
  }();
  return loaded;
}

void check_driver(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS)
    throw Failure(1, std::string(what) + " failed with driver error " + std::to_string(code));
}

CUmemAllocationProp properties(int device) {
  CUmemAllocationProp p = {};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}

}  // namespace

SharedMemory::SharedMemory(Group& group, Provider provider, const std::vector<int>& devices, size_t bytes)
    : group_(group),
      provider_(provider),
      rank_(group.rank()),
      bytes_(bytes),
      address_(group.size(), nullptr) {
  if (provider == Provider::kP2p && group.processes())
    throw Failure(2, "--provider p2p needs --mode threads");
  if (provider == Provider::kIpc && !group.processes()) throw Failure(2, "--provider ipc needs --mode procs");
  if (provider == Provider::kVmm) {
    open_vmm(devices);
  } else {
    EP_CUDA(cudaMalloc(&address_[rank_], bytes));
    if (provider == Provider::kP2p)
      open_p2p(devices);
    else
      open_ipc();
  }
}

SharedMemory::~SharedMemory() {
  cudaDeviceSynchronize();
  try {
    group_.barrier();  // nobody uses our memory any more
  } catch (const Failure&) {
  }
  for (size_t r = 0; r < address_.size(); ++r) {
    const bool own = static_cast<int>(r) == rank_;
    if (address_[r] == nullptr) continue;
    if (provider_ == Provider::kVmm) {
      if (!own && !group_.processes()) continue;
      driver().unmap(reinterpret_cast<CUdeviceptr>(address_[r]), mapped_);
      driver().free_address(reinterpret_cast<CUdeviceptr>(address_[r]), mapped_);
    } else if (own) {
      cudaFree(address_[r]);
    } else if (provider_ == Provider::kIpc) {
      cudaIpcCloseMemHandle(address_[r]);
    }
  }
}

void SharedMemory::open_p2p(const std::vector<int>& devices) {
  const auto all = group_.gather(address_[rank_]);
  for (int r = 0; r < group_.size(); ++r) {
    address_[r] = all[r];
    if (devices[r] == devices[rank_]) continue;
    const cudaError_t e = cudaDeviceEnablePeerAccess(devices[r], 0);
    if (e != cudaSuccess && e != cudaErrorPeerAccessAlreadyEnabled) EP_CUDA(e);
    cudaGetLastError();
  }
}

void SharedMemory::open_ipc() {
  cudaIpcMemHandle_t mine;
  EP_CUDA(cudaIpcGetMemHandle(&mine, address_[rank_]));
  const auto all = group_.gather(mine);
  for (int r = 0; r < group_.size(); ++r) {
    if (r != rank_) EP_CUDA(cudaIpcOpenMemHandle(&address_[r], all[r], cudaIpcMemLazyEnablePeerAccess));
  }
}

void* SharedMemory::map_vmm(unsigned long long handle, const std::vector<int>& devices) {
  CUdeviceptr at = 0;
  check_driver(driver().reserve(&at, mapped_, size_t{2} << 20, 0, 0), "cuMemAddressReserve");
  check_driver(driver().map(at, mapped_, 0, handle, 0), "cuMemMap");
  std::vector<CUmemAccessDesc> access;
  for (const int device : devices) {
    bool known = false;
    for (const auto& a : access) known = known || a.location.id == device;
    if (!known)
      access.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, {device}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  }
  check_driver(driver().set_access(at, mapped_, access.data(), access.size()), "cuMemSetAccess");
  return reinterpret_cast<void*>(at);
}

void SharedMemory::open_vmm(const std::vector<int>& devices) {
  EP_CUDA(cudaFree(nullptr));
  const CUmemAllocationProp p = properties(devices[rank_]);
  size_t unit = 0;
  check_driver(driver().granularity(&unit, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
               "cuMemGetAllocationGranularity");
  mapped_ = (bytes_ + unit - 1) / unit * unit;
  CUmemGenericAllocationHandle handle = 0;
  check_driver(driver().create(&handle, mapped_, &p, 0), "cuMemCreate");
  const std::vector<int> readers = group_.processes() ? std::vector<int>{devices[rank_]} : devices;
  address_[rank_] = map_vmm(handle, readers);
  if (!group_.processes()) {
    address_ = group_.gather(address_[rank_]);
    driver().release(handle);
    return;
  }
  int fd = -1;
  check_driver(driver().export_handle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               "cuMemExportToShareableHandle");
  const auto fds = group_.exchange_fd(fd);
  for (int r = 0; r < group_.size(); ++r) {
    if (r != rank_) {
      CUmemGenericAllocationHandle theirs = 0;
      check_driver(driver().import_handle(&theirs, reinterpret_cast<void*>(static_cast<intptr_t>(fds[r])),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                   "cuMemImportFromShareableHandle");
      address_[r] = map_vmm(theirs, readers);
      driver().release(theirs);
    }
    if (fds[r] >= 0) ::close(fds[r]);
  }
  ::close(fd);
  driver().release(handle);
}

}  // namespace ep::engine::gpu
