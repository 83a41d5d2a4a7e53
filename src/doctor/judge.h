// The judgement: evidence of logs and facts of a host, weighed against the catalogue. Pure. Confidence is
// counted, not felt: docs/doctor.md explains each number of kWeigh.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "base/text.h"
#include "doctor/sightings.h"

namespace ep {

struct Diagnosis {
  std::vector<Finding> findings;  ///< fail and warn first (at most three), best first; then info
  bool undecided = false;  ///< the best finding has an equally good rival; its `next` says how to decide
  bool healthy = false;    ///< nothing found, and no error line either
  std::optional<Evidence> start;     ///< nothing found, but this is the first error line
  std::vector<std::string> collect;  ///< what to collect then
  std::vector<std::string> notes;    ///< what was not read, or not understood
  std::vector<Error> errors;         ///< sources that could not be read
  int64_t bytes = 0, lines = 0;
  bool nothing_read = false;  ///< logs were given, and no text came out of them: no answer is no health
};

Diagnosis judge(const Catalogue& catalogue, const LogEvidence& logs, const Observed& observed, Lang lang);

}  // namespace ep
