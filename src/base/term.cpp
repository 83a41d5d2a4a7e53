#include "base/term.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/text.h"

namespace ep {

namespace {
constexpr int kMinColumns = 20, kMaxColumns = 1000;

std::string_view env(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (auto v = env(name); !v.empty()) return icontains(v, "utf-8") || icontains(v, "utf8");
  return false;
}
}  // namespace

Terminal look_at_terminal(int fd) {
  Terminal t;
  t.is_terminal = isatty(fd) == 1;
  t.color = t.is_terminal && env("NO_COLOR").empty() && env("TERM") != "dumb" && !env("TERM").empty();
  t.unicode = t.is_terminal && is_utf8_locale();
  winsize size{};
  if (t.is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= kMinColumns) {
    t.width = size.ws_col;
  } else if (auto n = parse_int(env("COLUMNS")); n && *n >= kMinColumns && *n <= kMaxColumns) {
    t.width = int(*n);
  }
  return t;
}

std::string paint(Style style, std::string_view text, bool color) {
  const char* code = nullptr;
  switch (style) {
    case Style::plain:
      break;
    case Style::bold:
      code = "1";
      break;
    case Style::dim:
      code = "2";
      break;
    case Style::red:
      code = "31";
      break;
    case Style::green:
      code = "32";
      break;
    case Style::yellow:
      code = "33";
      break;
    case Style::blue:
      code = "34";
      break;
    case Style::cyan:
      code = "36";
      break;
  }
  if (!color || !code || text.empty()) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace ep
