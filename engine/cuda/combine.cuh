// What the ways of combine share: the table of a block's tokens, and additions in float with one rounding.
#pragma once

#include <cuda_bf16.h>

#include "device.cuh"

namespace ep::engine::gpu {

/// Slots (and weights) of the block's tokens, in shared memory.
struct CombineTable {
  int32_t* slot;  // [tokens x ranks]
  float* weight;  // [tokens x ranks], when weighted
};

/// Tokens first, first + step, ...: `count` of them.
__device__ inline void fill_table(const CombineArgs& a, const CombineTable& t, int first, int step, int count,
                                  int tid, int threads) {
  const int ranks = a.shape.ranks, topk = a.shape.topk;
  for (int i = tid; i < count * ranks; i += threads) {
    const int token = first + i / ranks * step, d = i % ranks;
    t.slot[i] = a.slot[static_cast<size_t>(token) * ranks + d];
    if (!a.weighted) continue;
    float sum = 0;
    for (int k = 0; k < topk; ++k) {
      const size_t at = static_cast<size_t>(token) * topk + k;
      if (a.topk_idx[at] >= 0 && expert_rank(a.map, a.topk_idx[at]) == d) sum += a.topk_weight[at];
    }
    t.weight[i] = sum;
  }
}

__device__ inline void add_pair(float& low, float& high, uint32_t bits, bool weighted, float w) {
  const float x = __uint_as_float(bits << 16), y = __uint_as_float(bits & 0xffff0000u);
  low = weighted ? fmaf(w, x, low) : low + x;
  high = weighted ? fmaf(w, y, high) : high + y;
}
__device__ inline void add_vector(float* acc, uint4 v, bool weighted, float w) {
  add_pair(acc[0], acc[1], v.x, weighted, w);
  add_pair(acc[2], acc[3], v.y, weighted, w);
  add_pair(acc[4], acc[5], v.z, weighted, w);
  add_pair(acc[6], acc[7], v.w, weighted, w);
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

}  // namespace ep::engine::gpu
