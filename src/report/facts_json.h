// Facts as JSON: every value with its state and place. Decides nothing; the listing is facts/fields.h.
#pragma once
#include <string>

#include "facts/facts.h"

namespace ep {

/// {"schema": "epready-facts-1", "tool", "host": {name, kind}, AREA: {FIELD: {"state":
/// known|absent|unreadable| malformed, "value", "where", "why"}}}. Lists are arrays of records whose "name"
/// labels them. `area` limits it to one area of the listing; empty gives all. UTF-8; odd bytes become U+FFFD.
std::string facts_json(const Facts& facts, const std::string& area = {});

/// Names of the areas, in order.
std::vector<std::string> fact_areas();

}  // namespace ep
