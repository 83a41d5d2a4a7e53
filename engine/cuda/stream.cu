// Combine by streaming: each rank pushes its rows with bulk copies into staging memory of the rank that wants
// them, flags behind them; there, other warps of the same kernel add rows as they land. Writes reach more of
// a link than reads when both directions are busy (measured: 362 against 331 GB/s on NVLink 4). The order of
// additions is the ranks', never that of arrival.
//
// One row of a block is under way at a time: what is in flight is a queue, and every flag waits behind it. A
// flag's release waits for all that this GPU has sent to the peer, so it is the work of a warp of its own.
// Blocks claim rows one by one, because the link serves some multiprocessors faster than others.
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

constexpr uint32_t kEnd = 0xffffffffu;  // instead of a number: there are no more
constexpr uint32_t kRing = 64;          // claims that a block keeps
constexpr uint32_t kClaimAhead = 3;     // rows that are claimed and have not landed

/// The rows that this block pushes, as its warps tell each other; words that are polled are only touched by
/// atomics.
struct Claims {
  uint32_t row[kRing];             // numbers; the last is followed by kEnd
  uint32_t claimed;                // of `row`, kEnd included
  uint32_t landed[kMaxPushWarps];  // rows of which each pushing warp's piece is there; kEnd: all
  uint32_t flagged;                // rows whose flags are out
};

/// Lane i of a warp: rows of which no piece of pushing warp i is missing; kEnd: all rows.
__device__ inline uint32_t rows_landed(const CombineArgs& a, Claims& c) {
  const int lane = threadIdx.x & 31;
  const uint32_t here = lane < a.tile.warps ? shared_acquire(&c.landed[lane]) : kEnd;
  const uint32_t all = __reduce_min_sync(~0u, here);
  __syncwarp();
  return all;
}

/// Claiming warp: the block's first row has the block's number, the others come from this rank's counter.
__device__ inline void claim_rows(const CombineArgs& a, const Outgoing& rows, Claims& c, Control* control,
                                  uint32_t epoch) {
  const int lane = threadIdx.x & 31;
  if (blockIdx.x == 0 && lane == 0) control->claim[(epoch + 1) & 1] = 0;  // for the next launch
  uint32_t number = blockIdx.x, n = 0;
  for (;; ++n) {
    int dst, place;
    while (number < rows.count && !rows.row(a, number, dst, place)) {
      if (lane == 0) number = gridDim.x + atomicAdd(&control->claim[epoch & 1], 1u);
      number = __shfl_sync(~0u, number, 0);
    }
    while (n >= kClaimAhead) {
      const uint32_t landed = rows_landed(a, c), flagged = shared_acquire(&c.flagged);
      if (n - min(landed, n) < kClaimAhead && n - flagged < kRing - kClaimAhead) break;
      __nanosleep(20);
    }
    const bool end = number >= rows.count;
    if (lane == 0) {
      shared_release(&c.row[n % kRing], end ? kEnd : number);
      shared_release(&c.claimed, n + 1);
      if (!end) number = gridDim.x + atomicAdd(&control->claim[epoch & 1], 1u);
    }
    if (end) return;
    number = __shfl_sync(~0u, number, 0);
  }
}

/// Pushing warps, one lane each: warp w moves piece w of every row.
struct Pusher {
  const CombineArgs& a;
  const Outgoing& rows;
  Claims& claims;
  uint8_t* stage;
  uint64_t* full;
  int piece;

  __device__ int bytes() const {
    const int offset = piece * a.tile.seg_bytes, row = static_cast<int>(a.shape.combine_row_bytes());
    return offset < row ? min(a.tile.seg_bytes, row - offset) : 0;
  }
  __device__ void load(uint32_t k, uint32_t number) {
    int dst, place;
    rows.row(a, number, dst, place);
    const uint32_t s = k % a.tile.stages;
    mbarrier_expect(&full[s], bytes());
    if (bytes() == 0) return;
    const size_t row = static_cast<size_t>(rows.first[dst] + place) * a.shape.combine_row_bytes();
    bulk_load(stage + static_cast<size_t>(s) * a.tile.stage_bytes,
              a.y[a.rank] + row + static_cast<size_t>(piece) * a.tile.seg_bytes, bytes(), &full[s]);
  }
  __device__ void store(uint32_t k) {
    int dst, place;
    rows.row(a, shared_acquire(&claims.row[k % kRing]), dst, place);
    const uint32_t s = k % a.tile.stages;
    mbarrier_wait(&full[s], k / a.tile.stages & 1);
    if (bytes() > 0) {
      const size_t row = static_cast<size_t>(place) * a.shape.combine_row_bytes();
      bulk_store(a.stage_at[dst] + row + static_cast<size_t>(piece) * a.tile.seg_bytes,
                 stage + static_cast<size_t>(s) * a.tile.stage_bytes, bytes());
    }
    bulk_commit();
  }
  /// Loads what has been claimed and has room; true: no more will come.
  __device__ bool load_claimed(uint32_t k, uint32_t& loaded) {
    while (loaded < k + a.tile.stages && shared_acquire(&claims.claimed) > loaded) {
      const uint32_t number = shared_acquire(&claims.row[loaded % kRing]);
      if (number == kEnd) return true;
      load(loaded++, number);
    }
    return false;
  }
  __device__ void run() {
    uint32_t loaded = 0;
    bool end = false;
    for (uint32_t k = 0;; ++k) {
      while (!end && loaded <= k) end = load_claimed(k, loaded);
      if (loaded <= k) break;
      store(k);
      end = end || load_claimed(k, loaded);
      bulk_drain();
      shared_release(&claims.landed[piece], k + 1);
    }
    shared_release(&claims.landed[piece], kEnd);
  }
};

