// Reads `nvidia-smi topo -m`, `-mp` and `-p2p` tables as tools of all ages print them and as people paste
// them: with or without legend, escape codes lost, separators lost, rows wrapped or cut. Never pads a row:
// what the text does not show stays unknown. Not here: what the classes mean (facts/topology.h).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "facts/facts.h"
#include "host/paste.h"

namespace ep {

struct MatrixText {
  LinkMatrix matrix;
  std::vector<Finding> findings;  ///< paste_damaged, paste_truncated, old_driver_format, contradictions
  std::string refused;  ///< why this table is not ours (another vendor's tool); matrix is empty then
};

/// Every table in `text`, in order. `source` goes into the evidence of findings; "-mp" in it marks `-mp`.
std::vector<MatrixText> parse_link_matrices(std::string_view text, const std::string& source);

/// Pairs that `topo -p2p` does not show as OK: "0-3 r: CNS".
struct P2pText {
  bool found = false;
  std::vector<std::string> bad_pairs;
};
P2pText parse_p2p_matrix(std::string_view text);

/// True for X, NV#, PIX, PXB, PHB, NODE, SYS, SOC.
bool is_link_class(std::string_view token);

}  // namespace ep
