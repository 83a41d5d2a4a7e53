// The closed list of facts that conditions of problems may name (data/VOCABULARY.md, "problem"). One table;
// the host's facts and the facts read out of text fill the same names.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "recipe/condition.h"

namespace ep {

using FactType = ValueKind;  ///< version, number, boolean or text; never open

struct FactName {
  std::string_view name;
  FactType type;
  Text what;  ///< what it is, for "how to observe" and for `explain`
};

const std::vector<FactName>& fact_names();
/// Row for a name; env.NAME is a text fact for every NAME. nullptr when unknown.
const FactName* find_fact_name(std::string_view name);

}  // namespace ep
