// The table of commands. Adding one: its file, its row here, its page in docs/commands/ and
// docs/zh/commands/.
#include "cli/command.h"
#include "cli/rows.h"

namespace ep {

const std::vector<CommandRow>& commands() {
  static const std::vector<CommandRow> table = {
      // name, group, summary (en, zh), takes --from, has --json, maker
      {"bench",
       Group::prove,
       {"Time dispatch and combine here, against ceilings measured in the same run",
        "在本机测量 dispatch/combine，并与同次测得的上限比较"},
       false,
       true,
       make_bench},
      {"help", Group::help, {"Show a command's manual page", "显示某个命令的手册"}, false, false, make_help},
      {"completion",
       Group::help,
       {"Print the completion script of a shell", "输出 shell 补全脚本"},
       false,
       false,
       make_completion},
  };
  return table;
}

}  // namespace ep
