// Does racecheck follow the order that named barriers give? A block as dispatch has it, in small: 4 auxiliary warps
// write a table, warp 0 then sums it in place, all warps read it after the block's front barrier. With bit 8 every read
// comes after every write by a barrier that the whole block passes; without it nothing orders them (control).
// bits: 1 the "published" barrier (arrive and sync), 2 a barrier of the four writers in the middle, 4 the front barrier
// is a reduction, 8 there is a front barrier.  nvcc -arch=sm_90a -lineinfo racecheck_barriers.cu; a.out BITS
#include <cstdio>
#include <cstdlib>
constexpr int kAux = 4, kMove = 6, kGroups = 8;
__device__ void sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
__device__ bool sync_or(int id, int threads, bool value) {
  int any;
  asm volatile(
      "{\n .reg .pred p, q;\n setp.ne.s32 p, %3, 0;\n barrier.cta.red.or.pred q, %1, %2, p;\n"
      " selp.s32 %0, 1, 0, q;\n}"
      : "=r"(any)
      : "r"(id), "r"(threads), "r"((int)value)
      : "memory");
  return any != 0;
}
__global__ void block(int* out, int bits) {
  __shared__ int group[kGroups];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, aux = warp - kMove, all = (kAux + kMove) * 32;
  if (aux >= 0) {
    if (aux == 0 && (bits & 1)) asm volatile("bar.arrive 4, %0;" ::"r"((kMove + 1) * 32) : "memory");
    if (bits & 2) {
      for (int g = aux; g < kGroups; g += kAux)
        if (lane == 0) group[g] = g + 1;
      sync(1, kAux * 32);
    } else {
      for (int g = 0; g < kGroups; ++g)
        if (aux == 0 && lane == 0) group[g] = g + 1;
      __syncwarp();
    }
    int sum = 0;
    for (int g = 0; aux == 0 && lane == 0 && g < kGroups; ++g) {
      const int n = group[g];
      group[g] = sum;
      sum += n;
    }
    __syncwarp();
  } else if (bits & 1) {
    sync(4, (kMove + 1) * 32);
  }
  if (bits & 8) {
    if (bits & 4)
      sync_or(3, all, false);
    else
      sync(3, all);
  }
  int sum = 0;
  for (int g = 0; g < kGroups; ++g) sum += group[g];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
int main(int argc, char** argv) {
  const int bits = argc > 1 ? atoi(argv[1]) : 8, threads = (kAux + kMove) * 32, blocks = 16;
  int* out;
  cudaMallocManaged(&out, threads * blocks * 4);
  for (int i = 0; i < 20; ++i) block<<<blocks, threads>>>(out, bits);
  if (cudaDeviceSynchronize() != cudaSuccess) return 3;
  int wrong = 0;
  for (int i = 0; i < threads * blocks; ++i) wrong += out[i] != 0 + 1 + 3 + 6 + 10 + 15 + 21 + 28;
  printf("bits %d wrong sums %d\n", bits, wrong);
}
