// See text_matrix.h. A row is read by known tokens and stops at the first other one, so lost separators do
// not shift cells; a row whose count or diagonal is wrong is dropped and only its column counterparts count.
#include "facts/text_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "base/words.h"

namespace ep {
namespace {

constexpr size_t kMaxLabels = 320;   // 64 GPUs and 256 functions: more is not a host
constexpr size_t kMaxTables = 32;    // of one text; each may take a square of its labels
constexpr size_t kMaxLegend = 4096;  // lines

bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
}

size_t digits_at(std::string_view s, size_t i) {
  size_t n = 0;
  while (i + n < s.size() && digit(s[i + n])) ++n;
  return n;
}

// Length of a link class at s[i], 0 when there is none.
size_t class_at(std::string_view s, size_t i) {
  std::string_view rest = s.substr(i);
  if (starts_with(rest, "NV")) {
    size_t n = digits_at(rest, 2);
    if (n > 0 && n <= 3) return 2 + n;
    return 0;
  }
  for (std::string_view t : {"PIX", "PXB", "PHB", "NODE", "SYS", "SOC"})
    if (starts_with(rest, t)) return t.size();
  if (rest[0] == 'X') return 1;
  return 0;
}

// Length of a numbered label (GPU3, NIC12, mlx5_4, mlx5_bond_0) at s[i]; 0 when there is none.
size_t numbered_label_at(std::string_view s, size_t i) {
  std::string_view rest = s.substr(i);
  for (std::string_view head : {"GPU", "NIC", "PPU", "mlx5_bond_", "mlx5_", "mlx4_"})
    if (starts_with(rest, head)) {
      size_t n = digits_at(rest, head.size());
      if (n > 0 && n <= 4) return head.size() + n;
    }
  return 0;
}

bool affinity_head(std::string_view token) {
  return starts_with(token, "CPU") || starts_with(token, "NUMA") || starts_with(token, "Affinity") ||
         token == "GPU" || token == "ID" || (!token.empty() && (token[0] & 0x80));
}

struct Header {
  std::vector<std::string> labels;
  bool glued = false, has_gpu_numa = false, foreign = false, ended = false;
};

bool starts_affinity(std::string_view s) {
  return starts_with(s, "CPU") || starts_with(s, "NUMA") || starts_with(s, "GPU NUMA");
}

// Adds the labels of one header line; false when the line is not (or no longer) a header.
bool read_header_line(std::string_view line, Header& h) {
  std::vector<std::string> found;
  size_t i = 0;
  bool glued = false;
  auto blank = [](char c) { return c == ' ' || c == '\t' || c == '|'; };
  while (i < line.size()) {
    if (blank(line[i])) {
      ++i;
      continue;
    }
    std::string_view rest = line.substr(i);
    if (starts_affinity(rest)) break;
    size_t end = i;
    while (end < line.size() && !blank(line[end])) ++end;
    std::string_view token = line.substr(i, end - i);
    if (affinity_head(token)) break;
    size_t pos = 0, count = 0;
    while (pos < token.size()) {
      size_t n = numbered_label_at(token, pos);
      if (n == 0) break;
      // Renamed devices of old drivers continue past the number: mlx5_0x is one name.
      found.emplace_back(token.substr(pos, n));
      pos += n;
      ++count;
    }
    if (count > 1) glued = true;
    if (pos < token.size()) {
      std::string_view tail = token.substr(pos);
      if (count > 0 && affinity_head(tail)) break;
      if (count > 0) return false;
      bool ok = std::isalpha(static_cast<unsigned char>(token[0])) &&
                std::all_of(token.begin(), token.end(), word_char);
      ok &= std::any_of(token.begin(), token.end(), digit);  // prose has words without numbers
      bool follows_gpu = !h.labels.empty() || !found.empty();
      if (!ok || !follows_gpu || class_at(token, 0) == token.size()) return false;
      found.emplace_back(token);
    }
    i = end;
    if (h.labels.size() + found.size() > kMaxLabels) return false;
  }
  bool device = false;
  for (const auto& f : found) {
    if (starts_with(f, "GPU") || starts_with(f, "PPU")) device = true;
    if (starts_with(f, "PPU")) h.foreign = true;
  }
  if (found.empty() || (h.labels.empty() && !device)) return false;
  for (auto& f : found) h.labels.push_back(std::move(f));
  h.glued |= glued;
  if (i < line.size()) {
    h.ended = true;
    h.has_gpu_numa |= contains(line.substr(i), "GPU NUMA");
  }
  return true;
}

struct Row {
  std::string label;
  std::vector<std::string> cells;
  std::string rest;  // text after the cells: affinities
  int line = 0;
  bool glued = false;
};

// Cells from s; returns where it stopped.
size_t read_cells(std::string_view s, Row& row) {
  size_t i = 0;
  bool separated = true;
  while (i < s.size()) {
    if (s[i] == ' ' || s[i] == '\t' || s[i] == '|') {
      separated = true;
      ++i;
      continue;
    }
    size_t n = class_at(s, i);
    if (n == 0) break;
    bool self = n == 1;
    // A lone letter inside a word is no self cell: "XML", "X16".
    if (self && i + 1 < s.size() && word_char(s[i + 1]) && class_at(s, i + 1) == 0) break;
    if (!separated && !(self || row.cells.back() == "X")) row.glued = true;
    std::string cell(s.substr(i, n));
    row.cells.push_back(cell == "SOC" ? "SYS" : cell);
    separated = false;
    i += n;
  }
  return i;
}

std::optional<Row> read_row(std::string_view raw, const std::vector<std::string>& labels) {
  std::string_view line = raw;
  while (!line.empty() && (line[0] == ' ' || line[0] == '\t' || line[0] == '|')) line.remove_prefix(1);
  const std::string* best = nullptr;
  for (const auto& l : labels)
    if (starts_with(line, l) && (!best || l.size() > best->size())) best = &l;
  if (!best) return std::nullopt;
  Row row;
  row.label = *best;
  std::string_view rest = line.substr(best->size());
  if (!rest.empty() && word_char(rest[0]) && class_at(rest, 0) == 0) return std::nullopt;
  size_t stop = read_cells(rest, row);
  if (row.cells.empty()) return std::nullopt;
  row.rest = std::string(rest.substr(stop));
  // Keep the tab before the affinities: an empty field is a field.
  if (stop > 0 && rest.substr(0, stop).find('\t') != std::string_view::npos) row.rest = "\t" + row.rest;
  return row;
}

bool only_cells(std::string_view line) {
  Row row;
  std::string_view t = trim(line);
  if (t.empty()) return false;
  read_cells(t, row);
  return !row.cells.empty();
}

bool cpu_list(std::string_view s) {
  return !s.empty() && digit(s[0]) &&
         std::all_of(s.begin(), s.end(), [](char c) { return digit(c) || c == '-' || c == ','; });
}

void read_affinity(const Row& row, bool has_gpu_numa, LinkMatrix& m) {
  std::string_view rest = row.rest;
  if (!rest.empty() && rest[0] == '\t') {
    auto f = split(rest.substr(1), '\t');
    if (f.size() >= 1 && cpu_list(trim(f[0]))) m.cpu_affinity[row.label] = trim(f[0]);
    if (f.size() >= 2 && cpu_list(trim(f[1]))) m.numa_affinity[row.label] = trim(f[1]);
    if (f.size() >= 4 && !trim(f[3]).empty()) m.gpu_numa[row.label] = trim(f[3]);
    return;
  }
  auto f = split_ws(rest);
  if (has_gpu_numa && !f.empty() && (f.back() == "N/A" || (f.size() >= 3 && cpu_list(f.back())))) {
    m.gpu_numa[row.label] = f.back();
    f.pop_back();
  }
  if (f.size() >= 1 && cpu_list(f[0])) m.cpu_affinity[row.label] = f[0];
  if (f.size() >= 2 && cpu_list(f[1])) m.numa_affinity[row.label] = f[1];
}

struct Table {
  Header header;
  std::vector<Row> rows;
  int line = 0;
  bool has_classes = false, has_nv_class = false;
};

Finding note(std::string code, Severity severity, BothWords title, const std::string& source, int line = 0,
             std::string text = {}) {
  Finding f;
  f.code = std::move(code);
  f.severity = severity;
  f.title = std::move(title.en);
  f.title_zh = std::move(title.zh);
  f.evidence.push_back({source, line, std::move(text)});
  return f;
}

int index_of(const std::vector<std::string>& v, const std::string& s) {
  auto it = std::find(v.begin(), v.end(), s);
  return it == v.end() ? -1 : int(it - v.begin());
}

// Puts the rows whose count and diagonal are right into the matrix; says what it left out.
void fill_cells(const Table& t, MatrixText& out, const std::string& source) {
  LinkMatrix& m = out.matrix;
  const size_t n = m.labels.size();
  m.cells.assign(n, std::vector<std::string>(n));
  int glued = 0;
  for (const Row& row : t.rows) {
    int i = index_of(m.labels, row.label);
    if (i < 0 || index_of(m.rows, row.label) >= 0) continue;
    bool is_gpu = starts_with(row.label, "GPU");
    bool ended = trim(row.rest).empty();
    size_t have = row.cells.size();
    bool diagonal = size_t(i) < have ? row.cells[size_t(i)] == "X" : true;
    long selves = std::count(row.cells.begin(), row.cells.end(), "X");
    if (have > n || !diagonal || selves > 1 || (have < n && (!ended || (is_gpu && size_t(i) >= have)))) {
      out.findings.push_back(note("paste_damaged", Severity::warn,
                                  both("row {} has {} cells, {} were expected; the row is not used",
                                       "行 {} 有 {} 个单元格，应为 {} 个；该行未采用", row.label, have, n),
                                  source, row.line, row.label));
      continue;
    }
    if (have < n) {
      m.cut = true;
      out.findings.push_back(note("paste_truncated", Severity::warn,
                                  both("row {} ends after {} of {} cells",
                                       "行 {} 在第 {} 个单元格处截断（应有 {} 个）", row.label, have, n),
                                  source, row.line, row.label));
    }
    if (row.glued) ++glued;
    for (size_t j = 0; j < have; ++j) m.cells[size_t(i)][j] = row.cells[j];
    m.rows.push_back(row.label);
    read_affinity(row, t.header.has_gpu_numa, m);
  }
  if (glued || t.header.glued)
    out.findings.push_back(
        note("paste_damaged", Severity::info,
             t.header.glued
                 ? both("separators were lost in {} rows and in the header; cells were read by their names",
                        "{} 行及表头丢失分隔符；已按单元格名称读取", glued)
                 : both("separators were lost in {} rows; cells were read by their names",
                        "{} 行丢失分隔符；已按单元格名称读取", glued),
             source, t.line));
}

void mirror(MatrixText& out, const std::string& source) {
  LinkMatrix& m = out.matrix;
  const size_t n = m.labels.size();
  int conflicts = 0;
  std::string first;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j) {
      std::string &a = m.cells[i][j], &b = m.cells[j][i];
      if (a.empty()) a = b;
      if (b.empty()) b = a;
      if (a != b) {
        if (!conflicts++) first = fmt::format("{}-{}: {} and {}", m.labels[i], m.labels[j], a, b);
        a.clear();
        b.clear();
      }
    }
  if (conflicts)
    out.findings.push_back(note("topo_contradiction", Severity::warn,
                                both("{} pairs of cells disagree with their mirror; they are not used",
                                     "{} 对单元格与其对称位置不一致；未采用", conflicts),
                                source, 0, first));
}

