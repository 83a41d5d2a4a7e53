#include "report/html.h"

#include <fmt/core.h>

#include <algorithm>

namespace ep {
namespace {

// Two palettes by custom properties; print uses the light one. Tables scroll inside their own box on a phone.
constexpr std::string_view kStyle = R"(
:root{--bg:#fbfbfa;--fg:#1c1e21;--dim:#666d75;--line:#dfe2e5;--card:#fff;--pass:#1a7f4b;--warn:#9a6700;--fail:#c5221f;--bar:#3b6ea8;--track:#e9edf1}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e4e7ea;--dim:#98a1aa;--line:#30363c;--card:#1b1f23;--pass:#4cc38a;--warn:#e2b341;--fail:#ff7b72;--bar:#7aa9dd;--track:#2a3036}}
@media print{:root{--bg:#fff;--fg:#000;--dim:#555;--line:#ccc;--card:#fff;--pass:#1a7f4b;--warn:#9a6700;--fail:#c5221f;--bar:#3b6ea8;--track:#eee}details>*{display:block}section{break-inside:avoid}nav{display:none}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,"Segoe UI","Noto Sans","Noto Sans CJK SC",sans-serif}
main,header,footer{max-width:66rem;margin:0 auto;padding:0 1rem}
header{padding-top:1.6rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:0 0 .6rem}
p{margin:.4rem 0}.sub{color:var(--dim);margin:.2rem 0 .8rem}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.9rem;margin:.6rem 0 0}nav a{color:var(--bar);text-decoration:none}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:1rem;margin:1rem 0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .7rem .3rem 0;border-bottom:1px solid var(--line)}
th{color:var(--dim);font-weight:600}tr:last-child td{border-bottom:0}
code,pre{font:.88em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0;padding:.6rem;border:1px solid var(--line);border-radius:6px}
.pass{color:var(--pass);font-weight:600}.warn,.unknown{color:var(--warn);font-weight:600}.fail{color:var(--fail);font-weight:600}.skip,.not_run,.dim{color:var(--dim)}
.badge{display:inline-block;border:1.5px solid currentColor;border-radius:6px;padding:.05rem .6rem;margin-right:.6rem}
svg{max-width:100%;height:auto;display:block}svg text{fill:var(--fg);font:13px system-ui,sans-serif}
summary{cursor:pointer;color:var(--bar)}
footer{color:var(--dim);font-size:.85rem;padding-bottom:2rem}
)";

std::string tone_span(const std::string& text, const std::string& tone) {
  return tone.empty() ? html_escape(text)
                      : fmt::format("<span class=\"{}\">{}</span>", tone, html_escape(text));
}

std::string draw(const HtmlParagraph& p) {
  return p.code ? fmt::format("<pre><code>{}</code></pre>\n", html_escape(p.text))
                : fmt::format("<p>{}</p>\n", html_escape(p.text));
}

std::string draw(const HtmlTable& t) {
  std::string out = "<div class=\"scroll\"><table>\n";
  if (!t.head.empty()) {
    out += "<thead><tr>";
    for (const auto& h : t.head) out += "<th scope=\"col\">" + html_escape(h) + "</th>";
    out += "</tr></thead>\n";
  }
  out += "<tbody>\n";
  for (const auto& row : t.rows) {
    out += "<tr>";
    for (const auto& c : row)
      out += "<td>" + (c.code ? "<code>" + html_escape(c.text) + "</code>" : tone_span(c.text, c.tone)) +
             "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string draw(const HtmlBars& b) {
  double top = 0;
  for (const auto& x : b.bars) top = std::max({top, x.value, x.limit, x.mark});
  if (top <= 0) return {};
  constexpr int kLeft = 150, kWidth = 420, kRow = 46;
  int height = int(b.bars.size()) * kRow + 8;
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" width=\"{}\">\n",
                                kLeft + kWidth + 150, height, html_escape(b.unit), kLeft + kWidth + 150);
  int y = 4;
  for (const auto& x : b.bars) {
    auto at = [&](double v) { return kLeft + v / top * kWidth; };
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kLeft - 10, y + 17,
                       html_escape(x.label));
    out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"18\" rx=\"3\" fill=\"var(--track)\"/>",
                       kLeft, y + 3, kWidth);
    out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"18\" rx=\"3\" fill=\"var(--{})\"/>",
                       kLeft, y + 3, x.value / top * kWidth,
                       x.tone == "fail"   ? "fail"
                       : x.tone == "warn" ? "warn"
                                          : "bar");
    auto line = [&](double v, const std::string& text, int dash) {
      if (v <= 0) return;
      out += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"var(--fg)\" "
          "stroke-width=\"1.5\"{3}/>",
          at(v), y, y + 25, dash ? " stroke-dasharray=\"3 2\"" : "");
      out += fmt::format(
          "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"end\" style=\"font-size:11px\" class=\"dim\">{}</text>",
          at(v), y + 37, html_escape(text));
    };
    line(x.limit, x.limit_text, 0);
    line(x.mark, x.mark_text, 1);
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kLeft + kWidth + 8, y + 17,
                       html_escape(x.value_text));
    y += kRow;
  }
  return out + "</svg>\n";
}

std::string draw(const HtmlPicture& p) {
  return "<figure style=\"margin:0\">" + p.svg +
         (p.caption.empty() ? "" : "<figcaption class=\"dim\">" + html_escape(p.caption) + "</figcaption>") +
         "</figure>\n";
}

std::string draw(const HtmlFold& f) {
  return fmt::format("<details><summary>{}</summary><pre>{}</pre></details>\n", html_escape(f.summary),
                     html_escape(f.text));
}

}  // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // Other control characters are not allowed in HTML at all.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  return out;
}

std::string tone_of(Verdict verdict) {
  return lower(to_string(verdict));
}

std::string render_html(const HtmlPage& page) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" "
      "href=\"data:,\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<header>\n<h1>",
      page.lang == Lang::zh ? "zh" : "en", html_escape(page.title), kStyle);
  if (page.overall)
    out += fmt::format("<span class=\"badge {}\">{}</span>", tone_of(page.overall->verdict),
                       to_string(page.overall->verdict));
  out += fmt::format("{}</h1>\n<p class=\"sub\">{}</p>\n<nav>", html_escape(page.title),
                     html_escape(page.subtitle));
  for (const auto& s : page.sections)
    out += fmt::format("<a href=\"#{}\">{}</a>", s.id, html_escape(s.heading));
  out += "</nav>\n</header>\n<main>\n";
  for (const auto& s : page.sections) {
    out += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n", s.id, html_escape(s.heading));
    for (const auto& b : s.blocks) out += std::visit([](const auto& x) { return draw(x); }, b);
    out += "</section>\n";
  }
  out += fmt::format("</main>\n<footer><p>{}</p></footer>\n", html_escape(page.footer));
  // "</" inside a script element would end it; "<\/" is the same JSON.
  if (!page.json.empty())
    out += "<script type=\"application/json\" id=\"epready-data\">" + replace_all(page.json, "</", "<\\/") +
           "</script>\n";
  return out + "</body>\n</html>\n";
}

}  // namespace ep
