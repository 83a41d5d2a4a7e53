// read_status: what the journal of a prefix says, for people and for `epready status`. Takes no lock, changes
// nothing.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "apply/apply.h"
#include "apply/journal.h"
#include "apply/lock.h"
#include "base/text.h"
#include "plan/plan_json.h"

namespace ep {
namespace {

StepState state_of(std::string_view word) {
  for (StepState s : {StepState::satisfied, StepState::done, StepState::failed, StepState::declined,
                      StepState::blocked, StepState::elsewhere, StepState::reboot, StepState::interrupted})
    if (to_string(s) == word) return s;
  return StepState::not_run;
}

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Result<StatusReport> read_status(const std::string& prefix, const std::string& root) {
  auto tree = Tree::open(root);
  if (!tree) return Failure(tree.error());
  StatusReport out;
  out.prefix = prefix;
  std::string state = tree->real(prefix + "/state");
  auto text = read_journal(state + "/journal.jsonl");
  if (!text) return Failure(text.error());
  out.exists = !text->records.empty() || !text->torn.empty();
  if (!out.exists) return out;
  out.running = PrefixLock::holder(tree->real(prefix));
  for (int line : text->torn)
    out.torn += fmt::format("{}line {} of the journal is torn: skipped", out.torn.empty() ? "" : "; ", line);
  out.plan_path = prefix + "/state/plan.json";
  auto plan = plan_from_json(slurp(state + "/plan.json"));
  std::map<std::string, size_t> index;
  if (plan)
    for (const auto& step : plan->steps) {
      index[step.id] = out.steps.size();
      StepResult r;
      r.id = step.id;
      r.title = step.title;
      out.steps.push_back(std::move(r));
    }
  std::set<std::string> files, packages;
  std::set<long long> undone;
  std::string reboot_boot, begin_boot;
  for (const auto& r : text->records)
    if (r["e"] == "undone") undone.insert(r.value("of", 0LL));
  for (const auto& r : text->records) {
    std::string e = r["e"], id = r.value("step", "");
    bool taken_back = undone.count(r["n"].get<long long>()) != 0;
    if (e == "begin") {
      out.begun = r.value("t", "");
      out.ended.clear();
    } else if (e == "end") {
      out.ended = r.value("t", "");
    } else if (e == "entry" && !taken_back && r.value("now", "") != r.value("stamp", "")) {
      files.insert(r.value("path", ""));
    } else if (e == "packages" && !taken_back) {
      for (const auto& p : r.value("new", std::vector<std::string>{})) packages.insert(p);
    } else if (e == "reboot") {
      reboot_boot = r.value("boot", "");
    } else if ((e == "step" || e == "act") && index.count(id)) {
      StepResult& step = out.steps[index[id]];
      if (e == "step") {
        step.state = state_of(r.value("s", ""));
        step.reason = r.value("reason", "");
      } else if (r.value("s", "") == "started") {
        // An action that began without the step's end: it works now, or was cut off there.
        step.state = out.running.empty() ? StepState::interrupted : StepState::running;
        step.reason = fmt::format("in action {} ({})", r.value("i", 0) + 1, r.value("kind", ""));
      }
    }
  }
  for (auto& step : out.steps) {
    std::string log = prefix + "/log/" + step.id + ".log";
    if (auto there = tree->read(log); there && there->kind == Entry::Kind::file) step.log = log;
  }
  std::string boot = std::string(trim(slurp("/proc/sys/kernel/random/boot_id")));
  out.reboot_pending = !reboot_boot.empty() && reboot_boot == boot &&
                       std::any_of(out.steps.begin(), out.steps.end(),
                                   [](const auto& s) { return s.state == StepState::reboot; });
  out.num_files = files.size();
  out.num_packages = packages.size();
  return out;
}

}  // namespace ep
