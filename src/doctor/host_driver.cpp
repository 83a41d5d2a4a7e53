// Observations of the NVIDIA driver, the kernel and the GPUs.
#include <algorithm>

#include "base/text.h"
#include "base/version.h"
#include "doctor/host_notes.h"
#include "facts/parsers.h"
#include "facts/pci_ids.h"

namespace ep {

namespace {

class Driver : HostNotes {
 public:
  using HostNotes::HostNotes;

  void run() {
    const NvidiaDriver& d = f_.driver;
    text("driver.version", d.version);
    flag("driver.open", d.open_kernel_module);
    text("cuda.driver_version", d.cuda_version);
    text("driver.fabric_manager", d.fabric_manager);
    text("driver.fabric_manager_version", d.fabric_manager_version);
    text("driver.imex", d.imex);
    flag("driver.imex_channel", d.imex_channel);
    flag("driver.library_ok", d.library_matches);
    if (d.version.ok() && d.fabric_manager_version.ok())
      flag("driver.fabric_manager_ok", *d.version == *d.fabric_manager_version,
           d.fabric_manager_version.where,
           "driver " + *d.version + ", fabric manager " + *d.fabric_manager_version);
    options();
    written();
  }

 private:
  void options() {
    const NvidiaDriver& d = f_.driver;
    bool live_known = false, pending = false;
    std::string where;
    for (const ModuleOption& o : d.options) {
      if (o.name == "NVreg_EnableStreamMemOPs" && o.live.ok())
        flag("driver.stream_memops", trim(*o.live) != "0", o.live.where);
      if (o.name == "NVreg_RegistryDwords" && o.live.ok()) {
        live_known = true;
        where = o.live.where;
      }
      // Values are written in several ways (0x1, 1;): only a set option that is not live at all is a
      // difference.
      if (o.live.ok() && o.pending.ok() && !o.pending->empty()) {
        const std::string live = normal(*o.live), wanted = normal(*o.pending);
        if (live != wanted && (o.name == "NVreg_EnableStreamMemOPs" || o.name == "NVreg_RegistryDwords"))
          pending = true;
      }
    }
    if (!live_known) return;
    auto it = d.registry_dwords.find("PeerMappingOverride");
    flag("driver.peer_mapping_override", it != d.registry_dwords.end() && it->second == 1, where);
    flag("driver.options_pending", pending, where);
  }

  /// Lines of modprobe files that fight: the kernel takes the last RegistryDwords whole, it merges nothing.
  void written() {
    const NvidiaDriver& d = f_.driver;
    if (!d.stray_options.empty())
      flag("driver.options_malformed", true, "/etc/modprobe.d", d.stray_options.front());
    for (const ModuleOption& o : d.options) {
      if (o.name != "NVreg_RegistryDwords" && o.name != "NVreg_EnableStreamMemOPs") continue;
      if (o.set_in.size() < 2 || !o.pending.ok()) continue;
      std::string lost;
      if (o.name == "NVreg_RegistryDwords") {
        const auto last = registry_dwords_of(*o.pending);
        for (const auto& value : o.set_to)
          for (const auto& [key, number] : registry_dwords_of(value))
            if (auto it = last.find(key); it == last.end() || it->second != number)
              lost = key + "=" + std::to_string(number);
      } else {
        for (const auto& value : o.set_to)
          if (normal(value) != normal(*o.pending)) lost = o.name + "=" + value;
      }
      if (!lost.empty())
        flag("driver.options_conflict", true, o.set_in.back(),
             lost + " is undone by the last of " + join(o.set_in, ", "));
    }
    if (d.initramfs_has_nvidia_module.ok() && d.initramfs_has_nvidia_options.ok())
      flag("driver.initramfs_stale",
           *d.initramfs_has_nvidia_module && !*d.initramfs_has_nvidia_options &&
               std::any_of(d.options.begin(), d.options.end(), [](auto& o) { return !o.set_in.empty(); }),
           d.initramfs_has_nvidia_module.where);
  }

  /// "PeerMappingOverride=0x1;" and "\"PeerMappingOverride=1\"" are the same wish.
  static std::string normal(const std::string& value) {
    std::vector<std::string> keys;
    const std::string plain = replace_all(value, "\"", "");  // outlives the views into it
    for (std::string_view one : split(plain, ';')) {
      one = trim(one);
      if (one.empty()) continue;
      const size_t eq = one.find('=');
      auto n = parse_int(trim(one.substr(eq == std::string_view::npos ? 0 : eq + 1)));
      keys.push_back(std::string(one.substr(0, eq == std::string_view::npos ? 0 : eq)) + "=" +
                     (n ? std::to_string(*n) : std::string(one)));
    }
    std::sort(keys.begin(), keys.end());
    return join(keys, ";");
  }
};

class Kernel : HostNotes {
 public:
  using HostNotes::HostNotes;

