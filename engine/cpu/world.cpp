#include "cpu/world.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <vector>

namespace ep::engine::cpu {

namespace {

constexpr const char* kPhaseNames[kPhases] = {"setup",  "ceiling", "layout", "dispatch",
                                              "expert", "combine", "verify", "done"};

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void pin_to_cpu(int index) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  index %= CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

/// The child's whole life after fork. Leaves by _exit: 0 well, 1 gave up with a message.
[[noreturn]] void live_as_rank(Control& control, const WorldOptions& options, int rank, pid_t parent,
                               const sigset_t& old_mask, const std::function<bool(Member&)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  signal(SIGINT, SIG_IGN);  // Ctrl-C reaches the whole group; the parent decides and ends the ranks
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  if (options.pin) pin_to_cpu(rank);
  Member member(control, options, rank);
  bool good = false;
  try {
    member.enter(Phase::kSetup);
    good = body(member);
    if (good) member.enter(Phase::kDone);
  } catch (const std::exception& error) {
    std::snprintf(member.self().message, sizeof member.self().message, "%s", error.what());
  }
  std::fflush(nullptr);
  _exit(good ? 0 : 1);
}

/// Watches the children from the parent.
class Watch {
 public:
  Watch(Control& control, const WorldOptions& options) : control_(control), options_(options) {}
  ~Watch() { end_all(); }

  void add(pid_t pid) { pids_.push_back(pid); }
  bool all_gone() const { return left_ == 0; }
  void started() { left_ = static_cast<int>(pids_.size()); }

  /// Reaps who has ended; a bad end becomes the outcome.
  void reap(Outcome& outcome) {
    for (size_t r = 0; r < pids_.size(); ++r) {
      int status = 0;
      if (pids_[r] <= 0 || waitpid(pids_[r], &status, WNOHANG) != pids_[r]) continue;
      pids_[r] = -1;
      --left_;
      if (status != 0 && outcome.kind == Outcome::kOk) outcome = bad_end(static_cast<int>(r), status);
    }
  }

  /// True, with the outcome set, when no rank has moved for the limit.
  bool stalled(Outcome& outcome) {
    uint64_t sum = control_.open.load();
    for (int r = 0; r < options_.ranks; ++r) {
      sum += control_.rank[r].progress.load() + uint64_t{control_.rank[r].phase.load()} * 0x100000000ull;
    }
    const int64_t now = now_ns();
    if (sum != last_sum_ || last_move_ == 0) {
      last_sum_ = sum;
      last_move_ = now;
    }
    const double idle = static_cast<double>(now - last_move_) * 1e-9;
    if (idle < options_.stall_limit_s) return false;
    outcome = standstill(idle);
    return true;
  }

