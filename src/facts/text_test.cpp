// Readers of pasted outputs: literal texts of several tool ages and the ways they get damaged.
#include "base/text.h"

#include <gtest/gtest.h>

#include "facts/text_facts.h"
#include "facts/text_host.h"
#include "facts/text_matrix.h"
#include "facts/text_rdma.h"
#include "facts/text_xml.h"

namespace ep {
namespace {

const char* kWhole =
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tPIX\tNODE\t0-47,96-143\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNODE\tPIX\t0-47,96-143\t0\t\tN/A\n"
    "NIC0\tPIX\tNODE\t X \tNODE\t\t\t\t\n"
    "NIC1\tNODE\tPIX\tNODE\t X \t\t\t\t\n\n"
    "Legend:\n\n  X    = Self\n  SYS  = Connection\n  NV#  = Connection\n\nNIC Legend:\n\n  NIC0: mlx5_4\n  "
    "NIC1: mlx5_7\n";

LinkMatrix one(const std::string& text) {
  auto tables = parse_link_matrices(text, "topo.txt");
  EXPECT_EQ(tables.size(), 1u);
  return tables.empty() ? LinkMatrix{} : tables[0].matrix;
}

TEST(LinkMatrixText, ReadsHeaderRowsLegendAndAffinities) {
  LinkMatrix m = one(kWhole);
  EXPECT_EQ(m.labels, (std::vector<std::string>{"GPU0", "GPU1", "NIC0", "NIC1"}));
  EXPECT_EQ(m.cells[0], (std::vector<std::string>{"X", "NV18", "PIX", "NODE"}));
  EXPECT_EQ(m.legend.at("NIC1"), "mlx5_7");
  EXPECT_EQ(m.cpu_affinity.at("GPU1"), "0-47,96-143");
  EXPECT_EQ(m.numa_affinity.at("GPU0"), "0");
  EXPECT_EQ(m.gpu_numa.at("GPU0"), "N/A");
  EXPECT_FALSE(m.cut);
}

TEST(LinkMatrixText, LostSeparatorsDoNotShiftCells) {
  std::string text = kWhole;
  size_t at = text.find("PIX\tNODE");
  text.replace(at, 8, "PIXNODE");
  auto t = parse_link_matrices(text, "topo.txt");
  ASSERT_EQ(t.size(), 1u);
  EXPECT_EQ(t[0].matrix.cells[0], (std::vector<std::string>{"X", "NV18", "PIX", "NODE"}));
  ASSERT_EQ(t[0].findings.size(), 1u);
  EXPECT_EQ(t[0].findings[0].code, "paste_damaged");
  EXPECT_EQ(t[0].findings[0].severity, Severity::info);
}

TEST(LinkMatrixText, ARowWithoutOneCellIsNotPadded) {
  std::string text = kWhole;
  size_t at = text.find("NV18\tPIX\tNODE");
  text.replace(at, 13, "NV18\tNODE");
  auto t = parse_link_matrices(text, "topo.txt");
  ASSERT_EQ(t.size(), 1u);
  bool said = false;
  for (const auto& f : t[0].findings) said |= f.code == "paste_damaged" && f.severity == Severity::warn;
  EXPECT_TRUE(said);
  // The NIC rows still show GPU0's distances.
  EXPECT_EQ(t[0].matrix.cells[0][2], "PIX");
}

TEST(LinkMatrixText, ALyingMirrorIsNotUsed) {
  std::string text = kWhole;
  text.replace(text.find("NIC0\tPIX"), 8, "NIC0\tSYS");
  auto t = parse_link_matrices(text, "topo.txt");
  ASSERT_EQ(t.size(), 1u);
  EXPECT_EQ(t[0].matrix.cells[0][2], "");
  EXPECT_EQ(t[0].findings[0].code, "topo_contradiction");
}

TEST(LinkMatrixText, ALegendWrittenAgainByHandIsRead) {
  for (const char* sign : {" = ", " -> ", ": ", " : "}) {
    std::string text = replace_all(replace_all(kWhole, "NIC0: ", std::string("NIC0") + sign),
                                   "NIC1: ", std::string("NIC1") + sign);
    EXPECT_EQ(one(text).legend.at("NIC1"), "mlx5_7") << sign;
  }
}

TEST(LinkMatrixText, ALyingLegendIsNotUsed) {
  std::string text = kWhole;
  text.replace(text.find("NIC1: mlx5_7"), 12, "NIC1: mlx5_4");
  LinkMatrix m = one(text);
  EXPECT_TRUE(m.legend.empty());
}

TEST(LinkMatrixText, OldDriversNameTheColumns) {
  LinkMatrix m =
      one("        GPU0    GPU1    mlx5_0  mlx5_1  CPU Affinity\n"
          "GPU0     X      NV12    PIX     SOC     0-15\n"
          "GPU1    NV12     X      SOC     PIX     16-31\n");
  EXPECT_TRUE(m.old_format);
  EXPECT_EQ(m.legend.at("mlx5_1"), "mlx5_1");
  EXPECT_EQ(m.cells[0][3], "SYS");
}

TEST(LinkMatrixText, WrappedRowsAreJoined) {
  LinkMatrix m = one("GPU0 GPU1 NIC0 CPU Affinity\nGPU0 X NV18\nPIX 0-3\nGPU1 NV18 X NODE 4-7\n");
  EXPECT_EQ(m.cells[0][2], "PIX");
  EXPECT_EQ(m.cpu_affinity.at("GPU0"), "0-3");
}

TEST(LinkMatrixText, OtherVendorsAreRefused) {
  auto t = parse_link_matrices("\tPPU0\tPPU1\nPPU0\tX\tICN7\nPPU1\tICN7\tX\n", "topo.txt");
  ASSERT_EQ(t.size(), 1u);
  EXPECT_FALSE(t[0].refused.empty());
}

TEST(LinkMatrixText, ProseIsNoTable) {
  EXPECT_TRUE(parse_link_matrices("GPU0 is slow and NIC3 too\nGPU1 works\n", "issue").empty());
}

TEST(LinkMatrixText, ALineOfManyThousandColumnsIsRefused) {
  std::string header = "GPU0";
  for (int i = 0; i < 5000; ++i) header += " NIC" + std::to_string(i % 9999);
  EXPECT_TRUE(parse_link_matrices(header + "\nGPU0 X PIX\n", "x").empty());
}

TEST(P2p, NamesThePairsThatAreNotOk) {
  auto p = parse_p2p_matrix(" \tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tOK\tX\n");
  ASSERT_TRUE(p.found);
  EXPECT_EQ(p.bad_pairs, std::vector<std::string>{"0-1: CNS"});
}

TEST(Gid, EveryTextFormIsTheSame) {
  EXPECT_EQ(full_gid("::ffff:198.18.1.10"), "0000:0000:0000:0000:0000:ffff:c612:010a");
  EXPECT_EQ(full_gid("0000:0000:0000:0000:0000:FFFF:c612:010a"), full_gid("::ffff:c612:10a"));
  EXPECT_EQ(full_gid("fe80::1"), "fe80:0000:0000:0000:0000:0000:0000:0001");
  for (const char* bad :
       {"", ":", "1::2::3", "::ffff:300.1.1.1", "12345::", "g::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9"})
    EXPECT_EQ(full_gid(bad), "") << bad;
}

TEST(Ibstat, StopsMidwayAndKeepsWhatCameBefore) {
  auto r = parse_ibstat(
      "CA 'mlx5_10'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: "
      "400\n"
      "\t\tLink layer: InfiniBand\nibpanic: [77] main: stat of IB device 'mlx5_8' failed: Invalid "
      "argument\n");
  ASSERT_EQ(r.devices.size(), 1u);
  EXPECT_EQ(*r.devices[0].ports[0].state, "ACTIVE");
  EXPECT_EQ(*r.devices[0].ports[0].rate_gbps, 400);
  EXPECT_FALSE(r.complete);
  EXPECT_EQ(r.findings.size(), 1u);
}

TEST(Merge, AContradictionIsSaidAndTheFirstReadingStays) {
  std::vector<RdmaDevice> devices;
  std::vector<Finding> findings;
  merge_rdma(parse_ibstat("CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n"), "ibstat", devices, findings);
  merge_rdma(parse_rdma_link("link mlx5_0/1 state DOWN physical_state DISABLED netdev eth0\n"), "rdma link",
             devices, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, "piece_contradiction");
  EXPECT_EQ(*devices[0].ports[0].state, "ACTIVE");
  EXPECT_EQ(devices[0].netdevs, std::vector<std::string>{"eth0"});
}

TEST(Sysfs, ReadsGrepAndHeadForms) {
  auto r = parse_sysfs_infiniband(
      "/sys/class/infiniband/mlx5_0/ports/1/gids/3:0000:0000:0000:0000:0000:ffff:c612:010a\n"
      "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3:RoCE v2\n"
      "==> /sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/3 <==\neth0\n");
  ASSERT_EQ(r.devices.size(), 1u);
  ASSERT_EQ(r.devices[0].ports[0].gids.size(), 1u);
  EXPECT_EQ(*r.devices[0].ports[0].gids[0].type, "RoCE v2");
  EXPECT_EQ(*r.devices[0].ports[0].gids[0].netdev, "eth0");
}

TEST(Pci, AddressesOfEveryWidth) {
  EXPECT_EQ(pci_address("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(pci_address("0000000F:01:00.0"), "000f:01:00.0");
  EXPECT_EQ(pci_address("17:00.1"), "0000:17:00.1");
  EXPECT_EQ(pci_address("17:00"), "0000:17:00.0");
  for (const char* bad : {"", "17", "1:2:3", "zz:00.0", "0000:17:00.x"})
    EXPECT_EQ(pci_address(bad), "") << bad;
  EXPECT_EQ(address_of_name("rocep145s0"), "0000:91:00.0");
  EXPECT_EQ(address_of_name("roceP2p1s0f1"), "0002:01:00.1");
  EXPECT_EQ(address_of_name("enP2p1s0f1np1"), "0002:01:00.1");
  EXPECT_EQ(address_of_name("mlx5_0"), "");
}

TEST(GpuNames, GiveTheComputeCapability) {
  EXPECT_EQ(sm_of_gpu_name("NVIDIA H20"), 90);
  EXPECT_EQ(sm_of_gpu_name("NVIDIA GB200"), 100);
  EXPECT_EQ(sm_of_gpu_name("NVIDIA B300 SXM6 AC"), 103);
  EXPECT_EQ(sm_of_gpu_name("NVIDIA GB10"), 121);
  EXPECT_EQ(sm_of_gpu_name("NVIDIA A100-SXM4-80GB"), 80);
  EXPECT_EQ(sm_of_gpu_name("NVIDIA L40S"), 89);
  EXPECT_EQ(sm_of_gpu_name("NVIDIA RTX A6000"), 86);
  EXPECT_EQ(sm_of_gpu_name("something new"), 0);
}

TEST(Params, TheOverrideIsReadInEverySpelling) {
  for (const char* text :
       {"\"PeerMappingOverride=1;\"", "PeerMappingOverride=0x1", "A=2; PeerMappingOverride=1"})
    EXPECT_EQ(parse_registry_dwords(text).at("PeerMappingOverride"), 1) << text;
  EXPECT_TRUE(parse_registry_dwords("\"\"").empty());
}

TEST(Xml, CutFilesGiveWhatStandsBeforeTheCut) {
  auto x = read_xml(
      "<system version=\"1\"><cpu numaid='0'><pci busid=\"0000:0f:00.0\" class=\"0x030200\"/><pci "
      "busid=\"00");
  EXPECT_TRUE(x.cut);
  ASSERT_EQ(x.root.children.size(), 1u);
  EXPECT_EQ(x.root.children[0].children[0].children.size(), 1u);
  EXPECT_EQ(x.root.children[0].children[0].get("numaid"), "0");
}

TEST(Paste, ProseAroundPiecesIsCountedNotRead) {
  auto hosts = take_apart({{"issue.md", std::string("Our job hangs.\n```\n") + kWhole + "```\nany idea?\n"}});
  ASSERT_EQ(hosts.size(), 1u);
  EXPECT_EQ(hosts[0].pieces.size(), 1u);
  EXPECT_EQ(hosts[0].unread_lines, 2);
}

TEST(Paste, FilesOfSeveralHostsStayApart) {
  auto hosts = take_apart({{"pod-a-show_gids.txt", "mlx5_0 1 5 ::ffff:198.18.0.1 v2 eth0\n"},
                           {"pod-b-show_gids.txt", "mlx5_0 1 7 ::ffff:198.18.0.2 v2 eth0\n"}});
  EXPECT_EQ(hosts.size(), 2u);
  auto one_host =
      take_apart({{"file0.txt", kWhole}, {"file1.txt", kWhole}, {"file2.txt", "hca_id: mlx5_4\n port: 1\n"}});
  EXPECT_EQ(one_host.size(), 1u);
}

TEST(Paste, QuotedMailIsUnquoted) {
  std::string quoted;
  for (auto l : lines(kWhole)) quoted += "> " + std::string(l) + "\n";
  auto hosts = take_apart({{"mail", quoted}});
  Facts f = facts_of_paste(hosts[0], "mail");
  ASSERT_EQ(f.matrices.size(), 1u);
  EXPECT_EQ(f.matrices[0].legend.at("NIC0"), "mlx5_4");
}

}  // namespace
}  // namespace ep
