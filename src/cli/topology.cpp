// `topology`: what the link structure of a host, a snapshot or a paste means for EP.
#include "facts/topology.h"

#include <fmt/format.h>

#include <fstream>

#include "cli/hosts_input.h"
#include "cli/rows.h"
#include "cli/topology_watch.h"
#include "report/topology_json.h"
#include "report/topology_svg.h"
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
            {"--svg", {"Write a picture to this file", "把拓扑图写入该文件"}, &svg_, {}, "FILE", false},
            {"--watch",
             {"Show what the NICs carry, until interrupted", "显示各网卡流量，直到中断"},
             &watch_,
             {},
             "",
             false},
            {"--interval",
             {"Seconds between samples of --watch", "--watch 的采样间隔（秒）"},
             &watch_options_.interval_s,
             {},
             "S",
             false},
            {"--seconds",
             {"End --watch after this time; 0 = until interrupted", "--watch 的总时长（秒），0 为直到中断"},
             &watch_options_.seconds,
             {},
             "S",
             false},
            {"--run",
             {"Watch the NICs while this shell command runs", "运行该 shell 命令期间监视网卡"},
             &watch_options_.command,
             {},
             "COMMAND",
             false},
            {"-v,--verbose",
             {"Also findings that only inform, and all evidence", "同时显示提示性发现和全部证据"},
             &verbose_,
             {},
             "",
             false}};
  }

  int run(Context& c) override {
    std::vector<std::string> left_out;
    auto facts = read_hosts(c.from, more_, Wanted{shows_topology, &left_out});
    if (!facts) return c.report(facts.error());
    std::vector<Topology> hosts;
    for (const auto& f : *facts) hosts.push_back(read_topology(f));
    if (watch_ || !watch_options_.command.empty()) return watch_traffic(c, hosts[0], watch_options_);
    if (!svg_.empty())
      if (auto ok = write_svg(hosts[0], c.lang); !ok) return c.report(ok.error());
    auto shared = compare_hosts(hosts, *facts);
    if (!left_out.empty())
      c.note(fmt::format("{}: {}",
                         c.tr({"left out, nothing of a topology in them", "已略去（其中没有拓扑内容）"}),
                         fmt::join(left_out, ", ")));
    Verdict v = topology_verdict(shared);
    for (const auto& t : hosts) v = worst(v, t.verdict);
    TopologyTextOptions options{verbose_};
    if (c.json) {
      c.out(topology_json(hosts, shared));
    } else {
      c.out(hosts.size() == 1 ? topology_text(hosts[0], c.look(), options)
                              : topology_hosts_text(hosts, shared, c.look(), options));
      next(c, hosts, v);
    }
    return v == Verdict::fail ? 1 : v == Verdict::unknown ? 3 : 0;
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

  void next(Context& c, const std::vector<Topology>& hosts, Verdict v) {
    const Topology& t = hosts[0];
    if (v == Verdict::unknown) {
      for (const auto& host : hosts)
        if (!host.missing.empty()) {
          c.next(host.missing[0].command, {"run it there, add its output to the text and ask again",
                                           "在该主机上运行，把输出加入文本后重试"});
          return;
        }
    }
    // The worst finding knows its own next command; the doctor is for those that name none.
    const Finding* first = nullptr;
    for (const auto& f : t.findings)
      if (f.severity == Severity::fail && (!first || (first->next.empty() && !f.next.empty()))) first = &f;
    if (v == Verdict::fail && first && !first->next.empty())
      c.next(first->next + (starts_with(first->next, "epready ") && !contains(first->next, "--from")
                                ? c.from_option()
                                : ""));
    else if (v == Verdict::fail && first)
      c.next("epready doctor" + c.from_option(), {"causes and fixes of what is wrong", "查看原因与修复"});
    else
      c.next("epready env" + c.from_option(),
             {"the whole environment for this host", "输出本机的完整环境变量"});
  }

  std::vector<std::string> more_;
  std::string svg_;
  WatchOptions watch_options_;
  bool verbose_ = false, watch_ = false;
};

}  // namespace

std::unique_ptr<Command> make_topology() {
  return std::make_unique<TopologyCommand>();
}

}  // namespace ep
