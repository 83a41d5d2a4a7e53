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

/// How often each window stands in a sample, by a hash: now and then two windows share a count.
class SampleCounts {
 public:
  explicit SampleCounts(std::string_view sample) : counts_(sample.empty() ? 0 : size_t(1) << kBits) {
    for (size_t i = 0; i + 4 <= sample.size(); ++i) ++counts_[slot(sample.substr(i, 4))];
  }
  double cost(std::string_view four) const {
    const double guess = window_cost(four);
    return counts_.empty() ? guess : double(counts_[slot(four)]) + guess * 0.01;
  }

 private:
  static constexpr int kBits = 16;
  static size_t slot(std::string_view four) { return (fold(four) * 0x9E3779B1u) >> (32 - kBits); }
  std::vector<uint32_t> counts_;
};

/// Cheapest place in the literal for the three neighbouring windows.
std::pair<size_t, double> best_offset(std::string_view text, const SampleCounts& counts) {
  std::pair<size_t, double> best{0, 1e300};
  double before = 0, last = 0;  // costs of the two windows to the left
  for (size_t b = 0; b + 4 <= text.size(); ++b) {
    const double now = counts.cost(text.substr(b, 4));
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
  return best_offset(text, SampleCounts({})).second;
}

LiteralScan::LiteralScan(std::vector<Literal> literals, std::string_view sample)
    : literals_(std::move(literals)),
      bits_((size_t(1) << kBits) / 32),
      core_bits_((size_t(1) << kCoreBits) / 32),
      heads_(size_t(1) << kCoreBits, -1),
      awake_(literals_.size(), true) {
  const SampleCounts counts(sample);
  for (size_t i = 0; i < literals_.size(); ++i) {
    const std::string& text = literals_[i].text;
    if (text.size() < kMinLength)
      throw std::logic_error("a literal below the scanner's least length: " + text);
    const size_t b = best_offset(text, counts).first;
    const uint64_t core = load_core(text.data() + b);
    const uint32_t h = core_hash(core);
    entries_.push_back({core, uint32_t(i), uint32_t(b), heads_[h]});
    heads_[h] = int32_t(entries_.size()) - 1;
  }
  set_awake(awake_);
}

void LiteralScan::set_awake(const std::vector<bool>& awake) {
  awake_ = awake;
  std::fill(bits_.begin(), bits_.end(), 0);
  std::fill(core_bits_.begin(), core_bits_.end(), 0);
  const auto set = [](std::vector<uint32_t>& bits, uint32_t h) { bits[h >> 5] |= uint32_t(1) << (h & 31); };
  for (const Entry& e : entries_) {
    if (!awake_[e.literal]) continue;
    const char* core = literals_[e.literal].text.data() + e.offset;
    for (size_t k = 0; k < kStride; ++k) set(bits_, hash(load(core + k)));
    set(core_bits_, core_hash(e.core));
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

size_t LiteralScan::keep_cores(const char* data, size_t size, const uint32_t* positions, size_t n,
                               uint32_t* cores) const {
  size_t kept = 0;
  for (size_t i = 0; i < n; ++i) {
    const size_t p = positions[i];
    if (p < kStride || p + kCore > size) {  // at the ends
      for (size_t k = 0; k < kStride && k <= p; ++k)
        if (p - k + kCore <= size) cores[kept++] = uint32_t(p - k);
      continue;
    }
    for (size_t k = 0; k < kStride; ++k) {  // the window at p is the first, second or third of a core
      const uint32_t h = core_hash(load_core(data + p - k));
      cores[kept] = uint32_t(p - k);
      kept += (core_bits_[h >> 5] >> (h & 31)) & 1;
    }
  }
  return kept;
}

#if defined(__x86_64__)
/// Sixteen windows, three bytes apart, from 64 bytes.
__attribute__((target("avx512f,avx512bw,avx512vbmi,popcnt"))) size_t LiteralScan::collect_avx512(
    const uint32_t* bits, const char* data, size_t size, size_t* at, uint32_t* positions) {
  alignas(64) uint8_t spread_bytes[64];
  alignas(64) uint32_t lane_bytes[16];
  for (uint32_t i = 0; i < 64; ++i) spread_bytes[i] = uint8_t(i / 4 * kStride + i % 4);
  for (uint32_t i = 0; i < 16; ++i) lane_bytes[i] = i * kStride;
  const __m512i spread = _mm512_load_si512(spread_bytes), lanes = _mm512_load_si512(lane_bytes);
  const __m512i fold_case = _mm512_set1_epi32(0x20202020), factor = _mm512_set1_epi32(int(0x9E3779B1u));
  const __m512i low5 = _mm512_set1_epi32(31), one = _mm512_set1_epi32(1);
  size_t n = 0, p = *at;
  for (; p + 64 <= size && n <= kBatch - 16; p += 16 * kStride) {
    __m512i w = _mm512_permutexvar_epi8(spread, _mm512_loadu_si512(data + p));
    w = _mm512_srli_epi32(_mm512_mullo_epi32(_mm512_or_si512(w, fold_case), factor), 32 - kBits);
    const __m512i words = _mm512_i32gather_epi32(_mm512_srli_epi32(w, 5), bits, 4);
    const __mmask16 m = _mm512_test_epi32_mask(words, _mm512_sllv_epi32(one, _mm512_and_si512(w, low5)));
    // Without a branch: how many there are cannot be foreseen.
    const __m512i here = _mm512_add_epi32(lanes, _mm512_set1_epi32(int(p)));
    _mm512_storeu_si512(positions + n, _mm512_maskz_compress_epi32(m, here));
    n += unsigned(__builtin_popcount(m));
  }
  *at = p;
  return p + 64 <= size ? n : n + collect_plain(bits, data, size, at, positions + n);
}

/// The numbers of the bits that are set, for each byte.
struct SetBits {
  uint8_t of[256][8] = {};
  constexpr SetBits() {
    for (int m = 0; m < 256; ++m)
      for (int bit = 0, n = 0; bit < 8; ++bit)
        if (m >> bit & 1) of[m][n++] = uint8_t(bit);
  }
};
constexpr SetBits kSetBits;

__attribute__((target("avx2,popcnt"))) size_t LiteralScan::collect_avx2(const uint32_t* bits,
                                                                        const char* data, size_t size,
                                                                        size_t* at, uint32_t* positions) {
  // Eight windows, three bytes apart: four from the sixteen bytes at p, four from those at p + 12.
  const __m256i spread = _mm256_setr_epi8(0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12, 0, 1, 2, 3, 3, 4,
                                          5, 6, 6, 7, 8, 9, 9, 10, 11, 12);
  const __m256i fold_case = _mm256_set1_epi32(0x20202020), factor = _mm256_set1_epi32(int(0x9E3779B1u));
  const __m256i low5 = _mm256_set1_epi32(31), top = _mm256_set1_epi32(31);
  const __m256i lanes = _mm256_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21);
  size_t n = 0, p = *at;
  for (; p + 28 <= size && n <= kBatch - 8; p += 8 * kStride) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + p));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + p + 12));
    __m256i w = _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1), spread);
    w = _mm256_srli_epi32(_mm256_mullo_epi32(_mm256_or_si256(w, fold_case), factor), 32 - kBits);
    const __m256i words =
        _mm256_i32gather_epi32(reinterpret_cast<const int*>(bits), _mm256_srli_epi32(w, 5), 4);
    // The bit in question becomes the sign, which movemask reads.
    const __m256i bit = _mm256_sllv_epi32(words, _mm256_sub_epi32(top, _mm256_and_si256(w, low5)));
    const auto m = unsigned(_mm256_movemask_ps(_mm256_castsi256_ps(bit)));
    // Without a branch: how many there are cannot be foreseen.
    const __m256i order =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kSetBits.of[m])));
    const __m256i here = _mm256_add_epi32(lanes, _mm256_set1_epi32(int(p)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(positions + n), _mm256_permutevar8x32_epi32(here, order));
    n += unsigned(__builtin_popcount(m));
  }
  *at = p;
  return p + 28 <= size ? n : n + collect_plain(bits, data, size, at, positions + n);
}
#endif

LiteralScan::Collect LiteralScan::choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw")) return collect_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt")) return collect_avx2;
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
