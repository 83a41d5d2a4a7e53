// Checks of the kernel, limits, memory and the container.
#include "base/version.h"
#include "check/areas.h"
#include "check/result.h"

namespace ep {
using namespace check_detail;

CheckResult check_kernel_ptrace(const Facts& f, const Words& w) {
  // DeepEP V2 shares memory by pidfd_getfd, which the kernel guards like ptrace (needs Linux 5.6).
  if (f.os.kernel_release.ok() && compare_versions(VersionOrder::dotted, *f.os.kernel_release, "5.6") < 0)
    return bad(
        Verdict::fail,
        w("kernel {} has no pidfd_getfd (5.6)", "内核 {} 没有 pidfd_getfd（需 5.6）", *f.os.kernel_release),
        f.os.kernel_release.where, "epready lanes");
  if (f.kernel.ptrace_scope.known == Known::absent)
    return pass(w("Yama is not in this kernel", "内核没有启用 Yama"), f.kernel.ptrace_scope.where);
  if (!f.kernel.ptrace_scope.ok())
    return unknown(f.kernel.ptrace_scope, w, "cat /proc/sys/kernel/yama/ptrace_scope");
  if (*f.kernel.ptrace_scope > 1)
    return bad(Verdict::warn,
               w("ptrace_scope is {}: ranks may not open each other's memory",
                 "ptrace_scope 为 {}：rank 之间可能无法互开内存", *f.kernel.ptrace_scope),
               f.kernel.ptrace_scope.where, "sudo sysctl kernel.yama.ptrace_scope=1");
  return pass(fmt::format("ptrace_scope = {}", *f.kernel.ptrace_scope), f.kernel.ptrace_scope.where);
}

CheckResult check_kernel_dmabuf(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  bool peermem = f.kernel.module("nvidia_peermem") != nullptr;
  if (peermem) return pass(w("nvidia-peermem is loaded", "已加载 nvidia-peermem"), "/proc/modules");
  if (!f.kernel.p2pdma_config.ok())
    return unknown(f.kernel.p2pdma_config, w, "grep -E 'PCI_P2PDMA|DMABUF' /boot/config-$(uname -r)");
  bool open_module = f.driver.open_kernel_module.value_or(false);
  bool kernel_ok =
      f.os.kernel_release.ok() && compare_versions(VersionOrder::dotted, *f.os.kernel_release, "5.12") >= 0;
  if (*f.kernel.p2pdma_config == "y" && open_module && kernel_ok)
    return pass(w("DMA-BUF: open module, kernel with P2PDMA", "DMA-BUF：开源模块与带 P2PDMA 的内核"),
                f.kernel.p2pdma_config.where);
  return bad(Verdict::fail,
             w("neither nvidia-peermem nor DMA-BUF can register GPU memory with a NIC",
               "nvidia-peermem 与 DMA-BUF 都不可用，网卡无法注册显存"),
             f.kernel.p2pdma_config.where, "epready plan");
}

CheckResult check_kernel_nouveau(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  if (f.kernel.module("nouveau"))
    return bad(Verdict::fail, w("nouveau holds the GPU", "nouveau 占用了 GPU"), "/proc/modules",
               "epready plan");
  if (!f.kernel.modules_readable.ok()) return unknown(f.kernel.modules_readable, w, "lsmod");
  return pass(w("nouveau is not loaded", "未加载 nouveau"), "/proc/modules");
}

CheckResult check_kernel_peermem(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  if (f.kernel.module("nvidia_peermem") && f.kernel.module("nv_peer_mem"))
    return bad(
        Verdict::fail,
        w("nv_peer_mem and nvidia_peermem are both loaded", "同时加载了 nv_peer_mem 与 nvidia_peermem"),
        "/proc/modules", "sudo rmmod nv_peer_mem");
  if (!f.kernel.modules_readable.ok()) return unknown(f.kernel.modules_readable, w, "lsmod");
  return pass(w("no competing peer-memory modules", "没有相互冲突的 peer-memory 模块"), "/proc/modules");
}

CheckResult check_kernel_headers(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  if (f.container.runtime.value_or("none") != "none")
    return skip(
        w("a container builds no kernel module: the node's business", "容器不编译内核模块：由节点负责"));
  if (f.kernel.headers.known == Known::absent || (f.kernel.headers.ok() && !*f.kernel.headers))
    return bad(Verdict::warn,
               w("headers of the running kernel are missing: drivers by DKMS cannot be built",
                 "缺少当前内核的头文件：DKMS 驱动无法编译"),
               f.kernel.headers.where, "sudo apt-get install linux-headers-$(uname -r)");
  if (!f.kernel.headers.ok()) return unknown(f.kernel.headers, w);
  return pass(w("kernel headers are there", "内核头文件齐全"), f.kernel.headers.where);
}

CheckResult check_secure_boot(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  if (f.kernel.secure_boot.known == Known::absent)
    return pass(w("no UEFI variables: secure boot is not in force", "没有 UEFI 变量：未启用安全启动"),
                f.kernel.secure_boot.where);
  if (!f.kernel.secure_boot.ok()) return unknown(f.kernel.secure_boot, w, "mokutil --sb-state");
  if (*f.kernel.secure_boot)
    return bad(Verdict::warn,
               w("secure boot is on: DKMS modules need an enrolled key",
                 "安全启动已开启：DKMS 模块需要登记签名密钥"),
               f.kernel.secure_boot.where, "mokutil --list-enrolled");
  return pass(w("secure boot is off", "安全启动已关闭"), f.kernel.secure_boot.where);
}

CheckResult check_apt_keys(const Facts& f, const Words& w) {
  if (f.apt_sources.empty())
    return none_here(f, w, w("no apt sources are readable here", "本机没有可读的 apt 源"));
  for (const auto& s : f.apt_sources) {
    bool vendor = contains(s.uri, "nvidia") || contains(s.uri, "mellanox");
    if (vendor && !s.signed_by.ok())
      return bad(Verdict::warn,
                 w("{} has no signed-by key: any key of the system may sign it",
                   "{} 没有 signed-by：系统内任何密钥都可为其签名", s.uri),
                 s.path, "epready plan");
  }
  return pass(w("vendor sources name their key", "厂商源都指定了密钥"), f.apt_sources[0].path);
}

CheckResult check_memlock(const Facts& f, const Words& w) {
  if (!f.limits.memlock.ok()) return unknown(f.limits.memlock, w, "ulimit -l");
  if (*f.limits.memlock == "unlimited")
    return pass(w("memlock is unlimited", "memlock 无限制"), f.limits.memlock.where);
  return bad(
      Verdict::fail,
      w("memlock is limited to {} bytes: RDMA registration will fail",
        "memlock 限制为 {} 字节：RDMA 注册会失败", *f.limits.memlock),
      f.limits.memlock.where,
      f.container.runtime.value_or("none") == "none" ? "epready plan" : "docker run --ulimit memlock=-1");
}

CheckResult check_nofile(const Facts& f, const Words& w) {
  if (!f.limits.nofile.ok()) return unknown(f.limits.nofile, w, "ulimit -n");
  if (*f.limits.nofile < 65536)
    return bad(Verdict::warn,
               w("open files are limited to {} (65536 is enough)", "可打开文件数为 {}（建议 65536）",
                 *f.limits.nofile),
               f.limits.nofile.where, "ulimit -n 65536");
  return pass(fmt::format("nofile = {}", *f.limits.nofile), f.limits.nofile.where);
}

CheckResult check_shm(const Facts& f, const Words& w) {
  if (!f.limits.shm_bytes.ok()) return unknown(f.limits.shm_bytes, w, "df -h /dev/shm");
  double gib = double(*f.limits.shm_bytes) / double(1ull << 30);
  if (gib < 1)
    return bad(Verdict::fail,
               w("/dev/shm is {:.2f} GiB; one engine needs 1 GiB, 16 GiB is recommended",
                 "/dev/shm 只有 {:.2f} GiB；至少 1 GiB，建议 16 GiB", gib),
               f.limits.shm_bytes.where,
               f.container.runtime.value_or("none") == "none" ? "sudo mount -o remount,size=16G /dev/shm"
                                                              : "docker run --shm-size=16g  (or --ipc=host)");
  return pass(fmt::format("/dev/shm {:.1f} GiB", gib), f.limits.shm_bytes.where);
}

CheckResult check_container_devices(const Facts& f, const Words& w) {
  if (!f.container.runtime.ok()) return unknown(f.container.runtime, w);
  if (*f.container.runtime == "none") return skip(w("not a container", "不在容器中"));
  if (only_shown(f)) {
    if (f.paste.verbs_nodes.ok() && !*f.paste.verbs_nodes)
      return bad(Verdict::fail, w("/dev/infiniband is not in this container", "容器内没有 /dev/infiniband"),
                 f.paste.verbs_nodes.where,
                 *f.container.runtime == "kubernetes"
                     ? "epready lanes"
                     : "docker run --device=/dev/infiniband --cap-add=IPC_LOCK --network=host");
    if (f.container.devices.empty()) return not_shown(w, "ls /dev/infiniband");
    return pass(w("verbs device nodes are passed in", "verbs 设备节点已传入容器"), "/dev/infiniband");
  }
  bool ib = false, gpu = false;
  for (const auto& d : f.container.devices)
    ib |= contains(d, "/dev/infiniband/uverbs"), gpu |= starts_with(d, "/dev/nvidia0");
  if (!f.gpus.empty() && !gpu)
    return bad(Verdict::fail,
               w("GPUs are on the bus, /dev/nvidia* is not in this container",
                 "总线上有 GPU，但容器内没有 /dev/nvidia*"),
               "/dev", "docker run --gpus all");
  if (!f.rdma.empty() && !ib)
    return bad(Verdict::fail,
               w("RDMA devices are in sysfs, /dev/infiniband is not in this container",
                 "sysfs 有 RDMA 设备，但容器内没有 /dev/infiniband"),
               "/dev/infiniband", "docker run --device=/dev/infiniband --cap-add=IPC_LOCK --network=host");
  return pass(w("device nodes are passed in", "设备节点已传入容器"), "/dev");
}

CheckResult check_memory(const Facts& f, const Words& w) {
  if (!f.cpu.memory_available_bytes.ok()) return unknown(f.cpu.memory_available_bytes, w, "free -g");
  // The local lane at the requirement's shape (2048 tokens x 4 ranks) holds about 1 GB.
  double gb = double(*f.cpu.memory_available_bytes) / 1e9;
  if (gb < 2)
    return bad(Verdict::warn,
               w("{:.1f} GB of memory are free; the local run will be scaled down",
                 "可用内存 {:.1f} GB；本地测试会缩小规模", gb),
               f.cpu.memory_available_bytes.where, "epready bench --num-tokens 256");
  return pass(w("{:.1f} GB of memory are free", "可用内存 {:.1f} GB", gb),
              f.cpu.memory_available_bytes.where);
}

}  // namespace ep
