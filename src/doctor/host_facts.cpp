#include "doctor/host_facts.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/text_facts.h"

namespace ep {

namespace {

class Filler {
 public:
  Filler(const Facts& f, Observed& o) : f_(f), o_(o) {}

  void run() {
    o_.environment_known = f_.host_kind != "paste";
    for (const auto& [name, value] : f_.environment)
      o_.add("env." + name, value, {"environment", 0, name + "=" + value}, Trust::running);
    system();
    driver();
    kernel();
    gpus();
    nics();
    software();
    limits();
    container();
    derive_facts(o_);
  }

 private:
  void text(const char* name, const Fact<std::string>& f) {
    if (f.ok() && !f->empty())
      o_.add(name, *f, {f.where, 0, *f}, Trust::running);
    else if (f.known == Known::absent && !f.where.empty())
      o_.add_absent(name);
  }
  void flag(const char* name, const Fact<bool>& f) {
    if (f.ok()) flag(name, *f, f.where);
  }
  void flag(const char* name, bool value, const std::string& where) {
    o_.add(name, value ? "true" : "false", {where, 0, ""}, Trust::running);
  }
  template <class T>
  void number(const char* name, const Fact<T>& f) {
    if (f.ok()) number(name, *f, f.where);
  }
  template <class T>
  void number(const char* name, T value, const std::string& where) {
    o_.add(name, std::to_string(value), {where, 0, ""}, Trust::running);
  }

  void system() {
    text("os.id", f_.os.id);
    text("os.version", f_.os.version_id);
    text("arch", f_.os.architecture);
    text("kernel.version", f_.os.kernel_release);
    text("cloud", f_.platform.cloud);
    text("machine_type", f_.platform.machine_type);
  }

