// epready: facts -> lanes -> plan -> apply -> env -> verify -> report, and the doctor at any point.
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "cli/parse.h"

namespace {
/// The reader of a pipe closed it (| head): it has what it wanted.
bool reader_went_away() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}
}  // namespace

int main(int argc, char** argv) {
  // A reader that goes away (| head) is an end of output, not a crash; write errors show in the exit code
  // below.
  std::signal(SIGPIPE, SIG_IGN);

  ep::Parsed parsed = ep::parse(argc, argv);
  if (!parsed.command) {
    std::fputs(parsed.text.c_str(), parsed.exit_code ? stderr : stdout);
    return parsed.exit_code;
  }

  int code = 70;
  try {
    code = parsed.command->run(parsed.context);
  } catch (const std::exception& e) {
    // Exceptions are our own bugs or an exhausted machine; everything expected is a Result.
    std::fprintf(stderr,
                 "epready: internal error: %s\n  next: run the same with EPREADY_DEBUG=1 and report it\n",
                 e.what());
    return 70;
  }
  // A full disk behind stdout must not look like success. A reader that went away is none of that: quiet, and
  // the command's own exit code, so that `epready facts | head -1` is good under pipefail.
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written && code == 0 && !reader_went_away()) {
    std::perror("epready: cannot write the result");
    return 1;
  }
  return code;
}
