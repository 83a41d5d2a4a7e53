#include "report/plan_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plan/plan_json.h"

namespace ep {
namespace {

std::string mark(const Look& look, const Step& s) {
  switch (s.mark) {
    case Mark::add:
      return look.paint(Style::green, "+");
    case Mark::change:
      return look.paint(Style::yellow, "~");
    case Mark::remove:
      return look.paint(Style::red, "-");
    case Mark::restart:
      return look.paint(Style::cyan, look.unicode ? "↻" : "@");
  }
  return "?";
}

std::string about_time(int seconds, const Words& w) {
  if (seconds < 90) return w("about {} s", "约 {} 秒", seconds);
  return w("about {} min", "约 {} 分钟", (seconds + 30) / 60);
}

}  // namespace

std::string plan_counts(const Plan& plan, const Look& look) {
  const Words w{look.lang};
  int count[4] = {0, 0, 0, 0}, seconds = 0;
  for (const auto& s : plan.steps) {
    ++count[int(s.mark)];
    seconds += s.estimate_s;
  }
  return w("{} to add, {} to change, {} to remove, {} reboot, {}", "新增 {}，修改 {}，删除 {}，重启 {}，{}",
           count[0], count[1], count[2], count[3], about_time(seconds, w));
}

std::string plan_text(const Plan& plan, const Look& look) {
  const Words w{look.lang};
  std::string out = look.paint(Style::bold, w("Plan for {}: lane {}, stack {}", "{} 的计划：通道 {}，组合 {}",
                                              plan.host_name, plan.lane, plan.stack));
  if (!plan.platform.empty()) out += w(", platform {}", "，平台 {}", plan.platform);
  out += w(", prefix {}", "，目录 {}", plan.prefix) + "\n";
  if (plan.empty())
    out += "\n" +
           (plan.lane == "local"
                ? w("Nothing to do: the local lane needs nothing installed.",
                    "无需操作：local 通道不需要安装任何东西。")
                : w("Nothing to do: this host already satisfies the plan.", "无需操作：此机已满足计划。")) +
           "\n";
  if (!plan.steps.empty()) out += "\n";
  for (const auto& s : plan.steps) {
    std::vector<std::string> tags;
    if (!s.runbook_phase.empty()) tags.push_back(s.runbook_phase);
    if (s.needs_root) tags.push_back("root");
    if (s.risk == Risk::reboot) tags.push_back(w("reboot", "重启"));
    out += fmt::format("  {} {} {}", mark(look, s), look.paint(Style::bold, pad(s.id, 20)), s.title);
    if (!tags.empty()) out += "  " + look.paint(Style::dim, "[" + join(tags, ", ") + "]");
    out += "\n      " + look.paint(Style::dim, wrap(s.why, look.width - 6, 6)) + "\n";
  }
  if (!plan.skipped.empty()) {
    out += "\n" + w("Not needed:", "无需：") + "\n";
    for (const auto& s : plan.skipped) {
      out += fmt::format("  = {} {}", pad(s.id, 20), s.title);
      if (!s.runbook_phase.empty()) out += "  " + look.paint(Style::dim, "[" + s.runbook_phase + "]");
      out += "\n      " + look.paint(Style::dim, wrap(s.reason, look.width - 6, 6)) + "\n";
    }
  }
  if (!plan.notes.empty()) {
    out += "\n" + w("Notes:", "说明：") + "\n";
    for (const auto& n : plan.notes) {
      out += "  " + severity_mark(look, n.severity) + " " + wrap(n.title, look.width - 7, 7) + "\n";
      if (!n.cause.empty())
        out += "       " + look.paint(Style::dim, wrap(n.cause, look.width - 7, 7)) + "\n";
      for (const auto& fix : n.fix)
        out += "       " + look.paint(Style::dim, "-> " + wrap(fix, look.width - 10, 10)) + "\n";
    }
  }
  if (!plan.empty()) out += "\n" + w("Plan: ", "计划：") + plan_counts(plan, look) + "\n";
  return out;
}

std::string versions_text(const Solution& solution, const Look& look) {
  const Words w{look.lang};
  if (solution.choices.empty()) return {};
  std::string out = w("Versions:", "版本：") + "\n";
  for (const auto& c : solution.choices)
    out += fmt::format("  {} {} {}\n", pad(c.component, 12), pad(c.version, 16),
                       look.paint(Style::dim, wrap(c.why, look.width - 32, 32)));
  return out;
}

std::string plan_report_json(const Planned& planned, const std::vector<PodGap>& pod) {
  using Json = nlohmann::ordered_json;
  Json versions = Json::array();
  for (const auto& c : planned.solution.choices) {
    Json sources = Json::array();
    for (const auto& s : c.release->sources)
      sources.push_back({{"url", s.url}, {"date", s.date}, {"says", s.says}});
    versions.push_back(
        {{"component", c.component}, {"version", c.version}, {"why", c.why}, {"sources", sources}});
  }
  Json out = {{"schema", "epready-plan-report-1"},
              {"tool", "epready"},
              {"has_changes", !planned.plan.empty()},
              {"versions", versions},
              {"plan", Json::parse(plan_to_json(planned.plan))}};
  out["pod"] = Json::array();
  for (const auto& g : pod)
    out["pod"].push_back(
        {{"at", g.at}, {"yaml", g.yaml}, {"why", g.why}, {"known", g.truth != Truth::unknown}});
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ep
