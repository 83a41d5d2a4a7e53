// Dispatch: every token's row, scales and metadata to each distinct rank that owns one of its experts, into
// exact, contiguous slots. Two row paths with the same protocol: bulk copies through shared memory (compute
// capability 9.0 and later), and 16-byte loads and stores. One kernel, persistent blocks, no grid barrier.
#include "front.cuh"
#include "launch.h"

namespace ep::engine::gpu {

#ifndef EP_TOUCH
#define EP_TOUCH 1
#endif

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
  announce(a.control, a.rank, a.shape.ranks, kPhaseTail, epoch);
  if (threadIdx.x == 0) stamp(a.stamps, kStampAnnounced);
  good = await_peers(w, a.shape.ranks, kPhaseTail, epoch);
  if (__syncthreads_or(!good)) return;
  advance_epoch(a.control[a.rank], kPhaseCounts, epoch);
  if (threadIdx.x == 0) stamp(a.stamps, kStampFlags);
}

/// A warp's piece of a row in registers: `kUnroll` vectors a lane.
template <int kUnroll>
struct Held {
  uint4 held[kUnroll];
  __device__ void load(const uint8_t* from, int bytes, int lane) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if ((u * 32 + lane) * 16 < bytes)
        held[u] = load_stream(reinterpret_cast<const uint4*>(from) + u * 32 + lane);
    }
  }
  __device__ void store(uint8_t* to, int bytes, int lane) const {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if ((u * 32 + lane) * 16 < bytes) store_vector(reinterpret_cast<uint4*>(to) + u * 32 + lane, held[u]);
    }
  }
};

/// Rank `i` steps after this one: peers first, each rank starting at another one; itself last.
__device__ inline int peer_after(const DispatchArgs& a, int i) {
  const int d = a.rank + i;
  return d < a.shape.ranks ? d : d - a.shape.ranks;
}

/// 16-byte loads and stores of this rank's own rows, beside the bulk copies of the others'. Few
/// multiprocessors gain by that: what moves bulk copies takes them one after the other, and those that wait
/// for the link hold up the local ones. Warp `who` of `tile.own`.
__device__ inline void copy_own(const DispatchArgs& a, const FrontMemory& m, const Front& f, Range mine,
                                int who, int lane) {
  constexpr int kUnroll = 7, kBytes = kUnroll * 512;
  Held<kUnroll> piece;
  const int row = static_cast<int>(a.shape.row_bytes()), pieces = (row + kBytes - 1) / kBytes;
#pragma unroll 1
  for (int i = who; i < mine.count * pieces; i += a.tile.own) {
    const int token = i / pieces, offset = (i - token * pieces) * kBytes;
    const int slot = slot_of(a, m, f, token, a.rank);
    if (slot < 0) continue;
    piece.load(a.x + static_cast<size_t>(mine.begin + token) * row + offset, row - offset, lane);
    piece.store(a.recv_x[a.rank] + static_cast<size_t>(slot) * row + offset, row - offset, lane);
  }
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
#pragma unroll 1
    for (int i = 1; i <= ranks; ++i) {
      const int d = peer_after(a, i);
      const int64_t slot = slot_of(a, m, f, p.token, d);
      if (slot < 0) continue;
      if (i < ranks || a.tile.own == 0)
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
    while (loaded < min(n, min(2, stages))) load(loaded++);
#pragma unroll 1
    for (int k = 0; k < n; ++k) {
      store(k, m, f);
      const int may = min(n, k - lag + 1 + stages);
      if (loaded < may && may > stages) bulk_wait_read(lag);
#pragma unroll 1
      while (loaded < may) load(loaded++);
    }
  }
};

#endif

