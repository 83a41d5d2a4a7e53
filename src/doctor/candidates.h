// Candidates: every problem that lines or facts speak for, with its counted evidence, confidence, severity
// and what rules it out. Weighing only; which one is told first and how is judge.h. Pure.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/finding.h"
#include "base/text.h"
#include "doctor/sightings.h"

namespace ep {

/// Above it a candidate is sure; below kFail a fail is told as a warning. Documented in docs/doctor.md.
constexpr double kConfident = 0.7, kFail = 0.5;

using LineKey = std::pair<int, int64_t>;

struct Candidate {
  const Problem* problem = nullptr;
  std::vector<size_t> hits;      ///< signatures of role cause that count
  std::vector<size_t> symptoms;  ///< after-effects seen
  std::vector<const FactRule*> rules;
  int decisive = 0, supporting = 0;
  Truth required = Truth::yes;
  std::string unknown_fact;  ///< of the first require that nobody observed
  std::vector<std::pair<std::string, const Observation*>> conditions;  ///< true ones, for evidence
  double confidence = 0;
  Severity severity = Severity::fail;
  Place first, last;           ///< of the lines that speak for it
  Place first_decisive;        ///< of those that name the cause
  std::vector<LineKey> lines;  ///< where its lines stand
  std::string ruled_out_by;    ///< not empty: it is not this
};

struct Case {
  const Catalogue& catalogue;
  const LogEvidence& logs;
  const Observed& observed;
  Lang lang;
  std::string say(std::string_view en, std::string_view zh) const {
    return std::string(lang == Lang::zh ? zh : en);
  }
};

/// Candidates in the catalogue's order, those that are ruled out included.
std::vector<Candidate> gather(const Case& c);

}  // namespace ep
