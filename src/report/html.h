// One self-contained HTML file from a small document model: no network, no script, light and dark, phone and
// paper. What stands in it is decided by the caller (report/host_page.cpp); this file only draws.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/finding.h"
#include "base/text.h"

namespace ep {

/// `tone` colours a cell: "", or the lower-case word of a verdict.
struct HtmlCell {
  std::string text, tone;
  bool code = false;
};
struct HtmlParagraph {
  std::string text;
  bool code = false;  ///< a command line
};
struct HtmlTable {
  std::vector<std::string> head;
  std::vector<std::vector<HtmlCell>> rows;
};
/// Horizontal bars on one scale. `limit` draws a line with its label (the ceiling), `mark` another (a
/// baseline).
struct HtmlBar {
  std::string label, value_text;
  double value = 0;
  double limit = 0;
  std::string limit_text;
  double mark = 0;
  std::string mark_text;
  std::string tone;
};
struct HtmlBars {
  std::string unit;
  std::vector<HtmlBar> bars;
};
/// Already an <svg> of ours; its texts must have been escaped by whoever drew it.
struct HtmlPicture {
  std::string svg, caption;
};
/// Folded text, shown on demand and on paper.
struct HtmlFold {
  std::string summary, text;
};
using HtmlBlock = std::variant<HtmlParagraph, HtmlTable, HtmlBars, HtmlPicture, HtmlFold>;

struct HtmlSection {
  std::string id, heading;
  std::vector<HtmlBlock> blocks;
};

struct HtmlPage {
  Lang lang = Lang::en;
  std::string title, subtitle;
  std::optional<Outcome> overall;
  std::vector<HtmlSection> sections;
  std::string json;  ///< embedded as data, for machines that get the page
  std::string footer;
};

std::string html_escape(std::string_view text);
std::string render_html(const HtmlPage& page);
/// The tone of a verdict: pass, warn, fail, skip, not_run, unknown.
std::string tone_of(Verdict verdict);

}  // namespace ep
