#include "doctor/text_stream.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

#include "base/text.h"

namespace ep {

Encoding guess_encoding(std::string_view start) {
  if (start.size() >= 2 && start[0] == '\xFF' && start[1] == '\xFE') return Encoding::utf16_le;
  if (start.size() >= 2 && start[0] == '\xFE' && start[1] == '\xFF') return Encoding::utf16_be;
  const size_t n = std::min<size_t>(start.size(), 4096) & ~size_t(1);
  size_t even = 0, odd = 0;
  for (size_t i = 0; i < n; i += 2) {
    even += start[i] == 0;
    odd += start[i + 1] == 0;
  }
  if (n >= 64 && odd * 2 > n * 7 / 10 && even * 20 < n) return Encoding::utf16_le;
  if (n >= 64 && even * 2 > n * 7 / 10 && odd * 20 < n) return Encoding::utf16_be;
  return Encoding::bytes;
}

void Utf16::decode(const char* data, size_t n, std::string* out) {
  for (size_t i = 0; i < n; ++i) {
    if (!have_) {
      low_ = static_cast<unsigned char>(data[i]);
      have_ = true;
      continue;
    }
    have_ = false;
    const auto b = static_cast<unsigned char>(data[i]);
    unit(big_ ? uint32_t(low_) << 8 | b : uint32_t(b) << 8 | low_, out);
  }
}

void Utf16::unit(uint32_t u, std::string* out) {
  if (u >= 0xD800 && u < 0xDC00) {
    high_ = u;
    return;
  }
  if (u >= 0xDC00 && u < 0xE000) u = high_ ? 0x10000 + ((high_ - 0xD800) << 10) + (u - 0xDC00) : 0xFFFD;
  high_ = 0;
  if (u == 0xFEFF) return;
  if (u < 0x80) {
    *out += char(u);
  } else if (u < 0x800) {
    *out += char(0xC0 | u >> 6);
    *out += char(0x80 | (u & 63));
  } else if (u < 0x10000) {
    *out += char(0xE0 | u >> 12);
    *out += char(0x80 | (u >> 6 & 63));
    *out += char(0x80 | (u & 63));
  } else {
    *out += char(0xF0 | u >> 18);
    *out += char(0x80 | (u >> 12 & 63));
    *out += char(0x80 | (u >> 6 & 63));
    *out += char(0x80 | (u & 63));
  }
}

namespace {

#if defined(__x86_64__)
__attribute__((target("avx2,popcnt"))) int64_t count_avx2(const char* from, const char* to) {
  const __m256i newline = _mm256_set1_epi8('\n');
  int64_t n = 0;
  for (; to - from >= 32; from += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    n += __builtin_popcount(unsigned(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, newline))));
  }
  for (; from != to; ++from) n += *from == '\n';
  return n;
}

__attribute__((target("avx2"))) Oddities oddities_avx2(const char* from, const char* to) {
  const __m256i escape = _mm256_set1_epi8('\x1b'), zero = _mm256_setzero_si256();
  __m256i nuls = zero, escapes = zero;
  for (; to - from >= 32; from += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    nuls = _mm256_or_si256(nuls, _mm256_cmpeq_epi8(bytes, zero));
    escapes = _mm256_or_si256(escapes, _mm256_cmpeq_epi8(bytes, escape));
  }
  Oddities o{_mm256_movemask_epi8(nuls) != 0, _mm256_movemask_epi8(escapes) != 0};
  for (; from != to; ++from) o.nul |= *from == 0, o.escape |= *from == '\x1b';
  return o;
}
#endif

bool has_avx2() {
#if defined(__x86_64__)
  static const bool kHas = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
  return kHas;
#else
  return false;
#endif
}

constexpr size_t kStep = 256;  // a text without newlines is not searched to its end for every one

}  // namespace

size_t piece_end(const char* text, size_t at, size_t most) {
  for (; at < most; at += kStep) {
    const size_t n = std::min(kStep, most - at);
    const void* line = std::memchr(text + at, '\n', n);
    const size_t before = line ? size_t(static_cast<const char*>(line) - text) - at : n;
    const void* stop = std::memchr(text + at, '\r', before);
    if (!stop) stop = line;
    if (stop) return size_t(static_cast<const char*>(stop) - text);
  }
  return most;
}

size_t piece_begin(const char* text, size_t at, size_t least) {
  while (at > least) {
    const size_t n = std::min(kStep, at - least), from = at - n;
    const void* line = memrchr(text + from, '\n', n);
    const size_t behind = line ? size_t(static_cast<const char*>(line) - text) + 1 : from;
    const void* stop = memrchr(text + behind, '\r', at - behind);
    if (!stop) stop = line;
    if (stop) return size_t(static_cast<const char*>(stop) - text) + 1;
    at = from;
  }
  return least;
}

int64_t count_newlines(const char* from, const char* to) {
#if defined(__x86_64__)
  if (has_avx2()) return count_avx2(from, to);
#endif
  return std::count(from, to, '\n');
}

Oddities find_oddities(const char* from, const char* to) {
#if defined(__x86_64__)
  if (has_avx2()) return oddities_avx2(from, to);
#endif
  const auto n = size_t(to - from);
  return {n > 0 && std::memchr(from, 0, n) != nullptr, n > 0 && std::memchr(from, '\x1b', n) != nullptr};
}

size_t strip_ansi_lines(char* text, size_t size) {
  size_t from = 0, out = 0;
  while (from < size) {
    const auto* esc = static_cast<const char*>(std::memchr(text + from, '\x1b', size - from));
    if (!esc) break;
    const auto at = size_t(esc - text);
    const size_t begin = piece_begin(text, at, from), end = piece_end(text, at, size);
    std::memmove(text + out, text + from, begin - from);
    out += begin - from;
    const std::string plain = strip_ansi({text + begin, end - begin});
    std::memcpy(text + out, plain.data(), plain.size());
    out += plain.size();
    from = end;
  }
  if (out != from) std::memmove(text + out, text + from, size - from);
  return out + (size - from);
}

}  // namespace ep
