// Steps below the prefix: Python environment, wheels, sources built there, mapping, environment file. None
// needs root.
#include <fmt/format.h>

#include <algorithm>

#include "base/embedded.h"
#include "plan/build.h"

namespace ep {
namespace {

std::string base_version(const std::string& version) {
  return version.substr(0, version.find('+'));
}

std::string requirement_range(const std::string& requirement) {
  return requirement.substr(requirement_name(requirement).size());
}

std::string filled(const Build& b, const std::string& component) {
  const Release* r = b.release(component);
  return r ? fill_in(r->requirement, b.solution.scope) : std::string();
}

/// The requirement with the hashes that the data know for this machine's wheels, as a requirements file says
/// them.
std::string with_hashes(Build& b, const std::string& requirement, const Release* r) {
  return hashed_requirement(requirement, wheels_for(*r, requirement, b.machine()));
}

/// For Arm the default index carried builds without CUDA up to torch 2.10: their closed sets hold no triton.
bool without_cuda(const Build& b, const std::string& version) {
  const WheelSet* set = b.recipe.wheel_set("torch==" + version);
  if (!set) return false;
  const auto wheels = closed_set(*set, b.facts.os.architecture.value_or("x86_64"), {});
  return std::none_of(wheels.begin(), wheels.end(),
                      [](const auto& w) { return starts_with(w.requirement, "triton=="); });
}

/// The CUDA flavour of torch's wheels that goes with the toolkit: its own, else the default one of the same
/// major, else the highest of that major. `is_default`: the package index carries it under the plain name.
std::string torch_tag(const Build& b, bool& is_default) {
  const Release* r = b.release("torch");
  const std::string exact = "cu" + replace_all(b.version("cuda"), ".", "");
  std::string best, usual;
  for (const auto& t : r->traits) {
    if (starts_with(t, "default-")) usual = t.substr(8);
    if (starts_with(t, "cu" + b.cuda_major()) && !starts_with(t, "cuda") && t > best) best = t;
  }
  const bool has_exact = std::find(r->traits.begin(), r->traits.end(), exact) != r->traits.end();
  const std::string tag = has_exact ? exact : starts_with(usual, "cu" + b.cuda_major()) ? usual : best;
  is_default = tag == usual && !without_cuda(b, r->version);
  return tag;
}

/// Requirements that must win over torch's own pins, now and at every later install.
std::vector<std::string> overrides(const Build& b) {
  std::vector<std::string> out;
  for (const char* id : {"nccl", "nvshmem"})
    if (b.release(id) && !own_nvshmem(b)) out.push_back(filled(b, id));
  return out;
}

/// DeepEP V1 for GPUs before Hopper: intranode kernels alone.
bool without_nvshmem(const Build& b) {
  return has_trait(b.release("deepep"), "v1") && !b.release("nvshmem");
}
constexpr const char* kHidesNvshmem = "tools/without-nvshmem";

std::map<std::string, std::string> build_environment(const Build& b) {
  const std::string home = b.cuda_home();
  std::map<std::string, std::string> env = {{"CUDA_HOME", home}, {"TORCH_CUDA_ARCH_LIST", b.arch_list(true)}};
  const Release* cuda = b.release("cuda");
  const bool moved =
      cuda && std::find(cuda->traits.begin(), cuda->traits.end(), "cccl-moved") != cuda->traits.end();
  if (moved && b.option("cccl") == "include") env["CPATH"] = home + "/include/cccl";
  env["LIBRARY_PATH"] = home + "/lib64/stubs";  // -lcuda links without a driver
  if (own_nvshmem(b)) env["NVSHMEM_DIR"] = b.below("nvshmem");
  if (without_nvshmem(b)) {
    // DeepEP's setup allows this switch only where it finds no NVSHMEM, and torch brings the wheel along: an
    // empty package in front hides it from the build.
    env["DISABLE_SM90_FEATURES"] = "1";
    env["PYTHONPATH"] = b.below(kHidesNvshmem);
  }
  return env;
}

/// Where torch comes from when it is not the default index.
std::string torch_index(const Build& b) {
  const Release* r = b.release("torch");
  bool is_default = true;
  const std::string tag = r ? torch_tag(b, is_default) : std::string();
  return is_default ? std::string() : replace_all(r->index_url, "{torch-tag}", tag);
}

/// The closed set of wheels that torch comes with; nullptr: not on record, or torch is of an index of its
/// own.
const WheelSet* torch_wheels(const Build& b) {
  const Release* r = b.release("torch");
  return r && torch_index(b).empty() ? b.recipe.wheel_set("torch==" + r->version) : nullptr;
}

/// Packages that the stack takes from elsewhere than torch's pins say: "nvidia-nccl-cu13".
std::vector<std::string> overridden_packages(const Build& b) {
  std::vector<std::string> out;
  for (const auto& o : overrides(b)) out.push_back(requirement_name(o));
  return out;
}

}  // namespace

std::string short_commit(const std::string& commit) {
  return commit.substr(0, 7);
}

std::string commit_of(Build& b, const std::string& component) {
  const Release* r = b.release(component);
  const auto wish = b.wishes.commits.find(component);
  if (wish != b.wishes.commits.end()) {
    if (wish->second != r->git_commit)
      b.note("commit-by-hand", Severity::warn,
             b.w("{} is built at the commit you gave", "{} 按您给的提交编译", component),
             b.w("the rules judge it as release {}, which may not be what it is",
                 "规则按版本 {} 判断，可能与实际不符", r->version));
    return wish->second;
  }
  if (!r->git_commit.empty()) return r->git_commit;
  const std::string url = b.component(component).git_url;
  b.note("commit-not-known", Severity::fail,
         b.w("No commit is on record for {} {} ({})", "没有 {} {}（{}）的提交记录", component,
             b.version(component), r->git_ref),
         b.w("a moving name is not built; say which commit", "不构建会移动的引用；请指明提交"),
         {fmt::format("git ls-remote {} {}", url, r->git_ref),
          fmt::format("--with {}-commit=<40 hexadecimal digits>", component)});
  return {};
}

void make_override(Build& b, const std::string& component, const std::string& name) {
  const std::string requirement = filled(b, component);
  Step s = user_step(b, component, component,
                     b.w("Install {} {} (wheel)", "安装 {} {}（wheel）", name, b.version(component)));
  const std::vector<std::string> args = {b.venv(), requirement_name(requirement),
                                         requirement_range(requirement)};
  s.before = s.after = {{"wheel", args}};
  PipInstall pip;
  pip.venv = b.venv();
  pip.requirements = {with_hashes(b, requirement, b.release(component))};
  pip.overrides = overrides(b);
  pip.no_deps = true;
  s.actions = {pip};
  s.estimate_s = 60;
  const auto pin = b.solution.scope.find("torch." + component);
  if (pin != b.solution.scope.end() && pin->second.present && pin->second.text != b.version(component))
    s.why += b.w("; torch {} pins {}, so this override must stay in force",
                 "；torch {} 固定为 {}，此覆盖必须一直有效", b.version("torch"), pin->second.text);
  // One installer at a time in one environment: independent steps run side by side.
  b.consider(std::move(s), component == "nvshmem" ? std::vector<std::string>{"nccl", "torch", "python"}
                                                  : std::vector<std::string>{"torch", "python"});
}

void pin_wheels(const Build& b, Planned& out) {
  out.wheels = torch_wheels(b);
  if (!out.wheels) out.wheels = b.recipe.wheel_set("build-tools");
  out.overridden = overridden_packages(b);
  out.torch_index = torch_index(b);
}

void make_python(Build& b) {
  Step s = user_step(b, "python", "python",
                     b.w("Make a Python environment in {}", "在 {} 创建 Python 环境", b.venv()));
  s.why = b.w("the system's Python is not ours to change", "不改动系统 Python");
  s.runbook_phase = b.phase("torch");
  s.actions = {PythonVenv{b.venv(), "python3"}};
  s.before = s.after = {{"python-env", {b.venv()}}};
  // What a build needs comes with torch's closed set; without one it comes first.
  const WheelSet* tools = b.recipe.wheel_set("build-tools");
  if (!torch_wheels(b) && tools) {
    PipInstall pip;
    pip.venv = b.venv();
    pip.requirements = closed_requirements(*tools, b.machine(), {});
    pip.no_deps = true;
    s.actions.push_back(pip);
    s.before.push_back({"wheel", {b.venv(), "numpy", ">=1"}});
    s.after = s.before;
  }
  s.estimate_s = 20;
  b.consider(std::move(s), {"prefix", "build-tools"});
}

void make_torch(Build& b) {
  const Release* r = b.release("torch");
  if (!r) return;
  bool is_default = false;
  const std::string tag = torch_tag(b, is_default);
  Step s =
      user_step(b, "torch", "torch",
                b.w("Install PyTorch {} for CUDA ({})", "安装 PyTorch {}（{}）", b.version("torch"), tag));
  if (const auto pin = b.stack.pins.find("torch");
      !is_default && pin != b.stack.pins.end() && pin->second == b.version("torch"))
    // What the release's source says is true of the index's default build.
    s.why = b.w("pinned by stack {}; this is its build for CUDA {} ({})",
                "由组合 {} 固定；这是其 CUDA {} 版本（{}）", b.stack.id, b.cuda_major(), tag);
  PipInstall pip;
  pip.venv = b.venv();
  pip.requirements = {r->requirement};
  if (const WheelSet* set = torch_wheels(b)) {
    // The NCCL that torch pins never comes in: the steps that bring ours follow in the same call.
    pip.requirements = closed_requirements(*set, b.machine(), overridden_packages(b));
    pip.overrides = overrides(b);
    pip.no_deps = true;
  } else if (is_default) {
    pip.requirements = {with_hashes(b, r->requirement, r)};
    pip.overrides = overrides(b);
  } else {
    pip.index_url = torch_index(b);  // without our NCCL: the next step brings it
  }
  s.actions = {pip};
  s.before = s.after = {{"wheel", {b.venv(), "torch", requirement_range(r->requirement)}}};
  s.estimate_s = 300;
  b.consider(std::move(s), {"python"});
}

void make_nccl(Build& b) {
  if (b.release("nccl")) make_override(b, "nccl", "NCCL");
}

void make_deepep(Build& b) {
  const Release* r = b.release("deepep");
  if (!r) return;
  const std::vector<std::string> needs = {"torch",       "nccl",   "nvshmem", "cuda-toolkit",
                                          "build-tools", "prefix", "python"};
  if (has_trait(r, "wheel")) {
    Step s =
        user_step(b, "deepep", "deepep",
                  b.w("Install DeepEP {} from its wheel", "用 wheel 安装 DeepEP {}", b.version("deepep")));
    PipInstall pip;
    pip.venv = b.venv();
    pip.requirements = {with_hashes(b, r->requirement, r)};
    pip.overrides = overrides(b);
    pip.no_deps = true;  // its own pins would undo the overrides
    s.actions = {pip};
    s.before = s.after = {
        {"wheel", {b.venv(), requirement_name(r->requirement), requirement_range(r->requirement)}}};
    s.estimate_s = 30;
    b.consider(std::move(s), needs);
    return;
  }
  const std::string commit = commit_of(b, "deepep");
  if (commit.empty()) return;
  const bool v1 = has_trait(r, "v1");
  const std::string source = b.below("src/deepep-" + short_commit(commit)), root = b.below("deepep");
  std::string title = b.w("Build and install DeepEP {} for {}", "编译并安装 DeepEP {}（架构 {}）",
                          b.version("deepep"), b.arch_list(true));
  Step s = user_step(b, "deepep", "deepep", title);
  s.actions.push_back(GitCheckout{b.component("deepep").git_url, commit, source, !v1});
  std::string patches = "none";
  if (has_trait(r, "patched")) {
    // The patches are vLLM's; each commit pins their bytes.
    const auto& lists = b.component("deepep").lists;
    const auto list = lists.find("patches-" + base_version(r->version));
    patches.clear();
    for (const auto& line : list == lists.end() ? std::vector<std::string>() : list->second) {
      const auto words = split_ws(line);  // NAME URL COMMIT PATH
      const std::string name(words[0]),
          from = b.below("src/" + name + "-" + short_commit(std::string(words[2])));
      s.actions.push_back(GitCheckout{std::string(words[1]), std::string(words[2]), from, false});
      s.actions.push_back(ApplyPatch{from + "/" + std::string(words[3]), source});
      patches += (patches.empty() ? "" : ",") + name;
    }
  }
  if (!v1) {
    s.actions.push_back(WriteFile{b.below("tools/link_unversioned.py"),
                                  std::string(embedded("data/python/link_unversioned.py").value_or("")),
                                  0644});
    s.actions.push_back(
        RunArgv{{b.venv() + "/bin/python", b.below("tools/link_unversioned.py")}, "", {}, 60});
  }
  if (without_nvshmem(b))
    s.actions.push_back(WriteFile{b.below(kHidesNvshmem) + "/nvidia/__init__.py",
                                  "# Hides nvidia.nvshmem while DeepEP is built without it.\n", 0644});
  PipInstall pip;
  pip.venv = b.venv();
  pip.requirements = {source};
  pip.overrides = overrides(b);
  pip.no_deps = pip.no_build_isolation = true;
  pip.env = build_environment(b);
  if (b.options.wheel) {
    const std::string dist = b.below("dist");
    s.title = b.w("Build a wheel of DeepEP {} for {} in {}", "编译 DeepEP {}（架构 {}）的 wheel 到 {}",
                  b.version("deepep"), b.arch_list(true), dist);
    s.actions.push_back(MakeDir{dist, 0755});
    s.actions.push_back(RunArgv{{b.venv() + "/bin/python", "-m", "pip", "wheel", "--no-deps",
                                 "--no-build-isolation", "-w", dist, source},
                                "",
                                pip.env,
                                7200});
  } else {
    s.actions.push_back(pip);
  }
  std::map<std::string, std::string> stamp = {{"commit", commit},
                                              {"torch", b.version("torch")},
                                              {"cuda", b.version("cuda")},
                                              {"arch", b.arch_list(false)},
                                              {"patches", patches}};
  if (b.release("nvshmem")) stamp["nvshmem"] = b.version("nvshmem");
  if (b.release("nccl")) stamp["nccl"] = b.version("nccl");
  s.actions.push_back(stamp_file(root, stamp));
  if (b.options.wheel) {
    s.actions.pop_back();
    stamp["wheel"] = "dist";
    s.actions.push_back(stamp_file(root, stamp));
  }
  s.before = s.after = {part_predicate("deepep", b.options.prefix, stamp)};
  if (!b.options.wheel)
    s.before = s.after = {{"wheel", {b.venv(), "deep-ep", "==" + base_version(r->version)}}, s.after[0]};
  s.estimate_s = 600;
  b.consider(std::move(s), needs);
}

void make_consumer(Build& b) {
  const std::string id = b.options.consumer;
  const Release* r = b.release(id);
  if (!r) return;
  Step s = user_step(b, id, id,
                     b.w("Install {} {} under the same overrides", "在相同覆盖下安装 {} {}",
                         b.component(id).title.in(b.options.lang), r->version));
  PipInstall pip;
  pip.venv = b.venv();
  pip.requirements = {r->requirement};
  pip.overrides = overrides(b);
  s.actions = {pip};
  s.before =
      s.after = {{"wheel", {b.venv(), requirement_name(r->requirement), requirement_range(r->requirement)}}};
  s.estimate_s = 300;
  b.consider(std::move(s), {"torch", "nccl", "nvshmem", "deepep"});
}

}  // namespace ep
