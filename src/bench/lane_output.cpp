#include "bench/lane_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace ep {
namespace {

/// The number that ends right before `unit` ("38.19" of "38.19 GB/s (RDMA)").
std::optional<double> number_before(std::string_view line, std::string_view unit) {
  const size_t at = line.find(unit);
  if (at == std::string_view::npos) return {};
  size_t end = at;
  while (end > 0 && line[end - 1] == ' ') --end;
  size_t begin = end;
  while (begin > 0 && (isdigit(static_cast<unsigned char>(line[begin - 1])) || line[begin - 1] == '.'))
    --begin;
  double value = 0;
  const auto r = std::from_chars(line.data() + begin, line.data() + end, value);
  return r.ec == std::errc() && r.ptr == line.data() + end ? std::optional(value) : std::nullopt;
}

std::optional<double> number_after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  double value = 0;
  const char* from = line.data() + at + key.size();
  const auto r = std::from_chars(from, line.data() + line.size(), value);
  return r.ec == std::errc() ? std::optional(value) : std::nullopt;
}

class Reader {
 public:
  LaneOutput read(std::string_view text, bool ended_well) {
    for (std::string_view line : lines(text)) look(line);
    if (num_cases_ > 0) {
      const bool last_passed = ended_well && out_.error.empty();
      out_.num_passed += num_cases_ - (last_passed ? 0 : 1);
      if (last_passed) out_.unfinished.clear();
    }
    for (auto& of_cases : seen_) out_.figures.push_back(middle(of_cases));
    return std::move(out_);
  }

 private:
  void look(std::string_view line) {
    const std::string_view bare = trim(line);
    if (bare.empty()) return;
    if (size_t at = line.find("[testing] "); at != line.npos) return testing(line.substr(at + 10));
    if (size_t at = line.find("[config] "); at != line.npos) out_.config = trim(line.substr(at + 9));
    if (size_t at = line.find("[tuning] Best "); at != line.npos) return tuned(line.substr(at + 14));
    if (line.find("bandwidth: ") != line.npos) low_latency(line);
    if (line.find(" EP:") != line.npos) return elastic(line);
    if (starts_with(bare, "> Testing with ")) return test_case(bare.substr(2));
    if (starts_with(bare, "> "))
      out_.config += (out_.config.empty() ? "" : "; ") + squeezed(bare.substr(bare.find('>') + 1));
    error(bare);
  }

  void testing(std::string_view what) {
    out_.unfinished.clear();
    if (what.find("passed") != what.npos)
      ++out_.num_passed;
    else if (what.find("...") != what.npos)
      out_.unfinished = trim(what);
  }

  /// V2: "Testing with do_handle_copy=1, expert_alignment=128, use_fp8_dispatch=1, num_bias=0, ... ..."
  void test_case(std::string_view what) {
    ++num_cases_;
    out_.unfinished = trim(what);
    const auto fp8 = number_after(what, "use_fp8_dispatch=");
    case_dtype_ = !fp8 ? "" : *fp8 != 0 ? "fp8" : "bf16";
  }

  /// "dispatch (FP8): SMs 24, NVL chunk 28, RDMA chunk 24: 38.19 GB/s (RDMA), 124.92 GB/s (NVL)"
  void tuned(std::string_view rest) {
    LaneFigure f;
    f.op = rest.rfind("dispatch", 0) == 0 ? "dispatch" : rest.rfind("combine", 0) == 0 ? "combine" : "";
    if (f.op.empty()) return;
    f.mode = "best";
    if (rest.size() > f.op.size() + 2 && rest.substr(f.op.size(), 2) == " (")
      f.dtype = lower(rest.substr(f.op.size() + 2, rest.find(')') - f.op.size() - 2));
    else if (f.op == "combine")
      f.dtype = "bf16";
    f.scale_out_gbps = number_before(rest, "GB/s (RDMA)").value_or(0);
    f.scale_up_gbps = number_before(rest, "GB/s (NVL)").value_or(0);
    f.time_us = number_before(rest, " us").value_or(0);
    if (f.scale_out_gbps > 0 || f.scale_up_gbps > 0) add(f);
  }

  /// "[rank 0] Dispatch bandwidth: 63.00 GB/s, avg_t=118.00 us | Combine bandwidth: 74.00 GB/s, avg_t=195.00
  /// us"
  void low_latency(std::string_view line) {
    for (std::string_view part : split(line, '|')) {
      const size_t at = part.find(" bandwidth: ");
      if (at == part.npos) continue;
      const std::string before = lower(part.substr(0, at));
      LaneFigure f;
      f.op = ends_with(before, "dispatch + combine") ? "dispatch+combine"
             : ends_with(before, "dispatch")         ? "dispatch"
             : ends_with(before, "combine")          ? "combine"
                                                     : "";
      f.mode = "low-latency";
      f.scale_up_gbps = number_before(part, "GB/s").value_or(0);
      f.time_us = number_after(part, "avg_t=").value_or(0);
      if (!f.op.empty() && f.scale_up_gbps > 0) add(f);
    }
  }

