// Job: runs a step's programs with a log of their own.
#include "apply/job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>

#include "base/text.h"
#include "host/process.h"

namespace ep {
namespace {

// --offline: programs that would go out on their own (a build that downloads, a git submodule) fail at once
// with a clear message of theirs instead of waiting for a network that may half exist. Port 9 is "discard".
void close_network(std::vector<std::string>& env) {
  for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "ftp_proxy", "all_proxy", "ALL_PROXY"})
    set_variable(env, name, "http://127.0.0.1:9");
  set_variable(env, "no_proxy", "");
  set_variable(env, "NO_PROXY", "");
  set_variable(env, "PIP_NO_INDEX", "1");
  set_variable(env, "UV_OFFLINE", "1");
  set_variable(env, "GIT_ALLOW_PROTOCOL", "file");
}

}  // namespace

std::string Site::path(const std::string& p) const {
  if (p.empty()) return prefix;
  return p[0] == '/' ? p : prefix + "/" + p;
}

void Site::say(std::string_view text) {
  std::lock_guard lock(progress_mutex);
  if (progress) progress->message(text);
}

Result<std::string> Site::offline_part(const std::string& part) {
  std::lock_guard lock(offline_mutex);
  std::string copy = prefix + "/cache/offline/" + part;
  bool image = tree.root() != "/";
  if (!offline_checked.count(part)) {
    if (auto r = check_hashes(*offline, part); !r) return Failure(r.error());
    if (image) {
      if (auto r = keeper->make_dirs(prefix + "/cache/offline"); !r) return Failure(r.error());
      std::error_code error;
      using std::filesystem::copy_options;
      std::filesystem::copy(offline->dir + "/" + part, tree.real(copy),
                            copy_options::recursive | copy_options::overwrite_existing, error);
      if (error) return os_failure("cannot copy from the offline folder", copy, error.value());
    }
    offline_checked.insert(part);
  }
  return image ? copy : offline->dir + "/" + part;
}

namespace {

// "?token=..." of signed addresses: the name stays, the value goes.
bool is_secret_name(std::string_view name) {
  const std::string plain = lower(name);
  for (const char* word : {"token", "signature", "sig", "secret", "password", "passwd", "credential",
                           "apikey", "api_key", "access_key", "auth"})
    if (plain == word || ends_with(plain, std::string("-") + word) ||
        ends_with(plain, std::string("_") + word))
      return true;
  return false;
}

std::string without_query_secrets(std::string_view address) {
  std::string out;
  size_t i = address.find('?');
  if (i == std::string_view::npos) return std::string(address);
  out += address.substr(0, i);
  while (i < address.size()) {  // address[i] is '?' or '&'
    size_t end = std::min(address.find('&', i + 1), address.size());
    std::string_view pair = address.substr(i + 1, end - i - 1);
    size_t eq = pair.find('=');
    out += address[i];
    if (eq != std::string_view::npos && is_secret_name(pair.substr(0, eq)))
      out += std::string(pair.substr(0, eq)) + "=***";
    else
      out += pair;
    i = end;
  }
  return out;
}

}  // namespace

std::string redact(std::string_view text) {
  std::string out;
  size_t i = 0;
  for (;;) {
    size_t scheme = text.find("://", i);
    if (scheme == std::string_view::npos) break;
    size_t begin = scheme + 3;
    size_t end = text.find_first_of("/ \t\"'", begin);
    if (end == std::string_view::npos) end = text.size();
    size_t at = text.substr(begin, end - begin).rfind('@');
    out += text.substr(i, begin - i);
    if (at != std::string_view::npos) {
      out += "***";
      begin += at;
    }
    size_t rest = std::min(text.find_first_of(" \t\r\n\"'", begin), text.size());
    out += without_query_secrets(text.substr(begin, rest - begin));
    i = rest;
  }
  out += text.substr(i);
  return out;
}

Job::Job(Site& site, const Step& step) : site_(site), step_(step) {
  log_path_ = site.tree.real(site.prefix + "/log/" + step.id + ".log");
  log_ = Fd(open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  log(fmt::format("=== {} {}: {}", utc_now(), step.id, step.title));
}

void Job::log(std::string_view line) {
  if (!log_) return;
  std::string text = redact(line);
  text += '\n';
  // A log that cannot be written (full disk) must not stop the work; the action itself will meet the same
  // disk.
  ssize_t n = ::write(log_.get(), text.data(), text.size());
  (void)n;
}

void Job::say(std::string_view line) {
  log(line);
  std::lock_guard lock(site_.progress_mutex);
  if (site_.progress) site_.progress->output_line(step_, strip_ansi(redact(line)));
}

bool Job::stopped() const {
  return site_.options->stop && site_.options->stop->load();
}

Result<Answer> Job::call(const Call& call) {
  if (call.argv.empty()) return fail(ErrorKind::internal, "nothing to run", step_.id);
  Spawn spawn;
  spawn.argv = call.argv;
  bool chrooted = call.in_root && site_.tree.root() != "/";
  if (chrooted && !call.cwd.empty()) spawn.argv.insert(spawn.argv.begin(), {"env", "-C", call.cwd});
  if (chrooted) spawn.argv.insert(spawn.argv.begin(), {"chroot", site_.tree.root()});
  spawn.env = base_environment();
  set_variable(spawn.env, "DEBIAN_FRONTEND", "noninteractive");
  if (site_.offline) close_network(spawn.env);
  for (const auto& [name, value] : call.env) set_variable(spawn.env, name, value);
  if (!chrooted) spawn.cwd = site_.real(call.cwd);
  spawn.limit_s = call.limit_s;
  spawn.max_out_bytes = call.max_out_bytes;
  spawn.interrupt = site_.options->stop;
  std::deque<std::string> tail;
  auto take = [&](std::string_view line) {
    tail.emplace_back(line);
    if (tail.size() > 12) tail.pop_front();
    if (call.quiet)
      log(line);
    else
      say(line);
  };
  spawn.on_out = take;
  spawn.on_err = take;
  log("$ " + shell_join(spawn.argv));
  auto ran = run(spawn);
  std::string name = call.argv[0];
  if (!ran) {
    Error e = ran.error();
    log(e.text());
    return add_context(std::move(e), "while running " + redact(shell_join(call.argv)));
  }
  log(fmt::format("# {} after {:.1f} s", ran->how(call.limit_s), ran->wall_s));
  Answer answer{ran->exit_code, std::move(ran->out), std::move(ran->err)};
  if (ran->interrupted)
    return fail(ErrorKind::interrupted, "interrupted", step_.id, {},
                "run the same command again: it goes on");
  bool good = ran->signal == 0 && !ran->timed_out && !ran->unkillable &&
              std::find(call.good.begin(), call.good.end(), ran->exit_code) != call.good.end();
  // Data that was cut must not be judged as if it were whole.
  if (good && call.quiet && ran->out_cut)
    return fail(ErrorKind::failed, name + " printed more than can be read", redact(shell_join(call.argv)),
                fmt::format("more than {} bytes", call.max_out_bytes));
  if (good) return answer;
  std::string last;
  for (const auto& line : tail) last += "\n    " + redact(line);
  return fail(ran->timed_out ? ErrorKind::timeout : ErrorKind::failed, name + ": " + ran->how(call.limit_s),
              redact(shell_join(call.argv)), last.empty() ? "it printed nothing" : "its last lines:" + last,
              "less " + log_path_);
}

}  // namespace ep
