#include "recipe/toml.h"

namespace ep {
namespace {

TEST(Toml, ErrorsHavePlaceAndReason) {
  auto r = parse_toml("a = 1\nb = = 2\n", "data/x.toml");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, ErrorKind::malformed);
  EXPECT_EQ(r.error().where.substr(0, 14), "data/x.toml:2:");
  EXPECT_FALSE(r.error().why.empty());
}

TEST(Toml, ReaderCollectsEveryMistakeWithItsLine) {
  auto doc = parse_toml("titlee = \"x\"\ncount = \"three\"\nlist = [\"a\", 2]\nkind = \"sof\"\n", "f.toml");
  ASSERT_TRUE(doc);
  std::vector<Error> errors;
  TomlReader r(*doc, "f.toml", errors);
  EXPECT_EQ(r.text("title"), "");
  EXPECT_EQ(r.integer("count", 7), 7);
  EXPECT_EQ(r.strings("list"), std::vector<std::string>{"a"});
  EXPECT_EQ(r.one_of("kind", {"soft", "hard"}, "hard"), "hard");
  r.text("needed", true);
  r.finish();
  ASSERT_EQ(errors.size(), 5u);
  EXPECT_EQ(errors[0].where, "f.toml:2:9");
  EXPECT_EQ(errors[1].where, "f.toml:3:14");
  EXPECT_EQ(errors[2].next, "did you mean \"soft\"?");
  EXPECT_NE(errors[3].what.find("needed"), std::string::npos);
  EXPECT_NE(errors[4].what.find("titlee"), std::string::npos);
  EXPECT_EQ(errors[4].next, "did you mean \"title\"?");
}

TEST(Toml, NoiseIsAnErrorNeverACrash) {
  for (std::string_view bad : {"\xff\xfe", "[", "[[a]", "a = \"", "a.b.c", "= 1", "[a]\n[a]\n"})
    EXPECT_FALSE(parse_toml(bad, "n")) << bad;
  EXPECT_TRUE(parse_toml("", "n"));
}

}  // namespace
}  // namespace ep
