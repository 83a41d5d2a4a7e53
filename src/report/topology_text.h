// Topology for people. Decides nothing.
#pragma once
#include <string>
#include <vector>

#include "facts/topology.h"
#include "report/look.h"

namespace ep {

struct TopologyTextOptions {
  bool verbose = false;  ///< all info findings and evidence
};

std::string topology_text(const Topology& t, const Look& look, const TopologyTextOptions& options = {});
/// Several hosts: one line each, then the findings between them, then whatever is wrong on single hosts.
std::string topology_hosts_text(const std::vector<Topology>& hosts, const std::vector<Finding>& shared,
                                const Look& look, const TopologyTextOptions& options = {});

/// Findings with their evidence, three lines of it unless `verbose`; those that only inform need `verbose`.
std::string findings_text(const std::vector<Finding>& findings, const Look& look, bool verbose);

}  // namespace ep
