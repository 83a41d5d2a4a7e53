#include "doctor/text_find.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstring>

namespace ep {

namespace {

char low(char c) {
  return c >= 'A' && c <= 'Z' ? char(c + 32) : c;
}

bool same(const char* a, std::string_view word, bool ignore_case) {
  if (!ignore_case) return std::memcmp(a, word.data(), word.size()) == 0;
  for (size_t i = 0; i < word.size(); ++i)
    if (low(a[i]) != low(word[i])) return false;
  return true;
}

size_t find_from(std::string_view text, std::string_view word, bool ignore_case, size_t at) {
  for (; at + word.size() <= text.size(); ++at)
    if (same(text.data() + at, word, ignore_case)) return at;
  return std::string_view::npos;
}

#if defined(__x86_64__)
/// Both ends of the word at 32 places; a bit that tells capitals from small letters is set on both sides,
/// which lets a few other bytes through: same() decides.
__attribute__((target("avx2,bmi"))) size_t find_avx2(std::string_view text, std::string_view word,
                                                     bool ignore_case) {
  const char* const s = text.data();
  const size_t n = word.size(), places = text.size() - n + 1;
  const char fold = ignore_case ? 0x20 : 0;
  const __m256i mask = _mm256_set1_epi8(fold), first = _mm256_set1_epi8(char(word.front() | fold)),
                last = _mm256_set1_epi8(char(word.back() | fold));
  size_t at = 0;
  for (; at + 32 <= places; at += 32) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + at));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + at + n - 1));
    const __m256i both = _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_or_si256(a, mask), first),
                                          _mm256_cmpeq_epi8(_mm256_or_si256(b, mask), last));
    for (auto m = unsigned(_mm256_movemask_epi8(both)); m; m &= m - 1) {
      const size_t p = at + size_t(__builtin_ctz(m));
      if (same(s + p, word, ignore_case)) return p;
    }
  }
  return find_from(text, word, ignore_case, at);
}
#endif

}  // namespace

size_t find_word(std::string_view text, std::string_view word, bool ignore_case) {
  if (word.empty() || text.size() < word.size()) return std::string_view::npos;
#if defined(__x86_64__)
  static const bool kWide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
  if (kWide) return find_avx2(text, word, ignore_case);
#endif
  return find_from(text, word, ignore_case, 0);
}

WordSet::WordSet(std::vector<std::string> words) : words_(std::move(words)) {
  for (size_t i = 0; i < words_.size(); ++i)
    for (size_t k = 0; k < kLeast; ++k) {
      const auto c = static_cast<unsigned char>(words_[i].at(k) | 0x20);
      low_[k][c & 15] |= uint8_t(1u << (i % 8));
      high_[k][c >> 4] |= uint8_t(1u << (i % 8));
    }
}

bool WordSet::any_in(std::string_view text) const {
#if defined(__x86_64__)
  static const bool kWide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
  if (kWide) return any_avx2(text);
#endif
  for (const auto& w : words_)
    if (has_word(text, w, true)) return true;
  return false;
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi"))) bool WordSet::any_avx2(std::string_view text) const {
  constexpr size_t kStep = 32, kNeeds = kStep + kLeast - 1;
  alignas(32) char copy[2 * kStep] = {};
  if (text.size() < kNeeds) {  // short: with zeros behind it
    std::memcpy(copy, text.data(), text.size());
    text = {copy, kNeeds};
  }
  const __m256i half = _mm256_set1_epi8(15), fold = _mm256_set1_epi8(0x20), zero = _mm256_setzero_si256();
  __m256i low[kLeast], high[kLeast];
  for (size_t k = 0; k < kLeast; ++k) {
    low[k] = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(low_[k])));
    high[k] = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(high_[k])));
  }
  const size_t last = text.size() - kNeeds;
  for (size_t at = 0;; at = at + kStep < last ? at + kStep : last) {
    __m256i words = _mm256_set1_epi8(char(0xff));
    for (size_t k = 0; k < kLeast; ++k) {
      const __m256i c =
          _mm256_or_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(text.data() + at + k)), fold);
      words = _mm256_and_si256(words, _mm256_shuffle_epi8(low[k], _mm256_and_si256(c, half)));
      words = _mm256_and_si256(words,
                               _mm256_shuffle_epi8(high[k], _mm256_and_si256(_mm256_srli_epi16(c, 4), half)));
    }
    for (auto m = ~unsigned(_mm256_movemask_epi8(_mm256_cmpeq_epi8(words, zero))); m; m &= m - 1) {
      const size_t p = at + size_t(__builtin_ctz(m));
      for (const auto& w : words_)
        if (p + w.size() <= text.size() && same(text.data() + p, w, true)) return true;
    }
    if (at == last) return false;
  }
}
#endif

}  // namespace ep
