#include "report/lanes_report.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

namespace ep {
namespace {

Text about(const std::string& lane) {
  if (lane == "local")
    return {"epready's own engine, ranks on this machine", "epready 自带引擎，本机内的 rank"};
  if (lane == "v1")
    return {"DeepEP V1 / legacy Buffer on NVSHMEM IBGDA", "DeepEP V1 / 旧版 Buffer，基于 NVSHMEM IBGDA"};
  return {"DeepEP V2 ElasticBuffer on NCCL GIN", "DeepEP V2 ElasticBuffer，基于 NCCL GIN"};
}

}  // namespace

std::string pod_text(const std::vector<PodGap>& gaps, const Look& look) {
  const Words w{look.lang};
  std::string out, last;
  for (const auto& g : gaps) {
    if (g.at != last) out += "    " + look.paint(Style::bold, g.at + ":") + "\n";
    last = g.at;
    for (auto line : lines(g.yaml)) out += fmt::format("      {}\n", line);
    out +=
        "        " +
        look.paint(Style::dim, "# " + wrap((g.truth == Truth::unknown
                                                ? w("cannot tell whether it is there: ", "无法判断是否已有：")
                                                : "") +
                                               g.why,
                                           look.width - 10, 10)) +
        "\n";
  }
  return out;
}

std::string lanes_text(const std::vector<LaneStatus>& lanes, const Look& look) {
  const Words w{look.lang};
  std::string out =
      fmt::format("  {} {} {} {} {}\n", pad(w("lane", "通道"), 6), pad(w("possible", "可用"), 9),
                  pad(w("installed", "已装"), 10), pad(w("proven", "已证"), 8), w("stack", "组合"));
  for (const auto& s : lanes) {
    out += fmt::format("  {} {}   {}    {}  {}\n", look.paint(Style::bold, pad(s.lane, 6)),
                       verdict_mark(look, s.possible.verdict), verdict_mark(look, s.installed.verdict),
                       verdict_mark(look, s.proven.verdict), s.stack.empty() ? "-" : s.stack);
    out += "         " + look.paint(Style::dim, std::string(look.tr(about(s.lane)))) + "\n";
    const auto say = [&](const std::string& text) {
      out += "         " + wrap(text, look.width - 9, 9) + "\n";
    };
    if (!s.possible.reason.empty()) say(s.possible.reason);
    for (const auto& c : s.changes) say(c);
    if (!s.missing.empty()) {
      std::string needs = s.needs_root ? w(", root", "，需 root") : "";
      if (s.needs_reboot) needs += w(", one reboot", "，需重启一次");
      say(w("lacks {} steps{}: {}", "缺少 {} 个步骤{}：{}", s.missing.size(), needs, join(s.missing, ", ")));
    }
    if (!s.nearest.empty()) say(w("nearest lane that works here: {}", "此机可用的最近通道：{}", s.nearest));
  }
  for (const auto& s : lanes)
    if (!s.pod.empty()) {
      out += "\n  " + w("This pod lacks, for lanes v1 and v2:", "对 v1 与 v2 通道，此 Pod 缺少：") + "\n" +
             pod_text(s.pod, look);
      break;
    }
  return out;
}

std::string lanes_json(const std::vector<LaneStatus>& lanes, const std::string& host_name) {
  using Json = nlohmann::ordered_json;
  const auto outcome = [](const Outcome& o) {
    return Json{{"verdict", to_string(o.verdict)}, {"reason", o.reason}};
  };
  Json list = Json::array();
  for (const auto& s : lanes) {
    Json pod = Json::array();
    for (const auto& g : s.pod)
      pod.push_back({{"at", g.at}, {"yaml", g.yaml}, {"why", g.why}, {"known", g.truth != Truth::unknown}});
    list.push_back({{"lane", s.lane},
                    {"possible", outcome(s.possible)},
                    {"installed", outcome(s.installed)},
                    {"proven", outcome(s.proven)},
                    {"stack", s.stack},
                    {"platform", s.platform},
                    {"missing", s.missing},
                    {"changes", s.changes},
                    {"nearest", s.nearest},
                    {"needs_root", s.needs_root},
                    {"needs_reboot", s.needs_reboot},
                    {"estimate_s", s.estimate_s},
                    {"pod", pod}});
  }
  Json out = {{"schema", "epready-lanes-1"}, {"tool", "epready"}, {"host", host_name}, {"lanes", list}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ep