void read_legend(const std::vector<std::pair<std::string, std::string>>& pairs, MatrixText& out,
                 const std::string& source) {
  LinkMatrix& m = out.matrix;
  std::map<std::string, int> uses;
  size_t extra = 0;
  std::string first_extra;
  for (const auto& [label, name] : pairs) {
    if (index_of(m.labels, label) < 0) {
      if (!extra++) first_extra = label + ": " + name;
      continue;
    }
    auto [it, fresh] = m.legend.emplace(label, name);
    if (!fresh && it->second != name) uses[name] += 2;
    uses[name]++;
  }
  if (extra)
    out.findings.push_back(note("legend_longer", Severity::info,
                                both("the legend names {} devices that the table has no column for",
                                     "图例中有 {} 个设备在表中没有对应的列", extra),
                                source, 0, first_extra));
  for (const auto& [name, count] : uses)
    if (count > 1) {
      out.findings.push_back(note("legend_contradiction", Severity::warn,
                                  both("the legend gives the name {} more than once; it is not used",
                                       "图例多次给出设备名 {}；未采用", name),
                                  source));
      for (auto it = m.legend.begin(); it != m.legend.end();)
        it = it->second == name ? m.legend.erase(it) : std::next(it);
    }
  m.has_legend = !m.legend.empty();
}

