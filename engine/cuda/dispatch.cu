// Dispatch: every token's row, scales and metadata to each distinct rank that owns one of its experts, into
// exact, contiguous slots. Two row paths with the same protocol: bulk copies through shared memory (compute
// capability 9.0 and later), and 16-byte loads and stores. One kernel, persistent blocks, no grid barrier.
#include "front.cuh"
#include "launch.h"

namespace ep::engine::gpu {

namespace {

/// Pieces of rows that one warp moves: numbers warp, warp + warps, ... of the block's tokens x segs.
struct Piece {
  int token, seg, bytes;
};
__device__ inline Piece piece_of(const Tiling& tile, int row_bytes, int index) {
  const int token = index / tile.segs, seg = index - token * tile.segs;
  const int rest = row_bytes - seg * tile.seg_bytes;
  return {token, seg, rest < tile.seg_bytes ? rest : tile.seg_bytes};
}

/// The end of a block, all threads: rows are stored, peers are told, theirs have landed.
__device__ inline void finish_dispatch(const DispatchArgs& a, const Waiter& w, uint32_t epoch, bool good) {
  if (__syncthreads_or(!good)) return;
  if (threadIdx.x == 0) stamp(a.stamps, kStampDrained);
  good = meet_peers(w, a.control, a.rank, a.shape.ranks, kPhaseTail, epoch);
  if (__syncthreads_or(!good)) return;
  advance_epoch(a.control[a.rank], kPhaseCounts, epoch);
  if (threadIdx.x == 0) stamp(a.stamps, kStampFlags);
}

#if EP_HAS_BULK
/// One elected lane per warp: loads run ahead, stores to all destinations of a piece follow from the same
/// stage. The loads start before the slots are known.
struct BulkMover {
  const DispatchArgs& a;
  uint8_t* stage;
  uint64_t* full;
  Range mine;
  int first, step, total;

  __device__ int count() const { return first < total ? (total - first + step - 1) / step : 0; }

  __device__ void load(int k) {
    const Piece p = piece_of(a.tile, a.shape.row_bytes(), first + k * step);
    const int s = k % a.tile.stages, scale_bytes = p.seg == 0 ? a.shape.scale_row_bytes() : 0;
    uint8_t* to = stage + static_cast<size_t>(s) * a.tile.stage_bytes;
    const size_t token = mine.begin + p.token;
    mbarrier_expect(&full[s], p.bytes + scale_bytes);
    bulk_load(to, a.x + token * a.shape.row_bytes() + static_cast<size_t>(p.seg) * a.tile.seg_bytes, p.bytes,
              &full[s]);
    if (scale_bytes > 0)
      bulk_load(to + a.tile.seg_bytes, a.scale + token * scale_bytes, scale_bytes, &full[s]);
  }

  __device__ void store(int k, const FrontMemory& m, const Front& f) {
    const Piece p = piece_of(a.tile, a.shape.row_bytes(), first + k * step);
    const int s = k % a.tile.stages, ranks = a.shape.ranks;
    const uint8_t* from = stage + static_cast<size_t>(s) * a.tile.stage_bytes;
    const int scale_bytes = p.seg == 0 ? a.shape.scale_row_bytes() : 0;
    mbarrier_wait(&full[s], k / a.tile.stages & 1);
    for (int i = 1; i <= ranks; ++i) {  // peers first, each rank starting at another one; itself last
      const int d = a.rank + i < ranks ? a.rank + i : a.rank + i - ranks;
      const int64_t slot = slot_of(a, m, f, p.token, d);
      if (slot < 0) continue;
      bulk_store(a.recv_x[d] + slot * a.shape.row_bytes() + static_cast<size_t>(p.seg) * a.tile.seg_bytes,
                 from, p.bytes);
      if (scale_bytes > 0)
        bulk_store(a.recv_scale[d] + slot * scale_bytes, from + a.tile.seg_bytes, scale_bytes);
    }
    bulk_commit();
  }

  /// `loaded` pieces are on their way already.
  __device__ void run(int loaded, const FrontMemory& m, const Front& f) {
    const int n = count(), lag = a.tile.lag, stages = a.tile.stages;
    for (int k = 0; k < n; ++k) {
      store(k, m, f);
      const int may = min(n, k - lag + 1 + stages);
      if (loaded < may && may > stages) bulk_wait_read(lag);
      while (loaded < may) load(loaded++);
    }
    bulk_drain();
  }
};
#endif

__global__ void __launch_bounds__(704, 1) dispatch_bulk(const __grid_constant__ DispatchArgs a) {
#if EP_HAS_BULK
  extern __shared__ __align__(128) uint8_t smem[];
  __shared__ Front front;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const Range mine = range_of(a.shape.tokens[a.rank], gridDim.x, blockIdx.x);
  const Tiling& tile = a.tile;
  uint64_t* bars =
      reinterpret_cast<uint64_t*>(smem + static_cast<size_t>(tile.warps) * tile.stages * tile.stage_bytes);
  const FrontMemory memory = front_memory(a, reinterpret_cast<uint8_t*>(bars + tile.warps * tile.stages));
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseCounts][blockIdx.x] + 1;
  if (threadIdx.x == 0) stamp(a.stamps, kStampStart);
  if (threadIdx.x < kMaxGpuRanks) front.base[threadIdx.x] = 0;
  for (int i = threadIdx.x; i < mine.count; i += blockDim.x) memory.mask[i] = 0;
  __syncthreads();

