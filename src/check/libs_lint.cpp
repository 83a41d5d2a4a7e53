#include "check/libs_lint.h"

#include <algorithm>
#include <set>

#include "base/version.h"
#include "base/words.h"
#include "check/libs_lint_parts.h"

namespace ep {
namespace {

constexpr const char* kQpOrderNvshmem = "3.5.19";  // DeepEP pulls 564, 696: another order of RC queue pairs

bool older(const std::string& a, const std::string& b) {
  return compare_versions(VersionOrder::dotted, plain_version(a), b) < 0;
}
bool below(const std::string& path, const std::string& root) {
  return starts_with(path, root + "/");
}
std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}
const char* title_of(const std::string& family) {
  return family == "nccl"      ? "NCCL"
         : family == "nvshmem" ? "NVSHMEM"
         : family == "cudart"  ? "CUDA runtime"
                               : "DeepEP";
}
std::string major_of_package(const std::string& name) {
  const size_t at = name.rfind("-cu");
  std::string tail = at == std::string::npos ? std::string() : name.substr(at + 3);
  return parse_int(tail) ? tail : std::string();
}

/// Folders that a build leaves behind and somebody clears away.
bool will_vanish(const std::string& folder) {
  for (const char* root : {"/tmp/", "/var/tmp/", "/dev/shm/", "/build/", "/workspace/"})
    if (starts_with(folder + "/", root)) return true;
  for (const char* part : {"/build/", "_workspace/", "/pip-", ".egg/", "/workspace/"})
    if (contains(folder + "/", part)) return true;
  return false;
}

class Linter {
 public:
  Linter(const LibraryFacts& l, const PythonEnvironment& e, const Facts& f, Lang lang)
      : l_(l), e_(e), f_(f), w_{lang} {}

  LibsLint run() {
    wrong_package();
    missing();
    files_of_wheels();
    cuda_major();
    for (const char* family : {"nccl", "nvshmem", "cudart"}) one_family(family);
    nccl_of_deepep();
    nvshmem_of_deepep();
    architectures();
    for (const auto& c : l_.copies)
      if (c.found_by == "environment") search_paths(c);
    not_read();
    vllm_probes(l_, e_, f_, w_, out_);
    std::stable_sort(out_.findings.begin(), out_.findings.end(),
                     [](const auto& a, const auto& b) { return a.severity > b.severity; });
    return std::move(out_);
  }

 private:
  void say(const char* code, Severity severity, std::string title, std::string cause,
           std::vector<std::string> fix, std::vector<Evidence> evidence) {
    Finding f;
    f.code = code;
    f.severity = severity;
    f.title = std::move(title);
    f.cause = std::move(cause);
    f.fix = std::move(fix);
    f.evidence = std::move(evidence);
    out_.findings.push_back(std::move(f));
  }
  std::string pip(const std::string& what) const { return e_.interpreter + " -m pip install " + what; }

  const PythonPackage* package(std::string_view name) const {
    for (const auto& p : e_.packages)
      if (p.name == name) return &p;
    return nullptr;
  }
  /// What a process that imports torch, then deep_ep, holds of a family; nullptr: none.
  const Resolution* loaded(const std::string& family) const {
    for (const auto* list : {&l_.torch, &l_.deepep})
      for (const auto& r : *list)
        if (const LibraryCopy* c = l_.at(r.path); c && c->family == family) return &r;
    return nullptr;
  }

