#include "cpu/rank_data.h"

#include <algorithm>
#include <cstring>

namespace ep::engine::cpu {

namespace {

std::vector<Region> regions_of(const ArenaPlan& plan) {
  return {plan.recv_x, plan.recv_scale, plan.recv_meta, plan.y};
}

std::string place_text(int rank, int token) {
  return "rank " + std::to_string(rank) + " token " + std::to_string(token);
}

bool all_poison(const char* at, size_t bytes) {
  return std::all_of(at, at + bytes, [](char c) { return static_cast<uint8_t>(c) == kPoisonByte; });
}

}  // namespace

std::string RankData::prepare(Pattern pattern, uint64_t seed, bool weighted) {
  const Shape& shape = place_.shape;
  const int me = member_.rank();
  const size_t tokens = static_cast<size_t>(shape.tokens[me]);
  seed_ = seed;
  std::string error = place_.arena[me].reserve();
  if (error.empty()) error = Mapping::anonymous(tokens * shape.row_bytes(), x_);
  if (error.empty()) error = Mapping::anonymous(tokens * shape.scale_row_bytes(), scale_);
  if (error.empty()) error = Mapping::anonymous(out_bytes(), out_);
  if (!error.empty()) return error;

  fill_rows(shape, me, seed, x_.data(), scale_.data());
  auto* hashes =
      reinterpret_cast<uint64_t*>(place_.row_hashes.data()) + static_cast<size_t>(me) * shape.max_tokens;
  for (size_t t = 0; t < tokens; ++t)
    hashes[t] = hash_row(x_.data() + t * shape.row_bytes(), shape.row_bytes());
  member_.tick();

  for (const Region& region : regions_of(place_.plan)) {
    fill_guard(place_.at(me, region) - kGuardBytes, kGuardBytes);
    fill_guard(place_.at(me, region) + region.bytes, kGuardBytes);
  }
  ops_.fill(place_.at(me, place_.plan.y), kPoisonByte, place_.plan.y.bytes);
  poison_receive();
  poison_out();
  expect_ = Expectation::of(shape, me, pattern, seed, weighted, [this] { member_.tick(); });
  for (size_t slot = 0; slot < expect_.rows.size(); ++slot) {
    if (slot % 64 == 0) member_.tick();
    const auto [source, token] = expect_.rows[slot];
    fill_combine_row(shape, seed, me, source, token,
                     place_.at(me, place_.plan.y) + slot * shape.combine_row_bytes());
  }
  member_.meet();
  return {};
}

size_t RankData::out_bytes() const {
  return static_cast<size_t>(place_.shape.tokens[member_.rank()]) * place_.shape.combine_row_bytes();
}

SourceView RankData::source() const {
  const Routing& routing = expect_.routing[member_.rank()];
  return {x_.data(), scale_.data(), routing.topk_idx.data(), routing.topk_weight.data()};
}

void RankData::poison_receive() {
  const int me = member_.rank();
  for (const Region& region : {place_.plan.recv_x, place_.plan.recv_scale, place_.plan.recv_meta}) {
    ops_.fill(place_.at(me, region), kPoisonByte, region.bytes);
  }
  ops_.fence();
  member_.tick();
}

void RankData::poison_out() {
  ops_.fill(out_.data(), kPoisonByte, out_bytes());
  ops_.fence();
  member_.tick();
}

void RankData::check_record(size_t slot, int source, int token) {
  const Shape& shape = place_.shape;
  const ArenaPlan& plan = place_.plan;
  const int me = member_.rank();
  const auto where = [&] {
    return "rank " + std::to_string(me) + " slot " + std::to_string(slot) + ", expected " +
           place_text(source, token);
  };
  uint32_t want[256 / 4];
  const size_t at = static_cast<size_t>(token) * shape.topk;
  write_meta(shape, source, token, me, expect_.routing[source].topk_idx.data() + at,
             expect_.routing[source].topk_weight.data() + at, want);
  const char* meta = place_.at(me, plan.recv_meta) + slot * shape.meta_bytes();
  if (std::memcmp(meta, want, shape.meta_bytes()) != 0) {
    int32_t found[2];
    std::memcpy(found, meta, sizeof found);
    member_.mismatch(where() + ": metadata differs, names " + place_text(found[0], found[1]));
    return;
  }
  for (int g = 0; g < shape.scale_groups(); ++g) {
    float scale;
    std::memcpy(&scale, place_.at(me, plan.recv_scale) + slot * shape.scale_row_bytes() + sizeof(float) * g,
                4);
    if (scale == row_scale(seed_, source, token, g)) continue;
    member_.mismatch(where() + ": scale " + std::to_string(g) + " differs");
    return;
  }
  const char* row = place_.at(me, plan.recv_x) + slot * shape.row_bytes();
  const auto* hashes = reinterpret_cast<const uint64_t*>(place_.row_hashes.data());
  if (hash_row(row, shape.row_bytes()) == hashes[static_cast<size_t>(source) * shape.max_tokens + token])
    return;
  const std::string why = explain_row(shape, seed_, source, token, row);
  member_.mismatch(where() + ": " + (why.empty() ? "hash differs but every vector is right" : why));
}

void RankData::check_guards() {
  const int me = member_.rank();
  for (const Region& region : regions_of(place_.plan)) {
    const long long before = check_guard(place_.at(me, region) - kGuardBytes, kGuardBytes);
    const long long after = check_guard(place_.at(me, region) + region.bytes, kGuardBytes);
    if (before >= 0)
      member_.mismatch("rank " + std::to_string(me) + ": guard before a buffer was overwritten");
    if (after >= 0) member_.mismatch("rank " + std::to_string(me) + ": guard after a buffer was overwritten");
  }
}

void RankData::check_after_last() {
  const int me = member_.rank();
  const Shape& shape = place_.shape;
  if (expect_.rows.size() == shape.capacity()) return;
  const size_t next = expect_.rows.size();
  if (!all_poison(place_.at(me, place_.plan.recv_x) + next * shape.row_bytes(), shape.row_bytes()) ||
      !all_poison(place_.at(me, place_.plan.recv_meta) + next * shape.meta_bytes(), shape.meta_bytes())) {
    member_.mismatch("rank " + std::to_string(me) + ": something was written after the last expected row");
  }
}

void RankData::check_received() {
  const Shape& shape = place_.shape;
  const int me = member_.rank();
  member_.enter(Phase::kVerify);
  const Control& control = place_.control();
  const int64_t rows = slot_base(shape.ranks, control.counts, shape.ranks, me);
  if (rows != static_cast<int64_t>(expect_.rows.size())) {
    member_.mismatch("rank " + std::to_string(me) + " was promised " + std::to_string(rows) +
                     " rows, expected " + std::to_string(expect_.rows.size()));
  }
  for (int e = 0; e < shape.experts_of(me); ++e) {
    int32_t sum = 0;
    for (int s = 0; s < shape.ranks; ++s) sum += control.expert_counts[s][shape.expert_begin(me) + e];
    if (sum != expect_.expert_count[e]) {
      member_.mismatch("rank " + std::to_string(me) + " local expert " + std::to_string(e) + ": count " +
                       std::to_string(sum) + ", expected " + std::to_string(expect_.expert_count[e]));
    }
  }
  for (size_t slot = 0; slot < expect_.rows.size(); ++slot) {
    if (slot % 64 == 0) member_.tick();
    check_record(slot, expect_.rows[slot].first, expect_.rows[slot].second);
  }
  check_guards();
  check_after_last();
  member_.self().rows_checked += expect_.rows.size();
}

void RankData::check_combined() {
  const size_t row = place_.shape.combine_row_bytes();
  member_.enter(Phase::kVerify);
  for (size_t t = 0; t < expect_.result_hash.size(); ++t) {
    if (t % 64 == 0) member_.tick();
    const char* at = out_.data() + t * row;
    if (hash_row(at, row) == expect_.result_hash[t]) continue;
    member_.mismatch("combined " + place_text(member_.rank(), static_cast<int>(t)) +
                     (all_poison(at, row) ? " was never written" : " differs from the reference"));
  }
  check_guards();
  member_.self().rows_checked += expect_.result_hash.size();
}

}  // namespace ep::engine::cpu
