// What files of a host set for later, and what a build by hand stands on: literal hosts.
#include <gtest/gtest.h>

#include <algorithm>

#include "facts/facts.h"
#include "host/snapshot.h"

namespace ep {
namespace {

Facts read(SnapshotData d) {
  return read_facts(*host_of(std::move(d), "x"));
}

TEST(WrittenEnvironment, FilesAndUnits) {
  SnapshotData d;
  d.complete = true;
  d.file("/etc/environment",
         "PATH=\"/usr/bin\"\n"
         "# NCCL_DEBUG=INFO\n"
         "NVSHMEM_IB_GID_INDEX=3\n"
         "NCCL_IB_HCA=\"mlx5_0,mlx5_1\"\n"
         "WANDB_API_KEY=secret\n"
         "NCCL_AUTH_TOKEN=secret\n");
  d.file("/etc/profile.d/ep.sh",
         "export NCCL_SOCKET_IFNAME='eth0'\n"
         "export LD_LIBRARY_PATH=/opt/x:$LD_LIBRARY_PATH\n"
         "if true; then\n  export NCCL_IB_DISABLE=1\nfi\n");
  d.file("/etc/profile.d/ep.csh", "setenv NCCL_IB_DISABLE 1\n");
  d.file("/etc/systemd/system/vllm.service",
         "[Service]\nEnvironment=\"NCCL_CUMEM_ENABLE=0\" \"HF_TOKEN=x\" NVSHMEM_DEBUG=INFO\n");
  d.file("/etc/systemd/system/vllm.service.d/50-local.conf", "[Service]\nEnvironment=NCCL_CROSS_NIC=0\n");
  d.file("/etc/systemd/system/vllm.timer", "Environment=NCCL_IB_DISABLE=1\n");
  const Facts f = read(d);
  EXPECT_EQ(f.written_environment,
            (std::vector<std::string>{
                "/etc/environment:3: NVSHMEM_IB_GID_INDEX=3", "/etc/environment:4: NCCL_IB_HCA=mlx5_0,mlx5_1",
                "/etc/profile.d/ep.sh:1: NCCL_SOCKET_IFNAME=eth0",
                "/etc/systemd/system/vllm.service:2: NCCL_CUMEM_ENABLE=0",
                "/etc/systemd/system/vllm.service:2: NVSHMEM_DEBUG=INFO",
                "/etc/systemd/system/vllm.service.d/50-local.conf:2: NCCL_CROSS_NIC=0"}));
}

TEST(Driver, LinesThatModprobeIgnores) {
  SnapshotData d;
  d.complete = true;
  d.file("/etc/modprobe.d/nvidia.conf",
         "# NVreg_EnableStreamMemOPs=1\n"
         "NVreg_EnableStreamMemOPs=1\n"
         "nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"\n"
         "options nvidia NVreg_Foo=1 \\\n  NVreg_Bar=2\n"
         "options nvidia \"NVreg_Baz=2\"\n");
  const Facts f = read(d);
  ASSERT_EQ(f.driver.stray_options.size(), 2u) << f.driver.stray_options.back();
  EXPECT_EQ(f.driver.stray_options[0], "/etc/modprobe.d/nvidia.conf:2: NVreg_EnableStreamMemOPs=1");
  EXPECT_EQ(f.driver.stray_options[1],
            "/etc/modprobe.d/nvidia.conf:3: nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"");
}

TEST(Driver, LibrariesOfAnotherVersion) {
  SnapshotData d;
  d.complete = true;
  EXPECT_EQ(read(d).driver.library_matches.known, Known::absent);
  d.probe("nvidia-smi-gpus",
          "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.105\n", 18);
  auto no = read(d).driver.library_matches;
  EXPECT_TRUE(no.ok() && !*no);
  d.probe("nvidia-smi-gpus", "No devices were found\n", 6);
  EXPECT_EQ(read(d).driver.library_matches.known, Known::unreadable);
  d.probe("nvidia-smi-gpus",
          "0, NVIDIA H200, GPU-5eed, 00000000:18:00.0, 143771, 580.95.05, 9.0, Disabled, 0\n");
  auto yes = read(d).driver.library_matches;
  EXPECT_TRUE(yes.ok() && *yes);
}

TEST(Gpu, RowsThatWaitForAReset) {
  SnapshotData d;
  d.complete = true;
  d.probe("nvidia-smi-gpus",
          "0, NVIDIA H200, GPU-0, 00000000:18:00.0, 143771, 580.95.05, 9.0, Disabled, 0\n"
          "1, NVIDIA H200, GPU-1, 00000000:2A:00.0, 143771, 580.95.05, 9.0, Disabled, 0\n"
          "2, NVIDIA H200, GPU-2, 00000000:3A:00.0, 143771, 580.95.05, 9.0, Disabled, 0\n");
  const auto gpu = [](const std::string& address, const std::string& pending, const std::string& action) {
    return "GPU 00000000:" + address +
           "\n    MIG Mode\n        Current                           : Disabled\n"
           "        Pending                           : Disabled\n" +
           (action.empty() ? "" : "    GPU Recovery Action                   : " + action + "\n") +
           (pending.empty() ? ""
                            : "    Remapped Rows\n        Pending                           : " + pending +
                                  "\n        Remapping Failure Occurred        : No\n");
  };
  d.probe("nvidia-smi-q",
          gpu("18:00.0", "No", "None") + gpu("2A:00.0", "Yes", "Reset") + gpu("3A:00.0", "", ""));
  const Facts f = read(d);
  ASSERT_EQ(f.gpus.size(), 3u);
  EXPECT_TRUE(f.gpus[0].remap_pending.ok() && !*f.gpus[0].remap_pending);
  EXPECT_EQ(f.gpus[0].recovery_action.value_or("?"), "None");
  EXPECT_TRUE(f.gpus[1].remap_pending.value_or(false));
  EXPECT_EQ(f.gpus[1].recovery_action.value_or("?"), "Reset");
  EXPECT_EQ(f.gpus[2].remap_pending.known, Known::absent) << "MIG's Pending is another line";
}

TEST(Limits, WhatServicesHandOn) {
  SnapshotData d;
  d.complete = true;
  d.probe("systemctl-limits",
          "Id=containerd.service\nActiveState=active\nLimitMEMLOCK=8388608\n\n"
          "Id=docker.service\nActiveState=inactive\nLimitMEMLOCK=65536\n\n"
          "Id=kubelet.service\nActiveState=active\nLimitMEMLOCK=infinity\n\n"
          "Id=slurmd.service\nActiveState=active\nLimitMEMLOCK=18446744073709551615\n");
  const auto services = read(d).limits.services;
  ASSERT_EQ(services.size(), 3u);
  EXPECT_EQ(services[0].unit + " " + *services[0].memlock, "containerd.service 8388608");
  EXPECT_EQ(services[1].unit + " " + *services[1].memlock, "kubelet.service unlimited");
  EXPECT_EQ(services[2].unit + " " + *services[2].memlock, "slurmd.service unlimited");
}

TEST(Sources, WhatABuildByHandStandsOn) {
  SnapshotData d;
  d.complete = true;
  for (const char* path : {"/opt/deepep/DeepEP/setup.py", "/opt/deepep/DeepEP/csrc/x.cu",
                           "/opt/deepep/DeepEP/deep_ep/__init__.py", "/opt/deepep/nvshmem-src/CMakeLists.txt",
                           "/opt/deepep/nvshmem-src/src/include/nvshmem.h", "/opt/deepep/nvshmem/lib/x.so"})
    d.file(path, "x");
  d.file("/opt/deepep/nvshmem-src/build/CMakeCache.txt",
         "//Path to a file.\nGDRCOPY_INCLUDE:PATH=GDRCOPY_INCLUDE-NOTFOUND\nNVSHMEM_IBGDA_SUPPORT:BOOL=OFF\n"
         "SOMETHING:STRING=else\n");
  d.environment["GDRCOPY_HOME"] = "/opt/deepep/gdrcopy";
  d.environment["NVSHMEM_DIR"] = "/opt/deepep/nvshmem-src/src";
  Facts f = read(d);
  ASSERT_EQ(f.sources.size(), 2u);
  EXPECT_EQ(f.sources[0].name, "deepep");
  EXPECT_TRUE(f.sources[0].locked.empty()) << "rights that were not captured are not refused ones";
  EXPECT_EQ(f.sources[1].name, "nvshmem");
  EXPECT_EQ(f.sources[1].cmake,
            (std::map<std::string, std::string>{{"GDRCOPY_INCLUDE", "GDRCOPY_INCLUDE-NOTFOUND"},
                                                {"NVSHMEM_IBGDA_SUPPORT", "OFF"}}));
  EXPECT_TRUE(f.named_paths.at("GDRCOPY_HOME").ok() && !*f.named_paths.at("GDRCOPY_HOME"));
  EXPECT_TRUE(f.named_paths.at("NVSHMEM_DIR").ok() && *f.named_paths.at("NVSHMEM_DIR"));
  auto& node = d.add("/opt/deepep/DeepEP/deep_ep", FileInfo::Type::directory);
  node.info = FileInfo{FileInfo::Type::directory, 0755, 4096, true, false};
  f = read(d);
  EXPECT_EQ(f.sources[0].locked, std::vector<std::string>{"/opt/deepep/DeepEP/deep_ep"});
}

}  // namespace
}  // namespace ep