  void wrong_package() {
    const PythonPackage* p = package("deep-ep");
    if (!p || extension_of(l_)) return;
    // No public index takes a version with a local part (PEP 440): that one was built, and where no library
    // at all was read (a snapshot keeps none), nothing can be said of it.
    if (contains(p->version, "+") && l_.copies.empty()) {
      say("libs-not-read", Severity::warn,
          w_("no library of {} {} was read: nothing can be said of it", "未读取 {} {} 的任何库：无法判断",
             p->name, p->version),
          w_("a snapshot keeps no libraries", "快照不保存库文件"),
          {"epready libs lint   (on the host itself)"}, {{p->location, 0, p->name + " " + p->version}});
      return;
    }
    say("libs-wrong-package", Severity::fail,
        w_("{} {} is installed and holds no DeepEP extension", "已安装 {} {}，但其中没有 DeepEP 扩展",
           p->name, p->version),
        w_("DeepSeek publishes nothing under that name on the package index; what is there is somebody "
           "else's",
           "DeepSeek 没有在软件源以该名字发布；那里的包属于他人"),
        {e_.interpreter + " -m pip uninstall deep-ep", "epready libs"},
        {{p->location, 0, p->name + " " + p->version}});
  }

  void missing() {
    for (const auto& r : l_.deepep) {
      if (!r.path.empty() || is_driver_library(r.soname) || starts_with(r.soname, "ld-linux")) continue;
      say("libs-missing", Severity::fail,
          w_("DeepEP needs {}, and no loader finds it", "DeepEP 需要 {}，但加载器找不到", r.soname),
          w_("import deep_ep fails with: {}: cannot open shared object file",
             "import deep_ep 会报错：{}: cannot open shared object file", r.soname),
          {"epready libs"}, {{r.object, 0, "NEEDED " + r.soname}});
    }
  }

  void files_of_wheels() {
    size_t others = 0;
    const FileClash* first = nullptr;
    for (const auto& c : l_.clashes) {
      if (c.same_bytes) continue;
      if (!l_.at(c.path)) {
        ++others;
        if (!first) first = &c;
        continue;
      }
      say("libs-overwritten", Severity::fail,
          w_("{} belongs to {}: the last one installed overwrote the others",
             "{} 属于 {}：后安装者覆盖了其他包", c.path, join(c.wheels, ", ")),
          w_("removing either of them removes the file of the other", "卸载其一会删掉另一个的文件"),
          {w_("uninstall all of them, then install the one of the CUDA major in use",
              "全部卸载，再安装与所用 CUDA 主版本一致的那个")},
          {{c.path, 0, join(c.wheels, ", ")}});
    }
    if (first)
      say("libs-overwritten", Severity::warn,
          w_("{} files are claimed by more than one wheel with different content",
             "{} 个文件被多个 wheel 声明且内容不同", others),
          w_("the last one installed overwrote the others", "后安装者覆盖了其他包"), {},
          {{first->path, 0, join(first->wheels, ", ")}});
    for (const auto& c : l_.copies)
      if (c.recorded_size > 0 && c.size != c.recorded_size)
        say("libs-changed", Severity::fail,
            w_("{} is not the file that {} {} brought", "{} 不是 {} {} 带来的文件", c.path, c.wheel,
               c.wheel_version),
            w_("it has {} bytes, the wheel's record says {}: something replaced it later",
               "大小为 {} 字节，wheel 记录为 {}：之后被替换过", c.size, c.recorded_size),
            {pip(fmt::format("--no-deps --force-reinstall '{}=={}'", c.wheel, c.wheel_version))},
            {{c.path, 0, ""}});
    if (!l_.dead_records.empty())
      say("libs-record", Severity::warn,
          w_("wheels without a readable RECORD: {}", "缺少可读 RECORD 的 wheel：{}",
             join(l_.dead_records, ", ")),
          w_("who owns which file cannot be told for them", "无法判断这些包拥有哪些文件"), {}, {});
  }

