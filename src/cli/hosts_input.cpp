// See hosts_input.h.
#include "cli/hosts_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "cli/command.h"
#include "facts/text_facts.h"
#include "host/host.h"
#include "host/probes.h"

namespace ep {
namespace {

Result<> add_paste(const std::string& source, bool many, std::vector<Facts>& out) {
  auto pasted = read_pasted_hosts({source});
  if (!pasted) return tl::unexpected(pasted.error());
  for (const auto& p : *pasted) {
    std::string name = source == "-" ? "standard input" : source;
    if (!p.name.empty()) name = many ? name + "/" + p.name : p.name;
    out.push_back(facts_of_paste(p, name));
  }
  return {};
}

Result<> add_host(const std::string& source, bool many, std::vector<Facts>& out) {
  if (source == "-") return add_paste(source, many, out);
  auto host = open_host(source);
  if (!host) return tl::unexpected(host.error());
  if ((*host)->kind() == HostKind::paste) return add_paste(source, many, out);
  out.push_back(read_facts(**host));
  return {};
}

}  // namespace

Result<std::vector<Facts>> read_hosts(const std::string& from, const std::vector<std::string>& more,
                                      const Wanted& wanted) {
  set_probe_interrupt(&interrupted());
  std::vector<std::string> sources = more;
  if (!from.empty() || more.empty()) sources.insert(sources.begin(), from);
  // Snapshots do not wait for each other: as many readers as cores, results in the order given.
  std::vector<std::vector<Facts>> parts(sources.size());
  std::vector<Result<>> results(sources.size());
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < sources.size(); i = next++)
      results[i] = add_host(sources[i], sources.size() > 1, parts[i]);
  };
  size_t readers = std::min<size_t>(sources.size(), std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (size_t i = 1; i < readers; ++i) threads.emplace_back(work);
  work();
  for (auto& t : threads) t.join();
  if (interrupted()) return fail(ErrorKind::interrupted, "stopped while reading hosts");
  std::vector<Facts> out;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!results[i]) return tl::unexpected(results[i].error());
    bool any = !wanted.test;
    for (auto& f : parts[i]) {
      if (wanted.test && !wanted.test(f)) {
        if (wanted.left_out) wanted.left_out->push_back(f.host_name);
        continue;
      }
      any = true;
      out.push_back(std::move(f));
    }
    if (!any)
      return fail(ErrorKind::unsupported, "no GPU, no NIC and no link is shown here",
                  sources[i] == "-" ? "standard input" : sources[i],
                  fmt::format("{} parts were read; outputs of nvidia-smi topo -m, ibstat, show_gids and "
                              "others would show them",
                              parts[i].size()),
                  "nvidia-smi topo -m");
  }
  return out;
}

}  // namespace ep
