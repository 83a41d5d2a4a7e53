// The head of a dispatch block: which rank each of its tokens goes to, and in which slot. Blocks count their
// own tokens, send the counts to every rank in one 64-bit store per pair of destinations, and add up what
// arrives: no second stage, no grid barrier, and the peers' counts double as "your buffers are free". Also
// the work of the auxiliary warps: metadata, expert counts, the handle for combine.
#pragma once

#include "device.cuh"

namespace ep::engine::gpu {

/// Named barriers of a dispatch block.
enum { kBarAux = 1, kBarExperts, kBarFront, kBarPublished };

struct Front {
  int32_t base[kMaxGpuRanks];  // first slot of the block's rows on each destination
  int32_t rows[kMaxGpuRanks];  // of the block for each destination
  int32_t last_ticket;
};

/// Dynamic shared memory after the stages: see `front_bytes` in launch.cc, which must agree.
struct FrontMemory {
  int32_t* table;  // [tokens of the block x ranks] slot, -1 where the token does not go
  int32_t* group;  // [groups of 32 tokens x ranks] rows before the group
  uint32_t* mask;  // [tokens of the block] destinations; zero at first
  uint32_t* hist;  // [experts]
};
__device__ inline FrontMemory front_memory(const DispatchArgs& a, uint8_t* at) {
  FrontMemory m;
  m.table = reinterpret_cast<int32_t*>(at);
  m.group = m.table + static_cast<size_t>(a.tile.table_tokens) * a.shape.ranks;
  m.mask = reinterpret_cast<uint32_t*>(m.group +
                                       static_cast<size_t>((a.tile.table_tokens + 31) / 32) * a.shape.ranks);
  m.hist = m.mask + a.tile.table_tokens;
  return m;
}

/// Selections that a thread of the auxiliary warps holds; the first are on their way before anything else.
struct FirstIds {
  static constexpr int kAtOnce = 4;
  int at[kAtOnce];
  __device__ void load(const DispatchArgs& a, Range mine, int index) {
    const int32_t* from = a.topk_idx + static_cast<size_t>(mine.begin) * a.shape.topk;
    const int ids = mine.count * a.shape.topk;
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int i = index + u * kAuxWarps * 32;
      at[u] = i < ids ? __ldg(from + i) : -1;
    }
  }
};

