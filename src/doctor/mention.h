// Voice of a line: does a program print this, does a person tell that it happened, or is it only spoken of
// (advice, hearsay, release notes, a question before buying)? Reads English prose around the error, no
// problem of the catalogue. Pure; asked only for lines that matched something.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

/// A sentence or two of a person, no output of a program.
bool prose_line(std::string_view line);

/// A complaint that every healthy run prints: a probe of CMake, a 404 of a web client, a retry that follows.
bool harmless(std::string_view line);

/// The title of a page that lists what may go wrong (FAQ, runbook, changelog), not of a report.
bool guide_title(std::string_view line);

/// A person tells here of something that went wrong: "I get", "all ranks hang", "it fails with".
bool tells_trouble(std::string_view line);
/// The same, and it is the writer's own: "we", "my pods", "any idea?". Pages of documentation never say that.
bool tells_own_trouble(std::string_view line);

/// Follows the lines of a text from its beginning and tells where it only shows examples ("you may see a
/// message similar to this:"), and whether it is a page rather than a report: by its title, or because half
/// of it are sentences that speak to a reader and nobody has trouble of his own.
class Reading {
 public:
  void line(std::string_view text, int64_t number);
  Voice shown_as(int64_t number) const;  ///< machine: no example; quoted or mentioned: in one
  bool page() const;
  bool told() const { return told_; }
  bool own() const { return own_; }

 private:
  struct Example {
    int64_t from, to;
    Voice voice;
  };
  std::vector<Example> examples_;
  int64_t lines_ = 0, prose_ = 0, advice_ = 0;
  bool title_ = false, told_ = false, own_ = false, open_ = false, fence_ = false;
};

}  // namespace ep
