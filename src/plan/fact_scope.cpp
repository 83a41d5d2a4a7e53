#include "plan/fact_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/version.h"

namespace ep {
namespace {

Named named(std::string text, std::string why = {}) {
  return {true, true, std::move(text), std::move(why), {}};
}
Named missing(std::string why = {}) {
  return {true, false, {}, std::move(why), {}};
}
Named unknown(std::string why) {
  return {false, false, {}, std::move(why), {}};
}
Named yes_no(bool b, std::string why = {}) {
  return named(b ? "true" : "false", std::move(why));
}

std::string show(const std::string& v) {
  return v;
}
std::string show(bool v) {
  return v ? "true" : "false";
}
template <class T>
requires std::is_arithmetic_v<T> std::string show(T v) {
  return fmt::format("{}", v);
}

/// absent is known to be absent; unreadable and malformed are not known.
template <class T>
Named of(const Fact<T>& f) {
  if (f.known == Known::yes) return named(show(f.value), f.where);
  if (f.known == Known::absent) return missing(f.why.empty() ? f.where : f.why);
  return unknown(f.why.empty() ? f.where : f.why);
}
/// The same for facts that every machine has: absent means that nobody looked.
template <class T>
Named always(const Fact<T>& f) {
  if (f.known == Known::absent) return unknown(f.why.empty() ? f.where : f.why);
  return of(f);
}

bool nothing_seen(const Facts& f) {
  return f.host_kind == "paste" && f.pci.empty();
}

Named gpu_count(const Facts& f) {
  if (f.gpus.empty() && nothing_seen(f)) {
    const size_t rows = f.matrices.empty()
                            ? 0
                            : size_t(std::count_if(f.matrices[0].rows.begin(), f.matrices[0].rows.end(),
                                                   [](const auto& r) { return starts_with(r, "GPU"); }));
    if (rows == 0) return unknown("the text does not show GPUs");
    return named(std::to_string(rows), "rows of nvidia-smi topo -m");
  }
  return named(std::to_string(f.gpus.size()), "PCI and nvidia-smi");
}
Named compute_capability(const Facts& f) {
  if (f.gpus.empty()) return nothing_seen(f) ? unknown("the text does not show GPUs") : missing("no GPU");
  int least = 0;
  std::string why;
  for (const auto& g : f.gpus) {
    if (!g.compute_capability.ok()) {
      why = g.compute_capability.why;
      continue;
    }
    if (least == 0 || *g.compute_capability < least) least = *g.compute_capability;
  }
  if (least == 0) return unknown(why.empty() ? "no GPU tells its compute capability" : why);
  return named(std::to_string(least), "nvidia-smi");
}
Named gpu_model(const Facts& f) {
  for (const auto& g : f.gpus)
    if (g.name.ok()) return named(*g.name, g.name.where);
  return f.gpus.empty() && !nothing_seen(f) ? missing("no GPU") : unknown("no GPU tells its name");
}
Named gpu_mig(const Facts& f) {
  Named out = missing("not told");
  for (const auto& g : f.gpus) {
    if (g.mig_mode.ok() && *g.mig_mode == "Enabled") return named("Enabled", g.mig_mode.where);
    if (g.mig_mode.ok() && *g.mig_mode == "Disabled") out = named("Disabled", g.mig_mode.where);
  }
  return out;
}
Named gpu_p2p(const Facts& f) {
  if (!f.p2p_known.ok()) return unknown("nvidia-smi topo -p2p was not read");
  return yes_no(f.p2p_bad_pairs.empty(), f.p2p_bad_pairs.empty() ? "" : f.p2p_bad_pairs.front());
}
/// Products without an NVLink connector. Source: NVIDIA's data sheets of these boards.
bool made_without_nvlink(std::string_view name) {
  for (std::string_view head : {"NVIDIA ", "Tesla "})
    if (starts_with(name, head)) name.remove_prefix(head.size());
  for (std::string_view model :
       {"L40S", "L40", "L20", "L4", "L2", "T4", "A10", "A10G", "A16", "A2", "RTX 6000 Ada", "RTX PRO 6000"})
    if (starts_with(name, model) && (name.size() == model.size() || name[model.size()] == ' ')) return true;
  return false;
}

/// Whether GPUs of this host have NVLink between them: link states, else the matrix of nvidia-smi.
Named gpu_nvlink(const Facts& f) {
  bool told = false;
  for (const auto& g : f.gpus) {
    if (g.nvlinks_up.ok() && *g.nvlinks_up > 0) return yes_no(true, g.nvlinks_up.where);
    told = told || g.nvlinks_up.ok();
  }
  for (const auto& m : f.matrices) {
    if (m.pcie_only) continue;
    for (size_t i = 0; i < m.labels.size(); ++i)
      for (size_t j = 0; j < m.labels.size(); ++j) {
        if (i == j || !starts_with(m.labels[i], "GPU") || !starts_with(m.labels[j], "GPU") ||
            m.cells[i][j].empty())
          continue;
        if (starts_with(m.cells[i][j], "NV")) return yes_no(true, m.source);
        told = true;
      }
  }
  for (const auto& g : f.gpus)
    if (g.name.ok() && made_without_nvlink(*g.name)) return yes_no(false, *g.name + " has none");
  return told ? yes_no(false, "nvidia-smi")
              : unknown("neither nvlink states nor nvidia-smi topo -m was read");
}
Named amd_gpus(const Facts& f) {
  return f.num_amd_gpus.ok() ? of(f.num_amd_gpus) : named("0");
}

Named peer_mapping(const Facts& f) {
  for (const auto& o : f.driver.options) {
    if (o.name != "NVreg_RegistryDwords") continue;
    if (!o.live.ok()) return of(o.live);
    const auto found = f.driver.registry_dwords.find("PeerMappingOverride");
    return yes_no(found != f.driver.registry_dwords.end() && found->second == 1, o.live.where);
  }
  if (!f.driver.version.ok()) return of(f.driver.version);
  if (f.driver.registry_dwords.empty()) return unknown("/proc/driver/nvidia/params was not read");
  const auto found = f.driver.registry_dwords.find("PeerMappingOverride");
  return yes_no(found != f.driver.registry_dwords.end() && found->second == 1);
}
Named stream_memops(const Facts& f) {
  for (const auto& o : f.driver.options)
    if (o.name == "NVreg_EnableStreamMemOPs")
      return o.live.ok() ? yes_no(*o.live == "1", o.live.where) : of(o.live);
  return missing("not set");
}

Named nic_count(const Facts& f) {
  if (!f.rdma.empty()) return named(std::to_string(compute_nics(f).size()), "/sys/class/infiniband");
  if (f.rdma_readable.known == Known::unreadable || f.rdma_readable.known == Known::malformed)
    return unknown(f.rdma_readable.why);
  if (f.host_kind == "paste") return unknown("the text does not show RDMA devices");
  return named("0", "/sys/class/infiniband");
}
template <class F>
Named majority(const Facts& f, F value) {
  const auto nics = compute_nics(f);
  if (nics.empty()) {
    const Named count = nic_count(f);
    return count.known ? missing("no RDMA device") : count;
  }
  std::map<std::string, int> votes;
  std::string why;
  for (const auto* n : nics) {
    const Fact<std::string> v = value(*n);
    if (v.ok())
      ++votes[*v];
    else
      why = v.why;
  }
  if (votes.empty()) return unknown(why.empty() ? "no RDMA device tells" : why);
  const auto best = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return named(best->first, "/sys/class/infiniband");
}
Named nic_driver(const Facts& f) {
  return majority(f, [](const RdmaDevice& n) { return n.driver; });
}
Named link_layer(const Facts& f) {
  return majority(f, [](const RdmaDevice& n) {
    return n.ports.empty() ? absent<std::string>("ports") : n.ports[0].link_layer;
  });
}
Named nic_names(const Facts& f) {
  const auto nics = compute_nics(f);
  if (nics.empty()) return majority(f, [](const RdmaDevice& n) { return n.driver; });
  for (const auto* n : nics)
    if (!starts_with(n->name, "mlx5_")) return named(n->name, "/sys/class/infiniband");
  return named("mlx5", "/sys/class/infiniband");
}
Named nic_active(const Facts& f) {
  const Named count = nic_count(f);
  if (!count.known) return count;
  int n = 0;
  for (const auto* d : compute_nics(f))
    for (const auto& p : d->ports)
      if (p.state.ok() && icontains(*p.state, "ACTIVE")) ++n;
  return named(std::to_string(n), "/sys/class/infiniband");
}

Named module_loaded(const Facts& f, const char* name) {
  if (f.kernel.module(name)) return yes_no(true, "/proc/modules");
  if (!f.kernel.modules_readable.ok()) return unknown(f.kernel.modules_readable.why);
  return yes_no(false, "/proc/modules");
}
Named dmabuf(const Facts& f) {
  if (f.driver.open_kernel_module.ok() && !*f.driver.open_kernel_module)
    return yes_no(false, "closed kernel modules");
  if (f.kernel.dmabuf_config.ok() && *f.kernel.dmabuf_config == "n")
    return yes_no(false, "kernel configuration");
  if (!f.os.kernel_release.ok() || !f.driver.open_kernel_module.ok())
    return unknown("kernel or driver flavour not known");
  const bool old = compare_versions(VersionOrder::dotted, *f.os.kernel_release, "5.12") < 0;
  return yes_no(!old, fmt::format("kernel {} with open modules", *f.os.kernel_release));
}
Named python_version(const Facts& f) {
  std::string best;
  for (const auto& p : f.python)
    if (p.version.ok() && !p.is_virtual &&
        (best.empty() || compare_versions(VersionOrder::pep440, *p.version, best) > 0))
      best = *p.version;
  return best.empty() ? unknown("no Python was found") : named(best);
}
Named nccl_packages(const Facts& f) {
  size_t most = 0;
  for (const auto& e : f.python) {
    std::set<std::string> names;
    for (const auto& p : e.packages)
      if (starts_with(p.name, "nvidia-nccl-cu")) names.insert(p.name);
    most = std::max(most, names.size());
  }
  return most == 0 ? missing("no NCCL wheel") : named(std::to_string(most));
}
/// Of the environment that holds a deep_ep which epready built.
Named nvshmem_device(const Facts& f) {
  for (const auto& p : f.parts)
    if (p.name == "deepep" && p.stamp.count("nvshmem")) return named(p.stamp.at("nvshmem"), p.root);
  return missing("no stamped deep_ep");
}
Named nvshmem_host(const Facts& f) {
  for (const auto& part : f.parts) {
    if (part.name != "deepep" || !part.stamp.count("nvshmem")) continue;
    const std::string prefix = part.root.substr(0, part.root.rfind('/'));
    for (const auto& e : f.python)
      if (starts_with(e.root, prefix))
        for (const auto& p : e.packages)
          if (starts_with(p.name, "nvidia-nvshmem-cu")) return named(p.version, p.location);
  }
  return missing("no NVSHMEM beside a stamped deep_ep");
}
Named package_version(const Facts& f, const char* name) {
  if (const Package* p = f.package(name)) return named(p->version, "dpkg");
  return f.packages_readable.ok() ? missing("not installed") : unknown(f.packages_readable.why);
}
Named tool_version(const Facts& f, const char* name) {
  const Tool* t = f.tool(name);
  return t ? of(t->version) : unknown("not looked for");
}

}  // namespace

std::vector<const RdmaDevice*> compute_nics(const Facts& facts) {
  double best = 0;
  const auto rate = [](const RdmaDevice& d) {
    double r = 0;
    for (const auto& p : d.ports) r = std::max(r, p.rate_gbps.value_or(0));
    return r;
  };
  for (const auto& d : facts.rdma) best = std::max(best, rate(d));
  std::vector<const RdmaDevice*> out;
  for (const auto& d : facts.rdma)
    if (best == 0 || rate(d) >= best / 2) out.push_back(&d);
  return out;
}

const std::vector<FactRow>& fact_rows() {
  using F = const Facts&;
  static const std::vector<FactRow> rows = {
      {"os.id", {"distribution", "发行版"}, [](F f) { return always(f.os.id); }},
      {"os.version", {"distribution version", "发行版版本"}, [](F f) { return of(f.os.version_id); }},
      {"kernel.version", {"running kernel", "运行中的内核"}, [](F f) { return always(f.os.kernel_release); }},
      {"arch", {"processor architecture", "处理器架构"}, [](F f) { return always(f.os.architecture); }},
      {"gpu.count", {"NVIDIA GPUs", "NVIDIA GPU 数"}, gpu_count},
      {"gpu.compute_capability", {"least compute capability", "最低计算能力"}, compute_capability},
      {"gpu.model", {"GPU model", "GPU 型号"}, gpu_model},
      {"gpu.mig", {"MIG mode", "MIG 模式"}, gpu_mig},
      {"gpu.p2p", {"all GPU pairs reach each other", "所有 GPU 对可直连"}, gpu_p2p},
      {"gpu.nvlink", {"GPUs are joined by NVLink", "GPU 之间有 NVLink"}, gpu_nvlink},
      {"gpu.amd", {"AMD GPUs", "AMD GPU 数"}, amd_gpus},
      {"driver.version", {"NVIDIA driver", "NVIDIA 驱动"}, [](F f) { return of(f.driver.version); }},
      {"driver.open",
       {"open kernel modules", "开源内核模块"},
       [](F f) { return of(f.driver.open_kernel_module); }},
      {"driver.peer_mapping_override",
       {"PeerMappingOverride=1 is live", "PeerMappingOverride=1 已生效"},
       peer_mapping},
      {"driver.stream_memops",
       {"EnableStreamMemOPs=1 is live", "EnableStreamMemOPs=1 已生效"},
       stream_memops},
      {"nic.count", {"RDMA NICs for compute", "计算用 RDMA 网卡数"}, nic_count},
      {"nic.active", {"active ports of them", "其中活动端口数"}, nic_active},
      {"nic.driver", {"their kernel driver", "其内核驱动"}, nic_driver},
      {"nic.names", {"mlx5, or the first other name", "mlx5，或第一个其他名字"}, nic_names},
      {"link_layer", {"InfiniBand or Ethernet", "InfiniBand 或 Ethernet"}, link_layer},
      {"kernel.peermem",
       {"nvidia_peermem is loaded", "nvidia_peermem 已加载"},
       [](F f) { return module_loaded(f, "nvidia_peermem"); }},
      {"kernel.dmabuf", {"DMA-BUF is possible", "可用 DMA-BUF"}, dmabuf},
      {"kernel.gdrdrv_device",
       {"/dev/gdrdrv is usable", "/dev/gdrdrv 可用"},
       [](F f) {
         return f.kernel.gdrdrv_device.known == Known::absent ? yes_no(false, "/dev/gdrdrv")
                                                              : of(f.kernel.gdrdrv_device);
       }},
      {"kernel.secure_boot", {"Secure Boot", "安全启动"}, [](F f) { return of(f.kernel.secure_boot); }},
      {"kernel.headers",
       {"headers of the running kernel", "当前内核头文件"},
       [](F f) { return of(f.kernel.headers); }},
      {"limits.memlock",
       {"bytes or unlimited", "字节数或 unlimited"},
       [](F f) { return always(f.limits.memlock); }},
      {"limits.shm_bytes", {"size of /dev/shm", "/dev/shm 大小"}, [](F f) { return of(f.limits.shm_bytes); }},
      {"container",
       {"container runtime or none", "容器运行时或 none"},
       [](F f) { return always(f.container.runtime); }},
      {"container.privileged", {"privileged", "特权"}, [](F f) { return of(f.container.privileged); }},
      {"container.host_network",
       {"host's network", "主机网络"},
       [](F f) { return of(f.container.host_network); }},
      {"container.host_pid", {"host's processes", "主机进程"}, [](F f) { return of(f.container.host_pid); }},
      {"container.host_mount",
       {"host's root at /host", "主机根挂载于 /host"},
       [](F f) { return of(f.container.host_mount); }},
      {"cloud", {"cloud or none", "云厂商或 none"}, [](F f) { return always(f.platform.cloud); }},
      {"machine_type", {"instance type", "实例类型"}, [](F f) { return of(f.platform.machine_type); }},
      {"gib.dir", {"folder of gIB", "gIB 目录"}, [](F f) { return of(f.platform.gib_dir); }},
      {"python.version", {"newest system Python", "系统最新 Python"}, python_version},
      {"gcc.version", {"host compiler", "主机编译器"}, [](F f) { return tool_version(f, "gcc"); }},
      {"rdma_core.version",
       {"rdma-core package", "rdma-core 软件包"},
       [](F f) { return package_version(f, "rdma-core"); }},
      {"nccl.packages", {"NCCL wheels in one environment", "同一环境中的 NCCL wheel 数"}, nccl_packages},
      {"nvshmem.host_version", {"NVSHMEM wheel beside deep_ep", "deep_ep 旁的 NVSHMEM"}, nvshmem_host},
      {"nvshmem.device_version", {"NVSHMEM baked into deep_ep", "编入 deep_ep 的 NVSHMEM"}, nvshmem_device},
  };
  return rows;
}

Scope fact_scope(const Facts& facts) {
  Scope out;
  for (const auto& row : fact_rows()) out.emplace(std::string(row.name), row.value(facts));
  return out;
}

std::vector<std::string> condition_names() {
  std::vector<std::string> out = {"torch.nvshmem",     "torch.nccl",           "build.arch",
                                  "option.gpu",        "option.nodes",         "option.arch",
                                  "option.cccl",       "option.peermem",       "option.nic-handler",
                                  "option.rdma-names", "option.driver-options"};
  for (const auto& row : fact_rows()) out.emplace_back(row.name);
  return out;
}

}  // namespace ep
