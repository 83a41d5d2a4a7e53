// The table of piece kinds: how a piece starts, which lines belong to it. Private to src/host.
#pragma once
#include <string_view>
#include <vector>

#include "host/paste.h"

namespace ep {

/// One line of a paste, cleaned.
struct PasteLine {
  std::string_view raw;   ///< indentation kept
  std::string_view text;  ///< trimmed
  std::vector<std::string_view> words;
  /// The command line above this output, without its prompt; empty when the text shows none.
  std::string_view command;
};

struct PieceRule {
  PieceKind kind;
  bool (*start)(const PasteLine&);  ///< nullptr: only a command line in front opens it
  bool (*more)(const PasteLine&);
  bool weak;                  ///< `more` yields to the start of another kind
  bool gather;                ///< all lines of a source make one piece
  bool with_command = false;  ///< the piece begins with "$ COMMAND" where the text shows it
};

/// Device nodes and services: outputs that only the command above them explains. In paste_devices.cpp.
bool device_nodes_line(const PasteLine&);
bool service_state_line(const PasteLine&);
bool service_state_more(const PasteLine&);

/// Order decides between kinds whose first lines look alike.
const std::vector<PieceRule>& piece_rules();

}  // namespace ep
