#include "bench_report.h"

#include <cstdarg>
#include <cstdio>

#include "json.h"

namespace ep::engine {

namespace {

std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

std::string format(const char* pattern, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(buffer, sizeof buffer, pattern, arguments);
  va_end(arguments);
  return buffer;
}

void write_summary(Json& json, const char* key, const Summary& summary) {
  json.begin_object(key)
      .value("median", summary.median)
      .value("p95", summary.p95)
      .value("min", summary.min)
      .value("max", summary.max)
      .end_object();
}

void write_phase(Json& json, const PhaseResult& phase) {
  json.begin_object()
      .value("name", phase.name)
      .value("mode", phase.mode)
      .value("bytes_logical", phase.bytes_logical)
      .value("bytes_wire", phase.bytes_wire);
  write_summary(json, "time_us", phase.time_us);
  json.value("gbps", phase.gbps()).value("wire_gbps", phase.wire_gbps());
  if (phase.has_ceiling) {
    write_summary(json, "ceiling_time_us", phase.ceiling_us);
    json.value("ceiling_gbps", phase.ceiling_gbps())
        .value("ceiling_share", phase.ceiling_share())
        .value("ceiling", phase.ceiling_what);
  } else {
    json.null("ceiling_time_us").null("ceiling_gbps").null("ceiling_share").null("ceiling");
  }
  json.value("min_share", phase.min_share).end_object();
}

void write_peer(Json& json, const PeerResult& peer) {
  json.begin_object().value("name", peer.name).value("phase", peer.phase).value("status", peer.status);
  if (peer.status == "ok") {
    write_summary(json, "time_us", peer.time_us);
    json.value("ratio", peer.ratio);
  } else {
    json.null("time_us").null("ratio");
  }
  json.end_object();
}

void write_shape(Json& json, const BenchReport& report) {
  const Shape& shape = report.shape;
  json.begin_object("shape")
      .value("num_tokens", shape.max_tokens)
      .value("hidden", shape.hidden)
      .value("num_experts", shape.experts)
      .value("num_topk", shape.topk)
      .value("pattern", report.pattern)
      .value("seed", report.seed);
  json.begin_array("tokens_per_rank");
  for (int r = 0; r < shape.ranks; ++r) json.value("", shape.tokens[r]);
  json.end_array().end_object();
}

std::string or_dash(bool known, const char* pattern, double value) {
  return known ? format(pattern, value) : std::string("-");
}

std::string phase_line(const BenchReport& report, const PhaseResult& phase) {
  const Summary& t = phase.time_us;
  const char* verdict = report.mismatches > 0                                          ? "FAIL"
                        : phase.has_ceiling && phase.ceiling_share() < phase.min_share ? "WARN"
                                                                                       : "PASS";
  return format("  %-10s %-10s %8.1f %10.1f %10.1f %10.1f %10.1f %8.2f %8.2f %8s %6s  %s\n",
                phase.name.c_str(), phase.mode.c_str(), phase.bytes_logical * 1e-6, t.median, t.p95, t.min,
                t.max, phase.gbps(), phase.wire_gbps(),
                or_dash(phase.has_ceiling, "%.2f", phase.ceiling_gbps()).c_str(),
                or_dash(phase.has_ceiling, "%.0f%%", phase.ceiling_share() * 100).c_str(), verdict);
}

}  // namespace

std::string BenchReport::verdict() const {
  if (!failure.empty() || mismatches > 0) return "FAIL";
  if (rows_checked == 0 && shape.total_tokens() > 0) return "UNKNOWN";
  for (const auto& phase : phases) {
    if (phase.has_ceiling && phase.ceiling_share() < phase.min_share) return "WARN";
  }
  return "PASS";
}

std::string to_json(const BenchReport& report) {
  Json json;
  json.begin_object()
      .value("schema", "epready.engine.bench/1")
      .value("tool", report.tool)
      .value("case", report.case_name)
      .value("engine", report.engine)
      .value("device", report.device)
      .value("verdict", report.verdict());
  write_shape(json, report);
  json.value("dtype", name_of(report.shape.dtype))
      .value("ranks", report.shape.ranks)
      .value("iters", report.iters)
      .value("warmup", report.warmup);
  json.begin_array("phases");
  for (const auto& phase : report.phases) write_phase(json, phase);
  json.end_array();
  json.begin_object("checks")
      .value("rows_checked", report.rows_checked)
      .value("mismatches", report.mismatches);
  if (report.first_mismatch.empty())
    json.null("first_mismatch");
  else
    json.value("first_mismatch", report.first_mismatch);
  json.end_object();
  if (report.scaled_down_why.empty()) {
    json.null("scaled_down");
  } else {
    json.begin_object("scaled_down")
        .value("requested_tokens", report.requested_tokens)
        .value("tokens", report.shape.max_tokens)
        .value("why", report.scaled_down_why)
        .end_object();
  }
  json.value("memory_bytes", report.memory_bytes).value("worst_case_bytes", report.worst_case_bytes);
  json.begin_array("peers");
  for (const auto& peer : report.peers) write_peer(json, peer);
  json.end_array();
  if (report.failure.empty()) {
    json.null("failure");
  } else {
    json.begin_object("failure").value("text", report.failure);
    if (report.failed_rank >= 0)
      json.value("rank", report.failed_rank).value("phase", report.failed_phase);
    else
      json.null("rank").null("phase");
    json.end_object();
  }
  json.begin_object("settings");
  for (const auto& [name, value] : report.notes) json.value(name, value);
  json.end_object().end_object();
  return json.text() + "\n";
}

std::string to_text(const BenchReport& report) {
  const Shape& shape = report.shape;
  std::string out = format("# %s %s  engine %s  %s\n", report.tool.c_str(), report.case_name.c_str(),
                           report.engine.c_str(), report.device.c_str());
  out += format("# ranks %d  tokens %d  hidden %d  topk %d  experts %d  %s  pattern %s  seed %llu",
                shape.ranks, shape.max_tokens, shape.hidden, shape.topk, shape.experts, name_of(shape.dtype),
                report.pattern.c_str(), static_cast<unsigned long long>(report.seed));
  out += format("  iters %d  warmup %d\n", report.iters, report.warmup);
  if (!report.scaled_down_why.empty()) {
    out += format("# SCALED DOWN: %d tokens a rank were asked for, %d run: %s\n", report.requested_tokens,
                  shape.max_tokens, report.scaled_down_why.c_str());
  }
  if (!report.phases.empty()) {
    out +=
        "# time: slowest rank of each iteration; GB/s (1e9) per rank at the median; ceiling of the same "
        "bytes\n";
    out += format("# %-10s %-10s %8s %10s %10s %10s %10s %8s %8s %8s %6s\n", "op", "mode", "bytes", "time",
                  "p95", "min", "max", "log.bw", "wire.bw", "ceiling", "share");
    out += format("# %-10s %-10s %8s %10s %10s %10s %10s %8s %8s %8s %6s\n", "", "", "(MB)", "(us)", "(us)",
                  "(us)", "(us)", "(GB/s)", "(GB/s)", "(GB/s)", "");
    for (const auto& phase : report.phases) out += phase_line(report, phase);
  }
  for (const auto& phase : report.phases) {
    if (phase.has_ceiling && !phase.ceiling_what.empty()) {
      out += "# ceiling of " + phase.name + ": " + phase.ceiling_what + "\n";
    }
  }
  for (const auto& peer : report.peers) {
    if (peer.status == "ok") {
      out += format("# peer %s, %s: %.1f us (min %.1f, max %.1f), %.2f times our time\n", peer.name.c_str(),
                    peer.phase.c_str(), peer.time_us.median, peer.time_us.min, peer.time_us.max, peer.ratio);
    } else {
      out += "# peer " + peer.name + ": " + peer.status + "\n";
    }
  }
  out += format("# rows checked %llu, wrong %llu; memory %.1f MB, worst-case buffers %.1f MB\n",
                static_cast<unsigned long long>(report.rows_checked),
                static_cast<unsigned long long>(report.mismatches),
                static_cast<double>(report.memory_bytes) * 1e-6,
                static_cast<double>(report.worst_case_bytes) * 1e-6);
  if (!report.first_mismatch.empty()) out += "# first wrong: " + report.first_mismatch + "\n";
  if (!report.failure.empty()) out += "# did not finish: " + report.failure + "\n";
  const std::string verdict = report.verdict();
  const char* next = verdict == "WARN"   ? " ceiling   (what the machine gives when nothing else runs)"
                     : verdict == "PASS" ? " check   (every byte, over many shapes)"
                                         : " check   (which shapes are wrong)";
  return out + "# verdict " + verdict + "\n# next: " + report.tool + next + "\n";
}

}  // namespace ep::engine
