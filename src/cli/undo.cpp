// `undo`: take back what apply did.
#include <fmt/core.h>

#include "cli/apply_options.h"
#include "cli/rows.h"
#include "report/apply_report.h"

namespace ep {
namespace {

class Undo : public Command {
 public:
  std::vector<Option> options() override {
    std::vector<Option> out = {
        {"-n,--dry-run", {"Only say what would be taken back", "只说明会撤回什么"}, &dry_, {}, "", false},
        {"--yes",
         {"Agree beforehand: packages, kernel, all", "预先同意：packages、kernel、all"},
         &arguments_.yes,
         {},
         "CLASSES",
         false}};
    for (auto& o : place_options(arguments_)) out.push_back(std::move(o));
    return out;
  }

  int run(Context& c) override {
    UndoOptions options;
    auto yes = parse_consent(arguments_.yes);
    if (!yes) return c.report(yes.error());
    options.yes = *yes;
    options.root = arguments_.root;
    options.dry_run = dry_;
    options.stop = &interrupted();
    if (!c.json)
      options.ask = [&c](Risk risk, const std::vector<std::string>& what) {
        return ask_yes(c,
                       std::string(risk == Risk::packages
                                       ? c.tr({"Remove these packages?", "移除这些软件包？"})
                                       : c.tr({"Take back kernel module options?", "撤回内核模块选项？"})),
                       what);
      };
    auto progress = progress_for(c);
    std::string prefix = arguments_.prefix.empty() ? default_prefix() : arguments_.prefix;
    auto report = undo_prefix(prefix, options, *progress);
    progress.reset();
    if (!report) return c.report(report.error());
    c.out(c.json ? undo_json(*report) : undo_text(*report, c.look()));
    c.next(dry_                     ? "epready undo" + place_words(arguments_)
           : report->reboot_advised ? "reboot when it suits"
                                    : "epready facts");
    return report->exit_code();
  }

 private:
  ApplyArguments arguments_;
  bool dry_ = false;
};

}  // namespace

std::unique_ptr<Command> make_undo() {
  return std::make_unique<Undo>();
}

}  // namespace ep
