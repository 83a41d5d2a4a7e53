// The scan against the plain meaning of the patterns: mixtures of fixtures, harmless logs and colours are
// read by LogScan, with the words it begins with and with words chosen anew behind every block, and line by
// line by every pattern; the same lines must match. And what makes that so: a weaker expression matches all
// that its original matches, and one word of every set that may be chosen stands on every line that matches.
#include <gtest/gtest.h>
#include <re2/re2.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "base/text.h"
#include "doctor/anchors.h"
#include "doctor/bench_logs.h"
#include "doctor/log_scan.h"
#include "doctor/rank.h"
#include "doctor/text_facts.h"
#include "doctor/text_find.h"
#include "recipe/data_files.h"

namespace ep {
namespace {

namespace fs = std::filesystem;

const Catalogue& catalogue() {
  static const Catalogue kAll = [] {
    std::vector<Error> errors;
    auto files = data_files("problems", "");
    return files ? load_catalogue(*files, errors) : Catalogue{};
  }();
  return kAll;
}

std::vector<const LinePattern*> all_patterns() {
  std::vector<const LinePattern*> out;
  for (const Problem& p : catalogue().problems) {
    for (const auto& s : p.signatures) out.push_back(&s.pattern);
    for (const auto& s : p.against) out.push_back(&s.pattern);
  }
  for (const auto& f : fact_patterns())
    if (!f.pattern.literals.empty()) out.push_back(&f.pattern);
  return out;
}

/// All fixtures, in one text each.
const std::vector<std::string>& fixtures() {
  static const std::vector<std::string> kAll = [] {
    std::vector<std::string> out;
    std::vector<fs::path> paths;
    for (const auto& f : fs::recursive_directory_iterator(fs::path(EP_SOURCE_DIR) / "test"))
      if (f.path().extension() == ".log") paths.push_back(f.path());
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      std::ifstream in(path, std::ios::binary);
      std::stringstream s;
      s << in.rdbuf();
      out.push_back(s.str());
    }
    return out;
  }();
  return kAll;
}

using Found = std::set<std::pair<size_t, int64_t>>;  ///< pattern, line

Found by_hand(const std::vector<const LinePattern*>& patterns, const std::string& text) {
  Found out;
  int64_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    for (std::string_view piece : split(line, '\r')) {
      const std::string plain = contains(piece, "\x1b") ? strip_ansi(piece) : std::string(piece);
      for (size_t p = 0; p < patterns.size(); ++p)
        if (patterns[p]->matches(plain)) out.emplace(p, number);
    }
  }
  return out;
}

Found by_scan(const std::vector<const LinePattern*>& patterns, std::string_view text, int64_t patience,
              unsigned seed) {
  std::vector<ScanPattern> rows;
  for (const auto* p : patterns) rows.push_back({p, INT64_MAX, INT64_MAX});
  LogScan scan(std::move(rows));
  scan.set_patience(patience);
  std::mt19937 random(seed);
  Found out;
  int64_t last = 0;
  auto notes = scan.run(
      [&](char* into, size_t most) -> Result<size_t> {
        const size_t n = std::min({most, text.size(), size_t(1 + random() % 90000)});
        std::memcpy(into, text.data(), n);
        text.remove_prefix(n);
        return n;
      },
      [&](size_t p, const LogLine& l) {
        EXPECT_TRUE(out.emplace(p, l.number).second) << "told twice: line " << l.number;
        EXPECT_GE(l.number, last);
        last = l.number;
      });
  EXPECT_TRUE(notes.has_value());
  return out;
}

std::string mixture(unsigned seed) {
  std::mt19937 random(seed);
  std::string out;
  for (int i = 0; i < 60; ++i) {
    const auto& logs = bench_logs();
    out += make_bench_log(logs[random() % logs.size()].name, random() % 6000, unsigned(random()));
    const std::string& f = fixtures()[random() % fixtures().size()];
    for (std::string_view line : split(f, '\n')) {
      const int dress = int(random() % 8);
      if (dress == 0) out += "\x1b[31m";
      const size_t cut = random() % (line.size() + 1);
      out += dress == 1 ? std::string(line.substr(0, cut)) + "\x1b[1;32m" + std::string(line.substr(cut))
                        : std::string(line);
      if (dress == 0) out += "\x1b[0m";
      if (dress == 2) out += '\r';
      out += dress == 3 && cut % 2 ? '\r' : '\n';
    }
  }
  return out;
}

