// Result<T> and Error: how every fallible function of epready answers. An Error is a value; text is made
// once, at the edge.
#pragma once
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace ep {

/// What went wrong, coarsely; decides the exit code. `absent` (not there), `unreadable` (there, but not for
/// us) and `malformed` (read, but not understood) are never mixed.
enum class ErrorKind {
  absent,
  unreadable,
  malformed,
  usage,
  failed,
  unsupported,
  timeout,
  interrupted,
  drifted,
  internal
};

struct Error {
  ErrorKind kind = ErrorKind::failed;
  std::string what;                ///< one sentence without a full stop: what is wrong
  std::string where;               ///< path, path:line, step id, command; empty when there is no place
  std::string why;                 ///< cause: errno text, what was expected
  std::string next;                ///< a command or an act that helps
  std::vector<std::string> trace;  ///< context added on the way up, innermost first

  /// "what: where: why" on one line, then trace and next, each on its own line.
  std::string text() const;
  /// Exit code by the contract of the command line: usage 2, unsupported/absent 3, interrupted 5, internal
  /// 70, else 1.
  int exit_code() const;
};

template <class T = void>
using Result = tl::expected<T, Error>;
using Failure = tl::unexpected<Error>;

/// Makes a failure in one line: `return fail(ErrorKind::malformed, "bad GID", path, "expected 8 groups");`
Failure fail(ErrorKind kind, std::string what, std::string where = {}, std::string why = {},
             std::string next = {});
/// The same error with one more line of context: `return add_context(std::move(r.error()), "while loading
/// X");`
Failure add_context(Error error, std::string context);

std::string_view to_string(ErrorKind kind);

}  // namespace ep