  void driver() {
    const NvidiaDriver& d = f_.driver;
    text("driver.version", d.version);
    flag("driver.open", d.open_kernel_module);
    text("cuda.driver_version", d.cuda_version);
    text("driver.fabric_manager", d.fabric_manager);
    text("driver.fabric_manager_version", d.fabric_manager_version);
    text("driver.imex", d.imex);
    flag("driver.imex_channel", d.imex_channel);
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
    if (live_known) {
      auto it = d.registry_dwords.find("PeerMappingOverride");
      flag("driver.peer_mapping_override", it != d.registry_dwords.end() && it->second == 1, where);
      flag("driver.options_pending", pending, where);
    }
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

  void kernel() {
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
    // Known to dkms, but built for other kernels only: an update of the kernel left it behind.
    bool gdrdrv = false, built = false;
    for (const DkmsModule& m : k.dkms) {
      if (m.name != "gdrdrv") continue;
      gdrdrv = true;
      built |= m.kernel == f_.os.kernel_release.value_or("") &&
               (m.state.value_or("") == "installed" || m.state.value_or("") == "built");
    }
    if (gdrdrv && f_.os.kernel_release.ok()) flag("kernel.gdrdrv_built", built, "/var/lib/dkms/gdrdrv");
    flag("kernel.iommu", k.iommu_enabled);
    if (k.cmdline.ok()) flag("kernel.iommu_pt", contains(*k.cmdline, "iommu=pt"), k.cmdline.where);
    flag("kernel.secure_boot", k.secure_boot);
    number("kernel.ptrace_scope", k.ptrace_scope);
  }

  void gpus() {
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
  }

  void nics() {
    if (!f_.rdma_readable.value_or(false) && f_.rdma.empty()) return;
    int active = 0, down = 0;
    const std::string where = "/sys/class/infiniband";
    for (const RdmaDevice& d : f_.rdma) {
      o_.add("nic.names", d.name, {where, 0, d.name}, Trust::running);
      text("nic.driver", d.driver);
      text("nic.model", d.hca_type);
      for (const RdmaPort& p : d.ports) {
        (p.state.ok() && icontains(*p.state, "ACTIVE") ? active : down) += p.state.ok();
        text("link_layer", p.link_layer);
        if (p.rate_gbps.ok())
          o_.add("perf.line_gbps", std::to_string(*p.rate_gbps / 8), {p.rate_gbps.where, 0, ""},
                 Trust::running);
      }
    }
    number("nic.count", f_.rdma.size(), where);
    number("nic.active", active, where);
    number("nic.down", down, where);
    gid();
  }

  /// The index that the environment pins, against the table of every active RoCE port.
  void gid() {
    for (const char* name : {"NVSHMEM_IB_GID_INDEX", "NCCL_IB_GID_INDEX"}) {
      auto it = f_.environment.find(name);
      if (it == f_.environment.end()) continue;
      auto index = parse_int(trim(it->second));
      if (!index) continue;
      bool valid = true, judged = false;
      for (const RdmaDevice& d : f_.rdma)
        for (const RdmaPort& p : d.ports) {
          if (p.link_layer.value_or("") != "Ethernet" || !icontains(p.state.value_or(""), "ACTIVE") ||
              p.gids.empty())
            continue;
          judged = true;
          bool good = false;
          for (const GidEntry& g : p.gids)
            good |= g.index == *index && icontains(g.type.value_or(""), "v2") && !starts_with(g.gid, "fe80");
          valid &= good;
        }
      number("gid.index", *index, std::string("environment ") + name);
      if (judged) flag("gid.valid", valid, "/sys/class/infiniband/*/ports/*/gids");
    }
  }

  /// Versions are compared within one environment: the first that holds DeepEP; without one, all.
  std::vector<const PythonEnvironment*> deepep_environments() const {
    std::vector<const PythonEnvironment*> all, with;
    for (const PythonEnvironment& e : f_.python) {
      all.push_back(&e);
      for (const PythonPackage& p : e.packages)
        if (p.name == "deep-ep" || starts_with(p.name, "sgl-deep-ep")) {
          with.push_back(&e);
          break;
        }
    }
    return with.empty() ? all : with;
  }

  void software() {
    for (const CudaToolkit& t : f_.cuda)
      text("cuda.version", t.nvcc_version.ok() ? t.nvcc_version : t.version);
    struct Wheel {
      const char* prefix;
      std::vector<const char*> facts;
    };
    static const Wheel kWheels[] = {{"nvidia-nvshmem-cu", {"nvshmem.version"}},
                                    {"nvidia-nccl-cu", {"nccl.version", "nccl.wheel_version"}},
                                    {"torch", {"torch.version"}},
                                    {"deep-ep", {"deepep.version"}},
                                    {"vllm", {"vllm.version"}},
                                    {"sglang", {"sglang.version"}},
                                    {"megatron-core", {"megatron.version"}},
                                    {"uccl", {"uccl.version"}},
                                    {"setuptools", {"setuptools.version"}}};
    for (const PythonEnvironment* e : deepep_environments()) {
      text("python.version", e->version);
      for (const PythonPackage& p : e->packages) {
        // SGLang's wheel counts its own versions: 0.1.x is DeepEP 2.x.
        if (p.name == "sgl-deep-ep" || p.name == "sgl-deep-ep-v25")
          o_.add("deepep.generation", p.name == "sgl-deep-ep" ? "v2" : "v25",
                 {p.location, 0, p.name + " " + p.version});
        for (const Wheel& w : kWheels)
          if (p.name == w.prefix || (ends_with(w.prefix, "cu") && starts_with(p.name, w.prefix)))
            for (const char* fact : w.facts)
              o_.add(fact, p.version, {p.location, 0, p.name + " " + p.version});
      }
    }
    for (const Package& p : f_.packages) {
      if (!contains(p.state, "installed")) continue;
      const Evidence where{"dpkg", 0, p.name + " " + p.version};
      if (starts_with(p.name, "libnvshmem")) o_.add("nvshmem.host_version", p.version, where);
      if (p.name == "libnccl2") o_.add("nccl.version", p.version, where, Trust::mentioned);
      if (p.name == "rdma-core") o_.add("rdma_core.version", p.version, where);
      if (p.name == "doca-ofed") o_.add("ofed.version", p.version, where);
    }
    for (const InstalledPart& p : f_.parts) part(p);
    preload();
  }

  void part(const InstalledPart& p) {
    const auto stamp = [&](const char* key) -> std::string {
      auto it = p.stamp.find(key);
      return it == p.stamp.end() ? std::string() : it->second;
    };
    const Evidence where{p.root, 0, p.name + " " + p.version.value_or("")};
    if (p.name == "nvshmem") {
      if (p.version.ok()) o_.add("nvshmem.version", *p.version, where);
      if (!stamp("ibgda").empty()) flag("nvshmem.ibgda", stamp("ibgda") == "yes", p.root + "/lib");
    }
    if (p.name == "gdrcopy" && p.version.ok()) o_.add("gdrcopy.version", *p.version, where);
    if (p.name != "deepep") return;
    if (auto v = stamp("commit"); !v.empty()) o_.add("deepep.commit", v, where);
    if (auto v = stamp("nvshmem"); !v.empty()) o_.add("nvshmem.build_version", v, where);
    if (auto v = stamp("arch"); !v.empty()) archs(v, where);
  }

  void archs(const std::string& list, const Evidence& where) {
    o_.add("deepep.archs", list, where);
    bool fits_all = !f_.gpus.empty();
    for (const Gpu& g : f_.gpus) {
      if (!g.compute_capability.ok()) return;
      fits_all &= archs_serve(list, *g.compute_capability);
    }
    if (!f_.gpus.empty()) o_.add("deepep.arch_ok", fits_all ? "true" : "false", where);
  }

  /// A copy of NCCL that LD_PRELOAD puts before the wheel's is the one that runs.
  void preload() {
    auto it = f_.environment.find("LD_PRELOAD");
    if (it == f_.environment.end()) return;
    static const re2::RE2 kNccl(R"(libnccl\.so\.(\d+\.\d+\.\d+))");
    std::string version;
    if (re2::RE2::PartialMatch(it->second, kNccl, &version))
      o_.add("nccl.version", version, {"environment", 0, "LD_PRELOAD=" + it->second}, Trust::running);
  }

  void limits() {
    if (const auto& m = f_.limits.memlock; m.ok())
      o_.add("limits.memlock", *m == "unlimited" ? "18446744073709551615" : *m, {m.where, 0, *m},
             Trust::running);
    number("limits.shm_bytes", f_.limits.shm_bytes);
  }

  void container() {
    const ContainerFacts& c = f_.container;
    text("container", c.runtime);
    flag("container.privileged", c.privileged);
    flag("container.host_network", c.host_network);
    if (!c.runtime.ok() || *c.runtime == "none") return;
    bool infiniband = false, gdrdrv = false;
    for (const auto& d : c.devices) {
      infiniband |= starts_with(d, "/dev/infiniband/uverbs");
      gdrdrv |= d == "/dev/gdrdrv";
    }
    flag("container.infiniband", infiniband, "/dev/infiniband");
    flag("container.gdrdrv", gdrdrv, "/dev/gdrdrv");
  }

  const Facts& f_;
  Observed& o_;
};

}  // namespace

void observe_libraries(const LibraryFacts& l, Observed& o) {
  const auto add = [&](const char* fact, const LibraryCopy* c) {
    if (c && c->version.ok())
      o.add(fact, c->version->substr(0, c->version->find('+')), {c->path, 0, "version " + *c->version},
            Trust::running);
  };
  // Without torch's or DeepEP's own files nobody can say what a process would hold.
  if (!l.torch.empty() || !l.deepep.empty()) add("nccl.version", l.at(l.vllm_nccl));
  for (const auto* list : {&l.torch, &l.deepep})
    for (const auto& r : *list)
      if (const LibraryCopy* c = l.at(r.path); c && c->family == "nvshmem") add("nvshmem.host_version", c);
  // What the extension itself holds beats what a stamp says of it. Kernels compiled at run time leave no
  // code.
  for (const LibraryCopy& c : l.copies) {
    const auto* gpus = o.all("gpu.compute_capability");
    if (c.family != "deepep" || c.code.empty() || c.code.cut || !gpus) continue;
    std::string list;
    for (int arch : c.code.cubin) list += (list.empty() ? "" : " ") + std::to_string(arch);
    for (int arch : c.code.ptx) list += (list.empty() ? "" : " ") + std::to_string(arch) + "+PTX";
    bool fits = true;
    for (const Observation& gpu : std::vector<Observation>(*gpus))
      if (auto wanted = parse_int(gpu.value)) fits &= c.code.serves(int(*wanted));
    o.add("deepep.archs", list, {c.path, 0, list}, Trust::running);
    o.add("deepep.arch_ok", fits ? "true" : "false", {c.path, 0, "GPU code for " + list}, Trust::running);
  }
  if (l.elastic_buffer.ok() && *l.elastic_buffer)
    o.add("deepep.generation", "v2", {l.elastic_buffer.where, 0, "ElasticBuffer"}, Trust::running);
}

void observe_host(const Facts& facts, Observed& observed) {
  Filler(facts, observed).run();
}

}  // namespace ep
