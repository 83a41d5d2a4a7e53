// See hosts_input.h.
#include "cli/hosts_input.h"

#include "facts/text_facts.h"
#include "host/host.h"

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

Result<std::vector<Facts>> read_hosts(const std::string& from, const std::vector<std::string>& more) {
  std::vector<std::string> sources = more;
  if (!from.empty() || more.empty()) sources.insert(sources.begin(), from);
  std::vector<Facts> out;
  for (const auto& s : sources)
    if (auto ok = add_host(s, sources.size() > 1, out); !ok) return tl::unexpected(ok.error());
  return out;
}

}  // namespace ep
