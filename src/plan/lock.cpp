#include "plan/lock.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "plan/wheels.h"

namespace ep {
namespace {

constexpr std::string_view kSchema = "schema = \"epready-lock-1\"";
constexpr std::string_view kDefaultIndex = "the default package index, or its mirror";

/// Lines of a component under its id, so that differences can be named.
std::map<std::string, std::string> blocks(std::string_view text) {
  std::map<std::string, std::string> out;
  std::string id = "head";
  for (auto line : lines(text)) {
    if (line.empty() || line[0] == '#' || line == "[[component]]" || line == "[[wheel]]") continue;
    if (starts_with(line, "id = ")) id = std::string(line.substr(5));
    out[id] += std::string(line) + "\n";
  }
  return out;
}

std::string list_of(const std::vector<std::string>& files) {
  std::string out = "wheels = [\n";
  for (const auto& f : files) out += fmt::format("  \"{}\",\n", f);
  return out + "]\n";
}

std::string machine_of(const Planned& p) {
  const auto found = p.solution.scope.find("arch");
  return found == p.solution.scope.end() || !found->second.present ? "x86_64" : found->second.text;
}

/// The files of a component: of its release, or of the closed set that holds it.
std::vector<std::string> files_of(const Planned& p, const Choice& c, const std::string& requirement) {
  if (c.component == "torch" && !p.torch_index.empty()) return {};  // only the default index carries these
  auto out = wheels_for(*c.release, requirement, machine_of(p));
  if (out.empty() && p.wheels)
    for (const auto& w : closed_set(*p.wheels, machine_of(p), p.overridden))
      if (w.requirement == requirement) out = w.files;
  return out;
}

std::string component_text(const Planned& p, const Choice& c) {
  std::string out = fmt::format("\n[[component]]\nid = \"{}\"\nversion = \"{}\"\n", c.component, c.version);
  const std::string requirement = fill_in(c.release->requirement, p.solution.scope);
  if (!requirement.empty()) {
    const bool other = c.component == "torch" && !p.torch_index.empty();
    out += fmt::format("requirement = \"{}\"\norigin = \"{}\"\n", requirement,
                       other ? p.torch_index : kDefaultIndex);
    const auto files = files_of(p, c, requirement);
    if (!files.empty()) out += list_of(files);
    if (other)
      out += "unpinned = \"its hash and what it depends on: that index decides\"\n";
    else if (files.empty())
      out += "unpinned = \"its hash is not on record, nor what it depends on: the index decides\"\n";
  }
  const auto by_hand = p.commits.find(c.component);
  const std::string commit = by_hand != p.commits.end() ? by_hand->second : c.release->git_commit;
  if (!commit.empty()) out += fmt::format("commit = \"{}\"\n", commit);
  if (!c.release->packages.empty()) out += fmt::format("packages = \"{}\"\n", join(c.release->packages, " "));
  return out;
}

/// What comes in beside the components, file by file.
std::string wheels_text(const Planned& p) {
  std::string out;
  if (!p.wheels) return out;
  for (const auto& w : closed_set(*p.wheels, machine_of(p), p.overridden)) {
    const std::string name = requirement_name(w.requirement);
    if (name == "torch") continue;  // a component of its own
    out += fmt::format("\n[[wheel]]\nid = \"{}\"\nversion = \"{}\"\n", name,
                       w.requirement.substr(name.size() + 2));
    if (!w.marker.empty()) out += fmt::format("marker = \"{}\"\n", w.marker);
    out += fmt::format("origin = \"{}\"\n{}", kDefaultIndex, list_of(w.files));
  }
  return out;
}

}  // namespace

std::string lock_text(const Planned& planned) {
  const Plan& p = planned.plan;
  std::string out = "# Written by epready plan --lock. The same facts and data give the same bytes.\n";
  out += fmt::format("{}\nlane = \"{}\"\nstack = \"{}\"\nconsumer = \"{}\"\nplatform = \"{}\"\n", kSchema,
                     p.lane, p.stack, p.consumer, p.platform);
  for (const auto& c : planned.solution.choices) out += component_text(planned, c);
  return out + wheels_text(planned);
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
