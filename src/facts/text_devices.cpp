// Reads pasted listings of device nodes and the state of nvidia-imex: what a container or a tray lacks
// although sysfs shows its NICs. Listed and missing are both said; what the text does not show stays unknown.
// Pure.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "facts/text_host.h"
#include "host/paste.h"

namespace ep {
namespace {

std::string_view last_part(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

bool numbered(std::string_view word, std::string_view head) {
  return starts_with(word, head) && parse_int(word.substr(head.size())).has_value();
}

// What stands behind `folder` in a line up to a blank or a quote: "", "/", "/uverbs*".
std::string_view behind(std::string_view line, std::string_view folder) {
  const size_t at = line.find(folder);
  if (at == line.npos) return "-";
  std::string_view rest = line.substr(at + folder.size());
  size_t end = 0;
  while (end < rest.size() &&
         (std::isalnum(static_cast<unsigned char>(rest[end])) || contains("/*_?[]-", rest.substr(end, 1))))
    ++end;
  return rest.substr(0, end);
}

// The whole folder was asked for, not one node of it.
bool whole(std::string_view rest, std::string_view head) {
  return rest.empty() || rest == "/" || rest == "/*" || rest == "/" + std::string(head) + "*";
}

// ls names the path in every language; a closed folder is there.
bool denied(std::string_view line) {
  for (std::string_view w :
       {"ermission denied", "权限不够", "權限不夠", "Keine Berechtigung", "refusée", "not permitted"})
    if (contains(line, w)) return true;
  return false;
}

struct Folder {
  const char* path;
  const char* node;  // head of a node's name
};
constexpr Folder kVerbs{"/dev/infiniband", "uverbs"}, kImex{"/dev/nvidia-caps-imex-channels", "channel"};

// A listing of the folder: its nodes, or that it was listed and holds none.
struct Listing {
  std::set<std::string> nodes;
  bool missing = false, other = false;  // other: something of the folder was listed, no node
};

Listing read_folder(std::string_view text, const Folder& folder) {
  Listing out;
  bool command_lists = false;
  for (std::string_view raw : lines(text)) {
    const std::string line = clean_pasted_line(raw);
    const std::string_view t = trim(line);
    if (starts_with(t, "$ ")) {
      command_lists =
          contains(t, folder.path) && whole(behind(t, folder.path), folder.node) && !contains(t, "|");
      continue;
    }
    if (starts_with(t, "ls:") || contains(t, " ls: ")) {
      out.missing |= whole(behind(t, folder.path), folder.node) && !denied(t);
      continue;
    }
    if (starts_with(t, "total ") || contains(t, "rdma_cm")) out.other |= command_lists;
    for (std::string_view word : split_ws(t))
      if (numbered(last_part(word), folder.node)) out.nodes.insert(std::string(last_part(word)));
  }
  return out;
}

}  // namespace

void read_device_nodes(std::string_view text, const std::string& source, Facts& facts) {
  const Listing verbs = read_folder(text, kVerbs), imex = read_folder(text, kImex);
  PasteFacts& p = facts.paste;
  const bool no_device = contains(text, "No IB devices found") ||
                         contains(text, "Failed to get IB devices list") ||
                         contains(text, "Unable to get RDMA device list");
  if (!verbs.nodes.empty()) {
    p.verbs_nodes = known(true, source);
    p.num_verbs_nodes = std::max(p.num_verbs_nodes, int(verbs.nodes.size()));
    for (const auto& n : verbs.nodes) facts.container.devices.push_back("/dev/infiniband/" + n);
  } else if (!p.verbs_nodes.ok() && (verbs.missing || verbs.other || no_device)) {
    p.verbs_nodes = known(false, source);
  }
  if (!imex.nodes.empty())
    facts.driver.imex_channel = known(imex.nodes.count("channel0") > 0, source);
  else if (!facts.driver.imex_channel.ok() && (imex.missing || imex.other))
    facts.driver.imex_channel = known(false, source);
}

void read_service_state(std::string_view text, const std::string& source, Facts& facts) {
  std::vector<std::string> asked;  // units of `is-active`, one answer a line
  size_t answers = 0;
  for (std::string_view raw : lines(text)) {
    const std::string line = clean_pasted_line(raw);
    const std::string_view t = trim(line);
    if (starts_with(t, "$ ")) {
      asked.clear();
      answers = 0;
      if (size_t at = t.find("is-active"); at != t.npos)
        for (auto w : split_ws(t.substr(at + 9)))
          if (!starts_with(w, "-")) asked.emplace_back(w);
      continue;
    }
    if (contains(t, "could not be found") && contains(t, "nvidia-imex")) {
      facts.driver.imex = known<std::string>("not-found", source);
    } else if (starts_with(t, "Active: ")) {
      auto words = split_ws(t);
      if (words.size() > 1) facts.driver.imex = known(std::string(words[1]), source);
    } else if (!asked.empty() && split_ws(t).size() == 1 && answers < asked.size()) {
      if (contains(asked[answers++], "nvidia-imex")) facts.driver.imex = known(std::string(t), source);
    }
  }
}

}  // namespace ep
