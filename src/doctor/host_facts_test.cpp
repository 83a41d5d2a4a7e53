// What a host's typed facts become in the doctor's words; what is unreadable is never said.
#include "doctor/host_facts.h"

#include <gtest/gtest.h>

namespace ep {
namespace {

std::string seen(const Facts& f, const char* fact) {
  Observed o;
  observe_host(f, o);
  const Observation* one = o.best(fact);
  return one ? one->value : o.absent(fact) ? "absent" : "unknown";
}

Facts host() {
  Facts f;
  f.host_kind = "live";
  f.rdma_readable = known(true, "sysfs");
  return f;
}

TEST(HostFacts, AcsIsUnknownWithoutRoot) {
  Facts f = host();
  f.kernel.acs_redirect = unreadable<bool>("config", "only root sees more than its first 64 bytes");
  EXPECT_EQ(seen(f, "kernel.acs"), "unknown");
  f.kernel.acs_redirect = known(true, "config");
  EXPECT_EQ(seen(f, "kernel.acs"), "true");
  f.kernel.acs_redirect = known(false, "config");
  EXPECT_EQ(seen(f, "kernel.acs"), "false");
  f.kernel.acs_redirect = absent<bool>("config", "no switch");
  EXPECT_EQ(seen(f, "kernel.acs"), "unknown");
}

PciDevice pci(const std::string& address, int cls, const std::string& group) {
  PciDevice d;
  d.address = address;
  d.vendor = known(0x10de, "pci");
  d.device_class = known(cls, "pci");
  if (!group.empty()) d.iommu_group_type = known(group, "group");
  return d;
}

TEST(HostFacts, PassthroughByTheGroupsBeforeTheCommandLine) {
  Facts f = host();
  f.kernel.cmdline = known<std::string>("quiet intel_iommu=on iommu=pt", "/proc/cmdline");
  EXPECT_EQ(seen(f, "kernel.iommu_pt"), "true");
  f.pci = {pci("0000:19:00.0", 0x030200, "DMA-FQ")};
  EXPECT_EQ(seen(f, "kernel.iommu_pt"), "false");
  f.pci = {pci("0000:19:00.0", 0x030200, "identity")};
  EXPECT_EQ(seen(f, "kernel.iommu_pt"), "true");
  // A kernel may have it as its default: silence on the command line says nothing.
  f.pci = {pci("0000:19:00.0", 0x030200, "")};
  f.kernel.cmdline = known<std::string>("quiet", "/proc/cmdline");
  EXPECT_EQ(seen(f, "kernel.iommu_pt"), "unknown");
}

ModuleOption option(const std::string& name, std::vector<std::string> values, const std::string& live) {
  ModuleOption o;
  o.name = name;
  o.live = known(live, "/proc/driver/nvidia/params");
  for (size_t i = 0; i < values.size(); ++i)
    o.set_in.push_back("/etc/modprobe.d/" + std::to_string(i) + ".conf:1");
  o.set_to = values;
  if (!values.empty()) o.pending = known(values.back(), o.set_in.back());
  return o;
}

TEST(HostFacts, OptionLinesThatUndoEachOther) {
  Facts f = host();
  f.driver.options = {option("NVreg_RegistryDwords", {"PeerMappingOverride=1;", "RMFoo=1"}, "")};
  EXPECT_EQ(seen(f, "driver.options_conflict"), "true");
  f.driver.options = {
      option("NVreg_RegistryDwords", {"PeerMappingOverride=1;", "PeerMappingOverride=0x1"}, "")};
  EXPECT_EQ(seen(f, "driver.options_conflict"), "unknown");
  f.driver.options = {
      option("NVreg_RegistryDwords", {"PeerMappingOverride=1;", "RMFoo=1;PeerMappingOverride=1"}, "")};
  EXPECT_EQ(seen(f, "driver.options_conflict"), "unknown");
  f.driver.options = {option("NVreg_EnableStreamMemOPs", {"1", "0"}, "0")};
  EXPECT_EQ(seen(f, "driver.options_conflict"), "true");
}

Gpu gpu(int index) {
  Gpu g;
  g.index = index;
  return g;
}

TEST(HostFacts, GpusThatNeedAReset) {
  Facts f = host();
  f.gpus = {gpu(0), gpu(1)};
  EXPECT_EQ(seen(f, "gpu.reset_pending"), "unknown");
  f.gpus[0].remap_pending = f.gpus[1].remap_pending = known(false, "q");
  EXPECT_EQ(seen(f, "gpu.reset_pending"), "0");
  f.gpus[1].remap_pending = known(true, "q");
  EXPECT_EQ(seen(f, "gpu.reset_pending"), "1");
  f.gpus[0].recovery_action = known<std::string>("Drain and Reset", "q");
  EXPECT_EQ(seen(f, "gpu.reset_pending"), "2");
  f.gpus[0].fabric_state = known<std::string>("N/A", "q");
  EXPECT_EQ(seen(f, "gpu.fabric_ok"), "unknown");
  f.gpus[0].fabric_state = known<std::string>("In Progress", "q");
  EXPECT_EQ(seen(f, "gpu.fabric_ok"), "false");
}

TEST(HostFacts, ListedNicsAndInterfaces) {
  Facts f = host();
  for (const char* name : {"mlx5_0", "mlx5_1", "mlx5_10"}) {
    f.rdma.emplace_back();
    f.rdma.back().name = name;
  }
  f.interfaces = {"lo", "eth0", "ens3"};
  f.interfaces_readable = known(true, "/sys/class/net");
  EXPECT_EQ(seen(f, "nic.listed"), "unknown");
  for (auto [name, value, want] : {std::tuple{"NCCL_IB_HCA", "mlx5", "all"},
                                   {"NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1", "all"},
                                   {"NCCL_IB_HCA", "=mlx5", "none"},
                                   {"NCCL_IB_HCA", "^mlx5_7", "unknown"},
                                   {"NCCL_IB_HCA", "ibp", "none"},
                                   {"NVSHMEM_HCA_LIST", "mlx5_0:1,mlx5_2:1", "some"},
                                   {"NVSHMEM_HCA_PE_MAPPING", "mlx5_0:1:2,mlx5_1:1:2", "all"},
                                   {"DEEP_EP_DEVICE_TO_HCA_MAPPING", "0:mlx5_0:1,1:mlx5_1:1", "all"},
                                   {"DEEP_EP_DEVICE_TO_HCA_MAPPING", "0:mlx5_4:1", "none"},
                                   {"NVSHMEM_HCA_PREFIX", "rocep", "none"},
                                   {"NVSHMEM_HCA_PREFIX", "mlx5", "all"}}) {
    f.environment = {{name, value}};
    EXPECT_EQ(seen(f, "nic.listed"), want) << name << "=" << value;
  }
  for (auto [name, value, want] : {std::tuple{"NCCL_SOCKET_IFNAME", "eth", "up"},
                                   {"NCCL_SOCKET_IFNAME", "=eth", "missing"},
                                   {"NCCL_SOCKET_IFNAME", "^docker,lo", "unknown"},
                                   {"GLOO_SOCKET_IFNAME", "eth", "missing"},
                                   {"GLOO_SOCKET_IFNAME", "ens3", "up"},
                                   {"NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "bond0", "missing"}}) {
    f.environment = {{name, value}};
    EXPECT_EQ(seen(f, "net.bootstrap"), want) << name << "=" << value;
  }
  // Without the list of devices nobody knows.
  f.rdma_readable = unreadable<bool>("sysfs", "hidden");
  f.interfaces_readable = unreadable<bool>("sysfs", "hidden");
  f.environment = {{"NCCL_IB_HCA", "ibp"}, {"GLOO_SOCKET_IFNAME", "eth"}};
  EXPECT_EQ(seen(f, "nic.listed"), "unknown");
  EXPECT_EQ(seen(f, "net.bootstrap"), "unknown");
}

TEST(HostFacts, FilesSayWhatTheEnvironmentDoesNot) {
  Facts f = host();
  f.nccl_conf = {"/etc/nccl.conf:2: NCCL_IB_DISABLE=1"};
  EXPECT_EQ(seen(f, "env.NCCL_IB_DISABLE"), "1");
  f.environment = {{"NCCL_IB_DISABLE", "0"}};
  EXPECT_EQ(seen(f, "env.NCCL_IB_DISABLE"), "0");
  f.written_environment = {"/etc/environment:7: NVSHMEM_IB_GID_INDEX=3"};
  EXPECT_EQ(seen(f, "env.NVSHMEM_IB_GID_INDEX"), "3");
}

TEST(HostFacts, ServicesAndContainers) {
  Facts f = host();
  EXPECT_EQ(seen(f, "limits.service_memlock"), "unknown");
  f.limits.services = {{"kubelet.service", known<std::string>("unlimited", "s")}};
  EXPECT_EQ(seen(f, "limits.service_memlock"), "unknown");
  f.limits.services.push_back({"containerd.service", known<std::string>("8388608", "s")});
  EXPECT_EQ(seen(f, "limits.service_memlock"), "8388608");
  f.container.runtime = known<std::string>("docker", "/.dockerenv");
  f.container.cap_effective = known<uint64_t>(0x00000000a80425fb, "status");  // Docker's default set
  EXPECT_EQ(seen(f, "container.rdma_caps"), "false");
  f.container.cap_effective = known<uint64_t>(0x1ffffffffff, "status");
  EXPECT_EQ(seen(f, "container.rdma_caps"), "true");
}

TEST(HostFacts, BuildsByHand) {
  Facts f = host();
  f.user.is_root = known(false, "status");
  SourceTree tree;
  tree.name = "nvshmem", tree.root = "/opt/deepep/nvshmem-src", tree.has_cache = true;
  tree.cmake = {{"GDRCOPY_INCLUDE", "/opt/deepep/gdrcopy/include"}, {"NVSHMEM_IBGDA_SUPPORT", "ON"}};
  f.sources = {tree};
  EXPECT_EQ(seen(f, "gdrcopy.header"), "unknown");
  EXPECT_EQ(seen(f, "build.writable"), "unknown");
  f.sources[0].cmake["GDRCOPY_INCLUDE"] = "GDRCOPY_INCLUDE-NOTFOUND";
  f.sources[0].locked = {"/opt/deepep/nvshmem-src/build"};
  EXPECT_EQ(seen(f, "gdrcopy.header"), "false");
  EXPECT_EQ(seen(f, "build.writable"), "false");
  f.user.is_root = known(true, "status");  // root may write everywhere
  EXPECT_EQ(seen(f, "build.writable"), "unknown");
}

}  // namespace
}  // namespace ep
