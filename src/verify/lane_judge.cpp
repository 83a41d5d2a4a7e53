#include "verify/lane_judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/words.h"

namespace ep {
namespace {

/// Published figures are references, not thresholds: near one is good, less than half of one on the same kind
/// of machine is slow, and what lies between is shown and not judged.
constexpr double kNearShare = 0.8, kSlowShare = 0.5;
/// Below this share of the line rate something is wrong with the path (the runbook's 6.5 of 50 GB/s is 0.13);
/// good machines reach 0.7 and more of it net.
constexpr double kPoorLineShare = 0.5;

class Judge {
 public:
  Judge(const LaneTestRun& run, const LaneContext& context, Lang lang)
      : run_(run), c_(context), w_{lang}, between_(context.level > 2) {}

  std::vector<VerifyItem> all() {
    correctness();
    if (between_) path();
    if (out_.front().outcome.verdict == Verdict::pass)
      for (const auto& f : run_.output.figures) speed(f);
    return std::move(out_);
  }

 private:
  void add(std::string id, std::string title, std::string group, Outcome outcome, std::string source,
           std::string text, std::string next) {
    out_.push_back({std::move(id),
                    std::move(title),
                    std::move(group),
                    std::move(outcome),
                    {std::move(source), 0, std::move(text)},
                    std::move(next)});
  }

  void correctness() {
    const LaneOutput& o = run_.output;
    Outcome seen;
    if (!run_.ok || !o.error.empty()) {
      seen = {Verdict::fail, o.error.empty() ? run_.how : o.error};
      if (!o.unfinished.empty()) seen.reason += "; " + w_("last: {}", "最后一步：{}", o.unfinished);
    } else if (o.figures.empty() && o.num_passed == 0) {
      seen = {Verdict::unknown,
              w_("it ended well but printed nothing that is known", "正常结束，但输出无法识别")};
    } else {
      seen = {Verdict::pass, o.num_passed > 0 ? w_("{} of the test's own checks passed",
                                                   "测试自带的 {} 项检查通过", o.num_passed)
                                              : w_("the test ended without an error", "测试无错误结束")};
    }
    add("lane." + c_.lane + ".right", w_("the lane's own test passes", "该通道自己的测试通过"), "correctness",
        seen, run_.script, o.config,
        seen.verdict == Verdict::pass ? "" : "epready doctor " + shell_quote(run_.log));
  }

  void path() {
    const std::string title = w_("every mapped NIC carried traffic", "每块映射的网卡都有流量");
    if (c_.traffic.empty()) {
      add("lane.nics", title, "path",
          {Verdict::unknown, w_("NIC counters could not be read", "无法读取网卡计数器")},
          "/sys/class/infiniband", "", "epready topology --watch");
      return;
    }
    std::vector<std::string> expected;
    if (c_.topology)
      for (const auto& [gpu, nic] : c_.topology->mapping.pairs)
        if (std::find(expected.begin(), expected.end(), nic) == expected.end()) expected.push_back(nic);
    const Evenness e = judge_evenness(c_.traffic, expected);
    std::string seen;
    for (const auto& t : c_.traffic)
      if (t.known())
        seen += fmt::format("{}{} {:.2f} GB", seen.empty() ? "" : ", ", t.name, double(t.tx_bytes) * 1e-9);
    add("lane.nics", title, "path", {e.verdict, e.reason.in(w_.lang)}, "port counters", seen,
        e.verdict == Verdict::pass ? "" : "epready topology --watch");
  }

  void speed(const LaneFigure& f) {
    const std::string name =
        f.op + (f.mode.empty() ? "" : " " + f.mode) + (f.dtype.empty() ? "" : " " + f.dtype);
    std::string id = "speed." + f.op + "." + f.mode + (f.dtype.empty() ? "" : "." + f.dtype);
    const bool out = between_ && f.scale_out_gbps > 0;
    const double gbps = out ? f.scale_out_gbps : f.scale_up_gbps;
    std::string seen = fmt::format("{:.1f} GB/s {}", gbps, out ? "RDMA" : "NVLink");
    if (f.time_us > 0) seen += fmt::format(", {:.1f} us", f.time_us);
    if (f.epilogue_us > 0)
      seen += f.op == "combine"
                  ? w_(" and {:.1f} us for the reduction behind it", "，其后归约 {:.1f} us", f.epilogue_us)
                  : w_(" and {:.1f} us for the copy behind it", "，其后复制 {:.1f} us", f.epilogue_us);
    seen += w_(" (logical, own rows included)", "（逻辑带宽，含本 rank 的行）");
    Outcome judged{
        Verdict::skip,
        seen + "; " + w_("no published figure for this kind of machine", "没有同类机器的公开数据")};
    std::string source = run_.log, next;
    if (c_.gpus_shared) {
      judged.reason = seen + "; " + w_("ranks share a GPU: not judged", "多个 rank 共用 GPU：不作判断");
      return add(id, w_("{} is fast", "{} 的速度", name), "speed", judged, source, "", next);
    }
    // Logical bandwidth counts tokens to the own node too, which never reach the NIC.
    const double rate = out && c_.topology ? line_rate_per_gpu(*c_.topology) : 0;
    const double net = gbps * (c_.nodes - 1) / std::max(1, c_.nodes);
    if (rate > 0) {
      const double share = net / rate;
      seen += w_("; {:.1f} GB/s net, {:.0f} % of the NIC's {:.1f} GB/s",
                 "；净 {:.1f} GB/s，为网卡 {2:.1f} GB/s 的 {1:.0f} %", net, share * 100, rate);
      judged = {share < kPoorLineShare ? Verdict::warn : Verdict::pass, seen};
    }
    if (const Baseline* b = baseline_for(c_, f, out)) {
      const double share = gbps / b->gbps;
      seen += w_("; {:.0f} % of the published {:.0f} GB/s ({}, {} tokens)",
                 "；为公开值 {1:.0f} GB/s（{2}，{3} token）的 {0:.0f} %", share * 100, b->gbps, b->gpu,
                 b->tokens);
      judged.reason = seen;
      if (share < kSlowShare)
        judged.verdict = Verdict::warn;
      else if (judged.verdict == Verdict::skip && share >= kNearShare)
        judged.verdict = Verdict::pass;
      source = b->source.url;
    }
    if (judged.verdict == Verdict::warn) next = "epready doctor " + shell_quote(run_.log);
    add(id, w_("{} is fast", "{} 的速度", name), "speed", judged, source, "", next);
  }

