// What the ways of combine share: the table of a block's tokens, and additions in float with one rounding.
#pragma once

#include <cuda_bf16.h>

#include "device.cuh"

namespace ep::engine::gpu {

/// What is to be added for each of a block's tokens, in shared memory: its rows in ascending rank order.
struct RowTable {
  uint64_t* at;   // [tokens x ranks] addresses, the first `rows` of each token are used
  float* weight;  // the same, when weighted
  int32_t* rows;  // [tokens]
  int32_t* slot;  // [tokens x ranks], -1 where a token does not go
};
__device__ inline RowTable row_table(uint8_t* at, int tokens, int ranks) {
  RowTable t;
  t.at = reinterpret_cast<uint64_t*>(at);
  t.weight = reinterpret_cast<float*>(t.at + static_cast<size_t>(tokens) * ranks);
  t.rows = reinterpret_cast<int32_t*>(t.weight + static_cast<size_t>(tokens) * ranks);
  t.slot = t.rows + tokens;
  return t;
}

/// Entries index, index + 1, ... of the table are for tokens first, first + step, ... `count` of them. First
/// the slots, a thread each; then, behind a barrier of these threads, the rest.
__device__ inline void load_slots(const CombineArgs& a, const RowTable& t, int index, int first, int step,
                                  int count, int tid, int threads) {
  const int ranks = a.shape.ranks;
  for (int i = tid; i < count * ranks; i += threads) {
    const int k = i / ranks, d = i - k * ranks;
    t.slot[index * ranks + i] =
        a.slot[(static_cast<size_t>(first) + static_cast<size_t>(k) * step) * ranks + d];
  }
}
/// `locate(d, slot)` is the address of a row.
template <class Locate>
__device__ inline void fill_table(const CombineArgs& a, const RowTable& t, int index, int first, int step,
                                  int count, int tid, int threads, Locate locate) {
  const int ranks = a.shape.ranks, topk = a.shape.topk;
  for (int i = tid; i < count; i += threads) {
    const size_t token = static_cast<size_t>(first) + static_cast<size_t>(i) * step;
    const size_t entry = static_cast<size_t>(index + i) * ranks;
    int n = 0;
    for (int d = 0; d < ranks; ++d) {
      const int slot = t.slot[entry + d];
      if (slot < 0) continue;
      float sum = 0;
      for (int k = 0; a.weighted && k < topk; ++k) {
        const int id = a.topk_idx[token * topk + k];
        if (id >= 0 && expert_rank(a.map, id) == d) sum += a.topk_weight[token * topk + k];
      }
      if (a.weighted) t.weight[entry + n] = sum;
      t.at[entry + n++] = reinterpret_cast<uint64_t>(locate(d, slot));
    }
    t.rows[index + i] = n;
  }
}

/// What this rank holds for the others. Rows are numbered over places and destinations in the order in which
/// the receivers add them, so that they complete in about that order too.
struct Outgoing {
  int32_t held[kMaxGpuRanks];   // rows here of each source
  int32_t first[kMaxGpuRanks];  // slot of the first
  int32_t base[kMaxGpuRanks];   // slot of this rank's first row on each other rank
  uint32_t count;               // of numbers, those without a row included

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
    if (lane == 0) count = static_cast<uint32_t>(most) * (ranks - 1);
  }
  /// Destination and place among the rows for it; false where a number has no row.
  __device__ bool row(const CombineArgs& a, uint32_t number, int& dst, int& place) const {
    const int others = a.shape.ranks - 1;
    place = static_cast<int>(number) / others;
    dst = a.rank + 1 + (static_cast<int>(number) - place * others);
    if (dst >= a.shape.ranks) dst -= a.shape.ranks;
    return place < held[dst];
  }
};

template <bool kWeighted>
__device__ inline void add_pair(float& low, float& high, uint32_t bits, float w) {
  const float x = __uint_as_float(bits << 16), y = __uint_as_float(bits & 0xffff0000u);
  low = kWeighted ? fmaf(w, x, low) : low + x;
  high = kWeighted ? fmaf(w, y, high) : high + y;
}
template <bool kWeighted>
__device__ inline void add_vector(float* acc, uint4 v, float w) {
  add_pair<kWeighted>(acc[0], acc[1], v.x, w);
  add_pair<kWeighted>(acc[2], acc[3], v.y, w);
  add_pair<kWeighted>(acc[4], acc[5], v.z, w);
  add_pair<kWeighted>(acc[6], acc[7], v.w, w);
}
__device__ inline uint32_t round_pair(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &both, 4);
  return bits;
}
__device__ inline uint4 round_vector(const float* acc) {
  return make_uint4(round_pair(acc[0], acc[1]), round_pair(acc[2], acc[3]), round_pair(acc[4], acc[5]),
                    round_pair(acc[6], acc[7]));
}

