// NVML by name: the few functions needed are declared here as its documentation gives them, so that neither
// the header nor the library has to be present where this is compiled.
#include "gate.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "failure.h"
#include "json.h"

namespace ep::engine::gpu {

namespace {

using NvmlDevice = struct nvmlDevice_st*;
struct NvmlProcess {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
struct NvmlValue {
  unsigned field, scope;
  long long timestamp, latency;
  int value_type, status;
  union {
    double d;
    unsigned ui;
    unsigned long ul;
    unsigned long long ull;
    long long sll;
  } value;
};
constexpr int kMaxLinks = 36;
constexpr unsigned kFieldLinkSpeedCommon = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON
constexpr unsigned kFieldLinkSpeed = 164;       // NVML_FI_DEV_NVLINK_GET_SPEED, scope = link
constexpr int kClockSm = 1;
constexpr long long kThrottleIdle = 1;  // nvmlClocksEventReasonGpuIdle

struct Nvml {
  void* library = nullptr;
  std::string error;
  int (*init)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*by_pci)(const char*, NvmlDevice*) = nullptr;
  int (*link_state)(NvmlDevice, unsigned, int*) = nullptr;
  int (*fields)(NvmlDevice, int, NvmlValue*) = nullptr;
  int (*processes)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*max_clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*throttle)(NvmlDevice, unsigned long long*) = nullptr;
  int (*link_errors)(NvmlDevice, unsigned, int, unsigned long long*) = nullptr;

