// Checks: facts -> verdicts, before anything runs. The table is checks.cpp; a check is one function and one
// row. Rows follow the host checks in the documentation of NVIDIA, rdma-core and DeepEP.
#pragma once
#include <string>
#include <vector>

#include "base/finding.h"
#include "base/words.h"
#include "facts/facts.h"

namespace ep {

/// Lanes that a check matters for, as bits.
enum LaneBits : unsigned {
  kLaneLocal = 1,
  kLaneV1 = 2,
  kLaneV2 = 4,
  kLaneGpu = kLaneV1 | kLaneV2,
  kLaneAll = 7
};

struct CheckResult {
  Outcome outcome;    ///< reason in the user's language; for pass: what was seen
  Evidence evidence;  ///< where it was read
  std::string next;   ///< a command or act; empty when all is well
};

struct CheckRow {
  const char* id;  ///< "gpu.model": area.name, stable
  Text title;
  unsigned lanes;  ///< LaneBits
  CheckResult (*run)(const Facts&, const Words&);
};

struct CheckReport {
  const CheckRow* row = nullptr;
  CheckResult result;
};

const std::vector<CheckRow>& checks();
/// Every check whose lanes meet `lanes`, in table order.
std::vector<CheckReport> run_checks(const Facts& facts, unsigned lanes, Lang lang);

}  // namespace ep
