// Combine by streaming: each rank pushes its rows with bulk copies into staging memory of the rank that wants
// them, row after row, a flag behind each; there, other warps of the same kernel add rows as they land.
// Writes reach more of a link than reads when both directions are busy (measured: 362 against 331 GB/s on
// NVLink 4), and the additions hide behind the transfer. The order of additions is the ranks', never that of
// arrival.
//
// Staging memory is single: a dispatch, or another barrier of all ranks, must stand between two combines.
// Every exchange has one, since rows must be dispatched before they are combined.
#include "combine.cuh"
#include "launch.h"

namespace ep::engine::gpu {

namespace {

constexpr int kReducers = 16;  // warps that add

#if EP_HAS_BULK
/// Pushing warps: warp w moves piece w of every row of this block. Rows are taken in the order in which the
/// receivers add them, one after the other, so that they complete in that order too.
struct Pusher {
  const CombineArgs& a;
  uint8_t* stage;
  uint64_t* full;
  uint32_t* done;        // [rows of the block] pieces that have landed
  const int32_t* held;   // [ranks] rows here of each source
  const int32_t* first;  // [ranks] their first slot
  int piece, rounds;
  uint32_t epoch;

  /// Row `k` of this block: destination, place among its rows, address; false where the block has none.
  __device__ bool row_of(int k, int& dst, int& place) const {
    const int others = a.shape.ranks - 1, q = k * static_cast<int>(gridDim.x) + blockIdx.x;
    place = q / others;
    dst = a.rank + 1 + (q - place * others);
    if (dst >= a.shape.ranks) dst -= a.shape.ranks;
    return place < held[dst];
  }
  __device__ int bytes() const {
    return min(a.tile.seg_bytes, static_cast<int>(a.shape.combine_row_bytes()) - piece * a.tile.seg_bytes);
  }
  __device__ void load(int k) {
    int dst, place;
    const bool here = row_of(k, dst, place);
    const int s = k % a.tile.stages;
    mbarrier_expect(&full[s], here ? bytes() : 0);
    if (!here) return;
    const uint8_t* from = a.y[a.rank] + static_cast<size_t>(first[dst] + place) * a.shape.combine_row_bytes();
    bulk_load(stage + static_cast<size_t>(s) * a.tile.stage_bytes,
              from + static_cast<size_t>(piece) * a.tile.seg_bytes, bytes(), &full[s]);
  }
  __device__ void store(int k) {
    int dst, place;
    const int s = k % a.tile.stages;
    mbarrier_wait(&full[s], k / a.tile.stages & 1);
    if (row_of(k, dst, place)) {
      uint8_t* to = a.stage_at[dst] + static_cast<size_t>(place) * a.shape.combine_row_bytes();
      bulk_store(to + static_cast<size_t>(piece) * a.tile.seg_bytes,
                 stage + static_cast<size_t>(s) * a.tile.stage_bytes, bytes());
    }
    bulk_commit();
  }
  /// Piece of row `k` has landed: the last one of a row raises its flag.
  __device__ void landed(int k) {
    int dst, place;
    if (!row_of(k, dst, place)) return;
    if (arrive_shared(&done[k]) + 1 != static_cast<uint32_t>(a.tile.segs)) return;
    store_release(&a.stage_flag_at[dst][place], epoch);
  }
  __device__ void run() {
    const int lag = a.tile.lag, stages = a.tile.stages;
    for (int k = 0; k < rounds + lag; ++k) {
      if (k < rounds) store(k);
      const int old = k - lag;
      if (old < 0) continue;
      bulk_wait_done(k < rounds ? lag : rounds - 1 - old);
      landed(old);
      if (old + stages < rounds) load(old + stages);
    }
    bulk_drain();
  }
};
#endif

/// Adding warps: one piece of `kUnroll` vectors per lane.
template <int kUnroll>
__device__ inline bool add_piece(const CombineArgs& a, const CombineTable& table, const Waiter& w, int index,
                                 uint32_t epoch) {
  constexpr int kPiece = kUnroll * 512;
  const int lane = threadIdx.x & 31, ranks = a.shape.ranks;
  const int row = static_cast<int>(a.shape.combine_row_bytes()), pieces = (row + kPiece - 1) / kPiece;
  const int i = index / pieces, offset = (index - i * pieces) * kPiece, bytes = min(kPiece, row - offset);
  const int token = i * static_cast<int>(gridDim.x) + blockIdx.x;
  const int32_t* slots = table.slot + i * ranks;
  uint4 own[kUnroll];
  if (slots[a.rank] >= 0) {
    const auto* from =
        reinterpret_cast<const uint4*>(a.y[a.rank] + static_cast<size_t>(slots[a.rank]) * row + offset);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if ((u * 32 + lane) * 16 < bytes) own[u] = load_stream(from + u * 32 + lane);
    }
  }
  bool good = true;
  if (lane < ranks && lane != a.rank && slots[lane] >= 0) {
    const size_t place = static_cast<size_t>(lane) * a.shape.max_tokens + slots[lane] - a.slot_base[lane];
    good = wait_flag(w, a.stage_flag + place, epoch, kPhaseStream, lane);
  }
  if (!__all_sync(~0u, good)) return false;
  float acc[kUnroll][8] = {};
  for (int d = 0; d < ranks; ++d) {
    if (slots[d] < 0) continue;
    const float weight = a.weighted ? table.weight[i * ranks + d] : 0;
    uint4 v[kUnroll];
    if (d != a.rank) {
      const size_t place = static_cast<size_t>(d) * a.shape.max_tokens + slots[d] - a.slot_base[d];
      const auto* from = reinterpret_cast<const uint4*>(a.stage + place * row + offset);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if ((u * 32 + lane) * 16 < bytes) v[u] = load_peer(from + u * 32 + lane);
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if ((u * 32 + lane) * 16 < bytes) add_vector(acc[u], d == a.rank ? own[u] : v[u], a.weighted, weight);
    }
  }
  uint4* out = reinterpret_cast<uint4*>(a.out + static_cast<size_t>(token) * row + offset);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if ((u * 32 + lane) * 16 < bytes) store_vector(out + u * 32 + lane, round_vector(acc[u]));
  }
  return true;
}

