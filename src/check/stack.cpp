// Checks of the user-space stack: toolkit, Python packages, tools, environment.
#include <algorithm>

#include "base/version.h"
#include "check/areas.h"
#include "check/result.h"
#include "recipe/recipe.h"

namespace ep {
using namespace check_detail;

namespace {
struct Copy {
  const PythonEnvironment* env;
  const PythonPackage* package;
};
std::vector<Copy> copies(const Facts& f, std::initializer_list<const char*> names) {
  std::vector<Copy> out;
  for (const auto& e : f.python)
    for (const auto& p : e.packages)
      for (const char* n : names)
        if (p.name == n) out.push_back({&e, &p});
  return out;
}

/// Whether a DeepEP V1 has pull request 564, by the commit in its version and what the data know of it.
std::optional<bool> has_rc_fix(const std::string& version) {
  const size_t plus = version.find('+');
  if (plus == std::string::npos || version.size() - plus < 8) return std::nullopt;  // no commit to go by
  const auto recipe = load_recipe("");
  const Component* c = recipe ? recipe->component("deepep") : nullptr;
  if (!c) return std::nullopt;
  for (const auto& r : c->releases)
    if (!r.git_commit.empty() && starts_with(r.git_commit, version.substr(plus + 1, 7)))
      return std::count(r.traits.begin(), r.traits.end(), "rc-fix") > 0;
  return std::nullopt;
}
}  // namespace

CheckResult check_cuda_toolkit(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  const CudaToolkit* best = nullptr;
  for (const auto& c : f.cuda)
    if (c.has_nvcc.value_or(false)) best = &c;
  if (!best && only_shown(f)) return not_shown(w, "nvcc --version");
  if (!best)
    return bad(Verdict::warn,
               w("no CUDA toolkit with nvcc: V1 is built with it, V2 compiles with it at run time",
                 "没有带 nvcc 的 CUDA 工具包：V1 编译要用，V2 运行时要用"),
               "/usr/local/cuda", "epready plan");
  return pass(w("CUDA {} at {}", "CUDA {} 位于 {}", best->version.value_or(best->nvcc_version.value_or("?")),
                best->root),
              best->root);
}

CheckResult check_cuda_home(const Facts& f, const Words& w) {
  if (f.gpus.empty() || f.cuda.empty())
    return none_here(f, w, w("no CUDA toolkit here", "本机没有 CUDA 工具包"));
  auto it = f.environment.find("CUDA_HOME");
  if (it == f.environment.end() && only_shown(f)) return not_shown(w, "echo $CUDA_HOME");
  if (it == f.environment.end())
    return pass(w("CUDA_HOME is not set; /usr/local/cuda is used", "未设置 CUDA_HOME；使用 /usr/local/cuda"),
                "environment");
  if (f.cuda_home_link.ok() && it->second != "/usr/local/cuda" && it->second != *f.cuda_home_link)
    return bad(
        Verdict::warn,
        w("CUDA_HOME is {}, /usr/local/cuda points to {}: DeepEP V2 takes CCCL headers from the latter",
          "CUDA_HOME 是 {}，/usr/local/cuda 指向 {}：DeepEP V2 从后者取 CCCL 头文件", it->second,
          *f.cuda_home_link),
        "environment", "export CUDA_HOME=/usr/local/cuda");
  return pass(fmt::format("CUDA_HOME = {}", it->second), "environment");
}

CheckResult check_nccl_copies(const Facts& f, const Words& w) {
  for (const auto& e : f.python) {
    bool c12 = false, c13 = false;
    for (const auto& p : e.packages) c12 |= p.name == "nvidia-nccl-cu12", c13 |= p.name == "nvidia-nccl-cu13";
    if (c12 && c13)
      return bad(Verdict::fail,
                 w("nvidia-nccl-cu12 and -cu13 are both in {}: they write the same files",
                   "{} 中同时有 nvidia-nccl-cu12 与 -cu13：两者写入相同文件", e.root),
                 e.root, fmt::format("{} -m pip uninstall nvidia-nccl-cu12", e.interpreter));
  }
  if (copies(f, {"nvidia-nccl-cu12", "nvidia-nccl-cu13"}).empty())
    return none_here(f, w, w("no NCCL wheel in a Python environment", "Python 环境中没有 NCCL wheel"));
  return pass(w("one NCCL package per environment", "每个环境只有一个 NCCL 包"), "site-packages");
}

CheckResult check_nccl_version(const Facts& f, const Words& w) {
  auto deep = copies(f, {"deep-ep", "sgl-deep-ep"});
  for (const auto& d : deep) {
    // SGLang's wheel counts its own versions: 0.1.x is DeepEP 2.x.
    bool v2 = d.package->name == "sgl-deep-ep" ||
              compare_versions(VersionOrder::pep440, d.package->version, "2.0") >= 0;
    if (!v2) continue;
    for (const auto& p : d.env->packages)
      if ((p.name == "nvidia-nccl-cu12" || p.name == "nvidia-nccl-cu13") &&
          compare_versions(VersionOrder::pep440, p.version, "2.30.4") < 0)
        return bad(Verdict::fail,
                   w("DeepEP {} needs NCCL 2.30.4 at build and run time; {} has {}",
                     "DeepEP {} 编译和运行都需要 NCCL 2.30.4；{} 中是 {}", d.package->version, d.env->root,
                     p.version),
                   p.location,
                   fmt::format("{} -m pip install --no-deps '{}>=2.30.4'", d.env->interpreter, p.name));
  }
  if (deep.empty()) return none_here(f, w, w("DeepEP is not installed", "未安装 DeepEP"));
  return pass(w("NCCL fits the DeepEP that is installed", "NCCL 与所装 DeepEP 相容"),
              deep[0].package->location);
}

CheckResult check_nvshmem(const Facts& f, const Words& w) {
  auto found = copies(f, {"nvidia-nvshmem-cu12", "nvidia-nvshmem-cu13"});
  if (found.empty())
    return none_here(f, w, w("no NVSHMEM wheel in a Python environment", "Python 环境中没有 NVSHMEM wheel"));
  for (const auto& c : found) {
    // DeepEP issues 564, 696, 764: the RC queue-pair order changed in NVSHMEM 3.5.19.
    if (compare_versions(VersionOrder::dotted, c.package->version, "3.5.19") < 0) continue;
    for (const auto& p : c.env->packages) {
      if (p.name != "deep-ep" || compare_versions(VersionOrder::pep440, p.version, "2.0") >= 0) continue;
      const auto fixed = has_rc_fix(p.version);
      if (fixed.value_or(false)) continue;
      return bad(fixed ? Verdict::fail : Verdict::unknown,
                 fixed
                     ? w("NVSHMEM {} changed the queue-pair order; DeepEP {} lacks pull request 564",
                         "NVSHMEM {} 改变了 QP 顺序；DeepEP {} 未合入 PR 564", c.package->version, p.version)
                     : w("NVSHMEM {} changed the queue-pair order; whether DeepEP {} has pull request 564 "
                         "is not known",
                         "NVSHMEM {} 改变了 QP 顺序；无法得知 DeepEP {} 是否合入 PR 564", c.package->version,
                         p.version),
                 p.location, "epready plan --lane v1");
    }
  }
  return pass(w("NVSHMEM {}", "NVSHMEM {}", found[0].package->version), found[0].package->location);
}

CheckResult check_deepep(const Facts& f, const Words& w) {
  auto found = copies(f, {"deep-ep", "sgl-deep-ep"});
  if (found.empty()) return none_here(f, w, w("DeepEP is not installed", "未安装 DeepEP"));
  return pass(w("{} {} in {}", "{} {} 位于 {}", found[0].package->name, found[0].package->version,
                found[0].env->root),
              found[0].package->location);
}

CheckResult check_tools(const Facts& f, const Words& w) {
  if (f.gpus.empty()) return no_gpu(f, w);
  // What builds DeepEP is the plan's business; these show where a fault is.
  struct Row {
    const char *tool, *package;
  };
  std::string missing, packages;
  for (const Row& row :
       {Row{"nvidia-smi", ""}, Row{"ibv_devinfo", "ibverbs-utils"}, Row{"ibstat", "infiniband-diags"}}) {
    const Tool* t = f.tool(row.tool);
    if (!t && only_shown(f)) return not_shown(w, "command -v nvidia-smi ibv_devinfo ibstat");
    if (t && !t->path.ok() && t->path.known != Known::absent) return unknown(t->path, w);
    if (t && t->path.ok()) continue;
    missing += (missing.empty() ? "" : ", ") + std::string(row.tool);
    if (*row.package) packages += " " + std::string(row.package);
  }
  if (!missing.empty())
    return bad(Verdict::warn, w("missing: {}", "缺少：{}", missing), "PATH",
               packages.empty() ? "epready plan" : "sudo apt-get install" + packages);
  return pass(w("all tools are there", "工具齐全"), "PATH");
}

CheckResult check_env_conflict(const Facts& f, const Words& w) {
  if (f.environment.empty()) return none_here(f, w, w("no environment was read", "没有读到环境变量"));
  auto value = [&](const char* name) {
    auto it = f.environment.find(name);
    return it == f.environment.end() ? std::string() : it->second;
  };
  if (value("NVSHMEM_REMOTE_TRANSPORT") == "ibgda")
    return bad(Verdict::warn,
               w("NVSHMEM_REMOTE_TRANSPORT=ibgda is not a value that NVSHMEM knows; IBGDA is switched by "
                 "NVSHMEM_IB_ENABLE_IBGDA",
                 "NVSHMEM 不认识 NVSHMEM_REMOTE_TRANSPORT=ibgda；IBGDA 由 NVSHMEM_IB_ENABLE_IBGDA 开启"),
               "environment", "unset NVSHMEM_REMOTE_TRANSPORT");
  if (value("NCCL_IB_DISABLE") == "1")
    return bad(Verdict::warn,
               w("NCCL_IB_DISABLE=1 turns RDMA off for NCCL", "NCCL_IB_DISABLE=1 会让 NCCL 不用 RDMA"),
               "environment", "unset NCCL_IB_DISABLE");
  if (contains(value("LD_PRELOAD"), "nvshmem"))
    return bad(Verdict::warn,
               w("LD_PRELOAD forces an NVSHMEM library: a sign that two versions are installed",
                 "LD_PRELOAD 强制加载 NVSHMEM：说明装了两个版本"),
               "environment", "epready env lint");
  return pass(w("no contradictory variable in force", "没有相互矛盾的环境变量"), "environment");
}

}  // namespace ep
