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

#if EP_HAS_BULK

__device__ inline uint32_t shared_acquire(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.acquire.cta.shared::cta.u32 %0, [%1];" : "=r"(v) : "r"(shared_address(p)) : "memory");
  return v;
}
__device__ inline void shared_release(uint32_t* p, uint32_t v) {
  asm volatile("st.release.cta.shared::cta.u32 [%0], %1;" ::"r"(shared_address(p)), "r"(v) : "memory");
}

/// What this rank holds for the others, and which of it this block sends: rows are dealt over blocks and
/// destinations in the order in which the receivers add them, so that they complete in that order too.
struct Outgoing {
  int32_t held[kMaxGpuRanks];   // rows here of each source
  int32_t first[kMaxGpuRanks];  // their first slot
  int rounds;                   // rows of this block, empty ones included

  __device__ void fill(const CombineArgs& a) {
    int sum = 0, most = 0;
    for (int s = 0; s < a.shape.ranks; ++s) {
      held[s] = a.recv_count[s];
      first[s] = sum;
      sum += held[s];
      if (s != a.rank) most = max(most, held[s]);
    }
    const int all = most * (a.shape.ranks - 1), blocks = gridDim.x, block = blockIdx.x;
    rounds = block < all ? (all - 1 - block) / blocks + 1 : 0;
  }
  /// Row `k` of this block: destination and place among the rows for it; false where that place is empty.
  __device__ bool row(const CombineArgs& a, int k, int& dst, int& place) const {
    const int others = a.shape.ranks - 1, q = k * static_cast<int>(gridDim.x) + blockIdx.x;
    place = q / others;
    dst = a.rank + 1 + (q - place * others);
    if (dst >= a.shape.ranks) dst -= a.shape.ranks;
    return place < held[dst];
  }
};

/// Pushing warps, one lane each: warp w moves piece w of every row of this block.
struct Pusher {
  const CombineArgs& a;
  const Outgoing& rows;
  uint8_t* stage;
  uint64_t* full;
  uint32_t* done;  // [rows of the block] pieces that have landed
  int piece;

  __device__ int bytes() const {
    return min(a.tile.seg_bytes, static_cast<int>(a.shape.combine_row_bytes()) - piece * a.tile.seg_bytes);
  }
  __device__ void load(int k) {
    int dst, place;
    const bool here = rows.row(a, k, dst, place);
    const int s = k % a.tile.stages;
    mbarrier_expect(&full[s], here ? bytes() : 0);
    if (!here) return;
    const uint8_t* from =
        a.y[a.rank] + static_cast<size_t>(rows.first[dst] + place) * a.shape.combine_row_bytes();
    bulk_load(stage + static_cast<size_t>(s) * a.tile.stage_bytes,
              from + static_cast<size_t>(piece) * a.tile.seg_bytes, bytes(), &full[s]);
  }
  __device__ void store(int k) {
    int dst, place;
    const int s = k % a.tile.stages;
    mbarrier_wait(&full[s], k / a.tile.stages & 1);
    if (rows.row(a, k, dst, place)) {
      uint8_t* to = a.stage_at[dst] + static_cast<size_t>(place) * a.shape.combine_row_bytes();
      bulk_store(to + static_cast<size_t>(piece) * a.tile.seg_bytes,
                 stage + static_cast<size_t>(s) * a.tile.stage_bytes, bytes());
    }
    bulk_commit();
  }
  __device__ void run() {
    const int lag = a.tile.lag, stages = a.tile.stages, n = rows.rounds;
    for (int s = 0; s < stages; ++s) mbarrier_init(&full[s]);
    mbarrier_init_done();
    for (int k = 0; k < min(n, stages); ++k) load(k);
    for (int k = 0; k < n + lag; ++k) {
      if (k < n) store(k);
      const int old = k - lag;
      if (old < 0) continue;
      bulk_wait_done(k < n ? lag : n - 1 - old);
      arrive_shared(&done[old]);
      if (old + stages < n) load(old + stages);
    }
    bulk_drain();
  }
};

