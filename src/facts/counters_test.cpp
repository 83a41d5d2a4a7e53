// Byte counters of NICs: which file is read on which kind of device, what moved between two samples,
// evenness; and GID tables at two times.
#include "facts/counters.h"

#include <gtest/gtest.h>

#include "facts/gid_drift.h"
#include "facts/topology.h"
#include "host/snapshot.h"

namespace ep {
namespace {

const std::string kIb = "/sys/class/infiniband/";

SnapshotData base() {
  SnapshotData d;
  d.complete = true;
  return d;
}

void hardware(SnapshotData& d, const std::string& name, const char* tx, const char* rx) {
  d.link(kIb + name + "/device", "../../../0000:01:00.0");
  d.file(kIb + name + "/ports/1/counters/port_xmit_data", tx);
  d.file(kIb + name + "/ports/1/counters/port_rcv_data", rx);
}

// As Linux 6.1 shows an rdma_rxe device: no counters folder, packets in hw_counters, the netdev in `parent`.
void soft(SnapshotData& d, const std::string& name, const std::string& netdev, const char* bytes,
          const char* packets) {
  d.file(kIb + name + "/parent", netdev + "\n");
  d.file(kIb + name + "/ports/1/hw_counters/sent_pkts", packets);
  d.file(kIb + name + "/ports/1/hw_counters/rcvd_pkts", packets);
  d.file(kIb + name + "/ports/1/hw_counters/rcvd_seq_err", "2\n");
  d.file("/sys/class/net/" + netdev + "/statistics/tx_bytes", bytes);
  d.file("/sys/class/net/" + netdev + "/statistics/rx_bytes", bytes);
}

CounterSample sample(SnapshotData d) {
  return sample_counters(*host_of(std::move(d), "test"));
}

NicTraffic carried(const char* name, uint64_t bytes) {
  NicTraffic t;
  t.name = name;
  t.source = ByteSource::port;
  t.tx_bytes = bytes;
  return t;
}

TEST(Counters, PortCountersCountWordsOfFourBytes) {
  auto d = base();
  hardware(d, "mlx5_10", "100\n", "7\n");
  hardware(d, "mlx5_2", "5\n", "0\n");
  auto s = sample(d);
  ASSERT_EQ(s.size(), 2u);
  EXPECT_EQ(s[0].name, "mlx5_2");
  EXPECT_EQ(s[1].tx_bytes, 400u);
  EXPECT_EQ(s[1].rx_bytes, 28u);
  EXPECT_EQ(s[1].source, ByteSource::port);
}

TEST(Counters, ASoftDeviceIsReadAtItsNetdevAndSaysSo) {
  auto d = base();
  soft(d, "rxe0", "eth0", "1000\n", "3\n");
  auto s = sample(d);
  ASSERT_EQ(s.size(), 1u);
  EXPECT_EQ(s[0].source, ByteSource::netdev);
  EXPECT_EQ(s[0].where, "/sys/class/net/eth0/statistics/tx_bytes");
  EXPECT_EQ(s[0].tx_bytes, 1000u);
  EXPECT_TRUE(s[0].packets_known);
  EXPECT_EQ(s[0].tx_packets, 3u);
  EXPECT_EQ(s[0].errors.at("rcvd_seq_err"), 2u);
}

TEST(Counters, HardwareIsNeverJudgedByItsNetdev) {
  auto d = base();
  d.link(kIb + "mlx5_0/device", "../../../0000:01:00.0");
  d.file(kIb + "mlx5_0/ports/1/state", "4: ACTIVE\n");
  d.file(kIb + "mlx5_0/ports/1/gid_attrs/ndevs/0", "eth0\n");
  d.file("/sys/class/net/eth0/statistics/tx_bytes", "1000\n");
  d.file("/sys/class/net/eth0/statistics/rx_bytes", "1000\n");
  auto s = sample(d);
  ASSERT_EQ(s.size(), 1u);
  EXPECT_FALSE(s[0].known());
  EXPECT_NE(s[0].where.find("port_xmit_data"), std::string::npos);
}

TEST(Counters, EfaCountsBytesAmongItsHardwareCounters) {
  auto d = base();
  d.link(kIb + "rdmap79s0/device", "../../../0000:4f:00.0");
  d.file(kIb + "rdmap79s0/ports/1/hw_counters/tx_bytes", "4096\n");
  d.file(kIb + "rdmap79s0/ports/1/hw_counters/rx_bytes", "1\n");
  d.file(kIb + "rdmap79s0/ports/1/hw_counters/tx_pkts", "2\n");
  d.file(kIb + "rdmap79s0/ports/1/hw_counters/rx_pkts", "1\n");
  auto s = sample(d);
  EXPECT_EQ(s[0].source, ByteSource::hw);
  EXPECT_EQ(s[0].tx_bytes, 4096u);
  EXPECT_EQ(s[0].tx_packets, 2u);
}

TEST(Counters, TellUnevenAndIdleNics) {
  std::vector<NicTraffic> t{carried("mlx5_0", 10u << 20), carried("mlx5_1", 0)};
  EXPECT_EQ(judge_evenness(t, {"mlx5_0", "mlx5_1"}).verdict, Verdict::fail);
  t[1].tx_bytes = 5u << 20;
  EXPECT_EQ(judge_evenness(t, {"mlx5_0", "mlx5_1"}).verdict, Verdict::warn);
  t[1].tx_bytes = 10u << 20;
  EXPECT_EQ(judge_evenness(t, {"mlx5_0", "mlx5_1"}).verdict, Verdict::pass);
  EXPECT_EQ(judge_evenness(t, {"mlx5_0", "mlx5_9"}).verdict, Verdict::unknown);
  EXPECT_EQ(judge_evenness({}, {}).verdict, Verdict::unknown);
}

TEST(Counters, ACounterThatFellStoodStillAtItsEndOrIsNewIsNotKnown) {
  auto d = base();
  hardware(d, "mlx5_0", "100\n", "100\n");
  hardware(d, "mlx5_1", "4294967295\n", "5\n");
  auto a = sample(d);
  d = base();
  hardware(d, "mlx5_0", "50\n", "200\n");
  hardware(d, "mlx5_1", "4294967295\n", "9\n");
  hardware(d, "mlx5_2", "9\n", "9\n");
  a[0].errors["out_of_sequence"] = 1;
  auto b = sample(d);
  b[0].errors["out_of_sequence"] = 4;
  auto t = traffic_between(a, b);
  ASSERT_EQ(t.size(), 3u);
  for (const auto& x : t) EXPECT_FALSE(x.known()) << x.name;
  EXPECT_NE(t[0].where.find("reset"), std::string::npos);
  EXPECT_EQ(t[0].errors.at("out_of_sequence"), 3u);
}

// A host whose counters the work itself moves.
class Moving : public Host {
 public:
  explicit Moving(std::unique_ptr<Host> h) : now(std::move(h)) {}
  HostKind kind() const override { return now->kind(); }
  std::string name() const override { return "moving"; }
  Result<std::string> read(const std::string& p, size_t n) const override { return now->read(p, n); }
  Result<std::vector<std::string>> list(const std::string& p) const override { return now->list(p); }
  Result<std::string> link(const std::string& p) const override { return now->link(p); }
  Result<FileInfo> info(const std::string& p) const override { return now->info(p); }
  Result<SpaceInfo> space(const std::string& p) const override { return now->space(p); }
  ProbeResult probe(std::string_view p) const override { return now->probe(p); }
  std::map<std::string, std::string> environment() const override { return {}; }
  std::unique_ptr<Host> now;
};

TEST(Counters, WorkIsMeasuredAroundItself) {
  auto before = base(), after = base();
  for (const char* n : {"mlx5_0", "mlx5_1"}) {
    hardware(before, n, "0\n", "0\n");
    hardware(after, n, "1000000\n", "1000000\n");
  }
  Moving host(host_of(std::move(before), "test"));
  auto got = measure_work(host, {"mlx5_0", "mlx5_1"}, [&] { host.now = host_of(std::move(after), "test"); });
  EXPECT_EQ(got.evenness.verdict, Verdict::pass) << got.evenness.reason.en;
  EXPECT_EQ(got.traffic[1].tx_bytes, 4000000u);
  EXPECT_GE(got.seconds, 0);
}

RdmaDevice with_gids(const char* name, std::vector<std::pair<int, const char*>> gids) {
  RdmaDevice d;
  d.name = name;
  d.ports.emplace_back();
  for (auto [index, gid] : gids) {
    GidEntry e;
    e.index = index;
    e.gid = gid;
    e.type = known<std::string>("RoCE v2", "test");
    d.ports[0].gids.push_back(e);
  }
  return d;
}
const char* kLocal = "fe80:0000:0000:0000:0000:00ff:fe00:0001";
const char* kA = "0000:0000:0000:0000:0000:ffff:c612:0a01";
const char* kB = "0000:0000:0000:0000:0000:ffff:c612:0b01";

std::string code_of(const RdmaDevice& a, const RdmaDevice& b, Severity* severity = nullptr) {
  auto f = gid_drift({a}, {b});
  if (f.empty()) return "";
  if (severity) *severity = f[0].severity;
  EXPECT_FALSE(f[0].title_zh.empty());
  return f[0].code;
}

TEST(GidDrift, TellsWhatMovedAndWhatOnlyChanged) {
  auto before = with_gids("mlx5_0", {{1, kLocal}, {3, kA}});
  Severity s{};
  EXPECT_EQ(code_of(before, before), "");
  EXPECT_EQ(code_of(before, with_gids("mlx5_0", {{1, kLocal}, {5, kA}}), &s), "gid_drift");
  EXPECT_EQ(s, Severity::warn);
  EXPECT_EQ(code_of(before, with_gids("mlx5_0", {{1, kLocal}, {3, kB}}), &s), "gid_drift");
  EXPECT_EQ(s, Severity::warn);
  EXPECT_EQ(code_of(before, with_gids("mlx5_0", {{1, kLocal}}), &s), "gid_drift");
  EXPECT_EQ(s, Severity::fail);
  EXPECT_EQ(code_of(before, with_gids("mlx5_0", {{1, kLocal}, {3, kA}, {4, kB}}), &s), "gid_drift");
  EXPECT_EQ(s, Severity::info);
  EXPECT_EQ(code_of(before, with_gids("mlx5_1", {{3, kA}})), "device_gone");
}

TEST(GidDrift, TwoReadingsOfOneMachineAreFoundByGuid) {
  Facts a, b, c;
  a.rdma = {with_gids("mlx5_0", {{3, kA}})};
  a.rdma[0].node_guid = known<std::string>("b83f:d203:0012:3456", "test");
  b = a;
  b.rdma[0] = with_gids("mlx5_0", {{5, kA}});
  b.rdma[0].node_guid = known<std::string>("0xb83fd20300123456", "test");
  c = a;
  c.rdma[0].node_guid = known<std::string>("b83f:d203:0099:9999", "test");
  EXPECT_TRUE(same_machine(a, b));
  EXPECT_FALSE(same_machine(a, c));
  std::vector<Facts> facts{a, b};
  std::vector<Topology> hosts{read_topology(a), read_topology(b)};
  bool drift = false;
  for (const auto& f : compare_hosts(hosts, facts)) drift |= f.code == "gid_drift";
  EXPECT_TRUE(drift);
}

}  // namespace
}  // namespace ep