  void run() {
    const KernelFacts& k = f_.kernel;
    if (k.modules_readable.value_or(false))
      for (auto [fact, module] : {std::pair{"kernel.peermem", "nvidia_peermem"},
                                  {"kernel.peermem_legacy", "nv_peer_mem"},
                                  {"kernel.gdrdrv", "gdrdrv"},
                                  {"kernel.nouveau", "nouveau"}})
        flag(fact, k.module(module) != nullptr, "/proc/modules");
    flag("kernel.gdrdrv_device", k.gdrdrv_device);
    if (k.dmabuf_config.ok() && k.p2pdma_config.ok())
      flag("kernel.dmabuf",
           *k.dmabuf_config != "n" && *k.p2pdma_config != "n" && f_.driver.open_kernel_module.value_or(true),
           k.p2pdma_config.where);
    flag("kernel.headers", k.headers);
    flag("kernel.secure_boot", k.secure_boot);
    number("kernel.ptrace_scope", k.ptrace_scope);
    flag("virtual_machine", f_.platform.virtual_machine);
    built("kernel.gdrdrv_built", "gdrdrv");
    built("ofed.built", "mlnx-ofed-kernel");
    built("driver.built", "nvidia");
    const bool gpus = std::any_of(f_.pci.begin(), f_.pci.end(), [](const PciDevice& d) {
      return d.vendor.value_or(0) == kVendorNvidia && is_gpu_class(d.device_class.value_or(0));
    });
    if (k.modules_readable.value_or(false) && gpus)
      flag("kernel.nvidia", k.module("nvidia") != nullptr, "/proc/modules");
    ofed_live();
    iommu();
    if (k.acs_redirect.ok())
      flag("kernel.acs", *k.acs_redirect, k.acs_redirect.where, join(k.acs_bridges, ", "));
  }

 private:
  /// Known to dkms, but built for other kernels only: an update of the kernel left it behind.
  void built(const char* fact, std::string_view module) {
    bool there = false, fits = false;
    for (const DkmsModule& m : f_.kernel.dkms) {
      if (m.name != module) continue;
      there = true;
      fits |= m.kernel == f_.os.kernel_release.value_or("") &&
              (m.state.value_or("") == "installed" || m.state.value_or("") == "built");
    }
    if (there && f_.os.kernel_release.ok()) flag(fact, fits, "/var/lib/dkms/" + std::string(module));
  }

  /// OFED's mlx5_core says its version; the kernel's own says none (5.0-0 before Linux 5.10).
  void ofed_live() {
    const KernelModule* core = f_.kernel.module("mlx5_core");
    if (!core || !f_.packages_readable.value_or(false)) return;
    std::string package;
    for (const Package& p : f_.packages)
      if (contains(p.state, "install ok installed") &&
          (p.name == "doca-ofed" || p.name == "mlnx-ofed-kernel-dkms" || p.name == "mlnx-ofed-all" ||
           p.name == "mlnx-ofed-kernel-modules" || starts_with(p.name, "doca-kernel-")))
        package = p.name + " " + p.version;
    if (package.empty()) return;
    // mlx_compat is OFED's alone.
    if (f_.kernel.module("mlx_compat"))
      flag("ofed.live", true, "/proc/modules", "mlx_compat is loaded");
    else if (core->version.ok() || core->version.known == Known::absent)
      flag("ofed.live", core->version.ok() && *core->version != "5.0-0", "/sys/module/mlx5_core/version",
           package + " is installed");
  }

  /// What the groups of GPUs and NICs are set to beats what the command line asked for: kernels have a
  /// default of their own.
  void iommu() {
    const KernelFacts& k = f_.kernel;
    flag("kernel.iommu", k.iommu_enabled);
    bool identity = false, translated = false;
    std::string where;
    for (const PciDevice& d : f_.pci) {
      const int cls = d.device_class.value_or(0);
      if (!is_gpu_class(cls) && !is_network_class(cls)) continue;
      if (!d.iommu_group_type.ok()) continue;
      const bool through = *d.iommu_group_type == "identity";
      (through ? identity : translated) = true;
      if (where.empty() || !through) where = d.iommu_group_type.where;
    }
    if (identity || translated)
      flag("kernel.iommu_pt", !translated, where, translated ? "type DMA" : "type identity");
    else if (k.cmdline.ok() && contains(*k.cmdline, "iommu=pt"))
      flag("kernel.iommu_pt", true, k.cmdline.where);
  }
};

class Gpus : HostNotes {
 public:
  using HostNotes::HostNotes;