/// Flagging warp: raises the flags of rows that have landed whole. A release waits until what went before is
/// through the link, so a warp of its own does it, for as many rows at once as there are.
__device__ inline void raise_flags(const CombineArgs& a, const Outgoing& rows, const uint32_t* done,
                                   uint32_t epoch) {
  const int lane = threadIdx.x & 31;
  for (int k = 0; k < rows.rounds;) {
    const bool whole =
        k + lane < rows.rounds && shared_acquire(&done[k + lane]) == static_cast<uint32_t>(a.tile.segs);
    const uint32_t votes = __ballot_sync(~0u, whole);
    const int n = votes == ~0u ? 32 : __ffs(~votes) - 1;
    if (n == 0) {
      __nanosleep(40);
      continue;
    }
    int dst, place;
    if (lane < n && rows.row(a, k + lane, dst, place)) {
      if (a.variant & 1) {
        asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(&a.stage_flag_at[dst][place]), "r"(epoch)
                     : "memory");
      } else {
        store_release(&a.stage_flag_at[dst][place], epoch);
      }
    }
    k += n;
  }
}

constexpr uint32_t kGaveUp = 0xffffffffu;

/// Watching warp: says in shared memory how many of this block's tokens have all their rows here.
__device__ inline bool watch_flags(const CombineArgs& a, const CombineTable& table, const Waiter& w,
                                   int count, uint32_t* ready, uint32_t epoch) {
  const int lane = threadIdx.x & 31, ranks = a.shape.ranks;
  Patience patience;
  for (int i = 0; i < count;) {
    bool here = i + lane < count;
    int missing = 0;
    for (int d = 0; here && d < ranks; ++d) {
      const int slot = table.slot[(i + lane) * ranks + d];
      if (d == a.rank || slot < 0) continue;
      const size_t place = static_cast<size_t>(d) * a.shape.max_tokens + slot - a.slot_base[d];
      if (load_acquire(a.stage_flag + place) != epoch) here = false, missing = d;
    }
    const uint32_t votes = __ballot_sync(~0u, here);
    const int n = votes == ~0u ? 32 : __ffs(~votes) - 1;
    i += n;
    const bool lost = n == 0 && lane == 0 && patience.spent(w, epoch, kPhaseStream, missing);
    if (lane == 0 && (n > 0 || lost)) shared_release(ready, lost ? kGaveUp : static_cast<uint32_t>(i));
    if (__any_sync(~0u, lost)) return false;
  }
  return true;
}

/// Adding warps: each has a ring of its own in shared memory. Its first lane loads what has landed, its lanes
/// add.
struct Adder {
  const CombineArgs& a;
  const CombineTable& table;
  const uint32_t* ready;
  uint8_t* stage;
  uint64_t* full;
  int first, step, total;

  __device__ void place(int k, int& i, int& offset, int& bytes) const {
    const int index = first + k * step, row = static_cast<int>(a.shape.combine_row_bytes());
    i = index / a.tile.add_segs;
    offset = (index - i * a.tile.add_segs) * a.tile.add_seg_bytes;
    bytes = min(a.tile.add_seg_bytes, row - offset);
  }
  /// Lane 0: loads piece `k` of a token whose rows are here.
  __device__ void load(int i, int offset, int bytes, int k) {
    const int ranks = a.shape.ranks, s = k % a.tile.add_stages;
    const size_t row = a.shape.combine_row_bytes();
    const int32_t* slots = table.slot + i * ranks;
    int rows = 0;
    for (int d = 0; d < ranks; ++d) rows += slots[d] >= 0;
    uint8_t* to = stage + static_cast<size_t>(s) * a.tile.add_stage_bytes;
    mbarrier_expect(&full[s], rows * bytes);
    for (int d = 0; d < ranks; ++d) {
      if (slots[d] < 0) continue;
      const uint8_t* from =
          d == a.rank
              ? a.y[d] + slots[d] * row
              : a.stage + (static_cast<size_t>(d) * a.shape.max_tokens + slots[d] - a.slot_base[d]) * row;
      bulk_load(to, from + offset, bytes, &full[s]);
      to += a.tile.add_seg_bytes;
    }
  }
  /// Lane 0: loads as far as rows have landed and the ring has room; at least up to piece `need`.
  __device__ bool refill(int& loaded, int need, int limit) {
    while (loaded < limit) {
      int i, offset, bytes;
      place(loaded, i, offset, bytes);
      uint32_t here = shared_acquire(ready);
      while (here != kGaveUp && static_cast<uint32_t>(i) >= here) {
        if (loaded > need) return true;
        __nanosleep(20);
        here = shared_acquire(ready);
      }
      if (here == kGaveUp) return false;
      fence_acquired_for_bulk();
      load(i, offset, bytes, loaded++);
    }
    return true;
  }
  __device__ void add(int k) const {
    int i, offset, bytes;
    place(k, i, offset, bytes);
    const int ranks = a.shape.ranks;
    const size_t token = static_cast<size_t>(i) * gridDim.x + blockIdx.x;
    const int32_t* slots = table.slot + i * ranks;
    int rows = 0;
    for (int d = 0; d < ranks; ++d) rows += slots[d] >= 0;
    const uint8_t* from = stage + static_cast<size_t>(k % a.tile.add_stages) * a.tile.add_stage_bytes;
    uint8_t* out = a.out + token * a.shape.combine_row_bytes() + offset;
    const float* weight = table.weight + i * ranks;
    if (a.weighted)
      add_rows<true>(from, rows, a.tile.add_seg_bytes, weight, out, bytes);
    else
      add_rows<false>(from, rows, a.tile.add_seg_bytes, weight, out, bytes);
  }
  __device__ bool run(int lane) {
    const int n = first < total ? (total - first + step - 1) / step : 0, stages = a.tile.add_stages;
    if (lane == 0) {
      for (int s = 0; s < stages; ++s) mbarrier_init(&full[s]);
      mbarrier_init_done();
    }
    __syncwarp();
    int loaded = 0;
    for (int k = 0; k < n; ++k) {
      const bool good = lane != 0 || refill(loaded, k, min(n, k + stages));
      if (!__shfl_sync(~0u, good, 0)) {  // let what was loaded land before the block ends
        for (int i = k; lane == 0 && i < loaded; ++i) mbarrier_wait(&full[i % stages], i / stages & 1);
        return false;
      }
      mbarrier_wait(&full[k % stages], k / stages & 1);
      if (k == 0 && first == 0 && lane == 0) stamp(a.stamps, kStampFirst);
      add(k);
      __syncwarp();
    }
    return true;
  }
};
#endif

