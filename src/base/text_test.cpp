// Text tools: literal cases, and /bin/sh as the oracle of quoting.
#include "base/text.h"

#include <cstdio>
#include <random>

#include "base/term.h"

namespace ep {
namespace {

TEST(Text, SplitsAndTrims) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
  EXPECT_EQ(split_ws("  a\t b\n"), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_EQ(lines("a\r\nb\n\nc"), (std::vector<std::string_view>{"a", "b", "", "c"}));
  EXPECT_EQ(lines("a\n"), (std::vector<std::string_view>{"a"}));
  EXPECT_EQ(trim(" \t x y\r\n"), "x y");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, ReadsNumbersWhole) {
  EXPECT_EQ(parse_int("0x1f"), 31);
  EXPECT_EQ(parse_int("0X1F"), 31);
  EXPECT_EQ(parse_int("31"), 31);
  EXPECT_EQ(parse_int("-4"), -4);
  EXPECT_EQ(parse_int("-0x10"), -16);
  EXPECT_EQ(parse_int("010"), 10);  // a leading zero is no octal here
  EXPECT_EQ(parse_int("9223372036854775807"), 9223372036854775807LL);
  EXPECT_EQ(parse_int("-9223372036854775808"), (-9223372036854775807LL - 1));
  for (auto bad : {"", "-", "0x", "x", "1 ", " 1", "1.0", "0xg", "9223372036854775808", "--1", "1k"})
    EXPECT_FALSE(parse_int(bad)) << bad;
  EXPECT_EQ(parse_double("2.5"), 2.5);
  EXPECT_EQ(parse_double("-1e3"), -1000);
  for (auto bad : {"", "nan", "inf", "1.5 GT/s", " 1", "[N/A]", "+", "-inf"})
    EXPECT_FALSE(parse_double(bad)) << bad;
}

TEST(Text, SuggestsTheClosestWord) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("hlep", "help"), 1u);  // neighbours swapped: one slip of the hand
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(closest("topolgy", {"plan", "topology"}), "topology");
  EXPECT_EQ(closest("FACT", {"facts", "plan"}), "facts");
  EXPECT_FALSE(closest("zzz", {"facts", "plan"}));
}

std::string sh_reads(const std::string& quoted) {
  FILE* p = popen(("printf %s " + quoted).c_str(), "r");
  std::string out;
  for (int c; (c = fgetc(p)) != EOF;) out += char(c);
  pclose(p);
  return out;
}

TEST(Text, ShellReadsBackWhatWasQuoted) {
  std::mt19937 random(7);
  const std::string alphabet = "ab'\"\\ $`!*?~#&|;<>(){}[]=-\n\t%^";
  for (std::string s : {"", "plain", "~", "=x", "-n", "it's", "a b", "$(id)", "\xe4\xb8\xad"}) {
    EXPECT_EQ(sh_reads(shell_quote(s) == "-n" ? "%s" : shell_quote(s)), s == "-n" ? "%s" : s);
  }
  for (int i = 0; i < 60; ++i) {
    std::string s;
    for (int n = int(random() % 12); n-- > 0;) s += alphabet[random() % alphabet.size()];
    EXPECT_EQ(sh_reads(shell_quote(s)), s);
  }
  EXPECT_EQ(shell_join({"a", "b c", ""}), "a 'b c' ''");
}

TEST(Text, OrdersNaturally) {
  EXPECT_TRUE(natural_less("mlx5_2", "mlx5_10"));
  EXPECT_FALSE(natural_less("mlx5_10", "mlx5_2"));
  EXPECT_TRUE(natural_less("mlx5_02", "mlx5_2"));
  EXPECT_FALSE(natural_less("a", "a"));
  EXPECT_TRUE(natural_less("a", "a1"));
  EXPECT_TRUE(natural_less("GPU0", "NIC0"));
}

TEST(Text, MeasuresColumns) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("中文a"), 5u);
  EXPECT_EQ(display_width("─│"), 2u);
  EXPECT_EQ(display_width("\xff\xfe"), 2u);
  EXPECT_EQ(pad("中", 4), "中  ");
  EXPECT_EQ(pad("abcdef", 3), "abcdef");
}

TEST(Text, SaysBytesInDecimalSteps) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1500), "1.5 kB");
  EXPECT_EQ(human_bytes(999960), "1.0 MB");
  EXPECT_EQ(human_bytes(143e9), "143.0 GB");
}

TEST(Text, StripsEscapes) {
  EXPECT_EQ(strip_ansi("\x1b[4mGPU0\x1b[0m\tX"), "GPU0\tX");
  EXPECT_EQ(strip_ansi("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07!"), "link!");
  EXPECT_EQ(strip_ansi("a\rb\x07"
                       "c\x1b"),
            "abc");
  EXPECT_EQ(strip_ansi("\x1b["), "");
}

TEST(Text, FindsAndReplaces) {
  EXPECT_TRUE(icontains("Open Kernel Module", "KERNEL"));
  EXPECT_FALSE(icontains("abc", "abd"));
  EXPECT_EQ(replace_all("aaa", "a", "bb"), "bbbbbb");
  EXPECT_EQ(replace_all("abc", "", "x"), "abc");
  EXPECT_TRUE(ends_with("x.tar.gz", ".tar.gz"));
  EXPECT_FALSE(starts_with("ab", "abc"));
}

TEST(Term, PaintsOnlyWithColour) {
  EXPECT_EQ(paint(Style::red, "x", false), "x");
  EXPECT_EQ(paint(Style::red, "x", true), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(paint(Style::plain, "x", true), "x");
}

}  // namespace
}  // namespace ep