  void end_all() {
    for (const pid_t pid : pids_) {
      if (pid > 0) kill(pid, SIGKILL);
    }
    for (pid_t& pid : pids_) {
      while (pid > 0 && waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      pid = -1;
    }
    left_ = 0;
  }

 private:
  Phase phase_of(int rank) const { return static_cast<Phase>(control_.rank[rank].phase.load()); }

  Outcome bad_end(int rank, int status) const {
    Outcome out{Outcome::kGaveUp, rank, phase_of(rank), {}};
    const std::string where = "rank " + std::to_string(rank) + " in phase " + name_of(out.phase);
    if (WIFSIGNALED(status)) {
      out.kind = Outcome::kDied;
      const int number = WTERMSIG(status);
      out.text = where + " died of signal " + std::to_string(number) + " (" + strsignal(number) + ")";
      if (number == SIGBUS) out.text += ": no memory behind the shared mapping; use fewer --num-tokens";
      return out;
    }
    const char* message = control_.rank[rank].message;
    out.text = where + " gave up: " + (message[0] != 0 ? message : "no reason left behind");
    return out;
  }

  Outcome standstill(double idle) const {
    Outcome out{Outcome::kHung, -1, Phase::kSetup, {}};
    std::string hung, waiting;
    for (int r = 0; r < options_.ranks; ++r) {
      if (pids_[r] < 0) continue;
      const bool waits = control_.rank[r].waiting.load() != 0;
      std::string& list = waits ? waiting : hung;
      list += (list.empty() ? "" : ", ") + std::to_string(r) + " (" + name_of(phase_of(r)) + ")";
      if (!waits && out.rank < 0) {
        out.rank = r;
        out.phase = phase_of(r);
      }
    }
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f", idle);
    out.text = std::string("no progress for ") + seconds + " s: ";
    out.text += hung.empty() ? "all ranks wait for each other" : "rank " + hung + " hangs";
    if (!waiting.empty()) out.text += "; waiting: " + waiting;
    return out;
  }

  Control& control_;
  const WorldOptions& options_;
  std::vector<pid_t> pids_;
  int left_ = 0;
  uint64_t last_sum_ = 0;
  int64_t last_move_ = 0;
};

}  // namespace

const char* name_of(Phase phase) {
  return kPhaseNames[static_cast<int>(phase)];
}

bool parse_phase(const std::string& text, Phase& out) {
  for (int p = 0; p < kPhases; ++p) {
    if (text == kPhaseNames[p]) {
      out = static_cast<Phase>(p);
      return true;
    }
  }
  return false;
}

std::string parse_fault(const std::string& text, Fault& out) {
  const size_t first = text.find(':'), second = text.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return "KIND:RANK:PHASE";
  const std::string kind = text.substr(0, first), rank = text.substr(first + 1, second - first - 1);
  const std::string phase = text.substr(second + 1);
  if (kind == "die")
    out.kind = Fault::kDie;
  else if (kind == "hang")
    out.kind = Fault::kHang;
  else if (kind == "corrupt")
    out.kind = Fault::kCorrupt;
  else
    return "die, hang or corrupt before the first colon";
  if (rank.empty() || rank.size() > 2 || rank.find_first_not_of("0123456789") != std::string::npos) {
    return "a rank between the colons";
  }
  if (!parse_phase(phase, out.phase)) {
    std::string names;
    for (const char* name : kPhaseNames) names += std::string(" ") + name;
    return "one of these phases at the end:" + names;
  }
  if (out.kind == Fault::kCorrupt && out.phase != Phase::kDispatch && out.phase != Phase::kCombine) {
    return "dispatch or combine as the phase to corrupt";
  }
  out.rank = std::stoi(rank);
  return {};
}

void Member::enter(Phase phase) {
  self().phase.store(static_cast<uint32_t>(phase));
  tick();
  const Fault& fault = options_.fault;
  if (fault.rank != rank_ || fault.phase != phase) return;
  if (fault.kind != Fault::kDie && fault.kind != Fault::kHang) return;
  if (fault.kind == Fault::kDie) kill(getpid(), SIGKILL);
  for (;;) pause();
}

void Member::meet() {
  const uint32_t meeting = control_.open.load(std::memory_order_acquire);
  const auto ranks = static_cast<uint32_t>(options_.ranks);
  if (control_.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks) {
    control_.arrived.store(0, std::memory_order_relaxed);
    control_.open.store(meeting + 1, std::memory_order_release);
    futex_wake_all(control_.open);
    return;
  }
  self().waiting.store(1);
  // Spinning pays only when every rank has a core of its own; on fewer cores it holds up whom it waits for.
  static const bool spin = allowed_cpus() >= options_.ranks;
  for (int i = 0; spin && i < 20000 && control_.open.load(std::memory_order_acquire) == meeting; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  while (control_.open.load(std::memory_order_acquire) == meeting) futex_wait(control_.open, meeting);
  self().waiting.store(0);
}

void Member::mismatch(const std::string& text) {
  if (self().mismatches++ == 0) std::snprintf(self().message, sizeof self().message, "%s", text.c_str());
}

Outcome run_world(Control& control, const WorldOptions& options, const std::function<bool(Member&)>& body) {
  sigset_t mask, old_mask;
  sigemptyset(&mask);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&mask, number);
  sigprocmask(SIG_BLOCK, &mask, &old_mask);

  Outcome outcome;
  const pid_t parent = getpid();
  std::fflush(nullptr);
  {
    Watch watch(control, options);
    for (int r = 0; r < options.ranks && outcome.kind == Outcome::kOk; ++r) {
      const pid_t pid = fork();
      if (pid == 0) live_as_rank(control, options, r, parent, old_mask, body);
      if (pid > 0)
        watch.add(pid);
      else
        outcome = {Outcome::kGaveUp, r, Phase::kSetup, std::string("fork failed: ") + std::strerror(errno)};
    }
    watch.started();
    while (outcome.kind == Outcome::kOk) {
      watch.reap(outcome);
      if (watch.all_gone() || outcome.kind != Outcome::kOk || watch.stalled(outcome)) break;
      const timespec tick = {0, 50'000'000};
      const int number = sigtimedwait(&mask, nullptr, &tick);
      if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
        outcome = {Outcome::kInterrupted, -1, Phase::kSetup,
                   std::string("interrupted by ") + strsignal(number)};
      }
    }
  }
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  return outcome;
}

int allowed_cpus() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

int64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace ep::engine::cpu
