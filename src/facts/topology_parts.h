// The steps of read_topology, each on the value the one before left. Private to facts/topology*.cpp.
#pragma once
#include <string>
#include <vector>

#include "facts/topology.h"

namespace ep {

/// Working state between the steps.
struct TopologyWork {
  const Facts& facts;
  Topology out;
  std::vector<bool> joined;  ///< by NIC: its distances are known or at least looked up
  std::vector<std::string> layer_source;
  bool has_distances = false;  ///< any GPU-NIC cell
  bool rows_missing = false;   ///< a cut matrix: some GPUs have no row
  bool nic_cells = false;      ///< NIC-NIC cells are known
  bool flat = false;           ///< no information in the distances
  bool efa_mapping = false;    ///< the mapping is among EFA devices (NCCL only)
  std::vector<int> group;      ///< by NIC: component of PIX-connected NICs; -1 unknown

  Finding& say(const char* code, Severity severity, BothWords title);
  bool said(std::string_view code) const;
};

void build_devices(TopologyWork& w);   // topology_build.cpp: GPUs, NICs, distances
void exclude_unfit(TopologyWork& w);   // topology_roles.cpp: what can't carry EP whatever its place
void choose_compute(TopologyWork& w);  // topology_roles.cpp: roles by distance, and the mapping
void map_gpus(TopologyWork& w);        // topology_map.cpp
void choose_gids(TopologyWork& w);     // topology_gid.cpp
void judge_gpus(TopologyWork& w);      // topology_judge.cpp: compute capability, NVLink, MNNVL
void judge_names(TopologyWork& w);     // topology_judge.cpp: naming, order, NUMA, state, software
void judge_software(TopologyWork& w);  // topology_software.cpp: driver switches, versions, dkms
void judge_reach(TopologyWork& w);     // topology_reach.cpp: device nodes, dead ports, IMEX, locked memory
void judge_missing(TopologyWork& w);   // topology_missing.cpp: what a PASS needs and is not shown
void write_strings(Topology& t);       // topology.cpp

/// Grace boards: GPUs of a rack reach each other over NVLink, NICs matter between domains.
bool in_nvlink_domain(const Topology& t, const Facts& f);  // topology_judge.cpp

/// Best class of a NIC over the GPUs whose distances are known; unknown when none is.
LinkClass best_class(const Topology& t, size_t nic);
/// Best class of a GPU over `candidates`.
LinkClass best_class_of_gpu(const Topology& t, size_t gpu, const std::vector<size_t>& candidates);
/// Number at the end of mlx5_12 or mlx5_bond_3; -1 when the name has none of that form.
int device_number(const std::string& name);
/// An address other hosts can route to: class of a full GID.
enum class GidKind { none, link_local, ipv4, ipv6 };
GidKind gid_kind(const std::string& gid);

}  // namespace ep
