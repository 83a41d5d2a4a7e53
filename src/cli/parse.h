// From argv to a command that is ready to run. The only user of CLI11.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"

namespace ep {

struct Parsed {
  const CommandRow* row = nullptr;  ///< null: nothing to run, `text` is the whole answer
  std::unique_ptr<Command> command;
  Context context;
  std::string text;   ///< help or version text for stdout, or a usage error for stderr
  int exit_code = 0;  ///< when row is null
};

/// Never throws, never exits. Usage errors: exit code 2, text with "did you mean" and the next command.
Parsed parse(int argc, const char* const* argv);

/// Options of a command as a man page and the help command list them, one a line: names, value, help,
/// choices.
std::string options_text(const CommandRow& row, Lang lang);
/// Overview of all commands by group.
std::string overview(Lang lang);
/// Words that complete `words` (the last may be partial), for the hidden `__complete` command.
std::vector<std::string> complete(const std::vector<std::string>& words);

}  // namespace ep
