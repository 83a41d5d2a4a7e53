#include "report/look.h"

using namespace ep;

TEST(Look, BarIsAsWideAsAsked) {
  Look plain;
  EXPECT_EQ(bar(plain, 0.5, 10), "#####.....");
  EXPECT_EQ(bar(plain, 7, 4), "####");
  EXPECT_EQ(bar(plain, -1, 4), "....");
  Look nice;
  nice.unicode = true;
  for (double share : {0.0, 0.01, 0.3, 0.5, 0.99, 1.0, 2.0})
    EXPECT_EQ(display_width(bar(nice, share, 20)), 20u) << share;
}

TEST(Look, MarksHaveOneWidth) {
  Look plain;
  for (Verdict v :
       {Verdict::pass, Verdict::warn, Verdict::fail, Verdict::skip, Verdict::not_run, Verdict::unknown})
    EXPECT_EQ(verdict_mark(plain, v).size(), 7u);
}

TEST(Look, WrapKeepsWordsWhole) {
  EXPECT_EQ(wrap("one two three four", 10, 2), "one two\n  three\n  four");
  EXPECT_EQ(wrap("", 10, 2), "");
  EXPECT_EQ(wrap("averyveryverylongword x", 10, 2), "averyveryverylongword\n  x");
}