__global__ void __launch_bounds__(kDispatchThreads, 1) dispatch_bulk(const __grid_constant__ DispatchArgs a) {
#if EP_HAS_BULK
  extern __shared__ __align__(128) uint8_t smem[];
  __shared__ Front front;
  const Tiling& tile = a.tile;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int aux = warp - tile.warps, expert = aux - kAuxWarps,
            own = expert - kExpertWarps;  // roles; else moves
  const Range mine = range_of(tile, blockIdx.x);
  FirstIds ids;
  if (aux >= 0 && expert < 0 && !a.cached) ids.load(a, mine, aux * 32 + lane);
  if (EP_TOUCH) touch_arguments(a, warp, blockDim.x / 32);
  uint64_t* bars =
      reinterpret_cast<uint64_t*>(smem + static_cast<size_t>(tile.warps) * tile.stages * tile.stage_bytes);
  const FrontMemory memory = front_memory(a, reinterpret_cast<uint8_t*>(bars + tile.warps * tile.stages));
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseCounts][blockIdx.x] + 1;
  if (threadIdx.x == 0) stamp(a.stamps, kStampStart);
  if (threadIdx.x < kMaxGpuRanks) front.base[threadIdx.x] = front.rows[threadIdx.x] = 0;
  for (int i = threadIdx.x; i < mine.count; i += blockDim.x) memory.mask[i] = 0;
  __syncthreads();

  bool good = true;
  if (own >= 0) {
    good = finish_front(a, waiter, front, epoch, aux, lane);
    if (good) copy_own(a, memory, front, mine, own, lane);
  } else if (expert >= 0) {
    good = run_experts(a, waiter, memory, front, mine, epoch, expert * 32 + lane);
  } else if (aux >= 0) {
    run_counting(a, memory, front, mine, epoch, aux, ids);
    __syncwarp();
    good = finish_front(a, waiter, front, epoch, aux, lane);
    if (good) run_aux(a, memory, front, mine, aux * 32 + lane, false);
  } else {
    BulkMover mover = {a,
                       smem + static_cast<size_t>(warp) * tile.stages * tile.stage_bytes,
                       bars + warp * tile.stages,
                       mine,
                       warp,
                       tile.warps,
                       mine.count * tile.segs};
    const int ahead = lane == 0 && warp < tile.ahead ? min(mover.count(), 1) : 0;
    for (int k = 0; lane == 0 && k < tile.stages; ++k) mbarrier_init(&mover.full[k]);
    if (lane == 0) mbarrier_init_done();
    await_published(a);
    for (int k = 0; k < ahead; ++k) mover.load(k);
    __syncwarp();
    good = finish_front(a, waiter, front, epoch, aux, lane);
    if (good && threadIdx.x == 0) stamp(a.stamps, kStampFirst);
    if (good && lane == 0) mover.run(ahead, memory, front);
    __syncwarp();
    for (int k = 0; !good && k < ahead; ++k) mbarrier_wait(&mover.full[k], 0);  // land before the block ends
    if (lane == 0) bulk_drain();
  }
  finish_dispatch(a, waiter, epoch, good);
#endif
}

/// 16-byte path: a warp keeps one piece in registers.
template <int kUnroll>
struct PlainMover {
  const DispatchArgs& a;
  Range mine;
  Held<kUnroll> held;

  __device__ void load(const Piece& p, int lane) {
    held.load(a.x + (static_cast<size_t>(mine.begin) + p.token) * a.shape.row_bytes() +
                  static_cast<size_t>(p.seg) * a.tile.seg_bytes,
              p.bytes, lane);
  }
  __device__ void store(const Piece& p, int lane, const FrontMemory& m, const Front& f) const {
#pragma unroll 1
    for (int i = 1; i <= a.shape.ranks; ++i) {
      const int d = peer_after(a, i);
      const int64_t slot = slot_of(a, m, f, p.token, d);
      if (slot >= 0)
        held.store(a.recv_x[d] + slot * a.shape.row_bytes() + static_cast<size_t>(p.seg) * a.tile.seg_bytes,
                   p.bytes, lane);
    }
  }
};

template <int kUnroll>
__global__ void __launch_bounds__(1024, 1) dispatch_plain(const __grid_constant__ DispatchArgs a) {
  extern __shared__ __align__(128) uint8_t smem[];
  __shared__ Front front;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int aux = warp - a.tile.warps, expert = aux - kAuxWarps;
  const Range mine = range_of(a.tile, blockIdx.x);
  FirstIds ids;
  if (aux >= 0 && expert < 0 && !a.cached) ids.load(a, mine, aux * 32 + lane);
  const FrontMemory memory = front_memory(a, smem);
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseCounts][blockIdx.x] + 1;
  if (threadIdx.x == 0) stamp(a.stamps, kStampStart);
  if (threadIdx.x < kMaxGpuRanks) front.base[threadIdx.x] = front.rows[threadIdx.x] = 0;
  for (int i = threadIdx.x; i < mine.count; i += blockDim.x) memory.mask[i] = 0;
  __syncthreads();

  PlainMover<kUnroll> mover = {a, mine, {}};
  const int total = mine.count * a.tile.segs, row = static_cast<int>(a.shape.row_bytes());
  bool good = true;
  if (expert >= 0) {
    good = run_experts(a, waiter, memory, front, mine, epoch, expert * 32 + lane);
  } else {
    if (aux >= 0)
      run_counting(a, memory, front, mine, epoch, aux, ids);
    else
      await_published(a);
    if (aux < 0 && warp < total) mover.load(piece_of(a.tile, row, warp), lane);
    good = finish_front(a, waiter, front, epoch, aux, lane);
    if (threadIdx.x == 0) stamp(a.stamps, kStampFirst);
    if (good && aux >= 0) run_aux(a, memory, front, mine, aux * 32 + lane, true);
#pragma unroll 1
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