MatrixText finish(const Table& t, const std::vector<std::pair<std::string, std::string>>& legend,
                  const std::string& source) {
  MatrixText out;
  LinkMatrix& m = out.matrix;
  m.source = source;
  if (t.header.foreign) {
    out.refused = "the table lists PPUs, not NVIDIA GPUs";
    out.findings.push_back(note("wrong_vendor", Severity::fail,
                                {out.refused, "表中列的是 PPU，不是 NVIDIA GPU"}, source, t.line));
    return out;
  }
  for (const auto& l : t.header.labels)
    if (index_of(m.labels, l) < 0)
      m.labels.push_back(l);
    else
      out.findings.push_back(note("paste_damaged", Severity::warn,
                                  both("the header names {} twice", "表头两次出现 {}", l), source, t.line));
  fill_cells(t, out, source);
  mirror(out, source);
  read_legend(legend, out, source);
  size_t gpus = 0, gpu_rows = 0, numbered = 0, others = 0;
  for (const auto& l : m.labels) {
    if (starts_with(l, "GPU")) {
      ++gpus;
      gpu_rows += index_of(m.rows, l) >= 0;
    } else {
      (starts_with(l, "NIC") && numbered_label_at(l, 0) == l.size()) ? ++numbered : ++others;
    }
  }
  if (gpu_rows < gpus) {
    m.cut = true;
    out.findings.push_back(
        note("paste_truncated", Severity::warn,
             both("{} GPU rows for {} GPU columns", "只有 {} 行 GPU，而 GPU 列有 {} 个", gpu_rows, gpus),
             source, t.line));
  }
  m.old_format = others > 0 && numbered == 0;
  if (m.old_format)
    for (const auto& l : m.labels)
      if (!starts_with(l, "GPU")) m.legend[l] = l;
  bool any_nv = false;
  for (const auto& r : m.cells)
    for (const auto& c : r) any_nv |= starts_with(c, "NV");
  m.pcie_only = !any_nv && !t.has_nv_class && source != "nvidia-smi topo -m";
  return out;
}

