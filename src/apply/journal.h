// The journal: one JSON object a line, appended and synced before the next act. It is the record that status
// and undo read; it never decides what is still to do (predicates on live facts do).
#pragma once
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apply/tree.h"
#include "base/result.h"

namespace ep {

/// Records, by key "e" (event):
///   begin {run, plan_sha256, boot, host, tool, consent, lane, pid}   a run starts
///   prefix {path, created, present}                                  prefix folder; names that were there
///   before step {id, s, reason?}                                            state of a step (apply.h,
///   StepState) act {step, i, kind, s: started|done|failed, why?}                one action entry {path, was,
///   mode, uid, gid, blob, now}                     about to change a file; blob: its old bytes packages
///   {step, named, new}                                      about to install; `new` were not there reboot
///   {step, boot}                                              about to reboot out of this boot undone {of}
///   record number `of` was taken back end {exit}                                                       the
///   run ended by itself
/// Every record also has n (its number, from 1) and t (UTC, seconds).
using Record = nlohmann::json;

struct JournalText {
  std::vector<Record> records;
  std::vector<int> torn;  ///< 1-based lines that are not whole records (a cut while writing); skipped
};
/// An absent journal is empty. Errors: unreadable.
Result<JournalText> read_journal(const std::string& path);

class Journal {
 public:
  /// Opens or makes the file (mode 0600). A torn last line is ended, so that the next record stands alone.
  static Result<std::unique_ptr<Journal>> open(const std::string& path);
  /// Appends, and syncs unless told `later`: what says that something is over may wait for the sync of the
  /// next act (one sync an action). Thread-safe. An error means that the act must not be begun. Returns the
  /// record's number.
  enum class Sync { now, later };
  Result<long long> write(Record record, Sync sync = Sync::now);

 private:
  Fd fd_;
  std::mutex mutex_;
  std::string path_;
  long long next_ = 1;
};

/// Test hook: the process kills itself (SIGKILL) at journal point N, counted from 1 over the process. Each
/// write has three points: before it, with half of the line written, after it. 0 switches it off. Also set by
/// the environment variable EPREADY_TEST_KILL_AT, for the lab.
void kill_at_journal_point(int n);
/// Journal points passed so far in this process.
int journal_points();

/// "2026-11-30T10:22:58Z"
std::string utc_now();

}  // namespace ep
