// Host side of the layout: the plain, sequential form of what kernels compute in parallel, and shape checks.
#include "layout.h"

namespace ep::engine {

ArenaPlan ArenaPlan::of(const Shape& shape) {
  ArenaPlan plan;
  size_t at = 0;
  const auto place = [&at](size_t bytes) {
    const size_t begin = round_up(at + kGuardBytes, kRegionAlign);
    at = begin + bytes + kGuardBytes;
    return Region{begin, bytes};
  };
  const size_t rows = shape.capacity();
  plan.recv_x = place(rows * shape.row_bytes());
  plan.recv_scale = place(rows * shape.scale_row_bytes());
  plan.recv_meta = place(rows * shape.meta_bytes());
  plan.y = place(rows * shape.combine_row_bytes());
  plan.total = round_up(at, kRegionAlign);
  return plan;
}

SourceLayout source_layout(const Shape& shape, int source, const int32_t* topk_idx) {
  SourceLayout out;
  source_layout(shape, source, topk_idx, out);
  return out;
}

void source_layout(const Shape& shape, int source, const int32_t* topk_idx, SourceLayout& out) {
  const int tokens = shape.tokens[source];
  out.mask.resize(tokens);
  out.position.assign(static_cast<size_t>(tokens) * shape.ranks, -1);
  out.rank_count.assign(shape.ranks, 0);
  out.expert_count.assign(shape.experts, 0);
  for (int t = 0; t < tokens; ++t) {
    const int32_t* ids = topk_idx + static_cast<size_t>(t) * shape.topk;
    out.mask[t] = shape.rank_mask(ids);
    for (int r = 0; r < shape.ranks; ++r) {
      if (out.mask[t] >> r & 1) out.position[static_cast<size_t>(t) * shape.ranks + r] = out.rank_count[r]++;
    }
    for (int k = 0; k < shape.topk; ++k) {
      if (ids[k] >= 0) ++out.expert_count[ids[k]];
    }
  }
}

std::string validate(const Shape& shape) {
  const auto range = [](const char* flag, long long value, long long low, long long high) -> std::string {
    if (value >= low && value <= high) return {};
    return std::string(flag) + " " + std::to_string(value) + " is outside " + std::to_string(low) + ".." +
           std::to_string(high);
  };
  const int unit = shape.dtype == Dtype::kBf16 ? 8 : 16;
  std::string wrong = range("--ranks", shape.ranks, 1, kMaxRanks);
  if (wrong.empty()) wrong = range("--num-experts", shape.experts, 1, kMaxExperts);
  if (wrong.empty()) wrong = range("--num-topk", shape.topk, 1, kMaxTopk);
  if (wrong.empty()) wrong = range("--hidden", shape.hidden, unit, 1 << 18);
  if (wrong.empty()) wrong = range("--num-tokens", shape.max_tokens, 0, (1 << 24) - 1);
  if (!wrong.empty()) return wrong;
  if (shape.topk > shape.experts) {
    return "--num-topk " + std::to_string(shape.topk) + " is more than --num-experts " +
           std::to_string(shape.experts) + ": a token selects different experts";
  }
  if (shape.hidden % unit != 0) {
    return "--hidden " + std::to_string(shape.hidden) + " is not a multiple of " + std::to_string(unit) +
           ": rows of " + name_of(shape.dtype) + " must be whole 16-byte vectors";
  }
  for (int r = 0; r < shape.ranks; ++r) {
    wrong = range("tokens of a rank", shape.tokens[r], 0, shape.max_tokens);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

const char* name_of(Dtype dtype) {
  return dtype == Dtype::kBf16 ? "bf16" : "fp8";
}

bool parse_dtype(const std::string& text, Dtype& out) {
  if (text == "bf16")
    out = Dtype::kBf16;
  else if (text == "fp8" || text == "e4m3")
    out = Dtype::kFp8;
  else
    return false;
  return true;
}

}  // namespace ep::engine
