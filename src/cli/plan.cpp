// `plan`: what would change on this host, why, and nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/output_file.h"
#include "cli/plan_options.h"
#include "cli/rows.h"
#include "host/host.h"
#include "plan/fact_scope.h"
#include "plan/lock.h"
#include "plan/plan_json.h"
#include "render/render.h"
#include "report/lanes_report.h"
#include "report/plan_report.h"

namespace ep {
namespace {

class PlanCommand : public Command {
 public:
  PlanCommand() { arguments_.plan.prefix.clear(); }

 protected:
  /// What libs and driver set before the common way.
  virtual Result<> prepare(Context&) { return {}; }
  virtual std::string name() const { return "plan"; }
  PlanArguments arguments_;

 public:
  std::vector<Option> options() override {
    auto o = plan_options(arguments_);
    o.push_back(
        {"-o,--output",
         {"Write the plan to FILE, for epready apply FILE", "把计划写入 FILE，供 epready apply FILE 使用"},
         &output_,
         {},
         "FILE",
         false});
    o.push_back({"--lock",
                 {"Write the chosen versions to epready.lock", "把选中的版本写入 epready.lock"},
                 &lock_,
                 {},
                 "",
                 false});
    o.push_back({"--locked",
                 {"Refuse when epready.lock says something else", "与 epready.lock 不一致时拒绝"},
                 &locked_,
                 {},
                 "",
                 false});
    o.push_back({"--as",
                 {"Write the plan in another form: script, dockerfile, ansible, cloud-init, k8s",
                  "以其他形式输出：script、dockerfile、ansible、cloud-init、k8s"},
                 &form_,
                 {},
                 "FORM",
                 false});
    o.push_back({"--detailed-exitcode",
                 {"Exit 6 when changes are pending", "有待执行的更改时退出码为 6"},
                 &detailed_,
                 {},
                 "",
                 false});
    o.push_back({"-v,--verbose",
                 {"Show every version with the rule that chose it", "显示每个版本及选中它的规则"},
                 &verbose_,
                 {},
                 "",
                 false});
    return o;
  }

  int run(Context& c) override {
    const Words w{c.lang};
    if (auto ok = prepare(c); !ok) return c.report(ok.error());
    auto input = plan_input(c, arguments_);
    if (!input) return c.report(input.error());
    auto planned = make_plan(input->facts, input->recipe, arguments_.plan);
    if (!planned) return c.report(planned.error());
    const Plan& plan = planned->plan;
    if (locked_) {
      std::ifstream file("epready.lock", std::ios::binary);
      if (!file)
        return c.report(Error{ErrorKind::usage,
                              "there is no lock",
                              "epready.lock",
                              std::strerror(errno),
                              "epready plan --lock",
                              {}});
      const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      if (auto ok = check_lock(text, "epready.lock", *planned); !ok) return c.report(ok.error());
    }
    if (lock_) {
      if (auto ok = write_output("epready.lock", lock_text(*planned)); !ok) return c.report(ok.error());
      c.note(w("versions written to epready.lock", "版本已写入 epready.lock"));
    }
    if (!form_.empty()) {
      RenderInput in{&plan, {}, "ubuntu:24.04", c.lang};
      const Platform* pod = planned->platform && !planned->platform->pod.empty()
                                ? planned->platform
                                : input->recipe.platform("container");
      if (pod) in.pod = pod->pod;
      auto text = render(form_, in);
      if (!text) return c.report(text.error());
      if (output_.empty()) {
        c.out(*text);
      } else {
        if (auto ok = write_output(output_, *text); !ok) return c.report(ok.error());
        c.note(w("written to {}", "已写入 {}", output_));
      }
      return 0;
    }
    if (!output_.empty()) {
      if (auto ok = write_output(output_, plan_to_json(plan)); !ok) return c.report(ok.error());
      c.note(w("plan written to {}", "计划已写入 {}", output_));
    }
    const auto gaps = plan.lane == "local" ? std::vector<PodGap>()
                                           : pod_gaps(planned->platform, fact_scope(input->facts), c.lang);
    if (c.json) {
      c.out(plan_report_json(*planned, gaps));
    } else {
      c.out(plan_text(plan, c.look()));
      if (!gaps.empty())
        c.out("\n" + w("This pod lacks, as lines of its specification:", "此 Pod 缺少（按规格中的行）：") +
              "\n" + pod_text(gaps, c.look()));
      if (verbose_) c.out("\n" + versions_text(planned->solution, c.look()));
    }
    if (plan.empty())
      c.next(plan.lane == "local" ? "epready bench" : "epready verify -r 2");
    else
      c.next(output_.empty()
                 ? "epready " + name() + " -o " + name() + ".json && epready apply " + name() + ".json"
                 : "epready apply " + output_);
    return detailed_ && !plan.empty() ? 6 : 0;
  }

