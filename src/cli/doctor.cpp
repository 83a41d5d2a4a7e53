// `doctor`: known problems on a host, in logs, or in both together.
#include <set>

#include "cli/catalogue.h"
#include "cli/log_files.h"
#include "cli/rows.h"
#include "doctor/host_facts.h"
#include "doctor/judge.h"
#include "doctor/text_facts.h"
#include "facts/facts.h"
#include "host/host.h"
#include "report/doctor_report.h"

namespace ep {

namespace {

class Doctor : public Command {
 public:
  std::vector<Option> options() override {
    return {{"files",
             {"Logs, pastes; - reads a pipe", "日志或粘贴文本；- 表示从管道读取"},
             &files_,
             {},
             "FILE",
             false},
            {"--format",
             {"Form of the answer", "输出格式"},
             &format_,
             {"text", "json", "markdown", "sarif", "junit", "ctrf", "nagios"},
             "FORM",
             false},
            {"--follow",
             {"Watch a growing log and speak when something is found", "跟踪不断增长的日志，发现问题即报告"},
             &follow_,
             {},
             "FILE",
             false},
            {"--here",
             {"Use this machine's facts too, beside the logs", "除日志外同时使用本机事实"},
             &here_,
             {},
             "",
             false},
            {"--fix",
             {"Print only the mend, as commands to read and run", "只输出修复命令"},
             &fix_,
             {},
             "",
             false},
            {"--problems-dir",
             {"A folder of your own problems, read beside ours", "自有问题目录，与内置目录一并读取"},
             &own_,
             {},
             "DIR",
             false}};
  }

  int run(Context& c) override {
    auto catalogue = open_catalogue(c, own_);
    if (!catalogue) return c.report(catalogue.error());
    Observed observed;
    const bool host = !c.from.empty() || here_ || (files_.empty() && follow_.empty());
    if (host) {
      auto opened = c.open();
      if (!opened) return c.report(opened.error());
      const auto facts = c.read(**opened);
      if (!facts) return c.report(facts.error());
      observe_host(*facts, observed);
    }
    if (!follow_.empty()) return follow(c, *catalogue, observed);
    std::vector<LogInput> logs;
    for (const auto& path : files_) {
      auto log = open_log(path);
      if (!log) return c.report(log.error());
      logs.push_back(std::move(*log));
    }
    const LogEvidence evidence = read_logs(*catalogue, std::move(logs), observed);
    const Diagnosis d = judge(*catalogue, evidence, observed, c.lang);
    return show(c, d);
  }

 private:
  static int exit_code(const Diagnosis& d) {
    for (const auto& f : d.findings)
      if (f.severity != Severity::info) return 1;
    return d.start || d.nothing_read || !d.errors.empty() ? 3 : 0;
  }

  int show(Context& c, const Diagnosis& d) {
    for (const auto& e : d.errors) c.note("epready: " + e.text());
    if (c.json || format_ == "json")
      c.out(diagnosis_json(d));
    else if (fix_)
      c.out(fix_text(c, d));
    else if (format_ == "markdown")
      c.out(diagnosis_markdown(d, c.look()));
    else if (format_ == "sarif")
      c.out(diagnosis_sarif(d));
    else if (format_ == "junit")
      c.out(diagnosis_junit(d));
    else if (format_ == "ctrf")
      c.out(diagnosis_ctrf(d));
    else if (format_ == "nagios") {
      c.out(diagnosis_nagios(d));
      return nagios_exit_code(d);
    } else {
      c.out(diagnosis_text(d, c.look()));
      if (!d.findings.empty() && exit_code(d) == 1)
        c.next("epready explain " + d.findings.front().code);
      else if (d.start)
        c.next("epready bundle", {"collects what a bug report needs", "收集报告问题所需的内容"});
      else
        c.next("epready verify -r 1");
    }
    return exit_code(d);
  }

  static std::string fix_text(const Context& c, const Diagnosis& d) {
    std::string out;
    for (const auto& f : d.findings) {
      if (f.severity == Severity::info) continue;
      out += "# " + f.code + ": " + f.title + "\n";
      for (const auto& x : f.fix) out += (starts_with(x, "$ ") ? x.substr(2) : "# " + x) + "\n";
      if (d.undecided) {
        out += std::string(c.tr({"# not decided yet; first: ", "# 尚未确定；请先："})) + f.next + "\n";
        break;
      }
      out += "\n";
    }
    return out.empty() ? std::string(c.tr({"# nothing to mend\n", "# 无需修复\n"})) : out;
  }

  int follow(Context& c, const Catalogue& catalogue, Observed& observed) {
    LogEvidence evidence;
    std::set<std::string> told;
    int code = 0;
    auto speak = [&] {
      Observed now = observed;
      derive_facts(now);
      Diagnosis d = judge(catalogue, evidence, now, c.lang);
      std::erase_if(d.findings, [&](const Finding& f) {
        return f.severity == Severity::info || !told.insert(f.code).second;
      });
      if (d.findings.empty()) return;
      code = 1;
      d.start.reset();
      d.notes.clear();
      d.bytes = 0;
      c.out(c.json ? diagnosis_json(d) : diagnosis_text(d, c.look()));
      std::fflush(stdout);
    };
    auto log = follow_log(follow_, speak, &interrupted());
    if (!log) return c.report(log.error());
    std::vector<LogInput> logs;
    logs.push_back(std::move(*log));
    read_logs(catalogue, std::move(logs), observed, evidence);
    speak();
    return interrupted() ? 5 : code;
  }

  std::vector<std::string> files_;
  std::string format_, follow_, own_;
  bool here_ = false, fix_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor() {
  return std::make_unique<Doctor>();
}

}  // namespace ep
