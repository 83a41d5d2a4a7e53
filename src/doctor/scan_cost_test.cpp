#include "doctor/scan_cost.h"

namespace ep {
namespace {

Catalogue catalogue(const std::string& signature) {
  std::vector<Error> errors;
  Catalogue c;
  c.problems.push_back({});
  Problem& p = c.problems.back();
  p.file = "data/problems/p.x.toml";
  Signature s;
  s.line_in_file = 7;
  s.pattern.literals = {"throughput"};
  s.pattern.regex_text = signature;
  std::string error;
  s.pattern.regex = compile_regex(signature, false, &error);
  EXPECT_EQ(error, "");
  p.signatures.push_back(std::move(s));
  return c;
}

TEST(ScanCost, WordsOfEveryHarmlessLineAreDear) {
  const auto dear = dear_patterns(catalogue("throughput.*(low|bad)"));
  ASSERT_EQ(dear.size(), 1u);
  EXPECT_EQ(dear[0].where, "data/problems/p.x.toml:7");
  EXPECT_EQ(dear[0].literal, "throughput");
  EXPECT_GT(dear[0].tries_per_mb, kDearTriesPerMb);
  EXPECT_FALSE(dear[0].log.empty());
}

TEST(ScanCost, ARareWordInTheExpressionMakesItCheap) {
  EXPECT_TRUE(dear_patterns(catalogue("throughput.*(collapsed|[0-9]+ times? slower)")).empty());
}

}  // namespace
}  // namespace ep
