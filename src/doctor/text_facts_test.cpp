#include "doctor/text_facts.h"

#include <re2/re2.h>

#include "doctor/fact_names.h"
#include "doctor/sightings.h"

namespace ep {
namespace {

Observed read(const std::string& text) {
  Observed o;
  std::vector<LogInput> logs;
  logs.push_back({"t", read_text(text)});
  read_logs(Catalogue{}, std::move(logs), o);
  return o;
}
std::string best(const std::string& text, const char* fact) {
  const Observed o = read(text);
  const Observation* b = o.best(fact);
  return b ? b->value : "";
}

TEST(TextFacts, EveryPatternCompilesAndNamesAKnownFact) {
  for (const FactPattern& p : fact_patterns()) {
    EXPECT_TRUE(p.pattern.regex->ok()) << p.pattern.regex_text << ": " << p.pattern.regex->error();
    if (!p.fact.empty()) {
      EXPECT_NE(find_fact_name(p.fact), nullptr) << p.fact;
    }
    for (const auto& l : p.pattern.literals) EXPECT_GE(l.size(), LiteralScan::kMinLength) << l;
  }
}

TEST(TextFacts, VersionsInTheirUsualForms) {
  EXPECT_EQ(best("nvidia-nvshmem-cu13       3.7.2\n", "nvshmem.version"), "3.7.2");
  EXPECT_EQ(best("nvidia-nvshmem-cu12==3.4.5\n", "nvshmem.version"), "3.4.5");
  EXPECT_EQ(best("Successfully installed nvidia-nvshmem-cu12-3.3.24 x\n", "nvshmem.version"), "3.3.24");
  EXPECT_EQ(best("nvidia-nvshmem-cu13>=3.4\n", "nvshmem.version"), "");
  EXPECT_EQ(best("NVSHMEM v3.6.5\n", "nvshmem.version"), "3.6.5");
  EXPECT_EQ(best("node1:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n", "nccl.version"), "2.28.9");
  EXPECT_EQ(best("torch                 2.11.0+cu130\n", "torch.cuda"), "13.0");
  EXPECT_EQ(best("Cuda compilation tools, release 12.9, V12.9.86\n", "cuda.version"), "12.9");
  EXPECT_EQ(
      best("| NVIDIA-SMI 580.95.05   Driver Version: 580.95.05   CUDA Version: 13.0  |\n", "driver.version"),
      "580.95.05");
  EXPECT_EQ(best("deep_ep                       1.2.1+73b6ea4\n", "deepep.generation"), "v1");
  EXPECT_EQ(best("torch 2.9 requires nvidia-nccl-cu13==2.28.9, but you have nvidia-nccl-cu13 2.30.7 which\n",
                 "nccl.version"),
            "2.30.7");
}

TEST(TextFacts, TheRunningCopyBeatsThePackage) {
  EXPECT_EQ(best("NVSHMEM v3.6.5\nnvidia-nvshmem-cu12 3.4.5\n", "nvshmem.version"), "3.6.5");
  EXPECT_EQ(best("NVSHMEM v3.6.5\nnvidia-nvshmem-cu12 3.4.5\n", "nvshmem.copies"), "2");
}

TEST(TextFacts, Environment) {
  EXPECT_EQ(best("export NVSHMEM_IB_GID_INDEX=3 NVSHMEM_HCA_PREFIX=mlx5\n", "env.NVSHMEM_HCA_PREFIX"),
            "mlx5");
  EXPECT_EQ(best("n:1:1 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0.\n", "env.NCCL_IB_HCA"),
            "mlx5_0");
  EXPECT_EQ(best("  NVSHMEM_DISABLE_CUDA_VMM: \"1\"\n", "env.NVSHMEM_DISABLE_CUDA_VMM"), "1");
  EXPECT_EQ(best("export LD_LIBRARY_PATH=/a:$LD_LIBRARY_PATH\n", "env.LD_LIBRARY_PATH"), "");
}

TEST(TextFacts, DevicesNodesAndLimits) {
  EXPECT_EQ(best("WARN: device erdma_0 is not enumerated\n", "nic.driver"), "erdma");
  EXPECT_EQ(best("x NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE\n", "link_layer"), "Ethernet");
  EXPECT_EQ(best("n:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8\n", "nodes"), "2");
  EXPECT_EQ(best("torchrun --nnodes=4 --nproc_per_node=8 x.py\n", "nodes"), "4");
  EXPECT_EQ(best("4 x 8 H20 over RoCE\n", "nodes"), "4");
  EXPECT_EQ(best("4 x 8 H20 over RoCE\n", "gpu.compute_capability"), "90");
  EXPECT_EQ(best("max locked memory           (kbytes, -l) 8192\n", "limits.memlock"), "8388608");
  EXPECT_EQ(best("EnableStreamMemOPs: 0\nRegistryDwords: \"\"\n", "driver.peer_mapping_override"), "false");
  EXPECT_EQ(best("RegistryDwords: \"PeerMappingOverride=0x1;\"\n", "driver.peer_mapping_override"), "true");
  EXPECT_EQ(
      best("[tuning] Best dispatch (BF16): SMs 24: 6.52 GB/s (RDMA), 20.3 GB/s (NVL)\n", "perf.rdma_gbps"),
      "6.52");
}

TEST(TextFacts, PairsOfAPodSpecAreVariables) {
  const char* pod =
      "    env:\n    - name: NVSHMEM_IB_GID_INDEX\n      value: \"3\"\n    - name: NCCL_IB_HCA\n      value: "
      "mlx5_0\n";
  EXPECT_EQ(best(pod, "env.NVSHMEM_IB_GID_INDEX"), "3");
  EXPECT_EQ(best(pod, "env.NCCL_IB_HCA"), "mlx5_0");
  EXPECT_EQ(best("{\"name\": \"NVSHMEM_DEBUG\", \"value\": \"WARN\"}\n", "env.NVSHMEM_DEBUG"), "WARN");
  EXPECT_EQ(best("      NVSHMEM_REMOTE_TRANSPORT:   ibgda\n", "env.NVSHMEM_REMOTE_TRANSPORT"), "ibgda");
  EXPECT_EQ(best("- name: NVSHMEM_DEBUG\n  valueFrom:\n    fieldRef: x\n", "env.NVSHMEM_DEBUG"), "");
  EXPECT_EQ(best("- name: NVSHMEM_DEBUG", "env.NVSHMEM_DEBUG"), "");
}

TEST(TextFacts, AnswerOfACommandStandsOnTheNextLine) {
  EXPECT_EQ(best("pod1 # ulimit -l\n64\n", "limits.memlock"), "65536");
  EXPECT_EQ(best("$ ulimit -l\r\nunlimited\r\n", "limits.memlock"), "18446744073709551615");
  EXPECT_EQ(best("$ ulimit -l\n$ ls\n", "limits.memlock"), "");
}

TEST(TextFacts, EscapeSequencesDoNotHideFacts) {
  EXPECT_EQ(best("\x1b[36mtorch\x1b[0m                 2.11.0+cu130\n", "torch.cuda"), "13.0");
  EXPECT_EQ(best("\x1b[1mNVSHMEM v3.6.5\x1b[0m\n", "nvshmem.version"), "3.6.5");
  EXPECT_EQ(
      best("\x1b[1m$ pip show nvidia-nccl-cu12 | grep -i ^version\x1b[0m\n\x1b[1mVersion: 2.28.9\x1b[0m\n",
           "nccl.version"),
      "2.28.9");
}

TEST(TextFacts, ChannelsOfNcclTellHowManyNodes) {
  EXPECT_EQ(best("a:1:2 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\n", "nodes"),
            "2");
  EXPECT_EQ(best("a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n", "nodes"), "2");
  EXPECT_EQ(best("a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n", "nodes"), "");
}

TEST(TextFacts, WhichDeepEpKnowsTheNewQueueOrder) {
  EXPECT_EQ(best("deep_ep        1.1.0\n", "deepep.rc_fix"), "false");
  EXPECT_EQ(best("deep_ep        1.2.1+29d31c0\n", "deepep.rc_fix"), "true");
  EXPECT_EQ(best("deep_ep        1.2.1+73b6ea4\n", "deepep.rc_fix"), "");
  EXPECT_EQ(best("deep_ep        1.2.1+9af0e0d\n", "deepep.rc_fix"), "false");
  EXPECT_EQ(best("deep_ep        2.0.0\n", "deepep.rc_fix"), "");
}

TEST(TextFacts, ModulesThatAreNotListedAreNotLoaded) {
  EXPECT_EQ(best("$ lsmod | grep nvidia_peermem\nroot@n1:~# ./run\n", "kernel.peermem"), "false");
  EXPECT_EQ(best("$ lsmod | grep nvidia_peermem\nnvidia_peermem  16384  0\n", "kernel.peermem"), "true");
  EXPECT_EQ(best("nvidia 8626176 1058 nvidia_uvm,gdrdrv,nvidia_modeset\n", "kernel.peermem"), "false");
  EXPECT_EQ(best("nvidia 8626176 1058 nvidia_uvm,nvidia_peermem,gdrdrv\n", "kernel.peermem"), "true");
  EXPECT_EQ(best("nvidia 8626176 1058 nvidia_uvm,something_new\n", "kernel.peermem"), "");
}

TEST(TextFacts, AWishOrAnUninstalledCopyIsNoVersion) {
  EXPECT_EQ(
      best("vllm 0.26.0 has requirement nvidia-nccl-cu13==2.28.9, but you have nvidia-nccl-cu13 2.30.7.\n",
           "nccl.wheel_version"),
      "2.30.7");
  EXPECT_EQ(best("    Found existing installation: nvidia-nvshmem-cu12 3.3.20\n", "nvshmem.version"), "");
}

TEST(TextFacts, LockFilesAndPipShowNameTheVersionOnTheNextLine) {
  EXPECT_EQ(best("name = \"nvidia-nvshmem-cu13\"\nversion = \"3.7.2\"\n", "nvshmem.version"), "3.7.2");
  EXPECT_EQ(best("uv.lock:name = \"nvidia-nvshmem-cu13\"\nuv.lock:version = \"3.7.2\"\n", "nvshmem.version"),
            "3.7.2");
  EXPECT_EQ(best("$ pip show nvidia-nccl-cu12 | grep -i ^version\nVersion: 2.28.9\n", "nccl.version"),
            "2.28.9");
}

TEST(TextFacts, CodeOfTheExtensionAgainstTheGpu) {
  EXPECT_TRUE(archs_serve("9.0", 90));
  EXPECT_TRUE(archs_serve("100", 103));
  EXPECT_TRUE(archs_serve("100f", 103));
  EXPECT_FALSE(archs_serve("100a", 103));
  EXPECT_FALSE(archs_serve("9.0 10.0a", 103));
  EXPECT_TRUE(archs_serve("9.0+PTX", 103));
  EXPECT_FALSE(archs_serve("10.3", 100));
  EXPECT_EQ(best("a.1.sm_90.cubin\nGPU 0: NVIDIA B200\n", "deepep.arch_ok"), "false");
  EXPECT_EQ(best("a.1.sm_90a.cubin\nNVIDIA H200, 9.0\n", "deepep.arch_ok"), "true");
}

TEST(TextFacts, TheLargestNumberOfNodesThatProseTells) {
  EXPECT_EQ(best("2 nodes hang in dispatch, on one node the test passes\n", "nodes"), "2");
  EXPECT_EQ(best("on one node the test passes, 4 nodes hang\n", "nodes"), "4");
  EXPECT_EQ(best("4 nodes in all\nnNodes 2\n", "nodes"), "2");
}

TEST(TextFacts, NicsThatCarryNothingBesideBusyOnes) {
  EXPECT_EQ(best("mlx5_0 211840229113\nmlx5_1 1022\nmlx5_2 211839930021\nmlx5_3 998\n", "nic.idle_percent"),
            "50");
  EXPECT_EQ(
      best("mlx5_0 22.1 GB/s\nmlx5_1 0.0 GB/s\nmlx5_2 21.8 GB/s\nmlx5_3 0.0 GB/s\n", "nic.idle_percent"),
      "50");
  EXPECT_EQ(best("cat /sys/module/nvidia_peermem/version\n550.90.07\n", "kernel.peermem"), "true");
  EXPECT_EQ(best("mlx5_0 11\nmlx5_1 10\nmlx5_2 9\nmlx5_3 998\n", "nic.idle_percent"), "");
}

}  // namespace
}  // namespace ep
