// Dispatch and combine of one rank over shared memory. Every rank calls the same functions in the same order.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpu/copy.h"
#include "cpu/memory.h"
#include "cpu/world.h"
#include "layout.h"
#include "oracle.h"

namespace ep::engine::cpu {

/// The shared memory of an exchange, made before the ranks are forked and seen by all of them.
struct Place {
  Shape shape;
  ArenaPlan plan;
  Mapping control_memory;
  std::vector<Mapping> arena;  // one per rank
  Mapping row_hashes;          // [ranks x max_tokens] hash of each source row, written by its owner
  Mapping samples;             // begin and end times, see bench

  /// Returns "" or what failed.
  static std::string make(const Shape& shape, Backing backing, size_t sample_bytes, Place& out);
  Control& control() const { return *reinterpret_cast<Control*>(control_memory.data()); }
  char* at(int rank, const Region& region) const { return arena[rank].data() + region.offset; }
  size_t shared_bytes() const;
};

/// What a run holds at the shape's worst case: receive buffers and combine inputs of all ranks, their source
/// rows and outputs. Also what is asked of the machine before a run.
uint64_t worst_case_bytes(const Shape& shape);

/// The threads of one rank. `run` calls the function with 0..threads-1 side by side, 0 on the calling thread.
class Team {
 public:
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  int size() const { return threads_; }
  void run(const std::function<void(int)>& work);

 private:
  struct Shared;
  int threads_;
  std::unique_ptr<Shared> shared_;
};

class Exchange {
 public:
  Exchange(Member& member, const Place& place, const CopyOps& ops, Team& team);

  /// Layout, count exchange, data. On return this rank's arena holds all rows that were sent to it.
  void dispatch(const SourceView& source);
  /// After dispatch and after `y` of the own arena is filled. Pulls this rank's tokens from all peers into
  /// `out`, [tokens x hidden] bf16. On return `out` is complete; peers may still read our `y` until the next
  /// meeting.
  void combine(const SourceView& source, uint16_t* out, bool weighted);

  const SourceLayout& layout() const { return layout_; }
  /// First slot of this rank's rows on each destination.
  const std::vector<int64_t>& base() const { return base_; }
  int64_t rows_received() const;

 private:
  void send(const SourceView& source, int first, int last);
  void pull(const SourceView& source, uint16_t* out, bool weighted, int first, int last);

  Member& member_;
  const Place& place_;
  const CopyOps& ops_;
  Team& team_;
  SourceLayout layout_;
  std::vector<int64_t> base_;
  int first_expert_[kMaxRanks], experts_[kMaxRanks];  // of each rank, to spare divisions for every record
};

}  // namespace ep::engine::cpu
