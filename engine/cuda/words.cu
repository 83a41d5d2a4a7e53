// Combine by words: each rank pushes its rows with 16-byte stores into staging memory of the rank that wants
// them, where every word says by itself whether it has arrived: until then it holds a pattern that no pushed
// word has. So there are no flags and no releases, which wait for all that a GPU has under way to its peer
// (PERFORMANCE.md, steps 10 to 13), and a row can be added as soon as its last word is here. Whoever has
// added a row writes the pattern back for the next combine.
//
// The pattern is a pair of bf16 NaNs. A row that holds it is sent with another pair of NaNs in its place:
// what is added to a NaN is the one NaN that the GPU makes, whatever bits went in, so the result is the same.
//
// Order: pushed and polled words are accessed by relaxed loads and stores at system scope, each of which the
// memory model keeps whole; nothing is concluded from one word about another.
//
// As with stream.cu, a dispatch or another barrier of all ranks must stand between two combines.
#include "combine.cuh"
#include "launch.h"

namespace ep::engine::gpu {

namespace {

constexpr uint32_t kNothing = 0xffffffffu;  // what staging memory holds where no row has arrived
constexpr uint32_t kOtherNans = 0x7fffffffu;
constexpr int kPushVectors = kWordsPushBytes / 512, kAddVectors = kWordsAddBytes / 512;  // of a lane

__device__ inline void store_peer(uint4* p, uint4 v) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}
__device__ inline uint32_t sendable(uint32_t word) {
  return word == kNothing ? kOtherNans : word;
}
__device__ inline bool missing(uint4 v) {
  return v.x == kNothing || v.y == kNothing || v.z == kNothing || v.w == kNothing;
}

/// Pushing warps: pieces of rows in the order in which they are added, claimed one by one, because the link
/// serves some multiprocessors faster than others. Warp `who` of `pushers` on this GPU.
__device__ inline void push_words(const CombineArgs& a, const Outgoing& rows, Control* control,
                                  uint32_t epoch, uint32_t who, uint32_t pushers) {
  const int lane = threadIdx.x & 31, row_bytes = static_cast<int>(a.shape.combine_row_bytes());
  const uint32_t segs = a.tile.segs, total = rows.count * segs;
#pragma unroll 1
  for (uint32_t unit = who; unit < total;) {
    uint32_t next = 0;
    if (lane == 0) next = pushers + atomicAdd(&control->claim[epoch & 1], 1u);
    const uint32_t number = unit / segs;
    const int offset = static_cast<int>(unit - number * segs) * kWordsPushBytes + lane * 16;
    int dst, place;
    if (rows.row(a, number, dst, place)) {
      const uint8_t* from = a.y[a.rank] + static_cast<size_t>(rows.first[dst] + place) * row_bytes;
      uint8_t* to = a.stage_at[dst] + static_cast<size_t>(place) * row_bytes;
      uint4 v[kPushVectors];
#pragma unroll
      for (int u = 0; u < kPushVectors; ++u) {
        if (offset + u * 512 < row_bytes)
          v[u] = load_stream(reinterpret_cast<const uint4*>(from + offset + u * 512));
      }
#pragma unroll
      for (int u = 0; u < kPushVectors; ++u) {
        if (offset + u * 512 < row_bytes)
          store_peer(reinterpret_cast<uint4*>(to + offset + u * 512),
                     make_uint4(sendable(v[u].x), sendable(v[u].y), sendable(v[u].z), sendable(v[u].w)));
      }
    }
    unit = __shfl_sync(~0u, next, 0);
  }
}

/// Entries of the table are addresses of 16 bytes' alignment; the rank that they are from stands in their low
/// bits.
__device__ inline uint8_t* address_of(uint64_t entry) {
  return reinterpret_cast<uint8_t*>(entry & ~uint64_t{15});
}
__device__ inline int rank_of(uint64_t entry) {
  return static_cast<int>(entry & 15);
}

/// One warp's piece of one row, `kVectors` vectors a lane: `bytes` from `at`, of which this lane has those at
/// lane * 16, + 512, ...
template <int kVectors>
struct PieceOfRow {
  uint4 v[kVectors];

