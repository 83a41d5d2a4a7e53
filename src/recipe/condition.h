// Conditions as data writes them: "gpu.compute_capability >= 90", "nvshmem < 3.5.19 | deepep has rc-fix".
// Three answers, because a fact that nobody could read makes a condition unknown, never true and never false.
// Grammar: ATOM { " | " ATOM }; ATOM = NAME OP VALUE; OP = == != < <= > >= in has lacks set unset. `{NAME}`
// and
// `{NAME.major}` in VALUE stand for what NAME is now. Phrase: data/VOCABULARY.md.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ep {

enum class Truth { no, yes, unknown };

/// One thing that conditions can name: a fact of the host, a chosen version, an option.
struct Named {
  bool known = false;                 ///< false: nobody could tell
  bool present = false;               ///< known and there
  std::string text;                   ///< value when present
  std::string why;                    ///< where from, or why it is not known
  std::vector<std::string> traits{};  ///< for `has` and `lacks`: of the chosen release
};
using Scope = std::map<std::string, Named, std::less<>>;

struct Atom {
  std::string name, op, value;
};
struct Condition {
  std::string text;  ///< as written
  std::vector<Atom> any_of;

  static Result<Condition> parse(std::string_view text);
  /// A name that the scope lacks is unknown.
  Truth holds(const Scope& scope) const;
  /// What the scope says about the names, for people: "gpu.compute_capability is 80 (nvidia-smi)".
  std::string evidence(const Scope& scope) const;
};

Truth all_hold(const std::vector<Condition>& conditions, const Scope& scope);
/// Names that the conditions mention, `{...}` included, each once.
std::vector<std::string> names_in(const std::vector<Condition>& conditions);
/// "{cuda.major}" and "{cuda}" replaced; a name that is not present is left as written.
std::string fill_in(std::string_view text, const Scope& scope);

}  // namespace ep
