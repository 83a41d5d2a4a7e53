// Judges the libraries of one Python environment: do the copies of NCCL, NVSHMEM, the CUDA runtime and DeepEP
// that a process would load fit each other and the GPUs, and what would the consumer's own probe say. Pure;
// the facts are read by facts/libraries without running anything.
#pragma once
#include <vector>

#include "base/finding.h"
#include "base/text.h"
#include "facts/libraries.h"

namespace ep {

struct LibsLint {
  /// Worst first; nothing for a sound environment. Codes: libs-missing, libs-wrong-package, libs-nccl-old,
  /// libs-overwritten, libs-changed, libs-cuda-major, libs-shadowed, libs-duplicate, libs-versions,
  /// libs-arch, libs-nvshmem-boundary, libs-runpath, libs-other-copies, libs-record, libs-not-read.
  std::vector<Finding> findings;
  /// vLLM's has_deep_ep() and has_deep_ep_v2(): PASS true, FAIL false, NOT_RUN what needs a driver or a GPU,
  /// UNKNOWN what could not be read. The reason is there for PASS too.
  Outcome has_deep_ep, has_deep_ep_v2;
};

LibsLint lint_libraries(const LibraryFacts& libraries, const PythonEnvironment& environment,
                        const Facts& facts, Lang lang);

/// Libraries that come with the NVIDIA driver, never with a wheel.
bool is_driver_library(std::string_view soname);

}  // namespace ep
