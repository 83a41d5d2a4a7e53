#include "host/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "base/text.h"

namespace ep {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTickMs = 50;        // how often the interrupt flag is looked at
constexpr int kDrainQuietMs = 60;  // after the end: pipes silent this long are done
constexpr int kDrainMaxMs = 500;   // a chatty daemon cannot hold us longer
constexpr double kAfterKillS = 5;  // a process that survives SIGKILL this long is in the kernel's hands
constexpr size_t kReadBytes = 64u << 10;

std::mutex g_own_mutex;
std::set<pid_t> g_own;  // children started here and not yet reaped

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

struct Fd {
  int fd = -1;
  Fd() = default;
  explicit Fd(int f) : fd(f) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }
  void reset(int f = -1) {
    if (fd >= 0) close(fd);
    fd = f;
  }
};

// One output stream of the child: cuts it into lines, keeps a capped copy.
struct Stream {
  Fd fd;
  const std::function<void(std::string_view)>* on_line = nullptr;
  size_t cap = 0, max_line = 0;
  std::string kept, partial;
  bool cut = false;

  void take(std::string_view bytes) {
    size_t room = cap - std::min(cap, kept.size());
    kept.append(bytes.substr(0, room));
    cut |= bytes.size() > room;
    if (!*on_line) return;
    while (!bytes.empty()) {
      size_t room_in_line = max_line - partial.size();
      size_t at = bytes.find('\n');
      if (at != bytes.npos && at <= room_in_line) {
        partial.append(bytes.substr(0, at));
        (*on_line)(partial);
        partial.clear();
        bytes.remove_prefix(at + 1);
      } else {
        size_t n = std::min(room_in_line, bytes.size());
        partial.append(bytes.substr(0, n));
        bytes.remove_prefix(n);
        if (partial.size() == max_line) flush();
      }
    }
  }
  void flush() {
    if (!partial.empty() && *on_line) (*on_line)(partial);
    partial.clear();
  }
  // One read; true when something came. End of file closes the descriptor.
  bool pump() {
    char buffer[kReadBytes];
    ssize_t n = read(fd.fd, buffer, sizeof buffer);
    if (n > 0) {
      take({buffer, size_t(n)});
      return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) fd.reset();
    return false;
  }
};

std::string_view value_of(const std::vector<std::string>& env, std::string_view name) {
  for (const auto& entry : env)
    if (entry.size() > name.size() && starts_with(entry, name) && entry[name.size()] == '=')
      return std::string_view(entry).substr(name.size() + 1);
  return {};
}

Result<pid_t> start(const Spawn& s, int out_fd, int err_fd) {
  std::string program = s.argv[0];
  if (!contains(program, "/")) program = find_program(program, value_of(s.env, "PATH"));
  if (program.empty())
    return fail(ErrorKind::absent, "program not found", s.argv[0], "it is in no folder of PATH");
  if (!s.cwd.empty() && access(s.cwd.c_str(), X_OK) != 0)
    return fail(errno == ENOENT ? ErrorKind::absent : ErrorKind::unreadable,
                "cannot enter the working folder", s.cwd, strerror(errno));

  std::vector<char*> argv, env;
  for (const auto& a : s.argv) argv.push_back(const_cast<char*>(a.c_str()));
  for (const auto& e : s.env) env.push_back(const_cast<char*>(e.c_str()));
  argv.push_back(nullptr);
  env.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
  posix_spawn_file_actions_adddup2(&actions, err_fd, 2);
  if (!s.cwd.empty()) posix_spawn_file_actions_addchdir_np(&actions, s.cwd.c_str());
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  int rc;
  {
    std::lock_guard lock(g_own_mutex);
    rc = posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), env.data());
    if (rc == 0) g_own.insert(pid);
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (rc == 0) return pid;
  auto kind = rc == ENOENT                    ? ErrorKind::absent
              : rc == EACCES || rc == ENOEXEC ? ErrorKind::unreadable
                                              : ErrorKind::failed;
  return fail(kind, "cannot start the program", program, strerror(rc));
}

