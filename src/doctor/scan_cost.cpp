#include "doctor/scan_cost.h"

#include <algorithm>

#include "doctor/bench_logs.h"
#include "doctor/log_scan.h"

namespace ep {

namespace {

/// In small pieces, so that the words are chosen early: what stays dear then stays dear.
ReadBlock in_pieces(std::string_view text) {
  return [text](char* into, size_t most) mutable -> Result<size_t> {
    constexpr size_t kPiece = 32 << 10;
    const size_t n = std::min({most, kPiece, text.size()});
    std::copy_n(text.data(), n, into);
    text.remove_prefix(n);
    return n;
  };
}

}  // namespace

std::vector<PatternCost> dear_patterns(const Catalogue& catalogue, double limit) {
  std::vector<ScanPattern> rows;
  std::vector<PatternCost> costs;
  const auto add = [&](const LinePattern& p, std::string where) {
    rows.push_back({&p});
    costs.push_back({std::move(where), p.literals[p.anchor()], "", 0});
  };
  for (const Problem& p : catalogue.problems) {
    for (const Signature& s : p.signatures) add(s.pattern, p.file + ":" + std::to_string(s.line_in_file));
    for (const CounterSign& s : p.against) add(s.pattern, p.file);
  }
  constexpr size_t kBytes = 1000000;
  constexpr int64_t kPatience = 200;
  LogScan scan(rows);
  scan.set_patience(kPatience);
  for (const BenchLog& log : bench_logs()) {
    const std::string text = make_bench_log(log.name, kBytes, 1);
    if (!scan.run(in_pieces(text), [](size_t, const LogLine&) {})) continue;
    for (size_t i = 0; i < costs.size(); ++i) {
      const double rate = double(scan.loads()[i].tries) * 1e6 / double(text.size());
      if (rate > costs[i].tries_per_mb) costs[i].tries_per_mb = rate, costs[i].log = log.name;
    }
  }
  costs.erase(
      std::remove_if(costs.begin(), costs.end(), [&](const auto& c) { return c.tries_per_mb < limit; }),
      costs.end());
  std::sort(costs.begin(), costs.end(),
            [](const auto& a, const auto& b) { return a.tries_per_mb > b.tries_per_mb; });
  return costs;
}

}  // namespace ep
