#include "doctor/text_facts.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "doctor/rank.h"

namespace ep {

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
#define V R"(v?(\d+\.\d+(?:\.\d+)*))"  // a version of two or more numbers

/// literals | regex | fact | trust | fixed value | factor. Several literals: all on the line, the rarest is
/// searched.
struct Row {
  const char* literal;
  const char* regex;
  const char* fact;
  Trust trust = Trust::installed;
  const char* value = "";
  double factor = 0;
  const char* next = nullptr;  ///< the value stands in this one's group, on the following line
};

// Packages: pip list ("name  1.2"), pip freeze, wheels, "Successfully installed", dpkg. `>=` is a wish, not a
// version.
#define PIP(name) "(?i)(?:^|[^\\w.-])" name "(?:-|==|@|\\s+|\\s*\\()" V

// `name = "X"` of a lock file or `Name: X` of pip show, the version on the following line; `pip show X |
// grep`.
#define LOCKED(literal, name, fact)                                            \
  {literal,                                                                    \
   "(?i)(?:name\\s?[=:]\\s?[\"']?|pip3? show )" name "\\b[\"']?\\s*(?:$|\\|)", \
   fact,                                                                       \
   Trust::installed,                                                           \
   "",                                                                         \
   0,                                                                          \
   "(?i)^(?:\\S+:)?version\\s?[=:]\\s?[\"']?v?(\\d+\\.\\d+(?:\\.\\d+)*)"},
// What a shell shows behind a command that printed nothing, or a word for it.
constexpr const char* kNothing =
    R"((?i)^\s*$|^\S*[#$%]\s|^\S+@\S+|^\S+ [#$%] |^0\s*$|^\(?(?:nothing|empty|no output|none|not loaded|missing)\b)";

const Row kRows[] = {
    // NVSHMEM
    {"NVSHMEM v", "NVSHMEM " V, "nvshmem.version", Trust::running},
    {"nvshmem", PIP("nvidia[-_]nvshmem[-_]cu1[1-9]"), "nvshmem.version"},
    LOCKED("nvshmem", "nvidia-nvshmem-cu1[1-9]", "nvshmem.version"){
        "nvshmem", R"((?i)libnvshmem-linux-\w+-)" V, "nvshmem.version"},
    {"nvshmem_host.so.", R"(libnvshmem_host\.so\.(\d+\.\d+\.\d+))", "nvshmem.host_version"},
    {"nvshmem_host.so.", R"(libnvshmem_host\.so\.(\d+\.\d+\.\d+))", "nvshmem.version"},
    {"device library version", R"((?i)device library version[ (:=v]*(\d+\.\d+\.\d+))",
     "nvshmem.device_version", Trust::running},
    {"host library version", R"((?i)host library version[ (:=v]*(\d+\.\d+\.\d+))", "nvshmem.host_version",
     Trust::running},
    {"NVSHMEM_VER", R"(NVSHMEM_VER(?:SION)?["']?\s*[=:]\s*["']?v?(\d+\.\d+\.\d+))", "nvshmem.version"},
    {"NVSHMEM", R"(NVSHMEM(?: version| library)?(?: is|:|=| )+v?(\d+\.\d+\.\d+))", "nvshmem.version",
     Trust::mentioned},
    {"nvshmem", R"(nvshmem(?:[-_ ]?(?:src|version|lib|sys|host))?[-_:= ]+v?(\d+\.\d+\.\d+))",
     "nvshmem.version", Trust::mentioned},
    {"libnvshmem3", R"(libnvshmem3[-\w]*(?::\w+)?\s+)" V, "nvshmem.host_version"},
    {"libnvshmem3", R"(libnvshmem3[-\w]*(?::\w+)?\s+)" V, "nvshmem.version"},
    {"libnvshmem3", R"(libnvshmem3[-\w]*=)" V, "nvshmem.version", Trust::mentioned},
    {"NVSHMEM path", R"(NVSHMEM path:\s*(\S+))", "nvshmem.build_root"},
    {"NVSHMEM_IBGDA_SUPPORT", R"(NVSHMEM_IBGDA_SUPPORT(?::BOOL)?=(ON|1|TRUE))", "nvshmem.ibgda",
     Trust::installed, "true"},
    {"NVSHMEM_IBGDA_SUPPORT", R"(NVSHMEM_IBGDA_SUPPORT(?::BOOL)?=(OFF|0|FALSE))", "nvshmem.ibgda",
     Trust::installed, "false"},
    {"NIC handler will be", R"(NIC handler will be (\w+))", "nvshmem.nic_handler", Trust::running},
    // NCCL
    {"NCCL version ", R"(NCCL version (\d+\.\d+\.\d+))", "nccl.version", Trust::running},
    {"is using nccl==", R"(is using nccl==)" V, "nccl.version", Trust::running},
    {"nvidia", PIP("nvidia[-_]nccl[-_]cu1[1-9]"), "nccl.wheel_version"},
    {"nvidia", PIP("nvidia[-_]nccl[-_]cu1[1-9]"), "nccl.version"},
    LOCKED("nvidia", "nvidia-nccl-cu1[1-9]", "nccl.wheel_version")
        LOCKED("nvidia", "nvidia-nccl-cu1[1-9]", "nccl.version"){
            "but you have nvidia-nccl", R"(but you have nvidia-nccl-cu1\d )" V, "nccl.version"},
    {"libnccl", R"(libnccl\.so\.(\d+\.\d+\.\d+))", "nccl.version", Trust::mentioned},
    {"libnccl2", R"(libnccl2(?::\w+)?\s+)" V, "nccl.version"},
    {"NCCL_VERSION", R"(NCCL_VERSION["']?\s*[=:]\s*["']?v?(\d+\.\d+\.\d+))", "nccl.version",
     Trust::mentioned},
    {"compiled with NCCL", R"((?i)compiled with NCCL[ versionv:]*(\d+\.\d+\.\d+))", "nccl.header_version"},
    {"ginType", R"(\bginType[ =:]+(\d+))", "nccl.gin_type", Trust::running},
    {"NCCL_GIN_TYPE_NONE", R"(NCCL_GIN_TYPE_NONE)", "nccl.gin_type", Trust::mentioned, "0"},
    // PyTorch and CUDA
    {"PyTorch version", R"(PyTorch version:\s*(\d+\.\d+\.\d+\S*))", "torch.version", Trust::running},
    {"CUDA used to build PyTorch", R"(CUDA used to build PyTorch:\s*)" V, "torch.cuda", Trust::running},
    {"compile PyTorch (", R"(compile PyTorch \()" V, "torch.cuda", Trust::running},
    {"detected CUDA version", R"((?i)detected CUDA version \()" V, "cuda.version", Trust::running},
    {"compilation tools, release", R"(release )" V, "cuda.version", Trust::running},
    {"CUDA Version:", R"(CUDA Version:\s*)" V, "cuda.driver_version", Trust::running},
    {"/usr/local/cuda-", R"(/usr/local/cuda-(\d+\.\d+))", "cuda.version", Trust::mentioned},
    {"CUDA_VERSION", R"(CUDA_VERSION["']?\s*[=:]\s*["']?(\d+\.\d+))", "cuda.version", Trust::mentioned},
    {"nvidia/cuda:", R"(nvidia/cuda:(\d+\.\d+))", "cuda.version", Trust::mentioned},
    // Driver and kernel
    {"Driver Version:", R"(Driver Version:\s*(\d{3}\.\d+(?:\.\d+)?))", "driver.version", Trust::running},
    {"Kernel Module", R"(NVIDIA UNIX .*Kernel Module.*?\s(\d{3}\.\d+(?:\.\d+)?))", "driver.version",
     Trust::running},
    {"Open Kernel Module", R"(Open Kernel Module)", "driver.open", Trust::running, "true"},
    {"EnableStreamMemOPs:", R"(EnableStreamMemOPs:\s*(\d+))", "driver.stream_memops", Trust::running},
    {"RegistryDwords:", R"(\bRegistryDwords:.*PeerMappingOverride=(?:0x)?0*1)",
     "driver.peer_mapping_override", Trust::running, "true"},
    {"RegistryDwords:", R"x(\bRegistryDwords:\s*"")x", "driver.peer_mapping_override", Trust::running,
     "false"},
    {"nvidia_peermem", R"(\bnvidia_peermem\s+\d{3,}\s+\d+)", "kernel.peermem", Trust::running, "true"},
    // The users that lsmod names behind nvidia: with peermem, or all of them and not peermem.
    {"nvidia_peermem", R"(\bnvidia\s+\d{5,}\s+\d+\s+\S*nvidia_peermem)", "kernel.peermem", Trust::running,
     "true"},
    {"nvidia_uvm",
     R"(\bnvidia\s+\d{5,}\s+\d+\s+(?:(?:nvidia_(?:uvm|modeset|drm|fs|cspmu)|gdrdrv)[, ]*)+)"
     R"((?:Live.*)?$)",
     "kernel.peermem", Trust::running, "false"},
    {"peermem", R"((?i)lsmod\b.*\bgrep\b[^|]*peermem['"]?\s*(?:$|\|\||;))", "kernel.peermem", Trust::running,
     "false", 0, kNothing},
    {"gdrdrv", R"((?i)lsmod\b.*\bgrep\b[^|]*gdrdrv['"]?\s*(?:$|\|\||;))", "kernel.gdrdrv", Trust::running,
     "false", 0, kNothing},
    {"/sys/module/nvidia_peermem", R"(/sys/module/nvidia_peermem/version["':,]*\s+\d{3}\.\d)",
     "kernel.peermem", Trust::running, "true"},
    {"/sys/module/nvidia_peermem", R"(cat .*/sys/module/nvidia_peermem/version\s*$)", "kernel.peermem",
     Trust::running, "true", 0, R"(^\s*\d{3}\.\d)"},
    {"/sys/module/nvidia_peermem", R"(/sys/module/nvidia_peermem\S*: No such file)", "kernel.peermem",
     Trust::running, "false"},
    {"/sys/module/gdrdrv", R"(/sys/module/gdrdrv\S*: No such file)", "kernel.gdrdrv", Trust::running,
     "false"},
    {"nv_peer_mem", R"(\bnv_peer_mem\s+\d{3,}\s+\d+)", "kernel.peermem_legacy", Trust::running, "true"},
    {"gdrdrv ", R"(\bgdrdrv\s+\d{3,}\s+\d+)", "kernel.gdrdrv", Trust::running, "true"},
    {"/dev/gdrdrv", R"(\bc[rwx-]{9}\S* .*/dev/gdrdrv)", "kernel.gdrdrv_device", Trust::running, "true"},
    {"/dev/gdrdrv", R"(cannot access '?/dev/gdrdrv'?: No such file)", "kernel.gdrdrv_device", Trust::running,
     "false"},
    {"peermem not found", R"(Module nvidia[-_]peermem not found)", "kernel.peermem", Trust::running, "false"},
    {"Max locked memory", R"(Max locked memory\s+(\d+))", "limits.memlock", Trust::running},
    {"Max locked memory", R"(Max locked memory\s+unlimited)", "limits.memlock", Trust::running,
     "18446744073709551615"},
    {"max locked memory", R"(max locked memory\s+\(kbytes, -l\)\s+(\d+))", "limits.memlock", Trust::running,
     "", 1024},
    {"max locked memory", R"(max locked memory\s+\(kbytes, -l\)\s+unlimited)", "limits.memlock",
     Trust::running, "18446744073709551615"},
    {"ulimit -l", R"(ulimit -l\s*$)", "limits.memlock", Trust::running, "", 1024, R"(^\W{0,4}(\d+)\s*$)"},
    {"ulimit -l", R"(ulimit -l\s*$)", "limits.memlock", Trust::running, "18446744073709551615", 0,
     R"(^\W{0,4}unlimited\s*$)"},
    {"ulimit -l", R"((?i)ulimit -l(?: is|:|=| )+(\d+)\b)", "limits.memlock", Trust::mentioned, "", 1024},
    {"/dev/shm", R"(\b(?:shm|tmpfs)\s+([\d.]+)G\s.*\s/dev/shm)", "limits.shm_bytes", Trust::running, "",
     kGiB},
    {"/dev/shm", R"(\b(?:shm|tmpfs)\s+([\d.]+)M\s.*\s/dev/shm)", "limits.shm_bytes", Trust::running, "",
     1048576},
    {"/dev/infiniband", R"((?i)(?:cannot access|cannot open|stat) '?/dev/infiniband\S*: No such file)",
     "container.infiniband", Trust::running, "false"},
    {"nvidia-fabricmanager", R"(nvidia-fabricmanager\S*\s.*\b(inactive|failed|not-found)\b)",
     "driver.fabric_manager", Trust::running},
    {"fabricmanager", R"((?i)fabric ?manager version(?: is)?:?\s*(\d{3}\.\d+(?:\.\d+)?))",
     "driver.fabric_manager_version", Trust::running},
    // DeepEP and consumers
    {"deep_ep", PIP("deep[_-]ep") R"((?:\+\w+)?)", "deepep.version"},
    {"deep_ep", R"(deep_ep[- =]+\d+\.\d+\.\d+\+([0-9a-f]{7,40}))", "deepep.commit"},
    {"deep-ep", PIP("deep[_-]ep"), "deepep.version"},
    LOCKED("deep_ep", "deep[-_]ep", "deepep.version") LOCKED("deep-ep", "deep[-_]ep", "deepep.version"){
        "DeepEP", R"((?i)DeepEP(?:\.git)?@([0-9a-f]{7,40})\b)", "deepep.commit"},
    {".cubin", R"(\bsm_(\d{2,3}[af]?)\.cubin)", "deepep.archs", Trust::running},
    {"deep_ep_cpp", R"(deep_ep_cpp[.\w-]*)", "deepep.generation", Trust::installed, "v1"},
    {"deep_ep/_C", R"(deep_ep/_C)", "deepep.generation", Trust::installed, "v2"},
    {"ElasticBuffer", R"(\bElasticBuffer\b)", "deepep.generation", Trust::mentioned, "v2"},
    {"tests/elastic", R"(tests/elastic)", "deepep.generation", Trust::mentioned, "v2"},
    {"deepep_v2", R"(\bdeepep_v2\b)", "deepep.generation", Trust::mentioned, "v2"},
    {"kernels/backend/nccl", R"(kernels/backend/nccl)", "deepep.generation", Trust::installed, "v2"},
    {"deep_ep/buffer.py", R"(deep_ep/buffer\.py)", "deepep.generation", Trust::mentioned, "v1"},
    {"DeepEP error: timeout", R"(DeepEP error: timeout)", "deepep.generation", Trust::mentioned, "v1"},
    {"deepep_high_throughput", R"(deepep_high_throughput)", "deepep.generation", Trust::mentioned, "v1"},
    {"deepep_low_latency", R"(deepep_low_latency)", "deepep.generation", Trust::mentioned, "v1"},
    {"test_internode", R"(test_internode)", "deepep.generation", Trust::mentioned, "v1"},
    {"test_low_latency", R"(test_low_latency)", "deepep.generation", Trust::mentioned, "v1"},
    {"Arch list:", R"(Arch list:\s*(\S.*))", "deepep.archs"},
    {"vLLM API server version", R"(vLLM API server version )" V, "vllm.version", Trust::running},
    {"LLM engine (v", R"(LLM engine \(v)" V, "vllm.version", Trust::running},
    {"megatron", PIP("megatron[-_]core"), "megatron.version"},
    {"setuptools", PIP("setuptools"), "setuptools.version"},
    {"MLNX_OFED_LINUX-", R"(MLNX_OFED_LINUX-(\d+\.\d+))", "ofed.version"},
    {"OFED-internal-", R"(OFED-internal-(\d+\.\d+))", "ofed.version"},
    {"MLNX_OFED", R"(MLNX_OFED[ _:]*(?:version:?\s*)?(\d+\.\d+))", "ofed.version", Trust::mentioned},
    {"DOCA-OFED", R"(DOCA-OFED[ -]+(\d+\.\d+))", "ofed.version", Trust::mentioned},
    {"gdrcopy", R"((?i)gdrcopy[-_ :=]*v?(\d+\.\d+(?:\.\d+)?))", "gdrcopy.version", Trust::mentioned},
    {"rdma-core", R"(rdma-core[-_ :=]*v?(\d+(?:\.\d+)*))", "rdma_core.version", Trust::mentioned},
    {"python3.", R"(python3\.(\d+)/)", "python.version", Trust::mentioned, "3."},
    // Devices
    {"NVIDIA ", R"(NVIDIA ((?:GB?|B|H|A|L|RTX )[A-Z]*[ ]?[0-9]{2,4}[\w-]*(?: ?NVL| SXM\d?| PCIe)?))",
     "gpu.model", Trust::running},
    {"compute_cap", R"(compute_cap\D*(\d+\.\d))", "gpu.compute_capability", Trust::running, "", 10},
    {"NVIDIA ", R"(NVIDIA [\w ]+, (1?\d\.\d)\s*$)", "gpu.compute_capability", Trust::running, "", 10},
    {"link_layer", R"(link_layer:?\s+(Ethernet|InfiniBand|Unspecified))", "link_layer", Trust::running},
    {"Link layer", R"((?i)link layer:?\s+(Ethernet|InfiniBand|Unspecified))", "link_layer", Trust::running},
    {":1/RoCE", R"(:1/RoCE)", "link_layer", Trust::running, "Ethernet"},
    {"NET/IB : Using", R"(:1/IB\b)", "link_layer", Trust::running, "InfiniBand"},
    {"via NET/IB", R"(via NET/IB)", "nic.driver", Trust::mentioned, "mlx5_core"},
    {"[0]mlx5", R"(\[0\](mlx5_\w+))", "nic.names", Trust::running},
    {" mlx5_", R"( (mlx5_\w+))", "nic.names", Trust::mentioned},
    {"erdma_", R"(\b(erdma_\d+))", "nic.names", Trust::running},
    {" rdmap", R"(\b(rdmap\d+s\d+(?:f\d)?))", "nic.names", Trust::running},
    {"bnxt_re", R"(\b(bnxt_re\w*\d+))", "nic.names", Trust::running},
    {" irdma", R"(\b(irdma\d+))", "nic.names", Trust::running},
    {" rocep", R"(\b(rocep\w+))", "nic.names", Trust::running},
    {"device roce", R"(device (roce\w*))", "nic.names", Trust::running},
    {"device ib", R"(device (ib\w+) is not)", "nic.names", Trust::running},
    {"NET/OFI", R"(NET/OFI .*(?:[Pp]rovider is efa|EFA))", "nic.driver", Trust::running, "efa"},
    {"400 Gb/sec", R"((\d+) Gb/sec)", "perf.line_gbps", Trust::running, "", 0.125},
    // Launch
    {"nNodes", R"(nNodes (\d+))", "nodes", Trust::running},
    {"--nnode", R"((?i)--nnodes?[ =](\d+))", "nodes", Trust::running},
    {"WORLD_SIZE", R"(\bWORLD_SIZE=(\d{1,3})\s.*\btest_(?:internode|low_latency|intranode|ep)\.py)", "nodes"},
    {" --nodes", R"(--nodes[ =](\d+)\b)", "nodes"},
    {"nranks", R"((?i)\bnranks (\d+))", "ranks", Trust::running},
    {"localRanks", R"(localRanks (\d+))", "local_ranks", Trust::running},
    {"world_size", R"(world_size[=: ]+(\d+))", "ranks", Trust::installed},
    {"nproc_per_node", R"(--nproc[_-]per[_-]node[ =](\d+))", "local_ranks", Trust::installed},
    {"docker run", R"(docker run\b)", "container", Trust::mentioned, "docker"},
    {"kubectl", R"(kubectl (?:exec|logs|apply|get|describe))", "container", Trust::mentioned, "kubernetes"},
    {"/.dockerenv", R"(/\.dockerenv)", "container", Trust::mentioned, "docker"},
    {"kubernetes", R"((?i)kubernetes|kubepods)", "container", Trust::mentioned, "kubernetes"},
    {"privileged: true", R"(privileged: true)", "container.privileged", Trust::installed, "true"},
    {"--privileged", R"(--privileged)", "container.privileged", Trust::installed, "true"},
    // Figures
    {"GB/s (RDMA)", R"(([\d.]+) GB/s \(RDMA\))", "perf.rdma_gbps", Trust::running},
    {"GB/s (NVL)", R"(([\d.]+) GB/s \(NVL\))", "perf.nvl_gbps", Trust::running},
    // 0 GB/s of scale-out: all ranks sit in one NVLink domain.
    {"GB/s (SO)", R"((?:^|[^\d.])([1-9][\d.]*|0\.\d*[1-9]\d*) GB/s \(SO\))", "perf.rdma_gbps",
     Trust::running},
    {"GB/s (SU)", R"(([\d.]+) GB/s \(SU\))", "perf.nvl_gbps", Trust::running},
    {"Avg bus bandwidth", R"(Avg bus bandwidth\s*:\s*([\d.]+))", "perf.busbw_gbps", Trust::running},
    // Environment: NAME=value, export, YAML and "set by environment"
    {"set by environment to", R"(\b([A-Z][A-Z0-9_]+) set by environment to (\S+?)\.?$)", "", Trust::running},
};

