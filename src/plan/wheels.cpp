#include "plan/wheels.h"

#include <algorithm>

#include "base/text.h"

namespace ep {
namespace {

/// Of this machine or of any.
std::vector<std::string> of_machine(const std::vector<std::string>& files, const std::string& machine) {
  std::vector<std::string> out;
  for (const auto& f : files)
    if (contains(f, "_" + machine + ".") || contains(f, "-any.")) out.push_back(f);
  return out;
}

/// An install that needs nothing but files of the default index, each by its hash.
bool by_hash_alone(const PipInstall& pip) {
  return pip.no_deps && !pip.no_build_isolation && pip.index_url.empty() && pip.extra_args.empty() &&
         pip.env.empty() && !pip.requirements.empty() &&
         std::all_of(pip.requirements.begin(), pip.requirements.end(),
                     [](const auto& r) { return contains(r, " --hash="); });
}

}  // namespace

std::string requirement_name(const std::string& requirement) {
  return requirement.substr(0, requirement.find_first_of("=<>!~; "));
}

std::vector<std::string> wheels_for(const Release& release, const std::string& requirement,
                                    const std::string& machine) {
  const std::string name = replace_all(requirement_name(requirement), "-", "_") + "-";
  auto out = of_machine(release.wheels, machine);
  std::erase_if(out, [&](const auto& w) { return !starts_with(w, name); });
  return out;
}

std::string hashed_requirement(const std::string& requirement, const std::vector<std::string>& files) {
  std::string out = requirement;
  for (const auto& f : files) out += " --hash=sha256:" + f.substr(f.rfind(' ') + 1);
  return out;
}

std::vector<LockedWheel> closed_set(const WheelSet& set, const std::string& machine,
                                    const std::vector<std::string>& except) {
  std::vector<LockedWheel> out;
  for (const auto& wheel : set.wheels) {
    LockedWheel w = wheel;
    w.files = of_machine(wheel.files, machine);
    const bool left_out =
        std::find(except.begin(), except.end(), requirement_name(w.requirement)) != except.end();
    if (!w.files.empty() && !left_out) out.push_back(std::move(w));
  }
  return out;
}

std::vector<std::string> closed_requirements(const WheelSet& set, const std::string& machine,
                                             const std::vector<std::string>& except) {
  std::vector<std::string> out;
  for (const auto& w : closed_set(set, machine, except))
    out.push_back(hashed_requirement(w.requirement + (w.marker.empty() ? "" : " ; " + w.marker), w.files));
  return out;
}

std::vector<std::string> join_installs(Plan& plan, std::string_view id) {
  std::vector<std::string> joined;
  PipInstall* first = nullptr;
  for (auto& step : plan.steps) {
    if (step.actions.size() != 1) continue;
    auto* pip = std::get_if<PipInstall>(&step.actions[0]);
    if (!pip || !by_hash_alone(*pip)) continue;
    if (step.id == id) {
      first = pip;
    } else if (first && pip->venv == first->venv) {
      std::erase_if(first->requirements, [&](const auto& mine) {
        return std::any_of(pip->requirements.begin(), pip->requirements.end(), [&](const auto& theirs) {
          return requirement_name(theirs) == requirement_name(mine);
        });
      });
      first->requirements.insert(first->requirements.begin() + 1, pip->requirements.begin(),
                                 pip->requirements.end());
      joined.push_back(step.id);
    }
  }
  return joined;
}

}  // namespace ep
