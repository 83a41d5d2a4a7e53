// Piece rules of outputs that only the command above them explains: listings of device nodes, the state of a
// service. See paste_rules.h.
#include <algorithm>

#include "base/text.h"
#include "host/paste_rules.h"

namespace ep {
namespace {

bool any_part(std::string_view line, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view p) { return contains(line, p); });
}

// uverbs3, umad0, issm0, channel0: a head and a number.
bool numbered(std::string_view word, std::string_view head) {
  return starts_with(word, head) && word.size() > head.size() && word.size() < head.size() + 5 &&
         std::all_of(word.begin() + long(head.size()), word.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view last_part(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

// A name below /dev/infiniband or /dev/nvidia-caps-imex-channels.
bool node_name(std::string_view word) {
  word = last_part(word);
  for (std::string_view head : {"uverbs", "umad", "issm", "ucm", "channel"})
    if (numbered(word, head)) return true;
  return word == "rdma_cm" || word == "by-ibdev" || word == "by-path";
}

constexpr std::string_view kFolders[] = {"/dev/infiniband", "/dev/nvidia-caps-imex-channels"};

bool names_folder(std::string_view line) {
  return std::any_of(std::begin(kFolders), std::end(kFolders), [&](auto f) { return contains(line, f); });
}

}  // namespace

bool device_nodes_line(const PasteLine& l) {
  if (l.words.empty()) return false;
  // "ls: cannot access '/dev/infiniband': No such file or directory", in whatever language.
  if (starts_with(l.text, "ls:") || contains(l.text, " ls: ")) return names_folder(l.text);
  // ibv_devices and ibv_devinfo where no device can be opened.
  if (any_part(l.text,
               {"No IB devices found", "Failed to get IB devices list", "Unable to get RDMA device list"}))
    return true;
  const bool listed = names_folder(l.command);
  if (listed && (starts_with(l.text, "total ") || l.text == "/dev/infiniband:")) return true;
  // Long form: "crw-rw-rw- 1 root root 231, 192 Nov 30 12:00 uverbs0".
  if (l.words.size() >= 9 && (l.text[0] == 'c' || l.text[0] == 'd') && l.words[0].size() >= 10)
    return node_name(l.words.back()) && (listed || contains(l.words.back(), "verbs"));
  const bool all = std::all_of(l.words.begin(), l.words.end(), node_name);
  return all && (listed || names_folder(l.text) || contains(l.text, "uverbs"));
}

bool service_state_more(const PasteLine& l) {
  for (std::string_view head : {"Loaded: ", "Active: ", "Drop-In: ", "Docs: ", "Process: ", "Main PID: "})
    if (starts_with(l.text, head)) return true;
  return service_state_line(l);
}

bool service_state_line(const PasteLine& l) {
  if (contains(l.text, "nvidia-imex.service")) return true;  // the head of status, or "could not be found"
  if (!contains(l.command, "nvidia-imex")) return false;
  if (!contains(l.command, "is-active")) return false;
  return l.words.size() == 1 && (l.text == "active" || l.text == "inactive" || l.text == "failed" ||
                                 l.text == "activating" || l.text == "deactivating" || l.text == "unknown");
}

}  // namespace ep
