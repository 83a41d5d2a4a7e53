// All check functions; checks.cpp lists them.
#pragma once
#include "check/check.h"

namespace ep {

using CheckFunction = CheckResult(const Facts&, const Words&);
CheckFunction check_gpu_model, check_gpu_mig, check_gpu_ecc, check_gpu_nvlink, check_gpu_fabric,
    check_gpu_p2p, check_driver_version, check_driver_flavor, check_driver_peer_mapping, check_driver_pending,
    check_driver_conflict, check_fabric_manager;
CheckFunction check_kernel_ptrace, check_kernel_dmabuf, check_kernel_nouveau, check_kernel_peermem,
    check_kernel_headers, check_secure_boot, check_apt_keys, check_memlock, check_nofile, check_shm,
    check_container_devices, check_memory;
CheckFunction check_rdma_devices, check_rdma_driver, check_rdma_names, check_rdma_state, check_rdma_gid,
    check_rdma_uverbs, check_rdma_firmware, check_rdma_mtu, check_pcie_width;
CheckFunction check_cuda_toolkit, check_cuda_home, check_nccl_copies, check_nccl_version, check_nvshmem,
    check_deepep, check_tools, check_env_conflict;

}  // namespace ep
