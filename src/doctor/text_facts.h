// Facts read out of text that people paste: versions, models, devices, sizes, environment variables, figures.
// A table of line patterns (run by the same scan as the problems) and the few conclusions that follow from
// what was read.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/observed.h"
#include "doctor/problem.h"

namespace ep {

struct FactPattern {
  LinePattern pattern;  ///< literals empty: looked at only in the head of a text (short words of prose)
  std::string fact;     ///< empty: first group is the variable's name, second its value
  Trust trust = Trust::installed;
  std::string value;  ///< fixed value; empty: the first group; ending in a dot: prefix of the group
  double factor = 0;  ///< group times this, when not 0
  std::shared_ptr<const re2::RE2> next =
      {};  ///< when set, the value is this one's group on the following line
};

const std::vector<FactPattern>& fact_patterns();

/// Adds what `line` says by `row` (which matched it) to `observed`; `next` is the line after it.
void read_text_fact(const FactPattern& row, std::string_view line, std::string_view next,
                    const Evidence& where, Observed& observed);

/// What follows from the observations: torch.cuda from torch's local version, compute capability from the
/// model, the generation of DeepEP from its version, the driver from device names, number of copies.
/// Idempotent.
void derive_facts(Observed& observed);

/// "9.0 10.0a+PTX", "90;100f": binary code runs on later GPUs of the same major number, that of a letter a on
/// its own only, PTX on everything later.
bool archs_serve(const std::string& list, int compute_capability);

}  // namespace ep
