// Every kind of piece with a sample of its own: recognised as what it is, read into facts, nothing of it left
// over; all of them mixed with prose; and pieces that contradict each other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/text.h"
#include "facts/text_facts.h"
#include "facts/topology.h"

namespace ep {
namespace {

struct Sample {
  const char* kind;
  const char* text;
};

const Sample kSamples[] = {
    {"nvidia-smi-topo",
     "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X "
     "\tNV18\tPIX\t0-47\t0\t\tN/A\n"
     "GPU1\tNV18\t X \tNODE\t0-47\t0\t\tN/A\nNIC0\tPIX\tNODE\t X \t\t\t\t\n\nLegend:\n\n  X    = Self\n"
     "  PIX  = Connection traversing at most a single PCIe bridge\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"},
    {"show_gids",
     "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n---\t----\t-----\t---\t\t\t\t\t------------  "
     "\t---\t---\n"
     "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c612:0a01\t198.18.10.1  \tv2\teth2\nn_gids_found=1\n"},
    {"ibv_devinfo",
     "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand "
     "(0)\n\tfw_ver:\t\t\t\t28.43.2026\n\tvendor_part_id:\t\t\t4129\n"
     "\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tlink_layer:\t\tEthernet\n"},
    {"ibstat",
     "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tPhysical "
     "state: LinkUp\n"
     "\t\tRate: 400\n\t\tLink layer: Ethernet\n"},
    {"ibstatus",
     "Infiniband device 'mlx5_0' port 1 status:\n\tdefault gid:\t fe80::1\n\tstate:\t\t 4: "
     "ACTIVE\n\trate:\t\t 400 Gb/sec "
     "(4X NDR)\n\tlink_layer:\t Ethernet\n"},
    {"ibdev2netdev", "mlx5_0 port 1 ==> eth2 (Up)\n"},
    {"rdma-link", "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth2 \n"},
    {"sysfs-infiniband",
     "/sys/class/infiniband/mlx5_0/ports/1/gids/3:0000:0000:0000:0000:0000:ffff:c612:0a01\n"
     "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3:RoCE v2\n"},
    {"lstopo",
     "Machine (2015GB total)\n  Package L#0\n    NUMANode L#0 (P#0 1007GB)\n    HostBridge\n      PCIBridge\n"
     "        PCI 17:00.0 (3D)\n      PCIBridge\n        PCI 18:00.0 (Ethernet)\n          OpenFabrics "
     "\"mlx5_0\"\n"},
    {"lspci-tree",
     "-+-[0000:16]-+-00.0  Intel Corporation Device 09a2\n"
     " |           \\-01.0-[17-1b]----00.0-[18-1b]--+-00.0-[19]----00.0  NVIDIA Corporation GH100 [H100 SXM5 "
     "80GB]\n"
     " |                                           \\-01.0-[1a]----00.0  Mellanox Technologies MT2910 Family "
     "[ConnectX-7]\n"
     " \\-[0000:00]-+-00.0  Intel Corporation Device 09a2\n"
     "             \\-1f.0  Intel Corporation Device 1b81\n"},
    {"lspci",
     "19:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
     "1a:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"},
    {"sysfs-links",
     "lrwxrwxrwx 1 root root 0 Nov 30 10:00 mlx5_0 -> "
     "../../devices/pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:01.0/0000:1a:00.0/infiniband/mlx5_0\n"},
    {"dkms-status",
     "nvidia/580.95.05, 6.8.0-79-generic, x86_64: installed\nnvidia/580.95.05, 6.8.0-84-generic, x86_64: "
     "installed\n"
     "gdrdrv/2.5.1, 6.8.0-79-generic, x86_64: installed\nmlnx-ofed-kernel, 24.10: added\n"},
    {"uname", "Linux node1 6.8.0-84-generic #84-Ubuntu SMP PREEMPT_DYNAMIC x86_64 GNU/Linux\n"},
    {"os-release", "PRETTY_NAME=\"Ubuntu 24.04.3 LTS\"\nNAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nID=ubuntu\n"},
    {"lsb_release",
     "Distributor ID:\tUbuntu\nDescription:\tUbuntu 22.04.5 LTS\nRelease:\t22.04\nCodename:\tjammy\n"},
    {"nvidia-version",
     "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build\n"
     "GCC version:  gcc version 12.3.0\n"},
    {"nvcc",
     "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2025 NVIDIA Corporation\n"
     "Cuda compilation tools, release 12.8, V12.8.93\n"},
    {"lsmod", "Module                  Size  Used by\nnvidia_uvm           1900544  2 nvidia\n"},
    {"ulimit",
     "core file size              (blocks, -c) 0\nmax locked memory           (kbytes, -l) unlimited\n"},
    {"df",
     "Filesystem      Size  Used Avail Use% Mounted on\nshm              64M     0   64M   0% /dev/shm\n"},
    {"modprobe.d", "options nvidia NVreg_EnableStreamMemOPs=1\n"},
    {"cgroup", "0::/kubepods.slice/kubepods-pod4c1f.slice/cri-containerd-9f.scope\n"},
    {"capabilities", "CapInh:\t0000000000000000\nCapEff:\t00000000a80425fb\n"},
    {"pip-list", "deep_ep                 1.2.1+73b6ea4\ntorch                   2.10.0+cu128\n"},
    {"missing-path", "cat: /proc/driver/nvidia/version: No such file or directory\n"},
    {"dmi", "$ cat /sys/class/dmi/id/product_name\np5.48xlarge\n"},
    {"pci-numa", "0000:19:00.0|0\n0000:1a:00.0|0\n"},
    {"ip",
     "eth2             UP             198.18.10.1/24 fe80::5eff:fe00:1/64 \nlo UNKNOWN 127.0.0.1/8 ::1/128 "
     "\n"},
    {"nvidia-smi-query",
     "index, name, pci.bus_id, driver_version, compute_cap\n0, NVIDIA H100 80GB HBM3, 00000000:19:00.0, "
     "580.95.05, 9.0\n"},
    {"nvidia-smi-list", "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5eed0000-0000-0000-0000-000000000000)\n"},
    {"nvidia-smi",
     "| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |\n"
     "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |\n"},
    {"nvidia-smi-q",
     "==============NVSMI LOG==============\n\nDriver Version                            : 580.95.05\n\nGPU "
     "00000000:19:00.0\n"
     "    Product Name                          : NVIDIA H100 80GB HBM3\n    Fabric\n"
     "        State                             : Completed\n"},
    {"nvidia-params",
     "ResmanDebugLevel: 4294967295\nEnableStreamMemOPs: 1\nRegistryDwords: \"PeerMappingOverride=1\"\n"},
    {"environment", "export NCCL_IB_HCA==mlx5_0\nNVSHMEM_IB_GID_INDEX=3\n"},
    {"ofed_info", "OFED-internal-25.10-1.7.1:\n"},
    {"log", "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument\n"},
    {"device-nodes", "rdma_cm  uverbs0  uverbs1\n"},
    {"service-state",
     "\u25cf nvidia-imex.service - NVIDIA IMEX service\n     Loaded: loaded "
     "(/usr/lib/systemd/system/nvidia-imex.service; "
     "enabled)\n     Active: inactive (dead)\n"},
    {"rdma-names", "mlx5_0\nmlx5_1\n"},
    {"collect_env",
     "Collecting environment information...\nPyTorch version: 2.9.1+cu129\nCUDA used to build PyTorch: 12.9\n"
     "GPU models and configuration: GPU 0: NVIDIA H100 80GB HBM3\nNvidia driver version: 580.95.05\n[pip3] "
     "torch==2.9.1\n"},
    {"nccl-xml",
     "<system version=\"1\">\n  <cpu numaid=\"0\" affinity=\"ffffffff\" arch=\"x86_64\">\n    <pci "
     "busid=\"0000:17:00.0\" "
     "class=\"0x060400\">\n      <pci busid=\"0000:19:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"90\" "
     "rank=\"0\"/></pci>\n"
     "      <pci busid=\"0000:1a:00.0\" class=\"0x020700\"><nic><net name=\"mlx5_0\" dev=\"0\" "
     "speed=\"400000\" port=\"1\" "
     "gdr=\"1\"/></nic></pci>\n    </pci>\n  </cpu>\n</system>\n"},
    {"hwloc-xml",
     "<topology version=\"2.0\">\n<object type=\"Machine\"><object type=\"Bridge\" bridge_type=\"0-1\">\n"
     "<object type=\"PCIDev\" pci_busid=\"0000:19:00.0\" pci_type=\"0302 [10de:2330] [10de:16c1] "
     "a1\"></object>\n"
     "</object></object>\n</topology>\n"},
};

PastedHost first(const std::string& text) {
  return take_apart({{"pasted.txt", text}})[0];
}

TEST(Pieces, EveryKindHasASampleAndIsRecognisedWhole) {
  std::set<std::string> have;
  for (const auto& s : kSamples) {
    SCOPED_TRACE(s.kind);
    have.insert(s.kind);
    PastedHost h = first(s.text);
    ASSERT_EQ(h.pieces.size(), 1u);
    EXPECT_EQ(h.pieces[0].kind, s.kind);
    EXPECT_EQ(h.unread_lines, 0);
    Facts f = facts_of_paste(h, "paste");
    ASSERT_EQ(f.paste.pieces.size(), 1u);
    EXPECT_EQ(f.paste.pieces[0].line, 1);
  }
  for (const auto& k : piece_kinds()) EXPECT_TRUE(have.count(k.kind)) << "no sample of " << k.kind;
}

TEST(Pieces, AreFoundOneByOneAmongProseAndTheRestIsCounted) {
  std::string text;
  int prose = 0;
  std::map<std::string, int> line_of;
  for (const auto& s : kSamples) {
    text += "This is what we saw on the host, please help.\n\n";
    ++prose;
    line_of[s.kind] = 1 + int(std::count(text.begin(), text.end(), '\n'));
    text += s.text;
    text += "\n";
  }
  PastedHost h = first(text);
  std::map<std::string, int> seen;
  for (const auto& p : h.pieces) {
    EXPECT_EQ(++seen[p.kind], 1) << p.kind;
    EXPECT_EQ(p.line, line_of[p.kind]) << p.kind;
  }
  EXPECT_EQ(seen.size(), std::size(kSamples));
  EXPECT_EQ(h.unread_lines, prose);
}

const char* sample(const char* kind) {
  for (const auto& s : kSamples)
    if (std::string_view(s.kind) == kind) return s.text;
  return "";
}
Facts facts(const std::string& text) {
  return facts_of_paste(first(text), "paste");
}
bool finds(const Facts& f, const char* code) {
  auto t = read_topology(f);
  return std::any_of(t.findings.begin(), t.findings.end(), [&](const Finding& x) { return x.code == code; });
}

TEST(Pieces, ATreeOfLspciGivesPathsLikeSysfs) {
  Facts f = facts(sample("lspci-tree"));
  ASSERT_EQ(f.gpus.size(), 1u);
  EXPECT_EQ(f.gpus[0].address, "0000:19:00.0");
  EXPECT_EQ(*f.gpus[0].compute_capability, 90);
  ASSERT_EQ(f.rdma.size(), 1u) << "the NIC stands for itself, by address";
  EXPECT_EQ(f.rdma[0].name, "0000:1a:00.0");
  for (const auto& p : f.pci)
    if (p.address == "0000:19:00.0") {
      EXPECT_EQ(p.path,
                (std::vector<std::string>{"pci0000:16", "0000:16:01.0", "0000:17:00.0", "0000:18:00.0"}));
    }
  auto t = read_topology(f);
  EXPECT_EQ(t.gpu_nic[0][0], LinkClass::pix) << "one switch, each behind a downstream port of its own";
  EXPECT_TRUE(t.strings.deep_ep.empty()) << "an address is no device name";
}

TEST(Pieces, LinksBelowSysNameTheNicOfTheTree) {
  auto t = read_topology(facts(std::string(sample("lspci-tree")) + "\n" + sample("sysfs-links")));
  ASSERT_EQ(t.nics.size(), 1u);
  EXPECT_EQ(t.nics[0].name, "mlx5_0");
  EXPECT_EQ(t.mapping.pairs.at(0), "mlx5_0");
  EXPECT_EQ(t.mapping.confidence, Confidence::derived);
  EXPECT_EQ(t.strings.deep_ep, "0:mlx5_0:1");
}

TEST(Pieces, DkmsTellsWhichKernelLacksAModule) {
  Facts f = facts(sample("dkms-status"));
  ASSERT_EQ(f.kernel.dkms.size(), 4u);
  EXPECT_EQ(f.kernel.dkms[2].name, "gdrdrv");
  EXPECT_EQ(f.kernel.dkms[2].kernel, "6.8.0-79-generic");
  EXPECT_EQ(*f.kernel.dkms[3].state, "added");
  EXPECT_EQ(f.kernel.dkms[3].version, "24.10");
  EXPECT_TRUE(finds(f, "dkms_not_built"));
  EXPECT_TRUE(finds(facts(std::string(sample("dkms-status")) + sample("uname")), "dkms_not_built"));
  EXPECT_FALSE(
      finds(facts("nvidia/580.95.05, 6.8.0-79-generic, x86_64: installed\n"
                  "gdrdrv/2.5.1, 6.8.0-79-generic, x86_64: installed\nLinux n 6.8.0-79-generic #1 SMP x\n"),
            "dkms_not_built"));
}

TEST(Pieces, ThatContradictEachOtherAreFindings) {
  std::string down = sample("ibstatus");
  down = replace_all(down, "4: ACTIVE", "1: DOWN");
  EXPECT_TRUE(finds(facts(std::string(sample("ibstat")) + "\n" + down), "piece_contradiction"));
  std::string moved = replace_all(sample("show_gids"), "c612:0a01\t198.18.10.1", "c612:0b01\t198.18.11.1");
  EXPECT_TRUE(finds(facts(std::string(sample("show_gids")) + "\nafter the restart of the network:\n" + moved),
                    "gid_drift"));
  EXPECT_FALSE(finds(facts(std::string(sample("show_gids")) + "\n" + sample("show_gids")), "gid_drift"));
  std::string other = replace_all(sample("nvidia-smi-topo"), "PIX", "SYS");
  EXPECT_TRUE(finds(facts(std::string(sample("nvidia-smi-topo")) + "\n" + other), "piece_contradiction"));
}

// The same table in the dresses that people paste it in.
TEST(Dresses, AreTakenOffAndTheAnswerIsTheSame) {
  std::string plain = replace_all(replace_all(sample("nvidia-smi-topo"), "\x1b[4m", ""), "\x1b[0m", "");
  auto want = read_topology(facts(plain));
  ASSERT_EQ(want.mapping.pairs.at(0), "mlx5_0");
  auto each = [&](auto change) {
    std::string out;
    for (auto l : lines(plain)) out += change(std::string(l)) + "\n";
    return out;
  };
  int n = 0;
  const std::pair<const char*, std::string> dresses[] = {
      {"log", each([&](const std::string& l) {
         return "2026-11-30T10:00:0" + std::to_string(n++ % 10) + "Z INFO [rank0] " + l;
       })},
      {"compose", each([](const std::string& l) { return "worker-0  | " + l; })},
      {"json", "{\"level\": \"info\", \"topo\": \"" +
                   replace_all(replace_all(replace_all(sample("nvidia-smi-topo"), "\t", "\\t"), "\n", "\\n"),
                               "\x1b", "\\u001b") +
                   "\"}\n"},
      {"mail", each([](const std::string& l) { return "> " + l; })},
      {"indented", each([](const std::string& l) { return "      " + l; })},
      {"cat -n",
       [&] {
         std::string out;
         int i = 0;
         for (auto l : lines(plain)) out += fmt::format("{:>6}\t{}\n", ++i, l);
         return out;
       }()},
      {"grep -n",
       [&] {
         std::string out;
         int i = 0;
         for (auto l : lines(plain)) out += fmt::format("{}:{}\n", ++i, l);
         return out;
       }()},
      {"html", replace_all(replace_all(plain, "\t", "&nbsp;&nbsp;"), "\n", "<br>\n")},
      {"windows", replace_all(plain, "\n", "\r\n")},
      {"markdown", each([](const std::string& l) {
         if (l.find('\t') == l.npos) return l;
         return "| " + replace_all(l, "\t", " | ") + " |";
       })},
      {"markdown with marks", each([](const std::string& l) {
         if (const size_t colon = l.find(": "); starts_with(trim(l), "NIC") && colon != l.npos)
           return "- " + std::string(trim(l.substr(0, colon))) + ": `" + l.substr(colon + 2) + "`";
         if (starts_with(l, "NIC Legend")) return std::string("**NIC Legend**");
         if (l.find('\t') == l.npos) return l;
         const size_t tab = l.find('\t');
         const std::string first(trim(l.substr(0, tab)));
         return "| " + (first.empty() ? "topo" : "**" + first + "**") + " | " +
                replace_all(l.substr(tab + 1), "\t", " | ") + " |";
       })},
      {"one line", [&] {
         std::string out;
         for (auto l : lines(plain)) out += std::string(trim(replace_all(std::string(l), "\t", " "))) + " ";
         return out + "\n";
       }()}};
  for (const auto& [name, text] : dresses) {
    SCOPED_TRACE(name);
    auto t = read_topology(facts(text));
    EXPECT_EQ(t.gpus.size(), want.gpus.size());
    EXPECT_EQ(t.gpu_nic, want.gpu_nic);
    EXPECT_EQ(t.gpu_gpu, want.gpu_gpu);
    EXPECT_EQ(t.mapping.pairs, want.mapping.pairs);
    EXPECT_EQ(t.verdict, want.verdict);
  }
}

// What has no dress is not undressed.
TEST(Dresses, LeaveOrdinaryListingsAlone) {
  std::string netdevs;
  for (int i = 0; i < 8; ++i)
    netdevs += "mlx5_" + std::to_string(i) + " port 1 ==> eth" + std::to_string(i) + " (Up)\n";
  EXPECT_EQ(facts(netdevs).rdma.size(), 8u);
  std::string pci;
  for (int i = 0; i < 8; ++i)
    pci += "1" + std::to_string(i) +
           ":00.0 Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n";
  EXPECT_EQ(facts(pci).pci.size(), 8u);
  std::string links;
  for (int i = 1; i < 9; ++i)
    links += fmt::format("{}: eth{}: <BROADCAST,UP> mtu 9000 qdisc mq state UP mode DEFAULT\n", i, i);
  EXPECT_EQ(facts(links).netdevs.size(), 8u);
  std::string busses;
  for (int i = 1; i < 9; ++i)
    busses += fmt::format("{:02}:00.0 3D controller: NVIDIA Corporation GH100 [H100]\n", i);
  EXPECT_EQ(facts(busses).pci.size(), 8u);
}

TEST(ManyHosts, FilesOfOneHostComeTogetherAndTheOddOneIsNamed) {
  std::string topo = sample("nvidia-smi-topo"), other = replace_all(topo, "mlx5_0", "mlx5_4");
  auto pasted = take_apart({{"node1-topo.txt", topo},
                            {"node2-topo.txt", topo},
                            {"node3-topo.txt", other},
                            {"node3-ibdev2netdev.txt", "mlx5_4 port 1 ==> eth4 (Up)\n"}});
  ASSERT_EQ(pasted.size(), 3u);
  std::vector<Facts> facts;
  std::vector<Topology> hosts;
  for (const auto& h : pasted) {
    facts.push_back(facts_of_paste(h, h.name));
    hosts.push_back(read_topology(facts.back()));
  }
  EXPECT_EQ(hosts[2].host_name, "node3");
  EXPECT_EQ(hosts[2].nics.at(0).netdev, "eth4");
  std::string odd;
  for (const auto& f : compare_hosts(hosts, facts))
    if (f.code == "heterogeneous_names") odd = f.title;
  EXPECT_NE(odd.find("node3"), std::string::npos) << odd;
}

TEST(ManyHosts, PromptsInOneTextMakeHosts) {
  std::string topo = sample("nvidia-smi-topo");
  auto pasted = take_apart({{"paste.txt", "root@a1:~# nvidia-smi topo -m\n" + topo +
                                              "((vllm-0.11) ) [me@a2 ~]$ nvidia-smi topo -m\n" + topo}});
  ASSERT_EQ(pasted.size(), 2u);
  EXPECT_EQ(pasted[0].name, "a1");
  EXPECT_EQ(pasted[1].name, "a2");
}

TEST(Numbers, BeyondAnyDeviceAreNotRead) {
  const auto f = facts(
      "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t28.42.1000\n\t\tport:\t1\n"
      "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 "
      "(5)\n\t\t\tactive_mtu:\t\t409699999999999999 (5)\n");
  ASSERT_EQ(f.rdma.size(), 1u);
  ASSERT_EQ(f.rdma[0].ports.size(), 1u);
  EXPECT_FALSE(f.rdma[0].ports[0].active_mtu.ok());
}

}  // namespace
}  // namespace ep
