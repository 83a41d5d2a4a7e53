// Reports of apply, status and undo.
#include "report/apply_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ep {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& j) {
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct StateLook {
  StepState state;
  const char *mark, *plain;
  Style style;
  Text word;
};
const StateLook kStates[] = {
    {StepState::satisfied, "=", "=", Style::dim, {"already so", "已满足"}},
    {StepState::done, "✔", "ok", Style::green, {"done", "已完成"}},
    {StepState::failed, "✘", "FAILED", Style::red, {"failed", "失败"}},
    {StepState::declined, "–", "-", Style::yellow, {"not agreed to", "未获同意"}},
    {StepState::blocked, "–", "-", Style::yellow, {"waits for another step", "等待其他步骤"}},
    {StepState::elsewhere, "–", "-", Style::yellow, {"not from here", "不能在此执行"}},
    {StepState::reboot, "↻", "reboot", Style::yellow, {"waits for the reboot", "等待重启"}},
    {StepState::interrupted, "‖", "stopped", Style::yellow, {"interrupted", "已中断"}},
    {StepState::running, "▶", "now", Style::green, {"works now", "正在执行"}},
    {StepState::not_run, "·", ".", Style::dim, {"not begun", "未开始"}},
};

const StateLook& look_of(StepState s) {
  for (const auto& row : kStates)
    if (row.state == s) return row;
  return kStates[std::size(kStates) - 1];
}

std::string step_line(const StepResult& r, const Look& look, size_t id_width) {
  const StateLook& s = look_of(r.state);
  std::string mark = pad(look.unicode ? s.mark : s.plain, look.unicode ? 2 : 8);
  std::string out =
      fmt::format("  {}{}  {}", look.paint(s.style, mark), pad(r.id, id_width), look.tr(s.word));
  if (r.seconds >= 0.1) out += fmt::format(" ({:.1f} s)", r.seconds);
  out += "\n";
  if (!r.reason.empty()) out += "      " + replace_all(r.reason, "\n", "\n      ") + "\n";
  if (r.state == StepState::failed && !r.log.empty())
    out += fmt::format("      {}: {}\n", look.tr({"log", "日志"}), r.log);
  return out;
}

std::string steps_text(const std::vector<StepResult>& steps, const Look& look) {
  size_t width = 0;
  for (const auto& s : steps) width = std::max(width, display_width(s.id));
  std::string out;
  for (const auto& s : steps) out += step_line(s, look, width);
  return out;
}

std::string counts(const std::vector<StepResult>& steps, const Look& look) {
  std::string out;
  for (const auto& row : kStates) {
    auto n = std::count_if(steps.begin(), steps.end(), [&](const auto& s) { return s.state == row.state; });
    if (n) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, look.tr(row.word));
  }
  return out;
}

Json step_json(const StepResult& s) {
  return {{"id", s.id},     {"title", s.title}, {"state", to_string(s.state)}, {"reason", s.reason},
          {"next", s.next}, {"log", s.log},     {"seconds", s.seconds}};
}

Json finding_json(const Finding& f) {
  Json evidence = Json::array();
  for (const auto& e : f.evidence)
    evidence.push_back({{"source", e.source}, {"line", e.line}, {"text", e.text}});
  return {{"code", f.code},   {"severity", to_string(f.severity)},
          {"title", f.title}, {"cause", f.cause},
          {"fix", f.fix},     {"evidence", evidence},
          {"next", f.next}};
}

std::string finding_text(const Finding& f, const Look& look) {
  std::string out = fmt::format("\n{} {}\n", severity_mark(look, f.severity), f.title);
  if (!f.cause.empty()) out += "  " + wrap(f.cause, look.width - 2, 2) + "\n";
  for (const auto& e : f.evidence)
    out += fmt::format("  {}{}: {}\n", e.source, e.line ? fmt::format(":{}", e.line) : "", e.text);
  for (const auto& fix : f.fix) out += fmt::format("  {}: {}\n", look.tr({"fix", "处理"}), fix);
  return out;
}

std::string_view word_of(UndoItem::State s) {
  switch (s) {
    case UndoItem::State::would:
      return "would";
    case UndoItem::State::done:
      return "done";
    case UndoItem::State::kept:
      return "kept";
    case UndoItem::State::failed:
      return "failed";
  }
  return "failed";
}

}  // namespace

std::string apply_text(const ApplyReport& r, const Look& look) {
  Words w{look.lang};
  if (r.steps.empty())
    return w("Nothing to do: this host is as the plan wants it.\n", "无需任何操作：本机已符合计划。\n");
  std::string out = steps_text(r.steps, look);
  for (const auto& f : r.findings) out += finding_text(f, look);
  out += w("\n{} steps: {}; {:.1f} s\n", "\n{} 个步骤：{}；{:.1f} 秒\n", r.steps.size(),
           counts(r.steps, look), r.seconds);
  return out;
}

std::string apply_json(const ApplyReport& r) {
  Json j = {{"schema", "epready-apply-1"}, {"tool", "epready"},          {"prefix", r.prefix},
            {"host", r.host_name},         {"exit_code", r.exit_code()}, {"seconds", r.seconds}};
  j["reboot"] = {{"pending", r.reboot_pending}, {"begun", r.reboot_begun}};
  j["steps"] = Json::array();
  for (const auto& s : r.steps) j["steps"].push_back(step_json(s));
  j["findings"] = Json::array();
  for (const auto& f : r.findings) j["findings"].push_back(finding_json(f));
  return dump(j);
}

