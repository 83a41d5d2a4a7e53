// `apply`: do a plan, journalled; go on after a reboot or an interruption.
#include <fmt/core.h>

#include "apply/tree.h"
#include "cli/apply_options.h"
#include "cli/plan_options.h"
#include "cli/rows.h"
#include "host/host.h"
#include "report/apply_report.h"
#include "report/plan_report.h"

namespace ep {
namespace {

/// An image for machines like this one: what is installed is read from the image, hardware from here.
Facts inside_root(const Facts& here, const std::string& root, const std::string& prefix) {
  Facts f = read_facts(*live_host(root), prefix);
  f.cpu = here.cpu;
  f.pci = here.pci;
  f.gpus = here.gpus;
  f.num_amd_gpus = here.num_amd_gpus;
  f.rdma = here.rdma;
  f.rdma_readable = here.rdma_readable;
  f.netdevs = here.netdevs;
  f.matrices = here.matrices;
  f.platform = here.platform;
  f.user = here.user;
  if (!f.os.architecture.ok()) f.os.architecture = here.os.architecture;
  return f;
}

class Apply : public Command {
 public:
  std::vector<Option> options() override {
    std::vector<Option> out = {
        {"file",
         {"Plan written by `epready plan -o FILE`", "由 `epready plan -o FILE` 写出的计划"},
         &file_,
         {},
         "FILE",
         false},
        {"--resume",
         {"Go on with the plan that was begun here (after a reboot or a stop)",
          "继续此处已开始的计划（重启或中断之后）"},
         &resume_,
         {},
         "",
         false}};
    for (auto& o : plan_options(wanted_)) out.push_back(std::move(o));
    for (auto& o : place_options(arguments_))
      if (o.names != "--prefix") out.push_back(std::move(o));  // the plan's options have it
    for (auto& o : run_options(arguments_)) out.push_back(std::move(o));
    return out;
  }

  int run(Context& c) override {
    arguments_.prefix = wanted_.plan.prefix;
    auto plan = choose_plan(c);
    if (!plan) return c.report(plan.error());
    auto options = apply_options(arguments_, c);
    if (!options) return c.report(options.error());
    options->resume = resume_;
    options->may_drift = file_.empty() && !resume_;  // made from the facts of this very moment
    auto progress = progress_for(c);
    auto report = apply_plan(*plan, *options, *progress);
    progress.reset();
    if (!report) return c.report(report.error());
    c.out(c.json ? apply_json(*report) : apply_text(*report, c.look()));
    std::string next = next_after(*report);
    if (arguments_.root != "/" && next == "epready verify -r 1") next = "epready status";
    c.next(next + (next == "epready status" ? place_words(arguments_) : ""));
    return report->exit_code();
  }

 private:
  Result<Plan> choose_plan(Context& c) {
    if (!file_.empty() && resume_)
      return fail(ErrorKind::usage, "FILE and --resume exclude each other", file_,
                  "--resume takes the plan that was begun");
    if (!file_.empty()) return read_plan_file(file_);
    std::string prefix = arguments_.prefix.empty() ? default_prefix() : arguments_.prefix;
    if (resume_) {
      std::string root = arguments_.root == "/" ? "" : arguments_.root;
      auto plan = read_plan_file(root + prefix + "/state/plan.json");
      if (!plan && plan.error().kind == ErrorKind::absent)
        return fail(ErrorKind::absent, "no plan was begun here", prefix, "",
                    "epready plan -o FILE, then epready apply FILE");
      return plan;
    }
    auto input = plan_input(c, wanted_);
    if (!input) return Failure(input.error());
    if (arguments_.root != "/") {
      if (auto tree = Tree::open(arguments_.root); !tree) return Failure(tree.error());
      input->facts = inside_root(input->facts, arguments_.root, wanted_.plan.prefix);
    }
    auto planned = make_plan(input->facts, input->recipe, wanted_.plan);
    if (!planned) return Failure(planned.error());
    if (!c.json && !planned->plan.empty()) c.out(plan_text(planned->plan, c.look()) + "\n");
    if (const Finding* open = unanswered(planned->plan))
      return fail(ErrorKind::unsupported, open->title, input->facts.host_name, open->cause,
                  open->fix.front());
    return planned->plan;
  }

  ApplyArguments arguments_;
  PlanArguments wanted_;
  std::string file_;
  bool resume_ = false;
};

}  // namespace

std::unique_ptr<Command> make_apply() {
  return std::make_unique<Apply>();
}

}  // namespace ep
