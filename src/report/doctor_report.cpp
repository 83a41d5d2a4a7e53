#include "report/doctor_report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ep {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& j) {
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json evidence_json(const Evidence& e) {
  Json j = {{"source", e.source}, {"line", nullptr}, {"text", e.text}};
  if (e.line > 0) j["line"] = e.line;
  return j;
}

Json finding_json(const Finding& f) {
  Json j = {{"kind", f.code},
            {"severity", to_string(f.severity)},
            {"confidence", f.confidence},
            {"title", f.title},
            {"cause", f.cause},
            {"fix", f.fix},
            {"evidence", Json::array()},
            {"ruled_out", f.ruled_out},
            {"next", f.next}};
  for (const auto& e : f.evidence) j["evidence"].push_back(evidence_json(e));
  return j;
}

std::string place(const Evidence& e) {
  return e.line > 0 ? e.source + ":" + std::to_string(e.line) : e.source;
}

/// "label  text", the text wrapped and indented below itself.
std::string row(const Look& look, std::string_view label, std::string_view text) {
  constexpr int kIndent = 10;
  const std::string head = pad(std::string(label) + " ", kIndent - 2);  // long labels keep their distance
  return "  " + look.paint(Style::dim, head) + wrap(text, std::max(look.width, 60), kIndent) + "\n";
}

std::string fix_rows(const Look& look, const std::vector<std::string>& fix) {
  std::string out;
  int number = 0;
  for (const auto& f : fix) {
    if (starts_with(f, "$ "))
      out += "            " + look.paint(Style::cyan, f) + "\n";
    else
      out += row(look, number == 0 ? look.tr({"fix", "处理"}) : "", fmt::format("{}. {}", number + 1, f)),
          ++number;
  }
  return out;
}

std::string finding_text(const Finding& f, const Look& look) {
  std::string out = severity_mark(look, f.severity) + "  " + look.paint(Style::bold, f.code) +
                    fmt::format("  {} {:.0f} %\n", look.tr({"confidence", "置信度"}), f.confidence * 100);
  out += row(look, "", f.title);
  out += row(look, look.tr({"cause", "原因"}), f.cause);
  out += fix_rows(look, f.fix);
  bool first = true;
  for (const auto& e : f.evidence) {
    out += row(look, first ? look.tr({"seen", "依据"}) : "", place(e) + "  " + e.text);
    first = false;
  }
  first = true;
  for (const auto& r : f.ruled_out) {
    out += row(look, first ? look.tr({"not", "排除"}) : "", r);
    first = false;
  }
  if (!f.next.empty() && f.severity != Severity::info) out += row(look, look.tr({"decide", "确认"}), f.next);
  return out + "\n";
}

}  // namespace

std::string diagnosis_text(const Diagnosis& d, const Look& look) {
  std::string out;
  size_t alarms = 0;
  for (const auto& f : d.findings) alarms += f.severity != Severity::info;
  if (d.undecided)
    out += std::string(look.tr(
               {"Cannot decide from this text alone; the candidates, likelier first, and what decides:",
                "仅凭这些文本无法确定；以下为候选（可能性大者在前）及判定方法："})) +
           "\n\n";
  for (const auto& f : d.findings) out += finding_text(f, look);
  if (alarms == 0 && d.start) {
    out += std::string(look.tr({"No known problem matches. The first error line, to start from:",
                                "没有匹配的已知问题。可从第一条错误行入手："})) +
           "\n";
    out += row(look, "", place(*d.start) + "  " + d.start->text);
    for (const auto& c : d.collect) out += row(look, look.tr({"collect", "收集"}), c);
    out += "\n";
  } else if (alarms == 0 && (d.nothing_read || !d.errors.empty())) {
    out += std::string(look.tr({"Not judged: there was nothing to read, or not all of it could be read.",
                                "无法判断：没有可读内容，或未能全部读取。"})) +
           "\n";
  } else if (alarms == 0) {
    out += std::string(look.tr({"No known problem found.", "未发现已知问题。"})) + "\n";
  }
  for (const auto& n : d.notes) out += row(look, look.tr({"note", "说明"}), n);
  if (d.bytes > 0)
    out += row(look, look.tr({"read", "已读"}),
               fmt::format("{}, {} {}", human_bytes(double(d.bytes)), d.lines, look.tr({"lines", "行"})));
  return out;
}

std::string diagnosis_json(const Diagnosis& d) {
  Json j = {{"schema", "epready-doctor-1"}, {"tool", "epready"}, {"findings", Json::array()}};
  for (const auto& f : d.findings) j["findings"].push_back(finding_json(f));
  j["undecided"] = d.undecided;
  j["healthy"] = d.healthy;
  j["start"] = d.start ? evidence_json(*d.start) : Json(nullptr);
  j["collect"] = d.collect;
  j["notes"] = d.notes;
  j["errors"] = Json::array();
  for (const auto& e : d.errors)
    j["errors"].push_back({{"what", e.what}, {"where", e.where}, {"why", e.why}});
  j["read"] = {{"bytes", d.bytes}, {"lines", d.lines}};
  return dump(j);
}

