// Observations of installed software: wheels, packages, parts, sources, and the libraries that a process
// would load.
#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/host_facts.h"
#include "doctor/host_notes.h"
#include "doctor/text_facts.h"

namespace ep {

namespace {

class Software : HostNotes {
 public:
  using HostNotes::HostNotes;

  void run() {
    software();
    // A host that was looked through and holds none: different from one that nobody looked at.
    if (f_.host_kind != "paste" && !f_.python.empty() && f_.packages_readable.ok() &&
        !o_.all("nvshmem.version") && !o_.all("nvshmem.host_version"))
      o_.add_absent("nvshmem.version");
    doubles();
    driver_serves_cuda();
    sources();
  }

 private:
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

  /// Packages of two CUDA majors write the same files: the one installed last is there, both say they are.
  void doubles() {
    for (const PythonEnvironment* e : deepep_environments())
      for (auto [prefix, fact] :
           {std::pair{"nvidia-nccl-cu", "nccl.wheels"}, {"nvidia-nvshmem-cu", "nvshmem.wheels"}}) {
        std::set<std::string> names, places;
        std::vector<std::string> seen;
        for (const PythonPackage& p : e->packages)
          if (starts_with(p.name, prefix) && names.insert(p.name).second) {
            places.insert(p.location);
            seen.push_back(p.name + " " + p.version);
          }
        if (!names.empty() && places.size() == 1) count(fact, seen, *places.begin());
      }
  }

  /// A compatibility package on the search path lets an older driver run newer CUDA: then nothing is said.
  void driver_serves_cuda() {
    if (!f_.driver.cuda_version.ok()) return;
    auto path = f_.environment.find("LD_LIBRARY_PATH");
    if (path != f_.environment.end() && contains(path->second, "compat")) return;
    const auto driver = parse_int(split(*f_.driver.cuda_version, '.').front());
    const Observation* torch = o_.best("torch.version");
    static const re2::RE2 kLocal(R"(\+cu(\d\d)\d)");
    std::string major;
    if (!driver || !torch || !re2::RE2::PartialMatch(torch->value, kLocal, &major)) return;
    flag("cuda.fits_driver", parse_int(major).value_or(0) <= *driver, f_.driver.cuda_version.where,
         "torch " + torch->value + ", the driver serves CUDA " + *f_.driver.cuda_version);
  }

  void sources() {
    for (const SourceTree& s : f_.sources) {
      if (!s.locked.empty() && !f_.user.is_root.value_or(true))
        flag("build.writable", false, s.locked.front(), "not writable by this user");
      const auto value = [&](const char* key) {
        auto it = s.cmake.find(key);
        return it == s.cmake.end() ? std::string() : it->second;
      };
      if (s.name != "nvshmem" || !s.has_cache) continue;
      const std::string cache = s.root + "/build/CMakeCache.txt";
      if (const auto v = value("GDRCOPY_INCLUDE"); contains(v, "NOTFOUND"))
        flag("gdrcopy.header", false, cache, "GDRCOPY_INCLUDE=" + v);
      if (const auto v = lower(value("NVSHMEM_IBGDA_SUPPORT")); !v.empty())
        flag("nvshmem.built_ibgda", v == "on" || v == "1" || v == "true", cache,
             "NVSHMEM_IBGDA_SUPPORT=" + v);
      if (contains(value("MLX5_lib"), "NOTFOUND")) flag("rdma.headers", false, cache, "MLX5_lib-NOTFOUND");
    }
    for (const auto& [variable, there] : f_.named_paths) {
      if (!there.ok() || *there) continue;
      const bool gdrcopy = starts_with(variable, "GDRCOPY");
      flag(gdrcopy ? "gdrcopy.header" : "nvshmem.header", false, "environment",
           variable + "=" + there.where + " holds no " + (gdrcopy ? "gdrapi.h" : "nvshmem.h"));
    }
    auto active = f_.environment.find("VIRTUAL_ENV");
    for (const PythonEnvironment& e : f_.python)
      if (active != f_.environment.end() && e.root == active->second && !f_.user.is_root.value_or(true))
        flag("python.writable", e.writable);
  }
};

}  // namespace

void observe_software(const Facts& f, Observed& o) {
  Software(f, o).run();
}

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

}  // namespace ep
