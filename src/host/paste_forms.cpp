// See paste_forms.h. Each dress has its own sure sign; without it nothing is touched.
#include "host/paste_forms.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/text.h"

namespace ep {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

// Mail and web quotes: most lines start with '>'. Taken off as often as it is so.
std::string unquote(std::string text) {
  for (int round = 0; round < 4; ++round) {
    size_t quoted = 0, filled = 0;
    auto all = lines(text);
    for (auto l : all) {
      filled += !trim(l).empty();
      quoted += starts_with(l, ">");
    }
    if (filled < 2 || quoted * 10 < filled * 8) break;
    std::string out;
    for (auto l : all) {
      if (starts_with(l, "> "))
        l.remove_prefix(2);
      else if (starts_with(l, ">"))
        l.remove_prefix(1);
      out += std::string(l) + "\n";
    }
    text = std::move(out);
  }
  return text;
}

// A line of a log in JSON: "...\\tGPU0\\tGPU1\\n...". Only where it holds several escaped line ends.
void unescape_line(std::string_view line, std::string& out) {
  for (size_t i = 0; i < line.size(); ++i) {
    char next = line[i] == '\\' && i + 1 < line.size() ? line[i + 1] : 0;
    if (next == 'n' || next == 't' || next == '"' || next == '\\' || next == 'r') {
      out += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? ' ' : next;
      ++i;
    } else if (next == 'u' && starts_with(line.substr(i), "\\u001b")) {
      out += '\x1b';
      i += 5;
    } else {
      out += line[i] == '"' ? '\n' : line[i];  // a string's ends
    }
  }
}

size_t count_of(std::string_view s, std::string_view part) {
  size_t n = 0;
  for (size_t at = s.find(part); at != s.npos; at = s.find(part, at + part.size())) ++n;
  return n;
}

std::string unescape(std::string text) {
  if (count_of(text, "\\n") < 4) return text;
  std::string out;
  for (auto l : lines(text)) {
    if (count_of(l, "\\n") >= 4)
      unescape_line(l, out);
    else
      out += l;
    out += '\n';
  }
  return out;
}

bool label(std::string_view t) {
  for (std::string_view head : {"GPU", "NIC", "mlx5_"})
    if (starts_with(t, head) && t.size() > head.size() && digit(t[head.size()])) return true;
  return false;
}

// Length of the time or source that a log puts before every line; digits differ, so they are masked.
size_t log_prefix(const std::vector<std::string_view>& all) {
  auto same = [](char a, char b) { return a == b || (digit(a) && digit(b)); };
  std::string_view first;
  size_t length = 0, with = 0, filled = 0;
  for (auto l : all) {
    if (trim(l).empty()) continue;
    ++filled;
    if (first.empty()) {
      first = l;
      length = l.size();
    }
    size_t n = 0;
    while (n < length && n < l.size() && same(l[n], first[n])) ++n;
    if (n < 8) continue;  // a line of somebody else
    length = n;
    ++with;
  }
  if (with < 4 || with * 10 < filled * 8) return 0;
  size_t end = first.substr(0, length).find_last_of(" \t|]");
  if (end == first.npos) return 0;
  std::string_view p = first.substr(0, end + 1);
  std::string mask(p);
  for (char& c : mask) c = digit(c) ? '0' : c;
  bool time = starts_with(mask, "0000-00-00") || starts_with(mask, "[0000-00-00") ||
              starts_with(mask, "0000/00/00") || starts_with(mask, "00:00:00") || starts_with(mask, "[pod/");
  size_t bar = p.find("| ");
  bool named = bar != p.npos && bar > 0 && p.find('|') == bar &&
               std::isalnum(static_cast<unsigned char>(p[0])) && !label(p);
  if (!time && !named) return 0;
  if (!time) return bar + 2;
  return end + 1;
}

std::string without_log_prefix(std::string text) {
  auto all = lines(text);
  size_t n = log_prefix(all);
  if (n == 0) return text;
  auto same = [](char a, char b) { return a == b || (digit(a) && digit(b)); };
  std::string_view first;
  std::string out;
  for (auto l : all) {
    if (first.empty() && !trim(l).empty()) first = l;
    bool has = l.size() >= n && std::equal(l.begin(), l.begin() + long(n), first.begin(), same);
    out += std::string(has ? l.substr(n) : l) + "\n";
  }
  return out;
}

// Number and end of the number that `cat -n` ("  12\t") or `grep -n` ("12:") puts before a line; 0 when there
// is none. Not "2: eth0" of ip, not "01:00.0" of lspci.
size_t line_number(std::string_view l, long long& number) {
  size_t from = l.find_first_not_of(' ');
  if (from == l.npos || !digit(l[from]) || l[from] == '0') return 0;
  size_t end = from;
  while (end < l.size() && digit(l[end]) && end - from < 9) ++end;
  number = parse_int(l.substr(from, end - from)).value_or(0);
  if (end == l.size()) return from > 0 ? end : 0;  // an empty line of cat -n
  if (l[end] == '\t') return end + 1;
  if (l[end] != ':' || from > 0) return 0;
  // One blank is part of ip's own numbering; a line that was indented has more.
  const bool own = end + 2 < l.size() && l[end + 1] == ' ' && l[end + 2] != ' ';
  return own ? 0 : end + 1;
}

std::string without_line_numbers(std::string text) {
  auto all = lines(text);
  size_t with = 0, filled = 0;
  long long last = 0, number = 0;
  for (auto l : all) {
    if (trim(l).empty()) continue;
    ++filled;
    if (line_number(l, number) == 0 || number <= last || (last == 0 && number != 1)) continue;
    last = number;
    ++with;
  }
  if (with < 4 || with * 10 < filled * 9) return text;
  std::string out;
  for (auto l : all) out += std::string(l.substr(line_number(l, number))) + "\n";
  return out;
}

// Text out of a page's source.
std::string without_html(std::string text) {
  if (!contains(text, "&nbsp;") && !contains(text, "<br")) return text;
  for (auto [from, to] : {std::pair{"<br/>\n", "\n"},
                          {"<br />\n", "\n"},
                          {"<br>\n", "\n"},
                          {"<br/>", "\n"},
                          {"<br />", "\n"},
                          {"<br>", "\n"},
                          {"&nbsp;", " "},
                          {"&#9;", "\t"},
                          {"&lt;", "<"},
                          {"&gt;", ">"},
                          {"&quot;", "\""},
                          {"&amp;", "&"}})
    text = replace_all(std::move(text), from, to);
  return text;
}

bool link_class(std::string_view t) {
  for (std::string_view c : {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"})
    if (t == c) return true;
  return starts_with(t, "NV") && t.size() > 2 && t.size() <= 4 && digit(t[2]);
}

// "**GPU0**", "`mlx5_0`": a word without Markdown's marks around it.
std::string_view unmarked(std::string_view t) {
  t = trim(t);
  for (std::string_view mark : {"**", "__", "`", "*"})
    while (t.size() > 2 * mark.size() && starts_with(t, mark) && ends_with(t, mark))
      t = trim(t.substr(mark.size(), t.size() - 2 * mark.size()));
  return t;
}

// "| GPU0 | X | NV18 |": a matrix as a Markdown table.
std::string markdown_row(std::string_view line) {
  std::string_view t = trim(line);
  if (!starts_with(t, "|") || !ends_with(t, "|") || t.size() < 5) return {};
  std::vector<std::string> cells;
  for (auto c : split(t.substr(1, t.size() - 2), '|')) cells.emplace_back(unmarked(c));
  if (cells.size() < 3) return {};
  if (!label(cells[0]) && label(cells[1]) && label(cells[2])) cells[0].clear();  // the corner may be named
  bool row = label(cells[0]) && link_class(cells[1]);
  bool head = cells[0].empty() && label(cells[1]);
  return row || head ? join(cells, "\t") : std::string();
}

// "- NIC0: `mlx5_0`", "**NIC Legend**": the legend as a Markdown list and its heading.
std::string markdown_legend(std::string_view line) {
  std::string_view t = trim(line);
  if (starts_with(t, "#"))
    t = trim(t.substr(t.find_first_not_of('#') == t.npos ? t.size() : t.find_first_not_of('#')));
  else if (t.find_first_of("*`_") == t.npos)
    return {};
  if (const auto head = unmarked(t); head == "NIC Legend" || head == "NIC Legend:") return "NIC Legend:";
  for (std::string_view bullet : {"- ", "* ", "+ "})
    if (starts_with(t, bullet)) t = trim(t.substr(2));
  const size_t colon = t.find(':');
  if (colon == t.npos) return {};
  const auto key = unmarked(t.substr(0, colon)), name = unmarked(t.substr(colon + 1));
  if (!starts_with(key, "NIC") || !label(key) || name.empty() || name.find(' ') != name.npos) return {};
  return "  " + std::string(key) + ": " + std::string(name);
}

// A table in one line: every label that a class follows begins a row, and the legend its own lines.
void unfold_line(std::string_view line, std::string& out) {
  auto words = split_ws(line);
  for (size_t i = 0; i < words.size(); ++i) {
    auto next = i + 1 < words.size() ? words[i + 1] : std::string_view();
    bool row = label(words[i]) && link_class(next);
    bool legend = words[i] == "Legend:" || (words[i] == "NIC" && next == "Legend:") ||
                  (starts_with(words[i], "NIC") && label(words[i]) && ends_with(words[i], ":"));
    bool after_nic = words[i] == "Legend:" && i > 0 && words[i - 1] == "NIC";
    if (i > 0) out += (row || legend) && !after_nic ? '\n' : ' ';
    out += words[i];
  }
}

bool folded(std::string_view line) {
  return line.size() > 80 && contains(line, "Affinity") && count_of(line, "GPU0") >= 2 &&
         (contains(line, "GPU0 X") || contains(line, "GPU0\tX") || contains(line, "GPU0  X") ||
          contains(line, "GPU0 \tX"));
}

}  // namespace

std::string plain_paste(std::string text) {
  text = without_line_numbers(without_log_prefix(unescape(without_html(unquote(std::move(text))))));
  std::string out;
  bool changed = false;
  for (auto l : lines(text)) {
    if (folded(l)) {
      unfold_line(l, out);
      changed = true;
    } else if (auto row = markdown_row(l); !row.empty()) {
      out += row;
      changed = true;
    } else if (auto legend = markdown_legend(l); !legend.empty()) {
      out += legend;
      changed = true;
    } else {
      out += l;
    }
    out += '\n';
  }
  return changed ? out : text;
}

}  // namespace ep
