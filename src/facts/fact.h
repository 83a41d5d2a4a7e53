// Fact<T>: one typed observation, with where it was read. Absent, unreadable and malformed stay apart.
#pragma once
#include <string>
#include <utility>

#include "base/result.h"

namespace ep {

enum class Known { yes, absent, unreadable, malformed };

template <class T>
struct Fact {
  T value{};
  Known known = Known::absent;
  std::string where;  ///< path or probe name it was (or would be) read from
  std::string why;    ///< for anything but yes: the reason, in words

  bool ok() const { return known == Known::yes; }
  explicit operator bool() const { return ok(); }
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
  T value_or(T other) const { return ok() ? value : std::move(other); }
};

template <class T>
Fact<T> known(T value, std::string where) {
  return {std::move(value), Known::yes, std::move(where), {}};
}
template <class T>
Fact<T> absent(std::string where, std::string why = {}) {
  return {{}, Known::absent, std::move(where), std::move(why)};
}
template <class T>
Fact<T> unreadable(std::string where, std::string why) {
  return {{}, Known::unreadable, std::move(where), std::move(why)};
}
template <class T>
Fact<T> malformed(std::string where, std::string why) {
  return {{}, Known::malformed, std::move(where), std::move(why)};
}
/// Carries the error of a Result over: same kind, same words.
template <class T>
Fact<T> from_error(const Error& e, std::string where) {
  Known k = e.kind == ErrorKind::absent      ? Known::absent
            : e.kind == ErrorKind::malformed ? Known::malformed
                                             : Known::unreadable;
  return {{}, k, std::move(where), e.why.empty() ? e.what : e.why};
}

}  // namespace ep
