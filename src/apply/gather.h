// Gathers what a plan needs into a folder for `apply --offline` (offline.h has its layout). Changes nothing
// on this host outside that folder. Packages and wheels are chosen by this machine's apt and Python, so they
// are gathered only on the plan's own release and architecture.
#pragma once
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "apply/apply.h"
#include "apply/offline.h"
#include "base/result.h"
#include "plan/plan.h"

namespace ep {

struct GatherOptions {
  std::string dir;                             ///< made when it is not there; what is in it already is used
  std::map<std::string, std::string> mirrors;  ///< address prefix -> prefix used instead; longest wins
  /// dpkg status of the host that will be changed (/var/lib/dpkg/status): packages that it has are left out.
  /// Empty: this machine's own when the plan is for it, else none, which gathers every dependency.
  std::string dpkg_status;
  World* world = nullptr;                   ///< null: live_world
  const std::atomic<bool>* stop = nullptr;  ///< Ctrl-C; null: never
};

struct GatherItem {
  std::string what;  ///< "download https://...", "repository ... at COMMIT", "packages a b", "wheels c"
  bool good = false;
  std::string reason, next;  ///< when it is not
};
struct GatherReport {
  std::string dir;
  std::vector<GatherItem> items;
  int num_files = 0, num_repositories = 0;
  uint64_t bytes = 0;  ///< of the files; repositories are not counted
  bool whole = false;  ///< the manifest was written: the folder can be used
  bool interrupted = false;
  double seconds = 0;
  int exit_code() const;  ///< 0 whole, 1 something failed, 5 interrupted
};

/// Errors: before anything was fetched (folder cannot be made, plan not sane). All else is in the report.
Result<GatherReport> gather(const Plan& plan, const GatherOptions& options, Progress& progress);

}  // namespace ep