  /// "* EP:   0/16 | dispatch: 117 GB/s (SO), 382 GB/s (SU), 1048.060 us, 400593024 bytes | copy: ..."
  void elastic(std::string_view line) {
    const size_t at = line.find(" EP:"), bar = line.find('|');
    if (at == 0 || bar == line.npos || bar < at) return;
    LaneFigure f;
    switch (line[at - 1]) {
      case '*':
        f.op = "dispatch", f.mode = "full";
        break;
      case '-':
        f.op = "dispatch", f.mode = "expanded";
        break;
      case '#':
        f.op = "dispatch", f.mode = "cached";
        break;
      case '@':
        f.op = "combine", f.mode = "full";
        break;
      case '+':
        f.op = "combine", f.mode = "reduced";
        break;
      default:
        return;
    }
    f.dtype = f.op == "combine" ? "bf16" : case_dtype_;
    const auto parts = split(line.substr(bar + 1), '|');
    const std::string_view part = parts[0];
    if (parts.size() > 1) f.epilogue_us = number_before(parts[1], " us").value_or(0);
    f.scale_out_gbps = number_before(part, "GB/s (SO)").value_or(0);
    f.scale_up_gbps = number_before(part, "GB/s (SU)").value_or(0);
    f.time_us = number_before(part, " us").value_or(0);
    f.bytes = number_before(part, " bytes").value_or(0);
    // Whole GB/s are printed; received bytes and time say it better. SO counts other bytes and stays as
    // printed.
    if (f.time_us > 0 && f.bytes > 0) f.scale_up_gbps = f.bytes / f.time_us * 1e-3;
    if (f.time_us > 0) add(f);
  }

  /// One figure as each test case gave it. V1 and the low-latency test have one case.
  using OfCases = std::vector<LaneFigure>;

  /// The slowest rank of a test case counts; V1 prints Best lines once, of rank 0.
  void add(LaneFigure f) {
    f.ranks = 1;
    f.cases = num_cases_;  // until the end: which case it is of
    auto same = std::find_if(seen_.begin(), seen_.end(), [&](const OfCases& x) {
      return x[0].op == f.op && x[0].mode == f.mode && x[0].dtype == f.dtype;
    });
    if (same == seen_.end()) return seen_.push_back({f});
    LaneFigure& last = same->back();
    if (last.cases != f.cases) return same->push_back(f);
    f.ranks = last.ranks + 1;
    const bool slower =
        f.time_us > 0 && last.time_us > 0 ? f.time_us > last.time_us : f.scale_up_gbps < last.scale_up_gbps;
    if (slower)
      last = f;
    else
      last.ranks = f.ranks;
  }
  static LaneFigure middle(OfCases& of_cases) {
    const auto at = of_cases.begin() + static_cast<ptrdiff_t>(of_cases.size() / 2);
    std::nth_element(of_cases.begin(), at, of_cases.end(),
                     [](const LaneFigure& a, const LaneFigure& b) { return a.time_us < b.time_us; });
    at->cases = static_cast<int>(of_cases.size());
    return *at;
  }

  /// The first that is known. NCCL's exception says nothing by itself: the line after "Last error:" does.
  void error(std::string_view bare) {
    if (after_last_error_) out_.error = bare.substr(0, 300);
    after_last_error_ = bare == "Last error:" && out_.error.find("NCCL error") != std::string::npos;
    static constexpr std::string_view kErrors[] = {
        "AssertionError", "RuntimeError: ",     "ModuleNotFoundError: ", "ImportError: ",
        "ValueError: ",   "EPException",        "DeepEP error",          "DeepEP timeout",
        "CUDA error",     "Segmentation fault", "DistBackendError: ",    "torch.OutOfMemoryError"};
    if (!out_.error.empty()) return;
    for (auto e : kErrors)
      if (bare.find(e) != bare.npos) {
        out_.error = bare.substr(0, 300);
        return;
      }
  }

  static std::string squeezed(std::string_view s) {
    std::string out;
    for (auto w : split_ws(s)) out += (out.empty() ? "" : " ") + std::string(w);
    return out;
  }

  LaneOutput out_;
  std::vector<OfCases> seen_;
  int num_cases_ = 0;
  bool after_last_error_ = false;
  std::string case_dtype_;
};

}  // namespace

LaneOutput parse_lane_output(std::string_view text, bool ended_well) {
  return Reader().read(text, ended_well);
}

}  // namespace ep
