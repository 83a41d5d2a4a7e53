// Kernels around the exchange: test data and its check on the device, alignment of ranks, delays, packing for
// the libraries we compare with, and a flag round trip. None of them is part of a timed exchange of ours.
#include "device.cuh"
#include "launch.h"
#include "pattern.h"

namespace ep::engine::gpu {

namespace {

__global__ void fill_rows_kernel(Shape shape, int rank, uint64_t seed, uint8_t* rows, uint8_t* scales) {
  const int vectors = static_cast<int>(shape.row_vectors()), groups = shape.scale_groups();
  const int padded = static_cast<int>(shape.scale_row_bytes() / 4);
  for (int t = blockIdx.x; t < shape.tokens[rank]; t += gridDim.x) {
    auto* row = reinterpret_cast<Vector16*>(rows + static_cast<size_t>(t) * shape.row_bytes());
    for (int v = threadIdx.x; v < vectors; v += blockDim.x)
      row[v] = row_vector(shape.dtype, seed, rank, t, v);
    auto* scale = reinterpret_cast<float*>(scales + static_cast<size_t>(t) * shape.scale_row_bytes());
    for (int g = threadIdx.x; g < padded; g += blockDim.x)
      scale[g] = g < groups ? row_scale(seed, rank, t, g) : 0.0f;
  }
}

/// `origin`: [rows] source rank << 32 | source token of each received row.
__global__ void fill_returns_kernel(Shape shape, int rank, uint64_t seed, const uint64_t* origin, int rows,
                                    uint8_t* y) {
  const int vectors = static_cast<int>(shape.combine_row_vectors());
  for (int r = blockIdx.x; r < rows; r += gridDim.x) {
    auto* row = reinterpret_cast<Vector16*>(y + static_cast<size_t>(r) * shape.combine_row_bytes());
    const int source = static_cast<int>(origin[r] >> 32), token = static_cast<int>(origin[r] & 0xffffffffu);
    for (int v = threadIdx.x; v < vectors; v += blockDim.x)
      row[v] = combine_vector(seed, rank, source, token, v);
  }
}

/// One warp per row. `found` may be null; counts rows whose hash is not the expected one, and keeps the
/// first.
__global__ void hash_rows_kernel(const uint8_t* rows, size_t row_bytes, int count, const uint64_t* expect,
                                 uint64_t* found, HashResult* result) {
  const int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < count; r += warps) {
    const auto* words = reinterpret_cast<const uint64_t*>(rows + static_cast<size_t>(r) * row_bytes);
    uint64_t sum = 0;
    for (size_t i = lane; i < row_bytes / 8; i += 32) sum += hash_word(words[i], i);
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane != 0) continue;
    if (found != nullptr) found[r] = sum;
    if (expect == nullptr || expect[r] == sum) continue;
    atomicAdd(&result->wrong_rows, 1u);
    atomicMin(&result->first_wrong, static_cast<uint32_t>(r));
  }
}

__global__ void barrier_kernel(BarrierArgs a) {
  const Waiter w = {a.control[a.rank], a.report, a.timeout_ns};
  const uint32_t epoch = w.mine->epoch[kPhaseBarrier][0] + 1;
  announce(a.control, a.rank, a.ranks, kPhaseBarrier, epoch);
  const uint64_t start = global_ns();
  await_peers(w, a.ranks, kPhaseBarrier, epoch);
  // The last to come finds all words here at once, the others see its word one hop later: it waits that long
  // too, so that all leave together.
  while (global_ns() - start < a.hop_ns) {
  }
  __syncthreads();
  advance_epoch(w.mine, kPhaseBarrier, epoch);
}

__global__ void delay_kernel(uint64_t ns) {
  const uint64_t start = global_ns();
  while (global_ns() - start < ns) __nanosleep(200);
}