std::string diagnosis_markdown(const Diagnosis& d, const Look& look) {
  std::string out = fmt::format("## {}\n\n", look.tr({"epready doctor", "epready 诊断"}));
  for (const auto& f : d.findings) {
    out += fmt::format("### {} `{}` ({:.0f} %)\n\n**{}**\n\n{}\n\n", to_string(f.severity), f.code,
                       f.confidence * 100, f.title, f.cause);
    if (!f.evidence.empty()) {
      out += "```\n";
      for (const auto& e : f.evidence) out += place(e) + ": " + replace_all(e.text, "```", "'''") + "\n";
      out += "```\n\n";
    }
    for (const auto& x : f.fix)
      out += starts_with(x, "$ ") ? "  ```\n  " + x.substr(2) + "\n  ```\n" : "- " + x + "\n";
    for (const auto& r : f.ruled_out) out += fmt::format("- {}: {}\n", look.tr({"ruled out", "已排除"}), r);
    out += "\n";
  }
  if (d.findings.empty()) out += std::string(look.tr({"No known problem found.", "未发现已知问题。"})) + "\n";
  if (d.start)
    out += fmt::format("{}\n\n```\n{}: {}\n```\n", look.tr({"First error line:", "第一条错误行："}),
                       place(*d.start), d.start->text);
  return out;
}

std::string problem_text(const Problem& p, const Look& look) {
  std::string out = look.paint(Style::bold, p.kind) + "  " + severity_mark(look, p.severity) + "\n\n";
  out += wrap(p.title.in(look.lang), look.width, 0) + "\n\n" + wrap(p.cause.in(look.lang), look.width, 0) +
         "\n\n";
  std::vector<std::string> fix;
  for (const auto& f : p.fixes) {
    fix.push_back(f.text.in(look.lang));
    for (const auto& c : f.commands) fix.push_back("$ " + c);
  }
  out += fix_rows(look, fix) + "\n";
  bool first = true;
  for (const auto& s : p.signatures) {
    out += row(look, first ? look.tr({"looks like", "表现为"}) : "",
               join(s.pattern.literals, " ... ") + (s.decisive ? "" : "  (?)"));
    first = false;
  }
  for (const auto& r : p.rules) out += row(look, look.tr({"or facts", "或事实"}), r.seen.in(look.lang));
  for (const auto& c : p.require) out += row(look, look.tr({"only when", "仅当"}), c.text());
  out += "\n";
  for (const auto& l : p.look_alikes)
    out += row(look, look.tr({"not to be", "勿混淆"}),
               l.kind + ": " + l.decide.in(look.lang) + (l.command.empty() ? "" : "  $ " + l.command));
  out += "\n";
  for (const auto& s : p.sources)
    out += row(look, look.tr({"source", "来源"}), s.url + " (" + s.date + ") " + s.says);
  out += row(look, look.tr({"since", "最早"}), p.first_seen);
  return out;
}

static Json problem_record(const Problem& p) {
  Json j = {{"kind", p.kind},
            {"severity", to_string(p.severity)},
            {"layer", p.layer},
            {"phase", p.phase},
            {"lanes", p.lanes},
            {"first_seen", p.first_seen},
            {"reports", p.reports},
            {"title", {{"en", p.title.en}, {"zh", p.title.zh}}},
            {"cause", {{"en", p.cause.en}, {"zh", p.cause.zh}}},
            {"fix", Json::array()},
            {"look_alikes", Json::array()},
            {"sources", Json::array()}};
  for (const auto& f : p.fixes)
    j["fix"].push_back({{"en", f.text.en},
                        {"zh", f.text.zh},
                        {"commands", f.commands},
                        {"root", f.root},
                        {"reboot", f.reboot}});
  for (const auto& l : p.look_alikes)
    j["look_alikes"].push_back(
        {{"kind", l.kind}, {"en", l.decide.en}, {"zh", l.decide.zh}, {"command", l.command}});
  for (const auto& s : p.sources)
    j["sources"].push_back({{"url", s.url}, {"date", s.date}, {"says", s.says}});
  return j;
}

std::string problem_json(const Problem& p) {
  return dump({{"schema", "epready-problem-1"}, {"tool", "epready"}, {"problem", problem_record(p)}});
}

std::string problems_text(const Catalogue& c, const Look& look) {
  size_t wide = 0;
  for (const auto& p : c.problems) wide = std::max(wide, p.kind.size());
  std::string out;
  for (const auto& p : c.problems)
    out += severity_mark(look, p.severity) + " " + pad(p.kind, wide + 2) +
           wrap(p.title.in(look.lang), std::max(look.width, int(wide) + 40), int(wide) + 7) + "\n";
  return out + fmt::format("\n{} {}\n", c.problems.size(), look.tr({"problems", "个问题"}));
}

std::string problems_json(const Catalogue& c) {
  Json j = {{"schema", "epready-problems-1"}, {"tool", "epready"}, {"problems", Json::array()}};
  for (const auto& p : c.problems) j["problems"].push_back(problem_record(p));
  return dump(j);
}

}  // namespace ep
