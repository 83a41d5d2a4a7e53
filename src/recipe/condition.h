// Conditions as data writes them: "gpu.compute_capability >= 90", "nvshmem < 3.5.19 | deepep has rc-fix",
// "gpu.model matches GB[23]00". One grammar and one evaluator for components, stacks, platforms, variables
// and problems. Three answers, because a fact that nobody could read makes a condition unknown, never true
// and never false. Grammar: ATOM { " | " ATOM }; ATOM = NAME OP VALUE; OP = == != < <= > >= in has lacks
// contains matches, or set and unset without VALUE. `{NAME}` and `{NAME.major}` in VALUE stand for what NAME
// is now. Phrase: data/VOCABULARY.md.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace ep {

enum class Truth { no, yes, unknown };

/// How values of a name compare. open: nobody said; by number where both begin with a digit, else as text.
enum class ValueKind { open, version, number, boolean, text };

/// What is known about a name when a condition asks.
struct NameAnswer {
  bool known = false;    ///< false: nobody could tell
  bool present = false;  ///< known and there; then `values` has one or more
  ValueKind kind = ValueKind::open;
  std::vector<std::string_view> values;              ///< more than one: of a text, any that fits is enough
  size_t counts = 0;                                 ///< the one of them that decides where only one can
  const std::vector<std::string>* traits = nullptr;  ///< for `has` and `lacks`; nullptr: has none to ask
};
/// Where conditions look names up.
class Names {
 public:
  virtual ~Names() = default;
  virtual NameAnswer ask(std::string_view name) const = 0;
};

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
  std::shared_ptr<const re2::RE2> regex;  ///< of `matches`
};
/// What a condition came to, and what decided it.
struct Judged {
  Truth truth = Truth::no;
  size_t atom = 0;  ///< of Condition::any_of
  int value = -1;   ///< of NameAnswer::values; -1: none (unknown, or known to be absent)
};
struct Condition {
  std::string text;  ///< as written
  std::vector<Atom> any_of;

  /// Errors: malformed, saying which word is wrong. Whether a name exists is the reader's question.
  static Result<Condition> parse(std::string_view text);
  /// The first alternative that is true; else unknown where one is unknown; else no.
  Judged judge(const Names& names) const;
  /// A name that the scope lacks is unknown.
  Truth holds(const Scope& scope) const;
  /// What the scope says about the names, for people: "gpu.compute_capability is 80 (nvidia-smi)".
  std::string evidence(const Scope& scope) const;
};

Truth all_hold(const std::vector<Condition>& conditions, const Scope& scope);
/// Names that the conditions mention, `{...}` included, each once.
std::vector<std::string> names_in(const std::vector<Condition>& conditions);
/// Of all: no if one is no, else unknown if one is unknown, else yes (also of none).
Truth all_of(const std::vector<Truth>& truths);
/// "{cuda.major}" and "{cuda}" replaced; a name that is not present is left as written.
std::string fill_in(std::string_view text, const Scope& scope);

}  // namespace ep
