// Inside src/plan only: the bench on which compute_env's topics lay their lines.
#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "plan/env.h"

namespace ep {

struct EnvWork {
  const Facts& facts;
  const Topology& topology;
  const Variables& variables;
  const EnvRequest& request;
  EnvPlan out;

  // A line is written only when the version at hand knows the variable.
  void set(const char* name, std::string value, std::string en, std::string zh) {
    const Variable* v = variables.find(name);
    std::string version = v && v->owner == "nvshmem" ? out.nvshmem : v && v->owner == "nccl" ? out.nccl : "";
    if (v && !in_force(*v, version)) {
      leave(name, std::move(value),
            fmt::format("{} {} does not know it (from {})", v->owner, version, v->since),
            fmt::format("{} {} 不认识该变量（自 {} 起）", v->owner, version, v->since));
      return;
    }
    out.lines.push_back({name, std::move(value), {std::move(en), std::move(zh)}});
  }
  /// A list of folders that grows at its head: what it holds already stays behind it.
  void prepend(const char* name, std::string folder, std::string en, std::string zh) {
    EnvLine l{name, std::move(folder), {std::move(en), std::move(zh)}, true, {}};
    const auto now = facts.environment.find(name);
    const bool inside = !facts.container.runtime.ok() || *facts.container.runtime != "none";
    if (now != facts.environment.end() && inside)
      for (const auto part : split(now->second, ':'))
        if (!part.empty() && part != l.value) l.rest += (l.rest.empty() ? "" : ":") + std::string(part);
    out.lines.push_back(std::move(l));
  }
  void leave(const char* name, std::string value, std::string en, std::string zh) {
    out.left_out.push_back({name, std::move(value), {std::move(en), std::move(zh)}});
  }
  bool nvshmem_at_least(const char* v) const {
    return out.nvshmem.empty() || compare_versions(VersionOrder::dotted, out.nvshmem, v) >= 0;
  }
};

/// Google's gIB: all of its variables or none, by what its folder holds.
void env_gib(EnvWork& w);
/// The Python environment that DeepEP lives in.
void env_python(EnvWork& w);

}  // namespace ep
