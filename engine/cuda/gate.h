// What the GPUs are and how they are joined, before anything is measured: read from the driver (NVML, by
// dlopen) and the runtime. A gate says which doubts forbid a score; it changes nothing.
#pragma once

#include <string>
#include <vector>

namespace ep::engine {
class Json;
}

namespace ep::engine::gpu {

struct GpuInfo {
  int index = 0;
  std::string name, pci, uuid;
  int cc_major = 0, cc_minor = 0, sms = 0;
  double memory_total = 0, memory_used = 0;  // bytes
  int l2_bytes = 0;
  // Unknown (-1) where NVML does not say.
  int links_active = -1, links_total = -1;
  double link_gbps = -1;  // per link and direction, 1e9 bytes/s, signalled
  int processes = -1;     // compute processes other than this one
  int sm_clock_mhz = -1, sm_clock_max_mhz = -1;
  long long throttle_reasons = -1;
  long long replay_errors = -1, crc_errors = -1;
};

struct PairInfo {
  int from = 0, to = 0;
  bool peer_access = false;
  bool atomics = false;
  int rank = -1;  // cudaDevP2PAttrPerformanceRank
};

struct GateResult {
  std::string driver, nvml_error;  // error: why NVML has said nothing
  std::vector<GpuInfo> gpus;
  std::vector<PairInfo> pairs;
  std::vector<std::string> stop;    // no exchange possible, or no score allowed
  std::vector<std::string> doubts;  // said beside every number
};

/// `devices`: those that ranks will use. Touches the CUDA runtime.
GateResult read_gate(const std::vector<int>& devices);
std::string to_text(const GateResult& gate);
void to_json(const GateResult& gate, Json& json);

}  // namespace ep::engine::gpu
