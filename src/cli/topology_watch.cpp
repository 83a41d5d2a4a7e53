// See topology_watch.h.
#include "cli/topology_watch.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "facts/counters.h"
#include "facts/gid_drift.h"
#include "host/process.h"
#include "report/topology_text.h"
#include "report/topology_traffic.h"

namespace ep {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point a) {
  return std::chrono::duration<double>(Clock::now() - a).count();
}

int refuse(Context& c, ErrorKind kind, const char* what, std::string where, const char* why,
           const char* next) {
  return c.report(Error{kind, what, std::move(where), why, next, {}});
}

// The user's command beside the watch. Its output goes to stderr: stdout holds the result.
class Work {
 public:
  explicit Work(const std::string& command) {
    if (command.empty()) return;
    thread_ = std::thread([this, command] {
      Spawn spawn;
      spawn.argv = {"/bin/sh", "-c", command};
      for (char** e = environ; e && *e; ++e) spawn.env.emplace_back(*e);
      spawn.limit_s = 0;
      spawn.interrupt = &stop_;
      auto say = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
      spawn.on_out = spawn.on_err = say;
      auto r = ep::run(spawn);
      failed_ = !r || !r->ok();
      how_ = !r ? r.error().text() : r->how(0);
      done_ = true;
    });
  }
  ~Work() { end(); }
  bool done() const { return done_; }
  bool failed() const { return failed_; }
  const std::string& how() const { return how_; }
  void end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> stop_{false}, done_{false};
  bool failed_ = false;
  std::string how_;
  std::thread thread_;
};

// The NICs that should carry EP: the mapping's, else those fit for it; none known: all are looked at.
std::vector<std::string> expected_nics(const Topology& t) {
  if (t.mapping.pairs.empty()) return t.usable();
  std::vector<std::string> out;
  for (const auto& [gpu, nic] : t.mapping.pairs)
    if (std::find(out.begin(), out.end(), nic) == out.end()) out.push_back(nic);
  return out;
}

}  // namespace

int watch_traffic(Context& c, const Topology& t, const WatchOptions& o) {
  if (!(o.interval_s >= 0.1) || !(o.seconds >= 0))
    return refuse(c, ErrorKind::usage, "--interval is at least 0.1 and --seconds at least 0", "", "",
                  "epready topology --help");
  if (t.host_kind != "live")
    return refuse(c, ErrorKind::usage, "--watch needs the live host", c.from,
                  "counters of a snapshot or paste stand still", "epready topology --watch");
  auto host = live_host();
  const auto expected = expected_nics(t);
  interrupted();  // installs the handler before anything is started
  auto start = Clock::now(), last = start;
  CounterSample first = sample_counters(*host), before = first;
  const auto gids = read_gid_tables(*host);
  if (first.empty())
    return refuse(c, ErrorKind::unsupported, "this host has no RDMA device to watch", "/sys/class/infiniband",
                  "", "epready topology");
  Work work(o.command);
  auto over = [&] {
    return interrupted() || (o.seconds > 0 && since(start) >= o.seconds) ||
           (!o.command.empty() && work.done());
  };
  std::string told;
  std::vector<Finding> drift;
  while (!over()) {
    while (!over() && since(last) < o.interval_s) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CounterSample now = sample_counters(*host);
    auto moved = traffic_between(before, now);
    drift = gid_drift(gids, read_gid_tables(*host));
    if (!c.json) {
      c.note(traffic_text(moved, judge_evenness(moved, expected), since(last), c.look()));
      std::string text = findings_text(drift, c.look(), false);
      if (text != told) c.note(text);
      told = text;
    }
    before = std::move(now);
    last = Clock::now();
  }
  work.end();
  // Once more after the end: what was carried since the last table counts too.
  auto all = traffic_between(first, sample_counters(*host));
  drift = gid_drift(gids, read_gid_tables(*host));
  Evenness e = judge_evenness(all, expected);
  double seconds = since(start);
  c.out(c.json ? traffic_json(all, e, seconds, drift)
               : traffic_text(all, e, seconds, c.look()) + findings_text(drift, c.look(), true));
  if (work.failed()) c.note(fmt::format("epready: {}: {}", o.command, work.how()));
  c.next("epready topology", {"which NIC belongs to which GPU", "查看网卡与 GPU 的对应"});
  bool gone =
      std::any_of(drift.begin(), drift.end(), [](const Finding& f) { return f.severity == Severity::fail; });
  if (e.verdict == Verdict::fail || gone || work.failed()) return 1;
  return e.verdict == Verdict::unknown ? 3 : 0;
}

}  // namespace ep
