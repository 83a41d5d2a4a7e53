// `fetch`: gather what a plan needs into a folder, for `apply --offline` on a machine without network.
#include <fmt/core.h>
#include <unistd.h>

#include <fstream>

#include "apply/gather.h"
#include "cli/apply_options.h"
#include "cli/plan_options.h"
#include "cli/rows.h"
#include "report/apply_report.h"

namespace ep {
namespace {

class FetchCommand : public Command {
 public:
  std::vector<Option> options() override {
    std::vector<Option> out = {
        {"file",
         {"Plan written by `epready plan -o FILE`; without it, one is made now",
          "由 `epready plan -o FILE` 写出的计划；缺省则现在生成"},
         &file_,
         {},
         "FILE",
         false},
        {"-o,--output",
         {"Folder to gather into; what is in it already is used", "收集到此目录；已有内容会被复用"},
         &dir_,
         {},
         "DIR",
         true},
        {"--status",
         {"dpkg status of the host that will be changed (its /var/lib/dpkg/status): leaves out what it has",
          "目标主机的 dpkg 状态文件（/var/lib/dpkg/status）：已安装的软件包不再收集"},
         &status_,
         {},
         "FILE",
         false},
        {"--mirror",
         {"Use address TO where one begins with FROM (repeatable)", "将以 FROM 开头的地址改为 TO（可重复）"},
         &arguments_.mirrors,
         {},
         "FROM=TO",
         false}};
    for (auto& o : plan_options(wanted_)) out.push_back(std::move(o));
    return out;
  }

  int run(Context& c) override {
    auto plan = file_.empty() ? planned(c) : read_plan_file(file_);
    if (!plan) return c.report(plan.error());
    auto apply = apply_options(arguments_, c);
    if (!apply) return c.report(apply.error());
    GatherOptions options;
    options.dir = absolute(dir_);
    options.mirrors = apply->mirrors;
    options.dpkg_status = status_.empty() ? "" : absolute(status_);
    options.stop = &interrupted();
    if (!status_.empty() && !std::ifstream(status_))
      return c.report(Error{ErrorKind::usage, "no such dpkg status file", status_, "", "", {}});
    auto progress = progress_for(c);
    auto report = gather(*plan, options, *progress);
    progress.reset();
    if (!report) return c.report(report.error());
    c.out(c.json ? gather_json(*report) : gather_text(*report, c.look()));
    std::string folder = shell_quote(dir_);
    c.next(report->whole
               ? fmt::format("epready apply {}/plan.json --offline {}", folder, folder)
               : "epready fetch " + (file_.empty() ? "" : shell_quote(file_) + " ") + "-o " + folder);
    return report->exit_code();
  }

 private:
  static std::string absolute(const std::string& path) {
    if (!path.empty() && path[0] == '/') return path;
    char here[4096];
    return std::string(getcwd(here, sizeof here) ? here : ".") + "/" + path;
  }
  Result<Plan> planned(Context& c) {
    auto input = plan_input(c, wanted_);
    if (!input) return Failure(input.error());
    auto made = make_plan(input->facts, input->recipe, wanted_.plan);
    if (!made) return Failure(made.error());
    return made->plan;
  }

  ApplyArguments arguments_;
  PlanArguments wanted_;
  std::string file_, dir_, status_;
};

}  // namespace

std::unique_ptr<Command> make_fetch() {
  return std::make_unique<FetchCommand>();
}

}  // namespace ep
