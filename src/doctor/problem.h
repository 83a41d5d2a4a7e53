// Problem: one known failure as data (data/problems/KIND.toml, schema in data/VOCABULARY.md), and the
// catalogue of all of them. Loading refuses unknown keys and bad patterns with file and line; it never skips
// one silently.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/result.h"
#include "base/text.h"
#include "doctor/observed.h"
#include "recipe/data_files.h"

namespace ep {

struct TwoTexts {
  std::string en, zh;
  const std::string& in(Lang lang) const { return lang == Lang::zh && !zh.empty() ? zh : en; }
};

/// What a line must look like: all literals, and the regular expression where there is one.
struct LinePattern {
  std::vector<std::string> literals;
  std::string regex_text;
  std::shared_ptr<const re2::RE2> regex;  ///< null: literals decide
  bool ignore_case = false;
  /// Literals and expression on one line (without its newline).
  bool matches(std::string_view line) const;
  /// The literal a scanner should look for: the rarest of them.
  size_t anchor() const;
};

struct Signature {
  LinePattern pattern;
  bool decisive = false;
  bool after_effect = false;
  std::string id;
  std::vector<std::string> with;
  int within = 0;  ///< lines; 0 = anywhere
  int times = 1;   ///< counts only when so many lines match
  std::vector<FactCondition> only_if;
  int line_in_file = 0;
};

struct CounterSign {
  LinePattern pattern;
  TwoTexts why;
};

struct FactRule {
  std::vector<FactCondition> all;
  bool decisive = false;
  Severity severity = Severity::fail;
  bool despite_exclude = false;  ///< stands although an `exclude` of the problem holds
  bool need = false;  ///< what a lane will want, no sign of a failure: judged only where no log is given
  TwoTexts seen;
};

struct LookAlike {
  std::string kind;
  TwoTexts decide;
  std::string command;
};

struct Fix {
  TwoTexts text;
  std::vector<std::string> commands;
  std::vector<std::string> steps;  ///< ids of plan steps that do it: `doctor --fix` plans them
  bool root = false, reboot = false;
  std::vector<FactCondition> only_if;
};

struct Source {
  std::string url, date, says;
};

struct Problem {
  std::string kind, layer, phase, first_seen;
  std::string file;  ///< where it was loaded from
  Severity severity = Severity::fail;
  std::vector<std::string> lanes;
  int reports = 0;
  bool survives_success = false;
  std::vector<std::string> after_effects;
  std::vector<FactCondition> require, support, exclude;
  TwoTexts title, cause;
  std::vector<Signature> signatures;
  std::vector<CounterSign> against;
  std::vector<FactRule> rules;
  std::vector<LookAlike> look_alikes;
  std::vector<Fix> fixes;
  std::vector<Source> sources;
};

struct Catalogue {
  std::vector<Problem> problems;  ///< by kind
  const Problem* find(std::string_view kind) const;
};

/// One file. `name` is shown in errors ("data/problems/x.toml"). Every mistake is added to `errors`; with any
/// of them the problem is not to be used.
Problem parse_problem(std::string_view toml, const std::string& name, std::vector<Error>& errors);
/// Good files are loaded whatever the others hold; the caller shows `errors` and never drops them.
Catalogue load_catalogue(const std::vector<DataFile>& files, std::vector<Error>& errors);
/// Whether `^` stands in the expression as the beginning of the line (not in a class, not escaped): then a
/// line is also tried without the prefix that a launcher or a logger put before it.
bool asks_for_start(std::string_view regex);
/// RE2 with our options (quiet, 8 MiB). `error` is left alone when it compiles.
std::shared_ptr<const re2::RE2> compile_regex(const std::string& text, bool ignore_case, std::string* error);

}  // namespace ep
