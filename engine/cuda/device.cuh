// The few instructions that C++ cannot say: bulk copies and their barriers, acquire and release at system
// scope, the global timer; and the one waiting loop that all protocols share. Instruction notes: PTX ISA 8.x,
// "cp.async.bulk", "mbarrier", "Memory Consistency Model".
#pragma once

#include <cuda_runtime.h>

#include "args.h"

namespace ep::engine::gpu {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define EP_HAS_BULK 1
#else
#define EP_HAS_BULK 0
#endif

__device__ inline uint64_t global_ns() {
  uint64_t t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}
__device__ inline uint64_t load_acquire(const uint64_t* p) {
  uint64_t v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline uint64_t load_relaxed(const uint64_t* p) {
  uint64_t v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline uint32_t load_relaxed(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline void store_relaxed(uint64_t* p, uint64_t v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
/// Everything this thread wrote, or saw written through a block barrier, is visible before the word.
__device__ inline void store_release(uint64_t* p, uint64_t v) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
__device__ inline uint32_t load_acquire(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline void store_release(uint32_t* p, uint32_t v) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ inline uint32_t load_volatile(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline uint64_t pack(uint32_t epoch, uint32_t value) {
  return static_cast<uint64_t>(epoch) << 32 | value;
}
/// Source rows: read once, never written while the kernel runs.
__device__ inline uint4 load_stream(const uint4* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}
/// Rows that another rank wrote before a flag that this block has acquired.
__device__ inline uint4 load_peer(const uint4* p) {
  uint4 v;
  asm volatile("ld.relaxed.sys.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}
__device__ inline void store_vector(uint4* p, uint4 v) {
  asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}
__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
/// True in all threads of the barrier when the argument is in one.
__device__ inline bool named_barrier_or(int id, int threads, bool value) {
  int any;
  asm volatile(
      "{\n .reg .pred p, q;\n setp.ne.s32 p, %3, 0;\n barrier.cta.red.or.pred q, %1, %2, p;\n"
      " selp.s32 %0, 1, 0, q;\n}"
      : "=r"(any)
      : "r"(id), "r"(threads), "r"(static_cast<int>(value))
      : "memory");
  return any != 0;
}
__device__ inline void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

#if EP_HAS_BULK
__device__ inline void mbarrier_init(uint64_t* bar) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(bar)) : "memory");
}
__device__ inline void mbarrier_init_done() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ inline void mbarrier_expect(uint64_t* bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes)
               : "memory");
}
__device__ inline void mbarrier_wait(uint64_t* bar, uint32_t parity) {
  asm volatile(
      "{\n .reg .pred p;\n"
      "again:\n mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @p bra done;\n bra again;\n"
      "done:\n}" ::"r"(shared_address(bar)),
      "r"(parity)
      : "memory");
}
__device__ inline void bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(bar))
      : "memory");
}
__device__ inline void bulk_store(void* to, const void* from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
__device__ inline void bulk_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Returns when all but the last `lag` groups of stores have read their shared memory.
__device__ inline void bulk_wait_read(int lag) {
  switch (lag) {
    case 0:
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      break;
    case 1:
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
      break;
    case 2:
      asm volatile("cp.async.bulk.wait_group.read 2;" ::: "memory");
      break;
    case 3:
      asm volatile("cp.async.bulk.wait_group.read 3;" ::: "memory");
      break;
    default:
      asm volatile("cp.async.bulk.wait_group.read 4;" ::: "memory");
      break;
  }
}
/// Returns when all but the last `lag` groups of stores are performed, and orders them before what follows.
__device__ inline void bulk_wait_landed(int lag) {
  switch (lag) {
    case 0:
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      break;
    case 1:
      asm volatile("cp.async.bulk.wait_group 1;" ::: "memory");
      break;
    case 2:
      asm volatile("cp.async.bulk.wait_group 2;" ::: "memory");
      break;
    default:
      asm volatile("cp.async.bulk.wait_group 3;" ::: "memory");
      break;
  }
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
/// Returns when the stores of this thread are performed, and orders them before what it does next.
__device__ inline void bulk_drain() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
/// After an acquire by ordinary loads, before bulk loads of what was acquired.
__device__ inline void fence_acquired_for_bulk() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
#endif

__device__ inline int expert_rank(const ExpertMap& m, int expert) {
  const bool wide = expert < m.wide;
  return (wide ? 0 : m.extra) + static_cast<int>(__umulhi(2u * (expert - (wide ? 0 : m.wide)),
                                                          wide ? m.magic_wide : m.magic_narrow));
}

/// A kernel's arguments stand in constant memory, which a multiprocessor fetches in lines, one after the
/// other as they are used: a warp each fetches them at once.
template <class Args>
__device__ inline void touch_arguments(const Args& a, int warp, int warps) {
  for (int i = warp; i < static_cast<int>((sizeof(Args) + 63) / 64); i += warps) {
    const uint32_t word = reinterpret_cast<const uint32_t*>(&a)[i * 16];
    asm volatile("" ::"r"(word));
  }
}

/// Tokens of one block: contiguous, as equal as can be.
struct Range {
  int begin, count;
};
__device__ inline Range range_of(const Tiling& t, int block) {
  return {block * t.share + min(block, t.extra), t.share + (block < t.extra)};
}

/// Whom a wait concerns, for its report.
struct Waiter {
  Control* mine;
  AbortReport* report;
  uint64_t timeout_ns;
};

__device__ __noinline__ inline void give_up(const Waiter& w, uint32_t phase, uint32_t peer, uint32_t epoch) {
  if (atomicCAS(&w.mine->abort, 0u, 1u) != 0u) return;
  volatile AbortReport* r = w.report;
  r->phase = phase;
  r->peer = peer;
  r->block = blockIdx.x;
  r->epoch = epoch;
  __threadfence_system();
  r->set = 1;
}

/// Bookkeeping of one wait: looks at the clock and at the abort word now and then.
struct Patience {
  uint64_t start = 0;
  int spins = 0;
  /// The limit has passed, or another block has given up.
  __device__ bool late(const Waiter& w) {
    if ((++spins & 255) != 0) return false;
    const uint64_t now = global_ns();
    if (start == 0) start = now;
    return load_volatile(&w.mine->abort) != 0 || now - start > w.timeout_ns;
  }
  /// The same, said to all.
  __device__ bool spent(const Waiter& w, uint32_t epoch, uint32_t phase, int peer) {
    if (!late(w)) return false;
    give_up(w, phase, static_cast<uint32_t>(peer), epoch);
    return true;
  }
};

/// Polls a word of this rank's own memory until it carries `epoch`. False when the limit has passed or
/// another block has given up; the caller then leaves the protocol. Polls are relaxed, an acquiring load of
/// the same word follows: an acquire in the loop would empty the L1 cache each time.
__device__ inline bool wait_word(const Waiter& w, const uint64_t* word, uint32_t epoch, uint32_t phase,
                                 int peer, uint32_t& value) {
  Patience patience;
  uint64_t v;
  while (static_cast<uint32_t>((v = load_acquire(word)) >> 32) != epoch) {
    if (patience.spent(w, epoch, phase, peer)) return false;
  }
  value = static_cast<uint32_t>(v);
  return true;
}

/// The same for a word that is only an epoch.
__device__ inline bool wait_flag(const Waiter& w, const uint32_t* word, uint32_t epoch, uint32_t phase,
                                 int peer) {
  Patience patience;
  while (load_acquire(word) != epoch) {
    if (patience.spent(w, epoch, phase, peer)) return false;
  }
  return true;
}

__device__ inline void stamp(uint64_t* stamps, int which) {
  if (stamps != nullptr) stamps[static_cast<size_t>(blockIdx.x) * kStampCount + which] = global_ns();
}

/// A block announces `phase` to the block of the same number on every rank, and waits for theirs: thread p
/// serves peer p. Before announcing, the caller has passed a block barrier since its last data access.
__device__ inline void announce(Control* const* control, int rank, int ranks, uint32_t phase,
                                uint32_t epoch) {
  const int p = static_cast<int>(threadIdx.x);
  if (p < ranks) store_release(&control[p]->flag[phase][rank][blockIdx.x], pack(epoch, 0));
}
__device__ inline bool await_peers(const Waiter& w, int ranks, uint32_t phase, uint32_t epoch) {
  const int p = static_cast<int>(threadIdx.x);
  uint32_t ignored;
  return p >= ranks || wait_word(w, &w.mine->flag[phase][p][blockIdx.x], epoch, phase, p, ignored);
}
__device__ inline bool meet_peers(const Waiter& w, Control* const* control, int rank, int ranks,
                                  uint32_t phase, uint32_t epoch) {
  announce(control, rank, ranks, phase, epoch);
  return await_peers(w, ranks, phase, epoch);
}

/// Every block advances its own epoch; block 0 also those of the blocks that this launch does not have, so
/// that launches of different sizes may follow each other.
__device__ inline void advance_epoch(Control* mine, uint32_t phase, uint32_t epoch) {
  if (threadIdx.x == 0) mine->epoch[phase][blockIdx.x] = epoch;
  if (blockIdx.x != 0) return;
  for (int i = gridDim.x + threadIdx.x; i < kMaxCtas; i += blockDim.x) mine->epoch[phase][i] = epoch;
}

}  // namespace ep::engine::gpu
