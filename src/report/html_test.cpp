#include "report/html.h"

using namespace ep;

TEST(Html, EscapesEverythingThatComesFromAHost) {
  HtmlPage p;
  p.title = "<script>alert(1)</script>";
  p.sections = {{"a",
                 "h\"<",
                 {HtmlParagraph{"x & y <b>", false}, HtmlTable{{"<h>"}, {{{"<td>", "fail", false}}}},
                  HtmlFold{"<s>", "<pre>"}}}};
  p.json = R"({"a":"</script>"})";
  std::string out = render_html(p);
  EXPECT_EQ(out.find("<script>alert"), std::string::npos);
  EXPECT_NE(out.find("x &amp; y &lt;b&gt;"), std::string::npos);
  EXPECT_NE(out.find("<span class=\"fail\">&lt;td&gt;</span>"), std::string::npos);
  // The data element must end once only.
  size_t ends = 0;
  for (size_t at = out.find("</script>"); at != std::string::npos; at = out.find("</script>", at + 1)) ++ends;
  EXPECT_EQ(ends, 1u);
}

TEST(Html, NeedsNothingFromOutside) {
  HtmlPage p;
  p.title = "t";
  p.overall = Outcome{Verdict::warn, "slow"};
  p.sections = {
      {"b", "bars", {HtmlBars{"GB/s", {{"dispatch", "5.0 GB/s", 5, 6, "ceiling 6.0", 0, "", ""}}}}}};
  std::string out = render_html(p);
  EXPECT_EQ(out.find("http"), std::string::npos);
  EXPECT_EQ(out.find("src="), std::string::npos);
  EXPECT_NE(out.find("class=\"badge warn\">WARN"), std::string::npos);
  EXPECT_NE(out.find("ceiling 6.0"), std::string::npos);
}

TEST(Html, ControlCharactersBecomeBlanks) {
  EXPECT_EQ(html_escape(std::string("a\x01"
                                    "b\x1b[0m\n\t")),
            "a b [0m\n\t");
}