bool has_ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

void collect(pid_t pid, RunResult& r) {
  int status = 0;
  rusage usage{};
  while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  {
    std::lock_guard lock(g_own_mutex);
    g_own.erase(pid);
  }
  if (WIFSIGNALED(status)) r.signal = WTERMSIG(status);
  if (WIFEXITED(status)) r.exit_code = WEXITSTATUS(status);
  auto seconds = [](timeval t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  r.user_s = seconds(usage.ru_utime);
  r.system_s = seconds(usage.ru_stime);
  r.max_rss_bytes = uint64_t(usage.ru_maxrss) * 1024;
}

// Waits for output, the end, or `ms`; returns true when anything was read.
bool wait_some(Stream& out, Stream& err, int pidfd, int ms) {
  pollfd fds[3] = {{out.fd.fd, POLLIN, 0}, {err.fd.fd, POLLIN, 0}, {pidfd, POLLIN, 0}};
  if (poll(fds, 3, ms) <= 0) return false;  // time, or EINTR: the caller looks at its flags anyway
  bool any = false;
  if (fds[0].revents) any |= out.pump();
  if (fds[1].revents) any |= err.pump();
  return any;
}

// The loop between start and end. Sends SIGTERM at the limit or interrupt, SIGKILL after the grace.
void attend(const Spawn& s, pid_t pid, int pidfd, Stream& out, Stream& err, RunResult& r) {
  auto begin = Clock::now();
  Clock::time_point termed, killed;
  enum { running, terminating, killing } phase = running;
  while (!has_ended(pid)) {
    double left = s.limit_s > 0 ? s.limit_s - seconds_since(begin) : 3600;
    bool interrupted = s.interrupt && s.interrupt->load();
    if (phase == running && (left <= 0 || interrupted)) {
      r.interrupted = interrupted;
      r.timed_out = !interrupted;
      kill(-pid, SIGTERM);
      kill(-pid, SIGCONT);  // a stopped child could not see it
      termed = Clock::now();
      phase = terminating;
    } else if (phase == terminating && seconds_since(termed) >= s.grace_s) {
      kill(-pid, SIGKILL);
      killed = Clock::now();
      phase = killing;
    } else if (phase == killing && seconds_since(killed) >= kAfterKillS) {
      r.unkillable = true;
      return;
    }
    double wait_s = phase == running ? left : phase == terminating ? s.grace_s - seconds_since(termed) : 0.05;
    bool must_tick = s.interrupt || pidfd < 0 || phase == killing;
    int ms = int(std::clamp(wait_s * 1000 + 1, 1.0, must_tick ? double(kTickMs) : 60000.0));
    wait_some(out, err, pidfd, ms);
  }
}

void drain(Stream& out, Stream& err) {
  auto begin = Clock::now();
  while ((out.fd.fd >= 0 || err.fd.fd >= 0) && seconds_since(begin) * 1000 < kDrainMaxMs) {
    int open_before = (out.fd.fd >= 0) + (err.fd.fd >= 0);
    bool any = wait_some(out, err, -1, kDrainQuietMs);
    if (!any && (out.fd.fd >= 0) + (err.fd.fd >= 0) == open_before) break;
  }
  out.flush();
  err.flush();
}

}  // namespace