 private:
  std::string output_, form_;
  bool detailed_ = false, verbose_ = false, lock_ = false, locked_ = false;
};

/// What the scripts of vLLM's tools/ep_kernels do in user space: DeepEP and its wheels, without root.
class LibsCommand : public PlanCommand {
 public:
  LibsCommand() {
    arguments_.plan.scope = PlanOptions::Scope::libs;
    arguments_.plan.lane = "v2";
    arguments_.plan.consumer = "vllm";
  }
  std::vector<Option> options() override {
    auto o = PlanCommand::options();
    o.push_back({"workspace",
                 {"The same as --workspace: older scripts took it so", "同 --workspace：旧脚本用位置参数"},
                 &positional_,
                 {},
                 "DIR",
                 false});
    o.push_back(
        {"--workspace",
         {"Folder of the work (default ./ep_kernels_workspace)", "工作目录（默认 ./ep_kernels_workspace）"},
         &workspace_,
         {},
         "DIR",
         false});
    o.push_back({"--mode",
                 {"install into PREFIX/venv, or wheel into PREFIX/dist",
                  "install 安装到 PREFIX/venv，wheel 生成到 PREFIX/dist"},
                 &mode_,
                 {"install", "wheel"},
                 "MODE",
                 false});
    o.push_back({"--deepep-ref",
                 {"DeepEP commit, all 40 digits", "DeepEP 提交（完整 40 位）"},
                 &ref_,
                 {},
                 "COMMIT",
                 false});
    o.push_back({"--nvshmem-ver", {"NVSHMEM version", "NVSHMEM 版本"}, &nvshmem_, {}, "VERSION", false});
    return o;
  }

 private:
  Result<> prepare(Context& c) override {
    PlanOptions& p = arguments_.plan;
    auto host = c.open();
    if (!host) return Failure(host.error());
    const auto environment = (*host)->environment();
    // What the scripts read from the environment means the same here; an option goes before it.
    const auto variable = [&](const char* name, std::string& into) {
      const auto it = environment.find(name);
      if (into.empty() && it != environment.end()) into = it->second;
    };
    if (!positional_.empty() && !workspace_.empty() && positional_ != workspace_)
      return fail(ErrorKind::usage, "two workspaces", positional_ + ", " + workspace_, {},
                  "epready libs --workspace DIR");
    if (workspace_.empty()) workspace_ = positional_;
    variable("WORKSPACE", workspace_);
    variable("MODE", mode_);
    variable("DEEPEP_COMMIT_HASH", ref_);
    variable("NVSHMEM_VER", nvshmem_);
    if (!mode_.empty() && mode_ != "install" && mode_ != "wheel") {
      c.note(Words{c.lang}("MODE={} is not ours and is ignored", "MODE={} 与本程序无关，已忽略", mode_));
      mode_ = "install";
    }
    p.wheel = mode_ == "wheel";
    std::error_code ec;
    if (p.prefix.empty())
      p.prefix = std::filesystem::absolute(workspace_.empty() ? "ep_kernels_workspace" : workspace_, ec)
                     .lexically_normal()
                     .string();
    if (!ref_.empty()) p.with.push_back("deepep-commit=" + ref_);
    if (!nvshmem_.empty()) p.with.push_back("nvshmem=" + nvshmem_);
    // A machine without a GPU builds for the list, or for both generations.
    const auto archs = environment.find("TORCH_CUDA_ARCH_LIST");
    const auto asked = [&](std::string_view name) {
      return std::any_of(p.with.begin(), p.with.end(),
                         [&](const std::string& x) { return starts_with(x, name); });
    };
    if (archs != environment.end() && !split_arch_list(archs->second).empty() && !asked("arch="))
      p.with.push_back("arch=" + archs->second);
    if (asked("gpu=")) return {};
    const auto facts = c.read(**host);
    if (!facts) return Failure(facts.error());
    if (facts->gpus.empty()) p.with.push_back("gpu=build-only");
    return {};
  }
  std::string name() const override { return "libs"; }
  std::string workspace_, positional_, mode_, ref_, nvshmem_;
};

/// What configure_system_drivers.sh is for: the module options, merged, with a refreshed initramfs and a
/// reboot.
class DriverCommand : public PlanCommand {
 public:
  DriverCommand() { arguments_.plan.scope = PlanOptions::Scope::driver; }

 private:
  std::string name() const override { return "driver"; }
  Result<> prepare(Context& c) override {
    // The plan's own lane; the local one needs no driver option, so a GPU lane where only that is possible.
    PlanOptions& p = arguments_.plan;
    if (p.lane.empty() && p.stack.empty()) {
      auto host = c.open();
      if (!host) return Failure(host.error());
      const auto facts = c.read(**host);
      if (!facts) return Failure(facts.error());
      const auto recipe = load_recipe("");
      if (!recipe) return Failure(recipe.error());
      const auto planned = make_plan(*facts, *recipe, PlanOptions());
      p.lane = planned && planned->plan.lane != "local" ? planned->plan.lane : "v2";
    }
    const auto& with = arguments_.plan.with;
    if (std::none_of(with.begin(), with.end(),
                     [](const std::string& x) { return starts_with(x, "driver-options="); }))
      arguments_.plan.with.push_back("driver-options=peer-mapping-and-memops");
    arguments_.plan.with.push_back("rdma-names=keep");  // names are no driver option
    return {};
  }
};

}  // namespace

std::unique_ptr<Command> make_libs() {
  return std::make_unique<LibsCommand>();
}
std::unique_ptr<Command> make_driver_command() {
  return std::make_unique<DriverCommand>();
}
std::unique_ptr<Command> make_plan_command() {
  return std::make_unique<PlanCommand>();
}

}  // namespace ep
