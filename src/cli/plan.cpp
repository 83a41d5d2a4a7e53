// `plan`: what would change on this host, why, and nothing else.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "cli/plan_options.h"
#include "cli/rows.h"
#include "plan/plan_json.h"
#include "render/render.h"
#include "report/plan_report.h"

namespace ep {
namespace {

class PlanCommand : public Command {
 public:
  PlanCommand() { arguments_.plan.prefix.clear(); }
  std::vector<Option> options() override {
    auto o = plan_options(arguments_);
    o.push_back(
        {"-o,--output",
         {"Write the plan to FILE, for epready apply FILE", "把计划写入 FILE，供 epready apply FILE 使用"},
         &output_,
         {},
         "FILE",
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
    auto input = plan_input(c, arguments_);
    if (!input) return c.report(input.error());
    auto planned = make_plan(input->facts, input->recipe, arguments_.plan);
    if (!planned) return c.report(planned.error());
    const Plan& plan = planned->plan;
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
        if (auto ok = write(*text); !ok) return c.report(ok.error());
        c.note(w("written to {}", "已写入 {}", output_));
      }
      return 0;
    }
    if (!output_.empty()) {
      if (auto ok = write(plan_to_json(plan)); !ok) return c.report(ok.error());
      c.note(w("plan written to {}", "计划已写入 {}", output_));
    }
    if (c.json) {
      c.out(plan_report_json(*planned));
    } else {
      c.out(plan_text(plan, c.look()));
      if (verbose_) c.out("\n" + versions_text(planned->solution, c.look()));
    }
    if (plan.empty())
      c.next(plan.lane == "local" ? "epready bench" : "epready verify -r 2");
    else
      c.next(output_.empty() ? "epready plan -o plan.json && epready apply plan.json"
                             : "epready apply " + output_);
    return detailed_ && !plan.empty() ? 6 : 0;
  }

 private:
  Result<> write(const std::string& text) {
    const std::string scratch = output_ + ".new";
    std::ofstream file(scratch, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file) {
      std::remove(scratch.c_str());
      return fail(ErrorKind::failed, "cannot write the plan", output_, std::strerror(errno),
                  "epready plan -o FILE");
    }
    if (std::rename(scratch.c_str(), output_.c_str()) != 0) {
      const std::string why = std::strerror(errno);
      std::remove(scratch.c_str());
      return fail(ErrorKind::failed, "cannot write the plan", output_, why, "epready plan -o FILE");
    }
    return {};
  }

  PlanArguments arguments_;
  std::string output_, form_;
  bool detailed_ = false, verbose_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan_command() {
  return std::make_unique<PlanCommand>();
}

}  // namespace ep
