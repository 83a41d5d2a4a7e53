// epready: facts -> lanes -> plan -> apply -> env -> verify -> report, and the doctor at any point.
#include <csignal>
#include <cstdio>
#include <exception>

#include "cli/parse.h"

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
  // A full disk behind stdout must not look like success.
  if (std::fflush(stdout) != 0 && code == 0) {
    std::perror("epready: cannot write the result");
    return 1;
  }
  return code;
}