std::string next_after(const ApplyReport& r) {
  for (const auto& s : r.steps)
    if (s.state != StepState::satisfied && s.state != StepState::done && !s.next.empty()) return s.next;
  return r.exit_code() == 0 ? "epready verify -r 1" : "epready status";
}

std::string status_text(const StatusReport& r, const Look& look) {
  Words w{look.lang};
  if (!r.exists) return w("Nothing was ever applied in {}.\n", "{} 中从未应用过任何计划。\n", r.prefix);
  std::string out = steps_text(r.steps, look);
  if (!r.steps.empty()) out += "\n" + counts(r.steps, look) + "\n";
  if (!r.running.empty())
    out += w("a run works now: {}\n", "正在运行：{}\n", r.running);
  else if (r.ended.empty())
    out += w("the last run (begun {}) was cut off before its end\n", "上一次运行（始于 {}）未正常结束\n",
             r.begun);
  else
    out += w("last run: {} to {}\n", "上一次运行：{} 至 {}\n", r.begun, r.ended);
  if (r.reboot_pending) out += w("a reboot is pending\n", "需要重启\n");
  if (!r.torn.empty()) out += r.torn + "\n";
  out += w("undo would take back {} files outside {} and {} packages\n",
           "undo 会撤回 {1} 之外的 {0} 个文件以及 {2} 个软件包\n", r.num_files, r.prefix, r.num_packages);
  return out;
}

std::string status_json(const StatusReport& r) {
  Json j = {{"schema", "epready-status-1"},
            {"tool", "epready"},
            {"prefix", r.prefix},
            {"applied", r.exists},
            {"running", r.running},
            {"begun", r.begun},
            {"ended", r.ended},
            {"reboot_pending", r.reboot_pending},
            {"torn", r.torn},
            {"files", r.num_files},
            {"packages", r.num_packages},
            {"plan", r.plan_path}};
  j["steps"] = Json::array();
  for (const auto& s : r.steps) j["steps"].push_back(step_json(s));
  return dump(j);
}

std::string undo_text(const UndoReport& r, const Look& look) {
  Words w{look.lang};
  std::string out;
  for (const auto& i : r.items) {
    const char* mark = i.state == UndoItem::State::failed  ? "FAILED"
                       : i.state == UndoItem::State::kept  ? "kept"
                       : i.state == UndoItem::State::would ? "would"
                                                           : "done";
    Style style = i.state == UndoItem::State::failed ? Style::red
                  : i.state == UndoItem::State::kept ? Style::yellow
                                                     : Style::green;
    out += fmt::format("  {}{}{}\n", look.paint(style, pad(mark, 8)), i.what,
                       i.reason.empty() ? "" : ": " + i.reason);
  }
  if (r.items.empty()) out += w("Nothing is left to take back.\n", "没有可撤回的内容。\n");
  if (r.reboot_advised)
    out += w("Module options were taken back: they are in force until the next boot.\n",
             "内核模块选项已撤回，但在下次启动前仍然生效。\n");
  return out;
}

std::string undo_json(const UndoReport& r) {
  Json j = {{"schema", "epready-undo-1"},
            {"tool", "epready"},
            {"prefix", r.prefix},
            {"exit_code", r.exit_code()},
            {"reboot_advised", r.reboot_advised}};
  j["items"] = Json::array();
  for (const auto& i : r.items)
    j["items"].push_back({{"state", word_of(i.state)}, {"what", i.what}, {"reason", i.reason}});
  return dump(j);
}

std::string gather_text(const GatherReport& r, const Look& look) {
  Words w{look.lang};
  std::string out;
  for (const auto& i : r.items) {
    out += fmt::format(
        "  {}{}\n", look.paint(i.good ? Style::green : Style::red, pad(i.good ? "ok" : "FAILED", 8)), i.what);
    if (!i.reason.empty()) out += "      " + replace_all(i.reason, "\n", "\n      ") + "\n";
    if (!i.next.empty()) out += fmt::format("      -> {}\n", i.next);
  }
  out += w("\n{} files ({:.1f} MB) and {} repositories in {}; {:.1f} s\n",
           "\n{} 个文件（{:.1f} MB）与 {} 个代码库，位于 {}；{:.1f} 秒\n", r.num_files, double(r.bytes) / 1e6,
           r.num_repositories, r.dir, r.seconds);
  if (!r.whole)
    out += w("Not whole: apply --offline refuses this folder until fetch has ended well.\n",
             "尚不完整：在 fetch 成功结束之前，apply --offline 会拒绝此目录。\n");
  return out;
}

std::string gather_json(const GatherReport& r) {
  Json j = {{"schema", "epready-fetch-1"},        {"tool", "epready"}, {"dir", r.dir},
            {"exit_code", r.exit_code()},         {"whole", r.whole},  {"files", r.num_files},
            {"repositories", r.num_repositories}, {"bytes", r.bytes},  {"seconds", r.seconds}};
  j["items"] = Json::array();
  for (const auto& i : r.items)
    j["items"].push_back({{"what", i.what}, {"good", i.good}, {"reason", i.reason}, {"next", i.next}});
  return dump(j);
}

}  // namespace ep