/// Flagging warp: raises the flag of every row whose pieces have all landed.
__device__ inline void flag_rows(const CombineArgs& a, const Outgoing& rows, Claims& c, uint32_t epoch) {
  const int lane = threadIdx.x & 31;
  for (uint32_t sent = 0;;) {
    const uint32_t landed = rows_landed(a, c);
    const uint32_t all = landed == kEnd ? shared_acquire(&c.claimed) - 1 : landed;
    if (landed != kEnd && all == sent) __nanosleep(40);
    for (uint32_t k = sent + lane; k < all; k += 32) {
      int dst, place;
      rows.row(a, shared_acquire(&c.row[k % kRing]), dst, place);
      store_release(&a.stage_flag_at[dst][place], epoch);
    }
    __syncwarp();
    sent = all;
    if (lane == 0) shared_release(&c.flagged, sent);
    if (landed == kEnd) return;
  }
}

constexpr uint32_t kGaveUp = 0xffffffffu;
constexpr uint32_t kNoFlag = 0xffffffffu;

/// Watching warp: says in shared memory how many of this block's tokens have all their rows here. It looks
/// with relaxed loads and now and then only: acquiring ones in a loop slow this multiprocessor's releases
/// down.
__device__ inline bool watch(const CombineArgs& a, const uint32_t* flags, const Waiter& w, int count,
                             uint32_t* tokens_ready, uint32_t epoch) {
  const int lane = threadIdx.x & 31, ranks = a.shape.ranks;
  Patience patience;
  for (int i = 0; i < count;) {
    bool here = i + lane < count;
    int missing = 0;
    for (int d = 0; here && d < ranks; ++d) {
      const uint32_t flag = flags[(i + lane) * ranks + d];
      if (flag != kNoFlag && load_relaxed(a.stage_flag + flag) != epoch) here = false, missing = d;
    }
    const uint32_t votes = __ballot_sync(~0u, here);
    const int n = votes == ~0u ? 32 : __ffs(~votes) - 1;
    if (n == 0) {
      const bool spent = __shfl_sync(~0u, patience.spent(w, epoch, kPhaseStream, missing), 0);
      if (lane == 0 && spent) shared_release(tokens_ready, kGaveUp);
      if (spent) return false;
      __nanosleep(50);
      continue;
    }
    for (int d = 0; lane < n && d < ranks; ++d) {
      const uint32_t flag = flags[(i + lane) * ranks + d];
      if (flag != kNoFlag) load_acquire(a.stage_flag + flag);
    }
    __syncwarp();
    i += n;
    if (lane == 0) shared_release(tokens_ready, static_cast<uint32_t>(i));
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

__global__ void __launch_bounds__(kStreamThreads, 1) combine_stream(const __grid_constant__ CombineArgs a) {
#if EP_HAS_BULK
  extern __shared__ __align__(128) uint8_t smem[];
  __shared__ Outgoing rows;
  __shared__ Claims claims;
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
    tokens_ready = claims.claimed = claims.flagged = 0;
  }
  if (threadIdx.x < kMaxPushWarps) claims.landed[threadIdx.x] = 0;
  if (warp == 0) rows.fill(a);
  __syncthreads();
  bool good = true;
  // Below 0: push; 0: flag; 1: claim; 2: watch; then those that add.
  const int role = warp - t.warps, fillers = (t.adders + 1) * 32;
  const size_t row_bytes = a.shape.combine_row_bytes();
  if (role < 0) {
    Pusher pusher = {a,
                     rows,
                     claims,
                     smem + static_cast<size_t>(warp) * t.stages * t.stage_bytes,
                     bars + warp * t.stages,
                     warp};
    if (lane == 0) {
      for (int s = 0; s < t.stages; ++s) mbarrier_init(&pusher.full[s]);
      mbarrier_init_done();
      pusher.run();
    }
    if (threadIdx.x == 0) stamp(a.stamps, kStampDrained);
  } else if (role == 0) {
    flag_rows(a, rows, claims, epoch);
    if (lane == 0) stamp(a.stamps, kStampAnnounced);
  } else if (role == 1) {
    claim_rows(a, rows, claims, control, epoch);
  } else {
    const int tid = (role - 2) * 32 + lane;
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
    if (role == 2) {
      if (lane == 0) stamp(a.stamps, kStampCounts);
      good = watch(a, flags, waiter, count, &tokens_ready, epoch);
    } else {
      const int who = role - 3;
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
