// What the links give without any protocol: stores, loads and copy engines, one way and all ways at once; and
// the fixed costs that every exchange pays.
#include <algorithm>
#include <cstdio>

#include "bench_report.h"
#include "cases.h"
#include "failure.h"
#include "json.h"
#include "measure.h"
#include "outcome.h"

namespace ep::engine::gpu {

int case_ceiling(Group& group, const Options& o) {
  const GateResult gate = pass_gate(group, o);
  const Shape shape = shape_of(o, std::max(8192, o.token_list[0]));
  Rank rank(group, setup_of(o, {shape}));
  rank.configure(shape);
  Meter meter(rank);
  if (group.size() < 2) throw Failure(3, "a link has two ends: give two ranks on different GPUs");
  const bool chief = group.rank() == 0;
  Plan plan;
  plan.iters = std::min(o.iters, 20);
  plan.warmup = 3;
  const bool table = chief && !o.json;
  Json json;
  json.begin_object().value("schema", "epready.engine.ceiling/1").value("tool", "epready-engine-gpu");
  json.value("case", "ceiling").value("engine", "cuda").value("ranks", group.size()).value("verdict", "PASS");
  json.begin_array("rows");
  if (table) {
    std::fputs(to_text(gate).c_str(), stdout);
    std::printf(
        "# GB/s (1e9) per direction of one rank, by bytes moved and multiprocessors; slowest rank, median\n");
    std::printf("# %-14s %-9s %5s %12s %10s %10s\n", "means", "direction", "SMs", "bytes", "time(us)",
                "GB/s");
  }
  const size_t large = shape.capacity() * shape.row_bytes() / 2, small = size_t{2048} * shape.row_bytes();
  struct Way {
    const char* name;
    int probe;  // -1: copy engine
  };
  for (const Way& way : {Way{"bulk-store", 0}, Way{"bulk-load", 1}, Way{"plain-store", 2},
                         Way{"plain-load", 3}, Way{"copy-engine", -1}}) {
    if (way.probe >= 0 && way.probe < 2 && !rank.limits().bulk) continue;
    for (const bool both : {false, true}) {
      for (const int sms : {rank.max_ctas(), 32, 16, 8}) {
        if (way.probe < 0 && sms != rank.max_ctas()) continue;
        for (const size_t bytes : {large, small}) {
          if (bytes == small && sms != rank.max_ctas()) continue;
          const Summary t = meter.time(plan, [&] {
            if (!both && !chief) return;
            if (way.probe < 0)
              meter.move_copy_engine(bytes);
            else
              meter.move_plain(static_cast<Probe>(way.probe), sms, bytes);
          });
          const double gbps = PhaseResult::rate(static_cast<double>(bytes), t.median);
          json.begin_object().value("means", way.name).value("direction", both ? "all" : "one way");
          json.value("sms", way.probe < 0 ? 0 : sms).value("bytes", bytes).value("time_us", t.median);
          json.value("time_p95_us", t.p95).value("time_min_us", t.min).value("gbps", gbps).end_object();
          if (table) {
            std::printf("  %-14s %-9s %5d %12zu %10.1f %10.1f\n", way.name, both ? "all" : "one way",
                        way.probe < 0 ? 0 : sms, bytes, t.median, gbps);
          }
        }
      }
    }
  }
  json.end_array();
  if (group.size() == 2) {
    const Buffer ns(8);
    constexpr int kRounds = 1000;
    ping(rank.barrier_args(), kRounds, ns.as<uint64_t>(), rank.stream());
    rank.finish();
    uint64_t host = 0;
    EP_CUDA(cudaMemcpy(&host, ns.as(), 8, cudaMemcpyDeviceToHost));
    json.value("flag_round_trip_us", static_cast<double>(host) * 1e-3 / kRounds);
    if (table)
      std::printf("# flag round trip %.2f us (%d rounds)\n", static_cast<double>(host) * 1e-3 / kRounds,
                  kRounds);
  }
  const Summary nothing = meter.time(plan, [&] { empty(rank.stream()); });
  plan.graph = true;
  const Summary in_graph = meter.time(plan, [&] { empty(rank.stream()); });
  json.value("empty_kernel_us", nothing.median).value("empty_kernel_in_graph_us", in_graph.median);
  json.end_object();
  if (chief && o.json) {
    std::printf("%s\n", json.text().c_str());
    note_written();
  }
  if (table)
    std::printf("# empty kernel between events: %.2f us in a stream, %.2f us in a graph\n", nothing.median,
                in_graph.median);
  return 0;
}

}  // namespace ep::engine::gpu