/// Step 1, auxiliary warps: destinations of the block's tokens as bit masks and their number, a thread per
/// selection. Short code on purpose: in the first microseconds of a block most time goes into fetching
/// instructions.
__device__ inline void route(const DispatchArgs& a, const FrontMemory& m, Front& f, Range mine, int tid,
                             FirstIds ids) {
  constexpr int kThreads = kAuxWarps * 32, kStep = kThreads * FirstIds::kAtOnce;
  for (int i0 = tid;; ids.load(a, mine, i0)) {
#pragma unroll
    for (int u = 0; u < FirstIds::kAtOnce; ++u) {
      if (ids.at[u] < 0) continue;
      const uint32_t i = i0 + u * kThreads;
      const int token = a.map.magic_topk == 0 ? i : __umulhi(i, a.map.magic_topk),
                d = expert_rank(a.map, ids.at[u]);
      const uint32_t bit = 1u << d;
      if ((atomicOr(&m.mask[token], bit) & bit) == 0) atomicAdd(&f.rows[d], 1);
    }
    i0 += kStep;
    if (i0 >= mine.count * a.shape.topk) break;
  }
  named_barrier(kBarAux, kThreads);
}
/// Warp 0: the counts out to every rank: lane p serves peer p.
__device__ inline void publish_counts(const DispatchArgs& a, const Front& f, uint32_t epoch) {
  const int lane = threadIdx.x & 31, ranks = a.shape.ranks, words = (ranks + 1) / 2;
  const size_t at = (static_cast<size_t>(a.rank) * kMaxCtas + blockIdx.x) * words;
#pragma unroll 1
  for (int j = 0; lane < ranks && j < words; ++j) {
    const uint32_t low = f.rows[2 * j], high = f.rows[2 * j + 1];
    store_relaxed(&a.control[lane]->count[at + j], pack(epoch, low | high << 16));
  }
}
/// While the counts travel: the place of each token among its group of 32, and the rows of each group.
__device__ inline void place_tokens(const DispatchArgs& a, const FrontMemory& m, Range mine, int warp) {
  const int lane = threadIdx.x & 31, ranks = a.shape.ranks;
#pragma unroll 1
  for (int g = warp; g * 32 < mine.count; g += kAuxWarps) {
    const int t = g * 32 + lane;
    const uint32_t mask = t < mine.count ? m.mask[t] : 0;
#pragma unroll 1
    for (int d = 0; d < ranks; ++d) {
      const uint32_t votes = __ballot_sync(~0u, mask >> d & 1);
      if (t < mine.count) m.table[t * ranks + d] = (mask >> d & 1) ? __popc(votes & ((1u << lane) - 1)) : -1;
      if (lane == 0) m.group[g * ranks + d] = __popc(votes);
    }
  }
  if (mine.count > 32)
    named_barrier(kBarAux, kAuxWarps * 32);
  else
    __syncwarp();
  int sum = 0;
#pragma unroll 1
  for (int g = 0; warp == 0 && lane < ranks && g * 32 < mine.count; ++g) {
    const int n = m.group[g * ranks + lane];
    m.group[g * ranks + lane] = sum;
    sum += n;
  }
  // The barrier of all but the expert warps orders this for the moving warps. racecheck of CUDA 13.0 loses
  // that after a barrier of some warps (results/2026-11-30-1x-h200/racecheck_barriers.txt); one more quiets
  // it.
#ifdef EP_RACECHECK
  if (mine.count > 32) named_barrier(kBarAux, kAuxWarps * 32);
#endif
}
/// With a cached layout the slots come from the handle; groups and bases add nothing.
__device__ inline void load_cached(const DispatchArgs& a, const FrontMemory& m, Range mine, int tid) {
  const int ranks = a.shape.ranks, groups = (mine.count + 31) / 32;
  for (int i = tid; i < mine.count * ranks; i += kAuxWarps * 32)
    m.table[i] = a.slot[static_cast<size_t>(mine.begin) * ranks + i];
  for (int i = tid; i < groups * ranks; i += kAuxWarps * 32) m.group[i] = 0;
}