  const LaneTestRun& run_;
  const LaneContext& c_;
  Words w_;
  bool between_;
  std::vector<VerifyItem> out_;
};

}  // namespace

double line_rate_per_gpu(const Topology& t) {
  std::map<std::string, int> shared;
  for (const auto& [gpu, nic] : t.mapping.pairs) ++shared[nic];
  double rate = 0;
  for (const auto& [name, gpus] : shared) {
    const TopologyNic* nic = t.nic(name);
    if (!nic || nic->rate_gbps <= 0) return 0;
    const double each = nic->rate_gbps / 8 / gpus;
    rate = rate > 0 ? std::min(rate, each) : each;
  }
  return rate;
}

const Baseline* baseline_for(const LaneContext& c, const LaneFigure& f, bool between_nodes) {
  const Baseline* best = nullptr;
  for (const auto& b : c.baselines) {
    if (b.lane != c.lane || b.op != f.op || b.gbps <= 0 || b.bandwidth != "logical") continue;
    if (b.scope != (between_nodes ? "rdma" : "nvlink") || b.nodes != c.nodes || b.ranks != c.ranks) continue;
    // "H100" in "NVIDIA H100 80GB HBM3"; "SM90" is what a table says that does not name its machine.
    const bool named = !c.gpu.empty() && !b.gpu.empty() && c.gpu.find(b.gpu) != std::string::npos;
    if (!named && (c.sm == 0 || b.gpu != fmt::format("SM{}", c.sm))) continue;
    if (!f.dtype.empty() && !b.dtype.empty() && b.dtype != f.dtype) continue;
    if ((f.mode == "low-latency") != (b.tokens > 0 && b.tokens <= 256)) continue;
    // The nearest number of tokens: bandwidth grows with it.
    const auto far = [&](const Baseline& x) {
      return std::pair(starts_with(x.gpu, "SM"), std::abs(x.tokens - c.shape.num_tokens));
    };
    if (!best || far(b) < far(*best)) best = &b;
  }
  return best;
}

BenchResult lane_result(const LaneTestRun& run, const LaneContext& c) {
  using Json = nlohmann::ordered_json;
  const bool right = run.ok && run.output.error.empty();
  const bool known = run.output.num_passed > 0 || !run.output.figures.empty();
  Json j = {{"schema", "epready.engine.bench/1"},
            {"lane", c.lane},
            {"case", "own-test"},
            {"engine", "deepep-test"},
            {"device", fmt::format("{} x {}", c.ranks, c.gpu.empty() ? "GPU" : c.gpu)},
            {"dtype", ""},
            {"ranks", c.ranks},
            {"shape",
             {{"num_tokens", c.shape.num_tokens},
              {"hidden", c.shape.hidden},
              {"num_experts", c.shape.num_experts},
              {"num_topk", c.shape.num_topk},
              {"pattern", run.script.substr(run.script.rfind('/') + 1)}}},
            {"checks", {{"test_checks", run.output.num_passed}}},
            {"verdict", right && known ? "PASS"
                        : right        ? "UNKNOWN"
                                       : "FAIL"}};
  if (!right) j["failure"] = {{"text", run.output.error.empty() ? run.how : run.output.error}};
  Json phases = Json::array();
  for (const auto& f : run.output.figures) {
    const bool out = c.level > 2 && f.scale_out_gbps > 0;
    const std::string mode = f.mode + (f.dtype.empty() ? "" : "-" + f.dtype);
    phases.push_back({{"name", f.op},
                      {"mode", mode},
                      {"bytes_logical", f.bytes},
                      {"time_us", {{"median", f.time_us}, {"p95", f.time_us}}},
                      {"gbps", out ? f.scale_out_gbps : f.scale_up_gbps}});
  }
  j["phases"] = phases;
  auto r = parse_bench(j.dump(-1, ' ', false, Json::error_handler_t::replace));
  return r ? *r : BenchResult();
}

std::vector<VerifyItem> judge_lane(const LaneTestRun& run, const LaneContext& context, Lang lang) {
  return Judge(run, context, lang).all();
}

}  // namespace ep
