#include "plan/lock.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "plan/build.h"

namespace ep {
namespace {

constexpr std::string_view kSchema = "schema = \"epready-lock-1\"";

/// Lines of a component under its id, so that differences can be named.
std::map<std::string, std::string> blocks(std::string_view text) {
  std::map<std::string, std::string> out;
  std::string id = "head";
  for (auto line : lines(text)) {
    if (line.empty() || line[0] == '#' || line == "[[component]]") continue;
    if (starts_with(line, "id = ")) id = std::string(line.substr(5));
    out[id] += std::string(line) + "\n";
  }
  return out;
}

/// Whether a step takes this component from an index of its own.
bool other_index(const Plan& plan, const std::string& component) {
  for (const auto& s : plan.steps)
    for (const auto& a : s.actions)
      if (const auto* pip = std::get_if<PipInstall>(&a);
          pip && s.component == component && !pip->index_url.empty())
        return true;
  return false;
}

}  // namespace

std::string lock_text(const Planned& planned) {
  const Plan& p = planned.plan;
  std::string out = "# Written by epready plan --lock. The same facts and data give the same bytes.\n";
  out += fmt::format("{}\nlane = \"{}\"\nstack = \"{}\"\nconsumer = \"{}\"\nplatform = \"{}\"\n", kSchema,
                     p.lane, p.stack, p.consumer, p.platform);
  for (const auto& c : planned.solution.choices) {
    out += fmt::format("\n[[component]]\nid = \"{}\"\nversion = \"{}\"\n", c.component, c.version);
    const std::string requirement = fill_in(c.release->requirement, planned.solution.scope);
    if (!requirement.empty()) out += fmt::format("requirement = \"{}\"\n", requirement);
    const auto machine = planned.solution.scope.find("arch");
    const auto wheels =
        requirement.empty()
            ? std::vector<std::string>()
            : wheels_for(*c.release, requirement,
                         machine == planned.solution.scope.end() ? "x86_64" : machine->second.text);
    // Only the default index carries these files.
    if (!wheels.empty() && !other_index(p, c.component)) {
      out += "wheels = [\n";
      for (const auto& w : wheels) out += fmt::format("  \"{}\",\n", w);
      out += "]\n";
    }
    std::string commit = c.release->git_commit;
    for (const auto& s : p.steps)
      for (const auto& a : s.actions)
        if (const auto* git = std::get_if<GitCheckout>(&a);
            git && s.component == c.component && commit.empty())
          commit = git->commit;
    if (!commit.empty()) out += fmt::format("commit = \"{}\"\n", commit);
    if (!c.release->packages.empty())
      out += fmt::format("packages = \"{}\"\n", join(c.release->packages, " "));
  }
  return out;
}

Result<> check_lock(std::string_view text, const std::string& file, const Planned& planned) {
  if (!contains(text, kSchema))
    return fail(ErrorKind::malformed, "not a lock of this version", file,
                fmt::format("expected a line {}", kSchema), "epready plan --lock");
  const auto locked = blocks(text), now = blocks(lock_text(planned));
  std::vector<std::string> differs;
  const auto show = [](std::string s) { return replace_all(std::string(trim(s)), "\n", ", "); };
  for (const auto& [id, body] : now) {
    const auto found = locked.find(id);
    if (found == locked.end())
      differs.push_back(fmt::format("{} is not in the lock", show(body)));
    else if (found->second != body)
      differs.push_back(fmt::format("locked {}; now {}", show(found->second), show(body)));
  }
  for (const auto& [id, body] : locked)
    if (!now.count(id)) differs.push_back(fmt::format("{} is locked and not part of the plan", show(body)));
  if (differs.empty()) return {};
  return fail(ErrorKind::drifted, "the lock is stale", file, join(differs, "; "),
              "epready plan --lock  (to accept the new answer)");
}

}  // namespace ep
