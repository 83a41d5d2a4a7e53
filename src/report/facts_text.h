// Facts for people, walked from the same listing as the JSON. Decides nothing.
#pragma once
#include <string>
#include <vector>

#include "facts/facts.h"
#include "report/look.h"

namespace ep {

struct FactsTextOptions {
  std::string area;  ///< empty: all, the long lists as counts
  bool all = false;  ///< absent facts too, long lists in full
};

/// Areas with their known facts; unreadable and malformed ones always with their reason.
std::string facts_text(const Facts& facts, const FactsTextOptions& options, const Look& look);

/// One difference between two hosts: "os/version_id", "24.04", "22.04". What is not known reads "(absent)"
/// and so on.
struct FactDifference {
  std::string path, a, b;
};
/// In the listing's order; items of lists are matched by label. Values that differ on any two machines or at
/// any two times (boot id, host name, serials, counters, free space) are left out unless `volatile_too`.
std::vector<FactDifference> compare_facts(const Facts& a, const Facts& b, bool volatile_too = false);

}  // namespace ep
