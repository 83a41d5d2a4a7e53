// Makers of all commands, one a file; only commands.cpp reads this.
#pragma once
#include <memory>

#include "cli/command.h"

namespace ep {

std::unique_ptr<Command> make_bench();
std::unique_ptr<Command> make_facts();
std::unique_ptr<Command> make_snapshot();
std::unique_ptr<Command> make_bundle();
std::unique_ptr<Command> make_doctor();
std::unique_ptr<Command> make_explain();
std::unique_ptr<Command> make_problems();
std::unique_ptr<Command> make_lanes();
std::unique_ptr<Command> make_plan_command();
std::unique_ptr<Command> make_stacks();
std::unique_ptr<Command> make_libs();
std::unique_ptr<Command> make_libs_lint();
std::unique_ptr<Command> make_driver_command();
std::unique_ptr<Command> make_data_lint();
std::unique_ptr<Command> make_apply();
std::unique_ptr<Command> make_fetch();
std::unique_ptr<Command> make_status();
std::unique_ptr<Command> make_undo();
std::unique_ptr<Command> make_verify();
std::unique_ptr<Command> make_history();
std::unique_ptr<Command> make_compare();
std::unique_ptr<Command> make_topology();
std::unique_ptr<Command> make_report();
std::unique_ptr<Command> make_up();
std::unique_ptr<Command> make_env();
std::unique_ptr<Command> make_env_lint();
std::unique_ptr<Command> make_help();
std::unique_ptr<Command> make_completion();

}  // namespace ep