/// Step 2, moving warps and auxiliary warps but the last: adds the counts of all earlier sources and of this
/// rank's earlier blocks to `base`. A thread polls `kPairs` (source, block) pairs of `kWords` words at once,
/// since each look costs a trip to L2. False: gave up.
template <int kPairs, int kWords>
__device__ inline bool wait_counts(const DispatchArgs& a, const Waiter& w, Front& f, uint32_t epoch,
                                   int tid) {
  const int ranks = a.shape.ranks, words = (ranks + 1) / 2, threads = (a.tile.warps + kAuxWarps - 1) * 32;
  const int blocks = gridDim.x,
            pairs = a.rank * blocks + blockIdx.x;  // earlier ranks' blocks, earlier ones here
  bool good = true;
#pragma unroll 1
  for (int q0 = 0; q0 < pairs; q0 += threads * kPairs) {
    const uint64_t* at[kPairs];
    bool adds[kPairs];
    uint64_t v[kPairs][kWords] = {};
    int source = 0;
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      const int q = q0 + p * threads + tid, s = q / blocks, c = q - s * blocks;
      adds[p] = q < pairs;
      at[p] = &w.mine->count[(static_cast<size_t>(s) * kMaxCtas + c) * words];
      if (adds[p]) source = s;
    }
    Patience patience;
#pragma unroll 1
    for (bool all = !good; !all;) {
      all = true;
#pragma unroll
      for (int i = 0; i < kPairs * kWords; ++i) {
        if (i % kWords < words && adds[i / kWords])
          v[i / kWords][i % kWords] = load_relaxed(at[i / kWords] + i % kWords);
      }
#pragma unroll
      for (int i = 0; i < kPairs * kWords; ++i) {
        all = all && (i % kWords >= words || !adds[i / kWords] ||
                      static_cast<uint32_t>(v[i / kWords][i % kWords] >> 32) == epoch);
      }
      if (!all && patience.spent(w, epoch, kPhaseCounts, source)) good = false, all = true;
    }
#pragma unroll
    for (int j = 0; j < kWords; ++j) {
      if (j >= words) break;
      uint32_t low = 0, high = 0;
#pragma unroll
      for (int p = 0; p < kPairs; ++p) {
        low += static_cast<uint32_t>(v[p][j]) & 0xffff;
        high += static_cast<uint32_t>(v[p][j]) >> 16;
      }
      low = __reduce_add_sync(~0u, low);
      high = __reduce_add_sync(~0u, high);
      if ((tid & 31) == 0 && low != 0) atomicAdd(&f.base[2 * j], static_cast<int32_t>(low));
      if ((tid & 31) == 0 && high != 0) atomicAdd(&f.base[2 * j + 1], static_cast<int32_t>(high));
    }
  }
  return good;
}
/// Meanwhile the last auxiliary warp: one word of every rank, acquired, says that its receive buffers are
/// free. Apart from the others because an acquiring look is slower than a relaxed one.
__device__ inline bool wait_heads(const DispatchArgs& a, const Waiter& w, uint32_t epoch, int lane) {
  const int words = (a.shape.ranks + 1) / 2;
  uint32_t ignored;
  return lane >= a.shape.ranks ||
         wait_word(w, &w.mine->count[(static_cast<size_t>(lane) * kMaxCtas + blockIdx.x) * words], epoch,
                   kPhaseCounts, lane, ignored);
}

/// Final slot of a token of the block, -1 where it does not go. After step 2 and a block barrier.
__device__ inline int slot_of(const DispatchArgs& a, const FrontMemory& m, const Front& f, int token,
                              int dst) {
  const int ranks = a.shape.ranks, place = m.table[token * ranks + dst];
  return place < 0 ? -1 : place + m.group[(token >> 5) * ranks + dst] + f.base[dst];
}

/// Auxiliary warps: the slots, as combine's handle, and the first slot of this rank on every rank.
__device__ inline void write_handle(const DispatchArgs& a, const FrontMemory& m, const Front& f, Range mine,
                                    int tid) {
  const int ranks = a.shape.ranks;
  for (int i = tid; i < mine.count * ranks; i += kAuxWarps * 32) {
    const int t = i / ranks;
    a.slot[static_cast<size_t>(mine.begin) * ranks + i] = slot_of(a, m, f, t, i - t * ranks);
  }
  if (blockIdx.x == 0 && tid < ranks) a.slot_base[tid] = f.base[tid];
}

__device__ inline uint32_t meta_word(const DispatchArgs& a, int token, int begin, int count, int word) {
  const int topk = a.shape.topk, k = (word - 2) % topk;
  if (word == Meta::kSourceRank) return a.rank;
  if (word == Meta::kSourceToken) return token;
  if (word >= 2 + 2 * topk) return 0;
  const size_t at = static_cast<size_t>(token) * topk + k;
  const int local = a.topk_idx[at] - begin;
  const bool here = a.topk_idx[at] >= 0 && local >= 0 && local < count;
  if (word < 2 + topk) return here ? local : 0xffffffffu;
  return here ? __float_as_uint(a.topk_weight[at]) : 0u;
}