  __device__ void load(const uint8_t* at, int bytes) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int u = 0; u < kVectors; ++u) {
      if (u * 512 + lane * 16 < bytes) v[u] = load_peer(reinterpret_cast<const uint4*>(at + u * 512) + lane);
    }
  }
  /// A row that a peer pushes: waits for it, takes it, and leaves the pattern. False: it did not come in
  /// time.
  __device__ bool take(uint8_t* at, int bytes, const Waiter& w) {
    const int lane = threadIdx.x & 31;
    const auto* last = reinterpret_cast<const uint32_t*>(at + bytes) - 1;
    Patience patience;
    bool good = true;
    // All lanes look at one word, so that waiting costs little; then everything is looked at.
    while (good && load_relaxed(last) == kNothing) {
      good = !patience.late(w);
      __nanosleep(20);
    }
    if (!__all_sync(~0u, good)) return false;
    load(at, bytes);
#pragma unroll
    for (int u = 0; u < kVectors; ++u) {
      if (u * 512 + lane * 16 >= bytes) continue;
      uint4* from = reinterpret_cast<uint4*>(at + u * 512) + lane;
      while (good && missing(v[u])) {
        v[u] = load_peer(from);
        good = !patience.late(w);
      }
      store_vector(from, make_uint4(kNothing, kNothing, kNothing, kNothing));
    }
    return __all_sync(~0u, good);
  }
};

/// What a warp needs for a piece of a token: its rows in ascending rank order, and who may be waited for.
struct Piece {
  const uint64_t* at;
  const float* weight;
  int rows, own, offset, bytes;
  uint8_t* out;
};
constexpr int kAdded = -1;  // instead of the rank that did not push its row in time

/// A row into registers: own ones were here before the launch.
template <int kVectors>
__device__ inline bool get_row(PieceOfRow<kVectors>& row, const Piece& p, int n, const Waiter& w) {
  uint8_t* at = address_of(p.at[n]) + p.offset;
  if (rank_of(p.at[n]) != p.own) return row.take(at, p.bytes, w);
  row.load(at, p.bytes);
  return true;
}

/// Two rows are the common case on two GPUs: nothing is kept between them, and what is here already is loaded
/// before what is waited for.
template <bool kWeighted>
__device__ inline int add_two(const Piece& p, const Waiter& w) {
  const int lane = threadIdx.x & 31;
  PieceOfRow<kAddVectors> first, second;
  const bool pair = p.rows > 1, own_second = pair && rank_of(p.at[1]) == p.own;
  if (own_second) second.load(address_of(p.at[1]) + p.offset, p.bytes);
  if (p.rows > 0 && !get_row(first, p, 0, w)) return rank_of(p.at[0]);
  if (pair && !own_second && !get_row(second, p, 1, w)) return rank_of(p.at[1]);
  const float w0 = kWeighted && p.rows > 0 ? p.weight[0] : 0, w1 = kWeighted && pair ? p.weight[1] : 0;
#pragma unroll
  for (int u = 0; u < kAddVectors; ++u) {
    if (u * 512 + lane * 16 >= p.bytes) continue;
    float acc[8] = {};
    if (p.rows > 0) add_vector<kWeighted>(acc, first.v[u], w0);
    if (pair) add_vector<kWeighted>(acc, second.v[u], w1);
    store_vector(reinterpret_cast<uint4*>(p.out + u * 512) + lane, round_vector(acc));
  }
  return kAdded;
}
/// More rows: one after the other, in parts that leave room for the sums.
template <bool kWeighted>
__device__ inline int add_many(Piece p, const Waiter& w) {
  constexpr int kVectors = 2;
  const int lane = threadIdx.x & 31, whole = p.bytes;
#pragma unroll 1
  for (int done = 0; done < whole;
       done += kVectors * 512, p.offset += kVectors * 512, p.out += kVectors * 512) {
    p.bytes = min(kVectors * 512, whole - done);
    float acc[kVectors][8] = {};
#pragma unroll 1
    for (int n = 0; n < p.rows; ++n) {
      PieceOfRow<kVectors> row;
      if (!get_row(row, p, n, w)) return rank_of(p.at[n]);
      const float by = kWeighted ? p.weight[n] : 0;
#pragma unroll
      for (int u = 0; u < kVectors; ++u) {
        if (u * 512 + lane * 16 < p.bytes) add_vector<kWeighted>(acc[u], row.v[u], by);
      }
    }
#pragma unroll
    for (int u = 0; u < kVectors; ++u) {
      if (u * 512 + lane * 16 < p.bytes)
        store_vector(reinterpret_cast<uint4*>(p.out + u * 512) + lane, round_vector(acc[u]));
    }
  }
  return kAdded;
}

