// `verify -r LEVEL`: proof by levels; items are printed as they come.
#include <fmt/core.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "apply/apply.h"
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
        {"--lane",
         {"Lane to prove (default: the plan's; level 2: local where that is not installed)",
          "要验证的通道（默认取计划的通道；第 2 级在其未安装时取 local）"},
         &lane_,
         {"local", "v1", "v2"},
         "LANE",
         false},
        {"--prefix",
         {"Folder that epready owns (lanes v1 and v2)", "epready 拥有的目录（v1 与 v2 通道）"},
         &options_.lane_test.prefix,
         {},
         "DIR",
         false},
        {"--tests",
         {"Checkout of DeepEP that has the tests, if not below the prefix",
          "含测试的 DeepEP 源码目录（默认在 prefix 之下寻找）"},
         &options_.lane_test.tests,
         {},
         "DIR",
         false},
        {"--nodes",
         {"Levels 3, 4: number of nodes, else from the launcher", "第 3、4 级：节点数，默认取自启动器"},
         &nodes_.count,
         {},
         "N",
         false},
        {"--node-rank",
         {"Levels 3, 4: which of them this is, from 0", "第 3、4 级：本节点序号，从 0 起"},
         &nodes_.rank,
         {},
         "R",
         false},
        {"--master",
         {"Levels 3, 4: the first node, as the others reach it", "第 3、4 级：首节点地址"},
         &nodes_.master,
         {},
         "HOST:PORT",
         false}};
    o.push_back({"--test-arg",
                 {"A further flag of DeepEP's test, e.g. --test-arg=--test-first-only (repeat)",
                  "DeepEP 测试的附加选项，如 --test-arg=--test-first-only（可重复）"},
                 &options_.lane_test.extra,
                 {},
                 "FLAG",
                 false});
    options_.bench.ranks = 0;    // one for each GPU; the engine for CPUs four
    options_.bench.limit_s = 0;  // by lane
    for (auto& b : bench_options(options_.bench)) o.push_back(std::move(b));
    return o;
  }
  int run(Context& c) override {
    const bool ranks_given = options_.bench.ranks != 0, limit_given = options_.bench.limit_s != 0;
    if (!ranks_given) options_.bench.ranks = BenchRequest().ranks;
    if (!limit_given) options_.bench.limit_s = BenchRequest().limit_s;
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
    auto read = c.read(**host);
    if (!read) return c.report(read.error());
    const Facts& facts = *read;
    if (auto ok = prepare_lane(c, facts); !ok) return c.report(ok.error());
    if (options_.lane != "local") {
      if (ranks_given) options_.lane_test.gpus = options_.bench.ranks;
      if (!limit_given) options_.bench.limit_s = kOwnTestLimit;
    }
    options_.bench.gpu = !facts.gpus.empty() && find_engine(true).has_value();
    if (options_.bench.gpu && !ranks_given) options_.bench.ranks = int(facts.gpus.size());
    options_.lang = c.lang;
    options_.interrupt = &interrupted();
    options_.on_line = [&](std::string_view line) { c.note(line); };
    options_.counters = [&] { return sample_counters(**host); };
    if (!c.json) {
      c.out(fmt::format("{} {}, {} {}, {}\n\n", c.tr({"verify level", "验证级别"}), options_.level,
                        c.tr({"lane", "通道"}), options_.lane, (*host)->name()));
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
    // What is not installed is no fault to diagnose: the plan installs it.
    const auto& first = options_.installed;
    const bool missing = first && first->outcome.verdict == Verdict::fail;
    c.next(code == 5                          ? fmt::format("epready verify -r {}", options_.level)
           : code != 0 && !report.log.empty() ? "epready doctor " + shell_quote(report.log)
           : code != 0 && missing             ? first->next
           : code != 0                        ? "epready doctor" + c.from_option()
           : live && options_.level == 1      ? "epready verify -r 2"
                                              : "epready report" + c.from_option());
    return code;
  }

 private:
  /// Seconds. V2's test goes through 144 cases and times five operations in each, 60 times with 10 ms before
  /// it.
  static constexpr double kOwnTestLimit = 1800;

  /// The lane and whether it is installed; what only lanes v1 and v2 need: published figures, and which node
  /// this is.
  Result<> prepare_lane(Context& c, const Facts& facts) {
    if (options_.lane_test.prefix.empty()) options_.lane_test.prefix = default_prefix();
    auto recipe = load_recipe("");
    if (!recipe) return Failure(recipe.error());
    PlanOptions base;
    base.lang = c.lang;
    base.prefix = options_.lane_test.prefix;
    auto judged = lane_to_verify(facts, *recipe, base, lane_, options_.level, c.from_option());
    options_.lane = judged.lane;
    options_.installed = judged.installed;
    if (options_.lane == "local" || options_.level < 2) return {};
    options_.baselines = recipe->baselines;
    if (options_.level < 3) return {};
    auto nodes = nodes_of(environment_map(), nodes_);
    if (!nodes) return Failure(nodes.error());
    if (options_.level == 3 && nodes->count != 2)
      return fail(ErrorKind::usage, fmt::format("level 3 is two nodes, {} are given", nodes->count),
                  nodes->source, {}, "epready verify -r 4 --lane " + options_.lane);
    c.note(fmt::format("{} {}/{}, {} {}:{} ({})", c.tr({"node", "节点"}), nodes->rank, nodes->count,
                       c.tr({"first node", "首节点"}), nodes->master, nodes->port, nodes->source));
    options_.lane_test.nodes = *nodes;
    return {};
  }
  static std::map<std::string, std::string> environment_map() {
    std::map<std::string, std::string> out;
    for (char** e = environ; e && *e; ++e)
      if (const char* eq = std::strchr(*e, '=')) out.emplace(std::string(*e, size_t(eq - *e)), eq + 1);
    return out;
  }
  NodeFlags nodes_;
  std::string lane_;
  VerifyOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_verify() {
  return std::make_unique<Verify>();
}

}  // namespace ep
