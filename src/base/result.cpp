#include "base/result.h"

namespace ep {

std::string Error::text() const {
  std::string out = what;
  if (!where.empty()) out += ": " + where;
  if (!why.empty()) out += ": " + why;
  for (const auto& t : trace) out += "\n  " + t;
  if (!next.empty()) out += "\n  next: " + next;
  return out;
}

int Error::exit_code() const {
  switch (kind) {
    case ErrorKind::usage:
      return 2;
    case ErrorKind::absent:
    case ErrorKind::unsupported:
      return 3;
    case ErrorKind::interrupted:
      return 5;
    case ErrorKind::internal:
      return 70;
    default:
      return 1;
  }
}

Failure fail(ErrorKind kind, std::string what, std::string where, std::string why, std::string next) {
  return Failure(Error{kind, std::move(what), std::move(where), std::move(why), std::move(next), {}});
}

Failure add_context(Error error, std::string context) {
  error.trace.push_back(std::move(context));
  return Failure(std::move(error));
}

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::absent:
      return "absent";
    case ErrorKind::unreadable:
      return "unreadable";
    case ErrorKind::malformed:
      return "malformed";
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::failed:
      return "failed";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::timeout:
      return "timeout";
    case ErrorKind::interrupted:
      return "interrupted";
    case ErrorKind::drifted:
      return "drifted";
    case ErrorKind::internal:
      return "internal";
  }
  return "internal";
}

}  // namespace ep
