// Talk for people: whole lines on stderr, never mixed with each other or with results. Levels, no categories.
#pragma once
#include <string_view>

namespace ep {

enum class LogLevel { quiet, normal, verbose };

/// Set once at start (-q, -v); `normal` before that.
void set_log_level(LogLevel level);
LogLevel log_level();

/// One line to stderr in one write(2), so that lines of several threads stay whole. A final newline is added
/// when missing. Thread-safe; a closed stderr is ignored.
void log_note(std::string_view line);   ///< normal and verbose
void log_debug(std::string_view line);  ///< verbose only

}  // namespace ep
