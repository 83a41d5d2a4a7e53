// Two topics of the environment that name folders: gIB's set, and the Python environment of the prefix.
#include <algorithm>

#include "plan/env_work.h"

namespace ep {
namespace {

struct Gib {
  std::string dir;                   ///< as this host or pod sees it
  std::string tuner;                 ///< file of its configs/ for these GPUs
  std::vector<std::string> missing;  ///< what the folder lacks of what the variables name
};

std::string tuner_file(const EnvWork& w) {
  const int sm = w.topology.gpus.empty() ? 0 : w.topology.gpus[0].sm;
  if (sm == 90) return "tuner_config_a3u.txtpb";
  return w.facts.os.architecture.value_or("") == "aarch64" ? "tuner_config_a4x.txtpb"
                                                           : "tuner_config_a4.txtpb";
}

Gib look_at_gib(const EnvWork& w) {
  const auto& p = w.facts.platform;
  Gib g;
  g.tuner = tuner_file(w);
  g.dir = p.gib_dir.ok() ? *p.gib_dir : !w.request.gib_dir.empty() ? w.request.gib_dir : "/usr/local/gib";
  const auto has = [&](std::string_view start) {
    return std::any_of(p.gib_files.begin(), p.gib_files.end(),
                       [&](const std::string& f) { return starts_with(f, start); });
  };
  for (const std::string& want :
       {std::string("lib64/libnccl"), std::string("configs/guest_config.txtpb"), "configs/" + g.tuner})
    if (!has(want)) g.missing.push_back(want == "lib64/libnccl" ? "lib64/libnccl*" : want);
  return g;
}

void gib_lines(EnvWork& w, const Gib& g) {
  const std::string en = "gIB: all of its variables or none", zh = "gIB：变量要么全设要么全不设";
  w.prepend("LD_LIBRARY_PATH", g.dir + "/lib64", en + "; its NCCL and plugins are found first",
            zh + "；优先找到它的 NCCL 与插件");
  w.set("NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE", g.dir + "/configs/guest_config.txtpb",
        en + "; its checker's rules", zh + "；检查规则");
  w.set("NCCL_TUNER_CONFIG_PATH", g.dir + "/configs/" + g.tuner,
        en + "; the tuner table of this machine type", zh + "；该机型的调优表");
  const bool v2 = w.request.lane == "v2";
  w.set("NCCL_CROSS_NIC", "0",
        en + (v2 ? "; rails stay apart: V2 must run in hybrid mode" : "; rails stay apart"),
        zh + (v2 ? "；各 rail 分离：V2 须用 hybrid 模式" : "；各 rail 分离"));
  w.set("NCCL_NET_GDR_LEVEL", "PIX", en + "; GPUDirect below one switch", zh + "；同一交换机下用 GPUDirect");
  w.set("NCCL_P2P_NET_CHUNKSIZE", "131072", en, zh);
  w.set("NCCL_NVLS_CHUNKSIZE", "524288", en, zh);
  w.set("NCCL_IB_ADAPTIVE_ROUTING", "1", en, zh);
  w.set("NCCL_IB_QPS_PER_CONNECTION", "4", en, zh);
  w.set("NCCL_IB_TC", "52", en + "; the traffic class of the fabric", zh + "；网络的流量类别");
  w.set("NCCL_IB_FIFO_TC", "84", en + "; control messages", zh + "；控制消息");
}

}  // namespace

// Source of the set: runbook-gcp-b200 section GKE GIB. All of it or none: llm-d's GKE guide.
void env_gib(EnvWork& w) {
  const auto& f = w.facts;
  const bool there = f.platform.gib_dir.ok();
  const Gib g = look_at_gib(w);
  if (w.request.gib == "all" || (w.request.gib == "auto" && there && g.missing.empty())) {
    gib_lines(w, g);
    if (g.missing.empty() || !w.request.gib_dir.empty()) return;
    Finding x;
    x.code = "gib_incomplete";
    x.severity = f.host_kind == "paste" ? Severity::warn : Severity::fail;
    x.title = there ? fmt::format("gIB's folder {} lacks {}", g.dir, join(g.missing, ", "))
                    : fmt::format("gIB's folder is not seen here; its lines name {}", g.dir);
    x.title_zh = there ? fmt::format("gIB 目录 {} 缺少 {}", g.dir, join(g.missing, "、"))
                       : fmt::format("此处看不到 gIB 目录；各行使用 {}", g.dir);
    x.next = "epready env --gib none";
    w.out.findings.push_back(x);
    return;
  }
  const bool gke =
      f.platform.cloud.value_or("") == "gcp" && f.container.runtime.value_or("none") == "kubernetes";
  if (w.request.gib == "none" && there)
    w.leave("NCCL_TUNER_CONFIG_PATH", g.dir + "/configs/...",
            "gIB is left out as a whole: all of its variables or none", "gIB 变量要么全设要么全不设");
  else if (there)
    w.leave("NCCL_TUNER_CONFIG_PATH", g.dir + "/configs/" + g.tuner,
            fmt::format("gIB is left out as a whole: {} lacks {}; half of it makes NCCL fail", g.dir,
                        join(g.missing, ", ")),
            fmt::format("gIB 全部不设：{} 缺少 {}；只设一半会使 NCCL 失败", g.dir, join(g.missing, "、")));
  else if (gke && w.request.gib == "auto")
    w.leave("NCCL_TUNER_CONFIG_PATH", "/host/home/kubernetes/bin/gib/configs/...",
            "this pod sees no gIB folder: mount the node's root at /host (read-only) where the node has "
            "/home/kubernetes/bin/gib, then compute again",
            "此 Pod 看不到 gIB 目录：若节点有 /home/kubernetes/bin/gib，请把节点根目录（只读）挂载到 /host "
            "后重新计算");
}

// A prefix that was not named is the one whose stamped parts are here, when there is one.
void env_python(EnvWork& w) {
  std::string prefix = w.request.prefix;
  if (prefix.empty())
    for (const auto& p : w.facts.parts)
      if (p.stamped && p.root.rfind('/') != 0) prefix = p.root.substr(0, p.root.rfind('/'));
  if (prefix.empty()) return;
  const std::string venv = prefix + "/venv";
  const bool there =
      w.request.venv_follows || std::any_of(w.facts.python.begin(), w.facts.python.end(),
                                            [&](const PythonEnvironment& e) { return e.root == venv; });
  if (!there) {
    if (w.request.lane != "local")
      w.leave("VIRTUAL_ENV", venv, "there is no Python environment in this prefix yet",
              "此目录下还没有 Python 环境");
    return;
  }
  const std::string
      en = "DeepEP, and the start-up hook that gives every GPU its NIC, live in this Python alone",
      zh = "DeepEP 以及为每块 GPU 指定网卡的启动钩子只在该 Python 中";
  w.set("VIRTUAL_ENV", venv, en, zh);
  w.prepend("PATH", venv + "/bin", en + ": python3 is this one", zh + "：python3 即此环境");
}

}  // namespace ep