  void run() {
    if (f_.gpus.empty()) return;
    number("gpu.count", f_.gpus.size(), "nvidia-smi");
    bool mig = false, busy = false, mig_known = false, busy_known = false, nvlink = false,
         nvlink_known = false;
    for (const Gpu& g : f_.gpus) {
      text("gpu.model", g.name);
      number("gpu.compute_capability", g.compute_capability);
      if (g.mig_mode.ok()) mig_known = true, mig |= lower(*g.mig_mode) == "enabled";
      if (g.in_use.ok()) busy_known = true, busy |= *g.in_use;
      if (g.nvlinks_up.ok()) nvlink_known = true, nvlink |= *g.nvlinks_up > 0;
    }
    if (mig_known) flag("gpu.mig", mig, "nvidia-smi");
    if (busy_known) flag("gpu.busy", busy, "nvidia-smi");
    if (nvlink_known) flag("gpu.nvlink", nvlink, "nvidia-smi nvlink -s");
    if (f_.p2p_known.value_or(false)) flag("gpu.p2p", f_.p2p_bad_pairs.empty(), f_.p2p_known.where);
    health();
    links();
    holders();
  }

 private:
  static std::string name(const Gpu& g) { return "GPU " + std::to_string(g.index); }

  void health() {
    std::vector<std::string> pending, failed, uncorrected, fabric, down;
    bool remap_known = false, ecc_known = false, fabric_known = false, down_known = false;
    for (const Gpu& g : f_.gpus) {
      if (g.remap_pending.ok()) remap_known = true;
      const std::string action = g.recovery_action.value_or("None");
      if (g.remap_pending.value_or(false))
        pending.push_back(name(g) + ": Remapped Rows, Pending");
      else if (action != "None")
        pending.push_back(name(g) + ": GPU Recovery Action " + action);
      if (g.recovery_action.ok()) remap_known = true;
      if (g.remap_failed.value_or(false)) failed.push_back(name(g));
      if (auto n = parse_int(g.ecc_uncorrected.value_or("")); n && g.ecc_uncorrected.ok()) {
        ecc_known = true;
        if (*n > 0) uncorrected.push_back(name(g) + ": " + *g.ecc_uncorrected);
      }
      // GPUs outside a fabric say "N/A", which is not a state.
      if (g.fabric_state.ok() && *g.fabric_state != "N/A" && *g.fabric_state != "Not Supported") {
        fabric_known = true;
        const bool good = *g.fabric_state == "Completed" && g.fabric_status.value_or("Success") == "Success";
        if (!good)
          fabric.push_back(name(g) + ": " + *g.fabric_state + ", " + g.fabric_status.value_or("no status"));
      }
      if (g.nvlinks_up.ok() && g.nvlinks_down.ok() && *g.nvlinks_up > 0) {
        down_known = true;
        if (*g.nvlinks_down > 0) down.push_back(name(g) + ": " + std::to_string(*g.nvlinks_down));
      }
    }
    if (remap_known) count("gpu.reset_pending", pending, "nvidia-smi -q");
    if (remap_known) count("gpu.remap_failed", failed, "nvidia-smi -q");
    if (ecc_known)
      count("gpu.uncorrected", uncorrected, "nvidia-smi --query-gpu=ecc.errors.uncorrected.volatile.total");
    if (fabric_known) flag("gpu.fabric_ok", fabric.empty(), "nvidia-smi -q", join(fabric, "; "));
    if (down_known) count("gpu.nvlink_down", down, "nvidia-smi nvlink -s");
  }

  /// Speed falls while a GPU is idle; width does not.
  void links() {
    std::vector<std::string> narrow;
    bool seen = false;
    for (const PciDevice& d : f_.pci) {
      if (d.vendor.value_or(0) != kVendorNvidia || !is_gpu_class(d.device_class.value_or(0))) continue;
      if (!d.link_width.ok() || !d.link_width_max.ok() || *d.link_width <= 0) continue;
      seen = true;
      if (*d.link_width < *d.link_width_max)
        narrow.push_back(d.address + ": x" + std::to_string(*d.link_width) + " of x" +
                         std::to_string(*d.link_width_max));
    }
    if (seen) count("gpu.link_narrow", narrow, "/sys/bus/pci/devices/*/current_link_width");
  }

  void holders() {
    for (const PciDevice& d : f_.pci)
      if (d.vendor.value_or(0) == kVendorNvidia && is_gpu_class(d.device_class.value_or(0)))
        text("gpu.kernel_driver", d.driver);
  }
};

}  // namespace

void HostNotes::count(const char* fact, const std::vector<std::string>& which, const std::string& where) {
  number(fact, which.size(), where, join(which, ", "));
}

void observe_driver(const Facts& f, Observed& o) {
  Driver(f, o).run();
}
void observe_kernel(const Facts& f, Observed& o) {
  Kernel(f, o).run();
}
void observe_gpus(const Facts& f, Observed& o) {
  Gpus(f, o).run();
}

}  // namespace ep
