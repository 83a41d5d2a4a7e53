// Port and error counters of every RDMA device around a piece of work: which NICs carried it, and evenly or
// not. Sources, below /sys/class/infiniband/DEVICE/ports/N: counters/ (InfiniBand port counters; *_data count
// 4-byte words), hw_counters/ (the driver's own), and for software devices the netdev they stand on, whose
// bytes are all its traffic, not only RDMA. Hardware NICs are never judged by their netdev: RDMA passes it
// by.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/finding.h"
#include "base/words.h"
#include "host/host.h"

namespace ep {

/// Where the bytes of a device were read.
enum class ByteSource { none, port, hw, netdev };
std::string_view to_string(ByteSource s);  ///< "", port, hw, netdev

struct NicCounters {
  std::string name;
  ByteSource source = ByteSource::none;  ///< none: no byte counter could be read
  std::string where;                     ///< first counter file that was read; for none, why there is none
  uint64_t tx_bytes = 0, rx_bytes = 0;
  bool packets_known = false;
  uint64_t tx_packets = 0, rx_packets = 0;  ///< RDMA packets by the device, where it counts them
  std::map<std::string, uint64_t> errors;   ///< by file name; only those that tell of trouble
  bool known() const { return source != ByteSource::none; }
};
using CounterSample = std::vector<NicCounters>;  ///< sorted by device name, natural order

/// Reads all devices of the host once. Devices whose counters can't be read are in it with source none.
CounterSample sample_counters(const Host& host);

struct NicTraffic {
  std::string name;
  ByteSource source = ByteSource::none;
  std::string where;  ///< as in NicCounters
  uint64_t tx_bytes = 0, rx_bytes = 0;
  bool packets_known = false;
  uint64_t tx_packets = 0, rx_packets = 0;
  std::map<std::string, uint64_t> errors;  ///< only those that grew
  bool known() const { return source != ByteSource::none; }
};
/// What moved between two samples. A counter that went backwards (reset), changed its source, or stands at
/// its end is not known.
std::vector<NicTraffic> traffic_between(const CounterSample& before, const CounterSample& after);

struct Evenness {
  Verdict verdict = Verdict::unknown;
  BothWords reason;
  std::vector<std::string> idle;  ///< expected to carry traffic and did not
  double spread = 0;              ///< largest over smallest share among those that carried
};
/// `expected`: devices that should carry the work (the mapping's). Pass: all carried, largest <= 1.5 x
/// smallest.
Evenness judge_evenness(const std::vector<NicTraffic>& traffic, const std::vector<std::string>& expected);

/// What the NICs carried while something ran.
struct CarriedWork {
  std::vector<NicTraffic> traffic;
  Evenness evenness;
  double seconds = 0;
};
/// Samples, runs `work`, samples again. For verify, bench and tests: any work that moves data between hosts.
CarriedWork measure_work(const Host& host, const std::vector<std::string>& expected,
                         const std::function<void()>& work);

}  // namespace ep
