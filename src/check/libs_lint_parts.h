// Inside src/check only: what the linter of libraries and its probes share.
#pragma once
#include <string>

#include "base/words.h"
#include "check/libs_lint.h"

namespace ep {

constexpr const char* kV2Nccl = "2.30.4";  // vllm-ep-kernels-readme: at build and at run time

/// "2.30.7+cuda13.3" -> "2.30.7".
inline std::string plain_version(const std::string& version) {
  return version.substr(0, version.find('+'));
}
/// DeepEP's extension in the environment; nullptr: none.
inline const LibraryCopy* extension_of(const LibraryFacts& l) {
  for (const auto& c : l.copies)
    if (c.family == "deepep" && c.found_by == "environment") return &c;
  return nullptr;
}
void vllm_probes(const LibraryFacts& libraries, const PythonEnvironment& environment, const Facts& facts,
                 const Words& words, LibsLint& out);

}  // namespace ep
