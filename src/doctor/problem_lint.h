// The rules that problems of the catalogue keep beyond what the loader enforces: fixtures, sources,
// look-alikes. `epready data lint` and a test call it. Pure: the caller reads the files.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "doctor/problem.h"

namespace ep {

struct Fixture {
  std::string path;  ///< test/problems/KIND/hit1.log
  std::string text;
};

struct LintMark {
  bool error = true;  ///< false: advice
  std::string where;  ///< file, or file:line
  std::string text;
};

/// `fixtures`: all hit*.log and miss*.log of all kinds, by kind; empty: the rules about fixtures are left
/// out.
std::vector<LintMark> lint_problems(const Catalogue& catalogue,
                                    const std::map<std::string, std::vector<Fixture>>& fixtures);

}  // namespace ep
