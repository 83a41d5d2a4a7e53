// What an output stream can show: terminal or not, colour, Unicode, width. Decides nothing about content.
#pragma once
#include <string>
#include <string_view>

namespace ep {

struct Terminal {
  bool is_terminal = false;
  bool color = false;    ///< terminal, TERM is not dumb, NO_COLOR unset or empty (https://no-color.org)
  bool unicode = false;  ///< terminal and a UTF-8 locale (LC_ALL, LC_CTYPE, LANG: first one set counts)
  int width = 100;       ///< columns; COLUMNS when it is not a terminal and that is a number
};

/// Looks at a file descriptor and the process environment.
Terminal look_at_terminal(int fd);

enum class Style { plain, bold, dim, red, green, yellow, blue, cyan };
/// Text in a style; unchanged when `color` is false or the style is plain.
std::string paint(Style style, std::string_view text, bool color);

}  // namespace ep
