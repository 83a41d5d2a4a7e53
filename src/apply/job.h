// Site: what all steps of one run share. Job: one step under way, with its log and its children. Actions are
// free functions over a Job (actions.h); scheduling is the executor's.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "apply/apply.h"
#include "apply/journal.h"
#include "apply/keeper.h"
#include "apply/offline.h"
#include "apply/tree.h"

namespace ep {

struct Site {
  Tree tree;
  std::string prefix;  ///< inside the tree
  const ApplyOptions* options = nullptr;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Keeper> keeper;
  HostSituation host;
  Progress* progress = nullptr;
  std::mutex progress_mutex;
  std::mutex system_mutex;               ///< packages, kernel options: one at a time on a host
  bool apt_lists_fresh = false;          ///< under system_mutex: `apt-get update` ran in this run
  std::optional<OfflineFolder> offline;  ///< --offline: where downloads come from, and from nowhere else
  std::mutex offline_mutex;
  std::set<std::string> offline_checked;  ///< parts of it whose hashes were checked in this run

  /// Absolute path inside the tree; relative ones are below the prefix.
  std::string path(const std::string& p) const;
  /// The same as a path of the caller's file system (for programs that run outside the root).
  std::string real(const std::string& p) const { return tree.real(path(p)); }
  void say(std::string_view text);
  /// A part of the offline folder ("wheels/"), its hashes checked once a run, as a path that programs inside
  /// the root can read: an image gets a copy below PREFIX/cache/offline.
  Result<std::string> offline_part(const std::string& part);
};

/// One program to run for a step.
struct Call {
  std::vector<std::string> argv;
  std::string cwd;                         ///< path inside the tree; empty: the prefix
  std::map<std::string, std::string> env;  ///< added to the clean base environment
  double limit_s = 600;
  bool in_root = true;              ///< inside the root when that is not "/" (by chroot)
  size_t max_out_bytes = 4u << 20;  ///< more than that is an error when the output is data
  bool quiet = false;               ///< its output is data for us: logged, not shown
  std::vector<int> good = {0};
};

struct Answer {
  int exit_code = 0;
  std::string out, err;
};

class Job {
 public:
  Job(Site& site, const Step& step);
  Site& site() { return site_; }
  const Step& step() const { return step_; }
  const std::string& log_path() const { return log_path_; }

  /// Runs and waits. Error: failed with the last lines, timeout, interrupted, absent when there is no such
  /// program.
  Result<Answer> call(const Call& call);
  /// One line into the step's log and onto the progress line.
  void say(std::string_view line);
  bool stopped() const;

 private:
  void log(std::string_view line);
  Site& site_;
  const Step& step_;
  std::string log_path_;
  Fd log_;
};

/// User and password in addresses replaced by ***, for logs and errors.
std::string redact(std::string_view text);

}  // namespace ep
