// What vLLM's own probes would answer, from files: vllm/utils/import_utils.py has_deep_ep() (a module and a
// trial import) and has_deep_ep_v2() (besides: attribute ElasticBuffer, and ncclGetVersion of the NCCL it
// would load).
#include <algorithm>

#include "base/version.h"
#include "check/libs_lint_parts.h"

namespace ep {
namespace {

class Probe {
 public:
  Probe(const LibraryFacts& l, const PythonEnvironment& e, const Facts& f, const Words& w, LibsLint& out)
      : l_(l), e_(e), f_(f), w_(w), out_(out) {}

  void run() {
    const LibraryCopy* ext = extension_of(l_);
    Outcome& one = out_.has_deep_ep;
    if (!ext && !l_.elastic_buffer.ok()) {
      const bool built = std::any_of(e_.packages.begin(), e_.packages.end(), [](const PythonPackage& p) {
        return p.name == "deep-ep" && contains(p.version, "+");
      });
      const bool unread = l_.copies.empty() && built;  // a snapshot keeps no libraries
      const bool unknown = unread || l_.elastic_buffer.known == Known::unreadable;
      one = {unknown ? Verdict::unknown : Verdict::fail,
             unread    ? w_("no library was read", "未读取任何库")
             : unknown ? l_.elastic_buffer.why
                       : w_("no module deep_ep in {}", "{} 中没有模块 deep_ep", e_.root)};
      out_.has_deep_ep_v2 = one;
      return;
    }
    std::vector<std::string> lost, driver;
    for (const auto& r : l_.deepep)
      if (r.path.empty()) (is_driver_library(r.soname) ? driver : lost).push_back(r.soname);
    if (!ext)
      one = {Verdict::fail, w_("deep_ep has no extension: the import fails", "deep_ep 没有扩展：导入失败")};
    else if (!ext->elf.ok())
      one = {Verdict::unknown, ext->path + ": " + ext->elf.why};
    else if (!lost.empty())
      one = {Verdict::fail,
             w_("the trial import fails: {} is not found", "试导入失败：找不到 {}", join(lost, ", "))};
    else if (!driver.empty())
      one = {Verdict::not_run, w_("needs the driver's {}; everything else is found",
                                  "需要驱动的 {}；其余均已找到", join(driver, ", "))};
    else if (f_.gpus.empty())
      one = {Verdict::not_run, w_("all libraries are found; the import itself needs a GPU",
                                  "所有库均已找到；导入本身需要 GPU")};
    else
      one = {Verdict::pass, w_("{} {}, all {} libraries are found", "{} {}，{} 个库均已找到", l_.deepep_wheel,
                               l_.deepep_version, l_.deepep.size())};
    out_.has_deep_ep_v2 = v2_probe(one);
  }

 private:
  Outcome v2_probe(const Outcome& import) {
    if (import.verdict == Verdict::fail) return import;
    if (!l_.elastic_buffer.value_or(false))
      return {l_.elastic_buffer.ok() ? Verdict::fail : Verdict::unknown,
              w_("deep_ep has no attribute ElasticBuffer (DeepEP {})",
                 "deep_ep 没有属性 ElasticBuffer（DeepEP {}）", l_.deepep_version)};
    const LibraryCopy* c = l_.at(l_.vllm_nccl);
    if (!c) return {Verdict::fail, w_("no libnccl.so.2 is found", "找不到 libnccl.so.2")};
    if (!c->version.ok()) return {Verdict::unknown, c->path + ": " + c->version.why};
    const int code = nccl_code(plain_version(*c->version));
    if (code < nccl_code(kV2Nccl))
      return {Verdict::fail, w_("NCCL is {}, the probe wants 23004 or more ({})",
                                "NCCL 为 {}，探测要求 23004 以上（{}）", code, c->path)};
    const std::string seen = w_("ElasticBuffer is there, NCCL is {} (23004 wanted)",
                                "有 ElasticBuffer，NCCL 为 {}（要求 23004）", code);
    return {import.verdict, import.verdict == Verdict::pass ? seen : seen + "; " + import.reason};
  }

  const LibraryFacts& l_;
  const PythonEnvironment& e_;
  const Facts& f_;
  const Words& w_;
  LibsLint& out_;
};

}  // namespace

void vllm_probes(const LibraryFacts& libraries, const PythonEnvironment& environment, const Facts& facts,
                 const Words& words, LibsLint& out) {
  Probe(libraries, environment, facts, words, out).run();
}

}  // namespace ep