/// One warp: adds `rows` pieces of `bytes` that stand `stride` apart in shared memory.
template <bool kWeighted>
__device__ inline void add_rows(const uint8_t* from, int rows, int stride, const float* weight, uint8_t* out,
                                int bytes) {
  const int lane = threadIdx.x & 31;
  if (rows == 2) {  // the common case on two GPUs, kept free of loops
    const float w0 = kWeighted ? weight[0] : 0, w1 = kWeighted ? weight[1] : 0;
#pragma unroll 4
    for (int v = lane * 16; v < bytes; v += 512) {
      const uint4 x = *reinterpret_cast<const uint4*>(from + v);
      const uint4 y = *reinterpret_cast<const uint4*>(from + stride + v);
      float acc[8] = {};
      add_vector<kWeighted>(acc, x, w0);
      add_vector<kWeighted>(acc, y, w1);
      store_vector(reinterpret_cast<uint4*>(out + v), round_vector(acc));
    }
    return;
  }
  for (int v = lane * 16; v < bytes; v += 512) {
    float acc[8] = {};
#pragma unroll 2
    for (int n = 0; n < rows; ++n) {
      add_vector<kWeighted>(acc, *reinterpret_cast<const uint4*>(from + n * stride + v),
                            kWeighted ? weight[n] : 0);
    }
    store_vector(reinterpret_cast<uint4*>(out + v), round_vector(acc));
  }
}

#if EP_HAS_BULK
/// Position in a sequence of (token, piece) that a warp walks with a fixed stride, without divisions.
struct Walk {
  int token, piece;
  int tokens_per_step, pieces_per_step, pieces;

  __device__ Walk(int first, int step, int pieces_of_row)
      : token(first / pieces_of_row),
        piece(first % pieces_of_row),
        tokens_per_step(step / pieces_of_row),
        pieces_per_step(step % pieces_of_row),
        pieces(pieces_of_row) {}
  __device__ void next() {
    token += tokens_per_step;
    piece += pieces_per_step;
    if (piece >= pieces) piece -= pieces, ++token;
  }
};
__device__ inline int walk_length(int first, int step, int total) {
  return first < total ? (total - first + step - 1) / step : 0;
}

/// Ring in shared memory of one adding warp: lane 0 loads pieces of all rows of a token, all lanes add them.
/// `use` counts the uses of the ring's stages since its barriers were made.
struct AddRing {
  const CombineArgs& a;
  const RowTable& table;
  uint8_t* stage;
  uint64_t* full;
  int stages, stage_bytes, seg_bytes;

  __device__ void load(int use, int entry, int piece) const {
    const int s = use % stages, offset = piece * seg_bytes, rows = table.rows[entry];
    const int bytes = min(seg_bytes, static_cast<int>(a.shape.combine_row_bytes()) - offset);
    const uint64_t* at = table.at + static_cast<size_t>(entry) * a.shape.ranks;
    uint8_t* to = stage + static_cast<size_t>(s) * stage_bytes;
    mbarrier_expect(&full[s], rows * bytes);
    for (int n = 0; n < rows; ++n, to += seg_bytes) {
      bulk_load(to, reinterpret_cast<const uint8_t*>(at[n]) + offset, bytes, &full[s]);
    }
  }
  __device__ void add(int use, int entry, int piece, size_t token) const {
    const int s = use % stages, offset = piece * seg_bytes, rows = table.rows[entry];
    const int bytes = min(seg_bytes, static_cast<int>(a.shape.combine_row_bytes()) - offset);
    const float* weight = table.weight + static_cast<size_t>(entry) * a.shape.ranks;
    const uint8_t* from = stage + static_cast<size_t>(s) * stage_bytes;
    uint8_t* out = a.out + token * a.shape.combine_row_bytes() + offset;
    mbarrier_wait(&full[s], use / stages & 1);
    if (a.weighted)
      add_rows<true>(from, rows, seg_bytes, weight, out, bytes);
    else
      add_rows<false>(from, rows, seg_bytes, weight, out, bytes);
    __syncwarp();
  }
};
#endif

}  // namespace ep::engine::gpu