Result<RunResult> run(const Spawn& s) {
  if (s.argv.empty()) return fail(ErrorKind::internal, "nothing to run", "run", "empty argv");
  Stream out, err;
  out.on_line = &s.on_out;
  err.on_line = &s.on_err;
  out.cap = s.max_out_bytes;
  err.cap = s.max_err_bytes;
  out.max_line = err.max_line = std::max<size_t>(1, s.max_line_bytes);
  int pipe_out[2], pipe_err[2];
  if (pipe2(pipe_out, O_CLOEXEC) != 0)
    return fail(ErrorKind::failed, "cannot make a pipe", s.argv[0], strerror(errno));
  out.fd.reset(pipe_out[0]);
  Fd write_out(pipe_out[1]);
  if (pipe2(pipe_err, O_CLOEXEC) != 0)
    return fail(ErrorKind::failed, "cannot make a pipe", s.argv[0], strerror(errno));
  err.fd.reset(pipe_err[0]);
  Fd write_err(pipe_err[1]);
  fcntl(out.fd.fd, F_SETFL, O_NONBLOCK);
  fcntl(err.fd.fd, F_SETFL, O_NONBLOCK);

  auto begin = Clock::now();
  auto pid = start(s, write_out.fd, write_err.fd);
  if (!pid) return Failure(pid.error());
  write_out.reset();
  write_err.reset();
  // Absent on kernels before 5.3 and behind some seccomp filters: then the end is seen by looking every tick.
  Fd pidfd(int(syscall(SYS_pidfd_open, *pid, 0)));

  RunResult r;
  attend(s, *pid, pidfd.fd, out, err, r);
  if (!r.unkillable) {
    // The ended leader still holds its number, so the group is certainly ours while we signal it.
    if (r.timed_out || r.interrupted || s.end_group) kill(-*pid, SIGKILL);
    collect(*pid, r);
  }
  r.wall_s = seconds_since(begin);
  drain(out, err);
  r.out = std::move(out.kept);
  r.err = std::move(err.kept);
  r.out_cut = out.cut;
  r.err_cut = err.cut;
  return r;
}

std::string RunResult::how(double limit_s) const {
  if (unkillable) return "does not end even on SIGKILL (stuck in the kernel)";
  if (interrupted) return "interrupted";
  if (timed_out) return fmt::format("stopped at its limit of {:g} s", limit_s);
  if (signal) return fmt::format("ended by signal {} ({})", signal, strsignal(signal));
  return fmt::format("exit {}", exit_code);
}

std::vector<std::string> base_environment() {
  std::vector<std::string> env;
  const char* path = getenv("PATH");
  // Services and cron have short PATHs; the system's tools are looked for all the same.
  set_variable(env, "PATH",
               std::string(path && *path ? path : "/usr/local/bin:/usr/bin:/bin") +
                   ":/usr/local/sbin:/usr/sbin:/sbin");
  set_variable(env, "LANG", "C.UTF-8");
  for (const char* name :
       {"HOME", "USER", "LOGNAME", "TMPDIR", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY",
        "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "CUDA_VISIBLE_DEVICES", "PIP_INDEX_URL",
        "PIP_CONFIG_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"})
    if (const char* value = getenv(name)) set_variable(env, name, value);
  // NVLink multicast (NVLS) is never used by what we start.
  set_variable(env, "NCCL_NVLS_ENABLE", "0");
  set_variable(env, "NVSHMEM_DISABLE_NVLS", "1");
  return env;
}

void set_variable(std::vector<std::string>& env, std::string_view name, std::string_view value) {
  std::string entry = fmt::format("{}={}", name, value);
  for (auto& e : env)
    if (starts_with(e, fmt::format("{}=", name))) {
      e = entry;
      return;
    }
  env.push_back(entry);
}

std::string find_program(std::string_view name, std::string_view path_list) {
  for (auto dir : split(path_list, ':')) {
    if (dir.empty() || dir[0] != '/') continue;  // never the current folder
    std::string path = fmt::format("{}/{}", dir, name);
    struct stat st;
    if (stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

void become_subreaper() {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

std::vector<pid_t> adopted_children() {
  std::vector<pid_t> found;
  // NOTE: the kernel lists children per thread; adopted ones hang on the main thread (proc(5),
  // CONFIG_PROC_CHILDREN).
  Fd fd(open(fmt::format("/proc/self/task/{}/children", getpid()).c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.fd < 0) return found;
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd.fd, buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(n));
  std::lock_guard lock(g_own_mutex);
  for (auto word : split_ws(text)) {
    auto pid = parse_int(word);
    if (!pid || g_own.count(pid_t(*pid))) continue;
    if (waitpid(pid_t(*pid), nullptr, WNOHANG) == 0) found.push_back(pid_t(*pid));
  }
  return found;
}

}  // namespace ep