  void cuda_major() {
    if (l_.torch_cuda_major.ok()) {
      const int want = *l_.torch_cuda_major;
      const auto judge = [&](const LibraryCopy* c) {
        if (!c || c->cuda_major == 0 || c->cuda_major == want) return;
        say("libs-cuda-major", Severity::fail,
            w_("{} is built for CUDA {}, torch for CUDA {}", "{} 面向 CUDA {}，而 torch 面向 CUDA {}",
               base_name(c->path), c->cuda_major, want),
            w_("two CUDA runtimes in one process: symbols are missing or handles do not fit",
               "同一进程中有两个 CUDA 运行时：缺符号或句柄不通用"),
            {w_("one CUDA major for torch, NCCL, NVSHMEM and DeepEP: epready libs",
                "torch、NCCL、NVSHMEM、DeepEP 使用同一 CUDA 主版本：epready libs")},
            {{c->path, 0, c->version.value_or("")}, {l_.torch_cuda_major.where, 0, ""}});
      };
      judge(extension_of(l_));
      for (const char* family : {"nccl", "nvshmem"})
        if (const Resolution* r = loaded(family)) judge(l_.at(r->path));
    }
    std::map<std::string, std::set<std::string>> majors;
    for (const auto& p : e_.packages)
      if (const std::string m = major_of_package(p.name); starts_with(p.name, "nvidia-") && !m.empty())
        majors[p.name.substr(0, p.name.rfind("-cu"))].insert(m);
    for (const auto& [name, have] : majors)
      if (have.size() > 1)
        say("libs-cuda-major", Severity::fail,
            w_("{} is installed for CUDA {}", "{} 同时安装了 CUDA {} 的版本", name,
               join({have.begin(), have.end()}, w_(" and ", " 与 "))),
            w_("both wheels write the same files; which one is there depends on the order of installing",
               "两个 wheel 写入相同文件；实际内容取决于安装顺序"),
            {e_.interpreter + " -m pip uninstall " + name + "-cu" +
                 join({have.begin(), have.end()}, " " + name + "-cu"),
             "epready libs"},
            {{e_.root, 0, ""}});
  }

  /// Copies of one family: which one is loaded, do its header, wheel and library agree, what else lies about.
  void one_family(const std::string& family) {
    const Resolution* r = loaded(family);
    const LibraryCopy* winner = r ? l_.at(r->path) : nullptr;
    const LibraryCopy* own = nullptr;  // the environment's
    for (const auto& c : l_.copies)
      if (c.family == family && c.found_by == "environment" && (!own || c.path == (r ? r->path : "")))
        own = &c;
    for (const auto& c : l_.copies) {
      if (c.family != family || c.found_by != "environment" || !c.version.ok() || family == "cudart")
        continue;
      std::vector<std::string> said;
      if (c.header_version.ok() && plain_version(*c.version) != *c.header_version)
        said.push_back(w_("headers {}", "头文件 {}", *c.header_version));
      if (!c.wheel.empty() && plain_version(*c.version) != plain_version(c.wheel_version) &&
          !contains(c.wheel_version, plain_version(*c.version)))
        said.push_back(w_("wheel {} {}", "wheel {} {}", c.wheel, c.wheel_version));
      if (!said.empty())
        say("libs-versions", Severity::fail,
            w_("{} says it is {} {}, but: {}", "{} 自称 {} {}，但：{}", c.path, title_of(family), *c.version,
               join(said, ", ")),
            w_("what is compiled here and what is loaded later differ", "编译所用与运行时加载的不一致"),
            {c.wheel.empty()
                 ? "epready libs"
                 : pip(fmt::format("--no-deps --force-reinstall '{}=={}'", c.wheel, c.wheel_version))},
            {{c.path, 0, *c.version}, {c.header_version.where, 0, c.header_version.value_or("")}});
    }
    if (winner && own && winner != own && winner->found_by != "environment") {
      const bool same = winner->version.ok() && own->version.ok() && *winner->version == *own->version;
      say("libs-shadowed", same ? Severity::warn : Severity::fail,
          w_("{} wins over the environment's own {} (by {})", "{} 抢先于环境自己的 {}（通过 {}）",
             winner->path, title_of(family), r->how),
          w_("loaded {}, installed {}", "加载 {}，已安装 {}", winner->version.value_or("?"),
             own->version.value_or("?")),
          {"unset " + std::string(r->how == "LD_PRELOAD" ? "LD_PRELOAD" : "LD_LIBRARY_PATH")},
          {{r->object, 0, r->soname + " -> " + r->path}, {own->path, 0, own->version.value_or("")}});
      return;
    }
    std::vector<Evidence> others;
    for (const auto& c : l_.copies)
      if (c.family == family && winner && &c != winner &&
          c.version.value_or("") != winner->version.value_or(""))
        others.push_back({c.path, 0, c.version.value_or("?") + " (" + c.found_by + ")"});
    const size_t count = others.size();
    if (count > 0 && family != "cudart")
      say("libs-other-copies", Severity::info,
          w_("{} {} is loaded; {} other copies lie on the machine",
             "加载的是 {} {}；机器上还有 {} 份其他副本", title_of(family), winner->version.value_or("?"),
             count),
          w_("LD_LIBRARY_PATH or LD_PRELOAD would bring one of them in",
             "LD_LIBRARY_PATH 或 LD_PRELOAD 会引入其中之一"),
          {}, std::move(others));
  }

