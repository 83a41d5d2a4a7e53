#include "host/environment.h"

#include "base/text.h"

namespace ep {

namespace {

// Where to look for things.
constexpr std::string_view kPlaces[] = {"PATH",   "HOME", "USER",   "SHELL",    "XDG_CACHE_HOME",
                                        "TMPDIR", "LANG", "LC_ALL", "container"};

// Settings of the stack: what NCCL, NVSHMEM, DeepEP, PyTorch, CUDA, UCX, libfabric and launchers read.
constexpr std::string_view kNames[] = {
    "CONDA_PREFIX",
    "CUDA_HOME",
    "CUDA_PATH",
    "GDRCOPY_HOME",
    "GDRCOPY_INCLUDE",
    "GDRCOPY_PATH",
    "KUBERNETES_SERVICE_HOST",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LOCAL_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PYTHONHOME",
    "PYTHONPATH",
    "RANK",
    "TORCH_CUDA_ARCH_LIST",
    "VIRTUAL_ENV",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "MAX_JOBS",
};
constexpr std::string_view kPrefixes[] = {
    "NCCL_", "NVSHMEM_", "EP_",      "DEEP_EP_",    "DEEPEP_",   "CUDA_",  "NVIDIA_", "UCX_",   "FI_",
    "OFI_",  "GLOO_",    "PYTORCH_", "TORCH_NCCL_", "MELLANOX_", "VLLM_",  "SGLANG_", "SGL_",   "SLURM_",
    "OMPI_", "PMIX_",    "MC_",      "IBV_",        "MLX5_",     "RDMAV_", "DG_",     "TRTLLM_"};
constexpr std::string_view kSecretWords[] = {"TOKEN",   "SECRET",     "PASSWORD", "PASSWD",
                                             "API_KEY", "CREDENTIAL", "PRIVATE"};

bool is_secret(std::string_view name) {
  for (auto word : kSecretWords)
    if (icontains(name, word)) return true;
  return ends_with(name, "_KEY");
}

}  // namespace

bool is_environment_setting(std::string_view name) {
  if (is_secret(name)) return false;
  for (auto known : kNames)
    if (name == known) return true;
  for (auto prefix : kPrefixes)
    if (starts_with(name, prefix)) return true;
  return false;
}

bool is_environment_of_interest(std::string_view name) {
  for (auto place : kPlaces)
    if (name == place) return true;
  return is_environment_setting(name);
}

}  // namespace ep
