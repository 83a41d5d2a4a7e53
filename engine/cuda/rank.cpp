// Where everything of a rank lies, and how an operation becomes a launch.
#include "rank.h"

#include <algorithm>

#include "failure.h"

namespace ep::engine::gpu {

Buffer::Buffer(size_t bytes, bool host) : bytes_(bytes), host_(host) {
  if (host)
    EP_CUDA(cudaHostAlloc(&at_, std::max<size_t>(bytes, 16), cudaHostAllocMapped));
  else
    EP_CUDA(cudaMalloc(&at_, std::max<size_t>(bytes, 16)));
}
Buffer::~Buffer() {
  if (at_ == nullptr) return;
  if (host_)
    cudaFreeHost(at_);
  else
    cudaFree(at_);
}

const char* name_of(Phase phase) {
  switch (phase) {
    case kPhaseCounts:
      return "dispatch: row counts";
    case kPhaseTail:
      return "dispatch: rows landed";
    case kPhaseExperts:
      return "dispatch: expert counts";
    case kPhaseReady:
      return "combine: rows ready";
    case kPhaseStream:
      return "combine: rows landed";
    case kPhaseBarrier:
      return "barrier";
    default:
      return "none";
  }
}

namespace {
/// Hands out aligned parts of a buffer.
struct Cursor {
  size_t at = 0;
  size_t take(size_t bytes) {
    const size_t begin = round_up(at + kGuardBytes, kRegionAlign);
    at = begin + bytes + kGuardBytes;
    return begin;
  }
};
struct LocalPlan {
  size_t x, scale, topk_idx, topk_weight, slot, slot_base, recv_count, expert_count, out, total;
  explicit LocalPlan(const Shape& s) {
    Cursor c;
    const size_t t = std::max(1, s.max_tokens);
    x = c.take(t * s.row_bytes());
    scale = c.take(t * s.scale_row_bytes());
    topk_idx = c.take(t * s.topk * 4);
    topk_weight = c.take(t * s.topk * 4);
    slot = c.take(t * s.ranks * 4);
    slot_base = c.take(static_cast<size_t>(s.ranks) * 4);
    recv_count = c.take(static_cast<size_t>(s.ranks) * 4);
    expert_count = c.take(static_cast<size_t>(s.experts) * 4);
    out = c.take(t * s.combine_row_bytes());
    total = c.at;
  }
};
/// Behind the arena plan: staging rows and their flags.
Region stage_region(const Shape& s, const ArenaPlan& plan) {
  return {round_up(plan.total + kGuardBytes, kRegionAlign), s.capacity() * s.combine_row_bytes()};
}
Region flag_region(const Shape& s, const Region& stage) {
  return {round_up(stage.offset + stage.bytes + kGuardBytes, kRegionAlign), s.capacity() * sizeof(uint32_t)};
}

/// Staging memory of combine by words.
Region words_region(const Shape& s, const Region& flags) {
  return {round_up(flags.offset + flags.bytes + kGuardBytes, kRegionAlign),
          s.capacity() * s.combine_row_bytes()};
}

/// From so many tokens (words: of all ranks together) and multiprocessors on pushing is faster than pulling
/// (measured with 2 and 4 GPUs, PERFORMANCE.md steps 12 and 15): stores are faster than loads on the link. A
/// stream has its flags to pay besides.
constexpr int kWordsTokens = 512, kWordsCtas = 32, kStreamTokens = 2048, kStreamCtas = 64;
}  // namespace

size_t Rank::arena_bytes(const Shape& shape) {
  const Region words = words_region(shape, flag_region(shape, stage_region(shape, ArenaPlan::of(shape))));
  return round_up(kControlBytes + words.offset + words.bytes + kGuardBytes, kControlBytes);
}
size_t Rank::local_bytes(const Shape& shape) {
  return LocalPlan(shape).total;
}

Rank::Rank(Group& group, RankSetup setup) : group_(group), setup_(std::move(setup)) {
  if (group.size() > kMaxGpuRanks) throw Failure(2, "at most " + std::to_string(kMaxGpuRanks) + " ranks");
  EP_CUDA(cudaSetDevice(device()));
  EP_CUDA(device_limits(device(), limits_));
  if (!limits_.bulk) setup_.path = Path::kPlain;
  EP_CUDA(prepare_kernels(limits_));
  EP_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  int sharing = 0;
  for (const int d : setup_.devices) sharing += d == device();
  if (sharing > 1 && group.processes()) {
    throw Failure(
        2,
        "several ranks on one GPU need --mode threads: processes would take turns and wait for each other");
  }
  // All blocks of all ranks of a GPU must be resident at once: they wait for each other.
  for (const int ctas : group_.gather(std::min(limits_.sms / sharing, kMaxCtas))) {
    max_ctas_ = max_ctas_ == 0 ? ctas : std::min(max_ctas_, ctas);
  }
  memory_ = std::make_unique<SharedMemory>(group_, setup_.provider, setup_.devices, setup_.arena_bytes);
  local_ = Buffer(setup_.local_bytes);
  report_ = Buffer(sizeof(AbortReport), true);
}

Rank::~Rank() {
  cudaSetDevice(device());
  cudaStreamSynchronize(stream_);
  memory_.reset();
  cudaStreamDestroy(stream_);
}

void Rank::configure(const Shape& shape) {
  if (arena_bytes(shape) > setup_.arena_bytes || local_bytes(shape) > setup_.local_bytes) {
    throw Failure(70, "shape is larger than what was reserved");
  }
  shape_ = shape;
  plan_ = ArenaPlan::of(shape);
  stage_ = stage_region(shape, plan_);
  stage_flag_ = flag_region(shape, stage_);
  words_ = words_region(shape, stage_flag_);
  const LocalPlan local(shape);
  char* base = local_.as<char>();
  x_ = base + local.x;
  scale_ = base + local.scale;
  topk_idx_ = reinterpret_cast<int32_t*>(base + local.topk_idx);
  topk_weight_ = reinterpret_cast<float*>(base + local.topk_weight);
  slot_ = reinterpret_cast<int32_t*>(base + local.slot);
  slot_base_ = reinterpret_cast<int32_t*>(base + local.slot_base);
  recv_count_ = reinterpret_cast<int32_t*>(base + local.recv_count);
  expert_count_ = reinterpret_cast<int32_t*>(base + local.expert_count);
  out_ = base + local.out;
  fill_arguments();
  retune(setup_.dispatch, setup_.combine);
  reset();
}

void Rank::fill_arguments() {
  const auto fill_common = [this](auto& a) {
    a.shape = shape_;
    a.rank = rank();
    a.report = report_.as<AbortReport>();
    for (int r = 0; r < group_.size(); ++r) a.control[r] = reinterpret_cast<Control*>(arena(r));
  };
  dispatch_ = {};
  combine_ = {};
  fill_common(dispatch_);
  fill_common(combine_);
  dispatch_.map = combine_.map = expert_map(shape_);
  dispatch_.x = reinterpret_cast<uint8_t*>(x_);
  dispatch_.scale = reinterpret_cast<uint8_t*>(scale_);
  dispatch_.topk_idx = combine_.topk_idx = topk_idx_;
  dispatch_.topk_weight = combine_.topk_weight = topk_weight_;
  dispatch_.slot = slot_;
  dispatch_.slot_base = slot_base_;
  dispatch_.recv_count = recv_count_;
  dispatch_.expert_count = expert_count_;
  combine_.slot = slot_;
  combine_.slot_base = slot_base_;
  combine_.recv_count = recv_count_;
  combine_.stage_flag = reinterpret_cast<uint32_t*>(region(rank(), stage_flag_));
  const size_t mine = static_cast<size_t>(rank()) * shape_.max_tokens;
  combine_.out = reinterpret_cast<uint8_t*>(out_);
  for (int r = 0; r < group_.size(); ++r) {
    dispatch_.recv_x[r] = reinterpret_cast<uint8_t*>(region(r, plan_.recv_x));
    dispatch_.recv_scale[r] = reinterpret_cast<uint8_t*>(region(r, plan_.recv_scale));
    dispatch_.recv_meta[r] = reinterpret_cast<uint8_t*>(region(r, plan_.recv_meta));
    combine_.y[r] = reinterpret_cast<uint8_t*>(region(r, plan_.y));
    combine_.stage_flag_at[r] = reinterpret_cast<uint32_t*>(region(r, stage_flag_)) + mine;
  }
}

void Rank::set_stage(const Region& of) {
  const size_t mine = static_cast<size_t>(rank()) * shape_.max_tokens * shape_.combine_row_bytes();
  combine_.stage = reinterpret_cast<uint8_t*>(region(rank(), of));
  for (int r = 0; r < group_.size(); ++r)
    combine_.stage_at[r] = reinterpret_cast<uint8_t*>(region(r, of)) + mine;
}

void Rank::retune(const Tuning& dispatch, const Tuning& combine) {
  std::string wrong = plan_dispatch(shape_, setup_.path, limits_, max_ctas_, dispatch, dispatch_.tile);
  if (wrong.empty()) wrong = plan_pull(shape_, setup_.path, limits_, max_ctas_, combine, pull_tile_);
  if (wrong.empty()) wrong = plan_pull(shape_, Path::kPlain, limits_, max_ctas_, combine, plain_tile_);
  if (!plan_stream(shape_, limits_, max_ctas_, combine, stream_tile_).empty())
    stream_tile_ = Tiling{};  // pull does
  if (!plan_words(shape_, limits_, max_ctas_, combine, words_tile_).empty()) words_tile_ = Tiling{};
  for (Tiling* t : {&dispatch_.tile, &pull_tile_, &plain_tile_}) {
    t->share = shape_.tokens[rank()] / std::max(1, t->ctas);
    t->extra = shape_.tokens[rank()] - t->share * t->ctas;
  }
  if (!wrong.empty()) throw Failure(2, wrong);
}
void Rank::set_path(Path path) {
  setup_.path = limits_.bulk ? path : Path::kPlain;
  retune(setup_.dispatch, setup_.combine);
}

void Rank::reset() {
  EP_CUDA(cudaStreamSynchronize(stream_));
  group_.barrier();
  EP_CUDA(cudaMemsetAsync(arena(rank()), 0, kControlBytes, stream_));
  EP_CUDA(cudaMemsetAsync(region(rank(), stage_flag_), 0, stage_flag_.bytes, stream_));
  EP_CUDA(cudaMemsetAsync(region(rank(), words_), 0xff, words_.bytes, stream_));  // no row has arrived
  EP_CUDA(cudaStreamSynchronize(stream_));
  std::memset(report_.as(), 0, sizeof(AbortReport));
  group_.barrier();
}

void Rank::dispatch(bool cached, uint64_t* stamps) {
  dispatch_.cached = cached;
  dispatch_.stamps = stamps;
  dispatch_.timeout_ns = static_cast<uint64_t>(setup_.timeout_s * 1e9);
  EP_CUDA(launch_dispatch(dispatch_, setup_.path, stream_));
}

CombineMode Rank::resolve(CombineMode mode) const {
  const bool can_stream = setup_.path == Path::kBulk && group_.size() > 1 && stream_tile_.ctas > 0;
  if (mode == CombineMode::kAuto) {
    const int tokens = shape_.max_tokens;
    if (!can_stream) return CombineMode::kPull;
    if (tokens * group_.size() >= kWordsTokens && words_tile_.ctas >= kWordsCtas) return CombineMode::kWords;
    return tokens >= kStreamTokens && stream_tile_.ctas >= kStreamCtas ? CombineMode::kStream
                                                                       : CombineMode::kPull;
  }
  if (mode == CombineMode::kStream && !can_stream) return CombineMode::kPull;
  if (mode == CombineMode::kWords && (group_.size() < 2 || words_tile_.ctas == 0)) return CombineMode::kPull;
  return mode;
}
const Tiling& Rank::combine_tile(CombineMode mode) const {
  mode = resolve(mode);
  if (mode == CombineMode::kWords) return words_tile_;
  return mode == CombineMode::kStream ? stream_tile_ : mode == CombineMode::kPull ? pull_tile_ : plain_tile_;
}

void Rank::combine(CombineMode mode, bool weighted, uint64_t* stamps) {
  mode = resolve(mode);
  combine_.weighted = weighted;
  combine_.stamps = stamps;
  combine_.timeout_ns = static_cast<uint64_t>(setup_.timeout_s * 1e9);
  combine_.tile = combine_tile(mode);
  set_stage(mode == CombineMode::kWords ? words_ : stage_);
  if (mode == CombineMode::kStream) {
    EP_CUDA(launch_stream(combine_, stream_));
  } else if (mode == CombineMode::kWords) {
    EP_CUDA(launch_words(combine_, stream_));
  } else {
    EP_CUDA(launch_pull(combine_, mode == CombineMode::kPull ? setup_.path : Path::kPlain, stream_));
  }
}

BarrierArgs Rank::barrier_args() const {
  BarrierArgs a = {};
  for (int r = 0; r < group_.size(); ++r) a.control[r] = reinterpret_cast<Control*>(arena(r));
  a.rank = rank();
  a.ranks = group_.size();
  a.report = report_.as<AbortReport>();
  a.timeout_ns = static_cast<uint64_t>(setup_.timeout_s * 1e9);
  a.hop_ns = 1300;
  return a;
}
void Rank::align() {
  align_ranks(barrier_args(), stream_);
}

void Rank::finish() {
  EP_CUDA(cudaStreamSynchronize(stream_));
  const auto* report = report_.as<const AbortReport>();
  if (report->set == 0) return;
  const std::string phase = name_of(static_cast<Phase>(report->phase));
  throw Failure(1,
                "timeout: rank " + std::to_string(rank()) + " waited " + std::to_string(setup_.timeout_s) +
                    " s for rank " + std::to_string(report->peer) + " in phase '" + phase + "' (block " +
                    std::to_string(report->block) + ", epoch " + std::to_string(report->epoch) + ")",
                static_cast<int>(report->peer), phase);
}

}  // namespace ep::engine::gpu