  Nvml() {
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) {
      error = "libnvidia-ml.so.1 cannot be loaded";
      return;
    }
    find(init, "nvmlInit_v2");
    find(driver_version, "nvmlSystemGetDriverVersion");
    find(by_pci, "nvmlDeviceGetHandleByPciBusId_v2");
    find(link_state, "nvmlDeviceGetNvLinkState");
    find(fields, "nvmlDeviceGetFieldValues");
    find(processes, "nvmlDeviceGetComputeRunningProcesses_v3");
    find(clock, "nvmlDeviceGetClockInfo");
    find(max_clock, "nvmlDeviceGetMaxClockInfo");
    find(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
    find(link_errors, "nvmlDeviceGetNvLinkErrorCounter");
    if (init == nullptr || init() != 0) error = "nvmlInit failed";
  }
  template <class F>
  void find(F& f, const char* name) {
    f = reinterpret_cast<F>(dlsym(library, name));
  }
};

void read_links(const Nvml& nvml, NvmlDevice device, GpuInfo& gpu) {
  if (nvml.link_state == nullptr) return;
  for (int link = 0; link < kMaxLinks; ++link) {
    int active = 0;
    if (nvml.link_state(device, static_cast<unsigned>(link), &active) != 0) continue;
    gpu.links_total = std::max(0, gpu.links_total) + 1;
    gpu.links_active = std::max(0, gpu.links_active) + (active != 0);
    for (int kind = 0; nvml.link_errors != nullptr && active != 0 && kind < 3; ++kind) {
      unsigned long long count = 0;  // 0 replay, 1 recovery, 2 CRC flit
      if (nvml.link_errors(device, static_cast<unsigned>(link), kind, &count) != 0) continue;
      if (kind == 0) gpu.replay_errors = std::max(0LL, gpu.replay_errors) + static_cast<long long>(count);
      if (kind == 2) gpu.crc_errors = std::max(0LL, gpu.crc_errors) + static_cast<long long>(count);
    }
  }
  // One number for all links, or (newer GPUs) link by link; MB/s of one direction either way.
  for (const unsigned field : {kFieldLinkSpeedCommon, kFieldLinkSpeed}) {
    NvmlValue value = {};
    value.field = field;
    if (gpu.links_active <= 0 || gpu.link_gbps > 0 || nvml.fields == nullptr) break;
    if (nvml.fields(device, 1, &value) != 0 || value.status != 0) continue;
    const double mbps = value.value_type == 0 ? value.value.d : static_cast<double>(value.value.ui);
    if (mbps > 0) gpu.link_gbps = mbps / 1000.0;
  }
}

void read_nvml(const Nvml& nvml, GpuInfo& gpu) {
  NvmlDevice device = nullptr;
  if (!nvml.error.empty() || nvml.by_pci == nullptr || nvml.by_pci(gpu.pci.c_str(), &device) != 0) return;
  read_links(nvml, device, gpu);
  NvmlProcess list[64];
  unsigned count = 64;
  if (nvml.processes != nullptr && nvml.processes(device, &count, list) == 0) {
    gpu.processes = 0;
    for (unsigned i = 0; i < count; ++i) gpu.processes += static_cast<int>(list[i].pid) != ::getpid();
  }
  unsigned mhz = 0;
  if (nvml.clock != nullptr && nvml.clock(device, kClockSm, &mhz) == 0)
    gpu.sm_clock_mhz = static_cast<int>(mhz);
  if (nvml.max_clock != nullptr && nvml.max_clock(device, kClockSm, &mhz) == 0)
    gpu.sm_clock_max_mhz = static_cast<int>(mhz);
  unsigned long long reasons = 0;
  if (nvml.throttle != nullptr && nvml.throttle(device, &reasons) == 0)
    gpu.throttle_reasons = static_cast<long long>(reasons);
}

GpuInfo read_gpu(int index, const Nvml& nvml) {
  GpuInfo gpu;
  gpu.index = index;
  cudaDeviceProp p;
  EP_CUDA(cudaGetDeviceProperties(&p, index));
  gpu.name = p.name;
  gpu.cc_major = p.major;
  gpu.cc_minor = p.minor;
  gpu.sms = p.multiProcessorCount;
  gpu.l2_bytes = p.l2CacheSize;
  char pci[32] = {};
  EP_CUDA(cudaDeviceGetPCIBusId(pci, sizeof pci, index));
  gpu.pci = pci;
  read_nvml(nvml, gpu);  // before the runtime makes a context there
  int before = 0;
  cudaGetDevice(&before);
  EP_CUDA(cudaSetDevice(index));
  size_t free = 0, total = 0;
  EP_CUDA(cudaMemGetInfo(&free, &total));
  gpu.memory_total = static_cast<double>(total);
  gpu.memory_used = static_cast<double>(total - free);
  cudaSetDevice(before);
  return gpu;
}

std::string text_of(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string text_of(const char* format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

void judge(GateResult& gate, bool several) {
  int most = 0;
  for (const auto& g : gate.gpus) most = std::max(most, g.links_active);
  for (const auto& g : gate.gpus) {
    if (g.processes > 0)
      gate.stop.push_back(text_of("GPU %d is busy: %d other compute processes", g.index, g.processes));
    if (g.processes < 0) gate.doubts.push_back(text_of("GPU %d: other processes unknown", g.index));
    if (several && g.links_active >= 0 && g.links_active < std::max(most, g.links_total)) {
      gate.stop.push_back(text_of("GPU %d has %d of %d NVLink links active", g.index, g.links_active,
                                  std::max(most, g.links_total)));
    }
    if (several && g.links_active <= 0) {
      gate.doubts.push_back(
          text_of("GPU %d: NVLink state %s", g.index, g.links_active < 0 ? "unknown" : "has no link"));
    }
    if (g.throttle_reasons > kThrottleIdle) {
      gate.doubts.push_back(text_of("GPU %d: clocks are held back (NVML reasons 0x%llx)", g.index,
                                    static_cast<unsigned long long>(g.throttle_reasons)));
    }
    if (g.replay_errors > 0 || g.crc_errors > 0) {
      gate.doubts.push_back(text_of("GPU %d: NVLink errors since boot: %lld replays, %lld CRC", g.index,
                                    std::max(0LL, g.replay_errors), std::max(0LL, g.crc_errors)));
    }
  }
  for (const auto& p : gate.pairs) {
    if (!p.peer_access)
      gate.stop.push_back(text_of("GPU %d cannot reach the memory of GPU %d", p.from, p.to));
  }
}

}  // namespace

GateResult read_gate(const std::vector<int>& devices) {
  GateResult gate;
  const Nvml nvml;
  gate.nvml_error = nvml.error;
  char version[96] = {};
  if (nvml.error.empty() && nvml.driver_version != nullptr &&
      nvml.driver_version(version, sizeof version) == 0) {
    gate.driver = version;
  }
  std::vector<int> distinct = devices;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (const int d : distinct) gate.gpus.push_back(read_gpu(d, nvml));
  for (const int a : distinct) {
    for (const int b : distinct) {
      if (a == b) continue;
      PairInfo pair;
      pair.from = a;
      pair.to = b;
      int yes = 0;
      EP_CUDA(cudaDeviceCanAccessPeer(&yes, a, b));
      pair.peer_access = yes != 0;
      if (cudaDeviceGetP2PAttribute(&yes, cudaDevP2PAttrNativeAtomicSupported, a, b) == cudaSuccess)
        pair.atomics = yes != 0;
      if (cudaDeviceGetP2PAttribute(&yes, cudaDevP2PAttrPerformanceRank, a, b) == cudaSuccess)
        pair.rank = yes;
      gate.pairs.push_back(pair);
    }
  }
  judge(gate, distinct.size() > 1);
  return gate;
}

std::string to_text(const GateResult& gate) {
  std::string out = text_of("# driver %s%s%s\n", gate.driver.empty() ? "unknown" : gate.driver.c_str(),
                            gate.nvml_error.empty() ? "" : "; NVML: ", gate.nvml_error.c_str());
  for (const auto& g : gate.gpus) {
    out += text_of(
        "# gpu %d  %s  %s  cc %d.%d  %d SMs  %.0f MiB (%.0f used)  NVLink %d/%d x %.2f GB/s  clock %d/%d MHz "
        " "
        "processes %d\n",
        g.index, g.name.c_str(), g.pci.c_str(), g.cc_major, g.cc_minor, g.sms, g.memory_total / 1048576.0,
        g.memory_used / 1048576.0, g.links_active, g.links_total, g.link_gbps, g.sm_clock_mhz,
        g.sm_clock_max_mhz, g.processes);
  }
  for (const auto& p : gate.pairs) {
    out += text_of("# pair %d -> %d  peer access %s  native atomics %s\n", p.from, p.to,
                   p.peer_access ? "yes" : "NO", p.atomics ? "yes" : "no");
  }
  for (const auto& s : gate.stop) out += "# STOP: " + s + "\n";
  for (const auto& d : gate.doubts) out += "# doubt: " + d + "\n";
  return out;
}

void to_json(const GateResult& gate, Json& json) {
  json.begin_object("gate").value("driver", gate.driver).value("nvml_error", gate.nvml_error);
  json.begin_array("gpus");
  for (const auto& g : gate.gpus) {
    json.begin_object()
        .value("index", g.index)
        .value("name", g.name)
        .value("pci", g.pci)
        .value("cc", std::to_string(g.cc_major) + "." + std::to_string(g.cc_minor))
        .value("sms", g.sms)
        .value("memory_bytes", g.memory_total)
        .value("memory_used_bytes", g.memory_used)
        .value("links_active", g.links_active)
        .value("links_total", g.links_total)
        .value("link_gbytes_per_s", g.link_gbps)
        .value("other_processes", g.processes)
        .value("sm_clock_mhz", g.sm_clock_mhz)
        .value("sm_clock_max_mhz", g.sm_clock_max_mhz)
        .value("throttle_reasons", g.throttle_reasons)
        .value("replay_errors", g.replay_errors)
        .value("crc_errors", g.crc_errors)
        .end_object();
  }
  json.end_array().begin_array("pairs");
  for (const auto& p : gate.pairs) {
    json.begin_object()
        .value("from", p.from)
        .value("to", p.to)
        .value("peer_access", p.peer_access)
        .value("atomics", p.atomics)
        .end_object();
  }
  json.end_array().begin_array("stop");
  for (const auto& s : gate.stop) json.value("", s);
  json.end_array().begin_array("doubts");
  for (const auto& d : gate.doubts) json.value("", d);
  json.end_array().end_object();
}

}  // namespace ep::engine::gpu
