// The last steps below the prefix: a NIC for every GPU, and the environment file.
#include <fmt/format.h>

#include "base/embedded.h"
#include "plan/build.h"

namespace ep {

void make_nic_map(Build& b) {
  const std::string title = b.w("Give every GPU its own NIC (what pull request 466 does, without patching)",
                                "为每块 GPU 指定网卡（PR 466 的作用，但不改 DeepEP 源码）");
  const Named& count = b.solution.scope.at("nic.count");
  if (b.one_node()) {
    b.wants.emplace("nic-map", std::vector<std::string>());
    b.skip("nic-map", title, b.w("inside one node no NIC is used", "单机内不使用网卡"));
    return;
  }
  if (has_trait(b.release("deepep"), "nic-map") ||
      (count.present && (count.text == "0" || count.text == "1"))) {
    b.wants.emplace("nic-map", std::vector<std::string>());
    b.skip("nic-map", title,
           has_trait(b.release("deepep"), "nic-map")
               ? b.w("this DeepEP does it itself", "此 DeepEP 自带该功能")
               : b.w("{} RDMA NIC: nothing to choose", "{} 块 RDMA 网卡：无需选择", count.text));
    return;
  }
  const std::string root = b.below("nic-map");
  Step s = user_step(b, "nic-map", "nic-map", title);
  s.needs_network = false;
  s.why = b.w(
      "without it all GPUs of a host can end up on one NIC (each process is PE 0 of its own NVSHMEM world "
      "and "
      "takes the first): 6.5 instead of 50 to 80 GB/s in the runbook",
      "没有它，一台主机的所有 GPU 可能都落在同一网卡上（各进程都是自己 NVSHMEM world 的 PE 0，都取第一张）："
      "runbook 中为 6.5 而非 50 至 80 GB/s");
  const std::map<std::string, std::string> stamp = {{"version", "1"}, {"venv", b.venv()}};
  const auto text = [](const char* path) { return std::string(embedded(path).value_or("")); };
  s.actions = {WriteFile{root + "/epready_nic_map.py", text("data/python/epready_nic_map.py"), 0644},
               WriteFile{root + "/install_nic_map.py", text("data/python/install_nic_map.py"), 0644},
               RunArgv{{b.venv() + "/bin/python", root + "/install_nic_map.py"}, "", {}, 60},
               stamp_file(root, stamp)};
  s.before = s.after = {part_predicate("nic-map", b.options.prefix, stamp)};
  s.estimate_s = 2;
  b.consider(std::move(s), {"python", "deepep", "torch"});
}

void make_env(Build& b) {
  const std::string root = b.below("env");
  Step s =
      user_step(b, "env", "env", b.w("Write the environment file {}/env.sh", "写入环境文件 {}/env.sh", root));
  s.needs_network = false;
  s.why = b.stack.lane == "local"
              ? b.w("what programs on this host should find, with the reason of each line",
                    "本机程序应使用的环境，每行附理由")
              : b.w("NIC mapping and GID choice computed from this host, after the reboot; no fixed index, "
                    "no LD_PRELOAD",
                    "重启后按本机计算网卡映射与 GID；不写死索引，不用 LD_PRELOAD");
  const std::map<std::string, std::string> stamp = {
      {"stack", b.stack.id},
      {"deepep", b.version("deepep")},
      {"handler", b.option("nic-handler").empty() ? "none" : b.option("nic-handler")}};
  s.actions = {MakeDir{root, 0755},
               RunSelf{{"env", "--shell", "--lane", b.stack.lane, "--prefix", b.options.prefix, "--output",
                        root + "/env.sh"},
                       60},
               stamp_file(root, stamp)};
  s.before = s.after = {part_predicate("env", b.options.prefix, stamp)};
  s.estimate_s = 1;
  b.consider(std::move(s),
             {"reboot", "rdma-names", "prefix", "python", "deepep", "nvshmem", "nccl", "nic-map"});
}

}  // namespace ep
