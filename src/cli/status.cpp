// `status`: where the plan of a prefix stands, at any time, also while it runs.
#include "apply/apply.h"
#include "cli/apply_options.h"
#include "cli/rows.h"
#include "report/apply_report.h"

namespace ep {
namespace {

class Status : public Command {
 public:
  std::vector<Option> options() override { return place_options(arguments_); }

  int run(Context& c) override {
    std::string prefix = arguments_.prefix.empty() ? default_prefix() : arguments_.prefix;
    auto status = read_status(prefix, arguments_.root);
    if (!status) return c.report(status.error());
    c.out(c.json ? status_json(*status) : status_text(*status, c.look()));
    ApplyReport as_report;
    as_report.steps = status->steps;
    int code = as_report.exit_code();
    if (!status->exists) {
      c.next("epready plan");
      return 0;
    }
    if (!status->running.empty()) {
      for (const auto& s : status->steps)
        if (s.state == StepState::running && !s.log.empty()) {
          c.next("tail -f " + s.log);
          return 0;
        }
      c.next("epready status" + place_words(arguments_));
      return 0;
    }
    bool over = code == 0 && !status->steps.empty();
    c.next(over ? "epready verify -r 1" : "epready apply --resume" + place_words(arguments_));
    return over ? 0 : code == 0 ? 3 : code;
  }

 private:
  ApplyArguments arguments_;
};

}  // namespace

std::unique_ptr<Command> make_status() {
  return std::make_unique<Status>();
}

}  // namespace ep
