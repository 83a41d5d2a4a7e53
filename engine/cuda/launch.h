// Host side of the kernels: which tiling fits a shape and a GPU, and the launches. No memory is owned here.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "args.h"

namespace ep::engine::gpu {

enum class Path { kBulk, kPlain };

/// What the caller may fix; 0 = choose.
struct Tuning {
  int ctas = 0;
  int warps = 0;
  int stages = 0;
  int lag = 0;
  int seg_bytes = 0;
  int unroll = 0;  // plain dispatch
  int ahead = -1;
  int own = -1;        // dispatch: warps for this rank's own rows; below 0 = choose
  int adders = 0;      // streamed combine, combine by words: warps that add
  int push_ctas = -1;  // combine by words; below 0 = choose
};

struct DeviceLimits {
  int sms = 0;
  size_t smem = 0;    // per block, opt-in
  bool bulk = false;  // the image that this GPU runs has bulk copies
};
cudaError_t device_limits(int device, DeviceLimits& out);

/// Empty on success, else why the shape cannot be run on so many blocks. `max_ctas`: blocks this rank may
/// have.
std::string plan_dispatch(const Shape& shape, Path path, const DeviceLimits& limits, int max_ctas,
                          const Tuning& wish, Tiling& out);
std::string plan_pull(const Shape& shape, Path path, const DeviceLimits& limits, int max_ctas,
                      const Tuning& wish, Tiling& out);
std::string plan_stream(const Shape& shape, const DeviceLimits& limits, int max_ctas, const Tuning& wish,
                        Tiling& out);
std::string plan_words(const Shape& shape, const DeviceLimits& limits, int max_ctas, const Tuning& wish,
                       Tiling& out);
ExpertMap expert_map(const Shape& shape);

/// Sets the kernels' shared-memory limits on the current device; once per device.
cudaError_t prepare_kernels(const DeviceLimits& limits);
cudaError_t launch_dispatch(const DispatchArgs& args, Path path, cudaStream_t stream);
cudaError_t launch_pull(const CombineArgs& args, Path path, cudaStream_t stream);
cudaError_t launch_stream(const CombineArgs& args, cudaStream_t stream);
cudaError_t launch_words(const CombineArgs& args, cudaStream_t stream);

const void* dispatch_kernel(Path path, int unroll);
const void* pull_kernel(Path path);
const void* stream_kernel();
const void* words_kernel(bool many);  // more than two rows a token
// service.cu
struct HashResult {
  uint32_t wrong_rows = 0;
  uint32_t first_wrong = 0xffffffffu;
};
struct BarrierArgs {
  Control* control[kMaxGpuRanks];
  int32_t rank, ranks;
  AbortReport* report;
  uint64_t timeout_ns;
  uint64_t hop_ns;  // a flag's way to a peer; the slowest when they differ
};
void fill_rows(const Shape& shape, int rank, uint64_t seed, void* rows, void* scales, cudaStream_t stream);
void fill_returns(const Shape& shape, int rank, uint64_t seed, const uint64_t* origin, int rows, void* y,
                  cudaStream_t stream);
void hash_rows(const void* rows, size_t row_bytes, int count, const uint64_t* expect, uint64_t* found,
               HashResult* result, cudaStream_t stream);
cudaError_t prepare_service();
void align_ranks(const BarrierArgs& args, cudaStream_t stream);
void delay(uint64_t ns, cudaStream_t stream);
void pack_rows(const void* rows, const int32_t* list, int count, size_t row_bytes, void* out,
               cudaStream_t stream);
void ping(const BarrierArgs& args, int rounds, uint64_t* ns, cudaStream_t stream);
void empty(cudaStream_t stream);

// probe.cu
enum class Probe { kBulkStore, kBulkLoad, kPlainStore, kPlainLoad };
cudaError_t probe(Probe kind, int ctas, void* at, size_t bytes, void* sink, cudaStream_t stream);

}  // namespace ep::engine::gpu
