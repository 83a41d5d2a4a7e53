// One rank of the exchange on a GPU: its arena, its buffers, and the operations. Knows no test data and
// prints nothing.
#pragma once

#include <memory>

#include "launch.h"
#include "memory.h"

namespace ep::engine::gpu {

/// Device or pinned host memory that frees itself.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes, bool host = false);
  ~Buffer();
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  void swap(Buffer& other) {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    std::swap(host_, other.host_);
  }
  template <class T = void>
  T* as() const {
    return static_cast<T*>(at_);
  }
  size_t bytes() const { return bytes_; }

 private:
  void* at_ = nullptr;
  size_t bytes_ = 0;
  bool host_ = false;
};

struct RankSetup {
  std::vector<int> devices;  // of each rank
  Provider provider = Provider::kP2p;
  Path path = Path::kBulk;
  Tuning dispatch, combine;
  double timeout_s = 10;
  size_t arena_bytes = 0;  // largest that `configure` will need
  size_t local_bytes = 0;
};

/// kAuto: words for many tokens, pull for few (see kWordsTokens in rank.cpp).
enum class CombineMode { kAuto, kStream, kPull, kPullPlain, kWords };

class Rank {
 public:
  /// Collective, as are `configure` and `reset`. Sets the device of the calling thread.
  Rank(Group& group, RankSetup setup);
  ~Rank();

  static size_t arena_bytes(const Shape& shape);
  static size_t local_bytes(const Shape& shape);

  /// Chooses offsets and tilings for a shape. Input arrays then have their place but no content.
  void configure(const Shape& shape);
  /// Clears epochs, words and the abort state. All ranks must be idle.
  void reset();
  void set_timeout(double seconds) { setup_.timeout_s = seconds; }

  void dispatch(bool cached = false, uint64_t* stamps = nullptr);
  void combine(CombineMode mode, bool weighted, uint64_t* stamps = nullptr);
  void align();
  /// Waits for the stream. Throws Failure with rank and phase when a kernel gave up.
  void finish();
  BarrierArgs barrier_args() const;

  Group& group() const { return group_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return group_.rank(); }
  int device() const { return setup_.devices[group_.rank()]; }
  const RankSetup& setup() const { return setup_; }
  cudaStream_t stream() const { return stream_; }
  const DeviceLimits& limits() const { return limits_; }
  int max_ctas() const { return max_ctas_; }
  const Tiling& dispatch_tile() const { return dispatch_.tile; }
  CombineMode resolve(CombineMode mode) const;
  const Tiling& combine_tile(CombineMode mode) const;
  void retune(const Tuning& dispatch, const Tuning& combine);
  void set_path(Path path);

  char* arena(int of_rank) const { return memory_->at(of_rank); }
  char* region(int of_rank, const Region& region) const {
    return arena(of_rank) + kControlBytes + region.offset;
  }
  const ArenaPlan& plan() const { return plan_; }
  // Arrays of this rank.
  char* x() const { return x_; }
  char* scale() const { return scale_; }
  int32_t* topk_idx() const { return topk_idx_; }
  float* topk_weight() const { return topk_weight_; }
  int32_t* recv_count() const { return recv_count_; }
  int32_t* expert_count() const { return expert_count_; }
  int32_t* slot() const { return slot_; }
  char* out() const { return out_; }
  size_t out_bytes() const { return static_cast<size_t>(shape_.tokens[rank()]) * shape_.combine_row_bytes(); }

 private:
  void fill_arguments();
  void set_stage(const Region& region);

  Group& group_;
  RankSetup setup_;
  DeviceLimits limits_;
  int max_ctas_ = 0;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<SharedMemory> memory_;
  Buffer local_, report_;
  Shape shape_;
  ArenaPlan plan_;
  Region stage_, stage_flag_, words_;
  char *x_ = nullptr, *scale_ = nullptr, *out_ = nullptr;
  int32_t *topk_idx_ = nullptr, *recv_count_ = nullptr, *expert_count_ = nullptr, *slot_ = nullptr,
          *slot_base_ = nullptr;
  float* topk_weight_ = nullptr;
  DispatchArgs dispatch_ = {};
  CombineArgs combine_ = {};
  Tiling pull_tile_, plain_tile_, stream_tile_, words_tile_;
};

const char* name_of(Phase phase);

}  // namespace ep::engine::gpu
