// `up`: the whole chain for the best lane that this host can run. Facts, lanes, plan, apply, environment,
// verify, report; each stage is a function below. Nothing needs root on the local lane; what it writes stands
// in one folder.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

#include "apply/apply.h"
#include "base/words.h"
#include "bench/history.h"
#include "cli/bench_options.h"
#include "cli/host_report.h"
#include "cli/rows.h"
#include "facts/facts.h"
#include "host/host.h"
#include "plan/lanes.h"
#include "plan/planner.h"
#include "report/bench_report.h"
#include "report/host_page.h"
#include "report/lanes_report.h"
#include "report/plan_report.h"

namespace ep {
namespace {

class Up : public Command {
 public:
  std::vector<Option> options() override {
    std::vector<Option> o = {
        {"--lane",
         {"Lane instead of the best one", "指定通道，而不是自动选择"},
         &plan_.lane,
         {"local", "v1", "v2"},
         "LANE",
         false},
        {"--stack", {"Stack instead of the first that fits", "指定软件栈"}, &plan_.stack, {}, "STACK", false},
        {"--consumer",
         {"Who will use it", "使用者"},
         &plan_.consumer,
         {"plain", "vllm", "sglang"},
         "NAME",
         false},
        {"--with",
         {"Wish: NAME=VALUE (nvshmem=3.4.5)", "要求：名称=值（nvshmem=3.4.5）"},
         &plan_.with,
         {},
         "NAME=VALUE",
         false},
        {"--prefix", {"Folder that epready owns", "epready 拥有的目录"}, &plan_.prefix, {}, "DIR", false},
        {"--yes",
         {"Consent beforehand: packages,kernel,reboot or all", "预先同意：packages,kernel,reboot 或 all"},
         &yes_,
         {},
         "CLASSES",
         false}};
    for (auto& b : bench_options(bench_)) o.push_back(std::move(b));
    return o;
  }

  int run(Context& c) override {
    Words w{c.lang};
    if (auto ok = check_bench_options(bench_, "up"); !ok) return c.report(ok.error());
    auto consent = parse_consent(yes_.empty() ? "none" : yes_);
    if (!consent) return c.report(consent.error());
    if (plan_.prefix.empty()) plan_.prefix = default_prefix();
    plan_.lang = c.lang;

    // 1. What is this machine? Nothing is changed by looking.
    stage(c, 1, {"facts", "事实"});
    auto host = c.open();
    if (!host) return c.report(host.error());
    auto read = c.read(**host, plan_.prefix);
    if (!read) return c.report(read.error());
    Facts& facts = *read;
    say(c, host_text(facts, c.look()));

    // 2. Which lanes are possible here, and what do the others lack?
    stage(c, 2, {"lanes", "通道"});
    auto recipe = load_recipe("");
    if (!recipe) return c.report(recipe.error());
    auto lanes = judge_lanes(facts, *recipe, c.lang);
    fill_proven(lanes, c.lang);
    say(c, lanes_text(lanes, c.look()));

    // 3. What has to change for the best of them?
    stage(c, 3, {"plan", "计划"});
    auto planned = make_plan(facts, *recipe, plan_);
    if (!planned) return c.report(planned.error());
    const Plan& plan = planned->plan;
    say(c, plan_text(plan, c.look()));

    // 4. From here on the host is changed, step by step, journalled; `epready undo` takes it back.
    stage(c, 4, {"apply", "执行"});
    ApplyOptions options;
    options.yes = *consent;
    options.may_drift = true;
    options.stop = &interrupted();
    if (!c.json && isatty(STDIN_FILENO))
      options.ask = [&](Risk risk, const std::vector<const Step*>& steps) { return ask(c, risk, steps); };
    auto progress = c.json ? silent_progress()
                           : stderr_progress(look_at_terminal(STDERR_FILENO).is_terminal, c.terminal.color,
                                             c.terminal.unicode, c.terminal.width);
    auto applied = apply_plan(plan, options, *progress);
    if (!applied) return c.report(applied.error());
    say(c, w("{} steps done, {} already satisfied", "完成 {} 步，{} 步原已满足",
             applied->count(StepState::done), applied->count(StepState::satisfied)) +
               "\n");
    if (int code = applied->exit_code(); code != 0) return stopped(c, *applied, code);

    // 5. The environment file is one of the plan's steps; say how to use it.
    stage(c, 5, {"env", "环境"});
    say(c, fmt::format("source {}/env/env.sh", plan_.prefix) + "\n");

    // 6. Proof: facts again, then real tokens between ranks.
    stage(c, 6, {"verify", "验证"});
    read = c.read(**host, plan_.prefix);
    if (!read) return c.report(read.error());
    VerifyOptions v;
    v.level = 2;
    v.lane = plan.lane;
    v.lane_test.prefix = plan_.prefix;
    v.baselines = recipe->baselines;
    v.lang = c.lang;
    v.interrupt = &interrupted();
    v.bench = bench_;
    v.bench.gpu = !facts.gpus.empty() && find_engine(true).has_value();
    if (v.bench.gpu) v.bench.ranks = int(facts.gpus.size());
    if (!c.json)
      v.on_item = [&](const VerifyItem& i) {
        c.out(verify_item_text(i, c.look()));
        std::fflush(stdout);
      };
    v.on_line = [&](std::string_view line) { c.note(line); };
    VerifyReport verified = verify(facts, v);
    if (verified.bench) say(c, "\n" + bench_text(*verified.bench, c.look()));

    // 7. The report, for people and for machines, in the same folder.
    stage(c, 7, {"report", "报告"});
    if (verified.bench) remember(c, *verified.bench);
    fill_proven(lanes, c.lang);
    HostReport report{&facts, lanes, &plan, &*applied, &verified, c.lang};
    auto written = write_report(report, plan_.prefix + "/report");
    if (!written) return c.report(written.error());
    if (c.json) c.out(report_json(report));
    say(c, fmt::format("{}\n{}", written->html, verify_summary_text(verified, c.look())));
    int code = verified.exit_code();
    c.next(code == 0 ? "epready report" : code == 5 ? "epready up" : "epready doctor");
    return code;
  }