// "NIC3: mlx5_5" once or several times on a line.
void legend_pairs(std::string_view line, std::vector<std::pair<std::string, std::string>>& out) {
  auto tokens = split_ws(line);
  for (size_t i = 0; i < tokens.size() && out.size() < kMaxLegend; ++i) {
    std::string_view t = tokens[i];
    while (!t.empty() && (t[0] == '*' || t[0] == '-' || t[0] == '|')) t.remove_prefix(1);
    size_t n = t.empty() ? 0 : numbered_label_at(t, 0);
    if (n == 0 || !starts_with(t, "NIC")) continue;
    std::string label(t.substr(0, n));
    std::string_view after = t.substr(n);
    // "NIC0: mlx5_0", and as people write it again: "NIC0 = mlx5_0", "NIC0 -> mlx5_0".
    std::string_view next = i + 1 < tokens.size() ? tokens[i + 1] : std::string_view();
    bool sign = after.empty() && (next == ":" || next == "=" || next == "->" || next == "=>" || next == "→");
    if (after == ":" && !next.empty())
      out.emplace_back(label, std::string(tokens[++i]));
    else if (sign && i + 2 < tokens.size())
      out.emplace_back(label, std::string(tokens[i += 2]));
    else if (after.size() > 1 && after[0] == ':')
      out.emplace_back(label, std::string(after.substr(1)));
  }
}

}  // namespace

