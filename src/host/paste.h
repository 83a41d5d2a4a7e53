// Free text with tool outputs in it, taken apart: which pieces, of which kind, belonging to which host. Only
// recognises and cuts; what a piece means is facts/text_*.cpp. See host.h for paste_host, the Host made of
// it.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "host/host.h"

namespace ep {

/// One recognised output. `kind` is a row of the piece table: nvidia-smi-topo, show_gids, ibstat ...
struct PastePiece {
  std::string kind;
  std::string source;  ///< file name, or "text"; with "-mp" added when the command line before it says so
  int line = 1;        ///< 1-based, where it starts
  std::string text;
};

/// The pieces of one host. Several hosts come from sub-folders, from files whose names carry a host
/// ("pod-a-show_gids.txt"), or from shell prompts in one text.
struct PastedHost {
  std::string name;  ///< empty for the main one
  std::vector<PastePiece> pieces;
  int unread_lines = 0;  ///< not blank, and no reader wanted them
  struct Unread {
    int line = 0;
    std::string text;
  };
  std::vector<Unread> unread;  ///< the first of them
};

/// Paste remains taken out of a line: escape sequences (also half of one), replacement characters, Unicode
/// blanks.
std::string clean_pasted_line(std::string_view line);

/// Device name that the naming rules of kernel, rdma-core and vendors give: mlx5_0, rocep145s0, ibp14s0,
/// rdmap79s0, bnxt_re0 ...
bool is_rdma_name(std::string_view s);

/// Cuts texts (file name, content) into hosts. The first is the main one. Never fails; nothing recognised
/// gives one host without pieces.
std::vector<PastedHost> take_apart(const std::vector<std::pair<std::string, std::string>>& texts);

/// Kinds and what each is, for help and docs.
struct PieceKind {
  const char* kind;
  const char* what;
  const char* probe;  ///< live probe that gives the same text, or nullptr
};
const std::vector<PieceKind>& piece_kinds();

/// Reads files, folders and "-" (standard input), and takes them apart. Errors: absent, unreadable, and
/// malformed when nothing in them is known.
Result<std::vector<PastedHost>> read_pasted_hosts(const std::vector<std::string>& paths);

/// A Host over one of them: probes by name, files never.
std::unique_ptr<Host> host_of_pieces(PastedHost pasted, std::string shown_name);

/// The pieces behind a paste host; nullptr for live hosts and snapshots.
const PastedHost* pasted_pieces(const Host& host);

}  // namespace ep
