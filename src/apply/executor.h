// Scheduling of a plan's steps: predicate, consent, actions, predicate; side by side where they do not depend
// on each other; a reboot alone and last. Internal to apply; apply.h is the door.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "apply/apply.h"
#include "apply/job.h"

namespace ep {

class Executor {
 public:
  Executor(const Plan& plan, Site& site, World& world, const JournalText& past);
  ApplyReport run();

 private:
  enum class Readiness { ready, wait, blocked };
  void look_first();
  void ask_consent();
  void refuse_what_is_elsewhere();
  void work();
  Readiness readiness(size_t i) const;
  bool brought_along(size_t i);
  void run_step(size_t i);
  Result<> run_actions(size_t i, Job& job);
  Result<> run_action(size_t step, size_t index, Job& job);
  void run_reboot(size_t i);
  bool rebooted_in_vain(const Step& step) const;
  Predicate at_mirror(Predicate p) const;
  Outcome holds_all(const std::vector<Predicate>& predicates);
  void finish(size_t i, StepState state, std::string reason = {}, std::string next = {});
  bool stopped() const;
  bool is_reboot(size_t i) const;
  std::set<std::string> cut_off() const;
  std::string again(const std::string& flags = {}) const;
  std::string again_on_host() const;
  static bool only_where_it_runs(const Step& step);

  const Plan& plan_;
  Site& site_;
  World& world_;
  const JournalText& past_;
  ApplyReport report_;
  std::map<std::string, size_t> index_;
  std::set<Risk> consent_;

  std::mutex mutex_;  // guards states_ and report_
  std::condition_variable changed_;
  enum class Where { waiting, running, over };
  std::vector<Where> where_;
  int num_running_ = 0;
  bool journal_broken_ = false;
  std::mutex world_mutex_;
};

/// Ids unique, needs known and earlier, paths sane: what a plan must be before anything is touched.
Result<> check_plan(const Plan& plan);

}  // namespace ep
