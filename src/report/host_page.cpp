#include "report/host_page.h"

#include <fmt/core.h>

#include <map>

#include "base/words.h"

namespace ep {
namespace {

template <class T>
std::string show(const Fact<T>& f, const Words& w) {
  if (f.ok()) {
    if constexpr (std::is_same_v<T, std::string>)
      return f.value;
    else if constexpr (std::is_same_v<T, bool>)
      return f.value ? w("yes", "是") : w("no", "否");
    else
      return fmt::format("{}", f.value);
  }
  if (f.known == Known::absent) return w("not there", "没有");
  return w("not known: {}", "未知：{}", f.why);
}

class Page {
 public:
  explicit Page(const HostPageInput& in) : in_(in), w_{in.lang} {}

  HtmlPage make() {
    HtmlPage page;
    page.lang = in_.lang;
    page.title = w_("EP readiness of {}", "{} 的 EP 就绪情况", in_.facts ? in_.facts->host_name : "host");
    page.subtitle = fmt::format("epready {} · {}", in_.version, in_.when);
    if (in_.verified) page.overall = in_.verified->overall;
    if (in_.facts) page.sections.push_back(host());
    if (!in_.topology_svg.empty())
      page.sections.push_back(
          {"topology", w_("GPUs and NICs", "GPU 与网卡"), {HtmlPicture{in_.topology_svg, ""}}});
    if (!in_.lanes.empty()) page.sections.push_back(lanes());
    if (in_.verified && in_.verified->bench) page.sections.push_back(bandwidth(*in_.verified->bench));
    if (in_.verified) page.sections.push_back(verdicts());
    if (!in_.findings.empty()) page.sections.push_back(findings());
    if (in_.plan) page.sections.push_back(steps());
    page.json = in_.json;
    page.footer = w_(
        "GB/s = 1e9 bytes a second. Ceilings were measured in the same run. Unknown is never shown as pass.",
        "GB/s 指每秒 1e9 字节。上限在同一次运行中测得。未知绝不显示为通过。");
    return page;
  }

 private:
  HtmlSection host() {
    HtmlTable t;
    for (auto& [name, value] : host_lines(*in_.facts, in_.lang))
      t.rows.push_back({{name, "dim", false}, {value, "", false}});
    return {"host", w_("Host", "主机"), {std::move(t)}};
  }

  HtmlSection lanes() {
    HtmlTable t;
    t.head = {w_("Lane", "通道"), w_("Possible here", "本机可行"), w_("Installed", "已安装"),
              w_("Proven", "已验证"), w_("What it lacks", "缺少什么")};
    for (const auto& l : in_.lanes) {
      auto cell = [](const Outcome& o) {
        return HtmlCell{std::string(to_string(o.verdict)), tone_of(o.verdict), false};
      };
      std::string lacks = l.possible.verdict == Verdict::pass ? "" : l.possible.reason;
      for (const auto& change : l.changes) lacks += (lacks.empty() ? "" : "; ") + change;
      if (!l.missing.empty())
        lacks += (lacks.empty() ? "" : "; ") + w_("steps: {}", "步骤：{}", join(l.missing, ", "));
      if (!l.nearest.empty())
        lacks +=
            (lacks.empty() ? "" : " - ") + w_("nearest that works: {}", "最接近的可行通道：{}", l.nearest);
      t.rows.push_back(
          {{l.lane, "", false}, cell(l.possible), cell(l.installed), cell(l.proven), {lacks, "", false}});
    }
    return {"lanes", w_("Lanes", "通道"), {std::move(t)}};
  }

  HtmlSection bandwidth(const BenchResult& r) {
    HtmlSection s{"bandwidth", w_("Bandwidth", "带宽"), {}};
    s.blocks.push_back(
        HtmlParagraph{fmt::format("{}; {} ranks, {} tokens x {}, {} experts, top-{}, {}", r.device, r.ranks,
                                  r.num_tokens, r.hidden, r.num_experts, r.num_topk, r.dtype),
                      false});
    if (!r.scaled_down_why.empty())
      s.blocks.push_back(HtmlParagraph{w_("Scaled down: {}", "已缩小规模：{}", r.scaled_down_why), false});
    HtmlBars bars;
    bars.unit = "GB/s";
    for (const auto& p : r.phases) {
      bool slow = p.ceiling_time && p.min_share > 0 && p.ceiling_share < p.min_share;
      bars.bars.push_back({p.name,
                           p.ceiling_time
                               ? fmt::format("{:.2f} GB/s ({:.0f} %)", p.gbps, p.ceiling_share * 100)
                               : fmt::format("{:.2f} GB/s", p.gbps),
                           p.gbps, p.ceiling_time ? p.ceiling_gbps : 0,
                           w_("ceiling {:.2f}", "上限 {:.2f}", p.ceiling_gbps), 0, "", slow ? "warn" : ""});
    }
    s.blocks.push_back(std::move(bars));
    s.blocks.push_back(HtmlFold{w_("The engine's record", "引擎的原始记录"), r.raw_json});
    return s;
  }

