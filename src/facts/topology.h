// What the link structure of a host means for expert parallelism: which RDMA devices may carry EP traffic,
// which NIC each GPU should use, which GID index, and what is wrong. A pure function of Facts, the same for a
// live host, a snapshot and a paste. Rules and their sources: docs/commands/topology.md. Not here: printing
// (report/), the whole environment (plan/env.h).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/finding.h"
#include "base/words.h"
#include "facts/facts.h"

namespace ep {

/// Nearness of two PCI functions, nearest first: the classes that nvidia-smi prints. NODE is farther than
/// PHB.
enum class LinkClass { unknown, self, pix, pxb, phb, node, sys };

std::string_view to_string(LinkClass c);      ///< "?", X, PIX, PXB, PHB, NODE, SYS
LinkClass link_class(std::string_view text);  ///< of a printed cell; NV# and rubbish are unknown
inline bool is_near(LinkClass c) {
  return c == LinkClass::pix || c == LinkClass::pxb || c == LinkClass::self;
}

/// Nearness by the chains of bridges (PciDevice::path) and NUMA nodes: no common root is NODE or SYS, only
/// the root PHB, one switch right above both PIX, else PXB. Source: NVML's topology levels.
LinkClass pci_distance(const PciDevice& a, const PciDevice& b);

/// Weight of a class in the sum that the mapping minimises. PIX and PXB differ little (both stay below the
/// CPU); crossing the socket costs more than any number of in-socket hops of one host.
int distance_weight(LinkClass c);

struct TopologyGpu {
  int index = 0;
  std::string address, name;
  int sm = 0;             ///< compute capability times ten; 0 unknown
  std::string sm_source;  ///< where it was read, or what it was concluded from
  int numa_node = -1;
  std::string cpu_affinity;
  bool row_known = true;  ///< false: a cut matrix does not show this GPU's distances
};

struct TopologyNic {
  std::string name;  ///< device name; a matrix label or a PCI address where there is no name
  std::string address, netdev, driver, hca_type, firmware;
  std::string link_layer;  ///< InfiniBand, Ethernet, empty
  std::string state;       ///< up, down, empty
  double rate_gbps = 0;    ///< 0 unknown
  int numa_node = -1, mtu = 0;
  bool is_vf = false, is_bond = false, named = true;  ///< named: a library would accept the name
  bool usable = false;                                ///< may carry EP traffic
  std::string role;  ///< compute, or why not: management, storage, down, bond, vf, hidden, other-gpu, ...
  BothWords reason;  ///< one sentence
  int card = -1;     ///< equal for ports of one card; -1 unknown
};

enum class Confidence { none, convention, derived };
std::string_view to_string(Confidence c);

struct Mapping {
  Confidence confidence = Confidence::none;
  std::map<int, std::string> pairs;                 ///< GPU index -> device
  std::vector<std::pair<int, BothWords>> unmapped;  ///< GPU index, why
  std::map<int, LinkClass> relation;
  std::string constraint;  ///< distinct, distinct_card, max_gpus_per_nic:N, or empty
  BothWords reason;
};

struct GidChoice {
  std::optional<bool> needed;                  ///< RoCE: true, InfiniBand: false, unknown: nothing
  std::map<std::string, int> per_device;       ///< index of the RoCE v2 entry that other hosts can route to
  std::map<std::string, std::string> address;  ///< its address, for people
  std::map<std::string, int> not_for_ep;       ///< the same index on RoCE devices that are not used for EP
  bool pin = false;                            ///< only when the library at hand would choose worse
  BothWords reason;
  bool ipv6 = false;  ///< the chosen entries are IPv6
};

/// The mapping in the dialects of the field. Empty strings where the mapping is not proven or names are
/// unknown.
struct MappingStrings {
  std::string deep_ep;   ///< DEEP_EP_DEVICE_TO_HCA_MAPPING (DeepEP pull request 466)
  std::string hca_list;  ///< NVSHMEM_HCA_LIST
  std::string
      hca_pe_mapping;       ///< NVSHMEM_HCA_PE_MAPPING; empty also when the order cannot be written as runs
  std::string nccl_ib_hca;  ///< NCCL_IB_HCA, exact-match form
  std::string ep_nic_name;  ///< EP_NIC_NAME of DeepEP V2
};

/// Something that a PASS rests on and the input does not show.
struct NotSeen {
  std::string code;     ///< gpus_not_shown, nics_not_shown, relation_not_shown, names_not_shown,
                        ///< rows_not_shown, states_not_shown
  BothWords what;       ///< "port states of 8 NICs"
  std::string command;  ///< whose output shows it
};

struct Topology {
  std::string host_name, host_kind;
  std::vector<TopologyGpu> gpus;
  std::vector<TopologyNic> nics;
  std::vector<std::vector<LinkClass>> gpu_nic;  ///< [gpu][nic]
  std::vector<std::vector<LinkClass>> nic_nic;
  std::vector<std::vector<std::string>> gpu_gpu;  ///< as printed: NV18, PIX, empty unknown
  bool nvlink_shown = false;                      ///< gpu_gpu says something about NVLink
  Mapping mapping;
  GidChoice gid;
  MappingStrings strings;
  std::vector<Finding> findings;  ///< worst first
  std::vector<NotSeen> missing;   ///< empty: GPUs, compute NICs, their relation and port states are known
  /// For multi-node EP on this host: fail by any finding of that severity, else unknown while something is
  /// missing, else warn or pass.
  Verdict verdict = Verdict::unknown;
  /// Of what the input shows, taken alone: a GID table or a link matrix may be right although the host is not
  /// known. Unknown where there is nothing to judge: no NIC, or GPUs and NICs without their relation.
  Verdict shown = Verdict::unknown;
  std::vector<PasteFacts::Piece> pieces;
  int unread_lines = 0;

  const TopologyNic* nic(const std::string& name) const;
  std::vector<std::string> usable() const;  ///< names, natural order
};

Topology read_topology(const Facts& facts);

/// The facts hold something that the topology can judge: a GPU, a NIC, a link, a driver switch, a known log
/// line.
bool shows_topology(const Facts& facts);

/// Findings between hosts of one job: names, counts, GID indices, rates, MTU, firmware, driver, kernel. Each
/// names the odd one. The first host is not special.
std::vector<Finding> compare_hosts(const std::vector<Topology>& hosts, const std::vector<Facts>& facts);

/// The worst severity that counts: fail for any `fail`, warn for a `warn` whose code limits what can be
/// claimed.
Verdict topology_verdict(const std::vector<Finding>& findings);

}  // namespace ep
