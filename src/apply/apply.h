// The executor's door: apply a plan, say where it stands, take it back. Impure by nature; every question
// about the host goes through World, so that tests and image building need no root and no real machine.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/finding.h"
#include "base/result.h"
#include "plan/plan.h"

namespace ep {

/// What the executor wants to know about the host it changes.
struct HostSituation {
  std::string boot_id;    ///< /proc/sys/kernel/random/boot_id
  std::string host_name;  ///< as Plan::host_name
  std::string container;  ///< runtime name; empty on a host
  bool is_root = false, has_systemd = false;
  bool has_sudo = true;  ///< the program is there
};
/// The command as somebody has to give it who wants it done as root: itself, behind sudo, or "as root: ..."
/// where there is no sudo.
std::string as_root(const std::string& command, const HostSituation& host);

/// Predicates answered from facts that are read anew after every refresh(). Calls are made by one thread at a
/// time. `holds`: pass = true, fail = false with the reason, unknown = could not be told (never taken as
/// true).
class World {
 public:
  virtual ~World() = default;
  virtual HostSituation situation() = 0;
  virtual void refresh() = 0;
  virtual Outcome holds(const Predicate& predicate) = 0;
  /// Facts named in Plan::facts_used, with today's value (drift check). A name that is missing is not known
  /// now.
  virtual std::map<std::string, std::string> facts_now(const Plan& plan) = 0;
  /// Why a step's `after` is still false after its reboot: stale initramfs, a later file, another module.
  virtual std::vector<Finding> why_not_live(const Step& step) = 0;
};
/// The running machine, or a mounted image when root is not "/". `prefix`: the folder whose parts count as
/// installed.
std::unique_ptr<World> live_world(std::string prefix, std::string root = "/");

/// Consent per risk class. user_files is what the command itself asks for and needs none.
/// "packages,kernel,reboot", "all", "none"; errors name the word that is not known.
Result<std::set<Risk>> parse_consent(std::string_view words);

struct ApplyOptions {
  std::string root = "/";  ///< system paths are below it
  std::set<Risk> yes;      ///< consent given beforehand (--yes=...)
  /// Asked once a class that `yes` lacks; empty: nobody there to ask, such steps stay undone (exit 3, or 4
  /// for the reboot).
  std::function<bool(Risk, const std::vector<const Step*>&)> ask;
  int jobs = 0;                                ///< steps side by side; 0: allowed CPUs, at most 4
  std::string offline_dir;                     ///< --offline: downloads come from here and nowhere else
  std::map<std::string, std::string> mirrors;  ///< address prefix -> prefix used instead; longest wins
  bool resume = false;     ///< continue an interrupted or rebooted run: no drift check, predicates decide
  bool may_drift = false;  ///< the plan was made from the facts of this very moment (up, apply without FILE)
  std::string self;        ///< path of this program for RunSelf and the resume unit; empty: /proc/self/exe
  World* world = nullptr;  ///< null: live_world(prefix, root)
  const std::atomic<bool>* stop = nullptr;  ///< Ctrl-C; null: never
};

enum class StepState {
  satisfied,    ///< predicate held before: nothing to do
  done,         ///< actions ran, predicate holds now
  failed,       ///< an action failed, or the predicate does not hold afterwards
  declined,     ///< its risk class has no consent
  blocked,      ///< a step that it needs is not done
  elsewhere,    ///< cannot be done from here: belongs to the host, needs root, needs network
  reboot,       ///< waits for a reboot (begun or to be done by the user)
  interrupted,  ///< Ctrl-C; run again to go on
  running,      ///< in a status beside a run: one of its actions has begun
  not_run
};
std::string_view to_string(StepState s);

struct StepResult {
  std::string id, title;
  StepState state = StepState::not_run;
  std::string reason;  ///< for everything but satisfied and done
  std::string next;    ///< command or act that helps
  std::string log;     ///< path of its log, when it ran
  double seconds = 0;
};

struct ApplyReport {
  std::string prefix, host_name;
  std::vector<StepResult> steps;  ///< in plan order
  std::vector<Finding> findings;
  bool reboot_pending = false, reboot_begun = false, interrupted = false;
  double seconds = 0;
  int count(StepState s) const;
  /// 0 all satisfied or done, 1 failed, 3 cannot be done here or declined, 4 reboot needed, 5 interrupted.
  int exit_code() const;
};

/// What a run shows while it lasts. Called from several threads, one at a time (the executor locks).
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void step_started(const Step& step, size_t index, size_t count) = 0;
  virtual void output_line(const Step& step, std::string_view line) = 0;
  virtual void step_ended(const StepResult& result) = 0;
  virtual void message(std::string_view text) = 0;
};
/// Nothing at all (tests, --json).
std::unique_ptr<Progress> silent_progress();
/// How often a step that says nothing is shown: the redrawn line on a terminal, a line in a log.
struct ProgressPace {
  std::chrono::milliseconds redraw{1000}, still_there{60000};
};
/// One redrawn line with elapsed time and the last output line on a terminal, plain lines otherwise. Writes
/// to stderr.
std::unique_ptr<Progress> stderr_progress(bool terminal, bool color, bool unicode, int width,
                                          ProgressPace pace = {});

/// root: /opt/epready; else $XDG_DATA_HOME/epready (~/.local/share/epready).
std::string default_prefix();

/// Does exactly what the plan says. An Error is a refusal before anything was touched (drift: `drifted`,
/// other host or schema: `usage`, lock held: `failed`, read-only prefix: `unreadable`); everything later is
/// in the report.
Result<ApplyReport> apply_plan(const Plan& plan, const ApplyOptions& options, Progress& progress);

struct StatusReport {
  std::string prefix;
  bool exists = false;          ///< anything was ever applied here
  std::string running;          ///< who holds the lock ("epready apply, process 4711, since ..."), else empty
  std::string begun, ended;     ///< UTC times of the last run; ended is empty when it was cut off
  std::string torn;             ///< said when the last journal line is torn
  bool reboot_pending = false;  ///< a reboot step waits and the host has not rebooted since
  std::vector<StepResult> steps;
  size_t num_files = 0, num_packages = 0;  ///< what undo would take back
  std::string plan_path;                   ///< PREFIX/state/plan.json
};
Result<StatusReport> read_status(const std::string& prefix, const std::string& root = "/");

struct UndoOptions {
  std::string root = "/";
  bool dry_run = false;
  std::set<Risk> yes;
  std::function<bool(Risk, const std::vector<std::string>&)> ask;  ///< risk class, what would be taken back
  World* world = nullptr;
  const std::atomic<bool>* stop = nullptr;  ///< Ctrl-C; null: never
};
struct UndoItem {
  enum class State { would, done, kept, failed } state = State::would;
  std::string what;    ///< "restore /etc/security/limits.d/x", "remove package cuda-toolkit-12-9"
  std::string reason;  ///< for kept (changed by hand, needed by others) and failed
};
struct UndoReport {
  std::string prefix;
  std::vector<UndoItem> items;
  bool initramfs_refreshed = false, reboot_advised = false;
  int exit_code() const;  ///< 0 all taken back, 1 something failed, 3 something was kept or declined
};
Result<UndoReport> undo_prefix(const std::string& prefix, const UndoOptions& options, Progress& progress);

}  // namespace ep
