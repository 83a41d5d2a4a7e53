// `verify -r LEVEL`: proof by levels; items are printed as they come.
#include <fmt/core.h>

#include "cli/bench_options.h"
#include "cli/host_report.h"
#include "cli/rows.h"
#include "facts/facts.h"
#include "host/host.h"
#include "report/bench_report.h"

namespace ep {
namespace {

class Verify : public Command {
 public:
  std::vector<Option> options() override {
    std::vector<Option> o = {
        {"-r,--level",
         {"1 facts and consistency, 2 one node, 3 two nodes, 4 all nodes",
          "1 事实与一致性，2 单节点，3 两节点，4 全部节点"},
         &options_.level,
         {},
         "LEVEL",
         false},
        {"--lane", {"Lane to prove", "要验证的通道"}, &options_.lane, {"local", "v1", "v2"}, "LANE", false}};
    for (auto& b : bench_options(options_.bench)) o.push_back(std::move(b));
    return o;
  }
  int run(Context& c) override {
    if (options_.level < 1 || options_.level > 4)
      return c.report(fail(ErrorKind::usage, fmt::format("-r {} is not a level", options_.level), {},
                           "1, 2, 3 or 4", "epready verify --help")
                          .value());
    if (auto ok = check_bench_options(options_.bench, "verify"); !ok) return c.report(ok.error());
    if (!c.from.empty() && options_.level > 1)
      return c.report(
          fail(ErrorKind::unsupported,
               "level 2 runs on the live host; a snapshot or paste can only be checked at level 1", c.from,
               {}, fmt::format("epready verify -r 1 --from {}", c.from))
              .value());
    auto host = c.open();
    if (!host) return c.report(host.error());
    Facts facts = read_facts(**host);
    options_.bench.gpu = !facts.gpus.empty() && find_engine(true).has_value();
    if (options_.bench.gpu) options_.bench.ranks = int(facts.gpus.size());
    options_.lang = c.lang;
    options_.interrupt = &interrupted();
    options_.on_line = [&](std::string_view line) { c.note(line); };
    if (!c.json) {
      c.out(
          fmt::format("{} {}, {}\n\n", c.tr({"verify level", "验证级别"}), options_.level, (*host)->name()));
      options_.on_item = [&](const VerifyItem& i) {
        c.out(verify_item_text(i, c.look()));
        std::fflush(stdout);
      };
    }
    VerifyReport report = verify(facts, options_);
    c.out(c.json ? verify_json(report) : verify_summary_text(report, c.look()));
    if (report.bench) remember(c, *report.bench);
    int code = report.exit_code();
    const bool live = c.from.empty();
    c.next(code == 5                     ? fmt::format("epready verify -r {}", options_.level)
           : code != 0                   ? "epready doctor" + c.from_option()
           : live && options_.level == 1 ? "epready verify -r 2"
                                         : "epready report" + c.from_option());
    return code;
  }

 private:
  VerifyOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_verify() {
  return std::make_unique<Verify>();
}

}  // namespace ep
