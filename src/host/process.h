// Runs one program to its end: argv (no shell), full environment, own process group, limits, streamed output.
// Used by probes, apply, verify and bench; nobody else forks. Not a job system: one call is one child.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ep {

/// What to run. Output goes to the callbacks and, up to the byte caps, into the result.
struct Spawn {
  std::vector<std::string> argv;  ///< argv[0] without a slash is searched in PATH of `env`
  std::vector<std::string> env;   ///< the full list, "NAME=value"; nothing is inherited
  std::string cwd;                ///< empty: ours
  double limit_s = 60;            ///< wall clock; 0: none
  double grace_s = 5;             ///< between SIGTERM and SIGKILL, both sent to the whole group
  size_t max_out_bytes = 4u << 20, max_err_bytes = 1u << 20;  ///< kept; the rest is read and dropped
  size_t max_line_bytes = 64u << 10;  ///< a longer line is handed on in pieces of this size
  /// Called in the thread of run(), one line at a time, without its newline.
  std::function<void(std::string_view)> on_out, on_err;
  /// Set by someone else (a signal handler, another thread): the group is ended as at the limit.
  const std::atomic<bool>* interrupt = nullptr;
  /// After a normal end, also end what it left in its group. Off: a daemon that a package script starts may
  /// stay.
  bool end_group = false;
};

struct RunResult {
  int exit_code = -1;  ///< as the program gave it; -1 when a signal ended it
  int signal = 0;      ///< the signal that ended it, else 0
  bool timed_out = false, interrupted = false;
  bool unkillable = false;  ///< still there after SIGKILL (uninterruptible sleep in a driver); not waited for
  bool out_cut = false, err_cut = false;  ///< more than the cap was written
  std::string out, err;
  double wall_s = 0, user_s = 0, system_s = 0;
  uint64_t max_rss_bytes = 0;

  bool ok() const { return exit_code == 0 && !timed_out && !interrupted && !unkillable; }
  /// "exit 3", "ended by signal 11 (Segmentation fault)", "stopped at its limit of 60 s", "interrupted".
  std::string how(double limit_s) const;
};

/// Runs it and returns when the process itself has ended (and its pipes were drained for a moment), whatever
/// daemons still hold the pipes. Errors are only those before the child runs: program absent or not
/// executable, no such cwd, out of processes. A non-zero exit is a result. Thread-safe.
Result<RunResult> run(const Spawn& spawn);

/// PATH, HOME, USER, LANG=C.UTF-8, proxies and certificates as set for us, and the variables that keep NVLink
/// multicast off; nothing else of our environment.
std::vector<std::string> base_environment();
/// Replaces or adds NAME=value.
void set_variable(std::vector<std::string>& env, std::string_view name, std::string_view value);

/// Absolute path of a program in a PATH-like list; empty when it is not there or not executable.
std::string find_program(std::string_view name, std::string_view path_list);

/// Makes daemons that leave their group our children instead of init's. Call once in main, before run().
void become_subreaper();
/// Children that we have but did not start (adopted by the sub-reaper); ended ones are reaped and not listed.
std::vector<pid_t> adopted_children();

}  // namespace ep