TEST(Scan, FindsTheLinesThatThePatternsMeanWhateverWordsItSearchesFor) {
  const auto patterns = all_patterns();
  ASSERT_GT(patterns.size(), 500u);
  ASSERT_FALSE(fixtures().empty());
  for (unsigned seed : {1u, 2u, 3u}) {
    const std::string text = mixture(seed);
    const Found want = by_hand(patterns, text);
    EXPECT_GT(want.size(), 300u);
    for (int64_t patience : {int64_t(-1), int64_t(0), int64_t(50), int64_t(16384)}) {
      const Found got = by_scan(patterns, text, patience, seed);
      for (const auto& [p, line] : want)
        if (!got.count({p, line}))
          ADD_FAILURE() << "seed " << seed << " patience " << patience << ": missed on line " << line << ": "
                        << patterns[p]->literals[0] << " /" << patterns[p]->regex_text << "/";
      for (const auto& [p, line] : got)
        if (!want.count({p, line}))
          ADD_FAILURE() << "seed " << seed << " patience " << patience << ": line " << line << " has no "
                        << patterns[p]->literals[0] << " /" << patterns[p]->regex_text << "/";
    }
  }
}

TEST(Scan, AWordOfEverySetStandsOnEveryLineThatMatches) {
  std::mt19937 random(7);
  std::vector<std::string_view> lines_of_all;
  for (const auto& f : fixtures())
    for (std::string_view line : lines(f)) lines_of_all.push_back(line);
  int matches = 0, with_words = 0;
  for (const LinePattern* p : all_patterns()) {
    if (!p->regex) continue;
    const Anchors anchors(*p);
    std::string error;
    const auto weak = compile_regex(relaxed(p->regex_text), p->ignore_case, &error);
    ASSERT_EQ(error, "") << p->regex_text << " -> " << relaxed(p->regex_text);
    with_words += anchors.words().size() > p->literals.size();
    const auto stands = [&](const AnchorSet& set, std::string_view line) {
      return std::any_of(set.begin(), set.end(),
                         [&](const auto& l) { return has_word(line, l.text, l.ignore_case); });
    };
    for (std::string_view line : lines_of_all) {
      if (!p->matches(line)) continue;
      ++matches;
      EXPECT_TRUE(re2::RE2::PartialMatch(line, *weak) || re2::RE2::PartialMatch(past_prefix(line), *weak))
          << relaxed(p->regex_text) << "\n"
          << line;
      for (int round = 0; round < 3; ++round) {
        const LiteralCost cost = [&](const LiteralScan::Literal&) { return double(random() % 100); };
        const AnchorSet set = anchors.cheapest(cost), check = anchors.check(set, cost);
        ASSERT_FALSE(set.empty());
        EXPECT_TRUE(stands(set, line)) << set[0].text << " of /" << p->regex_text << "/\n" << line;
        EXPECT_TRUE(check.empty() || stands(check, line))
            << check[0].text << " of /" << p->regex_text << "/\n"
            << line;
      }
    }
  }
  std::printf("%d lines matched; words from %d expressions\n", matches, with_words);
  EXPECT_GT(matches, 1000);
  EXPECT_GT(with_words, 100);
}

TEST(Scan, WeakerExpressions) {
  EXPECT_EQ(relaxed(R"(deep_?ep\d+)"), R"(deep(?:_|)ep.+)");
  EXPECT_EQ(relaxed(R"(https?://\S*)"), R"(http(?:s|)://.*)");
  EXPECT_EQ(relaxed(R"(a=(5\d|6\d)\b)"), R"(a=(?:(5|6).)\b)");
  EXPECT_EQ(relaxed(R"((?:5\d\.\d|6\w\.\d)?x)"), R"((?:(?:(?:5.\.|6.\.).)|)x)");
  EXPECT_EQ(relaxed(R"(a[-_]b[^x]*?c)"), R"(a[-_]b.*?c)");
  EXPECT_EQ(relaxed(R"((?i)x(?:ab|c)?\?)"), R"((?i)x(?:(?:ab|c)|)\?)");
  EXPECT_EQ(relaxed(R"(a{2,3}?b\))"), R"(a{2,3}?b\))");
}

}  // namespace
}  // namespace ep
