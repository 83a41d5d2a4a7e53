// Combine by pull: every token's rows are read from the ranks that hold them, by bulk copies into shared
// memory or by 16-byte loads, added in ascending rank order in float and rounded once. One pass and no
// staging, so it has the lowest latency; reads of both directions at once reach less of a link than writes
// (see stream.cu).
#include "combine.cuh"
#include "launch.h"

namespace ep::engine::gpu {

namespace {

#if EP_HAS_BULK
/// One warp with a ring of its own: its first lane loads the pieces of all rows of a token, all lanes add.
struct PullRing {
  const CombineArgs& a;
  const CombineTable& table;
  uint8_t* stage;
  uint64_t* full;
  Range mine;
  int first, step, total;

  __device__ int count() const { return first < total ? (total - first + step - 1) / step : 0; }
  __device__ void place(int k, int& token, int& offset, int& bytes) const {
    const int i = first + k * step, row = static_cast<int>(a.shape.combine_row_bytes());
    token = i / a.tile.segs;
    offset = (i - token * a.tile.segs) * a.tile.seg_bytes;
    bytes = min(a.tile.seg_bytes, row - offset);
  }
  /// `which`: rows of this rank, of the others, or both. The first call for a stage announces all bytes.
  __device__ void load(int k, bool announce, bool own, bool others) {
    int token, offset, bytes;
    place(k, token, offset, bytes);
    const int s = k % a.tile.stages, ranks = a.shape.ranks;
    uint8_t* to = stage + static_cast<size_t>(s) * a.tile.stage_bytes;
    const int32_t* slots = table.slot + token * ranks;
    if (announce) {
      int rows = 0;
      for (int d = 0; d < ranks; ++d) rows += slots[d] >= 0;
      mbarrier_expect(&full[s], static_cast<uint32_t>(rows * bytes));
    }
    int n = 0;
    for (int d = 0; d < ranks; ++d) {
      if (slots[d] < 0) continue;
      if (d == a.rank ? own : others)
        bulk_load(to + n * a.tile.seg_bytes, a.y[d] + slots[d] * a.shape.combine_row_bytes() + offset, bytes,
                  &full[s]);
      ++n;
    }
  }
  __device__ void add(int k) const {
    int token, offset, bytes;
    place(k, token, offset, bytes);
    const int ranks = a.shape.ranks;
    const uint8_t* from = stage + static_cast<size_t>(k % a.tile.stages) * a.tile.stage_bytes;
    const int32_t* slots = table.slot + token * ranks;
    int rows = 0;
    for (int d = 0; d < ranks; ++d) rows += slots[d] >= 0;
    uint8_t* out = a.out + (static_cast<size_t>(mine.begin) + token) * a.shape.combine_row_bytes() + offset;
    const float* weight = table.weight + token * ranks;
    if (a.weighted)
      add_rows<true>(from, rows, a.tile.seg_bytes, weight, out, bytes);
    else
      add_rows<false>(from, rows, a.tile.seg_bytes, weight, out, bytes);
  }
};
#endif

__global__ void __launch_bounds__(640, 1) combine_bulk(const __grid_constant__ CombineArgs a) {
#if EP_HAS_BULK
  extern __shared__ __align__(128) uint8_t smem[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const Tiling& tile = a.tile;
  const Range mine = range_of(a.shape.tokens[a.rank], gridDim.x, blockIdx.x);
  uint64_t* bars =
      reinterpret_cast<uint64_t*>(smem + static_cast<size_t>(tile.warps) * tile.stages * tile.stage_bytes);
  CombineTable table;
  table.slot = reinterpret_cast<int32_t*>(bars + tile.warps * tile.stages);
  table.weight = reinterpret_cast<float*>(table.slot + tile.table_tokens * a.shape.ranks);
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseReady][blockIdx.x] + 1;
  announce(a.control, a.rank, a.shape.ranks, kPhaseReady, epoch);  // this rank's rows were ready at launch
  if (threadIdx.x == 0) stamp(a.stamps, kStampStart);
  PullRing ring = {a,
                   table,
                   smem + static_cast<size_t>(warp) * tile.stages * tile.stage_bytes,
                   bars + warp * tile.stages,
                   mine,
                   warp,
                   tile.warps,
                   mine.count * tile.segs};
  if (lane == 0) {
    for (int s = 0; s < tile.stages; ++s) mbarrier_init(&ring.full[s]);
    mbarrier_init_done();
  }
  fill_table(a, table, mine.begin, 1, mine.count, threadIdx.x, blockDim.x);
  __syncthreads();
  const int n = ring.count(), ahead = min(n, tile.stages);
  if (lane == 0) {  // this rank's own rows need no flag
    for (int k = 0; k < ahead; ++k) ring.load(k, true, true, false);
  }
  const bool good = !__syncthreads_or(!await_peers(waiter, a.shape.ranks, kPhaseReady, epoch));
  if (threadIdx.x == 0) stamp(a.stamps, kStampCounts);
  if (!good) {  // complete what was announced, so that shared memory is quiet when the block ends
    if (lane == 0) {
      for (int k = 0; k < ahead; ++k) ring.load(k, false, false, true), mbarrier_wait(&ring.full[k], 0);
    }
    return;
  }
  if (lane == 0) {
    fence_acquired_for_bulk();
    for (int k = 0; k < ahead; ++k) ring.load(k, false, false, true);
  }
  for (int k = 0; k < n; ++k) {
    mbarrier_wait(&ring.full[k % tile.stages], k / tile.stages & 1);
    if (k == 0 && threadIdx.x == 0) stamp(a.stamps, kStampFirst);
    ring.add(k);
    __syncwarp();
    if (lane == 0 && k + tile.stages < n) ring.load(k + tile.stages, true, true, true);
  }
  __syncthreads();
  advance_epoch(control, kPhaseReady, epoch);
  if (threadIdx.x == 0) stamp(a.stamps, kStampFlags);
#endif
}

/// 16-byte path. A warp takes a piece of `kUnroll` vectors per lane; rows of two ranks are in flight at once.
template <int kUnroll, bool kWeighted>
__device__ inline void pull_piece(const CombineArgs& a, const CombineTable& table, Range mine, int index,
                                  int lane) {
  const int ranks = a.shape.ranks, row = static_cast<int>(a.shape.combine_row_bytes());
  const int token = index / a.tile.segs, offset = (index - token * a.tile.segs) * a.tile.seg_bytes;
  const int bytes = min(a.tile.seg_bytes, row - offset);
  const int32_t* slots = table.slot + token * ranks;
  float acc[kUnroll][8];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
    for (int i = 0; i < 8; ++i) acc[u][i] = 0;
  }
  int n = 0;
  for (int d0 = 0; d0 < ranks; d0 += 2) {
    uint4 v[2][kUnroll];
    float w[2] = {0, 0};
    bool here[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int d = d0 + j;
      here[j] = d < ranks && slots[d] >= 0;
      if (!here[j]) continue;
      const uint4* from =
          reinterpret_cast<const uint4*>(a.y[d] + slots[d] * a.shape.combine_row_bytes() + offset);
      if (kWeighted) w[j] = table.weight[token * ranks + n];
      ++n;
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if ((u * 32 + lane) * 16 < bytes) v[j][u] = load_peer(from + u * 32 + lane);
      }
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (!here[j]) continue;
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if ((u * 32 + lane) * 16 < bytes) add_vector<kWeighted>(acc[u], v[j][u], w[j]);
      }
    }
  }
  uint4* out = reinterpret_cast<uint4*>(a.out + (static_cast<size_t>(mine.begin) + token) * row + offset);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if ((u * 32 + lane) * 16 < bytes) store_vector(out + u * 32 + lane, round_vector(acc[u]));
  }
}

