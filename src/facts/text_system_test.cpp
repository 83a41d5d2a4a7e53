// Pastes of real machines, as people put them into a report: what is read into facts, and that what they do
// not show stays unknown.
#include "facts/text_system.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "facts/text_facts.h"

namespace ep {
namespace {

Facts facts_of(const std::string& text) {
  auto hosts = take_apart({{"report.txt", text}});
  return facts_of_paste(hosts.front(), "report.txt");
}

const char* kEfaNode = R"(ubuntu@ip-10-1-24-7:~$ uname -r
6.8.0-1033-aws
ubuntu@ip-10-1-24-7:~$ cat /etc/os-release
PRETTY_NAME="Ubuntu 22.04.5 LTS"
NAME="Ubuntu"
VERSION_ID="22.04"
ID=ubuntu
ubuntu@ip-10-1-24-7:~$ cat /sys/devices/virtual/dmi/id/product_name
p5.48xlarge
ubuntu@ip-10-1-24-7:~$ cat /sys/devices/virtual/dmi/id/sys_vendor
Amazon EC2
ubuntu@ip-10-1-24-7:~$ cat /proc/driver/nvidia/version
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build  (dvs-builder@U16-I2-C05-15-3)  Tue Jul  8 18:11:40 UTC 2025
GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)
ubuntu@ip-10-1-24-7:~$ nvcc --version
nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2025 NVIDIA Corporation
Built on Fri_Feb_21_20:23:50_PST_2025
Cuda compilation tools, release 12.8, V12.8.93
Build cuda_12.8.r12.8/compiler.35583870_0
ubuntu@ip-10-1-24-7:~$ fi_info -p efa -t FI_EP_RDM | grep -c domain
32
ubuntu@ip-10-1-24-7:~$ ls /sys/class/infiniband
rdmap100s0 rdmap101s0
ubuntu@ip-10-1-24-7:~$ lsmod | grep -E 'efa|gdrdrv|nvidia'
efa                   118784  0
nvidia_uvm           1900544  2
gdrdrv                 36864  0
ib_uverbs             200704  1 efa
)";

TEST(SystemText, AnEfaNodeIsReadWithWhatItsCommandsSay) {
  const Facts f = facts_of(kEfaNode);
  EXPECT_EQ(f.os.id.value_or(""), "ubuntu");
  EXPECT_EQ(f.os.version_id.value_or(""), "22.04");
  EXPECT_EQ(f.os.architecture.value_or(""), "x86_64");
  EXPECT_EQ(f.os.kernel_release.value_or(""), "6.8.0-1033-aws");
  EXPECT_EQ(f.platform.cloud.value_or(""), "aws");
  EXPECT_EQ(f.platform.machine_type.value_or(""), "p5.48xlarge");
  EXPECT_EQ(f.driver.version.value_or(""), "570.172.08");
  EXPECT_TRUE(f.driver.open_kernel_module.value_or(false));
  ASSERT_EQ(f.cuda.size(), 1u);
  EXPECT_EQ(f.cuda[0].version.value_or(""), "12.8");
  EXPECT_EQ(f.cuda[0].nvcc_version.value_or(""), "12.8.93");
  EXPECT_TRUE(f.kernel.module("gdrdrv"));
  EXPECT_FALSE(f.kernel.modules_readable.ok()) << "a filtered list does not say what is not loaded";
  ASSERT_EQ(f.rdma.size(), 2u);
  EXPECT_EQ(f.rdma[0].driver.value_or(""), "efa");
  // What no reader knows is counted and shown.
  ASSERT_EQ(f.paste.unread_lines, 1);
  ASSERT_EQ(f.paste.unread.size(), 1u);
  EXPECT_EQ(f.paste.unread[0].kind, "32");
}

TEST(SystemText, APodIsSeenByItsVariablesLimitsAndMissingDevices) {
  const Facts f = facts_of(R"(root@wide-ep-decode-0:/# cat /proc/1/cgroup
0::/kubepods.slice/kubepods-pod4c1f.slice/cri-containerd-9f.scope
root@wide-ep-decode-0:/# env | grep -E 'KUBE|NCCL'
KUBERNETES_SERVICE_HOST=10.96.0.1
NCCL_IB_HCA=mlx5
root@wide-ep-decode-0:/# nvidia-smi -L
GPU 0: NVIDIA H200 (UUID: GPU-0)
root@wide-ep-decode-0:/# ls /dev/infiniband
ls: cannot access '/dev/infiniband': No such file or directory
root@wide-ep-decode-0:/# ls /sys/class/infiniband
mlx5_0 mlx5_1
root@wide-ep-decode-0:/# ulimit -l
64
root@wide-ep-decode-0:/# df -h /dev/shm
Filesystem      Size  Used Avail Use% Mounted on
shm              64M     0   64M   0% /dev/shm
root@wide-ep-decode-0:/# grep Cap /proc/self/status
CapInh:	0000000000000000
CapPrm:	00000000a80425fb
CapEff:	00000000a80425fb
root@wide-ep-decode-0:/# pip list | grep -iE 'torch|nccl|nvshmem|deep'
deep_ep                 1.2.1+73b6ea4
nvidia-nccl-cu12        2.27.5
torch                   2.10.0+cu128
root@wide-ep-decode-0:/# cat /sys/class/infiniband/mlx5_0/ports/1/link_layer
InfiniBand
)");
  EXPECT_EQ(f.container.runtime.value_or(""), "kubernetes");
  ASSERT_TRUE(f.container.privileged.ok());
  EXPECT_FALSE(*f.container.privileged);
  EXPECT_EQ(f.limits.memlock.value_or(""), "65536");
  EXPECT_EQ(f.limits.shm_bytes.value_or(0), 64u << 20);
  ASSERT_EQ(f.rdma.size(), 2u);
  ASSERT_TRUE(f.rdma[0].has_uverbs.ok());
  EXPECT_FALSE(*f.rdma[0].has_uverbs);
  ASSERT_FALSE(f.rdma[0].ports.empty());
  EXPECT_EQ(f.rdma[0].ports[0].link_layer.value_or(""), "InfiniBand");
  ASSERT_EQ(f.python.size(), 1u);
  EXPECT_EQ(f.python[0].packages[0].name, "deep-ep");
  EXPECT_EQ(f.python[0].packages[0].version, "1.2.1+73b6ea4");
}

