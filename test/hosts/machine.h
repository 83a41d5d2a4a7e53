// Builds a whole invented machine as a snapshot tree: what Linux would show in /sys, /proc, /etc and /dev,
// and what the tools would print. Samples and fixtures are made of it. Addresses are documentation ranges,
// GUIDs contain 5eed.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "host/snapshot.h"

namespace ep::test {

struct PciSpec {
  int vendor = 0, device = 0, device_class = 0;
  int subsystem_vendor = 0, subsystem_device = 0;
  std::string driver;
  int numa = -1;
  std::string speed = "32.0 GT/s PCIe", speed_max = "32.0 GT/s PCIe";
  int width = 16, width_max = 16;
};

struct NicSpec {
  std::string name;  ///< rocep145s0, mlx5_0
  std::string hca_type = "MT4129", board = "MT_0000000838", firmware = "28.43.2026";
  std::string guid;  ///< "5eed:0000:0000:0100"
  std::string link_layer = "Ethernet", rate = "400 Gb/sec (4X NDR)";
  std::string state = "4: ACTIVE", phys = "5: LinkUp";
  std::string netdev, mac, ip;  ///< ip with prefix length; empty: none
  int mtu = 8896, lid = 0;
  bool uverbs = true;
  std::string vpd;
};

class Machine {
 public:
  Machine(std::string hostname, std::string kernel);
  SnapshotData data;

  /// Chain of bridges below a host bridge: under("pci0000:8c", {"0000:8c:01.0", ...}) makes them and returns
  /// their folder.
  std::string under(const std::string& host_bridge, const std::vector<std::string>& bridges, int numa);
  /// A function in a folder; returns its own folder.
  std::string pci(const std::string& folder, const std::string& address, const PciSpec& spec);
  void gpu(const std::string& folder, const std::string& address, int device, int numa,
           const std::string& name);
  void nic(const std::string& folder, const std::string& address, int numa, const NicSpec& spec);
  /// A network device without RDMA.
  void ethernet(const std::string& folder, const std::string& address, int vendor, int device,
                const std::string& driver, int numa, const std::string& name, const std::string& mac,
                const std::string& ip, int mtu, bool default_route);

  void os_release(const std::string& id, const std::string& version, const std::string& codename,
                  const std::string& pretty);
  void cpu(const std::string& model, int processors, int nodes, bool virtual_machine, uint64_t memory_bytes);
  void dmi(const std::string& vendor, const std::string& product);
  void modules(const std::vector<std::string>& names);
  void nvidia_driver(const std::string& version, bool open, const std::string& registry_dwords,
                     int stream_memops);
  void program(const std::string& path);
  void package(const std::string& name, const std::string& version);
  void service(const std::string& unit, const std::string& load, const std::string& active);
  void wheel(const std::string& site, const std::string& name, const std::string& version);
  void device_node(const std::string& path);
  void cuda_toolkit(const std::string& root, const std::string& version, const std::string& nvcc);
  void disk(const std::string& path, uint64_t total, uint64_t free, const std::string& type,
            bool writable = true);
  void user(int uid, const std::string& home, const std::string& memlock, uint64_t capabilities,
            int seccomp = 0);

  /// Writes what is collected until the end: probes of dpkg, services, addresses, nvidia-smi; routes;
  /// modules.
  SnapshotData finish();

  struct GpuRow {
    std::string name, address, uuid;
    int numa;
  };
  std::string driver_version, cuda_version = "13.0", compute_capability = "10.0";
  int memory_mib = 183359, num_nvlinks = 18;
  double nvlink_gbps = 53.125;
  bool has_nvidia_smi = true, fabric = true;
  /// Link class between GPU and NIC by index, for `nvidia-smi topo -m`.
  std::map<std::pair<int, int>, std::string> gpu_nic, nic_nic;
  std::vector<GpuRow> gpus;
  std::vector<std::string> nics;  ///< names in the order of nvidia-smi's labels
  std::vector<int> nic_numa;

 private:
  void smi_probes();
  std::string matrix() const;
  std::string kernel_, packages_, services_, addresses_, routes_;
  int next_uverbs_ = 0, next_ifindex_ = 2;
};

}  // namespace ep::test
