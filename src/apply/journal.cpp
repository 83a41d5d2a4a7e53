// Journal: append, sync, read back.
#include "apply/journal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>

namespace ep {
namespace {

std::atomic<int> g_kill_at{-1};
std::atomic<int> g_points{0};

int kill_point() {
  int at = g_kill_at.load();
  if (at >= 0) return at;
  const char* text = std::getenv("EPREADY_TEST_KILL_AT");
  at = text ? std::atoi(text) : 0;
  g_kill_at = at;
  return at;
}

// True when the process should die at this point (the caller may still write half a line first).
bool point() {
  int at = kill_point();
  return ++g_points == at;
}

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

Result<> write_whole(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_failure("cannot write the journal", path, errno);
    text.remove_prefix(size_t(n));
  }
  return {};
}

}  // namespace

void kill_at_journal_point(int n) {
  g_kill_at = n;
  g_points = 0;
}
int journal_points() {
  return g_points;
}

std::string utc_now() {
  std::time_t now = std::time(nullptr);
  std::tm tm{};
  gmtime_r(&now, &tm);
  char buf[32];
  std::strftime(buf, sizeof buf, "%Y-%m-%dT%H:%M:%SZ", &tm);
  return buf;
}

Result<JournalText> read_journal(const std::string& path) {
  JournalText out;
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return out;
  if (!fd) return os_failure("cannot read the journal", path, errno);
  std::ifstream file(path);
  std::string line;
  int number = 0;
  while (std::getline(file, line)) {
    ++number;
    if (line.empty()) continue;
    Record record = Record::parse(line, nullptr, false);
    bool whole = record.is_object() && record.contains("e") && record["e"].is_string() &&
                 record.contains("n") && record["n"].is_number_integer();
    if (whole)
      out.records.push_back(std::move(record));
    else
      out.torn.push_back(number);
  }
  return out;
}

Result<std::unique_ptr<Journal>> Journal::open(const std::string& path) {
  auto text = read_journal(path);
  if (!text) return Failure(text.error());
  auto journal = std::make_unique<Journal>();
  journal->path_ = path;
  journal->fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!journal->fd_) return os_failure("cannot open the journal", path, errno);
  for (const auto& r : text->records) journal->next_ = std::max(journal->next_, r["n"].get<long long>() + 1);
  off_t size = lseek(journal->fd_.get(), 0, SEEK_END);
  char last = '\n';
  if (size > 0 && pread(journal->fd_.get(), &last, 1, size - 1) == 1 && last != '\n')
    if (auto r = write_whole(journal->fd_.get(), "\n", path); !r) return Failure(r.error());
  return journal;
}

Result<long long> Journal::write(Record record, Sync sync) {
  std::lock_guard lock(mutex_);
  if (point()) die();
  long long number = next_++;
  record["n"] = number;
  record["t"] = utc_now();
  // Bytes that are not UTF-8 (file names, tool output) must not stop the journal.
  std::string line = record.dump(-1, ' ', false, Record::error_handler_t::replace) + "\n";
  if (point()) {
    (void)write_whole(fd_.get(), std::string_view(line).substr(0, line.size() / 2), path_);
    die();
  }
  if (auto r = write_whole(fd_.get(), line, path_); !r) return Failure(r.error());
  if (sync == Sync::now && fdatasync(fd_.get()) != 0)
    return os_failure("cannot sync the journal", path_, errno);
  if (point()) die();
  return number;
}

}  // namespace ep
