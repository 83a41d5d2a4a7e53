// What the ways of combine share: the table of a block's tokens, and additions in float with one rounding.
#pragma once

#include <cuda_bf16.h>

#include "device.cuh"

namespace ep::engine::gpu {

/// Slots of the block's tokens, in shared memory, and the weights of those ranks that a token has, in order.
struct CombineTable {
  int32_t* slot;  // [tokens x ranks], -1 where a token does not go
  float* weight;  // [tokens x ranks], the first of each token are used
};

/// Tokens first, first + step, ...: `count` of them.
__device__ inline void fill_table(const CombineArgs& a, const CombineTable& t, int first, int step, int count,
                                  int tid, int threads) {
  const int ranks = a.shape.ranks, topk = a.shape.topk;
  for (int i = tid; i < count * ranks; i += threads) {
    t.slot[i] = a.slot[static_cast<size_t>(first + i / ranks * step) * ranks + i % ranks];
  }
  for (int i = tid; a.weighted && i < count; i += threads) {
    const size_t token = static_cast<size_t>(first) + static_cast<size_t>(i) * step;
    int n = 0;
    for (int d = 0; d < ranks; ++d) {
      if (a.slot[token * ranks + d] < 0) continue;
      float sum = 0;
      for (int k = 0; k < topk; ++k) {
        const int id = a.topk_idx[token * topk + k];
        if (id >= 0 && expert_rank(a.map, id) == d) sum += a.topk_weight[token * topk + k];
      }
      t.weight[i * ranks + n++] = sum;
    }
  }
}

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

}  // namespace ep::engine::gpu