  BulkMover mover = {a,
                     smem + static_cast<size_t>(warp) * tile.stages * tile.stage_bytes,
                     bars + warp * tile.stages,
                     mine,
                     warp,
                     tile.warps,
                     mine.count * tile.segs};
  const int aux = warp - tile.warps, expert = aux - kAuxWarps;  // role: moving, auxiliary, expert
  const bool moves = aux < 0 && lane == 0;
  const int ahead = moves ? min(mover.count(), tile.ahead) : 0;
  bool good = true;
  if (expert >= 0) {
    good = run_experts(a, waiter, memory, front, mine, epoch, expert * 32 + lane);
  } else {
    if (aux >= 0) {
      run_counting(a, memory, front, mine, epoch, aux);
    } else {
      for (int s = 0; moves && s < tile.stages; ++s) mbarrier_init(&mover.full[s]);
      if (moves) mbarrier_init_done();
      await_published(a);
      for (int k = 0; k < ahead; ++k) mover.load(k);
    }
    __syncwarp();
    good = finish_front(a, waiter, front, epoch, aux, lane);
    if (good && moves) {
      if (warp == 0) stamp(a.stamps, kStampFirst);
      mover.run(ahead, memory, front);
    } else if (moves) {
      for (int k = 0; k < ahead; ++k) mbarrier_wait(&mover.full[k], 0);  // let the loads end before the block
    } else if (good && aux >= 0) {
      run_aux(a, memory, front, mine, aux * 32 + lane, false);
    }
  }
  finish_dispatch(a, waiter, epoch, good);
#endif
}

/// 16-byte path: a warp keeps one piece of `kUnroll` vectors per lane in registers.
template <int kUnroll>
struct PlainMover {
  const DispatchArgs& a;
  Range mine;
  uint4 held[kUnroll];

  __device__ void load(const Piece& p, int lane) {
    const uint4* from = reinterpret_cast<const uint4*>(
        a.x + (static_cast<size_t>(mine.begin) + p.token) * a.shape.row_bytes() +
        static_cast<size_t>(p.seg) * a.tile.seg_bytes);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int v = u * 32 + lane;
      if (v * 16 < p.bytes) held[u] = load_stream(from + v);
    }
  }
  __device__ void store(const Piece& p, int lane, const FrontMemory& m, const Front& f) const {
    const int ranks = a.shape.ranks;
    for (int i = 1; i <= ranks; ++i) {
      const int d = a.rank + i < ranks ? a.rank + i : a.rank + i - ranks;
      const int64_t slot = slot_of(a, m, f, p.token, d);
      if (slot < 0) continue;
      uint4* to = reinterpret_cast<uint4*>(a.recv_x[d] + slot * a.shape.row_bytes() +
                                           static_cast<size_t>(p.seg) * a.tile.seg_bytes);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int v = u * 32 + lane;
        if (v * 16 < p.bytes) store_vector(to + v, held[u]);
      }
    }
  }
};

template <int kUnroll>
__global__ void __launch_bounds__(1024, 1) dispatch_plain(const __grid_constant__ DispatchArgs a) {
  extern __shared__ __align__(128) uint8_t smem[];
  __shared__ Front front;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const Range mine = range_of(a.shape.tokens[a.rank], gridDim.x, blockIdx.x);
  const FrontMemory memory = front_memory(a, smem);
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseCounts][blockIdx.x] + 1;
  if (threadIdx.x == 0) stamp(a.stamps, kStampStart);
  if (threadIdx.x < kMaxGpuRanks) front.base[threadIdx.x] = 0;
  for (int i = threadIdx.x; i < mine.count; i += blockDim.x) memory.mask[i] = 0;
  __syncthreads();

  PlainMover<kUnroll> mover = {a, mine, {}};
  const int total = mine.count * a.tile.segs, row = static_cast<int>(a.shape.row_bytes());
  const int aux = warp - a.tile.warps, expert = aux - kAuxWarps;
  bool good = true;
  if (expert >= 0) {
    good = run_experts(a, waiter, memory, front, mine, epoch, expert * 32 + lane);
  } else {
    if (aux >= 0)
      run_counting(a, memory, front, mine, epoch, aux);
    else
      await_published(a);
    if (aux < 0 && warp < total) mover.load(piece_of(a.tile, row, warp), lane);
    good = finish_front(a, waiter, front, epoch, aux, lane);
    if (threadIdx.x == 0) stamp(a.stamps, kStampFirst);
    if (good && aux >= 0) run_aux(a, memory, front, mine, aux * 32 + lane, true);
    for (int i = warp; good && aux < 0 && i < total; i += a.tile.warps) {
      const Piece p = piece_of(a.tile, row, i);
      if (i != warp) mover.load(p, lane);
      mover.store(p, lane, memory, front);
    }
  }
  finish_dispatch(a, waiter, epoch, good);
}

}  // namespace

const void* dispatch_kernel(Path path, int unroll) {
  if (path == Path::kBulk) return reinterpret_cast<const void*>(&dispatch_bulk);
  return unroll >= 7 ? reinterpret_cast<const void*>(&dispatch_plain<7>)
                     : reinterpret_cast<const void*>(&dispatch_plain<4>);
}

}  // namespace ep::engine::gpu
