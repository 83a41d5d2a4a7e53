// Piece kinds of the system around the GPUs: operating system, kernel modules, limits, file systems,
// packages, container, and outputs that only the command line in front of them explains. Private to src/host.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "host/paste_rules.h"

namespace ep {

/// Rows for the table of paste_rules.cpp, in its order of trial.
const std::vector<PieceRule>& system_rules();

/// The command of a prompt line ("me@node:~# ulimit -l", "$ uname -m", "[me@node ~]$ df -h"); empty when
/// none.
std::string typed_command(std::string_view line);

/// What a command's output is, where the output alone does not say it.
struct Asked {
  const char* kind = nullptr;                ///< kind of the piece; nullptr: the output speaks for itself
  std::string head;                          ///< put before every line: "product_name: "
  std::string first;                         ///< a line of its own before the output: the columns of a query
  bool (*line)(const PasteLine&) = nullptr;  ///< lines of the answer; the first other line ends it
  int most = 1;                              ///< lines
};
Asked asked_by(std::string_view command);

}  // namespace ep
