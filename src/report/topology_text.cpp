// See topology_text.h.
#include "report/topology_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace ep {
namespace {

std::string verdict_line(const Look& look, const Topology& t) {
  std::string mark = verdict_mark(look, t.verdict);
  Text say =
      t.verdict == Verdict::pass
          ? Text{"fit for multi-node EP as far as this shows", "就此处所见，可用于多机 EP"}
      : t.verdict == Verdict::warn
          ? Text{"works with care, or a claim is limited; see the warnings", "可用但有限制，见下方警告"}
      : t.verdict == Verdict::fail
          ? Text{"multi-node EP cannot work as it is; see the errors", "按现状多机 EP 无法工作，见下方错误"}
      : topology_verdict(t.findings) == Verdict::warn
          ? Text{"whether multi-node EP works cannot be said from this; see the warnings, and what is not shown:",
                 "仅凭此内容无法判断多机 EP 是否可用；见警告，以及未显示的内容："}
          : Text{"whether multi-node EP works cannot be said from this: nothing shown speaks against it, not "
                 "shown are:",
                 "仅凭此内容无法判断多机 EP 是否可用：所示内容没有反证，未显示的有："};
  std::string out = fmt::format("{} {}\n", mark, wrap(std::string(look.tr(say)), look.width - 8, 8));
  if (t.verdict == Verdict::unknown)
    for (const auto& m : t.missing) out += fmt::format("        {}: {}\n", m.what.in(look.lang), m.command);
  return out;
}

std::string role_word(const Look& look, const std::string& role) {
  static const std::map<std::string, const char*> kZh = {{"compute", "计算网"},
                                                         {"management", "管理"},
                                                         {"storage", "存储/前端"},
                                                         {"down", "未连接"},
                                                         {"bond", "绑定"},
                                                         {"vf", "虚拟功能"},
                                                         {"hidden", "容器内不可见"},
                                                         {"other-gpu", "属于不可见的 GPU"},
                                                         {"nvswitch-bridge", "NVSwitch 管理"},
                                                         {"efa", "EFA"},
                                                         {"wrong-vendor", "厂商不支持"},
                                                         {"no-gid", "无可用 GID"},
                                                         {"not-rdma", "非 RDMA"},
                                                         {"unknown", "未知"},
                                                         {"uncertain", "不确定"}};
  if (look.lang == Lang::zh)
    if (auto it = kZh.find(role); it != kZh.end()) return it->second;
  return role;
}

std::string confidence_word(const Look& look, Confidence c) {
  if (look.lang != Lang::zh) return std::string(to_string(c));
  return c == Confidence::derived ? "推导" : c == Confidence::convention ? "惯例" : "无";
}

std::string gpu_table(const Topology& t, const Look& look) {
  std::string out = look.paint(Style::bold, look.tr({"GPU  NIC                class  GID  model\n",
                                                     "GPU  网卡               距离   GID  型号\n"}));
  for (const auto& g : t.gpus) {
    auto it = t.mapping.pairs.find(g.index);
    std::string nic = it == t.mapping.pairs.end() ? "-" : it->second;
    auto rel = t.mapping.relation.find(g.index);
    std::string cls = rel == t.mapping.relation.end() ? "-" : std::string(to_string(rel->second));
    auto gid = t.gid.per_device.find(nic);
    std::string index = gid == t.gid.per_device.end() ? "-" : std::to_string(gid->second);
    std::string why;
    for (const auto& [i, reason] : t.mapping.unmapped)
      if (i == g.index) why = reason.in(look.lang);
    std::string model = g.name.empty() ? (g.sm ? fmt::format("sm_{}", g.sm) : "") : g.name;
    out += fmt::format("{} {} {} {} {}\n", pad(fmt::format("{:>3}", g.index), 4), pad(nic, 18), pad(cls, 6),
                       pad(index, 4), why.empty() ? model : why);
  }
  return out;
}

std::string nic_table(const Topology& t, const Look& look) {
  std::string out = look.paint(Style::bold, look.tr({"NIC                use              why\n",
                                                     "网卡               用途             原因\n"}));
  for (const auto& n : t.nics) {
    std::string facts;
    if (!n.link_layer.empty()) facts += n.link_layer == "InfiniBand" ? " IB" : " Eth";
    if (n.rate_gbps > 0) facts += fmt::format(" {:g}G", n.rate_gbps);
    if (!n.state.empty()) facts += " " + n.state;
    if (!n.netdev.empty()) facts += " " + n.netdev;
    if (auto gid = t.gid.not_for_ep.find(n.name); gid != t.gid.not_for_ep.end())
      facts += fmt::format(" GID {}", gid->second);
    std::string line = fmt::format("{} {} {}{}", pad(n.name, 18), pad(role_word(look, n.role), 16),
                                   n.reason.in(look.lang), facts.empty() ? "" : " [" + facts.substr(1) + "]");
    out += look.paint(n.usable ? Style::plain : Style::dim, line) + "\n";
  }
  return out;
}

std::string strings_text(const Topology& t, const Look& look) {
  std::string out;
  auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) out += fmt::format("{}={}\n", name, value);
  };
  line("DEEP_EP_DEVICE_TO_HCA_MAPPING", t.strings.deep_ep);
  line("NCCL_IB_HCA", t.strings.nccl_ib_hca);
  line("EP_NIC_NAME", t.strings.ep_nic_name);
  // Of no use to DeepEP V1, whose processes each are PE 0 of their own world: all would take the first entry.
  if (!t.strings.hca_list.empty() || !t.strings.hca_pe_mapping.empty()) {
    out += std::string(look.tr(
        {"# for programs whose ranks share one NVSHMEM world; DeepEP V1 would put every GPU on the first "
         "NIC\n",
         "# 适用于各 rank 共享一个 NVSHMEM world 的程序；对 DeepEP V1 会使所有 GPU 都用第一张网卡\n"}));
    line("#   NVSHMEM_HCA_LIST", t.strings.hca_list);
    line("#   NVSHMEM_HCA_PE_MAPPING", t.strings.hca_pe_mapping);
  }
  if (!out.empty()) return out;
  if (t.mapping.confidence == Confidence::convention)
    return std::string(
        look.tr({"the pairs above are the usual order, not derived; no variables are printed for a guess\n",
                 "以上对应只是惯例而非推导，不为猜测输出变量\n"}));
  return out;
}

}  // namespace

