// Inside src/plan only: the bench that steps are made on. Each maker looks at facts and choices and hands a
// step to `consider`, which keeps it, or files it under "skipped" with the fact that makes it unnecessary.
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/words.h"
#include "plan/planner.h"
#include "plan/predicates.h"
#include "plan/wheels.h"

namespace ep {

struct Build {
  const Facts& facts;
  const Recipe& recipe;
  const Stack& stack;
  const Platform* platform;
  const Solution& solution;
  const Wishes& wishes;
  const PlanOptions& options;
  Plan& plan;
  Words w;
  std::map<std::string, std::vector<std::string>> wants;  ///< of every step considered, kept or not
  std::set<std::string> unanswered = {};  ///< "os", "machine": steps hang on them and the facts do not say

  const Component& component(const std::string& id) const { return *recipe.component(id); }
  std::string version(const std::string& id) const;
  const Release* release(const std::string& id) const;
  std::string option(std::string_view name) const { return solution.option(name); }
  std::string phase(const std::string& id) const;
  std::string below(const std::string& path) const { return options.prefix + "/" + path; }
  std::string venv() const { return below("venv"); }
  std::string cuda_home() const;
  std::string cuda_major() const;
  std::vector<std::string> archs() const;    ///< "100": what to build for
  std::string arch_list(bool dotted) const;  ///< "10.0" or "100", joined by ;
  bool root() const { return facts.user.is_root.value_or(false); }
  bool apt() const;
  bool one_node() const { return option("nodes") == "1"; }
  /// Processor architecture, for what is fetched by it; unknown is written down as a question.
  std::string machine();
  /// Lowest driver that will do: what the toolkit needs, or the branch that was asked for.
  std::string driver_floor() const;

  /// Keeps the step unless its `before` holds; `needs` are step ids that must come first when they are in the
  /// plan.
  void consider(Step step, std::vector<std::string> needs = {});
  void skip(const std::string& id, const std::string& title, const std::string& reason);
  bool platform_skips(const std::string& id, const std::string& step_id, const std::string& title);
  void note(std::string code, Severity severity, std::string title, std::string cause,
            std::vector<std::string> fix = {});
};

void make_driver(Build& b);
void make_cuda(Build& b);
void make_cuda_link(Build& b);
void make_doca_ofed(Build& b);
void make_rdma_names(Build& b);
void make_driver_options(Build& b);
void make_peermem(Build& b);
void make_limits(Build& b);
void make_build_tools(Build& b);
void make_reboot(Build& b);
void make_prefix(Build& b);

void make_gdrcopy(Build& b);
void make_gdrdrv(Build& b);
void make_python(Build& b);
void make_torch(Build& b);
void make_nccl(Build& b);
void make_nvshmem(Build& b);
void make_deepep(Build& b);
void make_nic_map(Build& b);
void make_env(Build& b);
void make_consumer(Build& b);

inline bool lists(const std::vector<std::string>& items, std::string_view word) {
  return std::find(items.begin(), items.end(), word) != items.end();
}

/// The plan of a stack whose versions are settled.
Planned build_plan(const Facts& facts, const Recipe& recipe, const Stack& stack, const Platform* platform,
                   const PlanOptions& options, const Wishes& wishes, Solution solution);
void add_notes(Build& b);
/// Why this plan is of the local lane although there are GPUs.
void note_why_local(Plan& plan, const Facts& facts, const Recipe& recipe, const PlanOptions& options);

/// The lowest driver that a branch's packages bring.
std::string driver_of_branch(const Release& branch);

/// A step below the prefix that needs the network and no root.
Step user_step(const Build& b, std::string id, const std::string& component, std::string title);
bool has_trait(const Release* r, const char* trait);
bool has_step(const Build& b, std::string_view id);
/// A root step that installs distribution packages.
Step packages_step(Build& b, std::string id, const std::string& component, std::string title,
                   std::vector<std::string> names);
/// The repository step that a release's packages come from; empty when none is named. `needs` of the packages
/// step.
std::string make_repo(Build& b, const std::string& component, const std::string& part);
/// First seven digits, for the names of folders.
std::string short_commit(const std::string& commit);
/// The commit to build: a wish, or the one on record; empty, with a note that says what to do, when neither
/// is.
std::string commit_of(Build& b, const std::string& component);
/// One wheel over what torch pinned, without touching its other dependencies.
void make_override(Build& b, const std::string& component, const std::string& name);
/// NVSHMEM stands in a folder below the prefix (built or unpacked), not in the environment as a wheel.
bool own_nvshmem(const Build& b);

/// Says which wheels the environment is made of, for the lock.
void pin_wheels(const Build& b, Planned& out);

/// Writes ROOT/.epready-part: what facts/parts.cpp reads back.
WriteFile stamp_file(const std::string& root, const std::map<std::string, std::string>& values);
Predicate part_predicate(const std::string& name, const std::string& prefix,
                         const std::map<std::string, std::string>& values);

}  // namespace ep
