#include "base/finding.h"

namespace ep {

std::string_view to_string(Severity s) {
  switch (s) {
    case Severity::info:
      return "info";
    case Severity::warn:
      return "warn";
    case Severity::fail:
      return "fail";
  }
  return "fail";
}

std::string_view to_string(Verdict v) {
  switch (v) {
    case Verdict::pass:
      return "PASS";
    case Verdict::warn:
      return "WARN";
    case Verdict::fail:
      return "FAIL";
    case Verdict::skip:
      return "SKIP";
    case Verdict::not_run:
      return "NOT_RUN";
    case Verdict::unknown:
      return "UNKNOWN";
  }
  return "UNKNOWN";
}

Verdict worst(Verdict a, Verdict b) {
  auto rank = [](Verdict v) {
    switch (v) {
      case Verdict::pass:
        return 0;
      case Verdict::skip:
        return 1;
      case Verdict::not_run:
        return 2;
      case Verdict::warn:
        return 3;
      case Verdict::unknown:
        return 4;
      case Verdict::fail:
        return 5;
    }
    return 4;
  };
  return rank(a) >= rank(b) ? a : b;
}

}  // namespace ep
