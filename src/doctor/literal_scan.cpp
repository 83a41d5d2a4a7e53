#include "doctor/literal_scan.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

namespace ep {

namespace {

// Harmless lines of the kind that fill gigabytes of logs: windows that occur here are poor ones to file a
// literal under.
constexpr std::string_view kTypical =
    "(EngineCore_DP0 pid=412) INFO 11-30 10:22:57 [loggers.py:127] Engine 000: Avg prompt throughput: 1024.5 "
    "tokens/s, "
    "Avg generation throughput: 812.3 tokens/s, Running: 32 reqs, Waiting: 0 reqs, GPU KV cache usage: 4.1%, "
    "Prefix cache "
    "hit rate: 0.0%\nINFO: 10.0.0.7:51234 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n"
    "[2025-09-06 12:34:56 DP0 TP0 EP0] Decode batch. #running-req: 16, #token: 65536, token usage: 0.31, gen "
    "throughput "
    "(token/s): 912.33, #queue-req: 0, cuda graph: True\n[rank3]: step 1200 loss 2.345 lr 1.0e-4 grad norm "
    "0.987\n"
    "node7:4123:4321 [0] NCCL INFO Channel 03/0 : 12[4] -> 4[4] [receive] via NET/IB/4/GDRDMA\n"
    "node7:4123:4321 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1\n"
    " iteration 120/ 5000 | consumed samples: 15360 | elapsed time per iteration (ms): 1234.5 | learning "
    "rate: 1.0E-04 | "
    "global batch size: 128 | lm loss: 7.1E+00 | loss scale: 1.0 | number of skipped iterations: 0 | number "
    "of nan\n"
    "DEBUG WARNING ERROR File "
    "\"/usr/local/lib/python3.12/dist-packages/torch/distributed/site-packages/vllm/model_executor\""
    ", line 120, in forward return self._call_impl device cuda error failed nvshmem rank rdma device mlx5_0 "
    "version\n"
    "Loading safetensors checkpoint shards: 45% Completed | 72/163 [00:12<00:15, 5.9it/s] Capturing CUDA "
    "graphs\n"
    "Nov 30 10:22:57 node7 kernel: [ 1234.567890] systemd[1]: Started Session 42 of user root. No such file "
    "or directory\n";

uint32_t fold(std::string_view four) {
  uint32_t w;
  std::memcpy(&w, four.data(), 4);
  return w | 0x20202020u;
}

const std::unordered_map<uint32_t, int>& typical_counts() {
  static const auto kCounts = [] {
    std::unordered_map<uint32_t, int> m;
    for (size_t i = 0; i + 4 <= kTypical.size(); ++i) ++m[fold(kTypical.substr(i, 4))];
    return m;
  }();
  return kCounts;
}

/// Letters of English prose weigh more than capitals, digits, quotes and underscores.
double byte_weight(char c) {
  if (c == ' ') return 3;
  if (std::string_view("etaoinsr").find(c) != std::string_view::npos) return 2;
  if (c >= 'a' && c <= 'z') return 1;
  return 0.3;
}

double window_cost(std::string_view four) {
  double cost = 0;
  for (char c : four) cost += byte_weight(c);
  auto it = typical_counts().find(fold(four));
  return cost * 0.05 + (it == typical_counts().end() ? 0 : 1.0 + it->second);
}

/// Cheapest place in the literal for the three neighbouring windows.
std::pair<size_t, double> best_offset(std::string_view text) {
  std::pair<size_t, double> best{0, 1e300};
  double before = 0, last = 0;  // costs of the two windows to the left
  for (size_t b = 0; b + 4 <= text.size(); ++b) {
    const double now = window_cost(text.substr(b, 4));
    if (b >= 2 && before + last + now < best.second) best = {b - 2, before + last + now};
    before = last;
    last = now;
  }
  return best;
}

char lower_byte(char c) {
  return c >= 'A' && c <= 'Z' ? char(c + 32) : c;
}

}  // namespace

double LiteralScan::commonness(std::string_view text) {
  return best_offset(text).second;
}

LiteralScan::LiteralScan(std::vector<Literal> literals)
    : literals_(std::move(literals)),
      bits_((size_t(1) << kBits) / 32),
      second_((size_t(1) << kSecondBits) / 32),
      heads_(size_t(1) << kBits, -1),
      awake_(literals_.size(), true) {
  for (size_t i = 0; i < literals_.size(); ++i) {
    const std::string& text = literals_[i].text;
    if (text.size() < kMinLength)
      throw std::logic_error("a literal below the scanner's least length: " + text);
    const size_t b = best_offset(text).first;
    for (size_t k = 0; k < kStride; ++k) {
      const uint32_t w = fold(std::string_view(text).substr(b + k, 4)), h = hash(w);
      entries_.push_back({w, uint32_t(i), uint32_t(b + k), heads_[h]});
      heads_[h] = int32_t(entries_.size()) - 1;
    }
  }
  set_awake(awake_);
}

void LiteralScan::set_awake(const std::vector<bool>& awake) {
  awake_ = awake;
  std::fill(bits_.begin(), bits_.end(), 0);
  std::fill(second_.begin(), second_.end(), 0);
  for (const Entry& e : entries_) {
    if (!awake_[e.literal]) continue;
    bits_[hash(e.window) >> 5] |= uint32_t(1) << (hash(e.window) & 31);
    second_[second_hash(e.window) >> 5] |= uint32_t(1) << (second_hash(e.window) & 31);
  }
}

size_t LiteralScan::collect_plain(const uint32_t* bits, const char* data, size_t size, size_t* at,
                                  uint32_t* positions) {
  size_t n = 0, p = *at;
  for (; p + 4 <= size && n < kBatch; p += kStride) {
    const uint32_t h = hash(load(data + p));
    positions[n] = uint32_t(p);
    n += (bits[h >> 5] >> (h & 31)) & 1;
  }
  *at = p;
  return n;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) size_t LiteralScan::collect_avx2(const uint32_t* bits, const char* data,
                                                                 size_t size, size_t* at,
                                                                 uint32_t* positions) {
  // Eight windows, three bytes apart: four from the sixteen bytes at p, four from those at p + 12.
  const __m256i spread = _mm256_setr_epi8(0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12, 0, 1, 2, 3, 3, 4,
                                          5, 6, 6, 7, 8, 9, 9, 10, 11, 12);
  const __m256i fold_case = _mm256_set1_epi32(0x20202020), factor = _mm256_set1_epi32(int(0x9E3779B1u));
  const __m256i low5 = _mm256_set1_epi32(31), top = _mm256_set1_epi32(31);
  size_t n = 0, p = *at;
  for (; p + 28 <= size && n < kBatch - 8; p += 8 * kStride) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + p));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + p + 12));
    __m256i w = _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1), spread);
    w = _mm256_srli_epi32(_mm256_mullo_epi32(_mm256_or_si256(w, fold_case), factor), 32 - kBits);
    const __m256i words =
        _mm256_i32gather_epi32(reinterpret_cast<const int*>(bits), _mm256_srli_epi32(w, 5), 4);
    // The bit in question becomes the sign, which movemask reads.
    const __m256i bit = _mm256_sllv_epi32(words, _mm256_sub_epi32(top, _mm256_and_si256(w, low5)));
    for (uint32_t m = uint32_t(_mm256_movemask_ps(_mm256_castsi256_ps(bit))); m; m &= m - 1)
      positions[n++] = uint32_t(p + kStride * size_t(__builtin_ctz(m)));
  }
  *at = p;
  return p + 28 <= size ? n : n + collect_plain(bits, data, size, at, positions + n);
}
#endif

LiteralScan::Collect LiteralScan::choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return collect_avx2;
#endif
  return collect_plain;
}

bool LiteralScan::verify(const Literal& literal, const char* at) const {
  if (!literal.ignore_case) return std::memcmp(at, literal.text.data(), literal.text.size()) == 0;
  for (size_t i = 0; i < literal.text.size(); ++i)
    if (lower_byte(at[i]) != lower_byte(literal.text[i])) return false;
  return true;
}

}  // namespace ep
