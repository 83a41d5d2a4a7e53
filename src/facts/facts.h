// The one description of a host: typed facts, one struct an area. Pure values: src/facts/*.cpp fill them from
// a Host, everything downstream (lanes, plan, topology, checks, doctor) reads only these. Rows follow the
// host checks of NVIDIA, RDMA and DeepEP documentation; each field's comment names unit and place. This
// header is longer than others on purpose: it is the vocabulary of the product (see data/VOCABULARY.md).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/finding.h"
#include "facts/fact.h"

namespace ep {

class Host;

struct OsFacts {
  Fact<std::string> id;          ///< os-release ID: ubuntu, debian, cos, rhel ...
  Fact<std::string> version_id;  ///< "24.04"
  Fact<std::string> pretty_name;
  Fact<std::string> codename;        ///< "noble"
  Fact<std::string> architecture;    ///< uname -m: x86_64, aarch64
  Fact<std::string> kernel_release;  ///< uname -r
  Fact<std::string> libc;            ///< glibc version
  Fact<std::string> boot_id;         ///< changes at every boot
  Fact<std::string> hostname;
  Fact<std::string> init;  ///< systemd, other
};

struct CpuFacts {
  Fact<std::string> model;
  Fact<int> num_online;
  Fact<int> num_allowed;  ///< of this process (cpuset)
  Fact<int> num_numa_nodes;
  Fact<uint64_t> memory_bytes;
  Fact<uint64_t> memory_available_bytes;
};

/// One function on the PCI bus, from /sys/bus/pci/devices. `path` is the chain of bridges below /sys/devices,
/// host bridge ("pci0000:16") first, without the device itself.
struct PciDevice {
  std::string address;  ///< 0000:17:00.0, lower case
  Fact<int> vendor, device, subsystem_vendor, subsystem_device, device_class;
  Fact<std::string> driver;
  Fact<int> numa_node;  ///< -1: firmware does not say
  std::vector<std::string> path;
  Fact<int> iommu_group;
  Fact<std::string> iommu_group_type;  ///< DMA, identity ...
  Fact<double> link_speed_gts, link_speed_max_gts;
  Fact<int> link_width, link_width_max;
  Fact<bool> is_vf;             ///< has a physfn link
  Fact<std::string> port_type;  ///< endpoint, root, upstream, downstream, other; this and below need root
  Fact<bool> acs_redirect;      ///< bridges: peer-to-peer requests or completions go up to the root
  Fact<bool> relaxed_ordering;  ///< allowed by Device Control
  Fact<int> max_read_request;   ///< bytes
  Fact<std::string> vpd;        ///< readable part of vital product data: part number and name
};

struct Gpu {
  int index = -1;          ///< as nvidia-smi numbers them (PCI order)
  std::string address;     ///< PCI address; empty when a paste does not show it
  Fact<std::string> name;  ///< "NVIDIA H200"
  Fact<std::string> uuid;
  Fact<int> compute_capability;  ///< 90 for 9.0, 100 for 10.0
  Fact<uint64_t> memory_bytes;
  Fact<int> numa_node;
  Fact<std::string> mig_mode;         ///< Enabled, Disabled
  Fact<std::string> ecc_uncorrected;  ///< count as text
  Fact<bool> in_use;                  ///< compute processes present
  Fact<int> nvlinks_up, nvlinks_down;
  Fact<double> nvlink_gbps;  ///< GB/s a link and direction, as nvidia-smi nvlink -s
  Fact<std::string> fabric_state, fabric_status, fabric_clique, fabric_cluster;
  Fact<bool> remap_pending, remap_failed;  ///< rows of memory, nvidia-smi -q "Remapped Rows"
  Fact<std::string> recovery_action;       ///< None, Reset, Reboot, Drain P2P, Drain and Reset
};

/// One `NVreg_*` value with both lives: what the loaded module says, what modprobe files would give at next
/// load.
struct ModuleOption {
  std::string name;  ///< NVreg_RegistryDwords
  Fact<std::string>
      live;  ///< /proc/driver/nvidia/params (name without NVreg_) or /sys/module/nvidia/parameters
  Fact<std::string> pending;        ///< last `options nvidia` that sets it, by modprobe's own reading order
  std::vector<std::string> set_in;  ///< path:line of every line that sets it, in reading order
  std::vector<std::string> set_to;  ///< the values of those lines
};

struct NvidiaDriver {
  Fact<std::string> version;  ///< "580.95.05"
  Fact<bool> open_kernel_module;
  Fact<std::string> cuda_version;  ///< highest CUDA that the driver serves, from nvidia-smi
  std::vector<ModuleOption>
      options;  ///< RegistryDwords, RegistryDwordsPerDevice, EnableStreamMemOPs, and every other set one
  /// Parsed RegistryDwords, key to number, of the live value ("PeerMappingOverride=0x1;" gives 1).
  std::map<std::string, long long> registry_dwords;
  Fact<std::string> initramfs_tool;         ///< update-initramfs, dracut, mkinitcpio, none
  Fact<bool> initramfs_has_nvidia_options;  ///< it holds a modprobe file that sets them
  Fact<bool> initramfs_has_nvidia_module;   ///< only then do its options decide at boot
  Fact<std::string> fabric_manager;         ///< systemctl state: active, inactive, not-found
  Fact<std::string> fabric_manager_version;
  Fact<std::string> imex;      ///< systemctl state
  Fact<bool> imex_channel;     ///< /dev/nvidia-caps-imex-channels/channel0
  Fact<bool> library_matches;  ///< nvidia-smi answers; false: it says "Driver/library version mismatch"
  std::vector<std::string> stray_options;  ///< "path:line: text" of lines in modprobe files that set NVreg_*
                                           ///< but do not begin with `options nvidia`
};

struct KernelModule {
  std::string name;
  Fact<std::string> version;
};

/// One build of a module by dkms; `kernel` and `arch` are empty while it is only added.
struct DkmsModule {
  std::string name, version, kernel, arch;
  Fact<std::string> state;  ///< added, built, installed, broken
};

struct KernelFacts {
  std::vector<KernelModule> modules;  ///< those of the stack that are loaded: nvidia*, nouveau, mlx5_*, ib_*,
                                      ///< rdma_*, gdrdrv, nv_peer_mem, efa ...
  Fact<bool> modules_readable;        ///< /proc/modules could be read: only then "not loaded" means something
  std::vector<DkmsModule> dkms;       ///< in listed order
  Fact<bool> dkms_readable;           ///< /var/lib/dkms is there; absent without dkms
  Fact<bool> headers;                 ///< /lib/modules/$(uname -r)/build
  Fact<std::string> cmdline;
  Fact<bool> iommu_enabled;  ///< any entry below /sys/class/iommu
  Fact<bool>
      acs_redirect;  ///< at a switch between GPUs and NICs (facts/pci_config.h); unreadable without root
  std::vector<std::string> acs_bridges;            ///< addresses of the ports that redirect
  Fact<std::string> dmabuf_config, p2pdma_config;  ///< y, n, m from the kernel's configuration
  Fact<int> ptrace_scope;
  Fact<bool> secure_boot;
  Fact<std::string> lockdown;  ///< none, integrity, confidentiality
  Fact<bool> sig_enforce;
  Fact<bool> gdrdrv_device;  ///< /dev/gdrdrv opens read-write
  const KernelModule* module(const std::string& name) const;
};

struct LimitFacts {
  Fact<std::string> memlock;  ///< bytes or "unlimited" (soft limit)
  Fact<std::string> memlock_hard;
  Fact<uint64_t> nofile, nofile_hard;
  Fact<uint64_t> shm_bytes, shm_free_bytes;
  std::vector<std::string> memlock_set_in;  ///< path:line of limits.d / systemd lines about it
  std::vector<std::string> nofile_set_in;   ///< the same about the number of open files
  /// What active services hand on to what they start: containerd, docker, kubelet, slurmd ...
  struct Service {
    std::string unit;
    Fact<std::string> memlock;  ///< bytes or "unlimited"
  };
  std::vector<Service> services;
};

struct GidEntry {
  int index = 0;
  std::string gid;         ///< eight groups, lower case
  Fact<std::string> type;  ///< "RoCE v2", "IB/RoCE v1"
  Fact<std::string> netdev;
};

struct RdmaPort {
  int number = 1;
  Fact<std::string> state;       ///< ACTIVE, DOWN, INIT ...
  Fact<std::string> phys_state;  ///< LinkUp, Polling, Disabled ...
  Fact<double> rate_gbps;        ///< gigabits a second
  Fact<std::string> link_layer;  ///< InfiniBand, Ethernet
  Fact<int> active_mtu;          ///< bytes
  std::vector<GidEntry> gids;    ///< only entries that are not zero
  Fact<int> lid;
  std::map<std::string, Fact<uint64_t>>
      counters;  ///< port and hw counters by file name; port_*_data in 4-byte words
};

struct RdmaDevice {
  std::string name;            ///< mlx5_0, rocep145s0
  std::string address;         ///< PCI address, empty when virtual or not shown
  Fact<std::string> driver;    ///< mlx5_core, efa, bnxt_en, rdma_rxe ...
  Fact<std::string> hca_type;  ///< MT4129
  Fact<std::string> board_id, firmware, node_guid;
  Fact<int> numa_node;
  Fact<bool> has_uverbs;  ///< a /dev/infiniband/uverbsN exists for it here
  Fact<bool> is_vf;
  Fact<int> traffic_class;  ///< port 1, vendor drivers only
  std::vector<std::string> netdevs;
  std::vector<RdmaPort> ports;
};

struct Netdev {
  std::string name;
  std::string address;  ///< PCI address, empty when virtual
  Fact<std::string> mac, operstate, driver;
  Fact<int> mtu;
  Fact<int> speed_mbps;
  Fact<std::string> master;        ///< bond or bridge it is enslaved to
  std::vector<std::string> lower;  ///< members, for a bond
  std::vector<std::string> ips;    ///< "198.18.0.3/24"
  Fact<bool> default_route;
};

struct CudaToolkit {
  std::string root;  ///< /usr/local/cuda-12.9
  Fact<std::string> version;
  Fact<std::string> nvcc_version;
  Fact<bool> has_nvcc, has_cuobjdump, has_cccl, has_stub;
};

struct PythonPackage {
  std::string name;  ///< normalised by PEP 503
  std::string version;
  std::string location;  ///< site-packages folder
};

struct PythonEnvironment {
  std::string root;  ///< prefix
  std::string interpreter;
  Fact<std::string> version;
  bool is_virtual = false;  ///< has pyvenv.cfg
  bool externally_managed = false;
  std::vector<std::string> site_packages;
  std::vector<PythonPackage>
      packages;         ///< of the stack's interest: torch, numpy, nvidia-*, deep_ep, vllm, sglang, uv ...
  Fact<bool> writable;  ///< its first site-packages folder, by this user
};

struct Tool {
  std::string name;
  Fact<std::string> path;
  Fact<std::string> version;
};

struct Package {
  std::string name, version, state;  ///< dpkg: "install ok installed"
};

struct AptSource {
  std::string path;  ///< file:line
  std::string uri;
  Fact<std::string> signed_by;
};

struct ContainerFacts {
  Fact<std::string> runtime;  ///< none, docker, kubernetes, podman, enroot, lxc, unknown
  Fact<bool> privileged;
  Fact<uint64_t> cap_effective;
  Fact<int> seccomp;
  Fact<bool> host_network, host_pid;
  Fact<bool> host_mount;             ///< /host holds a root file system
  std::vector<std::string> devices;  ///< /dev/nvidia*, /dev/infiniband/*, /dev/gdrdrv, /dev/kfd that exist
};

struct PlatformFacts {
  Fact<std::string> vendor, product;  ///< DMI sys_vendor, product_name
  Fact<std::string> cloud;            ///< gcp, aws, azure, oci ... from DMI; "none" on bare metal
  Fact<std::string> machine_type;     ///< a4-highgpu-8g, when known
  Fact<bool> virtual_machine;
  Fact<std::string> gib_dir;  ///< gIB folder as this host (or pod) sees it, when it is there and not empty
  std::vector<std::string> gib_files;  ///< what its configs/ and lib64/ hold: "configs/guest_config.txtpb"
};

struct DiskFacts {
  std::string path;  ///< prefix candidates: /, /opt, /tmp, home
  Fact<uint64_t> free_bytes;
  Fact<bool> writable;
};

/// A component that stands in a folder of its own below a prefix (/opt/epready/nvshmem, the runbook's
/// /opt/deepep/nvshmem): not a distribution package and not a wheel. Read by facts/parts.cpp.
struct InstalledPart {
  std::string name;           ///< folder name: nvshmem, gdrcopy, deepep, nccl, env
  std::string root;           ///< /opt/epready/nvshmem
  Fact<std::string> version;  ///< from the stamp, else from the part's own headers
  /// Lines "key=value" of ROOT/.epready-part, which epready writes when it publishes a build (commit, arch,
  /// options); without a stamp only what files prove: "ibgda" = yes|no by the transport library.
  std::map<std::string, std::string> stamp;
  bool stamped = false;  ///< ROOT/.epready-part was there and readable
};

/// Sources of a component that somebody builds by hand (/opt/deepep/nvshmem-src, ~/DeepEP). Read by
/// facts/sources.cpp.
struct SourceTree {
  std::string name;  ///< deepep, nvshmem, gdrcopy
  std::string root;
  std::vector<std::string> locked;           ///< root and folders of its build that this user may not write
  std::map<std::string, std::string> cmake;  ///< of build/CMakeCache.txt: GDRCOPY_INCLUDE, NVSHMEM_* ...
  bool has_cache = false;
};

struct UserFacts {
  Fact<int> uid;
  Fact<bool> is_root;
  Fact<bool> has_sudo;  ///< the program is there; whether this user may is not asked
};

/// `nvidia-smi topo -m` and its kin: labels and link classes as printed; filled from the probe or a paste.
struct LinkMatrix {
  std::vector<std::string> labels;              ///< GPU0.., NIC0.. or mlx5_0..
  std::vector<std::vector<std::string>> cells;  ///< square by labels; empty string where the text has none
  std::map<std::string, std::string> legend;    ///< NIC0 -> mlx5_0
  std::map<std::string, std::string> cpu_affinity, numa_affinity;  ///< by label, as printed
  bool has_legend = false, cut = false, old_format = false;
  std::map<std::string, std::string> gpu_numa;  ///< "GPU NUMA ID" by label, as printed
  std::vector<std::string> rows;                ///< labels whose row was in the text and could be read
  bool pcie_only = false;                       ///< `-mp`: PCIe paths only, says nothing about NVLink
  std::string source;                           ///< piece it was read from
};

/// What a paste held besides facts: which pieces were recognised, what was left over, and what reading them
/// showed (damage, contradictions, known log lines).
struct PasteFacts {
  struct Piece {
    std::string kind, source;
    int line = 0;
  };
  std::vector<Piece> pieces;
  int unread_lines = 0;           ///< not blank, and no reader wanted them
  std::vector<Piece> unread;      ///< the first of them: `kind` is the line itself
  std::vector<Finding> findings;  ///< by the codes of the topology
  bool static_xml = false;        ///< an NCCL topology file written by hand: distances are groups, not hops
  bool verbs_list_complete = false;  ///< ibv_devinfo or ibstat listed all devices that this user can open
  std::vector<std::string> verbs_listed;
  Fact<bool> verbs_nodes;          ///< /dev/infiniband/uverbs* was listed (true), or shown to be missing
  int num_verbs_nodes = 0;         ///< how many were listed
  bool gid_list_complete = false;  ///< show_gids ran to its closing line
  bool labels_guessed = false;     ///< no legend: names were joined to labels by order
};

struct Facts {
  std::string host_name;  ///< Host::name()
  std::string host_kind;  ///< live, snapshot, paste
  OsFacts os;
  CpuFacts cpu;
  std::vector<PciDevice> pci;  ///< GPUs, NICs, NVSwitches and the bridges between
  std::vector<Gpu> gpus;
  Fact<int> num_amd_gpus;
  NvidiaDriver driver;
  KernelFacts kernel;
  LimitFacts limits;
  std::vector<RdmaDevice> rdma;
  Fact<bool> rdma_readable;        ///< /sys/class/infiniband could be listed
  Fact<std::string> ofed_version;  ///< ofed_info -s; absent with the kernel's own drivers
  Fact<bool> has_mlx5dv;           ///< infiniband/mlx5dv.h and an unversioned libmlx5.so: IBGDA can be built
  std::vector<Netdev> netdevs;
  std::vector<std::string> interfaces;  ///< all names in /sys/class/net, lo and tunnels too
  Fact<bool> interfaces_readable;
  std::vector<LinkMatrix> matrices;        ///< usually one
  PasteFacts paste;                        ///< empty for live hosts and snapshots
  std::vector<std::string> p2p_bad_pairs;  ///< "0-3 read: CNS", from topo -p2p
  Fact<bool> p2p_known;
  std::vector<CudaToolkit> cuda;
  Fact<std::string> cuda_home_link;  ///< where the link /usr/local/cuda ends
  std::vector<PythonEnvironment> python;
  std::vector<Tool> tools;
  std::vector<Package> packages;  ///< of interest only
  Fact<bool> packages_readable;
  std::vector<AptSource> apt_sources;
  std::map<std::string, std::string>
      environment;                     ///< variables of interest (NCCL_*, NVSHMEM_*, EP_*, CUDA_*, ...)
  std::vector<std::string> nccl_conf;  ///< "path:line: NAME=value" of /etc/nccl.conf and ~/.nccl.conf
  std::vector<std::string> written_environment;  ///< the same of /etc/environment, profile.d and unit files
  /// Headers and libraries that variables name: "GDRCOPY_HOME" -> whether gdrapi.h is below it, and its kin.
  std::map<std::string, Fact<bool>> named_paths;
  ContainerFacts container;
  PlatformFacts platform;
  std::vector<DiskFacts> disks;
  std::vector<InstalledPart> parts;  ///< sorted by root
  std::vector<SourceTree> sources;   ///< sorted by root
  UserFacts user;

  const Tool* tool(const std::string& name) const;
  const Package* package(const std::string& name) const;
};

/// Reads everything; areas run side by side where they wait for probes. Never fails: what could not be read
/// is a fact that says so.
/// `prefix`: a folder of epready besides the usual ones (/opt/epready, EPREADY_PREFIX,
/// ~/.local/share/epready), for --prefix.
Facts read_facts(const Host& host, const std::string& prefix = {});

}  // namespace ep
