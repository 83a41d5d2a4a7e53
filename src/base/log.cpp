#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

namespace ep {

namespace {
std::atomic<LogLevel> g_level{LogLevel::normal};

void write_line(std::string_view line) {
  std::string text(line);
  if (text.empty() || text.back() != '\n') text += '\n';
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // nobody listens: talk may be lost, results may not
    done += size_t(n);
  }
}
}  // namespace

void set_log_level(LogLevel level) {
  g_level = level;
}
LogLevel log_level() {
  return g_level;
}

void log_note(std::string_view line) {
  if (g_level != LogLevel::quiet) write_line(line);
}
void log_debug(std::string_view line) {
  if (g_level == LogLevel::verbose) write_line(line);
}

}  // namespace ep
