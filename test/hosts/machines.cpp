#include "machines.h"

#include <fmt/format.h>

#include "base/text.h"
#include "facts/pci_ids.h"
#include "machine.h"

namespace ep::test {

namespace {

constexpr uint64_t kGB = 1000000000ull, kGiB = 1ull << 30;
constexpr uint64_t kAllCapabilities = 0x1ffffffffffull, kNone = 0;

// GCP A4 (and A3 Ultra): two GPUs and two NICs below each PCIe switch; NIC names are decimal bus numbers.
struct A4Switch {
  const char* host_bridge;
  const char* root_port;
  const char* upstream;
  const char* downstream;  ///< bus of the downstream ports
  const char* gpus[2];
  const char* nics[2];
  int numa;
};
constexpr A4Switch kA4[] = {
    {"pci0000:8c",
     "0000:8c:00.0",
     "0000:8d:00.0",
     "0000:8e",
     {"0000:8f:00.0", "0000:90:00.0"},
     {"0000:91:00.0", "0000:92:00.0"},
     0},
    {"pci0000:93",
     "0000:93:00.0",
     "0000:94:00.0",
     "0000:95",
     {"0000:96:00.0", "0000:97:00.0"},
     {"0000:98:00.0", "0000:99:00.0"},
     0},
    {"pci0000:c1",
     "0000:c1:00.0",
     "0000:c2:00.0",
     "0000:c3",
     {"0000:c4:00.0", "0000:c5:00.0"},
     {"0000:c6:00.0", "0000:c7:00.0"},
     1},
    {"pci0000:c8",
     "0000:c8:00.0",
     "0000:c9:00.0",
     "0000:ca",
     {"0000:cb:00.0", "0000:cc:00.0"},
     {"0000:cd:00.0", "0000:ce:00.0"},
     1},
};

void a4_hardware(Machine& m, bool mlx5_names, const std::string& netdev_format) {
  m.cpu("INTEL(R) XEON(R) PLATINUM 8581C CPU @ 2.10GHz", 224, 2, true, 4063ull << 30);
  m.dmi("Google", "Google Compute Engine");
  for (const auto& s : kA4)
    for (int i = 0; i < 2; ++i)
      m.gpu(m.under(s.host_bridge, {s.root_port, s.upstream, fmt::format("{}:{:02x}.0", s.downstream, i)},
                    s.numa),
            s.gpus[i], 0x2901, s.numa, "NVIDIA B200");
  int n = 0;
  for (const auto& s : kA4)
    for (int i = 0; i < 2; ++i, ++n) {
      NicSpec nic;
      int bus = int(*parse_int("0x" + std::string(s.nics[i]).substr(5, 2)));
      nic.name = mlx5_names ? fmt::format("mlx5_{}", n) : fmt::format("rocep{}s0", bus);
      nic.guid = fmt::format("5eed:0000:0000:01{:02x}", n);
      nic.netdev = fmt::format(fmt::runtime(netdev_format), n);
      nic.mac = fmt::format("02:00:5e:00:01:{:02x}", n);
      nic.ip = fmt::format("198.18.{}.10/24", n + 1);
      m.nic(m.under(s.host_bridge, {s.root_port, s.upstream, fmt::format("{}:{:02x}.0", s.downstream, i + 2)},
                    s.numa),
            s.nics[i], s.numa, nic);
    }
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b) {
      if (a / 2 == b / 2) m.gpu_nic[{a, b}] = "PIX";
      if (a < b && a / 2 == b / 2) m.nic_nic[{a, b}] = "PIX";
    }
}

void ubuntu_server(Machine& m, const std::string& kernel) {
  m.os_release("ubuntu", "24.04", "noble", "Ubuntu 24.04.3 LTS");
  for (const char* p :
       {"git", "curl", "tar", "python3.12", "sudo", "systemctl", "lspci", "kmod", "patch", "apt-get"})
    m.program(std::string("/usr/bin/") + p);
  m.data.link("/usr/bin/python3", "python3.12");
  m.data.link("/usr/sbin/modprobe", "../bin/kmod");
  m.program("/usr/sbin/update-initramfs");
  m.data.probe("git-version", "git version 2.43.0\n");
  m.data.file("/usr/lib/python3.12/EXTERNALLY-MANAGED",
              "[externally-managed]\nError=see the distribution's documentation\n");
  m.data.directory("/usr/lib/python3/dist-packages");
  m.data.file("/etc/apt/sources.list.d/ubuntu.sources",
              "Types: deb\nURIs: http://archive.ubuntu.com/ubuntu\nSuites: noble noble-updates "
              "noble-backports\nComponents: main universe restricted multiverse\n"
              "Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg\n");
  m.data.file("/etc/security/limits.conf", "# /etc/security/limits.conf\n");
  m.data.directory("/etc/security/limits.d");
  m.package("git", "1:2.43.0-1ubuntu7.3");
  m.package("initramfs-tools", "0.142ubuntu25.5");
  m.package("kmod", "31+20240202-2ubuntu7.1");
  m.package("linux-headers-" + kernel, kernel);
  m.package("pciutils", "1:3.10.0-2build1");
  m.package("python3", "3.12.3-0ubuntu2");
  m.data.probe("initramfs", ".\nusr/bin/busybox\nusr/lib/modules/" + kernel +
                                "/kernel/drivers/nvme/host/nvme.ko.zst\netc/modprobe.d/blacklist.conf\n");
  for (const char* p : {"/", "/opt", "/tmp", "/var/tmp"})
    m.disk(p, 500 * kGB, 410 * kGB, "ext4", std::string(p) != "/" && std::string(p) != "/opt");
}

void nvidia_580(Machine& m, const std::string& registry_dwords) {
  m.nvidia_driver("580.95.05", true, registry_dwords, 0);
  for (auto [p, v] : {std::pair("nvidia-driver-580-server-open", "580.95.05-0ubuntu0.24.04.1"),
                      {"nvidia-utils-580-server", "580.95.05-0ubuntu0.24.04.1"},
                      {"nvidia-fabricmanager-580", "580.95.05-0ubuntu0.24.04.1"},
                      {"libnvidia-compute-580-server", "580.95.05-0ubuntu0.24.04.1"}})
    m.package(p, v);
  m.service("nvidia-fabricmanager.service", "loaded", "active");
  m.service("nvidia-imex.service", "not-found", "inactive");
  m.service("nvidia-persistenced.service", "loaded", "active");
}

void gvnics(Machine& m) {
  m.ethernet(m.under("pci0000:00", {}, 0), "0000:00:13.0", kVendorGoogle, 0x0042, "gvnic", 0, "enp0s19",
             "02:00:5e:00:00:01", "198.18.0.10/32", 8244, true);
  m.ethernet(m.under("pci0000:c0", {}, 1), "0000:c0:14.0", kVendorGoogle, 0x0042, "gvnic", 1, "enp192s20",
             "02:00:5e:00:00:02", "198.18.100.10/32", 8244, false);
}

const std::string kGcpKernel = "6.14.0-1021-gcp";
const std::vector<std::string> kNvidiaModules = {"nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"};
const std::vector<std::string> kRdmaModules = {"mlx5_ib", "rdma_ucm",  "rdma_cm", "iw_cm",    "ib_cm",
                                               "ib_umad", "ib_uverbs", "ib_core", "mlx5_core"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Machine a4_vm(const std::string& hostname, bool done) {
  Machine m(hostname, kGcpKernel);
  ubuntu_server(m, kGcpKernel);
  nvidia_580(m, done ? "PeerMappingOverride=1" : "");
  gvnics(m);
  a4_hardware(m, done, "gpu{}rdma0");
  m.modules(
      kNvidiaModules + kRdmaModules +
      (done ? std::vector<std::string>{"nvidia_peermem", "mlx_compat"} : std::vector<std::string>{"gve"}));
  m.data.file("/etc/modprobe.d/nvidia-graphics-drivers-kms.conf",
              "# Nvidia modesetting support\noptions nvidia-drm modeset=1\n");
  m.data.file("/etc/modprobe.d/blacklist.conf", "# modules that are better left alone\nblacklist evbug\n");
  m.disk("/dev/shm", 2031 * kGiB, 2031 * kGiB, "tmpfs");
  m.disk("/home/ubuntu", 500 * kGB, 410 * kGB, "ext4");
  m.user(1000, "/home/ubuntu", done ? "unlimited" : "8388608", kNone);
  m.package("rdma-core", done ? "2507mlnx58-1.2507097" : "50.0-2ubuntu0.2");
  m.package("libibverbs1", done ? "2507mlnx58-1.2507097" : "50.0-2ubuntu0.2");
  return m;
}

// What the finished plan leaves below its prefix.
void finished_parts(Machine& m, const std::string& prefix) {
  std::string venv = prefix + "/venv", site = venv + "/lib/python3.12/site-packages";
  m.data.file(venv + "/pyvenv.cfg",
              "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.12.3\nexecutable = "
              "/usr/bin/python3.12\n");
  m.data.link(venv + "/bin/python3", "/usr/bin/python3.12");
  m.data.link(venv + "/bin/python", "python3");
  for (auto [name, version] : {std::pair("torch", "2.9.1+cu129"),
                               {"numpy", "2.3.4"},
                               {"setuptools", "80.9.0"},
                               {"wheel", "0.45.1"},
                               {"ninja", "1.13.0"},
                               {"packaging", "25.0"},
                               {"triton", "3.5.1"},
                               {"nvidia-nccl-cu12", "2.27.5"},
                               {"nvidia-nvshmem-cu12", "3.5.19"},
                               {"nvidia-cuda-runtime-cu12", "12.9.79"},
                               {"deep-ep", "1.2.1+29d31c0"}})
    m.wheel(site, name, version);
  auto stamp = [&](const std::string& part, const std::string& text) {
    m.data.file(prefix + "/" + part + "/.epready-part",
                "# Written by epready when this part was published; facts read it back.\n" + text);
  };
  // As the planner stamps them (src/plan/steps_user.cpp); test/hosts/plans_test.cpp holds the two together.
  stamp("deepep",
        "arch=100\ncommit=29d31c095796f3c8ece47ee9cdcc167051bbeed9\ncuda=12.9\nnvshmem=3.5.19\npatches=none\n"
        "torch=2.9.1\n");
  stamp("nic-map", "venv=" + venv + "\nversion=1\n");
  stamp("env", "deepep=1.2.1+29d31c0\nhandler=gpu\nstack=v1-gcp-b200\n");
}

}  // namespace

SnapshotData gcp_a4_fresh() {
  return a4_vm("a4-fresh-0", false).finish();
}

SnapshotData gcp_a4_done() {
  Machine m = a4_vm("a4-done-0", true);
  m.cuda_toolkit("/usr/local/cuda-12.9", "12.9.1", "12.9.86");
  m.data.link("/usr/local/cuda", "/usr/local/cuda-12.9");
  m.data.file("/etc/modprobe.d/epready-nvidia.conf",
              "# Written by epready. Read by modprobe at the next load of the module.\noptions nvidia "
              "NVreg_RegistryDwords=\"PeerMappingOverride=1\"\n");
  m.data.file("/etc/security/limits.d/90-epready.conf",
              "* soft memlock unlimited\n* hard memlock unlimited\n");
  m.data.file("/etc/apt/sources.list.d/cuda.sources",
              "Types: deb\nURIs: "
              "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/\nSuites: "
              "/\nSigned-By: /usr/share/keyrings/cuda-archive-keyring.gpg\n");
  m.data.file(
      "/etc/apt/sources.list.d/doca.sources",
      "Types: deb\nURIs: https://linux.mellanox.com/public/repo/doca/3.2.1/ubuntu24.04/x86_64/\nSuites: "
      "./\nSigned-By: /etc/apt/keyrings/doca.gpg\n");
  for (auto [p, v] : {std::pair("cuda-toolkit-12-9", "12.9.1-1"),
                      {"cuda-nvcc-12-9", "12.9.86-1"},
                      {"doca-ofed", "3.2.1-044000"},
                      {"mlnx-ofed-kernel-dkms", "25.10.OFED.25.10.1.7.1.1-1"},
                      {"ibverbs-utils", "2507mlnx58-1.2507097"},
                      {"libibverbs-dev", "2507mlnx58-1.2507097"},
                      {"cmake", "3.28.3-1build7"},
                      {"ninja-build", "1.11.1-2"},
                      {"build-essential", "12.10ubuntu1"},
                      {"g++", "4:13.2.0-7ubuntu1"},
                      {"python3-dev", "3.12.3-0ubuntu2"},
                      {"python3-venv", "3.12.3-0ubuntu2"},
                      {"python3-pip", "24.0+dfsg-1ubuntu1.3"},
                      {"dkms", "3.0.11-1ubuntu13"}})
    m.package(p, v);
  for (const char* p : {"cmake", "ninja", "g++", "make", "ibv_devinfo", "ofed_info", "pip3"})
    m.program(std::string("/usr/bin/") + p);
  m.data.probe(
      "cmake-version",
      "cmake version 3.28.3\n\nCMake suite maintained and supported by Kitware (kitware.com/cmake).\n");
  m.data.probe("ninja-version", "1.11.1\n");
  m.data.probe("gcc-version", "13.3.0\n");
  m.data.probe("ofed_info", "OFED-internal-25.10-1.7.1:\n");
  std::string verbs;
  for (int i = 0; i < 8; ++i)
    verbs += fmt::format(
        "hca_id:\tmlx5_{}\n\ttransport:\t\t\tInfiniBand "
        "(0)\n\tfw_ver:\t\t\t\t28.43.2026\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_"
        "ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 "
        "(5)\n\t\t\tlink_layer:\t\tEthernet\n\n",
        i);
  m.data.probe("ibv_devinfo", verbs);
  m.program("/usr/include/infiniband/mlx5dv.h");
  m.program("/usr/lib/x86_64-linux-gnu/libmlx5.so");
  m.data.probe("initramfs", ".\nusr/bin/busybox\nusr/lib/modules/" + kGcpKernel +
                                "/kernel/drivers/nvme/host/nvme.ko.zst\netc/modprobe.d/blacklist.conf\netc/"
                                "modprobe.d/epready-nvidia.conf\n");
  for (const auto& module : {"mlx5_core", "mlx5_ib"})
    m.data.file(std::string("/sys/module/") + module + "/version", "25.10-1.7.1\n");
  finished_parts(m, "/opt/epready");
  return m.finish();
}

SnapshotData gke_a4_pod() {
  Machine m("gke-a4-pod-0", "6.6.105+");
  m.os_release("ubuntu", "24.04", "noble", "Ubuntu 24.04.2 LTS");
  m.nvidia_driver("580.95.05", true, "", 0);
  m.has_nvidia_smi = true;
  a4_hardware(m, true, "eth{}");
  // The pod shares the host's network: the node's own interface carries the default route; rails are eth2 to
  // eth9 there.
  m.ethernet(m.under("pci0000:00", {}, 0), "0000:00:13.0", kVendorGoogle, 0x0042, "gvnic", 0, "enp0s19",
             "02:00:5e:00:00:01", "198.18.0.11/32", 8244, true);
  m.modules(kNvidiaModules + kRdmaModules + std::vector<std::string>{"gve", "gdrdrv"});
  m.device_node("/dev/gdrdrv");
  m.data.file("/proc/self/cgroup",
              "0::/kubepods.slice/kubepods-pod5eed0000.slice/cri-containerd-5eed.scope\n");
  m.data.directory("/var/run/secrets/kubernetes.io");
  m.data.nodes.erase("/run/systemd/system");
  m.data.nodes.erase("/lib/modules/6.6.105+/build");
  m.data.file("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  m.data.environment["KUBERNETES_SERVICE_HOST"] = "198.18.200.1";
  m.data.environment["CUDA_HOME"] = "/usr/local/cuda";
  m.data.environment["LD_LIBRARY_PATH"] = "/usr/local/nvidia/lib64";
  m.data.environment["PATH"] =
      "/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/"
      "bin";
  m.data.file("/host/etc/os-release", "NAME=\"Container-Optimized OS\"\nID=cos\nVERSION_ID=121\n");
  for (const char* part :
       {"configs/guest_config.txtpb", "configs/tuner_config_a3u.txtpb", "configs/tuner_config_a4.txtpb",
        "lib64/libnccl-net.so", "lib64/libnccl-tuner.so", "lib64/libnccl.so.2", "scripts/set_nccl_env.sh"})
    m.data.file(std::string("/host/home/kubernetes/bin/gib/") + part, "# stand-in\n");
  m.cuda_toolkit("/usr/local/cuda-12.9", "12.9.1", "12.9.86");
  m.data.link("/usr/local/cuda", "cuda-12.9");
  std::string site = "/usr/local/lib/python3.12/dist-packages";
  for (auto [name, version] : {std::pair("torch", "2.8.0a0+5228986c39.nv25.6"),
                               {"numpy", "1.26.4"},
                               {"triton", "3.3.0"},
                               {"setuptools", "78.1.1"},
                               {"ninja", "1.11.1.4"},
                               {"pybind11", "2.13.6"}})
    m.wheel(site, name, version);
  for (const char* p : {"python3.12", "g++", "make", "git", "curl", "tar", "patch", "apt-get"})
    m.program(std::string("/usr/bin/") + p);
  m.data.link("/usr/bin/python3", "python3.12");
  m.program("/usr/local/bin/cmake");
  m.data.probe("git-version", "git version 2.43.0\n");
  m.data.probe("cmake-version", "cmake version 3.31.6\n");
  m.data.probe("gcc-version", "13.3.0\n");
  for (auto [p, v] : {std::pair("cuda-toolkit-12-9", "12.9.1-1"),
                      {"g++", "4:13.2.0-7ubuntu1"},
                      {"git", "1:2.43.0-1ubuntu7.3"},
                      {"libibverbs1", "50.0-2ubuntu0.2"},
                      {"python3", "3.12.3-0ubuntu2"},
                      {"build-essential", "12.10ubuntu1"}})
    m.package(p, v);
  m.data.file("/etc/apt/sources.list.d/ubuntu.sources",
              "Types: deb\nURIs: http://archive.ubuntu.com/ubuntu\nSuites: noble noble-updates\nComponents: "
              "main universe\nSigned-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg\n");
  m.disk("/dev/shm", 64 * kGiB, 64 * kGiB, "tmpfs");
  for (const char* p : {"/", "/opt", "/tmp", "/var/tmp", "/root"})
    m.disk(p, 2000 * kGB, 1500 * kGB, "overlay");
  m.user(0, "/root", "unlimited", kAllCapabilities);
  return m.finish();
}

SnapshotData h100_ib() {
  const std::string kernel = "5.15.0-160-generic";
  Machine m("h100-ib-0", kernel);
  m.cpu("Intel(R) Xeon(R) Platinum 8480C", 224, 2, false, 2015ull << 30);
  m.dmi("Supermicro", "SYS-821GE-TNHR");
  m.os_release("ubuntu", "22.04", "jammy", "Ubuntu 22.04.5 LTS");
  m.nvidia_driver("570.172.08", true, "", 0);
  m.cuda_version = "12.8";
  m.compute_capability = "9.0";
  m.memory_mib = 81559;
  m.nvlink_gbps = 26.562;
  const char* buses[8] = {"18", "2a", "3a", "5d", "9a", "ab", "ba", "db"};
  auto next_bus = [](const char* b, int by) {
    return fmt::format("0000:{:02x}", *parse_int(std::string("0x") + b) + by);
  };
  auto folder = [&](int i, int port) {
    int base = int(*parse_int(std::string("0x") + buses[i]));
    return m.under(fmt::format("pci0000:{:02x}", base - 3),
                   {fmt::format("0000:{:02x}:01.0", base - 3), fmt::format("0000:{:02x}:00.0", base - 2),
                    fmt::format("0000:{:02x}:{:02x}.0", base - 1, port)},
                   i / 4);
  };
  for (int i = 0; i < 8; ++i)
    m.gpu(folder(i, 0), next_bus(buses[i], 0) + ":00.0", 0x2330, i / 4, "NVIDIA H100 80GB HBM3");
  // Device numbers follow the bus: the management NIC is mlx5_0, the storage HCA sits between the rails.
  auto ib = [&](int number, int gpu) {
    NicSpec n;
    n.name = fmt::format("mlx5_{}", number);
    n.guid = fmt::format("5eed:0000:0000:02{:02x}", number);
    n.link_layer = "InfiniBand";
    n.lid = 0x40 + number;
    n.netdev = fmt::format("ibp{}s0", int(*parse_int(std::string("0x") + buses[gpu])) + 1);
    n.mac = fmt::format("02:00:5e:00:02:{:02x}", number);
    n.mtu = 4092;
    m.nic(folder(gpu, 1), next_bus(buses[gpu], 1) + ":00.0", gpu / 4, n);
    int label = int(m.nics.size()) - 1;
    m.gpu_nic[{gpu, label}] = "PIX";
  };
  NicSpec management;
  management.name = "mlx5_0";
  management.hca_type = "MT4125";
  management.board = "MT_0000000359";
  management.firmware = "22.43.2026";
  management.guid = "5eed:0000:0000:0200";
  management.rate = "100 Gb/sec (2X HDR)";
  management.netdev = "ens1f0np0";
  management.mac = "02:00:5e:00:02:00";
  management.ip = "198.18.0.21/24";
  management.mtu = 1500;
  m.nic(m.under("pci0000:01", {"0000:01:02.0"}, 0), "0000:04:00.0", 0, management);
  for (int g = 0; g < 4; ++g) ib(g + 1, g);
  NicSpec storage = management;
  storage.name = "mlx5_5";
  storage.hca_type = "MT4129";
  storage.board = "MT_0000000834";
  storage.firmware = "28.43.2026";
  storage.guid = "5eed:0000:0000:0205";
  storage.link_layer = "InfiniBand";
  storage.rate = "200 Gb/sec (2X NDR)";
  storage.netdev = "ibp116s0";
  storage.mac = "02:00:5e:00:02:05";
  storage.ip = "198.18.50.21/24";
  storage.mtu = 4092;
  storage.lid = 0x90;
  m.nic(m.under("pci0000:71", {"0000:71:01.0"}, 0), "0000:74:00.0", 0, storage);
  for (int g = 4; g < 8; ++g) ib(g + 2, g);
  m.modules(kNvidiaModules + kRdmaModules +
            std::vector<std::string>{"nvidia_peermem", "ib_ipoib", "mlx_compat"});
  m.data.file("/proc/net/route", "");
  for (const char* p : {"git", "curl", "tar", "python3.10", "sudo", "systemctl", "lspci", "kmod", "patch",
                        "ibv_devinfo", "ofed_info", "srun", "gcc", "make", "apt-get"})
    m.program(std::string("/usr/bin/") + p);
  m.program("/usr/sbin/ibstat");
  m.program("/usr/sbin/update-initramfs");
  m.data.link("/usr/bin/python3", "python3.10");
  m.data.link("/usr/sbin/modprobe", "../bin/kmod");
  m.data.directory("/usr/lib/python3.10");
  m.data.directory("/usr/lib/python3/dist-packages");
  m.data.probe("git-version", "git version 2.34.1\n");
  m.data.probe("libc", "glibc 2.35\n");
  m.data.probe("ofed_info", "MLNX_OFED_LINUX-24.10-3.2.5.0:\n");
  std::string verbs;
  for (const auto& name : m.nics)
    verbs += fmt::format(
        "hca_id:\t{}\n\ttransport:\t\t\tInfiniBand "
        "(0)\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE "
        "(4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t{}\n\t\t\tlink_layer:\t\t{}\n\n",
        name, name == "mlx5_0" ? "1024 (3)" : "4096 (5)", name == "mlx5_0" ? "Ethernet" : "InfiniBand");
  m.data.probe("ibv_devinfo", verbs);
  for (auto [p, v] : {std::pair("nvidia-driver-570-server-open", "570.172.08-0ubuntu0.22.04.1"),
                      {"nvidia-fabricmanager-570", "570.172.08-0ubuntu0.22.04.1"},
                      {"mlnx-ofed-kernel-dkms", "24.10.OFED.24.10.3.2.5.1-1"},
                      {"rdma-core", "2410mlnx54-1.2410325"},
                      {"ibverbs-utils", "2410mlnx54-1.2410325"},
                      {"infiniband-diags", "2410mlnx54-1.2410325"},
                      {"perftest", "24.10.0-0.65.g9093bae.2410325"},
                      {"cuda-toolkit-12-8", "12.8.1-1"},
                      {"initramfs-tools", "0.140ubuntu13.5"},
                      {"python3", "3.10.6-1~22.04.1"},
                      {"git", "1:2.34.1-1ubuntu1.15"}})
    m.package(p, v);
  m.service("nvidia-fabricmanager.service", "loaded", "active");
  m.service("nvidia-imex.service", "not-found", "inactive");
  m.service("nvidia-persistenced.service", "loaded", "active");
  m.cuda_toolkit("/usr/local/cuda-12.8", "12.8.1", "12.8.93");
  m.data.link("/usr/local/cuda", "/usr/local/cuda-12.8");
  m.data.file("/etc/modprobe.d/nvidia.conf", "options nvidia NVreg_EnableStreamMemOPs=1\n");
  m.data.probe("initramfs", ".\nusr/bin/busybox\nusr/lib/modules/" + kernel +
                                "/kernel/drivers/nvme/host/nvme.ko\netc/modprobe.d/blacklist.conf\n");
  m.data.file("/etc/security/limits.d/rdma.conf", "* soft memlock unlimited\n* hard memlock unlimited\n");
  m.data.file("/etc/apt/sources.list",
              "deb http://archive.ubuntu.com/ubuntu jammy main restricted universe\n");
  for (const char* p : {"/", "/opt", "/tmp", "/var/tmp", "/home/ubuntu"})
    m.disk(p, 1900 * kGB, 1200 * kGB, "xfs", std::string(p) != "/" && std::string(p) != "/opt");
  m.disk("/dev/shm", 1007 * kGiB, 1007 * kGiB, "tmpfs");
  m.user(1000, "/home/ubuntu", "unlimited", kNone);
  SnapshotData d = m.finish();
  d.file("/proc/net/route", *d.nodes["/proc/net/route"].content +
                                "ens1f0np0\t00000000\t010012C6\t0003\t0\t0\t100\t00000000\t0\t0\t0\n");
  return d;
}

SnapshotData laptop() {
  Machine m("laptop", "6.1.0-40-amd64");
  m.os_release("debian", "12", "bookworm", "Debian GNU/Linux 12 (bookworm)");
  m.cpu("13th Gen Intel(R) Core(TM) i7-1360P", 16, 1, false, 31ull << 30);
  m.dmi("LENOVO", "21HDCTO1WW");
  PciSpec graphics;
  graphics.vendor = kVendorIntel;
  graphics.device = 0xa7a0;
  graphics.device_class = 0x030000;
  graphics.driver = "i915";
  m.pci(m.under("pci0000:00", {}, -1), "0000:00:02.0", graphics);
  m.ethernet(m.under("pci0000:00", {}, -1), "0000:00:14.3", kVendorIntel, 0x51f1, "iwlwifi", -1, "wlp0s20f3",
             "02:00:5e:00:03:01", "198.18.200.5/24", 1500, true);
  m.modules({"iwlwifi", "i915", "snd_hda_intel"});
  m.data.link("/lib/modules/6.1.0-40-amd64/build", "/usr/src/linux-headers-6.1.0-40-amd64");
  m.data.nodes.erase("/lib/modules/6.1.0-40-amd64/build");
  for (const char* p : {"git", "curl", "tar", "python3.11", "sudo", "systemctl", "lspci", "kmod", "cmake",
                        "ninja", "g++", "make", "apt-get"})
    m.program(std::string("/usr/bin/") + p);
  m.data.link("/usr/bin/python3", "python3.11");
  m.program("/usr/sbin/update-initramfs");
  m.data.probe("libc", "glibc 2.36\n");
  m.data.probe("git-version", "git version 2.39.5\n");
  m.data.probe("cmake-version", "cmake version 3.25.1\n");
  m.data.probe("ninja-version", "1.11.1\n");
  m.data.probe("gcc-version", "12.2.0\n");
  m.data.file("/usr/lib/python3.11/EXTERNALLY-MANAGED", "[externally-managed]\n");
  m.data.directory("/usr/lib/python3/dist-packages");
  m.service("nvidia-fabricmanager.service", "not-found", "inactive");
  m.service("nvidia-imex.service", "not-found", "inactive");
  m.service("nvidia-persistenced.service", "not-found", "inactive");
  for (auto [p, v] : {std::pair("git", "1:2.39.5-0+deb12u2"),
                      {"cmake", "3.25.1-1"},
                      {"ninja-build", "1.11.1-2~deb12u1"},
                      {"g++", "4:12.2.0-3"},
                      {"python3", "3.11.2-1+b1"},
                      {"initramfs-tools", "0.142+deb12u3"},
                      {"kmod", "30+20221128-1"}})
    m.package(p, v);
  m.data.file("/etc/apt/sources.list", "deb http://debian.example/debian bookworm main\n");
  for (const char* p : {"/", "/opt", "/tmp", "/var/tmp", "/home/ubuntu"})
    m.disk(p, 490 * kGB, 120 * kGB, "ext4", std::string(p) != "/" && std::string(p) != "/opt");
  m.disk("/dev/shm", 16 * kGiB, 16 * kGiB, "tmpfs");
  m.user(1000, "/home/ubuntu", "4118642688", kNone);
  return m.finish();
}

const std::vector<NamedMachine>& machines() {
  static const std::vector<NamedMachine> table = {{"gcp-a4-fresh", gcp_a4_fresh},
                                                  {"gcp-a4-done", gcp_a4_done},
                                                  {"gke-a4-pod", gke_a4_pod},
                                                  {"h100-ib", h100_ib},
                                                  {"laptop", laptop}};
  return table;
}

}  // namespace ep::test