__global__ void __launch_bounds__(832, 1) combine_stream(const __grid_constant__ CombineArgs a) {
#if EP_HAS_BULK
  extern __shared__ __align__(128) uint8_t smem[];
  __shared__ Outgoing rows;
  __shared__ uint32_t ready;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, ranks = a.shape.ranks;
  const Tiling& t = a.tile;
  const int tokens = a.shape.tokens[a.rank], blocks = gridDim.x, block = blockIdx.x;
  const int count = block < tokens ? (tokens - 1 - block) / blocks + 1 : 0;
  uint8_t* add_ring = smem + static_cast<size_t>(t.warps) * t.stages * t.stage_bytes;
  uint64_t* bars = reinterpret_cast<uint64_t*>(add_ring + static_cast<size_t>(t.adders) * t.add_stages *
                                                              t.add_stage_bytes);
  uint64_t* add_bars = bars + t.warps * t.stages;
  uint32_t* done = reinterpret_cast<uint32_t*>(add_bars + t.adders * t.add_stages);
  CombineTable table;
  table.slot = reinterpret_cast<int32_t*>(done + t.table_rows);
  table.weight = reinterpret_cast<float*>(table.slot + static_cast<size_t>(t.table_tokens) * ranks);
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseStream][block] + 1;
  if (threadIdx.x == 0) {
    stamp(a.stamps, kStampStart);
    rows.fill(a);
    ready = 0;
  }
  for (int i = threadIdx.x; i < t.table_rows; i += blockDim.x) done[i] = 0;
  __syncthreads();
  bool good = true;
  const int role = warp - t.warps, fillers = (t.adders + 1) * 32;  // 0: flags, 1: watch, 2...: add
  if (role < 0) {
    Pusher pusher = {
        a,    rows, smem + static_cast<size_t>(warp) * t.stages * t.stage_bytes, bars + warp * t.stages,
        done, warp};
    if (lane == 0 && warp < t.segs) pusher.run();
    if (lane == 0 && warp == 0) stamp(a.stamps, kStampDrained);
  } else if (role == 0) {
    raise_flags(a, rows, done, epoch);
  } else {
    fill_table(a, table, block, blocks, count, (role - 1) * 32 + lane, fillers);
    named_barrier(1, fillers);
    if (role == 1) {
      if (lane == 0) stamp(a.stamps, kStampCounts);
      good = watch_flags(a, table, waiter, count, &ready, epoch);
    } else {
      const int who = role - 2;
      Adder adder = {a,
                     table,
                     &ready,
                     add_ring + static_cast<size_t>(who) * t.add_stages * t.add_stage_bytes,
                     add_bars + who * t.add_stages,
                     who,
                     t.adders,
                     count * t.add_segs};
      good = adder.run(lane);
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

}  // namespace ep::engine::gpu
