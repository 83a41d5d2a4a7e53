// Distances, roles, mapping, GID and verdict on small hosts made for one question each. Whole machines:
// test/hosts.
#include "facts/topology.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "facts/text_facts.h"
#include "facts/topology_assign.h"

namespace ep {
namespace {

PciDevice at(const char* address, std::vector<std::string> path, int numa = 0) {
  PciDevice p;
  p.address = address;
  p.path = std::move(path);
  p.numa_node = known(numa, "test");
  return p;
}

TEST(Distance, FollowsTheChainOfBridges) {
  auto gpu = at("0000:0f:00.0", {"pci0000:00", "0000:00:01.0", "0000:01:00.0", "0000:02:00.0"});
  EXPECT_EQ(
      pci_distance(gpu, at("0000:10:00.0", {"pci0000:00", "0000:00:01.0", "0000:01:00.0", "0000:02:01.0"})),
      LinkClass::pix);
  EXPECT_EQ(pci_distance(gpu, at("0000:20:00.0", {"pci0000:00", "0000:00:01.0", "0000:01:00.0",
                                                  "0000:02:01.0", "0000:1f:00.0"})),
            LinkClass::pxb);
  EXPECT_EQ(pci_distance(gpu, at("0000:30:00.0", {"pci0000:00", "0000:00:03.0"})), LinkClass::phb);
  EXPECT_EQ(pci_distance(gpu, at("0000:80:00.0", {"pci0000:40"}, 0)), LinkClass::node);
  EXPECT_EQ(pci_distance(gpu, at("0000:80:00.0", {"pci0000:80"}, 1)), LinkClass::sys);
  EXPECT_EQ(pci_distance(gpu, at("0000:80:00.0", {})), LinkClass::unknown);
  EXPECT_LT(LinkClass::phb, LinkClass::node);
}

TEST(Distance, FirmwareNodesAboveTheHostBridgeDoNotCount) {
  auto a = at("0001:00:00.0", {"LNXSYSTM:00", "VMBUS:00", "11", "pci0001:00"}),
       b = at("0101:00:00.0", {"LNXSYSTM:00", "VMBUS:00", "22", "pci0101:00"}, 1);
  EXPECT_EQ(pci_distance(a, b), LinkClass::sys);
}

TEST(Assign, EvensCardsBeforePorts) {
  // Two GPUs, two cards of two ports each, all equally near.
  AssignProblem p{{{1, 1, 1, 1}, {1, 1, 1, 1}}, {0, 0, 1, 1}, 1};
  EXPECT_EQ(assign_nics(p), (std::vector<int>{0, 2}));
}

TEST(Assign, NearnessBeatsOrderAndOrderBreaksTies) {
  AssignProblem p{{{20, 0}, {0, 20}}, {0, 1}, 1};
  EXPECT_EQ(assign_nics(p), (std::vector<int>{1, 0}));
  AssignProblem shared{{{6, 6}, {6, 6}, {6, 6}, {6, 6}}, {0, 1}, 2};
  EXPECT_EQ(assign_nics(shared), (std::vector<int>{0, 0, 1, 1}));
}

TEST(Assign, SaysWhoIsLeftOut) {
  AssignProblem p{{{0, -1}, {-1, -1}}, {0, 1}, 1};
  EXPECT_EQ(assign_nics(p), (std::vector<int>{0, -1}));
  EXPECT_EQ(least_sharing(p), 0);
}

TEST(Assign, ThirtyTwoGpusAndSixtyFourNicsTakeUnderFiveMilliseconds) {
  AssignProblem p;
  for (int g = 0; g < 32; ++g) {
    std::vector<int> row;
    for (int n = 0; n < 64; ++n) row.push_back((g * 7 + n * 13) % 5 == 0 ? 0 : (g / 4 == n / 8 ? 6 : 20));
    p.cost.push_back(row);
  }
  for (int n = 0; n < 64; ++n) p.card.push_back(n / 2);
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    auto t = std::chrono::steady_clock::now();
    auto r = assign_nics(p);
    best = std::min(best,
                    std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count());
    for (int n : r) EXPECT_GE(n, 0);
  }
  RecordProperty("milliseconds", std::to_string(best));
  printf("32 GPUs x 64 NICs: %.2f ms (limit 5)\n", best);
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(best, 5.0);
#endif
}

Topology of_text(const std::string& text) {
  auto hosts = take_apart({{"paste", text}});
  return read_topology(facts_of_paste(hosts[0], "paste"));
}

bool said(const Topology& t, const char* code) {
  for (const auto& f : t.findings)
    if (f.code == code) return true;
  return false;
}

TEST(Topology, AGpuWithoutNvlinkAmongLinkedOnesIsAnError) {
  auto t = of_text(
      "\tGPU0\tGPU1\tGPU2\tNIC0\tCPU "
      "Affinity\nGPU0\tX\tNV18\tNODE\tPIX\t0-1\nGPU1\tNV18\tX\tNODE\tPIX\t0-1\nGPU2\tNODE\tNODE\tX\tPIX\t0-"
      "1\n"
      "NIC0\tPIX\tPIX\tPIX\tX\n\nLegend:\n  SYS = x\n  NV# = y\nNIC Legend:\n  NIC0: mlx5_0\n");
  EXPECT_TRUE(said(t, "gpu_nvlink_down"));
  EXPECT_EQ(t.verdict, Verdict::fail);
}

TEST(Topology, AFlatMatrixGivesNoVariables) {
  auto t = of_text(
      "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU "
      "Affinity\nGPU0\tX\tNV18\tPHB\tPHB\t0-1\nGPU1\tNV18\tX\tPHB\tPHB\t0-1\nNIC0\tPHB\tPHB\tX\tPHB\n"
      "NIC1\tPHB\tPHB\tPHB\tX\nNIC Legend:\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n");
  EXPECT_EQ(t.mapping.confidence, Confidence::convention);
  EXPECT_TRUE(t.strings.deep_ep.empty());
  EXPECT_TRUE(said(t, "topo_flat_phb"));
}

TEST(Topology, ADeadNicOfOneGpuIsMissingNotReplaced) {
  auto t = of_text(
      "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU "
      "Affinity\nGPU0\tX\tNV18\tPIX\tSYS\t0-1\nGPU1\tNV18\tX\tSYS\tPIX\t2-"
      "3\nNIC0\tPIX\tSYS\tX\tSYS\nNIC1\tSYS\tPIX\tSYS\tX\n"
      "NIC Legend:\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"
      "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tLink layer: InfiniBand\nCA 'mlx5_1'\n\tPort "
      "1:\n\t\tState: Down\n\t\tLink layer: InfiniBand\n");
  EXPECT_EQ(t.mapping.pairs.size(), 1u);
  EXPECT_TRUE(said(t, "missing_nic"));
}

/// Four GPUs and as many NICs as rows say: classes of NIC n to each GPU, and the lines below the matrix.
Topology of_rows(const std::vector<std::vector<std::string>>& nics, const std::string& below) {
  std::string text;
  for (int g = 0; g < 4; ++g) text += fmt::format("\tGPU{}", g);
  for (size_t n = 0; n < nics.size(); ++n) text += fmt::format("\tNIC{}", n);
  text += "\tCPU Affinity\n";
  for (int g = 0; g < 4; ++g) {
    text += fmt::format("GPU{}", g);
    for (int k = 0; k < 4; ++k) text += g == k ? "\tX" : "\tNV18";
    for (const auto& row : nics) text += "\t" + row[size_t(g)];
    text += "\t0-1\n";
  }
  for (size_t n = 0; n < nics.size(); ++n) {
    text += fmt::format("NIC{}", n);
    for (const auto& c : nics[n]) text += "\t" + c;
    for (size_t k = 0; k < nics.size(); ++k) text += n == k ? "\tX" : "\tNODE";
    text += "\n";
  }
  return of_text(text + "\nNIC Legend:\n\n" + below);
}

TEST(Topology, ANicInAnothersSlotServesTheGpuThatHasNone) {
  const std::string ca = "\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n";
  std::string below = "  NIC0: mlx5_0\n  NIC1: mlx5_1\n  NIC2: mlx5_2\n  NIC3: mlx5_3\n\n";
  for (int i = 0; i < 4; ++i) below += fmt::format("CA 'mlx5_{}'", i) + ca;
  // GPU1 has no NIC nearby, GPU2 has two.
  auto t = of_rows({{"PIX", "NODE", "NODE", "NODE"},
                    {"NODE", "NODE", "PIX", "NODE"},
                    {"NODE", "NODE", "PIX", "NODE"},
                    {"NODE", "NODE", "NODE", "PIX"}},
                   below);
  EXPECT_EQ(t.usable().size(), 4u);
  EXPECT_EQ(t.mapping.pairs.size(), 4u);
  std::set<std::string> used;
  for (const auto& [gpu, nic] : t.mapping.pairs) EXPECT_TRUE(used.insert(nic).second) << nic;
  EXPECT_EQ(t.mapping.relation.at(1), LinkClass::node);
  EXPECT_TRUE(said(t, "no_near_nic"));
  EXPECT_EQ(t.verdict, Verdict::warn);
}

TEST(Topology, AFarMlx5PortBesideNearNicsOfAnotherVendorIsNoRail) {
  auto t =
      of_rows({{"PIX", "NODE", "NODE", "NODE"},
               {"NODE", "PIX", "NODE", "NODE"},
               {"NODE", "NODE", "PIX", "NODE"},
               {"NODE", "NODE", "NODE", "PIX"},
               {"NODE", "NODE", "NODE", "NODE"}},
              "  NIC0: bnxt_re0\n  NIC1: bnxt_re1\n  NIC2: bnxt_re2\n  NIC3: bnxt_re3\n  NIC4: mlx5_0\n");
  EXPECT_TRUE(t.usable().empty());
  EXPECT_TRUE(t.mapping.pairs.empty());
  EXPECT_TRUE(said(t, "wrong_vendor"));
  EXPECT_EQ(t.verdict, Verdict::fail);
}

TEST(Topology, ALegendThatContradictsItselfGivesNoConfidentAnswer) {
  auto t = of_rows({{"PIX", "NODE", "NODE", "NODE"},
                    {"NODE", "PIX", "NODE", "NODE"},
                    {"NODE", "NODE", "PIX", "NODE"},
                    {"NODE", "NODE", "NODE", "PIX"}},
                   "  NIC0: mlx5_0\n  NIC1: mlx5_1\n  NIC2: mlx5_2\n  NIC3: mlx5_3\n\nNIC Legend:\n\n"
                   "  NIC0: mlx5_4\n  NIC1: mlx5_5\n  NIC2: mlx5_6\n  NIC3: mlx5_7\n");
  EXPECT_TRUE(said(t, "legend_contradiction"));
  EXPECT_NE(t.mapping.confidence, Confidence::derived);
  EXPECT_TRUE(t.strings.deep_ep.empty());
}

TEST(Topology, AnEmptyLiveHostIsNoPass) {
  Facts f;
  f.host_kind = "live";
  EXPECT_EQ(read_topology(f).verdict, Verdict::fail);
}

bool misses(const Topology& t, const char* code) {
  for (const auto& m : t.missing)
    if (m.code == code) return true;
  return false;
}
std::string role(const Topology& t, const char* nic) {
  return t.nic(nic) ? t.nic(nic)->role : "absent";
}

constexpr const char* kTwoGpus =
    "$ nvidia-smi -L\nGPU 0: NVIDIA H200 (UUID: GPU-5eed0)\nGPU 1: NVIDIA H200 (UUID: GPU-5eed1)\n";
constexpr const char* kNoNodes =
    "$ ls /dev/infiniband\nls: cannot access '/dev/infiniband': No such file or directory\n";

TEST(Unknown, GpusWithoutNicsNicsWithoutGpusAndBothWithoutRelation) {
  auto gpus = of_text(kTwoGpus);
  EXPECT_EQ(gpus.verdict, Verdict::unknown);
  EXPECT_EQ(gpus.shown, Verdict::unknown);
  EXPECT_TRUE(misses(gpus, "nics_not_shown"));
  auto nics = of_text("mlx5_0 port 1 ==> eth0 (Up)\nmlx5_1 port 1 ==> eth1 (Up)\n");
  EXPECT_EQ(nics.verdict, Verdict::unknown);
  EXPECT_EQ(nics.shown, Verdict::pass);
  EXPECT_TRUE(misses(nics, "gpus_not_shown"));
  EXPECT_FALSE(misses(nics, "states_not_shown"));
  auto both = of_text(std::string(kTwoGpus) + "mlx5_0 port 1 ==> eth0 (Up)\nmlx5_1 port 1 ==> eth1 (Up)\n");
  EXPECT_EQ(both.verdict, Verdict::unknown);
  EXPECT_EQ(both.shown, Verdict::unknown);
  EXPECT_TRUE(misses(both, "relation_not_shown"));
}

TEST(Unknown, OfTwoHostsInOneTextNeitherIsTheOther) {
  auto hosts = take_apart({{"paste", std::string("root@a:~# nvidia-smi -L\n") + kTwoGpus +
                                         "root@b:~# ibdev2netdev\nmlx5_0 port 1 ==> eth0 (Up)\n"}});
  ASSERT_EQ(hosts.size(), 2u);
  for (const auto& h : hosts)
    EXPECT_EQ(read_topology(facts_of_paste(h, h.name)).verdict, Verdict::unknown) << h.name;
}

TEST(Unknown, GpusAndNicsOnPciAloneAreCountedNotNumbered) {
  auto t = of_text(
      "19:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
      "1a:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n");
  EXPECT_EQ(t.verdict, Verdict::unknown);
  ASSERT_TRUE(misses(t, "gpus_not_shown") && misses(t, "nics_not_shown"));
  EXPECT_NE(t.missing[0].what.en.find("(1 stand on PCI)"), std::string::npos) << t.missing[0].what.en;
}

TEST(Reach, AContainerWithoutVerbsNodesFails) {
  for (const char* nodes :
       {kNoNodes, "$ ls /dev/infiniband/\nls: 无法访问 '/dev/infiniband/': 没有那个文件或目录\n",
        "$ ls -l /dev/infiniband\ntotal 0\ncrw------- 1 root root 10, 121 Nov 30 10:00 rdma_cm\n",
        "$ ibv_devinfo\nNo IB devices found\n"}) {
    auto t = of_text(std::string(kTwoGpus) + "$ ls /sys/class/infiniband\nmlx5_0 mlx5_1\n" + nodes);
    EXPECT_EQ(t.verdict, Verdict::fail) << nodes;
    EXPECT_TRUE(said(t, "container_hidden_nics")) << nodes;
    EXPECT_EQ(role(t, "mlx5_0"), "hidden") << nodes;
  }
  // A closed folder is there; a single node that is missing says nothing of the others.
  for (const char* nodes :
       {"$ ls /dev/infiniband\nls: cannot open directory '/dev/infiniband': Permission denied\n",
        "$ ls /dev/infiniband/umad7\nls: cannot access '/dev/infiniband/umad7': No such file\n",
        "$ ls /dev/infiniband\nrdma_cm uverbs0 uverbs1\n"}) {
    auto t = of_text(std::string(kTwoGpus) + "$ ls /sys/class/infiniband\nmlx5_0 mlx5_1\n" + nodes);
    EXPECT_EQ(t.verdict, Verdict::unknown) << nodes;
    EXPECT_FALSE(said(t, "container_hidden_nics")) << nodes;
  }
}

TEST(Reach, FewerVerbsNodesThanNicsAreSaid) {
  auto t =
      of_text("$ ls /sys/class/infiniband\nmlx5_0 mlx5_1 mlx5_2\n$ ls /dev/infiniband\nrdma_cm uverbs0\n");
  EXPECT_TRUE(said(t, "container_hidden_nics"));
  EXPECT_EQ(t.verdict, Verdict::fail);  // three NICs for EP, one can be opened
}

std::string grace_tray(const char* imex, const char* channels) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("GPU {}: NVIDIA GB200 (UUID: GPU-5eed{})\n", i, i);
  text += "$ ibstat | grep -E \"CA '|State|Rate|Link layer\"\n";
  for (int i = 0; i < 6; ++i)
    text += fmt::format("CA 'mlx5_{}'\n\t\tState: {}\n\t\tRate: {}\n\t\tLink layer: {}\n", i,
                        i == 5 ? "Down" : "Active", i % 3 == 2 ? 200 : 400,
                        i % 3 == 2 ? "Ethernet" : "InfiniBand");
  return text + "$ ls /dev/nvidia-caps-imex-channels\n" + channels +
         "\n$ systemctl is-active nvidia-fabricmanager nvidia-imex\nactive\n" + imex + "\n";
}

