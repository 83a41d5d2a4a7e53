// How far a solution leaves the stack that it was found for: pins that a rule forbade, a platform that the
// stack is not made for, and whether DeepEP became another generation, which is another stack altogether.
// Pure.
#pragma once
#include <string>
#include <vector>

#include "plan/solver.h"

namespace ep {

struct Deviation {
  struct Change {
    std::string component, pinned, chosen, why;
  };
  std::vector<Change> changes;    ///< in the order of the solution
  bool other_generation = false;  ///< DeepEP V1, V2 and V2.5 have different interfaces
  bool other_platform = false;    ///< neither this platform nor "any" is among the stack's
  bool none() const { return changes.empty() && !other_platform; }
};

/// Versions that `wishes` ask for by name are no deviation. `platform`: id, or empty.
Deviation deviation(const Stack& stack, const Recipe& recipe, const Solution& solution, const Wishes& wishes,
                    const std::string& platform);

/// "deepep 2.0.0+d4f41e4 instead of 2.5.0+db8166d (why)"
std::string change_text(const Deviation::Change& change, Lang lang);

}  // namespace ep
