// `topology`: what the link structure of a host, a snapshot or a paste means for EP.
#include "facts/topology.h"

#include <fmt/core.h>

#include "cli/rows.h"
#include "facts/text_facts.h"
#include "host/host.h"
#include "report/topology_json.h"
#include "report/topology_text.h"

namespace ep {
namespace {

struct Seen {
  std::vector<Topology> topologies;
  std::vector<Facts> facts;
};

// A paste may hold several hosts; every other source is one.
Result<> look_at(const std::string& from, Seen& seen) {
  auto host = open_host(from);
  if (!host) return tl::unexpected(host.error());
  if ((*host)->kind() != HostKind::paste) {
    return fail(ErrorKind::unsupported, "live hosts and snapshots are not read yet", from, "",
                "give a paste with --from");
  }
  return fail(ErrorKind::internal, "a paste was not taken apart", from);
}

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
    Seen seen;
    std::vector<std::string> sources = more_;
    if (!c.from.empty() || more_.empty()) sources.insert(sources.begin(), c.from);
    for (const auto& s : sources)
      if (auto ok = add(s, sources.size() > 1, seen); !ok) return c.report(ok.error());
    for (const auto& f : seen.facts) seen.topologies.push_back(read_topology(f));
    auto shared = compare_hosts(seen.topologies, seen.facts);
    Verdict v = topology_verdict(shared);
    for (const auto& t : seen.topologies) v = worst(v, t.verdict);
    TopologyTextOptions options{verbose_};
    if (c.json) {
      c.out(topology_json(seen.topologies, shared));
    } else {
      c.out(seen.topologies.size() == 1 ? topology_text(seen.topologies[0], c.look(), options)
                                        : topology_hosts_text(seen.topologies, shared, c.look(), options));
      next(c, seen.topologies[0], v);
    }
    return v == Verdict::fail ? 1 : 0;
  }

 private:
  Result<> add(const std::string& source, bool many, Seen& seen) {
    if (source.empty()) return look_at(source, seen);
    // Snapshots announce themselves; what is none is text.
    if (source != "-") {
      auto host = open_host(source);
      if (!host) return tl::unexpected(host.error());
      if ((*host)->kind() != HostKind::paste) return look_at(source, seen);
    }
    auto pasted = read_pasted_hosts({source});
    if (!pasted) return tl::unexpected(pasted.error());
    for (const auto& p : *pasted) {
      std::string name = p.name.empty() ? source : many ? source + "/" + p.name : p.name;
      seen.facts.push_back(facts_of_paste(p, name));
    }
    return {};
  }

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
