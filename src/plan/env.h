// The whole environment of a stack on a host, computed: every line with its reason, and the lines that
// recipes carry but this host is better without. Pure. Rendering for shells and managers: env_render.h.
#pragma once
#include <string>
#include <vector>

#include "facts/facts.h"
#include "facts/topology.h"
#include "recipe/variables.h"

namespace ep {

struct EnvLine {
  std::string name, value;
  Phrase why;
  bool is_list = false;   ///< a folder put before what the variable holds: PATH, LD_LIBRARY_PATH
  std::string rest = {};  ///< lists: what it holds in this pod or container, without `value`
  std::string whole() const { return is_list && !rest.empty() ? value + ":" + rest : value; }
};

struct EnvRequest {
  std::string lane = "v1";    ///< v1, v2, local
  std::string nvshmem, nccl;  ///< versions; empty: as found on the host, else the newest rules
  std::string prefix;         ///< folder epready owns; empty: the one whose parts are here
  bool many_nodes = true;
  std::string gib = "auto";   ///< auto (when the folder is there and whole), all, none
  std::string gib_dir;        ///< where gIB will be, for an environment written before it can be seen
  bool venv_follows = false;  ///< PREFIX/venv will be there when the environment is used
};

struct EnvPlan {
  std::string lane, nvshmem, nccl;  ///< what the lines are valid for; empty version = newest known rules
  std::vector<EnvLine> lines;       ///< sorted by topic, fixed order
  /// NVSHMEM_HCA_LIST of each GPU: the effect of DeepEP pull request 466 without the patch, for programs that
  /// are started once per GPU. Empty when the mapping is not proven.
  std::vector<std::pair<int, std::string>> per_rank;
  std::vector<EnvLine> left_out;  ///< value = what recipes write
  std::vector<Finding> findings;  ///< what the environment can't mend
};

EnvPlan compute_env(const Facts& facts, const Topology& topology, const Variables& variables,
                    const EnvRequest& request);

/// Version of a wheel or distribution package by the names it may have; empty when it is not found.
std::string found_version(const Facts& facts, const std::string& wheel_prefix);

}  // namespace ep