/// Rows with a destination, gathered into one contiguous buffer: what a send/recv library needs.
__global__ void pack_kernel(const uint8_t* rows, const int32_t* list, int count, int vectors, uint8_t* out) {
  for (int r = blockIdx.x; r < count; r += gridDim.x) {
    const uint4* from = reinterpret_cast<const uint4*>(rows) + static_cast<size_t>(list[r]) * vectors;
    uint4* to = reinterpret_cast<uint4*>(out) + static_cast<size_t>(r) * vectors;
    for (int v = threadIdx.x; v < vectors; v += blockDim.x) to[v] = load_stream(from + v);
  }
}

/// `rounds` flag round trips between two ranks: rank 0 sends and waits, rank 1 waits and answers.
__global__ void ping_kernel(BarrierArgs a, int rounds, uint64_t* ns) {
  const Waiter w = {a.control[a.rank], a.report, a.timeout_ns};
  const int peer = 1 - a.rank;
  uint64_t* there = &a.control[peer]->flag[kPhaseNone][a.rank][0];
  const uint64_t* here = &w.mine->flag[kPhaseNone][peer][0];
  const uint32_t base = w.mine->epoch[kPhaseNone][0];
  const uint64_t start = global_ns();
  uint32_t ignored;
  for (int i = 1; i <= rounds; ++i) {
    if (a.rank == 0) store_release(there, pack(base + i, 0));
    if (!wait_word(w, here, base + i, kPhaseBarrier, peer, ignored)) return;
    if (a.rank == 1) store_release(there, pack(base + i, 0));
  }
  w.mine->epoch[kPhaseNone][0] = base + rounds;
  *ns = global_ns() - start;
}

__global__ void empty_kernel() {}

}  // namespace

void fill_rows(const Shape& shape, int rank, uint64_t seed, void* rows, void* scales, cudaStream_t stream) {
  if (shape.tokens[rank] == 0) return;
  fill_rows_kernel<<<512, 256, 0, stream>>>(shape, rank, seed, static_cast<uint8_t*>(rows),
                                            static_cast<uint8_t*>(scales));
}
void fill_returns(const Shape& shape, int rank, uint64_t seed, const uint64_t* origin, int rows, void* y,
                  cudaStream_t stream) {
  if (rows == 0) return;
  fill_returns_kernel<<<512, 256, 0, stream>>>(shape, rank, seed, origin, rows, static_cast<uint8_t*>(y));
}
void hash_rows(const void* rows, size_t row_bytes, int count, const uint64_t* expect, uint64_t* found,
               HashResult* result, cudaStream_t stream) {
  if (count == 0 || row_bytes == 0) return;
  hash_rows_kernel<<<512, 256, 0, stream>>>(static_cast<const uint8_t*>(rows), row_bytes, count, expect,
                                            found, result);
}
cudaError_t prepare_service() {
  // The barrier precedes every timed operation; with the same split of L1 and shared memory as ours (and as
  // most matrix kernels) the multiprocessors need not be emptied and set up anew inside the timed part.
  cudaError_t e = cudaFuncSetAttribute(barrier_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100);
  if (e == cudaSuccess)
    e = cudaFuncSetAttribute(empty_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100);
  return e;
}
void align_ranks(const BarrierArgs& args, cudaStream_t stream) {
  barrier_kernel<<<1, 32, 0, stream>>>(args);
}
void delay(uint64_t ns, cudaStream_t stream) {
  delay_kernel<<<1, 1, 0, stream>>>(ns);
}
void pack_rows(const void* rows, const int32_t* list, int count, size_t row_bytes, void* out,
               cudaStream_t stream) {
  if (count == 0) return;
  pack_kernel<<<1056, 256, 0, stream>>>(static_cast<const uint8_t*>(rows), list, count,
                                        static_cast<int>(row_bytes / 16), static_cast<uint8_t*>(out));
}
void ping(const BarrierArgs& args, int rounds, uint64_t* ns, cudaStream_t stream) {
  ping_kernel<<<1, 1, 0, stream>>>(args, rounds, ns);
}
void empty(cudaStream_t stream) {
  empty_kernel<<<1, 32, 0, stream>>>();
}

}  // namespace ep::engine::gpu
