#include "verify/nodes.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>

#include "base/text.h"

namespace ep {
namespace {

std::optional<int> whole(std::string_view s) {
  int value = 0;
  const auto r = std::from_chars(s.data(), s.data() + s.size(), value);
  return r.ec == std::errc() && r.ptr == s.data() + s.size() && !s.empty() ? std::optional(value)
                                                                           : std::nullopt;
}

Failure usage(std::string what, std::string why) {
  return fail(
      ErrorKind::usage, std::move(what), "verify -r 3", std::move(why),
      "on every node: epready verify -r 3 --lane v1 --nodes 2 --node-rank 0 --master FIRST_NODE:29500 "
      "(the second with --node-rank 1)");
}

class Reading {
 public:
  Reading(const std::map<std::string, std::string>& environment) : environment_(environment) {}

  std::string text(const char* name) const {
    auto it = environment_.find(name);
    return it == environment_.end() ? std::string() : it->second;
  }
  /// Error when the variable is there and no whole number.
  Result<std::optional<int>> number(const char* name) const {
    const std::string t = text(name);
    if (t.empty()) return std::optional<int>();
    if (auto n = whole(t)) return n;
    return usage(fmt::format("{}={} is not a number", name, t), {});
  }

 private:
  const std::map<std::string, std::string>& environment_;
};

struct Source {
  const char *name, *count, *rank, *local_size;  ///< local_size: must be 1, where the launcher says it
};
// In the order in which they are believed.
constexpr Source kSources[] = {
    {"WORLD_SIZE and RANK", "WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE"},
    {"Slurm", "SLURM_NNODES", "SLURM_NODEID", "SLURM_NTASKS_PER_NODE"},
    {"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}};

Result<> split_master(const std::string& text, Nodes& out) {
  const size_t colon = text.rfind(':');
  const bool bracket = !text.empty() && text[0] == '[';
  const bool bare_v6 = !bracket && colon != text.npos && text.find(':') != colon;
  if (colon == text.npos || bare_v6 || (bracket && text[colon - 1] != ']')) {
    out.master = bracket ? text.substr(1, text.size() - 2) : text;
    return {};
  }
  const auto port = whole(std::string_view(text).substr(colon + 1));
  if (!port || *port < 1 || *port > 65535)
    return usage("--master " + text + " has no valid port", "1 to 65535");
  out.port = *port;
  out.master = bracket ? text.substr(1, colon - 2) : text.substr(0, colon);
  return {};
}

}  // namespace

std::string first_slurm_host(const std::string& list) {
  const size_t open = list.find('['), comma = list.find(',');
  if (open == list.npos || (comma != list.npos && comma < open)) return list.substr(0, comma);
  const size_t end = list.find_first_of(",-]", open);
  if (end == list.npos) return {};
  const size_t close = list.find(']', open);
  if (close == list.npos) return {};
  const size_t after = list.find(',', close);
  const std::string tail = list.substr(close + 1, after == list.npos ? list.npos : after - close - 1);
  if (tail.find('[') != tail.npos) return {};  // several brackets in one name: not guessed
  return list.substr(0, open) + list.substr(open + 1, end - open - 1) + tail;
}

Result<Nodes> nodes_of(const std::map<std::string, std::string>& environment, const NodeFlags& flags) {
  const Reading env(environment);
  Nodes out;
  std::optional<int> count, rank;
  if (flags.count > 0) count = flags.count, out.source = "flags";
  if (flags.rank >= 0) rank = flags.rank;
  for (const auto& s : kSources) {
    if (count && rank) break;
    auto n = env.number(s.count), r = env.number(s.rank), local = env.number(s.local_size);
    if (!n) return Failure(n.error());
    if (!r) return Failure(r.error());
    if (!local) return Failure(local.error());
    if (!*n || !*r) continue;
    if (*local && **local > 1)
      return usage(fmt::format("{} processes on this node ({})", **local, s.local_size),
                   "DeepEP's tests start one rank a GPU themselves: one process a node");
    if (!count) count = *n;
    if (!rank) rank = *r;
    out.source = out.source.empty() ? s.name : out.source + ", " + s.name;
  }
  if (!count || !rank) return usage("which node of how many is this?", "neither flags nor a launcher say it");
  if (*count < 2) return usage(fmt::format("{} node", *count), "levels 3 and 4 run between nodes");
  if (*rank < 0 || *rank >= *count)
    return usage(fmt::format("node {} of {}", *rank, *count), "node ranks count from 0");
  out.count = *count;
  out.rank = *rank;
  if (auto port = env.number("MASTER_PORT"); !port)
    return Failure(port.error());
  else if (*port)
    out.port = **port;
  std::string master = flags.master;
  if (master.empty()) master = env.text("MASTER_ADDR");
  if (master.empty()) master = first_slurm_host(env.text("SLURM_JOB_NODELIST"));
  if (master.empty()) return usage("the first node's address is not known", "--master or MASTER_ADDR");
  if (flags.master.empty())
    out.master = master;
  else if (auto ok = split_master(master, out); !ok)
    return Failure(ok.error());
  if (out.master.empty()) return usage("--master " + master + " names no host", {});
  return out;
}

}  // namespace ep