  bool is_v2() const { return l_.elastic_buffer.value_or(false); }

  void nccl_of_deepep() {
    if (!is_v2()) return;
    const LibraryCopy* c = l_.at(l_.vllm_nccl);
    const Resolution* r = loaded("nccl");
    if (r && !l_.vllm_nccl.empty() && r->path != l_.vllm_nccl)
      say("libs-duplicate", Severity::fail,
          w_("two NCCL libraries would be loaded: {} and {}", "会加载两份 NCCL：{} 与 {}", r->path,
             l_.vllm_nccl),
          w_("DeepEP stops with \"Duplicate NCCL runtime found\"",
             "DeepEP 会以 \"Duplicate NCCL runtime found\" 终止"),
          {"unset VLLM_NCCL_SO_PATH"}, {{"VLLM_NCCL_SO_PATH", 0, l_.vllm_nccl}, {r->object, 0, r->soname}});
    if (r)
      if (const LibraryCopy* now = l_.at(r->path)) c = now;
    if (!c || !c->version.ok() || !older(*c->version, kV2Nccl)) return;
    const std::string wheel =
        !c->wheel.empty() ? c->wheel : "nvidia-nccl-cu" + std::to_string(std::max(12, c->cuda_major));
    say("libs-nccl-old", Severity::fail,
        w_("NCCL {} would be loaded; DeepEP {} needs {} or newer",
           "会加载 NCCL {}；DeepEP {} 需要 {} 或更新版本", *c->version, l_.deepep_version, kV2Nccl),
        w_("a later install moved it back, or the override was never made", "之后的安装把它降级，或从未覆盖"),
        {"epready doctor --fix", pip(fmt::format("--no-deps '{}>={}'", wheel, kV2Nccl))},
        {{c->path, 0, "NCCL version " + *c->version}, {c->wheel + " " + c->wheel_version, 0, ""}});
  }

  void nvshmem_of_deepep() {
    const Resolution* r = loaded("nvshmem");
    const LibraryCopy* host = r ? l_.at(r->path) : nullptr;
    if (!host || !host->version.ok()) return;
    for (const auto& p : f_.parts) {
      const auto built = p.stamp.find("nvshmem");
      if (p.name != "deepep" || built == p.stamp.end() ||
          !below(e_.root, p.root.substr(0, p.root.rfind('/'))))
        continue;
      if (older(built->second, kQpOrderNvshmem) == older(*host->version, kQpOrderNvshmem)) continue;
      say("libs-nvshmem-boundary", Severity::fail,
          w_("DeepEP was built with NVSHMEM {}, {} is loaded", "DeepEP 以 NVSHMEM {} 编译，加载的是 {}",
             built->second, *host->version),
          w_("3.5.19 changed the order of queue pairs: the first dispatch between nodes hangs or faults",
             "3.5.19 改变了 QP 顺序：第一次跨节点 dispatch 会挂起或出错"),
          {"epready libs"},
          {{p.root + "/.epready-part", 0, "nvshmem=" + built->second}, {host->path, 0, *host->version}});
    }
  }

