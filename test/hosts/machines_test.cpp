// Facts of whole machines, and the samples that travel in the program. EP_UPDATE_SAMPLES=1 writes
// data/samples/ anew.
#include "machines.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "facts/facts.h"

namespace ep::test {
namespace {

std::string read_file(const std::string& path) {
  std::stringstream s;
  s << std::ifstream(path, std::ios::binary).rdbuf();
  return s.str();
}

TEST(Samples, AreTheMachines) {
  for (const auto& m : machines()) {
    std::string path = std::string(EP_SOURCE_DIR) + "/data/samples/" + m.name + ".snap";
    std::string text = to_snap_text(m.make());
    if (std::getenv("EP_UPDATE_SAMPLES")) std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(read_file(path), text) << path << ": EP_UPDATE_SAMPLES=1 writes it anew";
    auto host = snapshot_host(std::string("sample/") + m.name);
    EXPECT_TRUE(host) << host.error().text();
    if (host) {
      EXPECT_EQ((*host)->name(), std::string("sample/") + m.name);
    }
  }
  auto wrong = snapshot_host("sample/gcp-a4-frish");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::usage);
  EXPECT_TRUE(contains(wrong.error().next, "gcp-a4-fresh"));
}

Facts facts_of(SnapshotData d) {
  return read_facts(*host_of(std::move(d), "x"));
}

TEST(Machines, FreshA4) {
  Facts f = facts_of(gcp_a4_fresh());
  EXPECT_EQ(*f.os.version_id, "24.04");
  EXPECT_EQ(*f.platform.cloud, "gcp");
  EXPECT_EQ(*f.platform.machine_type, "a4-highgpu-8g");
  EXPECT_TRUE(*f.platform.virtual_machine);
  ASSERT_EQ(f.gpus.size(), 8u);
  for (const auto& g : f.gpus) {
    EXPECT_EQ(*g.name, "NVIDIA B200");
    EXPECT_EQ(*g.compute_capability, 100);
    EXPECT_EQ(*g.nvlinks_up, 18);
    EXPECT_EQ(*g.nvlinks_down, 0);
    EXPECT_EQ(*g.fabric_state, "Completed");
    EXPECT_FALSE(*g.in_use);
  }
  EXPECT_EQ(f.gpus[7].address, "0000:cc:00.0");
  EXPECT_EQ(*f.gpus[7].numa_node, 1);
  EXPECT_EQ(*f.driver.version, "580.95.05");
  EXPECT_TRUE(*f.driver.open_kernel_module);
  EXPECT_EQ(*f.driver.cuda_version, "13.0");
  EXPECT_TRUE(f.driver.registry_dwords.empty());
  EXPECT_EQ(*f.driver.fabric_manager, "active");
  EXPECT_EQ(*f.driver.imex, "not-found");
  EXPECT_EQ(*f.driver.fabric_manager_version, "580.95.05");
  EXPECT_EQ(*f.driver.initramfs_tool, "update-initramfs");
  EXPECT_FALSE(*f.driver.initramfs_has_nvidia_module);
  ASSERT_EQ(f.rdma.size(), 8u);
  EXPECT_EQ(f.rdma[0].name, "rocep145s0");
  EXPECT_EQ(f.rdma[0].address, "0000:91:00.0");
  EXPECT_EQ(*f.rdma[0].driver, "mlx5_core");
  EXPECT_TRUE(*f.rdma[0].has_uverbs);
  ASSERT_EQ(f.rdma[0].ports.size(), 1u);
  const RdmaPort& p = f.rdma[0].ports[0];
  EXPECT_EQ(*p.state, "ACTIVE");
  EXPECT_EQ(*p.rate_gbps, 400);
  ASSERT_EQ(p.gids.size(), 4u);
  EXPECT_EQ(p.gids[3].gid, "0000:0000:0000:0000:0000:ffff:c612:010a");
  EXPECT_EQ(*p.gids[3].type, "RoCE v2");
  EXPECT_EQ(f.rdma[0].netdevs, std::vector<std::string>{"gpu0rdma0"});
  EXPECT_FALSE(f.package("doca-ofed"));
  EXPECT_TRUE(f.package("rdma-core"));
  EXPECT_TRUE(f.cuda.empty());
  EXPECT_EQ(f.cuda_home_link.known, Known::absent);
  EXPECT_EQ(*f.limits.memlock, "8388608");
  EXPECT_EQ(*f.container.runtime, "none");
  EXPECT_TRUE(f.kernel.module("mlx5_ib"));
  EXPECT_FALSE(f.kernel.module("nvidia_peermem"));
  EXPECT_FALSE(*f.kernel.secure_boot);
  EXPECT_EQ(*f.kernel.dmabuf_config, "y");
  EXPECT_FALSE(*f.user.is_root);
  ASSERT_EQ(f.python.size(), 1u);
  EXPECT_EQ(*f.python[0].version, "3.12");
  EXPECT_TRUE(f.python[0].externally_managed);
}

TEST(Machines, A4PciTreePairsTwoAndTwo) {
  Facts f = facts_of(gcp_a4_fresh());
  std::map<std::string, const PciDevice*> by;
  for (const auto& d : f.pci) by[d.address] = &d;
  ASSERT_TRUE(by.count("0000:8f:00.0") && by.count("0000:91:00.0") && by.count("0000:98:00.0"));
  EXPECT_EQ(by["0000:8f:00.0"]->path,
            (std::vector<std::string>{"pci0000:8c", "0000:8c:00.0", "0000:8d:00.0", "0000:8e:00.0"}));
  EXPECT_EQ(by["0000:91:00.0"]->path[2], by["0000:8f:00.0"]->path[2]);
  EXPECT_NE(by["0000:98:00.0"]->path[0], by["0000:8f:00.0"]->path[0]);
  EXPECT_TRUE(by.count("0000:8d:00.0")) << "bridges are listed too";
  EXPECT_EQ(*by["0000:8f:00.0"]->link_speed_gts, 32.0);
  EXPECT_EQ(*by["0000:8f:00.0"]->link_width, 16);
  EXPECT_EQ(by["0000:91:00.0"]->vpd.known, Known::unreadable);
}

TEST(Machines, DoneA4) {
  Facts f = facts_of(gcp_a4_done());
  EXPECT_EQ(f.driver.registry_dwords.at("PeerMappingOverride"), 1);
  for (const auto& o : f.driver.options)
    if (o.name == "NVreg_RegistryDwords") {
      EXPECT_EQ(*o.live, "PeerMappingOverride=1");
      EXPECT_EQ(*o.pending, "PeerMappingOverride=1");
      EXPECT_EQ(o.set_in, std::vector<std::string>{"/etc/modprobe.d/epready-nvidia.conf:2"});
    }
  EXPECT_TRUE(*f.driver.initramfs_has_nvidia_options);
  EXPECT_EQ(f.rdma[0].name, "mlx5_0");
  EXPECT_EQ(*f.rdma[0].ports[0].active_mtu, 4096);
  EXPECT_EQ(*f.ofed_version, "OFED-internal-25.10-1.7.1");
  ASSERT_EQ(f.cuda.size(), 1u) << "the link and the folder are one toolkit";
  EXPECT_EQ(f.cuda[0].root, "/usr/local/cuda-12.9");
  EXPECT_EQ(*f.cuda[0].version, "12.9.1");
  EXPECT_EQ(*f.cuda[0].nvcc_version, "12.9.86");
  EXPECT_TRUE(*f.cuda[0].has_cccl && *f.cuda[0].has_stub && *f.cuda[0].has_cuobjdump);
  ASSERT_EQ(f.python.size(), 2u);
  const PythonEnvironment& e = f.python[1];
  EXPECT_EQ(e.root, "/opt/epready/venv");
  EXPECT_TRUE(e.is_virtual);
  EXPECT_EQ(*e.version, "3.12.3");
  std::map<std::string, std::string> wheels;
  for (const auto& p : e.packages) wheels[p.name] = p.version;
  EXPECT_EQ(wheels["torch"], "2.9.1+cu129");
  EXPECT_EQ(wheels["deep-ep"], "1.2.1+29d31c0");
  EXPECT_EQ(wheels["nvidia-nccl-cu12"], "2.27.5");
  bool found = false;
  for (const auto& p : f.parts)
    if (p.root == "/opt/epready/deepep") {
      found = true;
      EXPECT_TRUE(p.stamped);
      EXPECT_EQ(p.stamp.at("nvshmem"), "3.5.19");
    }
  EXPECT_TRUE(found);
  EXPECT_TRUE(*f.has_mlx5dv);
}

TEST(Machines, GkePod) {
  Facts f = facts_of(gke_a4_pod());
  EXPECT_EQ(*f.container.runtime, "kubernetes");
  EXPECT_TRUE(*f.container.privileged);
  EXPECT_TRUE(*f.container.host_network);
  EXPECT_TRUE(*f.container.host_pid);
  EXPECT_TRUE(*f.container.host_mount);
  EXPECT_TRUE(*f.kernel.gdrdrv_device);
  EXPECT_EQ(*f.kernel.lockdown, "integrity");
  EXPECT_EQ(f.driver.fabric_manager.known, Known::absent) << "no systemctl in the image";
  EXPECT_EQ(*f.limits.memlock, "unlimited");
  EXPECT_TRUE(*f.user.is_root);
  EXPECT_EQ(f.environment.at("LD_LIBRARY_PATH"), "/usr/local/nvidia/lib64");
  ASSERT_FALSE(f.python.empty());
  std::map<std::string, std::string> wheels;
  for (const auto& p : f.python[0].packages) wheels[p.name] = p.version;
  EXPECT_EQ(wheels["torch"], "2.8.0a0+5228986c39.nv25.6");
}

TEST(Machines, H100InfiniBand) {
  Facts f = facts_of(h100_ib());
  ASSERT_EQ(f.gpus.size(), 8u);
  EXPECT_EQ(*f.gpus[0].compute_capability, 90);
  ASSERT_EQ(f.rdma.size(), 10u);
  EXPECT_EQ(*f.rdma[0].ports[0].link_layer, "Ethernet");
  EXPECT_EQ(*f.rdma[0].ports[0].active_mtu, 1024);
  EXPECT_EQ(*f.rdma[1].ports[0].link_layer, "InfiniBand");
  EXPECT_EQ(*f.rdma[1].ports[0].lid, 0x41);
  EXPECT_EQ(f.rdma[1].ports[0].gids.size(), 1u);
  EXPECT_EQ(*f.rdma[5].ports[0].rate_gbps, 200);
  for (const auto& o : f.driver.options)
    if (o.name == "NVreg_EnableStreamMemOPs") {
      EXPECT_EQ(*o.live, "0");
      EXPECT_EQ(*o.pending, "1") << "set in a file, not live: a reboot is due";
    }
  EXPECT_EQ(*f.platform.cloud, "none");
  EXPECT_FALSE(*f.platform.virtual_machine);
  for (const auto& n : f.netdevs)
    if (n.name == "ens1f0np0") {
      EXPECT_TRUE(*n.default_route);
      EXPECT_EQ(n.ips, std::vector<std::string>{"198.18.0.21/24"});
    }
}

TEST(Machines, Laptop) {
  Facts f = facts_of(laptop());
  EXPECT_TRUE(f.gpus.empty());
  EXPECT_TRUE(f.rdma.empty());
  EXPECT_EQ(f.rdma_readable.known, Known::absent);
  EXPECT_EQ(f.driver.version.known, Known::absent);
  EXPECT_EQ(*f.num_amd_gpus, 0);
  EXPECT_EQ(*f.tool("cmake")->version, "3.25.1");
  EXPECT_FALSE(*f.kernel.headers);
}

// Without nvidia-smi, PCI ids and procfs still name every GPU.
TEST(Machines, GpusWithoutTheVendorsTool) {
  SnapshotData d = gcp_a4_fresh();
  for (auto it = d.probes.begin(); it != d.probes.end();)
    it = starts_with(it->first, "nvidia-smi") ? d.probes.erase(it) : std::next(it);
  Facts f = facts_of(d);
  ASSERT_EQ(f.gpus.size(), 8u);
  EXPECT_EQ(*f.gpus[3].name, "NVIDIA B200");
  EXPECT_EQ(f.gpus[3].name.where, "/proc/driver/nvidia/gpus/0000:97:00.0/information");
  EXPECT_EQ(*f.gpus[3].compute_capability, 100);
  EXPECT_EQ(f.gpus[3].memory_bytes.known, Known::absent);
  EXPECT_EQ(*f.driver.version, "580.95.05");
  // and without a driver
  for (auto it = d.nodes.begin(); it != d.nodes.end();)
    it = starts_with(it->first, "/proc/driver") ? d.nodes.erase(it) : std::next(it);
  f = facts_of(d);
  ASSERT_EQ(f.gpus.size(), 8u);
  EXPECT_EQ(*f.gpus[0].name, "NVIDIA B200");
  EXPECT_EQ(*f.platform.machine_type, "a4-highgpu-8g");
}

}  // namespace
}  // namespace ep::test
