#include "machine.h"

#include <fmt/format.h>

#include "base/text.h"
#include "facts/pci_ids.h"

namespace ep::test {

using Type = FileInfo::Type;

namespace {
std::string up_to_sys(const std::string& from_folder, const std::string& target) {
  // "/sys/bus/pci/devices" -> "../../../devices/..."
  std::string out;
  for (size_t i = 0; i + 1 < split(from_folder, '/').size() - 1; ++i) out += "../";
  return out + target.substr(std::string("/sys/").size());
}
}  // namespace

Machine::Machine(std::string hostname, std::string kernel) : kernel_(std::move(kernel)) {
  data.complete = true;
  data.kind = "invented";
  data.tool = "epready";
  data.time = "2026-11-30T00:00:00Z";
  data.add("/", Type::directory);
  data.file("/proc/sys/kernel/osrelease", kernel_ + "\n");
  data.file("/proc/sys/kernel/hostname", hostname + "\n");
  data.file("/proc/sys/kernel/arch", "x86_64\n");
  data.file("/proc/sys/kernel/cap_last_cap", "40\n");
  data.file("/proc/sys/kernel/random/boot_id", "5eed0000-0000-4000-8000-000000000001\n");
  data.file("/proc/sys/kernel/yama/ptrace_scope", "1\n");
  data.file("/proc/2/comm", "kthreadd\n");
  data.file("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-1.scope\n");
  data.file("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz-" + kernel_ + " root=/dev/sda1 ro console=ttyS0\n");
  data.file("/boot/config-" + kernel_, "CONFIG_DMA_SHARED_BUFFER=y\nCONFIG_PCI_P2PDMA=y\n");
  data.directory("/lib/modules/" + kernel_ + "/build");
  data.directory("/run/systemd/system");
  data.directory("/sys/class/iommu");
  data.directory("/sys/firmware/acpi");
  data.directory("/usr/local");
  data.directory("/opt");
  data.file("/sys/module/module/parameters/sig_enforce", "N\n");
  data.file("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
  routes_ = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n";
  addresses_ = "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever\n";
  data.probe("libc", "glibc 2.39\n");
  data.environment = {{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                      {"LANG", "C.UTF-8"},
                      {"SHELL", "/bin/bash"}};
  data.link("/bin", "usr/bin");
  data.link("/sbin", "usr/sbin");
  data.link("/lib64", "usr/lib64");
}

std::string Machine::pci(const std::string& folder, const std::string& address, const PciSpec& s) {
  std::string dir = folder + "/" + address;
  auto hex = [&](const char* name, int value, int digits) {
    data.file(dir + "/" + name, fmt::format("0x{:0{}x}\n", value, digits));
  };
  hex("vendor", s.vendor, 4);
  hex("device", s.device, 4);
  hex("class", s.device_class, 6);
  hex("subsystem_vendor", s.subsystem_vendor, 4);
  hex("subsystem_device", s.subsystem_device, 4);
  data.file(dir + "/numa_node", fmt::format("{}\n", s.numa));
  data.file(dir + "/current_link_speed", s.speed + "\n");
  data.file(dir + "/max_link_speed", s.speed_max + "\n");
  data.file(dir + "/current_link_width", fmt::format("{}\n", s.width));
  data.file(dir + "/max_link_width", fmt::format("{}\n", s.width_max));
  if (!s.driver.empty()) {
    data.directory("/sys/bus/pci/drivers/" + s.driver);
    data.link(dir + "/driver", up_to_sys(dir, "/sys/bus/pci/drivers/" + s.driver));
  }
  data.link("/sys/bus/pci/devices/" + address, up_to_sys("/sys/bus/pci/devices", dir));
  return dir;
}

std::string Machine::under(const std::string& host_bridge, const std::vector<std::string>& bridges,
                           int numa) {
  std::string dir = "/sys/devices/" + host_bridge;
  for (const auto& b : bridges) {
    if (data.nodes.count(dir + "/" + b)) {
      dir += "/" + b;
      continue;
    }
    PciSpec s;
    s.vendor = 0x1000;  // Broadcom / LSI: the PEX switches of these boards
    s.device = 0xc030;
    s.device_class = 0x060400;
    s.driver = "pcieport";
    s.numa = numa;
    dir = pci(dir, b, s);
  }
  return dir;
}

void Machine::gpu(const std::string& folder, const std::string& address, int device, int numa,
                  const std::string& name) {
  PciSpec s;
  s.vendor = kVendorNvidia;
  s.device = device;
  s.device_class = 0x030200;
  s.subsystem_vendor = kVendorNvidia;
  s.subsystem_device = 0x1999;
  s.driver = driver_version.empty() ? "" : "nvidia";
  s.numa = numa;
  pci(folder, address, s);
  int index = int(gpus.size());
  std::string uuid = fmt::format("GPU-5eed0000-0000-4000-8000-00000000000{}", index);
  if (!driver_version.empty()) {
    data.file("/proc/driver/nvidia/gpus/" + address + "/information",
              fmt::format("Model: \t\t {}\nIRQ:   \t\t {}\nGPU UUID: \t {}\nVideo BIOS: \t "
                          "97.00.00.00.00\nBus Type: \t PCIe\n"
                          "DMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\nBus Location: \t {}\nDevice "
                          "Minor: \t {}\nGPU Excluded:\t No\n",
                          name, 300 + index, uuid, address, index));
    device_node(fmt::format("/dev/nvidia{}", index));
  }
  gpus.push_back({name, address, uuid, numa});
}

void Machine::nic(const std::string& folder, const std::string& address, int numa, const NicSpec& n) {
  PciSpec s;
  s.vendor = kVendorMellanox;
  s.device = n.hca_type == "MT4131" ? 0x1023 : n.hca_type == "MT4125" ? 0x101d : 0x1021;
  s.device_class = n.link_layer == "InfiniBand" ? 0x020700 : 0x020000;
  s.subsystem_vendor = kVendorMellanox;
  s.subsystem_device = 0x0041;
  s.driver = "mlx5_core";
  s.numa = numa;
  std::string dir = pci(folder, address, s);
  if (n.vpd.empty())
    data.add(dir + "/vpd", Type::file).no_read = Trouble{ErrorKind::unreadable, "EACCES (Permission denied)"};
  else
    data.file(dir + "/vpd", n.vpd);
  std::string ib = dir + "/infiniband/" + n.name, port = ib + "/ports/1";
  data.link("/sys/class/infiniband/" + n.name, up_to_sys("/sys/class/infiniband", ib));
  data.link(ib + "/device", "../../../" + address);
  data.file(ib + "/hca_type", n.hca_type + "\n");
  data.file(ib + "/board_id", n.board + "\n");
  data.file(ib + "/fw_ver", n.firmware + "\n");
  data.file(ib + "/node_guid", n.guid + "\n");
  data.file(port + "/state", n.state + "\n");
  data.file(port + "/phys_state", n.phys + "\n");
  data.file(port + "/rate", n.rate + "\n");
  data.file(port + "/link_layer", n.link_layer + "\n");
  data.file(port + "/lid", fmt::format("0x{:x}\n", n.lid));
  for (const char* c : {"port_xmit_data", "port_rcv_data", "port_xmit_wait", "port_xmit_discards",
                        "port_rcv_errors", "symbol_error", "link_downed"})
    data.file(port + "/counters/" + c, "0\n");
  for (const char* c :
       {"out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "np_cnp_sent", "rp_cnp_handled"})
    data.file(port + "/hw_counters/" + c, "0\n");
  auto gid = [&](int i, const std::string& g, const char* type, const std::string& ndev) {
    data.file(fmt::format("{}/gids/{}", port, i), g + "\n");
    if (type) data.file(fmt::format("{}/gid_attrs/types/{}", port, i), std::string(type) + "\n");
    if (type && !ndev.empty()) data.file(fmt::format("{}/gid_attrs/ndevs/{}", port, i), ndev + "\n");
  };
  const std::string zero = "0000:0000:0000:0000:0000:0000:0000:0000";
  if (n.link_layer == "InfiniBand") {
    gid(0, "fe80:0000:0000:0000:" + n.guid, "IB/RoCE v1", "");
    gid(1, zero, nullptr, "");
  } else {
    auto m = split(n.mac, ':');
    std::string local = fmt::format("fe80:0000:0000:0000:{:02x}{}:{}ff:fe{}:{}{}",
                                    *parse_int("0x" + std::string(m[0])) ^ 2, m[1], m[2], m[3], m[4], m[5]);
    gid(0, local, "IB/RoCE v1", n.netdev);
    gid(1, local, "RoCE v2", n.netdev);
    if (!n.ip.empty()) {
      auto o = split(std::string_view(n.ip).substr(0, n.ip.find('/')), '.');
      auto b = [&](int i) { return *parse_int(o[size_t(i)]); };
      std::string v4 =
          fmt::format("0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}", b(0), b(1), b(2), b(3));
      gid(2, v4, "IB/RoCE v1", n.netdev);
      gid(3, v4, "RoCE v2", n.netdev);
    }
    for (int i = n.ip.empty() ? 2 : 4; i < 8; ++i) gid(i, zero, nullptr, "");
  }
  if (n.uverbs) {
    std::string node = fmt::format("uverbs{}", next_uverbs_++);
    data.file("/sys/class/infiniband_verbs/" + node + "/ibdev", n.name + "\n");
    device_node("/dev/infiniband/" + node);
  }
  if (!n.netdev.empty()) {
    std::string net = dir + "/net/" + n.netdev;
    data.link("/sys/class/net/" + n.netdev, up_to_sys("/sys/class/net", net));
    data.link(net + "/device", "../../../" + address);
    data.file(net + "/address", n.mac + "\n");
    data.file(net + "/operstate", n.state == "4: ACTIVE" ? "up\n" : "down\n");
    data.file(net + "/mtu", fmt::format("{}\n", n.mtu));
    data.file(net + "/speed", std::string(split_ws(n.rate)[0]) + "000\n");
    if (!n.ip.empty())
      addresses_ +=
          fmt::format("{}: {}    inet {} scope global {}\\       valid_lft forever preferred_lft forever\n",
                      next_ifindex_, n.netdev, n.ip, n.netdev);
    ++next_ifindex_;
  }
  nics.push_back(n.name);
  nic_numa.push_back(numa);
}

void Machine::ethernet(const std::string& folder, const std::string& address, int vendor, int device,
                       const std::string& driver, int numa, const std::string& name, const std::string& mac,
                       const std::string& ip, int mtu, bool default_route) {
  PciSpec s;
  s.vendor = vendor;
  s.device = device;
  s.device_class = 0x020000;
  s.driver = driver;
  s.numa = numa;
  std::string dir = pci(folder, address, s), net = dir + "/net/" + name;
  data.link("/sys/class/net/" + name, up_to_sys("/sys/class/net", net));
  data.link(net + "/device", "../../../" + address);
  data.file(net + "/address", mac + "\n");
  data.file(net + "/operstate", "up\n");
  data.file(net + "/mtu", fmt::format("{}\n", mtu));
  data.add(net + "/speed", Type::file).no_read = Trouble{ErrorKind::unreadable, "EINVAL (Invalid argument)"};
  addresses_ +=
      fmt::format("{}: {}    inet {} brd + scope global {}\\       valid_lft forever preferred_lft forever\n",
                  next_ifindex_++, name, ip, name);
  if (default_route) routes_ += name + "\t00000000\t010012C6\t0003\t0\t0\t100\t00000000\t0\t0\t0\n";
}

void Machine::os_release(const std::string& id, const std::string& version, const std::string& codename,
                         const std::string& pretty) {
  data.file("/etc/os-release",
            fmt::format("PRETTY_NAME=\"{}\"\nVERSION_ID=\"{}\"\n{}ID={}\n", pretty, version,
                        codename.empty() ? "" : "VERSION_CODENAME=" + codename + "\n", id));
}

void Machine::cpu(const std::string& model, int processors, int nodes, bool virtual_machine,
                  uint64_t memory_bytes) {
  data.file(
      "/proc/cpuinfo",
      fmt::format(
          "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: {}\nflags\t\t: fpu vme sse2 avx512f{}\n",
          model, virtual_machine ? " hypervisor" : ""));
  data.file("/sys/devices/system/cpu/online", fmt::format("0-{}\n", processors - 1));
  for (int i = 0; i < nodes; ++i) data.directory(fmt::format("/sys/devices/system/node/node{}", i));
  data.file("/proc/meminfo",
            fmt::format("MemTotal:       {} kB\nMemFree:        {} kB\nMemAvailable:   {} kB\n",
                        memory_bytes / 1024, memory_bytes / 1100, memory_bytes / 1060));
}

void Machine::dmi(const std::string& vendor, const std::string& product) {
  data.file("/sys/class/dmi/id/sys_vendor", vendor + "\n");
  data.file("/sys/class/dmi/id/product_name", product + "\n");
}

void Machine::modules(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& m : names) {
    text += m + " 16384 0 - Live 0x0000000000000000\n";
    data.directory("/sys/module/" + m);
  }
  data.file("/proc/modules", text);
}

void Machine::nvidia_driver(const std::string& version, bool open, const std::string& registry_dwords,
                            int stream_memops) {
  driver_version = version;
  data.file(
      "/proc/driver/nvidia/version",
      fmt::format(
          "NVRM version: NVIDIA UNIX {}  {}  Release Build  (builder)\nGCC version:  gcc version 13.3.0\n",
          open ? "Open Kernel Module for x86_64" : "x86_64 Kernel Module", version));
  data.file(
      "/proc/driver/nvidia/params",
      fmt::format(
          "ResmanDebugLevel: 4294967295\nRmLogonRC: 1\nModifyDeviceFiles: 1\nDeviceFileUID: "
          "0\nDeviceFileGID: 0\n"
          "DeviceFileMode: 438\nInitializeSystemMemoryAllocations: 1\nUsePageAttributeTable: 4294967295\n"
          "EnablePCIeGen3: 0\nEnableMSI: 1\nEnablePCIeRelaxedOrderingMode: 0\nEnableStreamMemOPs: {}\n"
          "EnableGpuFirmware: 18\nOpenRmEnableUnsupportedGpus: 1\nRegistryDwords: "
          "\"{}\"\nRegistryDwordsPerDevice: \"\"\n",
          stream_memops, registry_dwords));
  data.file("/sys/module/nvidia/version", version + "\n");
  for (const char* node : {"/dev/nvidiactl", "/dev/nvidia-uvm"}) device_node(node);
}

void Machine::program(const std::string& path) {
  SnapshotNode& n = data.add(path, Type::file);
  n.info = FileInfo{Type::file, 0755, 100000, true, false};
}
void Machine::package(const std::string& name, const std::string& version) {
  packages_ += name + "\t" + version + "\tinstall ok installed\n";
}
void Machine::service(const std::string& unit, const std::string& load, const std::string& active) {
  services_ += fmt::format("{}Id={}\nLoadState={}\nActiveState={}\n", services_.empty() ? "" : "\n", unit,
                           load, active);
}
void Machine::wheel(const std::string& site, const std::string& name, const std::string& version) {
  std::string dir = fmt::format("{}/{}-{}.dist-info", site, replace_all(name, "-", "_"), version);
  data.file(dir + "/METADATA",
            fmt::format("Metadata-Version: 2.1\nName: {}\nVersion: {}\n\n", name, version));
  data.file(dir + "/RECORD", "");
}
void Machine::device_node(const std::string& path) {
  data.add(path, Type::other).info = FileInfo{Type::other, 0666, 0, true, true};
}

void Machine::cuda_toolkit(const std::string& root, const std::string& version, const std::string& nvcc) {
  data.file(
      root + "/version.json",
      fmt::format(
          "{{\n   \"cuda\" : {{\n      \"name\" : \"CUDA SDK\",\n      \"version\" : \"{}\"\n   }},\n   "
          "\"cuda_nvcc\" : {{\n      \"name\" : \"CUDA NVCC\",\n      \"version\" : \"{}\"\n   }}\n}}\n",
          version, nvcc));
  program(root + "/bin/nvcc");
  program(root + "/bin/cuobjdump");
  data.link(root + "/lib64", "targets/x86_64-linux/lib");
  data.link(root + "/include", "targets/x86_64-linux/include");
  data.directory(root + "/targets/x86_64-linux/include/cccl");
  data.add(root + "/targets/x86_64-linux/lib/stubs/libcuda.so", Type::file).info =
      FileInfo{Type::file, 0644, 65000, true, false};
}

void Machine::disk(const std::string& path, uint64_t total, uint64_t free, const std::string& type,
                   bool writable) {
  data.space[path] = {total, free, type};
  if (path != "/dev/shm") {
    SnapshotNode& n = data.add(path, Type::directory);
    n.info = FileInfo{Type::directory, path == "/tmp" || path == "/var/tmp" ? 01777u : 0755u, 4096, true,
                      writable};
  }
}

void Machine::user(int uid, const std::string& home, const std::string& memlock, uint64_t capabilities,
                   int seccomp) {
  data.environment["HOME"] = home;
  data.environment["USER"] = uid == 0 ? "root" : "ubuntu";
  data.file("/proc/self/status",
            fmt::format("Name:\tepready\nUid:\t{0}\t{0}\t{0}\t{0}\nCapEff:\t{1:016x}\nSeccomp:\t{2}\nCpus_"
                        "allowed_list:\t{3}",
                        uid, capabilities, seccomp, *data.nodes["/sys/devices/system/cpu/online"].content));
  auto row = [](const char* name, const std::string& soft, const std::string& hard, const char* unit) {
    return fmt::format("{:<26}{:<21}{:<21}{:<10}\n", name, soft, hard, unit);
  };
  data.file("/proc/self/limits",
            row("Limit", "Soft Limit", "Hard Limit", "Units") +
                row("Max open files", memlock == "unlimited" ? "1048576" : "1024", "1048576", "files") +
                row("Max locked memory", memlock, memlock, "bytes"));
}

std::string Machine::matrix() const {
  std::string out = "\t\x1b[4m";
  auto heads = gpus.size();
  for (size_t i = 0; i < heads; ++i) out += fmt::format("GPU{}\t", i);
  for (size_t i = 0; i < nics.size(); ++i) out += fmt::format("NIC{}\t", i);
  out += "CPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n";
  auto numa_cell = [](int a, int b) { return a == b ? "NODE" : "SYS"; };
  auto cell = [&](size_t g, size_t n) {
    auto it = gpu_nic.find({int(g), int(n)});
    return it != gpu_nic.end() ? it->second : std::string(numa_cell(gpus[g].numa, nic_numa[n]));
  };
  for (size_t i = 0; i < heads; ++i) {
    out += fmt::format("GPU{}\t", i);
    for (size_t j = 0; j < heads; ++j)
      out += (i == j ? std::string(" X ") : fmt::format("NV{}", num_nvlinks)) + "\t";
    for (size_t n = 0; n < nics.size(); ++n) out += cell(i, n) + "\t";
    int half = 112;
    out += gpus[i].numa == 0 ? fmt::format("0-{}\t0\t\tN/A\n", half / 2 - 1)
                             : fmt::format("{}-{}\t1\t\tN/A\n", half / 2, half - 1);
  }
  for (size_t n = 0; n < nics.size(); ++n) {
    out += fmt::format("NIC{}\t", n);
    for (size_t g = 0; g < heads; ++g) out += cell(g, n) + "\t";
    for (size_t m = 0; m < nics.size(); ++m) {
      auto it = nic_nic.find({int(std::min(n, m)), int(std::max(n, m))});
      out += (n == m                ? std::string(" X ")
              : it != nic_nic.end() ? it->second
                                    : numa_cell(nic_numa[n], nic_numa[m])) +
             "\t";
    }
    out += "\n";
  }
  out +=
      "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect "
      "between NUMA nodes (e.g., QPI/UPI)\n"
      "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a "
      "NUMA node\n"
      "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
      "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)\n"
      "  PIX  = Connection traversing at most a single PCIe bridge\n  NV#  = Connection traversing a bonded "
      "set of # NVLinks\n";
  if (!nics.empty()) out += "\nNIC Legend:\n\n";
  for (size_t n = 0; n < nics.size(); ++n) out += fmt::format("  NIC{}: {}\n", n, nics[n]);
  return out + "\n";
}

void Machine::smi_probes() {
  auto bus_id = [](const std::string& a) { return "0000" + replace_all(a, "", ""); };
  std::string csv, q, links;
  q = fmt::format(
      "\n==============NVSMI LOG==============\n\nTimestamp                                 : Mon Nov 30 "
      "00:00:00 2026\n"
      "Driver Version                            : {}\nCUDA Version                              : "
      "{}\n\nAttached GPUs                             : {}\n",
      driver_version, cuda_version, gpus.size());
  for (size_t i = 0; i < gpus.size(); ++i) {
    const auto& g = gpus[i];
    csv += fmt::format("{}, {}, {}, {}, {}, {}, {}, Disabled, 0\n", i, g.name, g.uuid, bus_id(g.address),
                       memory_mib, driver_version, compute_capability);
    q += fmt::format(
        "GPU {}\n    Product Name                          : {}\n    MIG Mode\n        Current               "
        "            : Disabled\n        Pending                           : Disabled\n",
        bus_id(g.address), g.name);
    if (fabric)
      q += "    Fabric\n        State                             : Completed\n        Status                "
           "            : Success\n"
           "        CliqueId                          : 0\n        ClusterUUID                       : "
           "00000000-0000-0000-0000-000000000000\n";
    q += "\n";
    links += fmt::format("GPU {}: {} (UUID: {})\n", i, g.name, g.uuid);
    for (int l = 0; l < num_nvlinks; ++l) links += fmt::format("\t Link {}: {:g} GB/s\n", l, nvlink_gbps);
  }
  data.probe("nvidia-smi-gpus", csv);
  data.probe("nvidia-smi-q", q);
  data.probe("nvidia-smi-nvlink", links);
  data.probe("nvidia-smi-apps", "");
  data.probe("nvidia-smi-topo", matrix());
  for (const char* name : {"nvidia-smi-p2p-r", "nvidia-smi-p2p-w"}) {
    std::string table = " \t";
    for (size_t i = 0; i < gpus.size(); ++i) table += fmt::format("GPU{}\t", i);
    table += "\n";
    for (size_t i = 0; i < gpus.size(); ++i) {
      table += fmt::format(" GPU{}\t", i);
      for (size_t j = 0; j < gpus.size(); ++j) table += i == j ? "X\t" : "OK\t";
      table += "\n";
    }
    data.probe(
        name,
        table +
            "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n  GNS  = GPU "
            "not supported\n  TNS  = Topology not supported\n  NS   = Not supported\n  U    = Unknown\n\n");
  }
  program("/usr/bin/nvidia-smi");
}

SnapshotData Machine::finish() {
  if (!packages_.empty()) data.probe("dpkg", packages_, 1, "dpkg-query: no packages found matching ofed-*\n");
  if (!services_.empty()) data.probe("systemctl", services_);
  data.probe("ip-addr", addresses_);
  data.file("/proc/net/route", routes_);
  if (has_nvidia_smi && !driver_version.empty() && !gpus.empty()) smi_probes();
  return data;
}

}  // namespace ep::test