/// Auxiliary warps: metadata records, and scales where the row path does not carry them. Consecutive threads
/// write consecutive vectors of consecutive slots, so the stores leave as whole packets.
__device__ inline void send_metadata(const DispatchArgs& a, const FrontMemory& m, const Front& f, Range mine,
                                     int tid, int threads, bool with_scales) {
  const int ranks = a.shape.ranks, units = static_cast<int>(a.shape.meta_bytes() / 16);
  const int scale_units = with_scales ? static_cast<int>(a.shape.scale_row_bytes() / 16) : 0;
  for (int i = tid; scale_units > 0 && i < mine.count * scale_units; i += threads) {
    const int t = i / scale_units, u = i - t * scale_units;
    const uint4 v = load_stream(reinterpret_cast<const uint4*>(a.scale) +
                                static_cast<size_t>(mine.begin + t) * scale_units + u);
    for (int d = 0; d < ranks; ++d) {
      const int slot = slot_of(a, m, f, t, d);
      if (slot >= 0)
        store_vector(reinterpret_cast<uint4*>(a.recv_scale[d]) + static_cast<size_t>(slot) * scale_units + u,
                     v);
    }
  }
  if (a.cached) return;
  for (int d = 0; d < ranks; ++d) {
    const int begin = a.shape.expert_begin(d), count = a.shape.experts_of(d);
    for (int i = tid; i < mine.count * units; i += threads) {
      const int t = i / units, u = i - t * units, slot = slot_of(a, m, f, t, d);
      if (slot < 0) continue;
      uint4 v;
      v.x = meta_word(a, mine.begin + t, begin, count, 4 * u);
      v.y = meta_word(a, mine.begin + t, begin, count, 4 * u + 1);
      v.z = meta_word(a, mine.begin + t, begin, count, 4 * u + 2);
      v.w = meta_word(a, mine.begin + t, begin, count, 4 * u + 3);
      store_vector(reinterpret_cast<uint4*>(a.recv_meta[d]) + static_cast<size_t>(slot) * units + u, v);
    }
  }
}

/// Expert warps: selections of each expert, summed over blocks on this GPU; the last block to add sends the
/// sums to the experts' owners. A chain of several trips to memory, so it starts with the block and runs
/// beside all.
__device__ inline void send_expert_counts(const DispatchArgs& a, const FrontMemory& m, Front& f, Range mine,
                                          uint32_t epoch, int tid) {
  constexpr int kThreads = kExpertWarps * 32;
  Control* c = a.control[a.rank];
  const int experts = a.shape.experts, topk = a.shape.topk;
  for (int e = tid; e < experts; e += kThreads) m.hist[e] = 0;
  named_barrier(kBarExperts, kThreads);
  for (int i = tid; i < mine.count * topk; i += kThreads) {
    const int id = a.topk_idx[static_cast<size_t>(mine.begin) * topk + i];
    if (id >= 0) atomicAdd(&m.hist[id], 1u);
  }
  named_barrier(kBarExperts, kThreads);
  for (int e = tid; e < experts; e += kThreads) {
    if (m.hist[e] != 0) atomicAdd(&c->hist[e], m.hist[e]);
  }
  __threadfence();
  named_barrier(kBarExperts, kThreads);
  if (tid == 0) f.last_ticket = atomicAdd(&c->ticket, 1u) == gridDim.x - 1;
  named_barrier(kBarExperts, kThreads);
  if (!f.last_ticket) return;
  __threadfence();
  for (int e = tid; e < experts; e += kThreads) {
    const int owner = expert_rank(a.map, e);
    const uint32_t sum = atomicExch(&c->hist[e], 0u);
    store_relaxed(&a.control[owner]->expert[a.rank][e - a.shape.expert_begin(owner)], pack(epoch, sum));
  }
  if (tid == 0) c->ticket = 0;
}