__global__ void __launch_bounds__(768, 1) combine_stream(const __grid_constant__ CombineArgs a) {
#if EP_HAS_BULK
  extern __shared__ __align__(128) uint8_t smem[];
  __shared__ int32_t held[kMaxGpuRanks], first[kMaxGpuRanks];
  __shared__ int rounds;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, ranks = a.shape.ranks;
  const Tiling& tile = a.tile;
  const int tokens = a.shape.tokens[a.rank], blocks = gridDim.x;
  const int count = static_cast<int>(blockIdx.x) < tokens ? (tokens - 1 - blockIdx.x) / blocks + 1 : 0;
  uint64_t* bars =
      reinterpret_cast<uint64_t*>(smem + static_cast<size_t>(tile.warps) * tile.stages * tile.stage_bytes);
  uint32_t* done = reinterpret_cast<uint32_t*>(bars + tile.warps * tile.stages);
  CombineTable table;
  table.slot = reinterpret_cast<int32_t*>(done + tile.table_rows);
  table.weight = reinterpret_cast<float*>(table.slot + static_cast<size_t>(tile.table_tokens) * ranks);
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseStream][blockIdx.x] + 1;
  if (threadIdx.x == 0) stamp(a.stamps, kStampStart);
  if (threadIdx.x == 0) {
    int sum = 0, most = 0;
    for (int s = 0; s < ranks; ++s) {
      const int n = a.recv_count[s];
      held[s] = n;
      first[s] = sum;
      sum += n;
      if (s != a.rank) most = max(most, n);
    }
    const int all = most * (ranks - 1);
    rounds = static_cast<int>(blockIdx.x) < all ? (all - 1 - blockIdx.x) / blocks + 1 : 0;
  }
  for (int i = threadIdx.x; i < tile.table_rows; i += blockDim.x) done[i] = 0;
  __syncthreads();
  bool good = true;
  if (warp < tile.warps) {
    if (lane == 0 && warp < tile.segs) {
      Pusher pusher = {a,
                       smem + static_cast<size_t>(warp) * tile.stages * tile.stage_bytes,
                       bars + warp * tile.stages,
                       done,
                       held,
                       first,
                       warp,
                       rounds,
                       epoch};
      for (int s = 0; s < tile.stages; ++s) mbarrier_init(&pusher.full[s]);
      mbarrier_init_done();
      for (int k = 0; k < min(rounds, tile.stages); ++k) pusher.load(k);
      if (warp == 0) stamp(a.stamps, kStampCounts);
      pusher.run();
      if (warp == 0) stamp(a.stamps, kStampDrained);
    }
  } else {
    fill_table(a, table, blockIdx.x, blocks, count, threadIdx.x - tile.warps * 32, kReducers * 32);
    named_barrier(1, kReducers * 32);
    const int pieces = (static_cast<int>(a.shape.combine_row_bytes()) + 2047) / 2048;
    for (int i = warp - tile.warps; i < count * pieces && good; i += kReducers) {
      good = add_piece<4>(a, table, waiter, i, epoch);
      if (i == 0 && lane == 0) stamp(a.stamps, kStampFirst);
    }
  }
  if (__syncthreads_or(!good)) return;
  advance_epoch(control, kPhaseStream, epoch);
  if (threadIdx.x == 0) stamp(a.stamps, kStampFlags);
#endif
}

}  // namespace

const void* stream_kernel() {
  return reinterpret_cast<const void*>(&combine_stream);
}
int stream_reducers() {
  return kReducers;
}

}  // namespace ep::engine::gpu