bool is_link_class(std::string_view token) {
  return !token.empty() && class_at(token, 0) == token.size();
}

std::vector<MatrixText> parse_link_matrices(std::string_view text, const std::string& source) {
  std::vector<MatrixText> out;
  std::vector<std::pair<std::string, std::string>> legend;
  Table table;
  auto flush = [&] {
    if (!table.header.labels.empty() && !table.rows.empty() && out.size() < kMaxTables)
      out.push_back(finish(table, legend, source));
    table = Table{};
    legend.clear();
  };
  int line_no = 0;
  for (std::string_view raw : lines(text)) {
    ++line_no;
    std::string line = clean_pasted_line(raw);
    if (trim(line).empty()) continue;
    if (!table.header.labels.empty()) {
      if (auto row = read_row(line, table.header.labels)) {
        row->line = line_no;
        if (table.rows.size() < 4 * kMaxLabels) table.rows.push_back(std::move(*row));
        continue;
      }
      bool short_row = !table.rows.empty() && table.rows.back().cells.size() < table.header.labels.size() &&
                       trim(table.rows.back().rest).empty();
      if (short_row && only_cells(line)) {  // the terminal wrapped the row
        Row& row = table.rows.back();
        size_t stop = read_cells(line, row);
        row.rest = line.substr(stop);
        if (line.find('\t') != std::string::npos) row.rest = "\t" + row.rest;
        continue;
      }
      if (table.rows.empty() && !table.header.ended && read_header_line(line, table.header)) continue;
      if (contains(line, "SYS") && contains(line, "=")) table.has_classes = true;
      if (contains(line, "NV#")) table.has_nv_class = true;
      legend_pairs(line, legend);
    }
    Header h;
    if (read_header_line(line, h)) {
      flush();
      table.header = std::move(h);
      table.line = line_no;
    }
  }
  flush();
  return out;
}

P2pText parse_p2p_matrix(std::string_view text) {
  P2pText out;
  size_t columns = 0;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    auto tokens = split_ws(line);
    if (tokens.size() >= 2 && starts_with(tokens[0], "GPU") && starts_with(tokens[1], "GPU")) {
      columns = tokens.size();
      continue;
    }
    if (columns == 0 || tokens.size() != columns + 1 || !starts_with(tokens[0], "GPU")) continue;
    bool ours = true;
    for (size_t j = 1; j < tokens.size(); ++j)
      ours &= tokens[j] == "X" || tokens[j] == "OK" || tokens[j] == "CNS" || tokens[j] == "GNS" ||
              tokens[j] == "TNS" || tokens[j] == "NS" || tokens[j] == "DR" || tokens[j] == "U";
    if (!ours) continue;
    out.found = true;
    for (size_t j = 1; j < tokens.size(); ++j)
      if (tokens[j] != "X" && tokens[j] != "OK")
        out.bad_pairs.push_back(fmt::format("{}-{}: {}", tokens[0].substr(3), j - 1, tokens[j]));
  }
  return out;
}

}  // namespace ep