TEST(Reach, ImexThatIsNotAtWorkIsSaidOfARack) {
  auto dead =
      of_text(grace_tray("inactive", "ls: cannot access '/dev/nvidia-caps-imex-channels': No such file"));
  EXPECT_TRUE(said(dead, "imex_inactive"));
  EXPECT_EQ(dead.verdict, Verdict::unknown);
  EXPECT_TRUE(misses(dead, "relation_not_shown"));
  EXPECT_EQ(role(dead, "mlx5_0"), "compute");
  EXPECT_EQ(role(dead, "mlx5_2"), "management");
  EXPECT_EQ(role(dead, "mlx5_5"), "down");
  EXPECT_FALSE(said(of_text(grace_tray("active", "channel0")), "imex_inactive"));
}

TEST(Reach, EthernetOfAnInfiniBandHostIsNotForEp) {
  auto ca = [](int i, const char* type, const char* state, int rate, const char* layer) {
    return fmt::format(
        "CA 'mlx5_{}'\n\tCA type: {}\n\tPort 1:\n\t\tState: {}\n\t\tRate: {}\n\t\tLink layer: {}\n", i, type,
        state, rate, layer);
  };
  auto one = of_text(std::string(kTwoGpus) + ca(0, "MT4129", "Active", 400, "InfiniBand") +
                     ca(1, "MT4129", "Down", 10, "InfiniBand") + ca(2, "MT41692", "Active", 200, "Ethernet"));
  EXPECT_EQ(one.usable(), std::vector<std::string>{"mlx5_0"});
  EXPECT_TRUE(said(one, "nic_down"));  // built like the one that is up, and two GPUs are there
  auto dead =
      of_text(ca(0, "MT4129", "Down", 10, "InfiniBand") + ca(1, "MT41692", "Active", 200, "Ethernet"));
  EXPECT_TRUE(dead.usable().empty());
  // Rails over RoCE beside one InfiniBand port for storage.
  std::string rails = ca(8, "MT4129", "Active", 400, "InfiniBand");
  for (int i = 0; i < 8; ++i) rails += ca(i, "MT41692", "Active", 400, "Ethernet");
  EXPECT_EQ(role(of_text(rails), "mlx5_3"), "compute");
}

