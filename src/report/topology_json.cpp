// See topology_json.h.
#include "report/topology_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ep {
namespace {

using Json = nlohmann::ordered_json;

const char* severity(Severity s) {
  return s == Severity::fail ? "error" : s == Severity::warn ? "warn" : "info";
}
const char* verdict(Verdict v) {
  return v == Verdict::pass ? "ok" : v == Verdict::warn ? "warn" : v == Verdict::fail ? "fail" : "unknown";
}
const char* answer(Verdict v) {
  return v == Verdict::pass ? "pass" : verdict(v);
}

Json text_or_null(const std::string& s) {
  return s.empty() ? Json(nullptr) : Json(s);
}

Json finding_json(const Finding& f, const std::string& host) {
  Json j = {{"code", f.code}, {"severity", severity(f.severity)}, {"text", f.title}};
  if (!f.cause.empty()) j["cause"] = f.cause;
  if (!host.empty()) j["host"] = host;
  Json evidence = Json::array();
  for (const auto& e : f.evidence)
    evidence.push_back({{"source", e.source}, {"line", e.line}, {"text", e.text}});
  j["evidence"] = std::move(evidence);
  if (!f.next.empty()) j["next"] = f.next;
  return j;
}

Json gpus_json(const Topology& t) {
  Json out = Json::array();
  for (size_t i = 0; i < t.gpus.size(); ++i) {
    const auto& g = t.gpus[i];
    Json links = Json::object();
    for (size_t n = 0; n < t.nics.size(); ++n)
      if (t.gpu_nic[i][n] != LinkClass::unknown) links[t.nics[n].name] = to_string(t.gpu_nic[i][n]);
    out.push_back({{"index", g.index},
                   {"address", text_or_null(g.address)},
                   {"name", text_or_null(g.name)},
                   {"sm", g.sm ? Json(fmt::format("{}.{}", g.sm / 10, g.sm % 10)) : Json(nullptr)},
                   {"numa_node", g.numa_node >= 0 ? Json(g.numa_node) : Json(nullptr)},
                   {"shown", g.row_known},
                   {"links", std::move(links)}});
  }
  return out;
}

Json nics_json(const Topology& t) {
  Json out = Json::array();
  for (const auto& n : t.nics)
    out.push_back({{"name", n.name},
                   {"usable", n.usable},
                   {"role", n.role},
                   {"reason", n.reason.en},
                   {"address", text_or_null(n.address)},
                   {"netdev", text_or_null(n.netdev)},
                   {"link_layer", text_or_null(n.link_layer)},
                   {"state", text_or_null(n.state)},
                   {"rate_gbps", n.rate_gbps > 0 ? Json(n.rate_gbps) : Json(nullptr)},
                   {"numa_node", n.numa_node >= 0 ? Json(n.numa_node) : Json(nullptr)},
                   {"vf", n.is_vf},
                   {"bond", n.is_bond}});
  return out;
}

Json mapping_json(const Mapping& m) {
  Json pairs = Json::object(), relation = Json::object(), unmapped = Json::array();
  for (const auto& [g, n] : m.pairs) pairs[std::to_string(g)] = n;
  for (const auto& [g, c] : m.relation) relation[std::to_string(g)] = to_string(c);
  for (const auto& [g, why] : m.unmapped) unmapped.push_back({{"gpu", g}, {"reason", why.en}});
  return {{"confidence", to_string(m.confidence)},    {"pairs", std::move(pairs)},
          {"unmapped", std::move(unmapped)},          {"relation", std::move(relation)},
          {"constraint", text_or_null(m.constraint)}, {"reason", m.reason.en}};
}

Json host_json(const Topology& t) {
  Json j = {{"host", t.host_name},
            {"kind", t.host_kind},
            {"answer", answer(t.verdict)},
            {"verdict", verdict(t.shown)}};
  Json missing = Json::array();
  for (const auto& m : t.missing)
    missing.push_back({{"code", m.code}, {"text", m.what.en}, {"command", m.command}});
  j["missing"] = std::move(missing);
  j["gpus"] = gpus_json(t);
  j["nics"] = nics_json(t);
  j["mapping"] = mapping_json(t.mapping);
  j["env"] = {{"DEEP_EP_DEVICE_TO_HCA_MAPPING", text_or_null(t.strings.deep_ep)},
              {"NVSHMEM_HCA_LIST", text_or_null(t.strings.hca_list)},
              {"NVSHMEM_HCA_PE_MAPPING", text_or_null(t.strings.hca_pe_mapping)},
              {"NCCL_IB_HCA", text_or_null(t.strings.nccl_ib_hca)},
              {"EP_NIC_NAME", text_or_null(t.strings.ep_nic_name)}};
  Json per = Json::object();
  for (const auto& [d, i] : t.gid.per_device) per[d] = i;
  Json rest = Json::object();
  for (const auto& [d, i] : t.gid.not_for_ep) rest[d] = i;
  j["gid"] = {{"needed", t.gid.needed ? Json(*t.gid.needed) : Json(nullptr)},
              {"per_device", std::move(per)},
              {"not_for_ep", std::move(rest)},
              {"recommend", t.gid.pin ? "pin" : "unset"},
              {"reason", t.gid.reason.en}};
  Json pieces = Json::array();
  for (const auto& p : t.pieces) pieces.push_back({{"kind", p.kind}, {"source", p.source}, {"line", p.line}});
  j["pieces"] = std::move(pieces);
  j["unread_lines"] = t.unread_lines;
  return j;
}

}  // namespace

std::string topology_json(const std::vector<Topology>& hosts, const std::vector<Finding>& shared) {
  Json j = {{"schema", "epready-topology-1"}, {"tool", "epready"}};
  j.update(host_json(hosts[0]));
  Verdict shown = worst(hosts[0].shown, topology_verdict(shared)),
          whole = worst(hosts[0].verdict, topology_verdict(shared));
  Json findings = Json::array();
  for (const auto& f : hosts[0].findings) findings.push_back(finding_json(f, ""));
  for (const auto& f : shared) findings.push_back(finding_json(f, ""));
  Json others = Json::array();
  for (size_t i = 1; i < hosts.size(); ++i) {
    Json h = host_json(hosts[i]);
    Json own = Json::array();
    for (const auto& f : hosts[i].findings) {
      own.push_back(finding_json(f, ""));
      if (f.severity == Severity::fail) findings.push_back(finding_json(f, hosts[i].host_name));
    }
    h["findings"] = std::move(own);
    shown = worst(shown, hosts[i].shown);
    whole = worst(whole, hosts[i].verdict);
    others.push_back(std::move(h));
  }
  j["findings"] = std::move(findings);
  j["answer"] = answer(whole);
  j["verdict"] = verdict(shown);
  j["hosts"] = std::move(others);
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ep
