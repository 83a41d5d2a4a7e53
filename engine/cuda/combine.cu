// Combine by pull: every token's rows are read from the ranks that hold them, by bulk copies into shared
// memory or by 16-byte loads, added in ascending rank order in float and rounded once. One pass and no
// staging, so it has the lowest latency; reads of both directions at once reach less of a link than writes
// (see stream.cu).
#include "combine.cuh"
#include "launch.h"

namespace ep::engine::gpu {

namespace {

__global__ void __launch_bounds__(640, 1) combine_bulk(const __grid_constant__ CombineArgs a) {
#if EP_HAS_BULK
  extern __shared__ __align__(128) uint8_t smem[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const Tiling& tile = a.tile;
  const Range mine = range_of(a.tile, blockIdx.x);
  uint64_t* bars =
      reinterpret_cast<uint64_t*>(smem + static_cast<size_t>(tile.warps) * tile.stages * tile.stage_bytes);
  const RowTable table = row_table(reinterpret_cast<uint8_t*>(bars + tile.warps * tile.stages),
                                   tile.table_tokens, a.shape.ranks);
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseReady][blockIdx.x] + 1;
  announce(a.control, a.rank, a.shape.ranks, kPhaseReady, epoch);  // this rank's rows were ready at launch
  if (threadIdx.x == 0) stamp(a.stamps, kStampStart);
  const AddRing ring = {a,
                        table,
                        smem + static_cast<size_t>(warp) * tile.stages * tile.stage_bytes,
                        bars + warp * tile.stages,
                        tile.stages,
                        tile.stage_bytes,
                        tile.seg_bytes};
  if (lane == 0) {
    for (int s = 0; s < tile.stages; ++s) mbarrier_init(&ring.full[s]);
    mbarrier_init_done();
  }
  load_slots(a, table, 0, mine.begin, 1, mine.count, threadIdx.x, blockDim.x);
  __syncthreads();
  fill_table(a, table, 0, mine.begin, 1, mine.count, threadIdx.x, blockDim.x, [&](int d, int slot) {
    return a.y[d] + static_cast<size_t>(slot) * a.shape.combine_row_bytes();
  });
  if (__syncthreads_or(!await_peers(waiter, a.shape.ranks, kPhaseReady, epoch))) return;
  if (threadIdx.x == 0) stamp(a.stamps, kStampCounts);
  const int n = walk_length(warp, tile.warps, mine.count * tile.segs);
  Walk ahead(warp, tile.warps, tile.segs), here = ahead;
  if (lane == 0) {
    fence_acquired_for_bulk();
    for (int k = 0; k < min(n, tile.stages); ++k, ahead.next()) ring.load(k, ahead.token, ahead.piece);
  }
  for (int k = 0; k < n; ++k, here.next()) {
    ring.add(k, here.token, here.piece, static_cast<size_t>(mine.begin) + here.token);
    if (k == 0 && threadIdx.x == 0) stamp(a.stamps, kStampFirst);
    if (lane == 0 && k + tile.stages < n) {
      ring.load(k + tile.stages, ahead.token, ahead.piece);
      ahead.next();
    }
  }
  __syncthreads();
  advance_epoch(control, kPhaseReady, epoch);
  if (threadIdx.x == 0) stamp(a.stamps, kStampFlags);
#endif
}

/// 16-byte path. A warp takes a piece of `kUnroll` vectors per lane; rows of two ranks are in flight at once.
template <int kUnroll, bool kWeighted>
__device__ inline void pull_piece(const CombineArgs& a, const RowTable& table, Range mine, int index,
                                  int lane) {
  const int row = static_cast<int>(a.shape.combine_row_bytes());
  const int token = index / a.tile.segs, offset = (index - token * a.tile.segs) * a.tile.seg_bytes;
  const int bytes = min(a.tile.seg_bytes, row - offset), rows = table.rows[token];
  const uint64_t* at = table.at + static_cast<size_t>(token) * a.shape.ranks;
  const float* weight = table.weight + static_cast<size_t>(token) * a.shape.ranks;
  float acc[kUnroll][8] = {};
  for (int n0 = 0; n0 < rows; n0 += 2) {
    uint4 v[2][kUnroll];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (n0 + j >= rows) continue;
      const auto* from = reinterpret_cast<const uint4*>(at[n0 + j] + offset);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if ((u * 32 + lane) * 16 < bytes) v[j][u] = load_peer(from + u * 32 + lane);
      }
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (n0 + j >= rows) continue;
      const float w = kWeighted ? weight[n0 + j] : 0;
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if ((u * 32 + lane) * 16 < bytes) add_vector<kWeighted>(acc[u], v[j][u], w);
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
  const Range mine = range_of(a.tile, blockIdx.x);
  const RowTable table = row_table(smem, a.tile.table_tokens, a.shape.ranks);
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseReady][blockIdx.x] + 1;
  announce(a.control, a.rank, a.shape.ranks, kPhaseReady, epoch);
  if (threadIdx.x == 0) stamp(a.stamps, kStampStart);
  load_slots(a, table, 0, mine.begin, 1, mine.count, threadIdx.x, blockDim.x);
  __syncthreads();
  fill_table(a, table, 0, mine.begin, 1, mine.count, threadIdx.x, blockDim.x, [&](int d, int slot) {
    return a.y[d] + static_cast<size_t>(slot) * a.shape.combine_row_bytes();
  });
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
