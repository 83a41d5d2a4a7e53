// Reading a paste takes time in proportion to its length: for every kind of piece a text is doubled, and the
// work must not grow like a square. CPU time of this thread is measured, so a busy machine does not matter.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <string>

#include "facts/text_facts.h"
#include "facts/topology.h"

namespace ep {
namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

double time_of(const std::string& text) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    double start = cpu_seconds();
    for (const auto& h : take_apart({{"paste.txt", text}})) read_topology(facts_of_paste(h, "paste"));
    best = std::min(best, cpu_seconds() - start);
  }
  return best;
}

using Line = std::function<std::string(int)>;

struct Kind {
  const char* name;
  Line line;
  std::string head = {}, tail = {};
};

std::string many(const Kind& k, int n) {
  std::string out = k.head;
  for (int i = 0; i < n; ++i) out += k.line(i);
  return out + k.tail;
}

// Every kind of piece, with as many different names as lines, and the shapes that tempt a reader to look
// back.
std::vector<Kind> kinds() {
  auto text = [](const char* s) { return [s](int) { return std::string(s); }; };
  auto count = [](const char* s) { return [s](int i) { return fmt::format(fmt::runtime(s), i); }; };
  return {
      {"matrix header", count("GPU{}\t"), "\t", "\nGPU0\tX\tNV18\n"},
      {"matrix headers one below the other", count("\tGPU{0}\tNIC{0}\tmlx5_{0}\n"), "",
       "GPU0\tX\tNV18\tPIX\n"},
      {"matrices",
       text("\tGPU0\tNIC0\tCPU Affinity\nGPU0\tX\tPIX\t0-7\nNIC0\tPIX\tX\n\nNIC Legend:\n NIC0: mlx5_0\n")},
      {"legend", count("  NIC{0}: mlx5_{0}\n"), "\tGPU0\tNIC0\tCPU Affinity\nGPU0\tX\tPIX\t0-7\n"},
      {"matrix rows", count("GPU{0}\tX\tPIX\t0-7\n"), "\tGPU0\tNIC0\tCPU Affinity\n"},
      {"p2p", count(" \tGPU{0}\tGPU1\nGPU{0}\tX\tCNS\n")},
      {"show_gids devices", count("mlx5_{0}\t1\t3\t0000:0000:0000:0000:0000:ffff:0a00:0001\t\tv2\teth{0}\n")},
      {"show_gids indices", count("mlx5_0\t1\t{0}\t0000:0000:0000:0000:0000:ffff:0a00:0001\t\tv2\teth0\n")},
      {"ibv_devinfo",
       count(
           "hca_id:\tmlx5_{0}\n\ttransport:\tInfiniBand (0)\n\t\tport:\t1\n\t\t\tstate:\tPORT_ACTIVE (4)\n")},
      {"ibv_devinfo GIDs", count("\t\tGID[{0}]:\tfe80::{0}, RoCE v2\n"), "hca_id:\tmlx5_0\n\t\tport:\t1\n"},
      {"ibstat", count("CA 'mlx5_{0}'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n")},
      {"ibstatus", count("Infiniband device 'mlx5_{0}' port 1 status:\n\tstate:\t4: ACTIVE\n")},
      {"ibdev2netdev", count("mlx5_{0} port 1 ==> eth{0} (Up)\n")},
      {"rdma link", count("link mlx5_{0}/1 state ACTIVE physical_state LINK_UP netdev eth{0}\n")},
      {"sysfs GIDs",
       count("/sys/class/infiniband/mlx5_{0}/ports/1/gids/1:0000:0000:0000:0000:0000:ffff:0a00:0001\n")},
      {"sysfs GID indices",
       count("/sys/class/infiniband/mlx5_0/ports/1/gids/{0}:0000:0000:0000:0000:0000:ffff:0a00:0001\n")},
      {"names", count("mlx5_{0}\n")},
      {"nvidia-smi query", count("{0}, NVIDIA H200, 00000000:{0:02X}:00.0, 580.95.05\n"),
       "index, name, pci.bus_id, driver_version\n"},
      {"nvidia-smi -L", count("GPU {0}: NVIDIA H200 (UUID: GPU-{0})\n")},
      {"nvidia-smi table",
       count("|   {0}  NVIDIA H200   On  |   00000000:04:00.0 Off |                    0 |\n"),
       "| NVIDIA-SMI 580.95.05  Driver Version: 580.95.05  CUDA Version: 13.0 |\n"},
      {"nvidia-smi -q",
       text("GPU 00000000:19:00.0\n    Product Name                          : NVIDIA H200\n    Fabric\n     "
            "   State                             : Completed\n"),
       "==============NVSMI LOG==============\n"},
      {"collect_env lists", count("GPU {0},0-255: NVIDIA H200\n"), "Python: 3.12\n"},
      {"collect_env packages", count("[pip3] package{0}==1.0\n")},
      {"lspci",
       count("{0:04x}:17:00.0 Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n")},
      {"lspci tree",
       count(" +-[{0:04x}:17]-+-00.0-[18]----00.0  Mellanox Technologies MT2910 Family [ConnectX-7]\n"),
       "-+-[0000:00]-+-00.0  Intel\n"},
      {"lspci tree of GPUs",
       count(" +-[{0:04x}:17]-+-00.0-[18]----00.0  NVIDIA Corporation GH100 [H100 SXM5 80GB]\n"),
       "-+-[0000:00]-+-00.0  Intel\n"},
      {"links below sys",
       count("mlx5_{0} -> ../../devices/pci0000:15/0000:15:01.0/{0:04x}:16:00.0/infiniband/mlx5_{0}\n")},
      {"NUMA nodes", count("{0:04x}:17:00.0|1\n")},
      {"ip -br", count("eth{0}             UP             198.18.0.1/24\n")},
      {"ip addr", count("{0}: eth{0}: <BROADCAST,UP> mtu 9000 qdisc mq state UP group default\n    inet "
                        "198.18.0.1/24 scope global eth{0}\n")},
      {"params", count("Key{0}: 1\n"), "EnableStreamMemOPs: 1\n"},
      {"registry", count("Key{0}=1;"), "EnableStreamMemOPs: 1\nRegistryDwords: \"", "\"\n"},
      {"environment", count("export NCCL_V{0}=1\n")},
      {"log", count("nvidia_peermem: line {0}: invalid argument\n")},
      {"dkms", count("nvidia/580.{0}, 6.8.0-79-generic, x86_64: installed\n")},
      {"NCCL XML",
       count("<pci busid=\"{0:04x}:17:00.0\" class=\"0x030200\"><gpu dev=\"{0}\" sm=\"90\"><nvlink "
             "target=\"0000:01:00.0\" count=\"18\"/></gpu></pci>\n"),
       "<system><cpu numaid=\"0\">\n", "</cpu></system>\n"},
      {"NCCL XML nets",
       count("<pci busid=\"{0:04x}:17:00.0\" class=\"0x020700\"><nic><net name=\"mlx5_{0}\" "
             "gdr=\"1\"/></nic></pci>\n"),
       "<system><cpu numaid=\"0\">\n", "</cpu></system>\n"},
      {"XML depth", text("<pci busid=\"0000:17:00.0\" class=\"0x060400\">\n"),
       "<system><cpu numaid=\"0\">\n"},
      {"XML quote across lines", text("x\n"), "<system a=\"", "\"></system>\n"},
      {"XML open quotes", text("<a b=\"\n"), "<system>\n"},
      {"XML comments", text("<!-- x -->\n"), "<system>\n", "</system>\n"},
      {"hwloc XML",
       count("<object type=\"PCIDev\" pci_busid=\"{0:04x}:17:00.0\" pci_type=\"0302 [10de:2330] [10de:16c1] "
             "a1\"></object>\n"),
       "<topology>\n", "</topology>\n"},
      {"lstopo", count("  PCI {0:04x}:17:00.0 (InfiniBand)\n    OpenFabrics \"mlx5_{0}\"\n"),
       "Machine (2015GB total)\n"},
      {"prompts",
       count(
           "root@node{0}:~# show_gids\nmlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a00:0001\t\tv2\teth0\n")},
      {"kinds in turn",
       count("export NCCL_V{0}=1\nmlx5_{0}\nGPU {0}: NVIDIA H200 (UUID: GPU-{0})\nprose here\n")},
      {"prose", count("word {0} and so on, nothing of use\n")},
      {"quotes in mail", text("> > > text\n")},
      {"escapes in one line", text("\x1b[4mGPU0\x1b[0m\t"), "", "\n"},
      {"lost escapes in one line", text("^[[4m[4m"), "", "\n"},
      {"bars in one line", text("| "), "", "\n"},
      {"commas in one line", text("0,"), "GPU ", ": NVIDIA H200\n"},
  };
}

// Large enough that a square stands out from fixed costs; under sanitizers everything takes ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kLines = 500;
#else
constexpr int kLines = 2000;
#endif

TEST(LinearTime, DoublingAPasteDoesNotSquareTheWork) {
  double worst = 0;
  for (const auto& k : kinds()) {
    const int n = kLines;
    std::string once = many(k, n), twice = many(k, 2 * n);
    double a = time_of(once), b = time_of(twice);
    printf("%-40s %7.1f kB %8.2f ms   doubled %8.2f ms   x%.2f\n", k.name, double(once.size()) / 1e3, a * 1e3,
           b * 1e3, b / std::max(a, 1e-9));
    EXPECT_LT(b, 3.2 * a + 0.02) << k.name;
    worst = std::max(worst, b / double(twice.size()));
  }
  printf("slowest: %.0f ns a byte\n", worst * 1e9);
  RecordProperty("slowest_ns_per_byte", std::to_string(worst * 1e9));
}

}  // namespace
}  // namespace ep