TEST(SystemText, QueriesWithoutHeaderTakeTheirColumnsFromTheCommand) {
  const Facts f = facts_of(
      "yangw@a4-b1:~$ uname -a\n"
      "Linux a4-b1 6.14.0-1021-gcp #22~24.04.1-Ubuntu SMP Thu Oct  9 17:07:04 UTC 2025 x86_64 x86_64 x86_64 "
      "GNU/Linux\n"
      "yangw@a4-b1:~$ cat /etc/os-release | head -4\n"
      "PRETTY_NAME=\"Ubuntu 24.04.3 LTS\"\nNAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\n"
      "VERSION=\"24.04.3 LTS (Noble Numbat)\"\n"
      "yangw@a4-b1:~$ nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader\n"
      "NVIDIA B200, 580.95.05, 183359 MiB\nNVIDIA B200, 580.95.05, 183359 MiB\n"
      "yangw@a4-b1:~$ cat /sys/class/dmi/id/product_name\nGoogle Compute Engine\n");
  EXPECT_EQ(f.os.id.value_or(""), "ubuntu") << "ID was cut off; NAME says it";
  EXPECT_EQ(f.os.architecture.value_or(""), "x86_64");
  ASSERT_EQ(f.gpus.size(), 2u);
  EXPECT_EQ(f.gpus[1].name.value_or(""), "NVIDIA B200");
  EXPECT_EQ(f.gpus[1].compute_capability.value_or(0), 100);
  EXPECT_EQ(f.gpus[1].memory_bytes.value_or(0), 183359ull << 20);
  EXPECT_EQ(f.driver.version.value_or(""), "580.95.05");
  EXPECT_EQ(f.platform.cloud.value_or(""), "gcp");
}

TEST(SystemText, ModprobeLinesAreWhatTheNextLoadGets) {
  const Facts f = facts_of(
      "root@gpu-r01:~# lsb_release -a\nDistributor ID:\tUbuntu\nDescription:\tUbuntu 22.04.5 LTS\n"
      "Release:\t22.04\nCodename:\tjammy\n"
      "root@gpu-r01:~# cat /etc/modprobe.d/nvidia.conf\n"
      "options nvidia NVreg_RegistryDwords=\"RMForceStaticBar1=1;\" NVreg_EnableGpuFirmware=1\n"
      "root@gpu-r01:~# ulimit -l\nunlimited\n");
  EXPECT_EQ(f.os.id.value_or(""), "ubuntu");
  EXPECT_EQ(f.os.version_id.value_or(""), "22.04");
  EXPECT_EQ(f.limits.memlock.value_or(""), "unlimited");
  ASSERT_EQ(f.driver.options.size(), 2u);
  EXPECT_EQ(f.driver.options[0].pending.value_or(""), "RMForceStaticBar1=1;");
  EXPECT_FALSE(f.driver.options[0].live.ok());
  EXPECT_EQ(f.driver.options[0].live.known, Known::unreadable);
}

TEST(SystemText, WhatIsNotShownIsNotAbsent) {
  const Facts f = facts_of("$ nvidia-smi -L\nGPU 0: NVIDIA GB200 (UUID: GPU-0)\n");
  EXPECT_EQ(f.os.architecture.value_or(""), "aarch64") << "that GPU exists beside Grace only";
  EXPECT_EQ(f.os.id.known, Known::unreadable);
  EXPECT_EQ(f.container.runtime.known, Known::unreadable);
  EXPECT_EQ(f.driver.version.known, Known::unreadable);
  EXPECT_EQ(f.limits.memlock.known, Known::unreadable);
  // A cgroup path of "/" is what a container with a namespace of its own shows too.
  EXPECT_FALSE(facts_of("# cat /proc/self/cgroup\n0::/\n").container.runtime.ok());
  EXPECT_EQ(facts_of("# cat /proc/1/cgroup\n0::/init.scope\n").container.runtime.value_or(""), "none");
}

TEST(SystemText, AnAnswerBelongsToItsCommandAlone) {
  // The command failed, or printed nothing: the next prompt's output is not its answer.
  const Facts f = facts_of(
      "$ cat /sys/class/dmi/id/product_name\ncat: /sys/class/dmi/id/product_name: No such file or directory\n"
      "$ ulimit -l\n$ uname -m\naarch64\n");
  EXPECT_FALSE(f.platform.product.ok());
  EXPECT_FALSE(f.limits.memlock.ok());
  EXPECT_EQ(f.os.architecture.value_or(""), "aarch64");
}

}  // namespace
}  // namespace ep
