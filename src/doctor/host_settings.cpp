// Observations of settings against the host they are for: variables in force, lines of /etc/nccl.conf, and
// variables that files set at the next login or start of a service.
#include <algorithm>

#include "base/text.h"
#include "doctor/host_notes.h"

namespace ep {

namespace {

// "path:3: NAME=value"
struct WrittenLine {
  std::string path, name, value;
  int line = 0;
};
std::optional<WrittenLine> taken_apart(const std::string& text) {
  const size_t gap = text.find(": "), colon = gap == std::string::npos ? gap : text.rfind(':', gap - 1);
  const size_t equals = gap == std::string::npos ? gap : text.find('=', gap);
  if (colon == std::string::npos || equals == std::string::npos) return std::nullopt;
  WrittenLine w;
  w.path = text.substr(0, colon);
  w.line = int(parse_int(text.substr(colon + 1, gap - colon - 1)).value_or(0));
  w.name = trim(std::string_view(text).substr(gap + 2, equals - gap - 2));
  w.value = trim(std::string_view(text).substr(equals + 1));
  return w;
}

// One word of a list: "=mlx5_0:1" names exactly, "mlx5" any that begin so, "^x" leaves out.
std::vector<std::string> list_words(std::string_view value) {
  if (starts_with(value, "^")) return {};
  if (starts_with(value, "=")) value.remove_prefix(1);
  std::vector<std::string> out;
  for (auto word : split(value, ',')) {
    word = trim(word);
    if (!word.empty() && word[0] != '^') out.emplace_back(word);
  }
  return out;
}

class Settings : HostNotes {
 public:
  using HostNotes::HostNotes;

  void run() {
    written();
    nic_lists();
    interfaces();
    visible_gpus();
  }

 private:
  std::string in_force(const char* name) const {
    const Observation* o = o_.best(std::string("env.") + name);
    return o ? o->value : std::string();
  }
  std::string place(const char* name) const {
    const Observation* o = o_.best(std::string("env.") + name);
    return o && o->where.source != "environment" ? o->where.source + ":" + std::to_string(o->where.line)
                                                 : "environment";
  }

  /// NCCL reads its files in every process; a variable of the process wins over them.
  void written() {
    for (const auto& text : f_.nccl_conf)
      if (auto w = taken_apart(text); w && starts_with(w->name, "NCCL_") && !f_.environment.count(w->name))
        o_.add("env." + w->name, w->value, {w->path, w->line, w->name + "=" + w->value}, Trust::running);
    for (const auto& text : f_.written_environment)
      if (auto w = taken_apart(text); w && !f_.environment.count(w->name))
        o_.add("env." + w->name, w->value, {w->path, w->line, w->name + "=" + w->value}, Trust::installed);
  }

  struct ListedNics {
    const char* variable;
    bool by_prefix;  ///< NCCL: a word without "=" in front names all devices that begin so
    int field;       ///< where the name stands among parts between colons
  };

  void nic_lists() {
    const bool complete = f_.rdma_readable.value_or(false) || f_.paste.verbs_list_complete;
    if (!complete || f_.rdma.empty()) return;
    static const ListedNics kLists[] = {{"NCCL_IB_HCA", true, 0},
                                        {"NVSHMEM_HCA_LIST", false, 0},
                                        {"NVSHMEM_HCA_PE_MAPPING", false, 0},
                                        {"DEEP_EP_DEVICE_TO_HCA_MAPPING", false, 1},
                                        {"EP_NIC_NAME", false, 0}};
    for (const ListedNics& l : kLists) {
      const std::string value = in_force(l.variable);
      size_t there = 0;
      std::vector<std::string> missing;
      for (const auto& word : list_words(value)) {
        const auto parts = split(word, ':');
        if (size_t(l.field) >= parts.size()) continue;
        const std::string_view name = trim(parts[size_t(l.field)]);
        const bool prefix = l.by_prefix && !starts_with(value, "=");
        const bool found = std::any_of(f_.rdma.begin(), f_.rdma.end(), [&](const RdmaDevice& d) {
          return prefix ? starts_with(d.name, name) : d.name == name;
        });
        if (found)
          ++there;
        else if (!name.empty())
          missing.emplace_back(name);
      }
      if (there + missing.size() == 0) continue;
      const std::string seen = std::string(l.variable) + "=" + value;
      o_.add("nic.listed",
             missing.empty() ? "all"
             : there         ? "some"
                             : "none",
             {place(l.variable), 0, missing.empty() ? seen : seen + "; not here: " + join(missing, ", ")},
             Trust::running);
    }
    prefix();
  }

  /// NVSHMEM_HCA_PREFIX=mlx5 on a host whose devices are called rocep* leaves none.
  void prefix() {
    const std::string value = in_force("NVSHMEM_HCA_PREFIX");
    if (value.empty() || value[0] == '^') return;
    const bool found = std::any_of(f_.rdma.begin(), f_.rdma.end(),
                                   [&](const RdmaDevice& d) { return starts_with(d.name, value); });
    o_.add("nic.listed", found ? "all" : "none",
           {place("NVSHMEM_HCA_PREFIX"), 0,
            "NVSHMEM_HCA_PREFIX=" + value + ", devices: " + f_.rdma.front().name + " ..."},
           Trust::running);
  }

  /// CUDA takes the list up to the first entry that does not exist or was named before.
  void visible_gpus() {
    const std::string value = in_force("CUDA_VISIBLE_DEVICES");
    if (value.empty() || f_.gpus.empty() || !f_.container.runtime.ok()) return;
    std::vector<long long> seen;
    bool good = true;
    for (auto word : split(value, ',')) {
      auto n = parse_int(trim(word));
      if (!n || word.find_first_not_of(" 0123456789") != word.npos) return;  // UUIDs, MIG names, -1
      good &= *n < (long long)f_.gpus.size() && std::find(seen.begin(), seen.end(), *n) == seen.end();
      seen.push_back(*n);
    }
    flag("gpu.visible_ok", good, place("CUDA_VISIBLE_DEVICES"),
         "CUDA_VISIBLE_DEVICES=" + value + ", GPUs here: " + std::to_string(f_.gpus.size()));
  }

  void interfaces() {
    if (!f_.interfaces_readable.value_or(false) || f_.interfaces.empty()) return;
    for (auto [variable, by_prefix] : {std::pair{"NCCL_SOCKET_IFNAME", true},
                                       {"NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", true},
                                       {"GLOO_SOCKET_IFNAME", false}}) {
      const std::string value = in_force(variable);
      const auto words = list_words(value);
      if (words.empty()) continue;
      const bool prefix = by_prefix && !starts_with(value, "=");
      bool found = false, up = false;
      for (const auto& word : words)
        for (const auto& name : f_.interfaces) {
          if (prefix ? !starts_with(name, word) : name != word) continue;
          found = true;
          auto it = std::find_if(f_.netdevs.begin(), f_.netdevs.end(),
                                 [&, n = name](auto& d) { return d.name == n; });
          up |= it == f_.netdevs.end() || it->operstate.value_or("up") != "down";
        }
      o_.add("net.bootstrap",
             !found ? "missing"
             : up   ? "up"
                    : "down",
             {place(variable), 0, std::string(variable) + "=" + value}, Trust::running);
    }
  }
};

}  // namespace

void observe_settings(const Facts& f, Observed& o) {
  Settings(f, o).run();
}

}  // namespace ep
