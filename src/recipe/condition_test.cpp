// The one grammar of conditions and its one evaluator: kinds of values, operators, three answers, what
// decided.
#include "recipe/condition.h"

#include <gtest/gtest.h>

namespace ep {
namespace {

/// Names with kinds, several values and gaps, as the doctor's facts have them.
class Some : public Names {
 public:
  std::map<std::string, NameAnswer, std::less<>> rows;
  NameAnswer ask(std::string_view name) const override {
    const auto found = rows.find(name);
    return found == rows.end() ? NameAnswer{} : found->second;
  }
  void add(const std::string& name, ValueKind kind, std::vector<std::string_view> values, size_t counts = 0) {
    rows[name] = {true, !values.empty(), kind, std::move(values), counts, nullptr};
  }
};

Some some() {
  Some s;
  s.add("v", ValueKind::version, {"3.5.19"});
  s.add("n", ValueKind::number, {"30.5"});
  s.add("word", ValueKind::number, {"many"});
  s.add("b", ValueKind::boolean, {"Y"});
  s.add("names", ValueKind::text, {"mlx5_0", "rocep1s0", "efa"}, 1);
  s.add("gone", ValueKind::text, {});
  return s;
}
Truth ask(const Names& names, std::string_view text) {
  auto c = Condition::parse(text);
  EXPECT_TRUE(c) << text << ": " << (c ? "" : c.error().text());
  return c ? c->judge(names).truth : Truth::unknown;
}

TEST(Condition, KindsDecideHowValuesCompare) {
  const Some s = some();
  for (const char* yes :
       {"v >= 3.5.9", "v == 3.5.19", "v < 3.6", "n > 9", "n == 30.50", "n in 1, 30.5", "b == true", "b == on",
        "b != false", "names == EFA", "names matches ^roce.*s0$", "names matches a|^x", "names contains LX5",
        "names in irdma,efa", "names != bnxt", "gone unset", "gone != x", "v set", "nobody set | n > 9"})
    EXPECT_EQ(ask(s, yes), Truth::yes) << yes;
  for (const char* no : {"v < 3.5.9", "n > 100", "b == false", "names matches ^ib", "names != efa",
                         "gone set", "gone == x", "gone contains x", "v unset", "n > 100 | b == false"})
    EXPECT_EQ(ask(s, no), Truth::no) << no;
  for (const char* unknown : {"nobody == x", "nobody != x", "nobody unset", "word > 3", "names has x",
                              "n > 100 | nobody set", "v >= {nobody}"})
    EXPECT_EQ(ask(s, unknown), Truth::unknown) << unknown;
  EXPECT_EQ(ask(s, "n >= {n}"), Truth::yes);
  EXPECT_EQ(ask(s, "v matches ^3.{3}"), Truth::yes) << "braces of a regular expression are its own";
}

TEST(Condition, SaysWhatDecided) {
  const Some s = some();
  const auto judge = [&](std::string_view text) { return Condition::parse(text)->judge(s); };
  EXPECT_EQ(judge("n > 100 | names == efa").atom, 1u);
  EXPECT_EQ(judge("n > 100 | names == efa").value, 2);
  EXPECT_EQ(judge("names == nothing").value, 1) << "the one that counts";
  EXPECT_EQ(judge("nobody set | n > 100").value, -1) << "nobody knows";
  EXPECT_EQ(judge("nobody set | n > 100").atom, 0u);
  EXPECT_EQ(judge("gone set").value, -1) << "known to be absent";
}

TEST(Condition, MistakesAreNamed) {
  struct Row {
    const char *text, *why;
  };
  for (const Row& row : std::initializer_list<Row>{{"", "NAME OP VALUE"},
                                                   {"a", "NAME OP VALUE"},
                                                   {"a ==", "value is missing"},
                                                   {"a set 3", "takes no value"},
                                                   {"a => 3", "unknown operator"},
                                                   {"a/b == c", "is not a name"},
                                                   {"a == b |", "alternative"},
                                                   {"a == b | | c == d", "is not a name"},
                                                   {"a matches (", "regular expression"}}) {
    auto c = Condition::parse(row.text);
    ASSERT_FALSE(c) << row.text;
    EXPECT_NE(c.error().why.find(row.why), std::string::npos) << row.text << ": " << c.error().why;
  }
}

TEST(Condition, AllOfNothingIsTrueAndNoBeatsUnknown) {
  EXPECT_EQ(all_of({}), Truth::yes);
  EXPECT_EQ(all_of({Truth::yes, Truth::unknown}), Truth::unknown);
  EXPECT_EQ(all_of({Truth::unknown, Truth::no}), Truth::no);
}

}  // namespace
}  // namespace ep
