// `env`: the whole environment of a stack on this host, with the reason of each line.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/host_report.h"
#include "cli/hosts_input.h"
#include "cli/plan_options.h"
#include "cli/rows.h"
#include "facts/topology.h"
#include "host/host.h"
#include "plan/env_render.h"
#include "plan/fact_scope.h"

namespace ep {
namespace {

std::string env_json(const EnvPlan& p, const std::string& host) {
  nlohmann::ordered_json j = {
      {"schema", "epready-env-1"}, {"tool", "epready"}, {"host", host}, {"lane", p.lane},
      {"nvshmem", p.nvshmem},      {"nccl", p.nccl}};
  auto list = [](const std::vector<EnvLine>& lines) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& l : lines) {
      out.push_back({{"name", l.name}, {"value", l.whole()}, {"why", l.why.en}});
      if (l.is_list) out.back()["prepends"] = l.value;
    }
    return out;
  };
  j["variables"] = list(p.lines);
  auto ranks = nlohmann::ordered_json::array();
  for (const auto& [gpu, nic] : p.per_rank)
    ranks.push_back({{"gpu", gpu}, {"NVSHMEM_HCA_LIST", nic}, {"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}});
  j["per_rank"] = std::move(ranks);
  j["left_out"] = list(p.left_out);
  auto findings = nlohmann::ordered_json::array();
  for (const auto& f : p.findings)
    findings.push_back({{"code", f.code},
                        {"severity", f.severity == Severity::fail ? "error" : "warn"},
                        {"text", f.title},
                        {"next", f.next}});
  j["findings"] = std::move(findings);
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

class EnvCommand : public Command {
 public:
  std::vector<Option> options() override {
    return {
        {"--shell",
         {"As a script to source (default)", "输出可 source 的脚本（默认）"},
         &shell_,
         {},
         "",
         false},
        {"--systemd", {"As an EnvironmentFile", "输出 systemd EnvironmentFile"}, &systemd_, {}, "", false},
        {"--docker", {"As an --env-file", "输出 Docker --env-file"}, &docker_, {}, "", false},
        {"--k8s", {"As a container's env list", "输出 Kubernetes env 列表"}, &k8s_, {}, "", false},
        {"-o,--output",
         {"Write to this file, beside and renamed (default: stdout)",
          "写入此文件（先写临时文件再改名）；默认标准输出"},
         &output_,
         {},
         "FILE",
         false},
        {"--prefix", {"Folder that epready owns", "epready 拥有的目录"}, &request_.prefix, {}, "DIR", false},
        {"--lane",
         {"Lane the environment is for (default: the one applied here, else the plan's)",
          "适用的通道（默认：此处已安装的，否则为计划选择的）"},
         &lane_,
         {"v1", "v2", "local"},
         "LANE",
         false},
        {"--nvshmem",
         {"NVSHMEM version to write for (default: the one found)", "按哪个 NVSHMEM 版本输出"},
         &request_.nvshmem,
         {},
         "VERSION",
         false},
        {"--nccl",
         {"NCCL version to write for (default: the one found)", "按哪个 NCCL 版本输出"},
         &request_.nccl,
         {},
         "VERSION",
         false},
        {"--gib",
         {"Google's gIB variables: when its folder is there, all, or none", "gIB 变量：自动、全部或不设"},
         &request_.gib,
         {"auto", "all", "none"},
         "WHEN",
         false},
        {"--root",
         {"A mounted image: its folders, and no NICs (apply uses it)",
          "已挂载的镜像：只有目录，没有网卡（apply 使用）"},
         &root_,
         {},
         "DIR",
         false},
        {"--data-dir",
         {"Folder that stands in for the built-in data", "替代内置数据的目录"},
         &data_dir_,
         {},
         "DIR",
         false}};
  }

  int run(Context& c) override {
    for (const auto& [flag, version] :
         {std::pair<const char*, std::string>{"--nvshmem", request_.nvshmem}, {"--nccl", request_.nccl}})
      if (!version.empty() && (version[0] < '0' || version[0] > '9'))
        return c.report(fail(ErrorKind::usage, fmt::format("{} is no version", version), flag,
                             "digits and dots, as 3.4.5", "epready libs lint   (what is installed)")
                            .value());
    if (shell_ + systemd_ + docker_ + k8s_ > 1)
      return c.report(Error{ErrorKind::usage,
                            "only one form at a time",
                            "",
                            "--shell, --systemd, --docker and --k8s exclude each other",
                            "epready env --shell",
                            {}});
    if (!root_.empty() && !c.from.empty())
      return c.report(fail(ErrorKind::usage, "--root and --from exclude each other", root_).value());
    auto facts =
        root_.empty()
            ? read_hosts(c.from, {})
            : Result<std::vector<Facts>>(std::vector<Facts>{read_facts(*live_host(root_), request_.prefix)});
    if (!facts) return c.report(facts.error());
    auto variables = load_variables(data_dir_);
    if (!variables) return c.report(variables.error());
    const Facts& f = facts->front();
    Topology t = read_topology(f);
    auto lane = lane_here(f, t);
    if (!lane) return c.report(lane.error());
    request_.lane = *lane;
    EnvPlan plan = compute_env(f, t, *variables, request_);
    EnvForm form = systemd_  ? EnvForm::systemd
                   : docker_ ? EnvForm::docker
                   : k8s_    ? EnvForm::k8s
                             : EnvForm::shell;
    const std::string text = c.json ? env_json(plan, t.host_name) : env_text(plan, form, c.lang);
    if (auto ok = write_file(output_.empty() ? "-" : output_, text); !ok) return c.report(ok.error());
    bool bad = false;
    for (const auto& x : plan.findings) {
      c.note(fmt::format("epready: {}: {}{}", x.code, title_of(x, c.lang),
                         x.next.empty() ? "" : "\n  next: " + x.next));
      bad |= x.severity == Severity::fail;
    }
    // The text is meant to be sourced: the next command goes to the talk.
    if (!c.json) c.note(fmt::format("{}: epready env lint{}", c.tr({"next", "下一步"}), c.from_option()));
    // A file that was asked for and written is a success; what it cannot mend was said.
    return bad && output_.empty() ? 1 : 0;
  }

 private:
  /// The lane that was applied here, else the one that a plan would choose: plan, env and verify speak of the
  /// same.
  Result<std::string> lane_here(const Facts& f, const Topology& t) const {
    if (!lane_.empty()) return lane_;
    if (!request_.nvshmem.empty()) return std::string("v1");  // whose transport it is
    if (t.gpus.empty() && f.host_kind != "paste") return std::string("local");
    auto recipe = load_recipe(data_folder(data_dir_), condition_names());
    if (!recipe) return Failure(recipe.error());
    PlanOptions o;
    o.prefix = request_.prefix;
    return lane_of(f, *recipe, o);
  }

  EnvRequest request_;
  std::string data_dir_, lane_, output_, root_;
  bool shell_ = false, systemd_ = false, docker_ = false, k8s_ = false;
};

}  // namespace

std::unique_ptr<Command> make_env() {
  return std::make_unique<EnvCommand>();
}

}  // namespace ep