/// Adding warps: tokens in turns over the adding blocks, so that they complete in about the order of arrival.
template <bool kWeighted, bool kMany>
__device__ inline bool add_words(const CombineArgs& a, const RowTable& table, const Waiter& w, uint32_t epoch,
                                 int who, int adders, int first_token, int step, int count) {
  const int segs = a.tile.add_segs, row_bytes = static_cast<int>(a.shape.combine_row_bytes());
#pragma unroll 1
  for (int i = who; i < count * segs; i += adders) {
    const int entry = i / segs, offset = (i - entry * segs) * kWordsAddBytes;
    const size_t token = static_cast<size_t>(first_token) + static_cast<size_t>(entry) * step;
    const size_t at = static_cast<size_t>(entry) * a.shape.ranks;
    const Piece p = {table.at + at,
                     table.weight + at,
                     table.rows[entry],
                     a.rank,
                     offset,
                     min(kWordsAddBytes, row_bytes - offset),
                     a.out + token * row_bytes + offset};
    const int absent = kMany ? add_many<kWeighted>(p, w) : add_two<kWeighted>(p, w);
    if (absent != kAdded) {
      give_up(w, kPhaseStream, static_cast<uint32_t>(absent), epoch);
      return false;
    }
    if (i == 0 && (threadIdx.x & 31) == 0) stamp(a.stamps, kStampFirst);
  }
  return true;
}

/// `kMany`: a token can have more than two rows.
template <bool kMany>
__global__ void __launch_bounds__(kWordsWarps * 32, 1) combine_words(const __grid_constant__ CombineArgs a) {
  extern __shared__ __align__(128) uint8_t smem[];
  __shared__ Outgoing rows;
  const Tiling& t = a.tile;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, warps = t.warps + t.adders;
  const bool split = t.push_ctas > 0, only_pushes = static_cast<int>(blockIdx.x) < t.push_ctas;
  const int pushers = !split ? t.warps : only_pushes ? warps : 0;  // of this block
  const RowTable table = row_table(smem, t.table_tokens, a.shape.ranks);
  Control* control = a.control[a.rank];
  const Waiter waiter = {control, a.report, a.timeout_ns};
  const uint32_t epoch = control->epoch[kPhaseStream][blockIdx.x] + 1;
  if (threadIdx.x == 0) {
    stamp(a.stamps, kStampStart);
    if (blockIdx.x == 0) control->claim[(epoch + 1) & 1] = 0;  // for the next launch
  }
  if (warp == 0) rows.fill(a);
  __syncthreads();
  bool good = true;
  if (warp < pushers) {
    const uint32_t pushing = split ? t.push_ctas : gridDim.x;
    push_words(a, rows, control, epoch, warp * pushing + blockIdx.x, pushers * pushing);
    if (threadIdx.x == 0) stamp(a.stamps, kStampDrained);
  } else {
    const int adders = warps - pushers, who = warp - pushers, tid = who * 32 + lane;
    const int step = gridDim.x - t.push_ctas, first = blockIdx.x - t.push_ctas,
              tokens = a.shape.tokens[a.rank];
    const int count = first < tokens ? (tokens - 1 - first) / step + 1 : 0;
    load_slots(a, table, 0, first, step, count, tid, adders * 32);
    named_barrier(1, adders * 32);
    const size_t row_bytes = a.shape.combine_row_bytes();
    fill_table(a, table, 0, first, step, count, tid, adders * 32, [&](int d, int slot) {
      const size_t staged = static_cast<size_t>(d) * a.shape.max_tokens + (slot - rows.base[d]);
      const uint8_t* at =
          d == a.rank ? a.y[d] + static_cast<size_t>(slot) * row_bytes : a.stage + staged * row_bytes;
      return at + d;
    });
    named_barrier(1, adders * 32);
    if (tid == 0) stamp(a.stamps, kStampCounts);
    good = a.weighted ? add_words<true, kMany>(a, table, waiter, epoch, who, adders, first, step, count)
                      : add_words<false, kMany>(a, table, waiter, epoch, who, adders, first, step, count);
  }
  if (__syncthreads_or(!good)) return;
  advance_epoch(control, kPhaseStream, epoch);
  if (threadIdx.x == 0) stamp(a.stamps, kStampFlags);
}

}  // namespace

const void* words_kernel(bool many) {
  return many ? reinterpret_cast<const void*>(&combine_words<true>)
              : reinterpret_cast<const void*>(&combine_words<false>);
}

}  // namespace ep::engine::gpu
