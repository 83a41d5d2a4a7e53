#include "cpu/exchange.h"

#include <barrier>
#include <bit>
#include <cstring>
#include <thread>

namespace ep::engine::cpu {

std::string Place::make(const Shape& shape, Backing backing, size_t sample_bytes, Place& out) {
  out.shape = shape;
  out.plan = ArenaPlan::of(shape);
  out.arena.clear();
  std::string error = Mapping::shared(backing, round_up(sizeof(Control), kRegionAlign), out.control_memory);
  for (int r = 0; r < shape.ranks && error.empty(); ++r) {
    out.arena.emplace_back();
    error = Mapping::shared(backing, out.plan.total, out.arena.back());
  }
  if (error.empty())
    error = Mapping::shared(backing, round_up(shape.capacity() * 8 + 8, 4096), out.row_hashes);
  if (error.empty()) error = Mapping::shared(backing, round_up(sample_bytes + 8, 4096), out.samples);
  return error;
}

size_t Place::shared_bytes() const {
  return control_memory.size() + plan.total * arena.size() + row_hashes.size() + samples.size();
}

uint64_t worst_case_bytes(const Shape& shape) {
  const uint64_t tokens = static_cast<uint64_t>(shape.max_tokens);
  const uint64_t arena = shape.capacity() * (shape.record_bytes() + shape.combine_row_bytes());
  const uint64_t own = tokens * (shape.row_bytes() + shape.scale_row_bytes() + shape.combine_row_bytes());
  return static_cast<uint64_t>(shape.ranks) * (arena + own);
}

struct Team::Shared {
  explicit Shared(int count) : start(count), end(count) {}
  std::barrier<> start, end;
  const std::function<void(int)>* work = nullptr;  // null = go home
  std::vector<std::jthread> threads;
};

Team::Team(int threads) : threads_(threads < 1 ? 1 : threads) {
  if (threads_ == 1) return;
  shared_ = std::make_unique<Shared>(threads_);
  for (int i = 1; i < threads_; ++i) {
    shared_->threads.emplace_back([shared = shared_.get(), i] {
      for (;;) {
        shared->start.arrive_and_wait();
        if (shared->work == nullptr) return;
        (*shared->work)(i);
        shared->end.arrive_and_wait();
      }
    });
  }
}

Team::~Team() {
  if (shared_ == nullptr) return;
  shared_->work = nullptr;
  shared_->start.arrive_and_wait();
}

void Team::run(const std::function<void(int)>& work) {
  if (shared_ == nullptr) {
    work(0);
    return;
  }
  shared_->work = &work;
  shared_->start.arrive_and_wait();
  work(0);
  shared_->end.arrive_and_wait();
}

Exchange::Exchange(Member& member, const Place& place, const CopyOps& ops, Team& team)
    : member_(member), place_(place), ops_(ops), team_(team), base_(place.shape.ranks, 0) {
  for (int r = 0; r < place.shape.ranks; ++r) {
    first_expert_[r] = place.shape.expert_begin(r);
    experts_[r] = place.shape.experts_of(r);
  }
}

int64_t Exchange::rows_received() const {
  return slot_base(place_.shape.ranks, place_.control().counts, place_.shape.ranks, member_.rank());
}

void Exchange::dispatch(const SourceView& source) {
  const Shape& shape = place_.shape;
  Control& control = place_.control();
  const int me = member_.rank(), ranks = shape.ranks, tokens = shape.tokens[me];

  member_.enter(Phase::kLayout);
  source_layout(shape, me, source.topk_idx, layout_);
  for (int d = 0; d < ranks; ++d) control.counts[me * ranks + d] = layout_.rank_count[d];
  std::memcpy(control.expert_counts[me], layout_.expert_count.data(),
              layout_.expert_count.size() * sizeof(int32_t));
  // All counts are known after this meeting. It also says that everyone is done with the previous exchange,
  // so the receive buffers are free.
  member_.meet();

  member_.enter(Phase::kDispatch);
  for (int d = 0; d < ranks; ++d) base_[d] = slot_base(ranks, control.counts, me, d);
  team_.run([&](int i) {
    const int64_t all = tokens, n = team_.size();
    send(source, static_cast<int>(all * i / n), static_cast<int>(all * (i + 1) / n));
    ops_.fence();
  });
  member_.meet();
  if (member_.corrupts(Phase::kDispatch) && rows_received() > 0) *place_.at(me, place_.plan.recv_x) ^= 1;
}

void Exchange::send(const SourceView& source, int first, int last) {
  const Shape& shape = place_.shape;
  const ArenaPlan& plan = place_.plan;
  const int me = member_.rank(), ranks = shape.ranks;
  const size_t row = shape.row_bytes(), scale = shape.scale_row_bytes(), meta = shape.meta_bytes();
  alignas(64) uint32_t record[256 / 4];
  void* to[kMaxRanks];
  for (int t = first; t < last; ++t) {
    if (t % 64 == 0) member_.tick();
    const size_t topk_at = static_cast<size_t>(t) * shape.topk;
    const int32_t* position = layout_.position.data() + static_cast<size_t>(t) * ranks;
    int count = 0;
    for (int i = 0; i < ranks; ++i) {  // the next rank first, so that not all begin with the same receiver
      const int d = me + 1 + i < ranks ? me + 1 + i : me + 1 + i - ranks;
      if (position[d] < 0) continue;
      const size_t slot = static_cast<size_t>(base_[d] + position[d]);
      to[count++] = place_.at(d, plan.recv_x) + slot * row;
      write_meta(shape, me, t, first_expert_[d], experts_[d], source.topk_idx + topk_at,
                 source.topk_weight + topk_at, record);
      ops_.copy(place_.at(d, plan.recv_meta) + slot * meta, record, meta);
      if (scale > 0) {
        ops_.copy(place_.at(d, plan.recv_scale) + slot * scale,
                  static_cast<const char*>(source.scale) + static_cast<size_t>(t) * scale, scale);
      }
    }
    ops_.fan_out(to, count, static_cast<const char*>(source.x) + static_cast<size_t>(t) * row, row);
  }
}

void Exchange::combine(const SourceView& source, uint16_t* out, bool weighted) {
  const int64_t tokens = place_.shape.tokens[member_.rank()];
  member_.enter(Phase::kCombine);
  member_.meet();  // every rank's y is ready
  team_.run([&](int i) {
    const int64_t n = team_.size();
    pull(source, out, weighted, static_cast<int>(tokens * i / n), static_cast<int>(tokens * (i + 1) / n));
    ops_.fence();
  });
  if (member_.corrupts(Phase::kCombine) && tokens > 0) out[0] ^= 1;
}

void Exchange::pull(const SourceView& source, uint16_t* out, bool weighted, int first, int last) {
  const Shape& shape = place_.shape;
  const size_t row = shape.combine_row_bytes(), hidden = static_cast<size_t>(shape.hidden);
  const uint16_t* rows[kMaxRanks];
  float weights[kMaxRanks];
  for (int t = first; t < last; ++t) {
    if (t % 64 == 0) member_.tick();
    const size_t topk_at = static_cast<size_t>(t) * shape.topk;
    const int32_t* position = layout_.position.data() + static_cast<size_t>(t) * shape.ranks;
    int count = 0;
    for (int r = 0; r < shape.ranks; ++r) {
      if (position[r] < 0) continue;
      if (weighted)
        weights[count] = rank_weight(shape, r, source.topk_idx + topk_at, source.topk_weight + topk_at);
      const size_t slot = static_cast<size_t>(base_[r] + position[r]);
      rows[count++] = reinterpret_cast<const uint16_t*>(place_.at(r, place_.plan.y) + slot * row);
    }
    ops_.combine(out + static_cast<size_t>(t) * hidden, rows, weighted ? weights : nullptr, count, hidden);
  }
}

}  // namespace ep::engine::cpu