 private:
  static void say(Context& c, const std::string& text) {
    if (!c.json) c.out(text);
  }
  static void stage(Context& c, int n, Text name) {
    if (!c.json) c.out(c.look().paint(Style::bold, fmt::format("\n[{}/7] {}\n", n, c.tr(name))));
    std::fflush(stdout);
  }
  static bool ask(Context& c, Risk risk, const std::vector<const Step*>& steps) {
    static constexpr Text kWhat[] = {{"files of yours", "用户文件"},
                                     {"install packages", "安装软件包"},
                                     {"change kernel module options", "更改内核模块选项"},
                                     {"reboot this machine", "重启本机"}};
    for (const Step* s : steps) std::fprintf(stderr, "  %s: %s\n", s->id.c_str(), s->title.c_str());
    std::fprintf(stderr, "%s? [y/N] ", std::string(c.tr(kWhat[int(risk)])).c_str());
    char line[16];
    return std::fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y');
  }
  int stopped(Context& c, const ApplyReport& applied, int code) {
    for (const auto& s : applied.steps)
      if (!s.reason.empty() && s.state != StepState::satisfied && s.state != StepState::done)
        c.note(fmt::format("{}: {}: {}{}", s.id, to_string(s.state), s.reason,
                           s.next.empty() ? "" : "; next: " + s.next));
    if (applied.count(StepState::declined) > 0)
      c.next("epready up --yes=packages,kernel",
             {"what it would do stands above; to prove this machine without it: epready up --lane local",
              "将执行的内容见上；不做这些改动也可验证本机：epready up --lane local"});
    else
      c.next(code == 4 ? "reboot, then: epready up" : code == 5 ? "epready up" : "epready status");
    return code;
  }
  PlanOptions plan_ = [] {
    PlanOptions o;
    o.prefix.clear();
    return o;
  }();
  BenchRequest bench_;
  std::string yes_;
};

}  // namespace

std::unique_ptr<Command> make_up() {
  return std::make_unique<Up>();
}

}  // namespace ep
