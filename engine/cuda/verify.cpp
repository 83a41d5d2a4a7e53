// The proof. Nothing here shares code with the kernels except the shape, the record layout and the patterns.
#include "verify.h"

#include <algorithm>

#include "failure.h"

namespace ep::engine::gpu {

namespace {

enum Result { kX, kScale, kMeta, kOut, kResults };
constexpr const char* kResultNames[kResults] = {"row", "scales", "metadata", "combined row"};
constexpr size_t kTailRows = 16;  // rows after the last received one that must still be poison

std::vector<uint64_t> hashes(const std::vector<uint8_t>& rows, size_t row_bytes) {
  std::vector<uint64_t> out;
  for (size_t at = 0; row_bytes > 0 && at + row_bytes <= rows.size(); at += row_bytes) {
    out.push_back(hash_row(rows.data() + at, row_bytes));
  }
  return out;
}
template <class T>
Buffer upload(const std::vector<T>& values) {
  Buffer out(values.size() * sizeof(T));
  if (!values.empty())
    EP_CUDA(cudaMemcpy(out.as(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return out;
}
void poison(void* at, size_t bytes, cudaStream_t stream) {
  if (bytes > 0) EP_CUDA(cudaMemsetAsync(at, kPoisonByte, bytes, stream));
}

}  // namespace

Verifier::Verifier(Rank& rank, const Shape& shape, Pattern pattern, uint64_t seed, bool combine)
    : rank_(rank), shape_(shape), seed_(seed) {
  rank.configure(shape);
  for (int r = 0; r < shape.ranks; ++r) routing_.push_back(make_routing(shape, r, pattern, seed));
  make_inputs();
  expect_dispatch();
  if (combine) expect_combine();
  x_.clear();
  scale_.clear();
  results_ = Buffer(kResults * sizeof(HashResult));
  const std::vector<HashResult> clean(kResults);
  EP_CUDA(cudaMemcpy(results_.as(), clean.data(), kResults * sizeof(HashResult), cudaMemcpyHostToDevice));
  fill_guards();
  EP_CUDA(cudaDeviceSynchronize());
  rank.group().barrier();
}

void Verifier::make_inputs() {
  const int me = rank_.rank();
  x_.resize(shape_.ranks);
  scale_.resize(shape_.ranks);
  for (int r = 0; r < shape_.ranks; ++r) {
    x_[r].resize(static_cast<size_t>(shape_.tokens[r]) * shape_.row_bytes());
    scale_[r].resize(static_cast<size_t>(shape_.tokens[r]) * shape_.scale_row_bytes());
    ep::engine::fill_rows(shape_, r, seed_, x_[r].data(), scale_[r].data());
  }
  const auto copy = [](void* to, const void* from, size_t bytes) {
    if (bytes > 0) EP_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
  };
  copy(rank_.topk_idx(), routing_[me].topk_idx.data(), routing_[me].topk_idx.size() * 4);
  copy(rank_.topk_weight(), routing_[me].topk_weight.data(), routing_[me].topk_weight.size() * 4);
  copy(rank_.x(), x_[me].data(), x_[me].size());
  copy(rank_.scale(), scale_[me].data(), scale_[me].size());
}

void Verifier::expect_dispatch() {
  const int me = rank_.rank();
  std::vector<SourceView> views;
  for (int r = 0; r < shape_.ranks; ++r) {
    views.push_back(
        {x_[r].data(), scale_[r].data(), routing_[r].topk_idx.data(), routing_[r].topk_weight.data()});
  }
  expected_ = oracle_dispatch(shape_, views, me);
  for (size_t i = 0; i < expected_.rows; ++i) {
    uint32_t head[2];
    std::memcpy(head, expected_.meta.data() + i * shape_.meta_bytes(), sizeof head);
    origin_.push_back(static_cast<uint64_t>(head[0]) << 32 | head[1]);
  }
  rows_in_ = expected_.rows - static_cast<size_t>(expected_.rows_from[me]);
  const SourceLayout layout = source_layout(shape_, me, routing_[me].topk_idx.data());
  send_list_.resize(shape_.ranks);
  for (int t = 0; t < shape_.tokens[me]; ++t) {
    for (int d = 0; d < shape_.ranks; ++d) {
      if (layout.mask[t] >> d & 1) send_list_[d].push_back(t), rows_out_ += d != me;
    }
  }
  origin_device_ = upload(origin_);
  hash_x_ = upload(hashes(expected_.x, shape_.row_bytes()));
  hash_scale_ = upload(hashes(expected_.scale, shape_.scale_row_bytes()));
  hash_meta_ = upload(hashes(expected_.meta, shape_.meta_bytes()));
}

void Verifier::expect_combine() {
  std::vector<SourceView> views;
  std::vector<std::vector<uint8_t>> y(shape_.ranks);
  std::vector<const void*> y_views;
  for (int r = 0; r < shape_.ranks; ++r) {
    views.push_back({nullptr, nullptr, routing_[r].topk_idx.data(), routing_[r].topk_weight.data()});
  }
  std::vector<SourceLayout> layouts;
  for (int s = 0; s < shape_.ranks; ++s)
    layouts.push_back(source_layout(shape_, s, routing_[s].topk_idx.data()));
  for (int r = 0; r < shape_.ranks; ++r) {
    for (int s = 0; s < shape_.ranks; ++s) {
      for (int t = 0; t < shape_.tokens[s]; ++t) {
        if (!(layouts[s].mask[t] >> r & 1)) continue;
        y[r].resize(y[r].size() + shape_.combine_row_bytes());
        fill_combine_row(shape_, seed_, r, s, t, y[r].data() + y[r].size() - shape_.combine_row_bytes());
      }
    }
    y_views.push_back(y[r].data());
  }
  for (int weighted = 0; weighted < 2; ++weighted) {
    combined_[weighted] = oracle_combine(shape_, views, y_views, rank_.rank(), weighted != 0);
    std::vector<uint64_t> hash;
    for (int t = 0; t < shape_.tokens[rank_.rank()]; ++t) {
      hash.push_back(hash_row(combined_[weighted].data() + static_cast<size_t>(t) * shape_.hidden,
                              shape_.combine_row_bytes()));
    }
    hash_out_[weighted] = upload(hash);
  }
}

void Verifier::fill_guards() {
  std::vector<char> guard(kGuardBytes);
  ep::engine::fill_guard(guard.data(), kGuardBytes);
  const auto put = [&](char* at, size_t bytes) {
    EP_CUDA(cudaMemcpy(at - kGuardBytes, guard.data(), kGuardBytes, cudaMemcpyHostToDevice));
    EP_CUDA(cudaMemcpy(at + bytes, guard.data(), kGuardBytes, cudaMemcpyHostToDevice));
  };
  const ArenaPlan& plan = rank_.plan();
  for (const Region* r : {&plan.recv_x, &plan.recv_scale, &plan.recv_meta, &plan.y}) {
    put(rank_.region(rank_.rank(), *r), r->bytes);
  }
  put(rank_.out(), rank_.out_bytes());
}

std::string Verifier::check_guards() {
  std::vector<char> guard(kGuardBytes);
  std::string wrong;
  const auto look = [&](const char* name, const char* at, size_t bytes) {
    for (int after = 0; after < 2 && wrong.empty(); ++after) {
      EP_CUDA(cudaMemcpy(guard.data(), after ? at + bytes : at - kGuardBytes, kGuardBytes,
                         cudaMemcpyDeviceToHost));
      const long long bad = check_guard(guard.data(), kGuardBytes);
      if (bad >= 0) {
        wrong = std::string("guard ") + (after ? "after " : "before ") + name + " overwritten at byte " +
                std::to_string(bad);
      }
    }
  };
  const ArenaPlan& plan = rank_.plan();
  const int me = rank_.rank();
  look("recv_x", rank_.region(me, plan.recv_x), plan.recv_x.bytes);
  look("recv_scale", rank_.region(me, plan.recv_scale), plan.recv_scale.bytes);
  look("recv_meta", rank_.region(me, plan.recv_meta), plan.recv_meta.bytes);
  look("y", rank_.region(me, plan.y), plan.y.bytes);
  look("out", rank_.out(), rank_.out_bytes());
  return wrong;
}

void Verifier::poison_dispatch() {
  const ArenaPlan& plan = rank_.plan();
  const size_t rows = std::min(shape_.capacity(), expected_.rows + kTailRows);
  const int me = rank_.rank();
  poison(rank_.region(me, plan.recv_x), rows * shape_.row_bytes(), rank_.stream());
  poison(rank_.region(me, plan.recv_scale), rows * shape_.scale_row_bytes(), rank_.stream());
  poison(rank_.region(me, plan.recv_meta), rows * shape_.meta_bytes(), rank_.stream());
  poison(rank_.recv_count(), static_cast<size_t>(shape_.ranks) * 4, rank_.stream());
  poison(rank_.expert_count(), static_cast<size_t>(shape_.experts_of(me)) * 4, rank_.stream());
}
void Verifier::poison_combine() {
  poison(rank_.out(), rank_.out_bytes(), rank_.stream());
}

void Verifier::fill_returns() {
  ep::engine::gpu::fill_returns(shape_, rank_.rank(), seed_, origin_device_.as<uint64_t>(),
                                static_cast<int>(expected_.rows), rank_.region(rank_.rank(), rank_.plan().y),
                                rank_.stream());
}

void Verifier::hash_dispatch() {
  const ArenaPlan& plan = rank_.plan();
  const int rows = static_cast<int>(expected_.rows), me = rank_.rank();
  auto* result = results_.as<HashResult>();
  hash_rows(rank_.region(me, plan.recv_x), shape_.row_bytes(), rows, hash_x_.as<uint64_t>(), nullptr,
            &result[kX], rank_.stream());
  hash_rows(rank_.region(me, plan.recv_scale), shape_.scale_row_bytes(), rows, hash_scale_.as<uint64_t>(),
            nullptr, &result[kScale], rank_.stream());
  hash_rows(rank_.region(me, plan.recv_meta), shape_.meta_bytes(), rows, hash_meta_.as<uint64_t>(), nullptr,
            &result[kMeta], rank_.stream());
  hashed_rows_ += expected_.rows;
}
void Verifier::hash_combine(bool weighted) {
  hash_rows(rank_.out(), shape_.combine_row_bytes(), shape_.tokens[rank_.rank()],
            hash_out_[weighted].as<uint64_t>(), nullptr, &results_.as<HashResult>()[kOut], rank_.stream());
  hashed_rows_ += static_cast<uint64_t>(shape_.tokens[rank_.rank()]);
}

HashTotals Verifier::take_hashes() {
  rank_.finish();
  std::vector<HashResult> found(kResults);
  EP_CUDA(cudaMemcpy(found.data(), results_.as(), kResults * sizeof(HashResult), cudaMemcpyDeviceToHost));
  HashTotals out;
  out.rows = hashed_rows_;
  hashed_rows_ = 0;
  for (int i = 0; i < kResults; ++i) {
    out.wrong += found[i].wrong_rows;
    if (found[i].wrong_rows > 0 && out.first.empty())
      out.first = name_row(kResultNames[i], found[i].first_wrong);
  }
  const std::vector<HashResult> clean(kResults);
  EP_CUDA(cudaMemcpyAsync(results_.as(), clean.data(), kResults * sizeof(HashResult), cudaMemcpyHostToDevice,
                          rank_.stream()));
  return out;
}

std::string Verifier::name_row(const char* what, size_t row) const {
  std::string out = "rank " + std::to_string(rank_.rank()) + ": " + what + " " + std::to_string(row);
  if (std::string(what) != kResultNames[kOut] && row < origin_.size()) {
    out += " (from rank " + std::to_string(origin_[row] >> 32) + " token " +
           std::to_string(origin_[row] & 0xffffffffu) + ")";
  }
  return out;
}

std::string Verifier::compare_bytes(const char* what, const void* device, const std::vector<uint8_t>& want,
                                    size_t row_bytes) {
  const size_t tail = row_bytes * (std::min(shape_.capacity(), expected_.rows + kTailRows) - expected_.rows);
  std::vector<uint8_t> got(want.size() + tail);
  if (got.empty()) return {};
  EP_CUDA(cudaMemcpy(got.data(), device, got.size(), cudaMemcpyDeviceToHost));
  if (std::memcmp(got.data(), want.data(), want.size()) != 0) {
    const size_t at = std::mismatch(want.begin(), want.end(), got.begin()).first - want.begin();
    return name_row(what, at / row_bytes) + " differs at byte " + std::to_string(at % row_bytes) + ": " +
           std::to_string(got[at]) + " for " + std::to_string(want[at]);
  }
  for (size_t i = want.size(); i < got.size(); ++i) {
    if (got[i] != kPoisonByte)
      return name_row(what, i / row_bytes) + " is beyond the last row but was written";
  }
  return {};
}

std::string Verifier::compare_dispatch() {
  rank_.finish();
  const ArenaPlan& plan = rank_.plan();
  const int me = rank_.rank();
  std::string wrong = compare_bytes("row", rank_.region(me, plan.recv_x), expected_.x, shape_.row_bytes());
  if (wrong.empty() && shape_.scale_row_bytes() > 0)
    wrong =
        compare_bytes("scales", rank_.region(me, plan.recv_scale), expected_.scale, shape_.scale_row_bytes());
  if (wrong.empty())
    wrong = compare_bytes("metadata", rank_.region(me, plan.recv_meta), expected_.meta, shape_.meta_bytes());
  std::vector<int32_t> counts(shape_.ranks), experts(expected_.expert_count.size());
  EP_CUDA(cudaMemcpy(counts.data(), rank_.recv_count(), counts.size() * 4, cudaMemcpyDeviceToHost));
  if (!experts.empty())
    EP_CUDA(cudaMemcpy(experts.data(), rank_.expert_count(), experts.size() * 4, cudaMemcpyDeviceToHost));
  if (wrong.empty() && counts != expected_.rows_from)
    wrong = "rank " + std::to_string(me) + ": row counts differ";
  if (wrong.empty() && experts != expected_.expert_count)
    wrong = "rank " + std::to_string(me) + ": expert counts differ";
  return wrong.empty() ? check_guards() : wrong;
}

std::string Verifier::compare_combine(bool weighted) {
  rank_.finish();
  const auto& want = combined_[weighted];
  std::vector<uint16_t> got(want.size());
  if (!got.empty()) EP_CUDA(cudaMemcpy(got.data(), rank_.out(), got.size() * 2, cudaMemcpyDeviceToHost));
  if (got != want) {
    const size_t at = std::mismatch(want.begin(), want.end(), got.begin()).first - want.begin();
    return "rank " + std::to_string(rank_.rank()) + ": combined token " + std::to_string(at / shape_.hidden) +
           " column " + std::to_string(at % shape_.hidden) + " has bits " + std::to_string(got[at]) +
           " for " + std::to_string(want[at]);
  }
  return check_guards();
}

}  // namespace ep::engine::gpu
