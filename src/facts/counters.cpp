// See counters.h.
#include "facts/counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/text.h"

namespace ep {
namespace {

const std::string kClass = "/sys/class/infiniband/";
// Counters that stand still on a healthy fabric. Source: rdma-core, mlx5 and rxe counter names.
const char* const kTrouble[] = {
    "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards",
    "local_link_integrity_errors", "out_of_sequence", "packet_seq_err", "local_ack_timeout_err",
    "rnr_nak_retry_err", "req_cqe_error", "resp_cqe_error", "req_transport_retries_exceeded",
    "roce_adp_retrans_to", "np_cnp_sent", "rp_cnp_handled",
    // rdma_rxe
    "out_of_seq_request", "rcvd_seq_err", "retry_exceeded_err", "retry_rnr_exceeded_err", "send_err"};
// Byte counters of drivers that have no port counters: EFA and bnxt_re, erdma.
const std::pair<const char*, const char*> kHwBytes[] = {{"tx_bytes", "rx_bytes"},
                                                        {"hw_tx_bytes_cnt", "hw_rx_bytes_cnt"}};
// Packets by the device: InfiniBand port counters, rdma_rxe, bnxt_re and EFA.
const std::pair<const char*, const char*> kPackets[] = {
    {"/counters/port_xmit_packets", "/counters/port_rcv_packets"},
    {"/hw_counters/sent_pkts", "/hw_counters/rcvd_pkts"},
    {"/hw_counters/tx_pkts", "/hw_counters/rx_pkts"}};
// Less than this is management traffic, bytes.
constexpr uint64_t kNoise = 1u << 20;
// Old devices count words in 32 bits and stop there.
constexpr uint64_t kStuck = uint64_t(UINT32_MAX) * 4;

std::optional<uint64_t> read_count(const Host& host, const std::string& path) {
  auto text = host.read(path, 64);
  if (!text) return std::nullopt;
  auto n = parse_int(trim(*text));
  return n && *n >= 0 ? std::optional<uint64_t>(uint64_t(*n)) : std::nullopt;
}

// Adds one pair of counters; false when either can't be read.
bool add_bytes(const Host& host, const std::string& tx_path, const std::string& rx_path, uint64_t unit,
               ByteSource source, NicCounters& n) {
  auto tx = read_count(host, tx_path), rx = read_count(host, rx_path);
  if (!tx || !rx) return false;
  n.tx_bytes += *tx * unit;
  n.rx_bytes += *rx * unit;
  if (n.source == ByteSource::none) {
    n.source = source;
    n.where = tx_path;
  }
  return true;
}

// The netdev that a software device stands on; empty for hardware, whose RDMA traffic no netdev counts.
std::string netdev_below(const Host& host, const std::string& device) {
  if (host.link(kClass + device + "/device")) return {};
  auto parent = host.read(kClass + device + "/parent", 64);
  return parent ? std::string(trim(*parent)) : std::string();
}

void read_port(const Host& host, const std::string& dir, NicCounters& n) {
  bool bytes = add_bytes(host, dir + "/counters/port_xmit_data", dir + "/counters/port_rcv_data", 4,
                         ByteSource::port, n);
  for (auto [tx, rx] : kHwBytes)
    bytes = bytes ||
            add_bytes(host, dir + "/hw_counters/" + tx, dir + "/hw_counters/" + rx, 1, ByteSource::hw, n);
  for (auto [tx, rx] : kPackets) {
    auto t = read_count(host, dir + tx), r = read_count(host, dir + rx);
    if (!t || !r) continue;
    n.packets_known = true;
    n.tx_packets += *t;
    n.rx_packets += *r;
    break;
  }
  for (const char* name : kTrouble)
    for (const char* folder : {"/counters/", "/hw_counters/"})
      if (auto v = read_count(host, dir + folder + name)) n.errors[name] += *v;
}

NicCounters read_nic(const Host& host, const std::string& device) {
  NicCounters n;
  n.name = device;
  auto ports = host.list(kClass + device + "/ports");
  if (ports)
    for (const auto& p : *ports) read_port(host, kClass + device + "/ports/" + p, n);
  if (n.known()) return n;
  std::string netdev = netdev_below(host, device);
  std::string folder = "/sys/class/net/" + netdev + "/statistics/";
  if (!netdev.empty() && add_bytes(host, folder + "tx_bytes", folder + "rx_bytes", 1, ByteSource::netdev, n))
    return n;
  n.where = kClass + device + "/ports/1: neither counters/port_xmit_data nor a byte counter of the driver";
  return n;
}

NicTraffic traffic_of(const NicCounters& a, const NicCounters& b) {
  NicTraffic t;
  t.name = b.name;
  t.where = b.where;
  if (!a.known() || !b.known()) {
    t.where = a.known() ? b.where : a.where;
  } else if (a.source != b.source) {
    t.where = fmt::format("{} before, {} after: not the same counter", a.where, b.where);
  } else if (b.tx_bytes < a.tx_bytes || b.rx_bytes < a.rx_bytes) {
    t.where = b.where + " went backwards: it was reset";
  } else if (b.tx_bytes == kStuck && a.tx_bytes == kStuck) {
    t.where = b.where + " stands at its end (32 bits)";
  } else {
    t.source = b.source;
    t.tx_bytes = b.tx_bytes - a.tx_bytes;
    t.rx_bytes = b.rx_bytes - a.rx_bytes;
  }
  t.packets_known =
      a.packets_known && b.packets_known && b.tx_packets >= a.tx_packets && b.rx_packets >= a.rx_packets;
  if (t.packets_known) {
    t.tx_packets = b.tx_packets - a.tx_packets;
    t.rx_packets = b.rx_packets - a.rx_packets;
  }
  for (const auto& [name, value] : b.errors)
    if (auto it = a.errors.find(name); it != a.errors.end() && value > it->second)
      t.errors[name] = value - it->second;
  return t;
}

uint64_t total(const NicTraffic& t) {
  return t.tx_bytes + t.rx_bytes;
}

}  // namespace

std::string_view to_string(ByteSource s) {
  switch (s) {
    case ByteSource::port:
      return "port";
    case ByteSource::hw:
      return "hw";
    case ByteSource::netdev:
      return "netdev";
    case ByteSource::none:
      break;
  }
  return "";
}

CounterSample sample_counters(const Host& host) {
  CounterSample out;
  auto devices = host.list(kClass.substr(0, kClass.size() - 1));
  if (!devices) return out;
  for (const auto& d : *devices) out.push_back(read_nic(host, d));
  std::sort(out.begin(), out.end(),
            [](const NicCounters& a, const NicCounters& b) { return natural_less(a.name, b.name); });
  return out;
}

std::vector<NicTraffic> traffic_between(const CounterSample& before, const CounterSample& after) {
  std::vector<NicTraffic> out;
  for (const auto& b : after) {
    auto a =
        std::find_if(before.begin(), before.end(), [&](const NicCounters& x) { return x.name == b.name; });
    NicCounters none;
    none.where = "the device was not there before";
    out.push_back(traffic_of(a == before.end() ? none : *a, b));
  }
  return out;
}

Evenness judge_evenness(const std::vector<NicTraffic>& traffic, const std::vector<std::string>& expected) {
  Evenness e;
  std::vector<std::string> names = expected;
  if (names.empty())
    for (const auto& t : traffic) names.push_back(t.name);
  uint64_t most = 0, least = UINT64_MAX;
  size_t carried = 0, unknown = 0;
  for (const auto& name : names) {
    auto t =
        std::find_if(traffic.begin(), traffic.end(), [&](const NicTraffic& x) { return x.name == name; });
    if (t == traffic.end() || !t->known()) {
      ++unknown;
      continue;
    }
    if (total(*t) < kNoise) {
      e.idle.push_back(name);
      continue;
    }
    ++carried;
    most = std::max(most, total(*t));
    least = std::min(least, total(*t));
  }
  if (carried == 0) {
    e.reason = unknown ? both("the counters of the NICs can't be read", "网卡计数器不可读")
                       : both("no NIC carried more than 1 MB", "没有网卡的流量超过 1 MB");
    e.idle.clear();
    return e;
  }
  e.spread = double(most) / double(least);
  if (unknown) {
    e.reason = both("the counters of {} NICs can't be read", "{} 张网卡的计数器不可读", unknown);
  } else if (!e.idle.empty()) {
    e.verdict = Verdict::fail;
    e.reason = both("{} of {} NICs carried everything; idle: {}", "{}/{} 张网卡承担了全部流量；空闲：{}",
                    carried, names.size(), join(e.idle, ", "));
  } else if (e.spread > 1.5) {
    e.verdict = Verdict::warn;
    e.reason = both("uneven: the busiest NIC carried {:.1f} times the traffic of the least busy one",
                    "不均匀：最忙的网卡流量是最闲的 {:.1f} 倍", e.spread);
  } else {
    e.verdict = Verdict::pass;
    e.reason = both("even over {} NICs (largest over smallest {:.2f})", "{} 张网卡均匀（最大/最小 {:.2f}）",
                    carried, e.spread);
  }
  return e;
}

CarriedWork measure_work(const Host& host, const std::vector<std::string>& expected,
                         const std::function<void()>& work) {
  CarriedWork out;
  CounterSample before = sample_counters(host);
  auto start = std::chrono::steady_clock::now();
  work();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  out.traffic = traffic_between(before, sample_counters(host));
  out.evenness = judge_evenness(out.traffic, expected);
  return out;
}

}  // namespace ep
