// What `libs lint` shows: the copies side by side, what a process would load, the consumer's probes,
// findings.
#pragma once
#include <string>

#include "check/libs_lint.h"
#include "report/look.h"

namespace ep {

std::string libs_lint_text(const LibraryFacts& libraries, const LibsLint& lint, const Look& look);
/// Schema epready-libs-lint-1.
std::string libs_lint_json(const LibraryFacts& libraries, const LibsLint& lint);

}  // namespace ep
