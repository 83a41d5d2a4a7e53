// See topology.h. The steps in order, the strings, the verdict.
#include "facts/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "facts/topology_parts.h"

namespace ep {

std::string_view to_string(LinkClass c) {
  switch (c) {
    case LinkClass::self:
      return "X";
    case LinkClass::pix:
      return "PIX";
    case LinkClass::pxb:
      return "PXB";
    case LinkClass::phb:
      return "PHB";
    case LinkClass::node:
      return "NODE";
    case LinkClass::sys:
      return "SYS";
    case LinkClass::unknown:
      break;
  }
  return "?";
}

LinkClass link_class(std::string_view t) {
  if (t == "PIX") return LinkClass::pix;
  if (t == "PXB") return LinkClass::pxb;
  if (t == "PHB") return LinkClass::phb;
  if (t == "NODE") return LinkClass::node;
  if (t == "SYS" || t == "SOC") return LinkClass::sys;
  if (t == "X") return LinkClass::self;
  return LinkClass::unknown;
}

int distance_weight(LinkClass c) {
  switch (c) {
    case LinkClass::self:
    case LinkClass::pix:
      return 0;
    case LinkClass::pxb:
      return 1;
    case LinkClass::phb:
      return 4;
    case LinkClass::node:
      return 6;
    case LinkClass::sys:
      return 20;
    case LinkClass::unknown:
      break;
  }
  return 40;
}

std::string_view to_string(Confidence c) {
  return c == Confidence::derived ? "derived" : c == Confidence::convention ? "convention" : "none";
}

const TopologyNic* Topology::nic(const std::string& name) const {
  for (const auto& n : nics)
    if (n.name == name) return &n;
  return nullptr;
}

std::vector<std::string> Topology::usable() const {
  std::vector<std::string> out;
  for (const auto& n : nics)
    if (n.usable) out.push_back(n.name);
  return out;
}

Finding& TopologyWork::say(const char* code, Severity severity, BothWords title) {
  for (auto& f : out.findings)
    if (f.code == code) {
      if (severity > f.severity) {
        f.severity = severity;
        f.title = std::move(title.en);
        f.title_zh = std::move(title.zh);
      }
      return f;
    }
  Finding f;
  f.code = code;
  f.severity = severity;
  f.title = std::move(title.en);
  f.title_zh = std::move(title.zh);
  out.findings.push_back(std::move(f));
  return out.findings.back();
}

bool TopologyWork::said(std::string_view code) const {
  return std::any_of(out.findings.begin(), out.findings.end(),
                     [&](const Finding& f) { return f.code == code; });
}

Verdict topology_verdict(const std::vector<Finding>& findings) {
  // Warnings that limit what can be claimed or reached. Others (names, order, GID index) are solved by what
  // epready prints.
  static const std::set<std::string> kLimits = {"no_legend",
                                                "paste_truncated",
                                                "topo_flat_phb",
                                                "topo_flat_sys",
                                                "nic_shared",
                                                "no_near_nic",
                                                "container_partial_gpus",
                                                "container_hidden_nics",
                                                "vf_present",
                                                "no_rdma",
                                                "gid_differs_per_host",
                                                "gid_differs_per_device",
                                                "gid_linklocal_only",
                                                "ibgda_driver_params_missing",
                                                "peermem_unavailable",
                                                "tie_unresolved",
                                                "gpu_count_unusual",
                                                "piece_contradiction",
                                                "topo_contradiction",
                                                "legend_contradiction",
                                                "distance_contradiction",
                                                "gid_drift",
                                                "too_many_devices",
                                                "host_differs",
                                                "paste_damaged",
                                                "nic_down",
                                                "imex_inactive",
                                                "memlock_low"};
  Verdict v = Verdict::pass;
  for (const auto& f : findings) {
    if (f.severity == Severity::fail) return Verdict::fail;
    if (f.severity == Severity::warn && kLimits.count(f.code)) v = Verdict::warn;
  }
  return v;
}

void write_strings(Topology& t) {
  if (t.mapping.confidence != Confidence::derived || t.mapping.pairs.empty()) return;
  std::vector<std::string> deep, list, runs, nccl;
  std::set<std::string> used;
  for (const auto& [gpu, name] : t.mapping.pairs) {
    const TopologyNic* n = t.nic(name);
    if (!n || !n->named || !n->usable) return;
    deep.push_back(fmt::format("{}:{}:1", gpu, name));
    if (used.insert(name).second) {
      list.push_back(name + ":1");
      nccl.push_back(name + ":1");
    }
  }
  // PE i takes entry i of the expanded list: GPUs must be 0..n-1, and a device that comes back breaks the
  // runs.
  bool runs_ok = true;
  int expected = 0, count = 0;
  std::string current;
  std::set<std::string> closed;
  for (const auto& [gpu, name] : t.mapping.pairs) {
    runs_ok &= gpu == expected++;
    if (name == current) {
      ++count;
      continue;
    }
    if (!current.empty()) {
      runs.push_back(fmt::format("{}:1:{}", current, count));
      closed.insert(current);
    }
    runs_ok &= closed.count(name) == 0;
    current = name;
    count = 1;
  }
  runs.push_back(fmt::format("{}:1:{}", current, count));
  t.strings.deep_ep = join(deep, ",");
  t.strings.hca_list = join(list, ",");
  if (runs_ok) t.strings.hca_pe_mapping = join(runs, ",");
  t.strings.nccl_ib_hca = "=" + join(nccl, ",");
  t.strings.ep_nic_name = t.mapping.pairs.begin()->second;
}

Topology read_topology(const Facts& facts) {
  TopologyWork w{facts, {}, {}, {}, false, false, false, false, false, {}};
  w.out.host_name = facts.host_name;
  w.out.host_kind = facts.host_kind;
  w.out.pieces = facts.paste.pieces;
  w.out.unread_lines = facts.paste.unread_lines;
  build_devices(w);
  // Damage in one copy of a table does not count when another copy is whole.
  bool whole = !facts.matrices.empty() && !facts.matrices[0].cut;
  for (const auto& f : facts.paste.findings) {
    bool about_copy = (f.code == "paste_truncated" || f.code == "paste_damaged") && whole &&
                      !f.evidence.empty() && f.evidence[0].source != facts.matrices[0].source;
    w.out.findings.push_back(f);
    if (about_copy) w.out.findings.back().severity = Severity::info;
  }
  exclude_unfit(w);
  choose_compute(w);
  map_gpus(w);
  choose_gids(w);
  judge_gpus(w);
  judge_names(w);
  judge_reach(w);
  write_strings(w.out);
  judge_missing(w);
  auto& findings = w.out.findings;
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  const Verdict found = topology_verdict(findings);
  auto missing = [&](const char* code) {
    return std::any_of(w.out.missing.begin(), w.out.missing.end(),
                       [&](const NotSeen& m) { return m.code == code; });
  };
  w.out.verdict = w.out.missing.empty() ? found : worst(found, Verdict::unknown);
  w.out.shown =
      missing("nics_not_shown") || missing("relation_not_shown") ? worst(found, Verdict::unknown) : found;
  return std::move(w.out);
}

}  // namespace ep
