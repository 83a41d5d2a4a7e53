// What a scan saw: for every line pattern how often, where first and last, by whom. And the marks of a run as
// such: hard errors, signs of success. Collecting only; judging is judge.h.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "doctor/log_scan.h"
#include "doctor/observed.h"
#include "doctor/problem.h"

namespace ep {

struct Place {
  int source = -1;   ///< index of the log
  int64_t line = 0;  ///< 1-based
  double time = 0;   ///< seconds, NaN when the line has no time stamp
  bool known() const { return source >= 0; }
};
/// Earlier in time: by line in one log, by time stamps between logs where both have one, else by order of the
/// logs.
bool earlier(const Place& a, const Place& b);

struct Sighting {
  Place place;
  std::string text;  ///< the line, escape sequences removed, at most 400 bytes
  std::string who;   ///< rank or process, when the line says it
};

struct Sightings {
  int64_t count = 0;
  std::vector<Sighting> first;  ///< up to eight
  Place last;
  std::set<std::string> who;  ///< up to 64 different ones
  std::vector<Place> places;  ///< of hard errors and signs of success: the first thousand lines
  int64_t quoted = 0;         ///< of `count`: quoted in prose that does not say whether it happened
  Place mention;              ///< first line that only speaks of it; such lines are not in `count`
};

/// A text that is (nearly) none: compressed, encrypted, a core file, blanks only.
enum class Unreadable { no, blank, gzip, zstd, xz, bzip2, zip, journal, elf, binary };

struct LogInput {
  std::string name;
  ReadBlock read;
};

/// All that the logs say, in terms of the catalogue.
struct LogEvidence {
  std::vector<std::string> names;  ///< of the logs, by source index
  std::vector<ScanNotes> notes;
  std::vector<Unreadable> unreadable;
  std::vector<Error> errors;  ///< logs that could not be read to their end
  struct OfProblem {
    std::vector<Sightings> signatures, against;
    std::vector<std::vector<int64_t>>
        gap;  ///< [signature][position in its `with`]: least distance in lines, -1 never both
  };
  std::vector<OfProblem> problems;  ///< as in the catalogue
  Sightings hard_errors, soft_errors, run_success, alive, build_success;
  Sightings tests_passed, tests_failed;  ///< summaries of test runners
  bool guide = false;                    ///< a page about what may go wrong, no report; see mention.h
  bool told = false;                     ///< a person tells of trouble ("we get ..."); see mention.h
  bool own = false;                      ///< ... of his own
  /// Something went wrong here, so what prose quotes is meant: told, an error that a program printed, or so
  /// short a text that it is a question about its own words.
  bool trouble() const {
    if (guide) return own;
    int64_t lines = 0;
    for (const ScanNotes& n : notes) lines += n.lines;
    return told || hard_errors.count > 0 || lines <= 2;
  }
  int max_rank = -1;
  bool crosses_nodes = false;  ///< a channel between two ranks with the same GPU number runs over the network
  std::set<std::string> hosts;  ///< up to 1024
};

/// One pass over each log. Facts found in the text go to `observed`, evidence to `out`; both are usable (for
/// judge) whenever a reader is asked for more, so that a reader that waits for a growing file can judge
/// meanwhile.
void read_logs(const Catalogue& catalogue, std::vector<LogInput> logs, Observed& observed, LogEvidence& out);
LogEvidence read_logs(const Catalogue& catalogue, std::vector<LogInput> logs, Observed& observed);

}  // namespace ep
