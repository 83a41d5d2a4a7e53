#include "doctor/literal_scan.h"

#include <rapidcheck.h>

#include <random>
#include <set>

#include "doctor/text_find.h"

namespace ep {

/// Forces the code for narrower vectors, or none.
struct LiteralScanTest {
  static void use_plain(LiteralScan& s) { s.collect_ = LiteralScan::collect_plain; }
  static void use_avx2(LiteralScan& s) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) s.collect_ = LiteralScan::collect_avx2;
#else
    (void)s;
#endif
  }
};

namespace {

using Found = std::multiset<std::pair<uint32_t, size_t>>;

Found naive(const std::vector<LiteralScan::Literal>& literals, const std::string& text) {
  auto low = [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; };
  Found out;
  for (uint32_t i = 0; i < literals.size(); ++i)
    for (size_t p = 0; p + literals[i].text.size() <= text.size(); ++p) {
      bool same = true;
      for (size_t k = 0; same && k < literals[i].text.size(); ++k) {
        char a = text[p + k], b = literals[i].text[k];
        same = literals[i].ignore_case ? low(a) == low(b) : a == b;
      }
      if (same) out.emplace(i, p);
    }
  return out;
}

Found fast(const std::vector<LiteralScan::Literal>& literals, const std::string& text) {
  Found out;
  // Exactly sized copy: a read past the end is seen by the address sanitizer.
  std::vector<char> copy(text.begin(), text.end());
  LiteralScan scan(literals);
  scan.scan(copy.data(), copy.size(), [&](uint32_t i, size_t p) { out.emplace(i, p); });
  for (auto* use : {LiteralScanTest::use_avx2, LiteralScanTest::use_plain}) {
    Found other;
    use(scan);
    scan.scan(copy.data(), copy.size(), [&](uint32_t i, size_t p) { other.emplace(i, p); });
    EXPECT_EQ(out, other);
  }
  // Filed where this very text has the fewest windows like them.
  Found sampled;
  LiteralScan(literals, text).scan(copy.data(), copy.size(), [&](uint32_t i, size_t p) {
    sampled.emplace(i, p);
  });
  EXPECT_EQ(out, sampled);
  return out;
}

TEST(LiteralScan, FindsOverlapsAndNestedLiterals) {
  const std::vector<LiteralScan::Literal> literals = {
      {"aaaaaa"}, {"aaaaaab"}, {"timeout (dispatch CPU)"}, {"dispatch"}, {"DISPATCH", true}};
  const std::string text = "aaaaaaaab timeout (dispatch CPU) Dispatch";
  EXPECT_EQ(fast(literals, text), naive(literals, text));
  EXPECT_EQ(fast(literals, text).size(), 3u + 1u + 1u + 1u + 2u);
}

TEST(LiteralScan, FindsALiteralAtEveryPlaceOfATightBuffer) {
  for (size_t before = 0; before < 20; ++before)
    for (size_t after = 0; after < 20; ++after) {
      const std::string text = std::string(before, 'x') + "nvshmem" + std::string(after, 'y');
      EXPECT_EQ(fast({{"nvshmem"}}, text), (Found{{0, before}})) << before << " " << after;
    }
}

TEST(LiteralScan, NothingInNothing) {
  EXPECT_TRUE(fast({{"abcdef"}}, "").empty());
  EXPECT_TRUE(fast({}, "abcdef").empty());
  EXPECT_TRUE(fast({{"abcdef"}}, "abcde").empty());
}

TEST(LiteralScan, EqualsNaiveSearch) {
  const bool holds = rc::check("same occurrences as a naive search", [] {
    // A small alphabet makes occurrences, overlaps and false windows common.
    const auto text_of = [](size_t least, size_t most) {
      return rc::gen::mapcat(rc::gen::inRange(least, most), [](size_t n) {
        return rc::gen::container<std::string>(n, rc::gen::elementOf(std::string("aAbB ")));
      });
    };
    const auto words = *rc::gen::container<std::vector<std::string>>(text_of(6, 12));
    std::vector<LiteralScan::Literal> literals;
    for (const auto& w : words) literals.push_back({w, *rc::gen::arbitrary<bool>()});
    std::string text = *text_of(0, 400);
    for (const auto& w : words) text.insert(*rc::gen::inRange<size_t>(0, text.size() + 1), w);
    RC_ASSERT(fast(literals, text) == naive(literals, text));
  });
  EXPECT_TRUE(holds);
}

TEST(LiteralScan, EqualsNaiveSearchOnBytes) {
  std::mt19937 random(20261130);
  for (int round = 0; round < 200; ++round) {
    std::vector<LiteralScan::Literal> literals;
    for (int i = 0; i < 20; ++i) {
      std::string w;
      for (size_t n = 6 + random() % 10; n; --n) w += char(random());
      literals.push_back({w, bool(random() & 1)});
    }
    std::string text;
    for (int i = 0; i < 60; ++i) {
      text += literals[random() % literals.size()].text;
      for (size_t n = random() % 9; n; --n) text += char(random());
    }
    ASSERT_EQ(fast(literals, text), naive(literals, text)) << "round " << round;
  }
}

TEST(FindWord, EqualsNaiveSearch) {
  std::mt19937 random(20261201);
  const std::string alphabet = "aAbB `@[{z";
  for (int round = 0; round < 2000; ++round) {
    std::string text, word;
    for (size_t n = random() % 120; n; --n) text += alphabet[random() % alphabet.size()];
    for (size_t n = 1 + random() % 4; n; --n) word += alphabet[random() % alphabet.size()];
    for (bool fold : {false, true}) {
      const Found all = naive({{word, fold}}, text);
      size_t want = std::string_view::npos;
      for (const auto& [i, p] : all) want = std::min(want, p);
      ASSERT_EQ(find_word(text, word, fold), want) << text << "|" << word;
    }
  }
  EXPECT_EQ(find_word("abc", "", true), std::string_view::npos);
  EXPECT_EQ(find_word("", "a", true), std::string_view::npos);
}

TEST(WordSet, EqualsNaiveSearch) {
  std::mt19937 random(20261202);
  const std::string alphabet = "aAbB `@[{z\xff";
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    std::vector<std::string> words(1 + random() % 11);
    std::vector<LiteralScan::Literal> literals;
    for (size_t n = random() % 150; n; --n) text += alphabet[random() % alphabet.size()];
    for (auto& w : words) {
      for (size_t n = 3 + random() % 3; n; --n) w += alphabet[random() % alphabet.size()];
      literals.push_back({w, true});
    }
    const std::vector<char> exact(text.begin(), text.end());  // a read past the end is seen by the sanitizer
    ASSERT_EQ(WordSet(words).any_in({exact.data(), exact.size()}), !naive(literals, text).empty()) << text;
  }
}

TEST(LiteralScan, PrefersRareText) {
  EXPECT_LT(LiteralScan::commonness("nvshmemi_ibgda_device_state_d"), LiteralScan::commonness("NCCL INFO"));
}

}  // namespace
}  // namespace ep
