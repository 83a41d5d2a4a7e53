#include "host/probes.h"

namespace ep {

namespace {
constexpr size_t kSmall = 64u << 10, kMiddle = 1u << 20, kLarge = 4u << 20;
constexpr double kQuick = 5;      // a local tool that reads files
constexpr double kDatabase = 20;  // the package database, on a host that is busy installing
constexpr double kVendor = 20;    // nvidia-smi initialises every GPU when no persistence daemon runs
}  // namespace

const std::vector<ProbeRow>& probe_table() {
  static const std::vector<ProbeRow> table = {
      {"uname", {"uname", "-m"}, kQuick, kSmall, "machine architecture"},
      {"libc", {"getconf", "GNU_LIBC_VERSION"}, kQuick, kSmall, "C library version"},
      {"systemctl",
       {"systemctl", "show", "--property=Id,LoadState,ActiveState", "nvidia-fabricmanager.service",
        "nvidia-imex.service", "nvidia-persistenced.service"},
       kQuick,
       kSmall,
       "state of NVIDIA's services"},
      {"systemctl-limits",
       {"systemctl", "show", "--property=Id,ActiveState,LimitMEMLOCK", "containerd.service", "docker.service",
        "crio.service", "kubelet.service", "slurmd.service"},
       kQuick,
       kSmall,
       "limits that services hand on to containers and jobs"},
      {"dpkg",
       {"dpkg-query",
        "-W",
        "-f=${Package}\\t${Version}\\t${Status}\\n",
        "nvidia-*",
        "libnvidia-*",
        "cuda-*",
        "libcuda*",
        "libnccl*",
        "libnvshmem*",
        "nvshmem*",
        "doca-*",
        "mlnx-*",
        "ofed-*",
        "mft",
        "rdma-core",
        "ibverbs-*",
        "libibverbs*",
        "librdmacm*",
        "infiniband-diags",
        "perftest",
        "gdrdrv*",
        "libgdrapi*",
        "gdrcopy*",
        "nvlsm",
        "datacenter-gpu-manager*",
        "google-compute-engine*",
        "efa*",
        "libfabric*",
        "openmpi-bin",
        "cmake",
        "ninja-build",
        "git",
        "g++",
        "build-essential",
        "dkms",
        "python3",
        "python3-dev",
        "python3-venv",
        "python3-pip",
        "linux-headers-*",
        "nvidia",
        "libhwloc15",
        "devscripts",
        "pciutils",
        "kmod",
        "initramfs-tools",
        "dracut"},
       kDatabase,
       kMiddle,
       "installed packages of the stack (Debian, Ubuntu)"},
      {"rpm",
       {"rpm", "-qa", "--qf", "%{NAME}\\t%{VERSION}-%{RELEASE}\\tinstall ok installed\\n"},
       kQuick,
       kMiddle,
       "installed packages (RPM)"},
      {"ip-addr", {"ip", "-o", "addr", "show"}, kQuick, kMiddle, "addresses of network devices"},
      {"rdma-link", {"rdma", "link", "show"}, kQuick, kMiddle, "RDMA links and their network devices"},
      {"ibv_devinfo", {"ibv_devinfo", "-v"}, kQuick, kLarge, "RDMA devices as verbs sees them, active MTU"},
      {"ofed_info", {"ofed_info", "-s"}, kQuick, kSmall, "vendor RDMA stack version"},
      {"initramfs",
       {"lsinitramfs", "/boot/initrd.img-{kernel}"},
       15,
       kLarge,
       "files in the initial ram disk"},
      {"git-version", {"git", "--version"}, kQuick, kSmall, "git"},
      {"cmake-version", {"cmake", "--version"}, kQuick, kSmall, "CMake"},
      {"ninja-version", {"ninja", "--version"}, kQuick, kSmall, "Ninja"},
      {"gcc-version", {"g++", "-dumpfullversion"}, kQuick, kSmall, "C++ compiler"},
      {"uv-version", {"uv", "--version"}, kQuick, kSmall, "uv"},
      {"nvidia-smi", {"nvidia-smi"}, kVendor, kMiddle, "driver and CUDA version, processes"},
      {"nvidia-smi-gpus",
       {"nvidia-smi",
        "--query-gpu=index,name,uuid,pci.bus_id,memory.total,driver_version,compute_cap,mig.mode.current,"
        "ecc.errors.uncorrected.volatile.total",
        "--format=csv,noheader,nounits"},
       kVendor,
       kMiddle,
       "the GPUs"},
      {"nvidia-smi-q", {"nvidia-smi", "-q"}, kVendor, kLarge, "GPU details, fabric state"},
      {"nvidia-smi-topo",
       {"nvidia-smi", "topo", "-m"},
       kVendor,
       kMiddle,
       "link classes between GPUs and NICs"},
      {"nvidia-smi-p2p-r", {"nvidia-smi", "topo", "-p2p", "r"}, kVendor, kMiddle, "peer reads"},
      {"nvidia-smi-p2p-w", {"nvidia-smi", "topo", "-p2p", "w"}, kVendor, kMiddle, "peer writes"},
      {"nvidia-smi-nvlink", {"nvidia-smi", "nvlink", "-s"}, kVendor, kMiddle, "NVLink state and speed"},
      {"nvidia-smi-apps",
       {"nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits"},
       kVendor,
       kMiddle,
       "compute processes"},
  };
  return table;
}

namespace {
std::atomic<const std::atomic<bool>*> g_interrupt{nullptr};
}
void set_probe_interrupt(const std::atomic<bool>* flag) {
  g_interrupt = flag;
}
const std::atomic<bool>* probe_interrupt() {
  return g_interrupt;
}

const ProbeRow* find_probe(std::string_view name) {
  for (const auto& row : probe_table())
    if (name == row.name) return &row;
  return nullptr;
}

}  // namespace ep
