// The engine's JSON to BenchResult.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "bench/bench.h"

namespace ep {
namespace {

using nlohmann::json;

double number(const json& j, const char* key) {
  auto it = j.find(key);
  return it != j.end() && it->is_number() ? it->get<double>() : 0;
}
std::string text(const json& j, const char* key) {
  auto it = j.find(key);
  return it != j.end() && it->is_string() ? it->get<std::string>() : std::string();
}
Timing timing(const json& j) {
  return {number(j, "median"), number(j, "p95"), number(j, "min"), number(j, "max")};
}

BenchPhase phase(const json& j) {
  BenchPhase p;
  p.name = text(j, "name");
  p.mode = text(j, "mode");
  p.bytes_logical = number(j, "bytes_logical");
  p.bytes_wire = number(j, "bytes_wire");
  if (j.contains("time_us") && j["time_us"].is_object()) p.time = timing(j["time_us"]);
  p.gbps = number(j, "gbps");
  p.wire_gbps = number(j, "wire_gbps");
  if (j.contains("ceiling_time_us") && j["ceiling_time_us"].is_object())
    p.ceiling_time = timing(j["ceiling_time_us"]);
  p.ceiling_gbps = number(j, "ceiling_gbps");
  p.ceiling_share = number(j, "ceiling_share");
  p.min_share = number(j, "min_share");
  p.ceiling_what = text(j, "ceiling");
  return p;
}

BenchPeer peer(const json& j) {
  BenchPeer p;
  p.name = text(j, "name");
  p.phase = text(j, "phase");
  p.status = text(j, "status");
  if (j.contains("time_us") && j["time_us"].is_object()) p.time = timing(j["time_us"]);
  p.ratio = number(j, "ratio");
  return p;
}

/// The engine's word, with a reason of ours for everything but PASS. A word that is not known is UNKNOWN.
Outcome outcome(const std::string& word, const BenchResult& r) {
  if (!r.failure.empty()) return {Verdict::fail, r.failure};
  if (r.mismatches > 0)
    return {Verdict::fail,
            fmt::format("{} of {} rows are wrong: {}", r.mismatches, r.rows_checked, r.first_mismatch)};
  if (word == "PASS" && r.lane != "local")
    return {Verdict::pass, fmt::format("the library's own test passed ({} checks)", r.test_checks)};
  if (word == "PASS" && r.rows_checked > 0)
    return {Verdict::pass, fmt::format("{} rows right, bit for bit", r.rows_checked)};
  if (word == "WARN" && r.rows_checked > 0) {
    for (const auto& p : r.phases)
      if (p.ceiling_time && p.ceiling_share < p.min_share)
        return {Verdict::warn,
                fmt::format("{} reaches {:.0f} % of the ceiling ({:.2f} GB/s) of this run, {:.0f} % expected",
                            p.name, p.ceiling_share * 100, p.ceiling_gbps, p.min_share * 100)};
    return {Verdict::warn, "the engine warned without naming a phase"};
  }
  if (word == "FAIL") return {Verdict::fail, "the engine failed without naming a reason"};
  return {Verdict::unknown,
          r.rows_checked == 0 ? "no row was checked" : "verdict of the engine not understood: " + word};
}

}  // namespace

std::optional<Error> parse_engine_failure(std::string_view source) {
  const json j = json::parse(source, nullptr, false);
  if (!j.is_object() || text(j, "schema") != "epready.engine.failure/1") return {};
  const int code = int(number(j, "exit_code"));
  Error e;
  e.kind = code == 3 ? ErrorKind::unsupported : code == 2 ? ErrorKind::usage : ErrorKind::failed;
  e.what = "the engine did not run";
  e.where = text(j, "tool") + " " + text(j, "case");
  if (const auto f = j.find("failure"); f != j.end() && f->is_object()) {
    e.why = text(*f, "text");
    if (f->contains("rank") && (*f)["rank"].is_number())
      e.why += fmt::format(" (rank {}, phase {})", (*f)["rank"].get<int>(), text(*f, "phase"));
  }
  e.next = "run it by hand to see all of its output: " + e.where;
  return e;
}

Result<BenchResult> parse_bench(std::string_view source) {
  json j = json::parse(source, nullptr, false);
  if (j.is_discarded() || !j.is_object())
    return fail(ErrorKind::malformed, "the engine's answer is not JSON", "epready-engine --json",
                std::string(source.substr(0, 80)));
  std::string schema = text(j, "schema");
  if (schema != "epready.engine.bench/1")
    return fail(ErrorKind::malformed, "the engine speaks another schema", "epready-engine --json",
                "got \"" + schema + "\", expected epready.engine.bench/1",
                "build program and engine from one checkout: ./epready --version");
  BenchResult r;
  r.raw_json = std::string(source);
  r.case_name = text(j, "case");
  r.engine = text(j, "engine");
  if (std::string lane = text(j, "lane"); !lane.empty()) r.lane = lane;
  r.device = text(j, "device");
  r.dtype = text(j, "dtype");
  r.ranks = int(number(j, "ranks"));
  r.iters = int(number(j, "iters"));
  r.warmup = int(number(j, "warmup"));
  if (auto s = j.find("shape"); s != j.end() && s->is_object()) {
    r.num_tokens = int(number(*s, "num_tokens"));
    r.hidden = int(number(*s, "hidden"));
    r.num_experts = int(number(*s, "num_experts"));
    r.num_topk = int(number(*s, "num_topk"));
    r.pattern = text(*s, "pattern");
  }
  if (auto p = j.find("phases"); p != j.end() && p->is_array())
    for (const auto& x : *p) r.phases.push_back(phase(x));
  if (auto p = j.find("peers"); p != j.end() && p->is_array())
    for (const auto& x : *p) r.peers.push_back(peer(x));
  if (auto c = j.find("checks"); c != j.end() && c->is_object()) {
    r.rows_checked = uint64_t(number(*c, "rows_checked"));
    r.mismatches = uint64_t(number(*c, "mismatches"));
    r.first_mismatch = text(*c, "first_mismatch");
    r.test_checks = int(number(*c, "test_checks"));
  }
  if (auto s = j.find("scaled_down"); s != j.end() && s->is_object()) {
    r.requested_tokens = int(number(*s, "requested_tokens"));
    r.scaled_down_why = text(*s, "why");
  }
  r.memory_bytes = uint64_t(number(j, "memory_bytes"));
  r.worst_case_bytes = uint64_t(number(j, "worst_case_bytes"));
  if (auto f = j.find("failure"); f != j.end() && f->is_object()) {
    r.failure = text(*f, "text");
    r.failed_phase = text(*f, "phase");
    if (f->contains("rank") && (*f)["rank"].is_number()) r.failed_rank = (*f)["rank"].get<int>();
  }
  if (auto s = j.find("settings"); s != j.end() && s->is_object())
    for (const auto& [k, v] : s->items())
      r.settings.emplace_back(k, v.is_string() ? v.get<std::string>() : v.dump());
  r.outcome = outcome(text(j, "verdict"), r);
  return r;
}

}  // namespace ep
