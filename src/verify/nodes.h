// Which node of how many this is: flags first, then what launchers set. Pure. The meaning of DeepEP's tests
// is kept: WORLD_SIZE and RANK count nodes, one process a node, which starts one rank a GPU itself.
#pragma once
#include <map>
#include <string>

#include "base/result.h"

namespace ep {

struct Nodes {
  int count = 1, rank = 0;
  std::string master;  ///< name or address of node 0, as the others reach it
  int port = 29500;
  std::string source;  ///< flags, WORLD_SIZE, Slurm, Open MPI: for people
};

struct NodeFlags {
  int count = 0, rank = -1;  ///< 0, -1: not given
  std::string master;        ///< HOST or HOST:PORT or [ADDRESS]:PORT
};

/// Error `usage`: something is missing or out of range; next is the command for each node.
Result<Nodes> nodes_of(const std::map<std::string, std::string>& environment, const NodeFlags& flags);

/// First host of a Slurm node list: "gpu[003-010,012],x" -> "gpu003". Empty for an empty or cut list.
std::string first_slurm_host(const std::string& list);

}  // namespace ep
