// `doctor`: known problems on a host, in logs, or in both together.
#include <set>

#include "cli/catalogue.h"
#include "cli/log_files.h"
#include "cli/mend.h"
#include "cli/output_file.h"
#include "cli/rows.h"
#include "doctor/host_facts.h"
#include "doctor/judge.h"
#include "doctor/text_facts.h"
#include "facts/facts.h"
#include "host/host.h"
#include "plan/plan_json.h"
#include "report/doctor_report.h"
#include "report/plan_report.h"

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
             {"Print only the mend: commands to read, and on a host the steps that `apply` does",
              "只输出修复：供阅读的命令，以及在主机上由 `apply` 执行的步骤"},
             &fix_,
             {},
             "",
             false},
            {"-o,--output",
             {"With --fix: write its plan to FILE, for epready apply FILE",
              "与 --fix 同用：把修复计划写入 FILE，供 epready apply FILE 使用"},
             &output_,
             {},
             "FILE",
             false},
            {"--prefix",
             {"Folder of epready to look at, besides the usual ones", "除常用位置外还要检查的 epready 目录"},
             &prefix_,
             {},
             "DIR",
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
      host_ = std::move(*opened);
      auto facts = c.read(*host_, absolute_prefix(prefix_));
      if (!facts) return c.report(facts.error());
      facts_ = std::move(*facts);
      observe_host(facts_, observed);
      if (host_->kind() == HostKind::live)
        if (const PythonEnvironment* e = environment_of_deepep(facts_))
          observe_libraries(read_libraries(*host_, *e, facts_), observed);
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
    if (fix_ && host_) return fix(c, *catalogue, d);
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

  /// The commands as text, then what of it `apply` can do as a plan.
  int fix(Context& c, const Catalogue& catalogue, const Diagnosis& d) {
    const auto mend = plan_mend(c, catalogue, d, *host_, facts_, absolute_prefix(prefix_));
    if (!mend) return c.report(mend.error());
    if (!output_.empty())
      if (auto ok = write_output(output_, plan_to_json(*mend)); !ok) return c.report(ok.error());
    if (c.json) {
      c.out(plan_to_json(*mend));
    } else {
      c.out(fix_text(c, d));
      if (!mend->empty()) c.out(plan_text(*mend, c.look()));
      if (!mend->empty())
        c.next(output_.empty()
                   ? "epready doctor --fix" + (prefix_.empty() ? "" : " --prefix " + shell_quote(prefix_)) +
                         " -o mend.json && epready apply mend.json"
                   : "epready apply " + shell_quote(output_));
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
  std::string format_, follow_, own_, output_, prefix_;
  std::unique_ptr<Host> host_;
  Facts facts_;
  bool here_ = false, fix_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor() {
  return std::make_unique<Doctor>();
}

}  // namespace ep
