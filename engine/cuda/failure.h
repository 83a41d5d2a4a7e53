// The one error of the GPU engine's programs: what failed, where, and what to do next. Thrown by a rank,
// caught once in main; a failed rank wakes the others through its Group.
#pragma once

#include <stdexcept>
#include <string>

namespace ep::engine::gpu {

/// Exit codes as everywhere in epready: 1 wrong result, 2 usage, 3 cannot be done here.
struct Failure : std::runtime_error {
  Failure(int code, const std::string& text, int rank = -1, std::string phase = {})
      : std::runtime_error(text), exit_code(code), failed_rank(rank), failed_phase(std::move(phase)) {}
  int exit_code;
  int failed_rank;
  std::string failed_phase;
};

/// `code` is a cudaError_t; kept out of this header so that it needs no CUDA.
void check_cuda(int code, const char* what, const char* file, int line);
#define EP_CUDA(call) ::ep::engine::gpu::check_cuda(static_cast<int>(call), #call, __FILE__, __LINE__)

}  // namespace ep::engine::gpu
