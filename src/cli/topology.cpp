// `topology`: what the link structure of a host, a snapshot or a paste means for EP.
#include "facts/topology.h"

#include <fmt/core.h>

#include "cli/hosts_input.h"
#include "cli/rows.h"
#include "report/topology_json.h"
#include "report/topology_text.h"

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
  void next(Context& c, const Topology& t, Verdict v) {
    if (v == Verdict::fail && !t.findings.empty())
      c.next("epready doctor", {"causes and fixes of what is wrong", "查看原因与修复"});
    else
      c.next("epready env", {"the whole environment for this host", "输出本机的完整环境变量"});
  }

  std::vector<std::string> more_;
  bool verbose_ = false;
};

}  // namespace

std::unique_ptr<Command> make_topology() {
  return std::make_unique<TopologyCommand>();
}

}  // namespace ep
