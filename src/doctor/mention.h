// Voice of a line: does a program print this, does a person tell that it happened, or is it only spoken of
// (advice, hearsay, release notes, a question before buying)? Reads English prose around the error, no
// problem of the catalogue. Pure; asked only for lines that matched something.
#pragma once
#include <string>
#include <string_view>

#include "doctor/problem.h"

namespace ep {

enum class Voice {
  machine,    ///< printed by a program, or nothing says otherwise
  told,       ///< a person says that it happened: "we get `X` on two nodes"
  quoted,     ///< quoted in prose, code, a table or a search pattern that says neither; the rest decides
  mentioned,  ///< named without having it: "if you ever see `X`", "the wiki says X", "no X since the update"
};

/// Voice in which `line` says what `pattern` (which matched it) looks for.
Voice voice(std::string_view line, const LinePattern& pattern);

/// A complaint that every healthy run prints: a probe of CMake, a 404 of a web client, a retry that follows.
bool harmless(std::string_view line);

/// The title of a page that lists what may go wrong (FAQ, runbook, changelog), not of a report.
bool guide_title(std::string_view line);

/// A person tells here of something that went wrong: "I get", "all ranks hang", "it fails with".
bool tells_trouble(std::string_view line);

}  // namespace ep