  HtmlSection verdicts() {
    HtmlTable t;
    t.head = {w_("Verdict", "结论"), w_("What", "项目"), w_("Seen", "所见"), w_("Read from", "来源"),
              w_("Next", "下一步")};
    for (const auto& i : in_.verified->items)
      t.rows.push_back({{std::string(to_string(i.outcome.verdict)), tone_of(i.outcome.verdict), false},
                        {i.title, "", false},
                        {i.outcome.reason, "", false},
                        {i.evidence.source, "dim", false},
                        {i.next, "", true}});
    HtmlSection s{"verdicts", w_("Verdicts", "验证结论"), {std::move(t)}};
    if (!in_.verified->overall.reason.empty())
      s.blocks.insert(s.blocks.begin(), HtmlParagraph{in_.verified->overall.reason, false});
    return s;
  }

  HtmlSection findings() {
    HtmlTable t;
    t.head = {w_("Severity", "级别"), w_("Finding", "发现"), w_("Cause", "原因"), w_("What to do", "处理")};
    for (const auto& f : in_.findings)
      t.rows.push_back({{std::string(to_string(f.severity)), std::string(to_string(f.severity)), false},
                        {f.title.empty() ? f.code : title_of(f, w_.lang), "", false},
                        {cause_of(f, w_.lang), "", false},
                        {join(f.fix, "; "), "", false}});
    return {"findings", w_("Findings", "发现"), {std::move(t)}};
  }

  HtmlSection steps() {
    HtmlSection s{"plan", w_("Plan", "计划"), {}};
    std::map<std::string, const StepResult*> done;
    if (in_.applied)
      for (const auto& r : in_.applied->steps) done[r.id] = &r;
    if (in_.plan->empty())
      s.blocks.push_back(HtmlParagraph{
          w_("Nothing to do: the host is as the plan wants it.", "无需改动：主机已符合计划。"), false});
    HtmlTable t;
    t.head = {w_("Step", "步骤"), w_("Why", "原因"), w_("State", "状态")};
    for (const auto& step : in_.plan->steps) {
      auto it = done.find(step.id);
      std::string state =
          it == done.end() ? w_("not done", "未执行") : std::string(to_string(it->second->state));
      t.rows.push_back(
          {{step.title, "", false},
           {step.why, "", false},
           {state, it != done.end() && it->second->state == StepState::failed ? "fail" : "", false}});
    }
    if (!t.rows.empty()) s.blocks.push_back(std::move(t));
    HtmlTable skipped;
    skipped.head = {w_("Not needed", "不需要"), w_("Because", "原因")};
    for (const auto& x : in_.plan->skipped)
      skipped.rows.push_back({{x.title, "dim", false}, {x.reason, "dim", false}});
    if (!skipped.rows.empty()) s.blocks.push_back(std::move(skipped));
    return s;
  }

  const HostPageInput& in_;
  Words w_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> host_lines(const Facts& f, Lang lang) {
  Words w{lang};
  std::vector<std::pair<std::string, std::string>> rows;
  rows.emplace_back(w("system", "系统"),
                    show(f.os.pretty_name, w) + w(", kernel ", "，内核 ") + show(f.os.kernel_release, w));
  rows.emplace_back(
      w("processor", "处理器"),
      fmt::format(
          "{}, {} {}, {}", show(f.cpu.model, w), show(f.cpu.num_allowed, w), w("CPUs", "核"),
          f.cpu.memory_bytes.ok() ? human_bytes(double(*f.cpu.memory_bytes)) : show(f.cpu.memory_bytes, w)));
  std::map<std::string, int> models;
  for (const auto& g : f.gpus) ++models[g.name.value_or("GPU")];
  std::string gpus;
  for (const auto& [name, n] : models) gpus += fmt::format("{}{} x {}", gpus.empty() ? "" : ", ", n, name);
  if (!f.gpus.empty()) gpus += w(", driver ", "，驱动 ") + show(f.driver.version, w);
  rows.emplace_back("GPU", gpus.empty() ? w("none", "无") : gpus);
  std::string nics;
  for (const auto& d : f.rdma) nics += (nics.empty() ? "" : ", ") + d.name;
  rows.emplace_back("RDMA", nics.empty() ? w("none", "无") : nics);
  rows.emplace_back(w("platform", "平台"), show(f.platform.cloud, w) + w(", container: ", "，容器：") +
                                               show(f.container.runtime, w));
  return rows;
}

std::string host_text(const Facts& facts, const Look& look) {
  std::string out;
  for (const auto& [name, value] : host_lines(facts, look.lang))
    out += "  " + look.paint(Style::dim, pad(name, 12)) + value + "\n";
  return out;
}

HtmlPage host_page(const HostPageInput& input) {
  return Page(input).make();
}

}  // namespace ep
