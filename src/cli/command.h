// What a command is to the command line: a row in commands.cpp and one file that declares options and runs.
// Only parse.cpp knows CLI11; only main.cpp knows exit codes of last resort.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "report/look.h"

namespace ep {

class Host;
struct Facts;

/// One option or positional of a command. `names` as CLI11 reads them: "-o,--output", "--json", "file"
/// (positional).
struct Option {
  std::string names;
  Text help;
  std::variant<bool*, int*, long long*, double*, std::string*, std::vector<std::string>*> into;
  std::vector<std::string> choices;  ///< allowed values; empty: any
  std::string value_name;            ///< shown in help: FILE, N, STACK
  bool required = false;
};

/// What every command is given. Results go to `out`, talk to `note`; both honour colour and language.
struct Context {
  std::string from;  ///< --from, where the command takes it
  bool json = false;
  Lang lang = Lang::en;
  Terminal terminal;              ///< what stdout can show
  std::vector<std::string> argv;  ///< as the user typed it, for "resume with" lines

  void out(std::string_view text) const;   ///< stdout, as is
  void note(std::string_view text) const;  ///< stderr, one line, newline added
  /// Prints an error by the contract (text or, with --json, a record) and returns its exit code.
  int report(const Error& error) const;
  /// The last line of a human report: "next: ..." (nothing with --json).
  void next(std::string_view command, Text why = {}) const;
  /// " --from PATH" for commands that look at the same host; empty for this machine.
  std::string from_option() const { return from.empty() ? "" : " --from " + shell_quote(from); }
  /// The host that --from names, or the live one; Ctrl-C ends its probes from here on.
  Result<std::unique_ptr<Host>> open() const;
  /// Its facts; error `interrupted` when Ctrl-C came meanwhile, since they would be incomplete.
  Result<Facts> read(const Host& host, const std::string& prefix = {}) const;
  std::string_view tr(Text text) const { return text.in(lang); }
  Look look() const { return {lang, terminal.color, terminal.unicode, terminal.width}; }
};

/// Set by Ctrl-C, SIGTERM and SIGHUP once a command called this; long work looks at it and unwinds to exit
/// code 5.
const std::atomic<bool>& interrupted();

class Command {
 public:
  virtual ~Command() = default;
  virtual std::vector<Option> options() { return {}; }
  /// Returns the exit code: 0 good, 1 finding or step failed, 2 usage, 3 inconclusive or cannot be done here,
  /// 4 reboot needed, 5 interrupted, 6 changes pending (plan --detailed-exitcode), 70 our bug.
  virtual int run(Context& context) = 0;
};

enum class Group { main, know, change, prove, help };

struct CommandRow {
  const char* name;  ///< "env lint" is a sub-command of env: two words
  Group group;
  Text summary;     ///< one sentence, at most 80 characters in English
  bool takes_from;  ///< has --from
  bool has_json;    ///< has --json
  std::unique_ptr<Command> (*make)();
};

/// The visible table (commands.cpp): help, completion, man pages and "did you mean" derive from it.
const std::vector<CommandRow>& commands();

}  // namespace ep
