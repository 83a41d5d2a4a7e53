// `lanes`: which ways to run EP are possible here, installed, proven.
#include "cli/host_report.h"
#include "cli/plan_options.h"
#include "cli/rows.h"
#include "report/lanes_report.h"

namespace ep {
namespace {

class LanesCommand : public Command {
 public:
  LanesCommand() { arguments_.plan.prefix.clear(); }
  std::vector<Option> options() override {
    auto o = plan_options(arguments_);
    o.erase(o.begin(), o.begin() + 2);  // --lane and --stack: all lanes are shown
    return o;
  }
  int run(Context& c) override {
    const Words w{c.lang};
    auto input = plan_input(c, arguments_);
    if (!input) return c.report(input.error());
    auto lanes = judge_lanes(input->facts, input->recipe, c.lang, arguments_.plan);
    if (c.from.empty()) fill_proven(lanes, c.lang);
    const std::string name = input->facts.os.hostname.value_or(input->facts.host_name);
    if (c.json) {
      c.out(lanes_json(lanes, name));
    } else {
      c.out(c.look().paint(Style::bold, w("Lanes of {}", "{} 的通道", name)) + "\n\n" +
            lanes_text(lanes, c.look()));
    }
    const std::string from = c.from.empty() ? "" : " --from " + shell_quote(c.from);
    c.next("epready plan" + from);
    return 0;
  }

 private:
  PlanArguments arguments_;
};

}  // namespace

std::unique_ptr<Command> make_lanes() {
  return std::make_unique<LanesCommand>();
}

}  // namespace ep
