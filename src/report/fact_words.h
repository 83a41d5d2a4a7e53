// Words for values and states of facts, shared by the text and JSON of facts.
#pragma once
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/text.h"
#include "facts/fact.h"

namespace ep {

/// known, absent, unreadable, malformed: as JSON says it.
std::string_view to_string(Known state);
/// The same for people.
std::string_view state_word(Known state, Lang lang);

inline std::string value_text(const std::string& v) {
  return v;
}
inline std::string value_text(bool v) {
  return v ? "yes" : "no";
}
inline std::string value_text(const std::vector<std::string>& v) {
  return join(v, ", ");
}
std::string value_text(double v);
template <class T>
std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, std::string> value_text(T v) {
  return std::to_string(v);
}

}  // namespace ep