std::string topology_text(const Topology& t, const Look& look, const TopologyTextOptions& options) {
  std::string out =
      fmt::format("{} {}\n", look.paint(Style::bold, look.tr({"Topology of", "拓扑："})), t.host_name);
  if (!t.pieces.empty()) {
    std::vector<std::string> kinds;
    for (const auto& p : t.pieces)
      if (std::string k = fmt::format("{} ({})", p.kind, p.source);
          std::find(kinds.begin(), kinds.end(), k) == kinds.end())
        kinds.push_back(k);
    out += wrap(fmt::format("{}: {}; {}: {}", look.tr({"recognised", "已识别"}), join(kinds, ", "),
                            look.tr({"lines that no reader knows", "未识别的行"}), t.unread_lines),
                look.width, 2) +
           "\n";
  }
  out += "\n";
  if (!t.gpus.empty()) {
    out += gpu_table(t, look);
    out +=
        fmt::format("{}: {}{}\n\n", look.tr({"mapping", "对应"}), confidence_word(look, t.mapping.confidence),
                    t.mapping.reason.empty() ? "" : " (" + t.mapping.reason.in(look.lang) + ")");
  }
  if (!t.nics.empty()) out += nic_table(t, look) + "\n";
  if (t.gid.needed.value_or(false))
    out += wrap(fmt::format("GID: {}", t.gid.reason.in(look.lang)), look.width, 2) + "\n\n";
  if (auto s = strings_text(t, look); !s.empty()) out += s + "\n";
  if (auto f = findings_text(t.findings, look, options.verbose); !f.empty()) out += f + "\n";
  return out + verdict_line(look, t);
}

std::string topology_hosts_text(const std::vector<Topology>& hosts, const std::vector<Finding>& shared,
                                const Look& look, const TopologyTextOptions& options) {
  std::string out = fmt::format("{} {}\n", hosts.size(), look.tr({"hosts", "台主机"}));
  for (const auto& t : hosts) {
    std::map<Severity, int> n;
    for (const auto& f : t.findings) ++n[f.severity];
    out += fmt::format("{} {} {} GPU, {} NIC, {} {}, {} {}\n", verdict_mark(look, t.verdict),
                       pad(t.host_name, 24), t.gpus.size(), t.usable().size(), n[Severity::fail],
                       look.tr({"errors", "错误"}), n[Severity::warn], look.tr({"warnings", "警告"}));
  }
  out += "\n";
  const bool whole =
      std::all_of(hosts.begin(), hosts.end(), [](const Topology& t) { return t.missing.empty(); });
  const Text same =
      whole ? Text{"no difference between the hosts\n", "各主机之间没有差异\n"}
            : Text{"no difference in what is shown of the hosts\n", "就所显示的内容，各主机没有差异\n"};
  out += shared.empty() ? std::string(look.tr(same)) : findings_text(shared, look, options.verbose);
  for (const auto& t : hosts) {
    if (t.verdict != Verdict::unknown) continue;
    out += fmt::format("\n{}: {}\n", t.host_name, look.tr({"not shown", "未显示"}));
    for (const auto& m : t.missing) out += fmt::format("  {}: {}\n", m.what.in(look.lang), m.command);
  }
  for (const auto& t : hosts) {
    std::string bad;
    for (const auto& f : t.findings)
      if (f.severity == Severity::fail) bad += fmt::format("  {}: {}\n", f.code, title_of(f, look.lang));
    if (!bad.empty()) out += fmt::format("{}\n{}", t.host_name, bad);
  }
  return out;
}

}  // namespace ep
