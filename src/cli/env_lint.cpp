// `env lint`: judges the variables in force, or those of a file, against this host.
#include "check/env_lint.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/hosts_input.h"
#include "cli/rows.h"
#include "plan/env.h"
#include "report/look.h"

namespace ep {
namespace {

class EnvLint : public Command {
 public:
  std::vector<Option> options() override {
    return {{"file",
             {"File with NAME=value lines, - for standard input (default: the variables in force)",
              "含 NAME=value 的文件，- 为标准输入（默认检查当前变量）"},
             &file_,
             {},
             "FILE",
             false},
            {"--lane", {"Judge for this lane only", "仅按此路线判断"}, &lane_, {"v1", "v2"}, "LANE", false},
            {"--nvshmem",
             {"NVSHMEM version to judge by", "按哪个 NVSHMEM 版本判断"},
             &nvshmem_,
             {},
             "VERSION",
             false},
            {"--nccl", {"NCCL version to judge by", "按哪个 NCCL 版本判断"}, &nccl_, {}, "VERSION", false},
            {"--data-dir",
             {"Folder that stands in for the built-in data", "替代内置数据的目录"},
             &data_dir_,
             {},
             "DIR",
             false}};
  }

  int run(Context& c) override {
    auto variables = load_variables(data_dir_);
    if (!variables) return c.report(variables.error());
    auto hosts = read_hosts(c.from, {});
    if (!hosts) return c.report(hosts.error());
    Facts f = hosts->front();
    if (!file_.empty()) {
      auto given = read_hosts(file_, {});
      if (!given) return c.report(given.error());
      f.environment = given->front().environment;
    }
    Topology t = read_topology(f);
    EnvLintInput in;
    in.environment = f.environment;
    in.nvshmem = nvshmem_.empty() ? found_version(f, "nvidia-nvshmem-cu") : nvshmem_;
    in.nccl = nccl_.empty() ? found_version(f, "nvidia-nccl-cu") : nccl_;
    in.lane = lane_;
    in.topology = &t;
    in.facts = &f;
    in.peer_mapping_override = peer_mapping_override(f);
    auto findings = lint_environment(in, *variables);
    bool fail = false;
    for (const auto& x : findings) fail |= x.severity == Severity::fail;
    c.out(c.json ? json_text(findings, in) : human_text(c, findings, in));
    c.next("epready env" + c.from_option(),
           {"the environment computed for this host", "输出为本机计算的环境"});
    return fail ? 1 : 0;
  }

 private:
  static std::string json_text(const std::vector<Finding>& findings, const EnvLintInput& in) {
    nlohmann::ordered_json j = {{"schema", "epready-env-lint-1"},
                                {"tool", "epready"},
                                {"nvshmem", in.nvshmem},
                                {"nccl", in.nccl},
                                {"variables", in.environment.size()}};
    auto list = nlohmann::ordered_json::array();
    for (const auto& f : findings)
      list.push_back({{"code", f.code},
                      {"severity", f.severity == Severity::fail   ? "error"
                                   : f.severity == Severity::warn ? "warn"
                                                                  : "info"},
                      {"text", f.title},
                      {"variable", f.evidence.empty() ? "" : f.evidence[0].text},
                      {"note", f.cause},
                      {"fix", f.fix}});
    j["findings"] = std::move(list);
    return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

  static std::string human_text(const Context& c, const std::vector<Finding>& findings,
                                const EnvLintInput& in) {
    Look look = c.look();
    std::string out;
    for (const auto& f : findings) {
      out += fmt::format("{} {}\n", severity_mark(look, f.severity),
                         wrap(f.code + ": " + title_of(f, c.lang), look.width - 8, 8));
      if (!f.cause.empty()) out += "        " + wrap(cause_of(f, c.lang), look.width - 8, 8) + "\n";
      for (const auto& e : f.evidence) out += look.paint(Style::dim, "        " + e.text) + "\n";
      for (const auto& x : f.fix) out += "        " + x + "\n";
    }
    std::string versions = fmt::format("NVSHMEM {}, NCCL {}", in.nvshmem.empty() ? "?" : in.nvshmem,
                                       in.nccl.empty() ? "?" : in.nccl);
    size_t n = 0;
    for (const auto& [name, value] : in.environment) n += !name.empty();
    if (findings.empty())
      out += fmt::format("{} ({})\n",
                         c.tr({"nothing wrong with the variables that are set", "已设置的变量没有问题"}),
                         versions);
    return out + fmt::format("{} {}, {}\n", n, c.tr({"variables looked at", "个变量已检查"}), versions);
  }

  std::string file_, lane_, nvshmem_, nccl_, data_dir_;
};

}  // namespace

std::unique_ptr<Command> make_env_lint() {
  return std::make_unique<EnvLint>();
}

}  // namespace ep
