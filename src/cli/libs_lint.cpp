// `libs lint`: judges the libraries of a Python environment without importing anything.
#include "check/libs_lint.h"

#include <cstdlib>
#include <filesystem>

#include "cli/rows.h"
#include "host/host.h"
#include "report/libs_report.h"

namespace ep {
namespace {

bool of_interest(const PythonEnvironment& e) {
  for (const auto& p : e.packages)
    for (const char* name :
         {"torch", "deep-ep", "sgl-deep-ep", "nvidia-nccl-cu", "nvidia-nvshmem-cu", "vllm", "sglang"})
      if (starts_with(p.name, name)) return true;
  return false;
}

class LibsLintCommand : public Command {
 public:
  std::vector<Option> options() override {
    return {
        {"prefix",
         {"Python environment, or a folder of epready with venv/ in it (default: the environment in force)",
          "Python 环境，或含 venv/ 的 epready 目录（默认：当前环境）"},
         &prefix_,
         {},
         "PREFIX",
         false}};
  }

  int run(Context& c) override {
    auto host = c.open();
    if (!host) return c.report(host.error());
    if (!prefix_.empty() && c.from.empty()) {
      std::error_code ec;
      prefix_ = std::filesystem::absolute(prefix_, ec).lexically_normal().string();
    }
    while (prefix_.size() > 1 && prefix_.back() == '/') prefix_.pop_back();
    auto read = c.read(**host, prefix_);
    if (!read) return c.report(read.error());
    const Facts& facts = *read;
    auto environment = choose(c, **host, facts);
    if (!environment) return c.report(environment.error());
    const LibraryFacts libraries = read_libraries(**host, *environment, facts);
    const LibsLint lint = lint_libraries(libraries, *environment, facts, c.lang);
    c.out(c.json ? libs_lint_json(libraries, lint) : libs_lint_text(libraries, lint, c.look()));
    const Finding* worst = nullptr;
    for (const auto& f : lint.findings)
      if (f.severity == Severity::fail && (!worst || (worst->fix.empty() && !f.fix.empty()))) worst = &f;
    // The first fault's own mend: the doctor plans steps of ours, and most faults here are pip's.
    c.next(!worst               ? "epready verify -r 1" + c.from_option()
           : worst->fix.empty() ? "epready explain " + worst->code
                                : worst->fix.front());
    return worst ? 1 : 0;
  }

 private:
  Result<PythonEnvironment> choose(const Context& c, const Host& host, const Facts& facts) const {
    if (!prefix_.empty()) {
      for (const auto& root : {prefix_ + "/venv", prefix_})
        if (host.exists(root + "/bin/python3")) return read_environment_at(host, root);
      return fail(ErrorKind::absent, "no Python environment there", prefix_,
                  "neither bin/python3 nor venv/bin/python3 is in it",
                  "epready facts --area python" + c.from_option());
    }
    // facts order them as a shell would: the active one first, then those on PATH, then the usual places.
    for (const auto& e : facts.python)
      if (of_interest(e)) return e;
    return fail(ErrorKind::absent, "no Python environment here holds torch, NCCL, NVSHMEM or DeepEP",
                facts.host_name, "looked at " + std::to_string(facts.python.size()) + " environments",
                "epready libs  (plans one), or name one: epready libs lint PREFIX");
  }
  std::string prefix_;
};

}  // namespace

std::unique_ptr<Command> make_libs_lint() {
  return std::make_unique<LibsLintCommand>();
}

}  // namespace ep
