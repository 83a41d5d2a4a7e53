// Combine by streaming: each rank pushes its rows with bulk copies into staging memory of the rank that wants
// them, chunk after chunk, flags behind each; there, other warps of the same kernel add rows as they land.
// Writes reach more of a link than reads when both directions are busy (measured: 362 against 331 GB/s on
// NVLink 4), and most additions hide behind the transfer. The order of additions is the ranks', never that of
// arrival.
//
// Staging memory is single: a dispatch, or another barrier of all ranks, must stand between two combines.
// Every exchange has one, since rows must be dispatched before they are combined.
#include "combine.cuh"
#include "launch.h"

namespace ep::engine::gpu {

namespace {

#if EP_HAS_BULK

/// A word in shared memory that one warp sets and others poll; atomic, so that checkers know what it is.
__device__ inline uint32_t shared_acquire(uint32_t* p) {
  uint32_t v;
  asm volatile("atom.acquire.cta.shared::cta.or.b32 %0, [%1], 0;"
               : "=r"(v)
               : "r"(shared_address(p))
               : "memory");
  return v;
}
__device__ inline void shared_release(uint32_t* p, uint32_t v) {
  asm volatile("{\n .reg .b32 before;\n atom.release.cta.shared::cta.exch.b32 before, [%0], %1;\n}" ::"r"(
                   shared_address(p)),
               "r"(v)
               : "memory");
}

/// What this rank holds for the others, and which of it this block pushes: rows are dealt over blocks and
/// destinations in the order in which the receivers add them, so that they complete in that order too.
struct Outgoing {
  int32_t held[kMaxGpuRanks];   // rows here of each source
  int32_t first[kMaxGpuRanks];  // slot of the first
  int32_t base[kMaxGpuRanks];   // slot of this rank's first row on each other rank
  int rounds;                   // rows that this block pushes, empty ones included

