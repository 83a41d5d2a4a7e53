// `topology`: what the link structure of a host, a snapshot or a paste means for EP.
#include "facts/topology.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "cli/hosts_input.h"
#include "cli/rows.h"
#include "facts/counters.h"
#include "host/host.h"
#include "report/topology_json.h"
#include "report/topology_svg.h"
#include "report/topology_text.h"
#include "report/topology_traffic.h"

namespace ep {
namespace {

class TopologyCommand : public Command {
 public:
  std::vector<Option> options() override {
    return {{"hosts",
             {"More hosts to compare: snapshots, text files, folders",
              "要比较的更多主机：快照、文本文件、文件夹"},
             &more_,
             {},
             "PATH",
             false},
            {"--svg", {"Write a picture to this file", "把拓扑图写入该文件"}, &svg_, {}, "FILE", false},
            {"--watch",
             {"Show what the NICs carry, until interrupted", "显示各网卡流量，直到中断"},
             &watch_,
             {},
             "",
             false},
            {"--interval",
             {"Seconds between samples of --watch", "--watch 的采样间隔（秒）"},
             &interval_,
             {},
             "S",
             false},
            {"--seconds",
             {"End --watch after this time; 0 = until interrupted", "--watch 的总时长（秒），0 为直到中断"},
             &seconds_,
             {},
             "S",
             false},
            {"-v,--verbose",
             {"Also findings that only inform, and all evidence", "同时显示提示性发现和全部证据"},
             &verbose_,
             {},
             "",
             false}};
  }

  int run(Context& c) override {
    auto facts = read_hosts(c.from, more_);
    if (!facts) return c.report(facts.error());
    std::vector<Topology> hosts;
    for (const auto& f : *facts) hosts.push_back(read_topology(f));
    if (watch_) return watch(c, hosts[0]);
    if (!svg_.empty())
      if (auto ok = write_svg(hosts[0], c.lang); !ok) return c.report(ok.error());
    auto shared = compare_hosts(hosts, *facts);
    Verdict v = topology_verdict(shared);
    for (const auto& t : hosts) v = worst(v, t.verdict);
    TopologyTextOptions options{verbose_};
    if (c.json) {
      c.out(topology_json(hosts, shared));
    } else {
      c.out(hosts.size() == 1 ? topology_text(hosts[0], c.look(), options)
                              : topology_hosts_text(hosts, shared, c.look(), options));
      next(c, hosts[0], v);
    }
    return v == Verdict::fail ? 1 : 0;
  }

 private:
  Result<> write_svg(const Topology& t, Lang lang) {
    std::ofstream out(svg_, std::ios::binary | std::ios::trunc);
    out << topology_svg(t, lang);
    out.close();
    if (!out)
      return fail(ErrorKind::failed, "cannot write the picture", svg_, "",
                  "give a path in a folder that can be written");
    return {};
  }

  int watch(Context& c, const Topology& t) {
    using Clock = std::chrono::steady_clock;
    if (!(interval_ >= 0.1) || !(seconds_ >= 0))
      return c.report(Error{ErrorKind::usage,
                            "--interval is at least 0.1 and --seconds at least 0",
                            "",
                            "",
                            "epready topology --help",
                            {}});
    if (t.host_kind != "live")
      return c.report(Error{ErrorKind::usage,
                            "--watch needs the live host",
                            c.from,
                            "counters of a snapshot or paste stand still",
                            "epready topology --watch",
                            {}});
    auto host = live_host();
    std::vector<std::string> expected;
    for (const auto& [gpu, nic] : t.mapping.pairs)
      if (std::find(expected.begin(), expected.end(), nic) == expected.end()) expected.push_back(nic);
    auto start = Clock::now(), last = start;
    CounterSample first = sample_counters(*host), before = first;
    if (first.empty())
      return c.report(Error{ErrorKind::unsupported,
                            "this host has no RDMA device to watch",
                            "/sys/class/infiniband",
                            "",
                            "epready topology",
                            {}});
    auto since = [&](Clock::time_point a) { return std::chrono::duration<double>(Clock::now() - a).count(); };
    while (!interrupted() && (seconds_ == 0 || since(start) < seconds_)) {
      double left = seconds_ == 0 ? interval_ : std::min(interval_, seconds_ - since(start));
      for (auto until = Clock::now() + std::chrono::duration<double>(left);
           !interrupted() && Clock::now() < until;)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      CounterSample now = sample_counters(*host);
      auto moved = traffic_between(before, now);
      if (!c.json) c.note(traffic_text(moved, judge_evenness(moved, expected), since(last), c.look()));
      before = std::move(now);
      last = Clock::now();
    }
    auto all = traffic_between(first, before);
    Evenness e = judge_evenness(all, expected);
    c.out(c.json ? traffic_json(all, e, since(start)) : traffic_text(all, e, since(start), c.look()));
    c.next("epready topology", {"which NIC belongs to which GPU", "查看网卡与 GPU 的对应"});
    return e.verdict == Verdict::fail ? 1 : e.verdict == Verdict::unknown ? 3 : 0;
  }

  void next(Context& c, const Topology& t, Verdict v) {
    if (v == Verdict::fail && !t.findings.empty())
      c.next("epready doctor", {"causes and fixes of what is wrong", "查看原因与修复"});
    else
      c.next("epready env", {"the whole environment for this host", "输出本机的完整环境变量"});
  }

  std::vector<std::string> more_;
  std::string svg_;
  double interval_ = 2, seconds_ = 0;
  bool verbose_ = false, watch_ = false;
};

}  // namespace

std::unique_ptr<Command> make_topology() {
  return std::make_unique<TopologyCommand>();
}

}  // namespace ep
