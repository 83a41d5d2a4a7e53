// `plan`: what would change on this host, why, and nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "cli/output_file.h"
#include "cli/plan_options.h"
#include "cli/rows.h"
#include "host/host.h"
#include "plan/ahead.h"
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
  /// What the user asked for, to be repeated in next commands. Called before prepare.
  virtual std::string asked() const { return asked_options(arguments_, defaults_); }
  PlanArguments arguments_, defaults_;

 public:
  std::vector<Option> options() override {
    defaults_ = arguments_;
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
                 {"Write the plan in another form: script, dockerfile, ansible, cloud-init, k8s, image",
                  "以其他形式输出：script、dockerfile、ansible、cloud-init、k8s、image"},
                 &form_,
                 {},
                 "FORM",
                 false});
    o.push_back({"--image",
                 {"With --as dockerfile or k8s: the container image to begin from; it must hold nvcc",
                  "配合 --as dockerfile 或 k8s：基础镜像，须自带 nvcc"},
                 &image_,
                 {},
                 "IMAGE",
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
    const std::string asked = this->asked();
    if (auto ok = prepare(c); !ok) return c.report(ok.error());
    auto input = plan_input(c, arguments_);
    if (!input) return c.report(input.error());
    std::string image, toolkit;
    auto planned = for_container() ? plan_inside(*input, image, toolkit)
                                   : make_plan(input->facts, input->recipe, arguments_.plan);
    if (!planned) return c.report(planned.error());
    const Plan& plan = planned->plan;
    const Finding* open = unanswered(plan);
    // What would be carried out elsewhere is not written while it hangs on something unknown.
    if (open && (!form_.empty() || !output_.empty()))
      return c.report(Error{
          ErrorKind::unsupported, open->title, input->facts.host_name, open->cause, open->fix.front(), {}});
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
    if (!form_.empty() || !image_.empty()) return write_form(c, *input, *planned, image, toolkit);
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
    const Finding* stop = blocking(plan);
    c.next(next_command(c, plan, stop, asked));
    if (open) return 3;
    if (stop) return 1;
    return detailed_ && !plan.empty() ? 6 : 0;
  }

 private:
  /// A container shares kernel, GPUs and NICs with its host and nothing else: what it needs is planned for
  /// the inside of its image. The image is the one on record for the versions that the plan chooses.
  Result<Planned> plan_inside(const PlanInput& input, std::string& image, std::string& toolkit) const {
    const std::string runtime = container_runtime();
    auto first = make_plan(inside_image(input.facts, runtime, ""), input.recipe, arguments_.plan);
    if (!first) return first;
    image = image_.empty() ? image_for(*first) : image_;
    const Choice* cuda = first->solution.choice("cuda");
    if (image.empty() || !cuda) {
      if (image.empty()) image = "ubuntu:24.04";  // the plan's own steps bring the toolkit
      return first;
    }
    toolkit = cuda->version;
    return make_plan(inside_image(input.facts, runtime, cuda->version), input.recipe, arguments_.plan);
  }

  std::string container_runtime() const { return form_ == "k8s" ? "kubernetes" : "docker"; }
  bool for_container() const { return form_ == "dockerfile" || form_ == "k8s"; }

  int write_form(const Context& c, const PlanInput& input, const Planned& planned, const std::string& image,
                 const std::string& toolkit) const {
    const Words w{c.lang};
    if (!image_.empty() && !for_container())
      return c.report(Error{ErrorKind::usage,
                            "--image belongs to a container",
                            image_,
                            "it goes with --as dockerfile or --as k8s",
                            "epready plan --as k8s --image " + shell_quote(image_),
                            {}});
    RenderInput in{nullptr, {}, image.empty() ? "ubuntu:24.04" : image, c.lang};
    in.toolkit = toolkit;
    auto variables = load_variables(data_folder(arguments_.data_dir));
    if (!variables) return c.report(variables.error());
    if (auto ok = form_fits(form_, input.facts, planned.plan); !ok) return c.report(ok.error());
    const Facts facts =
        for_container() ? inside_image(input.facts, container_runtime(), toolkit) : input.facts;
    const EnvAhead env = environment_ahead(facts, planned, *variables, c.lang);
    in.plan = &planned.plan;
    in.env = &env;
    const Platform* pod = planned.platform && !planned.platform->pod.empty()
                              ? planned.platform
                              : input.recipe.platform("container");
    if (pod) {
      in.pod = pod->pod;
      in.library_path = pod->library_path;
    }
    if (planned.platform) in.disk_image = planned.platform->disk_image;
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

  /// A note that says the plan can't be carried out as it is.
  static const Finding* blocking(const Plan& plan) {
    for (const auto& n : plan.notes)
      if (n.severity == Severity::fail) return &n;
    return nullptr;
  }
  /// The same wishes again: a next command that drops them would do something else.
  std::string next_command(const Context& c, const Plan& plan, const Finding* stop,
                           const std::string& asked) const {
    if (plan.empty())
      return plan.lane == "local" ? "epready bench" : "epready verify -r 2 --lane " + plan.lane;
    std::string with = asked;
    for (const auto& k : unpinned_keys(plan)) with += fmt::format(" --with {}-key=FINGERPRINT", k);
    // On another host than this one: there the plan is made and applied.
    const std::string where = c.from.empty() ? "" : "   # on " + plan.host_name;
    for (const auto& f : stop ? stop->fix : std::vector<std::string>()) {
      const std::string fix = f.substr(0, f.find("  ("));
      if (starts_with(fix, "epready ")) return fix + where;
      if (starts_with(fix, "--")) return "epready " + name() + with + " " + fix + where;
    }
    if (!output_.empty()) return "epready apply " + shell_quote(output_) + where;
    return fmt::format("epready {0}{1} -o {0}.json && epready apply {0}.json{2}", name(), with, where);
  }

  std::string output_, form_, image_;
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
  std::string asked() const override {
    std::string out = PlanCommand::asked();
    for (const auto& [name, value] : {std::pair("--workspace", workspace_.empty() ? positional_ : workspace_),
                                      {"--mode", mode_},
                                      {"--deepep-ref", ref_},
                                      {"--nvshmem-ver", nvshmem_}})
      if (!value.empty()) out += fmt::format(" {} {}", name, shell_quote(value));
    return out;
  }
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
      p.lane = lane_of(*facts, *recipe, PlanOptions());
      if (p.lane == "local") p.lane = "v2";
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
