// Options that plan, lanes, libs, driver, fetch and lock share.
#pragma once
#include <string>
#include <vector>

#include "cli/command.h"
#include "facts/facts.h"
#include "plan/planner.h"

namespace ep {

struct PlanArguments {
  PlanOptions plan;
  std::string data_dir;
};

/// --lane --stack --consumer --with --prefix --data-dir
std::vector<Option> plan_options(PlanArguments& arguments);
/// What of them was asked for, as words to repeat in a next command: " --lane v1 --with nodes=1". `defaults`
/// is what the command had before it was asked.
std::string asked_options(const PlanArguments& asked, const PlanArguments& defaults = {});
/// Folder for --data-dir: as given, else EPREADY_DATA.
std::string data_folder(const std::string& given);
/// Recipe and facts for a command that plans; fills the prefix when it was not given: the usual one here,
/// /opt/epready for other hosts. Errors are reported by the caller.
struct PlanInput {
  Facts facts;
  Recipe recipe;
};
Result<PlanInput> plan_input(Context& context, PlanArguments& arguments);

}  // namespace ep
