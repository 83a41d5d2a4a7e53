// The table of checks. Adding one: a function in its area's file, a line in areas.h, a row here, a unit test.
#include "check/areas.h"
#include "check/check.h"

namespace ep {

const std::vector<CheckRow>& checks() {
  static const std::vector<CheckRow> table = {
      {"gpu.model", {"GPUs and compute capability", "GPU 型号与计算能力"}, kLaneGpu, check_gpu_model},
      {"gpu.mig", {"MIG is off", "MIG 关闭"}, kLaneGpu, check_gpu_mig},
      {"gpu.ecc", {"GPU memory is healthy", "显存健康"}, kLaneGpu, check_gpu_ecc},
      {"gpu.nvlink", {"NVLink is complete", "NVLink 完整"}, kLaneGpu, check_gpu_nvlink},
      {"gpu.fabric", {"GPU fabric is initialised", "GPU fabric 已初始化"}, kLaneGpu, check_gpu_fabric},
      {"gpu.p2p", {"Peer access between GPUs", "GPU 间对等访问"}, kLaneGpu, check_gpu_p2p},
      {"drv.version", {"NVIDIA driver version", "NVIDIA 驱动版本"}, kLaneGpu, check_driver_version},
      {"drv.flavor", {"Open kernel module", "开源内核模块"}, kLaneGpu, check_driver_flavor},
      {"drv.peermapping",
       {"PeerMappingOverride is live", "PeerMappingOverride 生效"},
       kLaneGpu,
       check_driver_peer_mapping},
      {"drv.pending",
       {"Driver options written are live", "已写的驱动选项已生效"},
       kLaneGpu,
       check_driver_pending},
      {"drv.conflict",
       {"Driver options are set once", "驱动选项只设置一次"},
       kLaneGpu,
       check_driver_conflict},
      {"fab.manager", {"Fabric manager", "Fabric manager"}, kLaneGpu, check_fabric_manager},
      {"krn.ptrace",
       {"Processes may share memory handles", "进程可共享内存句柄"},
       kLaneV2,
       check_kernel_ptrace},
      {"krn.dmabuf", {"NICs can register GPU memory", "网卡可注册显存"}, kLaneGpu, check_kernel_dmabuf},
      {"krn.nouveau", {"nouveau is not in the way", "没有 nouveau 干扰"}, kLaneGpu, check_kernel_nouveau},
      {"krn.peermem",
       {"One peer-memory module", "只有一个 peer-memory 模块"},
       kLaneGpu,
       check_kernel_peermem},
      {"krn.headers", {"Kernel headers", "内核头文件"}, kLaneGpu, check_kernel_headers},
      {"sec.secureboot", {"Secure boot", "安全启动"}, kLaneGpu, check_secure_boot},
      {"sec.apt", {"Vendor package sources are signed", "厂商软件源已签名"}, kLaneGpu, check_apt_keys},
      {"lim.memlock", {"Locked memory limit", "锁定内存限制"}, kLaneGpu, check_memlock},
      {"lim.nofile", {"Open files limit", "可打开文件数"}, kLaneGpu, check_nofile},
      {"shm.size", {"Shared memory", "共享内存"}, kLaneAll, check_shm},
      {"mem.free", {"Free memory", "可用内存"}, kLaneLocal, check_memory},
      {"container.devices", {"Devices in the container", "容器内的设备"}, kLaneGpu, check_container_devices},
      {"ib.devices", {"RDMA devices", "RDMA 设备"}, kLaneGpu, check_rdma_devices},
      {"ib.driver", {"RDMA driver", "RDMA 驱动"}, kLaneGpu, check_rdma_driver},
      {"ib.names", {"RDMA device names", "RDMA 设备名"}, kLaneV1, check_rdma_names},
      {"ib.state", {"RDMA ports are active", "RDMA 端口活动"}, kLaneGpu, check_rdma_state},
      {"ib.gid", {"RoCE GIDs", "RoCE GID"}, kLaneGpu, check_rdma_gid},
      {"ib.uverbs", {"Verbs device nodes", "verbs 设备节点"}, kLaneGpu, check_rdma_uverbs},
      {"ib.firmware", {"NIC firmware is equal", "网卡固件一致"}, kLaneGpu, check_rdma_firmware},
      {"ib.mtu", {"RoCE MTU", "RoCE MTU"}, kLaneGpu, check_rdma_mtu},
      {"pci.width", {"PCIe link width", "PCIe 链路宽度"}, kLaneGpu, check_pcie_width},
      {"cuda.toolkit", {"CUDA toolkit", "CUDA 工具包"}, kLaneGpu, check_cuda_toolkit},
      {"cuda.home", {"CUDA_HOME", "CUDA_HOME"}, kLaneGpu, check_cuda_home},
      {"py.nccl-copies", {"One NCCL package", "只有一个 NCCL 包"}, kLaneGpu, check_nccl_copies},
      {"py.nccl", {"NCCL fits DeepEP", "NCCL 与 DeepEP 相容"}, kLaneV2, check_nccl_version},
      {"py.nvshmem", {"NVSHMEM fits DeepEP", "NVSHMEM 与 DeepEP 相容"}, kLaneV1, check_nvshmem},
      {"py.deepep", {"DeepEP", "DeepEP"}, kLaneGpu, check_deepep},
      {"tools", {"Tools", "工具"}, kLaneGpu, check_tools},
      {"env.conflict", {"Environment variables", "环境变量"}, kLaneGpu, check_env_conflict},
  };
  return table;
}

std::vector<CheckReport> run_checks(const Facts& facts, unsigned lanes, Lang lang) {
  std::vector<CheckReport> out;
  Words words{lang};
  for (const auto& row : checks())
    if (row.lanes & lanes) out.push_back({&row, row.run(facts, words)});
  return out;
}

}  // namespace ep