/// Expert warps of the last block: what this rank receives, from each rank and for each of its experts.
__device__ inline bool write_totals(const DispatchArgs& a, const Waiter& w, uint32_t epoch, int tid,
                                    int threads) {
  const int ranks = a.shape.ranks, words = (ranks + 1) / 2, lane = tid & 31, half = 16 * (a.rank & 1);
  bool good = true;
  for (int s = tid >> 5; s < ranks; s += threads >> 5) {
    int sum = 0;
    for (int c = lane; c < static_cast<int>(gridDim.x) && good; c += 32) {
      uint32_t value = 0;
      const uint64_t* word = &w.mine->count[(static_cast<size_t>(s) * kMaxCtas + c) * words + a.rank / 2];
      good = wait_word(w, word, epoch, kPhaseCounts, s, value);
      sum += static_cast<int>(value >> half & 0xffff);
    }
    sum = __reduce_add_sync(~0u, sum);
    if (lane == 0) a.recv_count[s] = sum;
  }
  for (int e = tid; e < a.shape.experts_of(a.rank); e += threads) {
    uint32_t sum = 0;
    for (int s = 0; s < ranks && good; ++s) {
      uint32_t value = 0;
      good = wait_word(w, &w.mine->expert[s][e], epoch, kPhaseExperts, s, value);
      sum += value;
    }
    a.expert_count[e] = static_cast<int32_t>(sum);
  }
  return good;
}

/// The auxiliary warps' part before the counts are in; the moving warps start their loads meanwhile.
__device__ inline void run_counting(const DispatchArgs& a, const FrontMemory& m, Front& f, Range mine,
                                    uint32_t epoch, int warp, const FirstIds& ids) {
  const int tid = warp * 32 + (threadIdx.x & 31);
  if (!a.cached) route(a, m, f, mine, tid, ids);
  if (tid == 0) stamp(a.stamps, kStampRouted);
  if (warp == 0) {
    publish_counts(a, f, epoch);
    asm volatile("bar.arrive %0, %1;" ::"r"(kBarPublished), "r"((a.tile.warps + 1) * 32) : "memory");
    if (tid == 0) stamp(a.stamps, kStampSent);
  }
  if (a.cached)
    load_cached(a, m, mine, tid);
  else
    place_tokens(a, m, mine, warp);
}
/// Moving warps: their loads would keep the routing waiting if they came first.
__device__ inline void await_published(const DispatchArgs& a) {
  named_barrier(kBarPublished, (a.tile.warps + 1) * 32);
}

/// All but the expert warps: true when the block may send. `aux`: number of an auxiliary warp, below 0 of a
/// moving warp, above of one that copies own rows.
__device__ inline bool finish_front(const DispatchArgs& a, const Waiter& w, Front& f, uint32_t epoch, int aux,
                                    int lane) {
  bool good = true;
  const int tid = (aux < 0 ? aux + a.tile.warps + kAuxWarps - 1 : aux) * 32 + lane;
  if (aux == kAuxWarps - 1)
    good = wait_heads(a, w, epoch, lane);
  else if (aux >= kAuxWarps || a.cached)
    good = true;
  else if (a.shape.ranks <= 2)
    good = wait_counts<2, 1>(a, w, f, epoch, tid);
  else
    good = wait_counts<1, kCountWords>(a, w, f, epoch, tid);
  if (named_barrier_or(kBarFront, (a.tile.warps + a.tile.own + kAuxWarps) * 32, !good)) return false;
  stamp(threadIdx.x == 0 ? a.stamps : nullptr, kStampCounts);
  return true;
}

/// What the auxiliary warps do beside the rows.
__device__ inline void run_aux(const DispatchArgs& a, const FrontMemory& m, const Front& f, Range mine,
                               int tid, bool with_scales) {
  send_metadata(a, m, f, mine, tid, kAuxWarps * 32, with_scales);
  if (!a.cached) write_handle(a, m, f, mine, tid);
}

/// All that the expert warps do.
__device__ inline bool run_experts(const DispatchArgs& a, const Waiter& w, const FrontMemory& m, Front& f,
                                   Range mine, uint32_t epoch, int tid) {
  if (a.cached) return true;
  send_expert_counts(a, m, f, mine, epoch, tid);
  return blockIdx.x != gridDim.x - 1 || write_totals(a, w, epoch, tid, kExpertWarps * 32);
}

}  // namespace ep::engine::gpu
