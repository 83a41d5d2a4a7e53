// Port and error counters of every RDMA device around a piece of work: which NICs carried it, and evenly or
// not. Source: ports/N/counters and hw_counters below /sys/class/infiniband; *_data counters count 4-byte
// words.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/finding.h"
#include "host/host.h"

namespace ep {

struct NicCounters {
  std::string name;
  bool known = false;        ///< byte counters could be read
  bool from_netdev = false;  ///< soft RoCE: bytes of the netdev below
  uint64_t tx_bytes = 0, rx_bytes = 0;
  std::map<std::string, uint64_t> errors;  ///< by file name; only those that tell of trouble
};
using CounterSample = std::vector<NicCounters>;  ///< sorted by device name, natural order

/// Reads all devices of the host once. Devices whose counters can't be read are in it with known = false.
CounterSample sample_counters(const Host& host);

struct NicTraffic {
  std::string name;
  bool known = false, from_netdev = false;
  uint64_t tx_bytes = 0, rx_bytes = 0;
  std::map<std::string, uint64_t> errors;  ///< only those that grew
};
/// What moved between two samples. A counter that went backwards (reset) is not known.
std::vector<NicTraffic> traffic_between(const CounterSample& before, const CounterSample& after);

struct Evenness {
  Verdict verdict = Verdict::unknown;
  std::string reason;
  std::vector<std::string> idle;  ///< expected to carry traffic and did not
  double spread = 0;              ///< largest over smallest share among those that carried
};
/// `expected`: devices that should carry the work (the mapping's). Pass: all carried, largest <= 1.5 x
/// smallest.
Evenness judge_evenness(const std::vector<NicTraffic>& traffic, const std::vector<std::string>& expected);

}  // namespace ep
