// Options that apply and undo share, and the question of consent at the terminal.
#pragma once
#include <string>
#include <vector>

#include "apply/apply.h"
#include "cli/command.h"

namespace ep {

struct ApplyArguments {
  std::string prefix, root = "/", yes, offline;
  std::vector<std::string> mirrors;
  int jobs = 0;
};

/// A plan that `plan -o` wrote. Errors: absent (no such file), usage (a folder, half a plan, another
/// version), unsupported (may not be read).
Result<Plan> read_plan_file(const std::string& path);

/// --prefix and --root.
std::vector<Option> place_options(ApplyArguments& a);
/// --yes, --offline, --mirror, --jobs.
std::vector<Option> run_options(ApplyArguments& a);

/// " --prefix X --root Y" as far as they are not the usual ones: next commands go to the same place.
std::string place_words(const ApplyArguments& a);
/// From arguments to executor options: consent words, FROM=TO pairs, folders. Errors: usage.
Result<ApplyOptions> apply_options(const ApplyArguments& a, const Context& c);
/// The progress display that fits this terminal and --json.
std::unique_ptr<Progress> progress_for(const Context& c);
/// Asks on the terminal; false without one.
bool ask_yes(const Context& c, const std::string& question, const std::vector<std::string>& lines);
std::string risk_words(const Context& c, Risk risk);

}  // namespace ep
