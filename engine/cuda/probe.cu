// Ceilings of a link as kernels see it: contiguous bytes, no protocol. Bulk stores, bulk loads, 16-byte
// stores and loads between this GPU and one address that may be a peer's. The bench divides by what these
// reach in the same run.
#include "device.cuh"
#include "launch.h"

namespace ep::engine::gpu {

namespace {

constexpr int kProbeWarps = 8, kProbeStages = 7, kProbeBytes = 3584;

/// Each warp moves pieces warp, warp + all warps, ... Stores come from shared memory that is never refilled:
/// only the link and the receiving memory are measured.
__global__ void __launch_bounds__(kProbeWarps * 32, 1) bulk_store_kernel(uint8_t* to, size_t bytes) {
#if EP_HAS_BULK
  extern __shared__ __align__(128) uint8_t smem[];
  const int warp = threadIdx.x >> 5;
  for (int i = threadIdx.x; i < kProbeWarps * kProbeBytes / 4; i += blockDim.x) {
    reinterpret_cast<uint32_t*>(smem)[i] = 0x3f80u * (i + blockIdx.x);
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if ((threadIdx.x & 31) != 0) return;
  const size_t step = static_cast<size_t>(gridDim.x) * kProbeWarps * kProbeBytes;
  for (size_t at = (static_cast<size_t>(blockIdx.x) * kProbeWarps + warp) * kProbeBytes;
       at + kProbeBytes <= bytes; at += step) {
    bulk_store(to + at, smem + warp * kProbeBytes, kProbeBytes);
    bulk_commit();
    bulk_wait_read(4);
  }
  bulk_drain();
#endif
}

__global__ void __launch_bounds__(kProbeWarps * 32, 1) bulk_load_kernel(const uint8_t* from, size_t bytes) {
#if EP_HAS_BULK
  extern __shared__ __align__(128) uint8_t smem[];
  __shared__ uint64_t full[kProbeWarps][kProbeStages];
  const int warp = threadIdx.x >> 5;
  if ((threadIdx.x & 31) != 0) return;
  for (int s = 0; s < kProbeStages; ++s) mbarrier_init(&full[warp][s]);
  mbarrier_init_done();
  const size_t step = static_cast<size_t>(gridDim.x) * kProbeWarps * kProbeBytes;
  const size_t first = (static_cast<size_t>(blockIdx.x) * kProbeWarps + warp) * kProbeBytes;
  const int n = first + kProbeBytes > bytes ? 0 : static_cast<int>((bytes - kProbeBytes - first) / step) + 1;
  uint8_t* stage = smem + static_cast<size_t>(warp) * kProbeStages * kProbeBytes;
  for (int k = 0; k < n + kProbeStages; ++k) {
    const int s = k % kProbeStages;
    if (k >= kProbeStages && k - kProbeStages < n) mbarrier_wait(&full[warp][s], (k / kProbeStages - 1) & 1);
    if (k >= n) continue;
    mbarrier_expect(&full[warp][s], kProbeBytes);
    bulk_load(stage + s * kProbeBytes, from + first + static_cast<size_t>(k) * step, kProbeBytes,
              &full[warp][s]);
  }
#endif
}

__global__ void __launch_bounds__(1024, 1) plain_store_kernel(uint4* to, size_t vectors) {
  const uint4 v = make_uint4(0x3f80, threadIdx.x, blockIdx.x, 0x4000);
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x * 4;
  const size_t warp_first =
      (static_cast<size_t>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31u)) * 4 + (threadIdx.x & 31);
  for (size_t at = warp_first; at < vectors; at += step) {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      if (at + u * 32 < vectors) store_vector(to + at + u * 32, v);
    }
  }
}

__global__ void __launch_bounds__(1024, 1)
    plain_load_kernel(const uint4* from, size_t vectors, uint32_t* sink) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x * 8;
  const size_t warp_first =
      (static_cast<size_t>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31u)) * 8 + (threadIdx.x & 31);
  uint32_t sum = 0;
  for (size_t at = warp_first; at < vectors; at += step) {
    uint4 v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u)
      v[u] = at + u * 32 < vectors ? load_peer(from + at + u * 32) : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int u = 0; u < 8; ++u) sum += v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
  }
  if (sum == 0x12345678u) *sink = sum;
}

}  // namespace

cudaError_t probe(Probe kind, int ctas, void* at, size_t bytes, void* sink, cudaStream_t stream) {
  const int smem = kProbeWarps * kProbeStages * kProbeBytes;
  switch (kind) {
    case Probe::kBulkStore:
      bulk_store_kernel<<<ctas, kProbeWarps * 32, kProbeWarps * kProbeBytes, stream>>>(
          static_cast<uint8_t*>(at), bytes);
      break;
    case Probe::kBulkLoad: {
      const cudaError_t e =
          cudaFuncSetAttribute(bulk_load_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem);
      if (e != cudaSuccess) return e;
      bulk_load_kernel<<<ctas, kProbeWarps * 32, smem, stream>>>(static_cast<const uint8_t*>(at), bytes);
      break;
    }
    case Probe::kPlainStore:
      plain_store_kernel<<<ctas, 1024, 0, stream>>>(static_cast<uint4*>(at), bytes / 16);
      break;
    case Probe::kPlainLoad:
      plain_load_kernel<<<ctas, 1024, 0, stream>>>(static_cast<const uint4*>(at), bytes / 16,
                                                   static_cast<uint32_t*>(sink));
      break;
  }
  return cudaGetLastError();
}

}  // namespace ep::engine::gpu