#define ENV_NAMES                                                                                           \
  "((?:NVSHMEM|NCCL|DEEP_EP|EP|HYBRID_EP|GLOO|SGLANG|VLLM|UCX|FI|CUDA|TORCH|PYTORCH|OMPI|MASTER|LD)_[A-Z0-" \
  "9_]+|WORLD_"                                                                                             \
  "SIZE|RANK|LOCAL_RANK|MAX_JOBS|DISABLE_SM90_FEATURES)"
constexpr const char* kEnvRegex = R"(((?:^|[\s"'{,;:>(\[-]))" ENV_NAMES
                                  R"x(["']?\]?\s?(?:=\s?|:\s*)(?:"([^"]*)"|'([^']*)'|([^\s"',;)\]]*))))x";
// A pod's `- name: X`, its `value: "1"` on the following line; and the same on one line, as JSON prints it.
constexpr const char* kYamlName = R"x(\bname:\s*["']?)x" ENV_NAMES R"x(["']?\s*$)x";
constexpr const char* kYamlValue = R"x(\bvalue:\s*["']?([^"'#]*?)["']?\s*$)x";
constexpr const char* kJsonPair = R"x("name":\s*")x" ENV_NAMES R"x(",\s*"value":\s*"([^"]*)")x";
const char* const kEnvLiterals[] = {
    "NVSHMEM_",     "NCCL_IB",       "NCCL_NET",    "NCCL_CUMEM",   "NCCL_GIN",    "NCCL_SOCKET",
    "NCCL_P2P",     "NCCL_CROSS",    "NCCL_MNNVL",  "NCCL_TUNER",   "NCCL_SHM",    "NCCL_NVLS",
    "DEEP_EP_",     "EP_NCCL",       "EP_DISABLE",  "EP_SUPPRESS",  "EP_REUSE",    "EP_NIC_NAME",
    "EP_JIT",       "HYBRID_EP_",    "GLOO_SOCKET", "SGLANG_",      "VLLM_ALL",    "VLLM_USE",
    "VLLM_DEEPEP",  "VLLM_HOST",     "VLLM_NCCL",   "CUDA_VISIBLE", "CUDA_HOME",   "TORCH_CUDA",
    "PYTORCH_CUDA", "PYTORCH_ALLOC", "MASTER_ADDR", "MASTER_PORT",  "LD_PRELOAD",  "LD_LIBRARY",
    "WORLD_SIZE",   "LOCAL_RANK",    "MAX_JOBS",    "FI_PROVIDER",  "DISABLE_SM90"};

// Short words of prose and tables; looked for only in the head of a text, where people describe their
// machines.
const Row kHeadRows[] = {
    {"",
     R"(\b((?:GB200|GB300|GH200|GB10|B200|B300|H100|H200|H800|H20|A100|A800|L20|L40S?|A6000)(?:-\w+)?)\b)",
     "gpu.model", Trust::mentioned},
    {"", PIP("torch"), "torch.version"},
    {"", R"((?i)\bgb200[-_][\w.-]*\d:\d+:\d+|\bNVL72\b)", "gpu.model", Trust::mentioned, "GB200"},
    {"", R"((?i)\bgb300[-_][\w.-]*\d:\d+:\d+)", "gpu.model", Trust::mentioned, "GB300"},
    {"", R"(\b(?:srun|salloc|sbatch)\b.* -N ?(\d+)\b)", "nodes"},
    {"", R"((?i)\bnnodes[=:] ?(\d+)\b)", "nodes"},
    {"", R"(\bGPU\d+\s+(?:(?:X|OK|CNS|TNS|GNS|NS)\s+)*(?:CNS|TNS|GNS|NS)\b)", "gpu.p2p", Trust::running,
     "false"},
    {"", R"(\b([a-z]\w+) port \d+ ==> \w)", "nic.names", Trust::running},
    {"", R"(\blink ([a-z]\w+)/\d+ state [A-Z]+ )", "nic.names", Trust::running},
    {"", R"(\b((?:mlx5_|roce|ibp)\w*(?:/ports/\d/counters/port_xmit_data|\s+port_xmit_data)?[\s:=]+\d+)\s*$)",
     "nic.traffic", Trust::running},
    {"", R"(\b((?:mlx5_\d+|roce\w+|ibp\w+)[\s:=|]+\d+(?:\.\d+)? [KMG][Bb](?:/s|ps|it/s))\s*$)", "nic.traffic",
     Trust::running},
    {"", R"((?i)\btorch(?:==|[-:\s]+)(\d+\.\d+\.\d+\+cu\d+))", "torch.version"},
    {"", PIP("vllm"), "vllm.version"},
    {"", PIP("sglang"), "sglang.version"},
    {"", PIP("uccl"), "uccl.version"},
    {"", R"((?i)\bNCCL(?: version)?[ :=]+v?(\d+\.\d+\.\d+))", "nccl.version", Trust::mentioned},
    {"", R"(\bCUDA[ :=v]+(\d+\.\d+)\b)", "cuda.version", Trust::mentioned},
    {"", R"((?i)\bDeepEP[ :=v]+(\d+\.\d+\.\d+))", "deepep.version", Trust::mentioned},
    {"", R"((?i)\bDeepEP[ :=]+(?:commit )?([0-9a-f]{7,40})\b)", "deepep.commit", Trust::mentioned},
    {"", R"((?i)\bdriver(?: version)?[ :=]+(\d{3}\.\d+(?:\.\d+)?))", "driver.version", Trust::mentioned},
    {"", R"((?i)\bRoCE(?: ?v2)?\b)", "link_layer", Trust::mentioned, "Ethernet"},
    {"", R"((?i)\bInfiniBand\b.*\b(?:NDR|HDR|fabric|cluster|network)|\bIB (?:NDR|HDR|network|fabric))",
     "link_layer", Trust::mentioned, "InfiniBand"},
    {"", R"((?i)\b(\d{1,3}) (?:(?:prefill|decode|GPU|compute|worker|[HD]GX|GB?\d+|[HBA]\d+) )?nodes?\b)",
     "nodes", Trust::mentioned},
    {"", R"((?i)\b(\d{1,3}) ?[x×*] ?8 ?(?:[x×*] ?)?(?:NVIDIA )?(?:GB?|B|H|A)\d{2,3})", "nodes",
     Trust::mentioned},
    {"", R"((?i)\b(?:single|one)[- ]node\b)", "nodes", Trust::mentioned, "1"},
    {"", R"((?i)\b(?:two|both|multi(?:ple)?)[- ]?(?:nodes?|machines|hosts|servers)\b)", "nodes",
     Trust::mentioned, "2"},
    {"", R"((?i)\bfour[- ](?:nodes?|machines|hosts|servers)\b)", "nodes", Trust::mentioned, "4"},
    {"", R"((?i)\b(\d{1,3}) ?[x×*] ?(?:p[45]\w*\.\d+xlarge|p6-b|DGX|HGX))", "nodes", Trust::mentioned},
    {"", R"((?i)peermem\b[^.;]{0,40}\b(?:is |are |already )*(?:not|isn't|aren't) loaded)", "kernel.peermem",
     Trust::mentioned, "false"},
    {"", R"((?i)lsmod shows nvidia_peermem|peermem (?:is |module |was |already |and \w+ (?:are )?)*loaded)",
     "kernel.peermem", Trust::mentioned, "true"},
    {"", R"((?i)\b400 ?G(?:b/s|bps|bE|E|b)?\b|\bNDR\b)", "perf.line_gbps", Trust::mentioned, "50"},
    {"", R"((?i)\bshmem_put_bw\D{1,12}(\d+(?:\.\d+)?) ?GB/s)", "perf.line_gbps", Trust::running},
    {"", R"((?i)\b(?:p5(?:en|e)?\.48xlarge|p5en|p6e?-[bg]\w*\.|p6-b\d00|hyperpod|\bEFA\b))", "cloud",
     Trust::mentioned, "aws"},
    {"", R"((?i)\b(?:a3-ultragpu|a3-megagpu|a4-highgpu|a4x-|GKE)\b)", "cloud", Trust::mentioned, "gcp"},
    {"", R"((?i)\b(?:Standard_ND\w+|Azure)\b)", "cloud", Trust::mentioned, "azure"},
    {"", R"((?i)\b(?:aliyun|alibaba|eRDMA)\b)", "cloud", Trust::mentioned, "alibaba"},
    {"", R"((?i)\beRDMA\b)", "nic.driver", Trust::mentioned, "erdma"},
    {"", R"(\bEFA\b)", "nic.driver", Trust::mentioned, "efa"},
    {"", R"((?i)\b(?:ConnectX-?|CX-?)(\d)\b)", "nic.model", Trust::mentioned},
    {"", R"((?i)\bk8s\b|\bpods?\b|@[a-z-]*pod[-\w]* )", "container", Trust::mentioned, "kubernetes"},
    {"", R"((?i)\bdocker\b)", "container", Trust::mentioned, "docker"},
    {"", R"(gcc(?: version| \(.*\))? (\d+\.\d+))", "gcc.version", Trust::mentioned},
    {"", R"(^Linux \S+ (\d+\.\d+\.\d+))", "kernel.version", Trust::running},
    {"", R"(\b(aarch64|x86_64)\b)", "arch", Trust::mentioned},
};

FactPattern make(const Row& r) {
  FactPattern f;
  if (*r.literal) f.pattern.literals = {r.literal};
  std::string error;
  f.pattern.regex_text = r.regex;
  f.pattern.regex = compile_regex(r.regex, false, &error);
  if (starts_with(r.regex, "(?i)")) f.pattern.ignore_case = true;
  f.fact = r.fact;
  f.trust = r.trust;
  f.value = r.value;
  f.factor = r.factor;
  if (r.next) f.next = compile_regex(r.next, false, &error);
  return f;
}

}  // namespace

const std::vector<FactPattern>& fact_patterns() {
  static const std::vector<FactPattern> kPatterns = [] {
    std::vector<FactPattern> out;
    for (const Row& r : kRows) out.push_back(make(r));
    for (const char* literal : kEnvLiterals) {
      out.push_back(make({literal, kEnvRegex, "", Trust::installed}));
      out.push_back(make({literal, kYamlName, "", Trust::installed, "", 0, kYamlValue}));
      out.push_back(make({literal, kJsonPair, "", Trust::installed}));
    }
    for (const Row& r : kHeadRows) out.push_back(make(r));
    return out;
  }();
  return kPatterns;
}

void read_text_fact(const FactPattern& row, std::string_view line, std::string_view next,
                    const Evidence& where, Observed& observed) {
  const re2::RE2& re = *row.pattern.regex;
  std::string below;
  const auto follows = [&](std::string_view text) {
    return row.value.empty() ? re2::RE2::PartialMatch(text, *row.next, &below)
                             : re2::RE2::PartialMatch(text, *row.next);
  };
  if (row.next && !follows(next) && !follows(past_prefix(next))) return;
  if (row.fact.empty()) {  // environment: all assignments of the line
    std::string_view rest = line;
    std::string name, a, b, c;
    if (row.next) {
      if (re2::RE2::PartialMatch(line, re, &name)) observed.add("env." + name, below, where, row.trust);
      return;
    }
    if (re.NumberOfCapturingGroups() < 5) {
      if (re2::RE2::PartialMatch(line, re, &name, &a)) observed.add("env." + name, a, where, row.trust);
      return;
    }
    std::string whole;
    while (re2::RE2::PartialMatch(rest, re, &whole, &name, &a, &b, &c)) {
      const std::string value = !a.empty() ? a : !b.empty() ? b : c;
      if (value.find('$') == std::string::npos) observed.add("env." + name, value, where, row.trust);
      rest.remove_prefix(std::min(rest.size(), rest.find(whole) + std::max<size_t>(whole.size(), 1)));
    }
    return;
  }
  // A version that is going away, or one that a package asks for, is not the one that is there.
  if (contains(row.fact, "version") &&
      (contains(line, "Found existing installation") || contains(line, "ninstalling ")))
    return;
  if (contains(row.fact, "version"))
    if (const size_t have = line.find("but you have "); have != line.npos && have > 0)
      return read_text_fact(row, line.substr(have), next, where, observed);
  std::string value = row.value;
  if (value.empty() || ends_with(value, ".")) {
    std::string group = below;
    if (!row.next && (re.NumberOfCapturingGroups() < 1 || !re2::RE2::PartialMatch(line, re, &group))) return;
    if (row.factor != 0) {
      auto n = parse_double(group);
      if (!n || std::fabs(*n * row.factor) > 9e15) return;
      group = std::to_string(std::llround(*n * row.factor));
    }
    value += group;
  }
  observed.add(row.fact, std::move(value), where, row.trust);
}

}  // namespace ep
