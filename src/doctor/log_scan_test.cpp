#include "doctor/log_scan.h"

#include <map>

namespace ep {
namespace {

LinePattern pattern(std::vector<std::string> literals, const std::string& regex = {}) {
  LinePattern p;
  p.literals = std::move(literals);
  p.regex_text = regex;
  std::string error;
  if (!regex.empty()) p.regex = compile_regex(regex, false, &error);
  EXPECT_EQ(error, "");
  return p;
}

struct Seen {
  std::vector<std::pair<int64_t, std::string>> hits;
  ScanNotes notes;
};

/// Feeds `chunk` bytes at a time, so that every border of blocks is met.
Seen scan(const LinePattern& p, std::string_view text, size_t chunk = 1 << 20) {
  Seen seen;
  LogScan s({{&p}});
  auto read = [text, chunk](char* into, size_t most) mutable -> Result<size_t> {
    const size_t n = std::min({most, chunk, text.size()});
    std::memcpy(into, text.data(), n);
    text.remove_prefix(n);
    return n;
  };
  auto notes =
      s.run(read, [&](size_t, const LogLine& l) { seen.hits.emplace_back(l.number, std::string(l.text)); });
  EXPECT_TRUE(notes.has_value());
  if (notes) seen.notes = *notes;
  return seen;
}

TEST(LogScan, NumbersLinesAcrossBlockBorders) {
  std::string text;
  for (int i = 1; i <= 2000; ++i)
    text += i % 100 == 0 ? "error: the needle " + std::to_string(i) + "\n" : "plain line\n";
  for (size_t chunk : {1u, 7u, 64u, 4096u, 1u << 20}) {
    auto seen = scan(pattern({"the needle"}), chunk == 1 ? text.substr(0, 3000) : text, chunk);
    ASSERT_FALSE(seen.hits.empty());
    for (const auto& [line, l] : seen.hits) EXPECT_EQ(l, "error: the needle " + std::to_string(line));
    if (chunk != 1) {
      EXPECT_EQ(seen.hits.size(), 20u);
    }
  }
}

TEST(LogScan, AllLiteralsAndTheExpressionMustHoldOnOneLine) {
  auto p = pattern({"alpha beta", "gamma"}, "gamma[0-9]+$");
  EXPECT_EQ(scan(p, "alpha beta\ngamma1\n").hits.size(), 0u);
  EXPECT_EQ(scan(p, "alpha beta gamma\n").hits.size(), 0u);
  EXPECT_EQ(scan(p, "gamma alpha beta gamma12\r\n").hits.size(), 1u);
}

TEST(LogScan, LastLineWithoutNewline) {
  EXPECT_EQ(scan(pattern({"needle"}), "a\nb needle").hits[0].first, 2);
}

TEST(LogScan, OneHitALineHoweverOftenItStandsThere) {
  EXPECT_EQ(scan(pattern({"needle"}), "needle needle needle\n").hits.size(), 1u);
}

TEST(LogScan, TenMegabyteLineIsSearchedInWindows) {
  std::string text =
      "first\n" + std::string(5 << 20, 'x') + " needle one " + std::string(5 << 20, 'y') + "\nlast needle\n";
  auto seen = scan(pattern({"needle"}), text);
  ASSERT_EQ(seen.hits.size(), 2u);
  EXPECT_EQ(seen.hits[0].first, 2);
  EXPECT_LE(seen.hits[0].second.size(), 17u << 10);
  EXPECT_EQ(seen.hits[1].first, 3);
  EXPECT_EQ(seen.notes.long_lines, 1);
  EXPECT_EQ(seen.notes.bytes, int64_t(text.size()));
}

TEST(LogScan, NoNewlineAtAll) {
  std::string text(3 << 20, '.');
  text.replace(2 << 20, 6, "needle");
  auto seen = scan(pattern({"needle"}), text);
  ASSERT_EQ(seen.hits.size(), 1u);
  EXPECT_EQ(seen.hits[0].first, 1);
}

TEST(LogScan, NeedleAtEveryPlaceOfALongLineIsSeenOnce) {
  for (size_t at :
       {size_t(65530), size_t(65536), size_t(200000), size_t(262140), size_t(262144), size_t(300000)}) {
    std::string text(400000, 'x');
    text.replace(at, 6, "needle");
    text += "\nend\n";
    EXPECT_EQ(scan(pattern({"needle"}), text).hits.size(), 1u) << at;
  }
}

TEST(LogScan, Utf16BothWaysAndWithoutMark) {
  std::u16string wide = u"plain line of text, long enough to guess from it without a mark\nthe needle 针\n";
  for (bool big : {false, true})
    for (bool mark : {false, true}) {
      std::string bytes;
      auto put = [&](char16_t u) {
        char hi = char(u >> 8), lo = char(u & 255);
        bytes += big ? hi : lo;
        bytes += big ? lo : hi;
      };
      if (mark) put(0xFEFF);
      for (char16_t u : wide) put(u);
      for (size_t chunk : {13u, 1u << 20}) {
        auto seen = scan(pattern({"needle"}), bytes, chunk);
        ASSERT_EQ(seen.hits.size(), 1u) << big << mark << chunk;
        EXPECT_EQ(seen.hits[0].second, "the needle 针");
        EXPECT_TRUE(seen.notes.utf16);
      }
    }
}

TEST(LogScan, BinaryNoiseIsNotedAndSearched) {
  std::string text("\0\1\2 needle\n\xff\xfe\0", 14);
  auto seen = scan(pattern({"needle"}), text);
  EXPECT_EQ(seen.hits.size(), 1u);
  EXPECT_TRUE(seen.notes.binary);
}

TEST(LogScan, RepetitionsRestAndOthersAreStillSeen) {
  auto common = pattern({"common words"}), rare = pattern({"rare words"});
  std::string text;
  for (int i = 0; i < 400000; ++i) text += "line of common words\n";
  text += "rare words\nlast common words\n";
  LogScan s({{&common, 100}, {&rare, 100}});
  int64_t num_common = 0, last_common = 0, rare_line = 0;
  auto notes = s.run(read_text(text), [&](size_t p, const LogLine& l) {
    if (p == 0)
      ++num_common, last_common = l.number;
    else
      rare_line = l.number;
  });
  ASSERT_TRUE(notes.has_value());
  EXPECT_EQ(rare_line, 400001);
  EXPECT_EQ(last_common, 400002);
  EXPECT_GE(num_common, 100);
  EXPECT_LT(num_common, 100000);
}

TEST(LogScan, ALiteralWhosePatternNeverFitsKeepsBeingLookedAt) {
  auto p = pattern({"common words"}, "common words [0-9]+");
  std::string text;
  for (int i = 0; i < 400000; ++i) text += "line of common words\n";
  text += "common words 7\n";
  EXPECT_EQ(scan(p, text + std::string(1 << 20, '\n')).hits.size(), 1u);
}

TEST(LogScan, ReadErrorIsAnError) {
  auto p = pattern({"needle"});
  LogScan s({{&p}});
  auto r = s.run([](char*, size_t) -> Result<size_t> { return fail(ErrorKind::unreadable, "disk"); },
                 [](size_t, const LogLine&) {});
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().kind, ErrorKind::unreadable);
}

TEST(LogScan, EscapeSequencesAreTakenOutBeforeMatching) {
  auto p = pattern({"needle"}, "^ERROR: needle$");
  auto r = scan(p, "\x1b[31mERROR:\x1b[0m needle\x1b[K\n");
  EXPECT_EQ(r.hits.size(), 1u);
}

TEST(LogScan, EscapeSequencesInsideTheWordsAreNoHindrance) {
  auto p = pattern({"the needle"}, "needle [0-9]+$");
  std::string text;
  for (int i = 1; i <= 5000; ++i) text += "the \x1b[1mneed\x1b[0mle " + std::to_string(i) + "\rprogress\n";
  auto r = scan(p, text, 4096);
  ASSERT_EQ(r.hits.size(), 5000u);
  EXPECT_EQ(r.hits[4999], (std::pair<int64_t, std::string>(5000, "the needle 5000")));
}

TEST(LogScan, WhatALogIsFullOfIsNotWhatItIsSearchedFor) {
  // Every line holds the literal; the expression's own word stands on one.
  auto p = pattern({"connect"}, "(?i)(socket|sockets?)\\w* connect.* (no route to host|unreachable [0-9]+)");
  std::string text;
  for (int i = 0; i < 200000; ++i) text += "connect to peer " + std::to_string(i) + "\n";
  LogScan s({{&p}});
  const std::string all = text + "Socket connect: UNREACHABLE 7\n" + text;
  int64_t line = 0;
  ASSERT_TRUE(s.run(read_text(all), [&](size_t, const LogLine& l) { line = l.number; }));
  EXPECT_EQ(line, 200001);
  EXPECT_LT(s.loads()[0].tries, 50000);
  s.set_patience(-1);
  ASSERT_TRUE(s.run(read_text(all), [&](size_t, const LogLine& l) { line = l.number; }));
  EXPECT_EQ(line, 200001);
  EXPECT_EQ(s.loads()[0].tries, 400000);
}

TEST(LogScan, TheLineComesWithTheOneAfterIt) {
  auto p = pattern({"needle"});
  LogScan s({{&p}});
  std::vector<std::string> next;
  ASSERT_TRUE(s.run(read_text("needle 1\r\nafter\r\nneedle 2\n\nneedle 3"),
                    [&](size_t, const LogLine& l) { next.emplace_back(l.next); }));
  EXPECT_EQ(next, (std::vector<std::string>{"after", "", ""}));
}

}  // namespace
}  // namespace ep