TEST(Reach, LowLockedMemoryFailsWithoutTheCapability) {
  Facts f = facts_of_paste(take_apart({{"paste", kTwoGpus}})[0], "paste");
  f.limits.memlock = known<std::string>("65536", "ulimit -l");
  EXPECT_TRUE(said(read_topology(f), "memlock_low"));
  EXPECT_EQ(read_topology(f).verdict, Verdict::unknown);
  f.container.cap_effective = known<uint64_t>(0xa80425fb, "/proc/self/status");
  EXPECT_EQ(read_topology(f).verdict, Verdict::fail);
  f.container.cap_effective = known<uint64_t>(0xa80425fb | 1 << 14, "/proc/self/status");
  EXPECT_FALSE(said(read_topology(f), "memlock_low"));
  f.container.cap_effective = {};
  f.limits.memlock = known<std::string>("unlimited", "ulimit -l");
  EXPECT_FALSE(said(read_topology(f), "memlock_low"));
}

TEST(Gid, LinkLocalAndAutoconfiguredAddressesAreNotRouted) {
  auto t = of_text(
      "mlx5_0 1 1 fe80::1 v2 eth0\nmlx5_0 1 3 ::ffff:169.254.1.1 v2 eth0\nmlx5_0 1 5 ::ffff:198.18.1.1 v1 "
      "eth0\nmlx5_0 1 7 2001:db8::1 v2 eth0\n");
  EXPECT_EQ(t.gid.per_device.at("mlx5_0"), 7);
  EXPECT_TRUE(t.gid.ipv6);
}

}  // namespace
}  // namespace ep