template <int kUnroll>
__global__ void __launch_bounds__(512, 1) combine_plain(const __grid_constant__ CombineArgs a) {
  extern __shared__ __align__(128) uint8_t smem[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const Range mine = range_of(a.shape.tokens[a.rank], gridDim.x, blockIdx.x);
  CombineTable table;
  table.slot = reinterpret_cast<int32_t*>(smem);
  table.weight = reinterpret_cast<float*>(table.slot + a.tile.table_tokens * a.shape.ranks);
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseReady][blockIdx.x] + 1;
  announce(a.control, a.rank, a.shape.ranks, kPhaseReady, epoch);
  if (threadIdx.x == 0) stamp(a.stamps, kStampStart);
  fill_table(a, table, mine.begin, 1, mine.count, threadIdx.x, blockDim.x);
  if (__syncthreads_or(!await_peers(waiter, a.shape.ranks, kPhaseReady, epoch))) return;
  if (threadIdx.x == 0) stamp(a.stamps, kStampCounts);
  for (int i = warp; i < mine.count * a.tile.segs; i += blockDim.x >> 5) {
    if (a.weighted)
      pull_piece<kUnroll, true>(a, table, mine, i, lane);
    else
      pull_piece<kUnroll, false>(a, table, mine, i, lane);
  }
  __syncthreads();
  advance_epoch(control, kPhaseReady, epoch);
  if (threadIdx.x == 0) stamp(a.stamps, kStampFlags);
}

}  // namespace

const void* pull_kernel(Path path) {
  return path == Path::kBulk ? reinterpret_cast<const void*>(&combine_bulk)
                             : reinterpret_cast<const void*>(&combine_plain<4>);
}

}  // namespace ep::engine::gpu
