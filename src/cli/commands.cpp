// The table of commands. Adding one: its file, its row here, its page in docs/commands/ and
// docs/zh/commands/.
#include "cli/command.h"
#include "cli/rows.h"

namespace ep {

const std::vector<CommandRow>& commands() {
  // clang-format off
  static const std::vector<CommandRow> table = {
      // name, group, summary (en, zh), takes --from, has --json, maker
      {"up", Group::main, {"The whole chain for the best lane this host can run; resumes after a stop",
                           "为本机可行的最佳通道走完整个流程；中断后可继续"}, false, true, make_up},
      {"report", Group::main, {"What this host is and how it stands: text, JSON, one HTML page",
                               "本机是什么、状态如何：文本、JSON、一个 HTML 页面"}, true, true, make_report},
      {"doctor", Group::main, {"Find known problems on this host and in logs, and say what to do",
                               "在本机与日志中查找已知问题并给出处理方法"}, true, true, make_doctor},
      {"facts", Group::know, {"Show what this machine is: every fact, its state, where it was read",
                              "显示本机的各项事实、状态与来源"}, true, true, make_facts},
      {"snapshot", Group::know, {"Capture this host, to look at it elsewhere with --from",
                                 "采集本机，以便在别处用 --from 查看"}, true, true, make_snapshot},
      {"bundle",
       Group::know,
       {"Pack this host and logs for a bug report, names and addresses replaced", "打包本机与日志用于报告问题，名称与地址均被替换"},
       true,
       true,
       make_bundle},
      {"explain", Group::know, {"Show a known problem: cause, fix, look-alikes, sources",
                                "显示一个已知问题：原因、处理、易混问题、来源"}, false, true, make_explain},
      {"problems", Group::know, {"List the problems that the doctor knows",
                                 "列出 doctor 认识的问题"}, false, true, make_problems},
      {"lanes", Group::know, {"Show which lanes are possible here, installed and proven, and what each lacks",
                              "显示本机可用、已装、已证的通道及各自缺少什么"}, true, true, make_lanes},
      {"stacks", Group::know, {"List the combinations of versions, and which of them fit this host",
                               "列出版本组合及哪些适合本机"}, true, true, make_stacks},
      {"plan", Group::change, {"Show what would change on this host and why, and change nothing",
                               "显示本机将有哪些更改及原因，但不做任何更改"}, true, true, make_plan_command},
      {"libs", Group::change, {"Plan DeepEP and its wheels in a workspace, without root",
                               "规划在工作目录中构建 DeepEP 及其 wheel，无需 root"}, true, true, make_libs},
      {"libs lint", Group::know, {"Judge the libraries installed: copies, versions, search paths, GPU code, probes",
                                  "检查已装的库：副本、版本、搜索路径、GPU 代码、探测结果"}, true, true, make_libs_lint},
      {"driver", Group::change, {"Plan the driver options that IBGDA needs, with initramfs and reboot",
                                 "规划 IBGDA 所需的驱动选项、initramfs 与重启"}, true, true, make_driver_command},
      {"apply", Group::change, {"Do a plan: journalled, resumable after a stop or a reboot",
                                "执行计划：有日志，可在中断或重启后继续"}, false, true, make_apply},
      {"fetch", Group::change, {"Gather what a plan needs into a folder, for a host without network",
                                "将计划所需内容收集到目录，供无网络的主机使用"}, true, true, make_fetch},
      {"status", Group::change, {"Show where the plan of this host stands",
                                 "显示本机计划的进度"}, false, true, make_status},
      {"undo", Group::change, {"Take back what apply did: files, packages, repositories, units",
                               "撤回 apply 所做的改动：文件、软件包、软件源、服务"}, false, true, make_undo},
      {"topology", Group::know, {"Show GPUs, NICs and their roles, the GPU-NIC mapping and GID indices",
                                 "显示 GPU、网卡及其角色、GPU 与网卡的对应和 GID 索引"}, true, true, make_topology},
      {"verify", Group::prove, {"Prove by levels: facts, one node, several nodes",
                                "按级别验证：事实、单节点、多节点"}, true, true, make_verify},
      {"bench", Group::prove, {"Time dispatch and combine here, against ceilings measured in the same run",
                               "在本机测量 dispatch/combine，并与同次测得的上限比较"}, false, true, make_bench},
      {"history", Group::prove, {"List what was measured on this host before",
                                 "列出本机以往的测量结果"}, false, true, make_history},
      {"compare", Group::prove, {"Compare two runs of the benchmark, phase by phase",
                                 "逐阶段比较两次基准测试"}, false, true, make_compare},
      {"data lint", Group::help, {"Check the TOML files of stacks, components, platforms and baselines",
                                  "检查组合、组件、平台与基线的 TOML 文件"}, false, true, make_data_lint},
      {"env", Group::main, {"Write the environment for this host, computed, every line with its reason",
                            "输出为本机计算的环境变量，每行附原因"}, true, true, make_env},
      {"env lint", Group::know, {"Judge the variables in force: unknown, misspelt, without effect, dangerous",
                                 "检查当前变量：未知、拼错、无效、危险"}, true, true, make_env_lint},
      {"help", Group::help, {"Show a command's manual page", "显示某个命令的手册"}, false, false, make_help},
      {"completion", Group::help, {"Print the completion script of a shell", "输出 shell 补全脚本"}, false, false, make_completion},
  };
  // clang-format on
  return table;
}

}  // namespace ep
