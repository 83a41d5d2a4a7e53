// See counters.h.
#include "facts/counters.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace ep {
namespace {

const std::string kClass = "/sys/class/infiniband/";
// Counters that stand still on a healthy fabric. Source: rdma-core and mlx5 counter documentation.
const char* const kTrouble[] = {"symbol_error",
                                "link_error_recovery",
                                "link_downed",
                                "port_rcv_errors",
                                "port_xmit_discards",
                                "local_link_integrity_errors",
                                "out_of_sequence",
                                "packet_seq_err",
                                "local_ack_timeout_err",
                                "rnr_nak_retry_err",
                                "req_cqe_error",
                                "resp_cqe_error",
                                "req_transport_retries_exceeded",
                                "roce_adp_retrans_to",
                                "np_cnp_sent",
                                "rp_cnp_handled"};
// Less than this is management traffic, bytes.
constexpr uint64_t kNoise = 1u << 20;

std::optional<uint64_t> read_count(const Host& host, const std::string& path) {
  auto text = host.read(path, 64);
  if (!text) return std::nullopt;
  auto n = parse_int(trim(*text));
  return n && *n >= 0 ? std::optional<uint64_t>(uint64_t(*n)) : std::nullopt;
}

void read_port(const Host& host, const std::string& dir, NicCounters& n) {
  auto tx = read_count(host, dir + "/counters/port_xmit_data"),
       rx = read_count(host, dir + "/counters/port_rcv_data");
  if (tx && rx) {
    n.known = true;
    n.tx_bytes += *tx * 4;
    n.rx_bytes += *rx * 4;
  } else if (auto dev = host.read(dir + "/gid_attrs/ndevs/0", 64); dev) {
    std::string net = "/sys/class/net/" + std::string(trim(*dev)) + "/statistics/";
    auto t = read_count(host, net + "tx_bytes"), r = read_count(host, net + "rx_bytes");
    if (t && r) {
      n.known = n.from_netdev = true;
      n.tx_bytes += *t;
      n.rx_bytes += *r;
    }
  }
  for (const char* name : kTrouble)
    for (const char* folder : {"/counters/", "/hw_counters/"})
      if (auto v = read_count(host, dir + folder + name)) n.errors[name] += *v;
}

uint64_t total(const NicTraffic& t) {
  return t.tx_bytes + t.rx_bytes;
}

}  // namespace

CounterSample sample_counters(const Host& host) {
  CounterSample out;
  auto devices = host.list(kClass.substr(0, kClass.size() - 1));
  if (!devices) return out;
  for (const auto& d : *devices) {
    NicCounters n;
    n.name = d;
    auto ports = host.list(kClass + d + "/ports");
    if (ports)
      for (const auto& p : *ports) read_port(host, kClass + d + "/ports/" + p, n);
    out.push_back(std::move(n));
  }
  std::sort(out.begin(), out.end(),
            [](const NicCounters& a, const NicCounters& b) { return natural_less(a.name, b.name); });
  return out;
}

std::vector<NicTraffic> traffic_between(const CounterSample& before, const CounterSample& after) {
  std::vector<NicTraffic> out;
  for (const auto& b : after) {
    NicTraffic t;
    t.name = b.name;
    t.from_netdev = b.from_netdev;
    auto a =
        std::find_if(before.begin(), before.end(), [&](const NicCounters& x) { return x.name == b.name; });
    if (a != before.end() && a->known && b.known && b.tx_bytes >= a->tx_bytes && b.rx_bytes >= a->rx_bytes) {
      t.known = true;
      t.tx_bytes = b.tx_bytes - a->tx_bytes;
      t.rx_bytes = b.rx_bytes - a->rx_bytes;
    }
    if (a != before.end())
      for (const auto& [name, value] : b.errors)
        if (auto it = a->errors.find(name); it != a->errors.end() && value > it->second)
          t.errors[name] = value - it->second;
    out.push_back(std::move(t));
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
    if (t == traffic.end() || !t->known) {
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
    e.reason = unknown ? "the counters of the NICs can't be read" : "no NIC carried more than 1 MB";
    e.idle.clear();
    return e;
  }
  e.spread = double(most) / double(least);
  if (unknown) {
    e.reason = fmt::format("the counters of {} NICs can't be read", unknown);
  } else if (!e.idle.empty()) {
    e.verdict = Verdict::fail;
    e.reason =
        fmt::format("{} of {} NICs carried everything; idle: {}", carried, names.size(), join(e.idle, ", "));
  } else if (e.spread > 1.5) {
    e.verdict = Verdict::warn;
    e.reason = fmt::format("uneven: the busiest NIC carried {:.1f} times the traffic of the least busy one",
                           e.spread);
  } else {
    e.verdict = Verdict::pass;
    e.reason = fmt::format("even over {} NICs (largest over smallest {:.2f})", carried, e.spread);
  }
  return e;
}

}  // namespace ep
