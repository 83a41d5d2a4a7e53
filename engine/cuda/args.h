// What host code and kernels agree on: the control block that peers write into, the arguments of every
// kernel, and the names of phases. Plain data; the kernels are in dispatch.cu, combine.cu, probe.cu and
// service.cu.
#pragma once

#include <cstdint>

#include "layout.h"

namespace ep::engine::gpu {

inline constexpr int kMaxGpuRanks = 16;  // a GPU arena serves at most this many ranks
inline constexpr int kMaxCtas = 160;  // blocks of one rank; no GPU of today has more multiprocessors to give
inline constexpr int kCountWords = kMaxGpuRanks / 2;  // two 16-bit counts in the value of one word
inline constexpr int kMaxTokensPerCta = 8192;         // counts of one block must fit 16 bits
inline constexpr int kAuxWarps = 4;     // warps of a dispatch block that count tokens and send metadata
inline constexpr int kExpertWarps = 2;  // and that count experts
inline constexpr int kDispatchThreads = 832;
inline constexpr int kMaxPushWarps = 8, kStreamThreads = 832;
inline constexpr int kWordsWarps = 24;  // combine by words: pushing and adding warps of a block
inline constexpr int kWordsPushBytes = 7 * 512, kWordsAddBytes = 4 * 512;  // a warp's pieces of a row
inline constexpr size_t kControlBytes = size_t{2} << 20;

/// Protocol steps that use epochs of their own; also the vocabulary of timeouts.
enum Phase : uint32_t {
  kPhaseNone = 0,
  kPhaseCounts,   // dispatch waits for the row counts of a peer (this is its head barrier as well)
  kPhaseTail,     // dispatch waits until a peer's rows have landed
  kPhaseExperts,  // dispatch waits for the expert counts of a peer
  kPhaseReady,    // combine waits until a peer's rows are ready to be read
  kPhaseStream,   // streamed combine, and combine by words, wait until a peer's row has landed
  kPhaseBarrier,  // alignment barrier of the bench
  kPhases
};

/// One per rank, at the start of its arena, so that every peer can reach it. Words that peers write hold
/// {epoch, value} in one aligned 64-bit store, so value and signal arrive together; a word is valid when its
/// epoch is the one expected. Epochs are counted on the device, per block, so that a captured graph replays.
struct Control {
  uint64_t count[kMaxGpuRanks * kMaxCtas * kCountWords];  // [source][block][pair of destinations]
  uint64_t flag[kPhases][kMaxGpuRanks][kMaxCtas];
  uint64_t expert[kMaxGpuRanks][kMaxExperts];
  uint32_t hist[kMaxExperts];         // local selections of each expert, summed over blocks
  uint32_t ticket;                    // blocks that have added theirs
  uint32_t claim[2];                  // rows of a streamed combine that are claimed, in turns of launches
  uint32_t abort;                     // set by the first block that gives up; all others follow
  uint32_t epoch[kPhases][kMaxCtas];  // of dispatch under kPhaseCounts, of combine under kPhaseReady
};
static_assert(sizeof(Control) <= kControlBytes);

/// Written once, by the first waiter that gives up, into host memory that the device can write.
struct AbortReport {
  uint32_t phase;
  uint32_t peer;  // the rank that was waited for
  uint32_t block;
  uint32_t epoch;
  uint32_t set;  // written last
};

/// Device timestamps (globaltimer, ns) of one block.
enum Stamp {
  kStampStart,
  kStampCounts,
  kStampFirst,
  kStampDrained,
  kStampFlags,
  kStampSent,
  kStampRouted,     // destinations of the block's tokens are known
  kStampAnnounced,  // the last flags are out
  kStampCount = 8
};

/// How a kernel cuts its work; chosen by `plan_*` in launch.h, checked there.
struct Tiling {
  int ctas = 0;
  int warps = 0;      // that move rows
  int stages = 0;     // ring of each warp (bulk path)
  int ahead = 0;      // dispatch: warps that load a piece before the counts are in
  int lag = 1;        // stores of this many stages may still be reading when the next load is issued
  int own = 0;        // dispatch: warps that copy this rank's own rows; 0: the moving warps do that too
  int seg_bytes = 0;  // a row is moved in pieces of this size
  int segs = 0;
  int stage_bytes = 0;
  int table_tokens = 0;      // most tokens of one block
  int share = 0, extra = 0;  // tokens of a block of this rank; the first `extra` blocks have one more
  int push_ctas = 0;  // combine by words: blocks that only push, the others add; 0: every block does both
  // Streamed combine: warps that add, and their rings. Combine by words: warps that add.
  int adders = 0, add_stages = 0, add_seg_bytes = 0, add_segs = 0, add_stage_bytes = 0;
  size_t smem = 0;
};

/// Bytes of combine's table of rows (RowTable): addresses, weights and slots by token and rank, rows by
/// token.
EP_HD inline size_t table_bytes(int tokens, int ranks) {
  return static_cast<size_t>(tokens) *
         (ranks * (sizeof(uint64_t) + sizeof(float) + sizeof(int32_t)) + sizeof(int32_t));
}

/// Divides without a division instruction: exact for ids below 4096 and for indices below 2^17.
struct ExpertMap {
  uint32_t magic_wide = 0, magic_narrow = 0;  // ceil(2^31 / experts of a rank)
  uint32_t magic_topk = 0;                    // ceil(2^32 / topk), for indices of a block's selections
  int32_t wide = 0;                           // ids below belong to ranks with one expert more
  int32_t extra = 0;
};

struct DispatchArgs {
  Shape shape;
  ExpertMap map;
  Tiling tile;
  int32_t rank;
  int32_t cached;  // slots are taken from `slot`, counts and metadata are not sent again
  const uint8_t* x;
  const uint8_t* scale;
  const int32_t* topk_idx;
  const float* topk_weight;
  uint8_t* recv_x[kMaxGpuRanks];
  uint8_t* recv_scale[kMaxGpuRanks];
  uint8_t* recv_meta[kMaxGpuRanks];
  Control* control[kMaxGpuRanks];
  int32_t* slot;          // [tokens x ranks] slot of each token on each rank, -1 where it does not go
  int32_t* slot_base;     // [ranks] first slot of this rank's rows on each rank
  int32_t* recv_count;    // [ranks] rows received from each rank
  int32_t* expert_count;  // [experts of this rank]
  uint64_t* stamps;       // [blocks x kStampCount] or null
  AbortReport* report;
  uint64_t timeout_ns;
};

struct CombineArgs {
  Shape shape;
  ExpertMap map;
  Tiling tile;
  int32_t rank;
  int32_t weighted;
  const int32_t* topk_idx;
  const float* topk_weight;
  const uint8_t* y[kMaxGpuRanks];
  Control* control[kMaxGpuRanks];
  const int32_t* slot;  // as dispatch left them
  const int32_t* slot_base;
  const int32_t* recv_count;
  uint8_t* out;
  // Streamed combine: rows of rank d for this rank arrive at stage[d * max_tokens + place], place counted
  // among d's rows for this rank; the row's flag at the same index then holds the epoch. Combine by words has
  // staging memory of its own and no flags.
  const uint8_t* stage;
  const uint32_t* stage_flag;
  uint8_t* stage_at[kMaxGpuRanks];  // of every rank: where this rank's rows go
  uint32_t* stage_flag_at[kMaxGpuRanks];
  uint64_t* stamps;
  AbortReport* report;
  uint64_t timeout_ns;
};

}  // namespace ep::engine::gpu