  void architectures() {
    const LibraryCopy* c = extension_of(l_);
    if (!c || c->code.empty() || c->code.cut) return;
    std::set<int> lacking;
    for (const auto& g : f_.gpus)
      if (g.compute_capability.ok() && !c->code.serves(*g.compute_capability))
        lacking.insert(*g.compute_capability);
    std::vector<std::string> have;
    for (int a : c->code.cubin) have.push_back(std::to_string(a));
    for (int a : lacking)
      say("libs-arch", Severity::fail,
          w_("DeepEP holds no code for this machine's GPUs (compute capability {}.{})",
             "DeepEP 不含本机 GPU 的代码（计算能力 {}.{}）", a / 10, a % 10),
          w_("built for {}: kernels fail with \"no kernel image\" or \"named symbol not found\"",
             "编译架构为 {}：会报 \"no kernel image\" 或 \"named symbol not found\"", join(have, ", ")),
          {fmt::format("epready libs --with arch={}.{}", a / 10, a % 10)},
          {{c->path, 0, "sm_" + join(have, " sm_")}});
  }

  void search_paths(const LibraryCopy& c) {
    if (!c.elf.ok()) return;
    std::vector<Evidence> dead;
    for (const auto* list : {&c.elf->runpath, &c.elf->rpath})
      for (const auto& folder : *list) {
        if (starts_with(folder, "$") || !starts_with(folder, "/")) continue;
        std::vector<std::string> through;
        if (c.family == "deepep")
          for (const auto& r : l_.deepep)
            if (r.object == r.first && below(r.path, folder)) through.push_back(r.soname);
        const bool vanishing = will_vanish(folder);
        if (!through.empty() && !vanishing) continue;  // in use and meant to stay
        if (!through.empty())
          say("libs-runpath", Severity::warn,
              w_("{} finds {} through {}, which will not stay", "{} 通过 {} 找到 {}，该目录不会长期存在",
                 base_name(c.path), join(through, ", "), folder),
              w_("when that folder is cleared away, the import fails", "该目录被清理后导入会失败"),
              {"epready libs"}, {{c.path, 0, "RUNPATH " + folder}});
        else if (vanishing)
          say("libs-runpath", Severity::warn,
              w_("{} looks for libraries in {}, where anybody may put one",
                 "{} 在 {} 中找库，任何人都可放入文件", base_name(c.path), folder),
              w_("a build folder was left in it", "编译目录残留其中"), {"epready libs"},
              {{c.path, 0, "RUNPATH " + folder}});
        else
          dead.push_back({c.path, 0, "RUNPATH " + folder});
      }
    if (!dead.empty())
      say("libs-runpath", Severity::info,
          w_("{} names folders that bring nothing here", "{} 含有在此不起作用的目录", base_name(c.path)),
          w_("they are of the machine that built it; torch loads what is needed before",
             "来自编译它的机器；所需的库由 torch 先加载"),
          {}, std::move(dead));
  }

  void not_read() {
    for (const auto& c : l_.copies)
      if (c.elf.known == Known::unreadable ||
          (c.elf.known == Known::malformed && c.found_by == "environment"))
        say("libs-not-read", c.elf.known == Known::malformed ? Severity::fail : Severity::warn,
            w_("{} could not be read", "无法读取 {}", c.path), c.elf.why, {}, {{c.path, 0, c.elf.why}});
  }

  const LibraryFacts& l_;
  const PythonEnvironment& e_;
  const Facts& f_;
  Words w_;
  LibsLint out_;
};

}  // namespace

bool is_driver_library(std::string_view soname) {
  return starts_with(soname, "libcuda.so") || starts_with(soname, "libnvidia-") ||
         starts_with(soname, "libnvcuvid.so");
}

LibsLint lint_libraries(const LibraryFacts& libraries, const PythonEnvironment& environment,
                        const Facts& facts, Lang lang) {
  return Linter(libraries, environment, facts, lang).run();
}

}  // namespace ep
