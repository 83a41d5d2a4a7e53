// What a run shows while it lasts: on a terminal one line that goes on, in a log plain lines.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "apply/apply.h"
#include "base/text.h"

namespace ep {
namespace {

using namespace std::chrono_literals;

Step named(const char* id) {
  Step s;
  s.id = id;
  s.title = std::string("do ") + id;
  return s;
}

/// Standard error into a pipe, for as long as this lives.
class Screen {
 public:
  Screen() : saved_(dup(2)) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    in_ = ends[0];
    dup2(ends[1], 2);
    close(ends[1]);
  }
  ~Screen() {
    end();
    close(in_);
  }
  /// Reads until the text has come, at most 20 s.
  bool until(const std::string& wanted) {
    pollfd p{in_, POLLIN, 0};
    while (text.find(wanted) == std::string::npos)
      if (poll(&p, 1, 20000) != 1 || !take()) return false;
    return true;
  }
  /// Everything that was written.
  std::string end() {
    if (saved_ >= 0) {
      dup2(saved_, 2);
      close(saved_);
      saved_ = -1;
      while (take()) continue;
    }
    return text;
  }
  std::string text;

 private:
  bool take() {
    char buf[4096];
    ssize_t n = read(in_, buf, sizeof buf);
    if (n > 0) text.append(buf, size_t(n));
    return n > 0;
  }
  int saved_, in_ = -1;
};

TEST(Progress, ALogHasPlainLinesAndALineNowAndThenFromASilentStep) {
  const Step build = named("build");
  Screen screen;
  {
    auto progress = stderr_progress(false, false, false, 80, {1ms, 5ms});
    progress->step_started(build, 2, 7);
    EXPECT_TRUE(screen.until("s  works\n")) << screen.text;
    progress->output_line(build, "  Building CXX object x.o");
    EXPECT_TRUE(screen.until("s  Building CXX object x.o\n")) << screen.text;
    StepResult r;
    r.id = "build";
    r.state = StepState::done;
    r.seconds = 61;
    progress->step_ended(r);
    progress->message("over");
  }
  const std::string out = screen.end();
  EXPECT_NE(out.find("[2/7] build: do build\n"), std::string::npos) << out;
  EXPECT_NE(out.find("ok build (1m01s)\n"), std::string::npos) << out;
  EXPECT_EQ(out.find('\r'), std::string::npos);
  EXPECT_EQ(out.find("\x1b"), std::string::npos);
  EXPECT_EQ(out.find("Building", out.find("ok build")), std::string::npos) << "a step that is over: " << out;
}

TEST(Progress, ALogIsQuietWhileNothingIsLate) {
  const Step build = named("build");
  Screen screen;
  {
    auto progress = stderr_progress(false, false, false, 80, {1ms, 3600000ms});
    progress->step_started(build, 1, 1);
    for (int i = 0; i < 1000; ++i) progress->output_line(build, "line");
  }
  EXPECT_EQ(screen.end(), "[1/1] build: do build\n");
}

TEST(Progress, OnATerminalTheTimeGoesOnWithoutOutputAndNoLineIsWiderThanIt) {
  const Step quiet = named("quiet"), loud = named("loud");
  Screen screen;
  {
    auto progress = stderr_progress(true, false, false, 40, {1ms, 3600000ms});
    progress->step_started(quiet, 1, 2);
    EXPECT_TRUE(screen.until("[1/2] 0.2s quiet")) << "the clock stands still: " << screen.text;
    progress->step_started(loud, 2, 2);
    progress->output_line(loud, std::string(500, 'x') + "中文");
    EXPECT_TRUE(screen.until("loud  xxx")) << screen.text;
  }
  const std::string out = screen.end();
  EXPECT_NE(out.find("[1/2] 0.0s quiet"), std::string::npos) << out;
  EXPECT_NE(out.find("[2/2 +1]"), std::string::npos) << "two at once: " << out;
  for (auto part : split(out, '\r')) EXPECT_LE(display_width(part.substr(part.find('K') + 1)), 39u) << part;
  EXPECT_EQ(out.substr(out.size() - 4), "\r\x1b[K") << "the line is taken away at the end";
}

}  // namespace
}  // namespace ep
