// `report`: what this host is and how it stands, as text, JSON or one HTML file.
#include <fmt/core.h>

#include "cli/host_report.h"
#include "cli/rows.h"
#include "host/host.h"
#include "plan/planner.h"
#include "report/bench_report.h"
#include "report/host_page.h"
#include "report/lanes_report.h"

namespace ep {
namespace {

class Report : public Command {
 public:
  std::vector<Option> options() override {
    return {{"--html",
             {"Write one self-contained page to this file (- is stdout)",
              "把独立的 HTML 页面写入此文件（- 为标准输出）"},
             &html_,
             {},
             "FILE",
             false},
            {"--lane", {"Lane to judge", "要判断的通道"}, &lane_, {"local", "v1", "v2"}, "LANE", false}};
  }
  int run(Context& c) override {
    auto host = c.open();
    if (!host) return c.report(host.error());
    auto read = c.read(**host);
    if (!read) return c.report(read.error());
    const Facts& facts = *read;
    auto recipe = load_recipe("");
    if (!recipe) return c.report(recipe.error());
    auto lanes = judge_lanes(facts, *recipe, c.lang);
    if (c.from.empty()) fill_proven(lanes, c.lang);
    PlanOptions o;
    o.lane = lane_;
    o.lang = c.lang;
    o.prefix = default_prefix();
    auto planned = make_plan(facts, *recipe, o);  // a host without a working set still has a report
    VerifyOptions v;
    v.lang = c.lang;
    const VerifyLane judged = lane_to_verify(facts, *recipe, o, lane_, v.level, c.from_option());
    v.lane = judged.lane;
    v.installed = judged.installed;
    VerifyReport verified = verify(facts, v);
    // The newest run on this very host belongs on the page.
    if (c.from.empty())
      if (auto last = find_entry(default_prefix() + "/history.jsonl", "last");
          last && last->host == facts.os.hostname.value_or(facts.host_name))
        verified.bench = last->result;
    HostReport report{&facts, lanes, planned ? &planned->plan : nullptr, nullptr, &verified, c.lang};
    if (!html_.empty()) {
      auto ok = write_file(html_, report_html(report));
      if (!ok) return c.report(ok.error());
      if (html_ != "-") c.note(fmt::format("{} {}", c.tr({"written:", "已写入："}), html_));
    }
    if (c.json) {
      c.out(report_json(report));
    } else if (html_ != "-") {
      c.out(host_text(facts, c.look()) + "\n" + lanes_text(lanes, c.look()) + "\n");
      for (const auto& i : verified.items) c.out(verify_item_text(i, c.look()));
      if (verified.bench) c.out("\n" + bench_text(*verified.bench, c.look()));
      c.out(verify_summary_text(verified, c.look()));
      if (!planned) c.note(planned.error().text());
      const bool missing = judged.installed && judged.installed->outcome.verdict == Verdict::fail;
      if (missing)
        c.next(judged.installed->next);
      else
        c.next((verified.overall.verdict == Verdict::fail ? "epready doctor"
                : html_.empty()                           ? "epready report --html report.html"
                                                          : "epready plan") +
               c.from_option());
    }
    return verified.overall.verdict == Verdict::fail ? 1 : 0;
  }

 private:
  std::string html_, lane_;
};

}  // namespace

std::unique_ptr<Command> make_report() {
  return std::make_unique<Report>();
}

}  // namespace ep
