#include "report/bench_report.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

namespace ep {
namespace {

using Json = nlohmann::ordered_json;

Json outcome_json(const Outcome& o) {
  return {{"verdict", to_string(o.verdict)}, {"reason", o.reason}};
}

std::string dump(const Json& j) {
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json engine_json(const BenchResult& r) {
  auto j = Json::parse(r.raw_json, nullptr, false);
  return j.is_discarded() ? Json() : j;
}

}  // namespace

std::string bench_text(const BenchResult& r, const Look& look) {
  Words w{look.lang};
  std::string out = fmt::format(
      "# lane {}  engine {}  ranks {}  tokens {}  hidden {}  topk {}  experts {}  {}  {}\n# {}\n", r.lane,
      r.engine, r.ranks, r.num_tokens, r.hidden, r.num_topk, r.num_experts, r.dtype, r.pattern, r.device);
  if (!r.scaled_down_why.empty())
    out += "# " +
           w("scaled down: {} tokens a rank instead of {}: {}", "已缩小：每个 rank {} 个 token，要求 {}：{}",
             r.num_tokens, r.requested_tokens, r.scaled_down_why) +
           "\n";
  out += "#\n" + fmt::format("#{:>11} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>6}  {:<20}\n", "op", "mode",
                             "time", "p95", "log.bw", "wire.bw", "ceiling", "share",
                             w("of the ceiling", "占上限"));
  out += fmt::format("#{:>11} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>6}\n", "", "", "(us)", "(us)",
                     "(GB/s)", "(GB/s)", "(GB/s)", "");
  for (const auto& p : r.phases) {
    bool slow = p.ceiling_time && p.min_share > 0 && p.ceiling_share < p.min_share;
    std::string line = fmt::format(" {:>11} {:>10} {:>10.1f} {:>10.1f} {:>9.2f} {:>9.2f} ", p.name, p.mode,
                                   p.time.median_us, p.time.p95_us, p.gbps, p.wire_gbps);
    line += p.ceiling_time
                ? fmt::format("{:>9.2f} {:>5.0f}%  ", p.ceiling_gbps, p.ceiling_share * 100) +
                      look.paint(slow ? Style::yellow : Style::green, bar(look, p.ceiling_share, 20))
                : fmt::format("{:>9} {:>6}", "-", "-");
    out += line + "\n";
  }
  if (r.lane != "local")
    return out + "#\n# " +
           w("as the library's own test counts: logical bandwidth, own rows included; time of the slowest "
             "rank that printed it",
             "按该库自带测试的口径：逻辑带宽，含本 rank 的行；时间取打印者中最慢的 rank") +
           fmt::format("\n{} {}\n", verdict_mark(look, r.outcome.verdict), r.outcome.reason);
  out += "#\n# " +
         w("time: slowest rank of an iteration, median of {}; log.bw counts a rank's own rows, wire.bw does "
           "not; GB = 1e9 bytes",
           "时间：每次迭代最慢的 rank，{} 次的中位数；log.bw 含本 rank 的行，wire.bw 不含；GB = 1e9 字节",
           r.iters) +
         "\n";
  std::string last;
  for (const auto& p : r.phases)
    if (!p.ceiling_what.empty() && p.ceiling_what != last)
      out += "# " + w("ceiling of {}: {}", "{} 的上限：{}", p.name, last = p.ceiling_what) + "\n";
  for (const auto& p : r.peers)
    out += p.status == "ok"
               ? fmt::format("# {}\n", w("peer {} ({}): {:.1f} us, {:.2f} times ours",
                                         "对照 {}（{}）：{:.1f} us，为我们的 {:.2f} 倍", p.name, p.phase,
                                         p.time.median_us, p.ratio))
               : fmt::format("# {}\n", w("peer {}: not run, {}", "对照 {}：未运行，{}", p.name, p.status));
  out += "# " +
         w("{} rows checked, {} wrong; memory {} (worst-case buffers {})",
           "检查 {} 行，错误 {} 行；内存 {}（最坏缓冲 {}）", r.rows_checked, r.mismatches,
           human_bytes(double(r.memory_bytes)), human_bytes(double(r.worst_case_bytes))) +
         "\n";
  return out + fmt::format("{} {}\n", verdict_mark(look, r.outcome.verdict), r.outcome.reason);
}

std::string bench_json(const BenchResult& r) {
  return dump(Json{{"schema", "epready-bench-1"},
                   {"tool", "epready"},
                   {"lane", r.lane},
                   {"outcome", outcome_json(r.outcome)},
                   {"result", engine_json(r)}});
}

std::string verify_item_text(const VerifyItem& i, const Look& look) {
  std::string out =
      fmt::format("  {} {} {}", verdict_mark(look, i.outcome.verdict), pad(i.title, 34), i.outcome.reason);
  if (i.outcome.verdict != Verdict::pass && i.outcome.verdict != Verdict::skip) {
    if (!i.evidence.source.empty()) out += look.paint(Style::dim, fmt::format("  [{}]", i.evidence.source));
    if (!i.next.empty())
      out += "\n" + std::string(10, ' ') + fmt::format("{}: {}", look.tr({"next", "下一步"}), i.next);
  }
  return out + "\n";
}

std::string verify_summary_text(const VerifyReport& r, const Look& look) {
  std::map<Verdict, int> count;
  for (const auto& i : r.items) ++count[i.outcome.verdict];
  Words w{look.lang};
  std::string out = "\n" + w("level {}, lane {}: ", "第 {} 级，通道 {}：", r.level, r.lane);
  bool first = true;
  for (Verdict v :
       {Verdict::pass, Verdict::warn, Verdict::fail, Verdict::unknown, Verdict::not_run, Verdict::skip})
    if (count[v]) out += fmt::format("{}{} {}", first ? "" : ", ", count[v], to_string(v)), first = false;
  return out + fmt::format("\n{} {}\n", verdict_mark(look, r.overall.verdict), r.overall.reason);
}

std::string verify_json(const VerifyReport& r) {
  Json items = Json::array();
  for (const auto& i : r.items)
    items.push_back(
        {{"id", i.id},
         {"title", i.title},
         {"group", i.group},
         {"verdict", to_string(i.outcome.verdict)},
         {"reason", i.outcome.reason},
         {"evidence", {{"source", i.evidence.source}, {"line", i.evidence.line}, {"text", i.evidence.text}}},
         {"next", i.next}});
  Json j = {{"schema", "epready-verify-1"},       {"tool", "epready"}, {"level", r.level}, {"lane", r.lane},
            {"outcome", outcome_json(r.overall)}, {"items", items}};
  j["bench"] = r.bench ? engine_json(*r.bench) : Json();
  return dump(j);
}

}  // namespace ep