  /// Warp 0.
  __device__ void fill(const CombineArgs& a) {
    const int lane = threadIdx.x & 31, ranks = a.shape.ranks;
    const bool inside = lane < ranks;
    const int mine = inside ? a.recv_count[lane] : 0, own = inside ? a.slot_base[lane] : 0;
    int before = 0;
    for (int s = 0; s < ranks; ++s) {
      const int n = __shfl_sync(~0u, mine, s);
      if (s < lane) before += n;
    }
    const int most = __reduce_max_sync(~0u, lane == a.rank ? 0 : mine);
    if (inside) {
      held[lane] = mine;
      first[lane] = before;
      base[lane] = own;
    }
    const int all = most * (ranks - 1), blocks = gridDim.x, block = blockIdx.x;
    if (lane == 0) rounds = block < all ? (all - 1 - block) / blocks + 1 : 0;
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

/// Pushing warps: warp w moves piece w of every row of this block. After each chunk of rows all of them wait
/// for the landing, then one raises the flags: a release waits for everything that its multiprocessor has
/// under way, so it is fast only when the others hold still (measured: tens of microseconds beside a running
/// push).
struct Pusher {
  const CombineArgs& a;
  const Outgoing& rows;
  uint8_t* stage;
  uint64_t* full;
  int piece;

  __device__ int bytes() const {
    return min(a.tile.seg_bytes, static_cast<int>(a.shape.combine_row_bytes()) - piece * a.tile.seg_bytes);
  }
  __device__ void load(int k) {
    int dst, place;
    const bool here = piece < a.tile.segs && rows.row(a, k, dst, place);
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
    if (piece >= a.tile.segs || !rows.row(a, k, dst, place)) return;
    uint8_t* to = a.stage_at[dst] + static_cast<size_t>(place) * a.shape.combine_row_bytes();
    bulk_store(to + static_cast<size_t>(piece) * a.tile.seg_bytes,
               stage + static_cast<size_t>(s) * a.tile.stage_bytes, bytes());
  }
  __device__ void run(int lane, uint32_t epoch) {
    const int stages = a.tile.stages, n = rows.rounds, threads = a.tile.warps * 32;
    for (int k = 0; lane == 0 && k < min(n, stages); ++k) load(k);
    for (int k0 = 0; k0 < n; k0 += a.tile.chunk) {
      const int end = min(n, k0 + a.tile.chunk);
      if (lane == 0) {
        for (int k = k0; k < end; ++k) store(k);
        bulk_commit();
        bulk_wait_read(0);
        for (int k = k0; k < end && k + stages < n; ++k) load(k + stages);
        bulk_drain();
      }
      named_barrier(2, threads);
      int dst, place;
      if (piece == 0 && k0 + lane < end && rows.row(a, k0 + lane, dst, place)) {
        store_release(&a.stage_flag_at[dst][place], epoch);
      }
      named_barrier(2, threads);
    }
  }
};

constexpr uint32_t kGaveUp = 0xffffffffu;
constexpr uint32_t kNoFlag = 0xffffffffu;

/// Watching warp: says in shared memory how many of this block's tokens have all their rows here.
__device__ inline bool watch(const CombineArgs& a, const uint32_t* flags, const Waiter& w, int count,
                             uint32_t* tokens_ready, uint32_t epoch) {
  const int lane = threadIdx.x & 31, ranks = a.shape.ranks;
  Patience patience;
  for (int i = 0; i < count;) {
    bool here = i + lane < count;
    int missing = 0;
    for (int d = 0; here && d < ranks; ++d) {
      const uint32_t flag = flags[(i + lane) * ranks + d];
      if (flag != kNoFlag && load_acquire(a.stage_flag + flag) != epoch) here = false, missing = d;
    }
    const uint32_t votes = __ballot_sync(~0u, here);
    const int n = votes == ~0u ? 32 : __ffs(~votes) - 1;
    i += n;
    const bool good = __shfl_sync(~0u, n > 0 || !patience.spent(w, epoch, kPhaseStream, missing), 0);
    if (lane == 0 && (n > 0 || !good))
      shared_release(tokens_ready, good ? static_cast<uint32_t>(i) : kGaveUp);
    if (!good) return false;
  }
  return true;
}

/// Lane 0: waits in shared memory until more than `need` is said. False: the watching warp gave up.
__device__ inline bool wait_shared(uint32_t* word, uint32_t need) {
  uint32_t v;
  while ((v = shared_acquire(word)) <= need) __nanosleep(20);
  return v != kGaveUp;
}

/// Adding warps: loads run ahead as far as rows have landed and the ring has room.
__device__ inline bool add_streamed(const CombineArgs& a, const AddRing& ring, uint32_t* tokens_ready,
                                    int who, int count) {
  const int lane = threadIdx.x & 31, segs = a.tile.add_segs, step = a.tile.adders, stages = ring.stages;
  const int n = walk_length(who, step, count * segs);
  Walk ahead(who, step, segs), here = ahead;
  int loaded = 0;
  for (int k = 0; k < n; ++k, here.next()) {
    bool good = true;
    while (lane == 0 && good && loaded < min(n, k + stages)) {
      if (shared_acquire(tokens_ready) <= static_cast<uint32_t>(ahead.token)) {
        if (loaded > k) break;
        good = wait_shared(tokens_ready, ahead.token);
      }
      if (!good) break;
      fence_acquired_for_bulk();
      ring.load(loaded++, ahead.token, ahead.piece);
      ahead.next();
    }
    if (!__shfl_sync(~0u, good, 0)) {  // let what was loaded land before the block ends
      for (int i = k; lane == 0 && i < loaded; ++i) mbarrier_wait(&ring.full[i % stages], i / stages & 1);
      return false;
    }
    ring.add(k, here.token, here.piece, static_cast<size_t>(here.token) * gridDim.x + blockIdx.x);
    if (k == 0 && who == 0 && lane == 0) stamp(a.stamps, kStampFirst);
  }
  return true;
}
#endif

__global__ void __launch_bounds__(832, 1) combine_stream(const __grid_constant__ CombineArgs a) {
#if EP_HAS_BULK
  extern __shared__ __align__(128) uint8_t smem[];
  __shared__ Outgoing rows;
  __shared__ uint32_t tokens_ready;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, ranks = a.shape.ranks;
  const Tiling& t = a.tile;
  uint8_t* add_rings = smem + static_cast<size_t>(t.warps) * t.stages * t.stage_bytes;
  uint64_t* bars = reinterpret_cast<uint64_t*>(add_rings + static_cast<size_t>(t.adders) * t.add_stages *
                                                               t.add_stage_bytes);
  uint64_t* add_bars = bars + t.warps * t.stages;
  const RowTable table =
      row_table(reinterpret_cast<uint8_t*>(add_bars + t.adders * t.add_stages), t.table_tokens, ranks);
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseStream][blockIdx.x] + 1;
  const int tokens = a.shape.tokens[a.rank], blocks = gridDim.x, block = blockIdx.x;
  const int count = block < tokens ? (tokens - 1 - block) / blocks + 1 : 0;
  if (threadIdx.x == 0) {
    stamp(a.stamps, kStampStart);
    tokens_ready = 0;
  }
  if (warp == 0) rows.fill(a);
  __syncthreads();
  bool good = true;
  const int role = warp - t.warps, fillers = (t.adders + 1) * 32;  // below 0: push; 0: watch; 1...: add
  const size_t row_bytes = a.shape.combine_row_bytes();
  if (role < 0) {
    Pusher pusher = {a, rows, smem + static_cast<size_t>(warp) * t.stages * t.stage_bytes,
                     bars + warp * t.stages, warp};
    if (lane == 0) {
      for (int s = 0; s < t.stages; ++s) mbarrier_init(&pusher.full[s]);
      mbarrier_init_done();
    }
    __syncwarp();
    pusher.run(lane, epoch);
    if (threadIdx.x == 0) stamp(a.stamps, kStampDrained);
  } else {
    const int tid = role * 32 + lane;
    load_slots(a, table, 0, block, blocks, count, tid, fillers);
    named_barrier(1, fillers);
    fill_table(a, table, 0, block, blocks, count, tid, fillers, [&](int d, int slot) {
      const size_t staged = static_cast<size_t>(d) * a.shape.max_tokens + (slot - rows.base[d]);
      return d == a.rank ? a.y[d] + static_cast<size_t>(slot) * row_bytes : a.stage + staged * row_bytes;
    });
    named_barrier(1, fillers);
    uint32_t* flags =
        reinterpret_cast<uint32_t*>(table.slot);  // slots have served: now where each row's flag is
    for (int i = tid; i < count * ranks; i += fillers) {
      const int d = i % ranks, slot = table.slot[i];
      const bool flagged = slot >= 0 && d != a.rank;
      flags[i] = flagged ? static_cast<uint32_t>(d) * a.shape.max_tokens + (slot - rows.base[d]) : kNoFlag;
    }
    named_barrier(1, fillers);
    if (role == 0) {
      if (lane == 0) stamp(a.stamps, kStampCounts);
      good = watch(a, flags, waiter, count, &tokens_ready, epoch);
    } else {
      const int who = role - 1;
      const AddRing ring = {a,
                            table,
                            add_rings + static_cast<size_t>(who) * t.add_stages * t.add_stage_bytes,
                            add_bars + who * t.add_stages,
                            t.add_stages,
                            t.add_stage_bytes,
                            t.add_seg_bytes};
      if (lane == 0) {
        for (int s = 0; s < t.add_stages; ++s) mbarrier_init(&ring.full[s]);
        mbarrier_init_done();
      }
      __syncwarp();
      good = add_streamed(a, ring, &tokens_ready, who, count);
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
