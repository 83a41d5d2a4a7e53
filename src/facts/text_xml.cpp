// See text_xml.h: the XML reader, PCI addresses, GPU models, and what the tree readers share.
#include "facts/text_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/text.h"
#include "facts/text_matrix.h"
#include "facts/text_rdma.h"
#include "facts/text_tree.h"

namespace ep {
namespace {

constexpr size_t kMaxNodes = 200000, kMaxDepth = 64;

std::string unescape(std::string_view s) {
  std::string out(s);
  if (out.find('&') == std::string::npos) return out;
  for (auto [from, to] :
       {std::pair{"&quot;", "\""}, {"&apos;", "'"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
    out = replace_all(std::move(out), from, to);
  return out;
}

bool name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' || c == ':';
}

// Reads the inside of one tag; `i` stands after the name.
void read_attributes(std::string_view tag, size_t i, XmlNode& node) {
  while (i < tag.size()) {
    while (i < tag.size() && !name_char(tag[i])) ++i;
    size_t start = i;
    while (i < tag.size() && name_char(tag[i])) ++i;
    if (i == start) break;
    std::string key(tag.substr(start, i - start));
    while (i < tag.size() && std::isspace(static_cast<unsigned char>(tag[i]))) ++i;
    if (i >= tag.size() || tag[i] != '=') continue;
    ++i;
    while (i < tag.size() && std::isspace(static_cast<unsigned char>(tag[i]))) ++i;
    if (i >= tag.size() || (tag[i] != '"' && tag[i] != '\'')) continue;
    char quote = tag[i++];
    size_t end = tag.find(quote, i);
    if (end == std::string_view::npos) end = tag.size();
    if (node.attributes.size() < 64)
      node.attributes.emplace_back(std::move(key), unescape(tag.substr(i, end - i)));
    i = end + 1;
  }
}

// End of a tag that starts at `i` (after '<'): '>' outside quotes.
size_t tag_end(std::string_view s, size_t i) {
  for (; i < s.size(); ++i) {
    if (s[i] == '"' || s[i] == '\'') {
      // A quote that is never closed ends with its line.
      size_t close = s.find(s[i], i + 1);
      if (close == std::string_view::npos) close = s.find('\n', i + 1);
      if (close == std::string_view::npos) return close;
      i = close;
    } else if (s[i] == '>') {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

Finding xml_note(std::string code, Severity severity, BothWords title, const std::string& source,
                 std::string text) {
  Finding f;
  f.code = std::move(code);
  f.severity = severity;
  f.title = std::move(title.en);
  f.title_zh = std::move(title.zh);
  f.evidence.push_back({source, 0, std::move(text)});
  return f;
}

std::optional<int> hex_number(std::string_view s) {
  if (starts_with(s, "0x")) s.remove_prefix(2);
  if (s.empty() || s.size() > 7) return std::nullopt;
  auto v = parse_int("0x" + std::string(s));
  return v ? std::optional<int>(int(*v)) : std::nullopt;
}

const char* driver_of_vendor(int vendor) {
  switch (vendor) {
    case 0x15b3:
      return "mlx5_core";
    case 0x1d0f:
      return "efa";
    case 0x14e4:
      return "bnxt_en";
    case 0x1dd8:
      return "ionic";
    case 0x8086:
      return "irdma";
    case 0x1ded:
      return "erdma";
    default:
      return nullptr;
  }
}

void number_gpus(PciTreeText& out, const std::map<std::string, int>& dev, const std::string& source) {
  constexpr size_t kMost = 256;  // more GPUs than any host has
  if (out.gpus.size() > kMost) {
    out.gpus.resize(kMost);
    out.findings.push_back(
        xml_note("too_many_devices", Severity::warn,
                 both("more than {} GPUs: the rest is left out", "超过 {} 块 GPU：其余略去", kMost), source));
  }
  std::vector<std::string> file_order;
  for (const auto& g : out.gpus) file_order.push_back(g.address);
  bool all_dev = dev.size() == out.gpus.size() &&
                 std::all_of(file_order.begin(), file_order.end(), [&](auto& a) { return dev.count(a) > 0; });
  std::set<int> distinct;
  for (const auto& [a, d] : dev) distinct.insert(d);
  all_dev = all_dev && distinct.size() == dev.size();
  std::stable_sort(out.gpus.begin(), out.gpus.end(),
                   [](const Gpu& a, const Gpu& b) { return a.address < b.address; });
  int i = 0;
  for (auto& g : out.gpus) g.index = all_dev ? dev.at(g.address) : i++;
  std::stable_sort(out.gpus.begin(), out.gpus.end(),
                   [](const Gpu& a, const Gpu& b) { return a.index < b.index; });
  for (size_t k = 0; k < out.gpus.size(); ++k)
    if (out.gpus[k].address != file_order[k]) {
      out.findings.push_back(
          xml_note("xml_cpu_order", Severity::info,
                   {"the order of elements is not GPU order; GPUs are numbered by device or PCI address",
                    "元素顺序不是 GPU 顺序；按设备号或 PCI 地址编号"},
                   source));
      break;
    }
}

std::string_view XmlNode::get(std::string_view attribute) const {
  for (const auto& [k, v] : attributes)
    if (k == attribute) return v;
  return {};
}

XmlText read_xml(std::string_view s) {
  XmlText out;
  std::vector<XmlNode> open(1);
  size_t nodes = 0, i = 0;
  auto close_top = [&] {
    XmlNode done = std::move(open.back());
    open.pop_back();
    open.back().children.push_back(std::move(done));
  };
  while ((i = s.find('<', i)) != std::string_view::npos) {
    std::string_view rest = s.substr(i);
    if (starts_with(rest, "<!--")) {
      size_t end = s.find("-->", i);
      if (end == std::string_view::npos) {
        out.cut = true;
        break;
      }
      i = end + 3;
      continue;
    }
    size_t end = tag_end(s, i + 1);
    if (end == std::string_view::npos) {
      out.cut = true;
      break;
    }
    std::string_view tag = s.substr(i + 1, end - i - 1);
    i = end + 1;
    if (tag.empty() || tag[0] == '?' || tag[0] == '!') continue;
    if (tag[0] == '/') {
      std::string_view name = trim(tag.substr(1));
      size_t at = open.size();
      while (at > 1 && open[at - 1].name != name) --at;
      if (at > 1)
        while (open.size() >= at && open.size() > 1) close_top();
      continue;
    }
    size_t n = 0;
    while (n < tag.size() && name_char(tag[n])) ++n;
    if (n == 0) continue;
    if (++nodes > kMaxNodes || open.size() > kMaxDepth) {
      out.cut = true;
      break;
    }
    XmlNode node;
    node.name = tag.substr(0, n);
    bool self_closed = tag.back() == '/';
    read_attributes(self_closed ? tag.substr(0, tag.size() - 1) : tag, n, node);
    open.push_back(std::move(node));
    if (self_closed) close_top();
  }
  if (open.size() > 1) out.cut = true;
  while (open.size() > 1) close_top();
  out.root = std::move(open[0]);
  return out;
}

std::string pci_address(std::string_view text) {
  std::string s = lower(trim(text));
  auto hex_run = [&](size_t i) {
    size_t n = 0;
    while (i + n < s.size() && std::isxdigit(static_cast<unsigned char>(s[i + n]))) ++n;
    return n;
  };
  std::string domain = "0000";
  size_t i = 0;
  size_t n = hex_run(0);
  if (n >= 4 && n <= 8 && n < s.size() && s[n] == ':') {
    domain = s.substr(0, n);
    while (domain.size() > 4 && domain[0] == '0') domain.erase(0, 1);
    i = n + 1;
    n = hex_run(i);
  }
  if (n != 2 || i + n >= s.size() || s[i + n] != ':') return {};
  std::string bus = s.substr(i, 2);
  i += 3;
  n = hex_run(i);
  if (n != 2) return {};
  std::string dev = s.substr(i, 2);
  i += 2;
  if (i == s.size()) return domain + ":" + bus + ":" + dev + ".0";
  if (s[i] != '.' || hex_run(i + 1) != 1 || i + 2 != s.size()) return {};
  return domain + ":" + bus + ":" + dev + s.substr(i);
}

int sm_of_pci_id(int id) {
  struct Range {
    int from, to, sm;
  };
  // PCI device ids of NVIDIA data-centre boards, by the pci.ids database.
  static constexpr Range kRanges[] = {{0x1db0, 0x1dbf, 70},  {0x1df5, 0x1df6, 70},  {0x1eb8, 0x1eb8, 75},
                                      {0x20b0, 0x20bf, 80},  {0x20c0, 0x20ff, 80},  {0x2230, 0x2238, 86},
                                      {0x26b0, 0x26bf, 89},  {0x27b0, 0x27bf, 89},  {0x2320, 0x233f, 90},
                                      {0x2342, 0x234f, 90},  {0x2900, 0x293f, 100}, {0x2940, 0x297f, 100},
                                      {0x2bb0, 0x2bbf, 120}, {0x3180, 0x31bf, 103}, {0x31c0, 0x31ff, 103}};
  for (auto r : kRanges)
    if (id >= r.from && id <= r.to) return r.sm;
  return 0;
}

int sm_of_gpu_name(std::string_view name) {
  struct Row {
    const char* part;
    int sm;
  };
  // Longer names first: "GB200" holds "B200", "A4000" holds "A40".
  static constexpr Row kRows[] = {
      {"GB300", 103},   {"B300", 103},    {"GB200", 100}, {"B200", 100},
      {"B100", 100},    {"GB10", 121},    {"GH200", 90},  {"H100", 90},
      {"H200", 90},     {"H800", 90},     {"H20", 90},    {"PRO 6000 Blackwell", 120},
      {"RTX PRO", 120}, {"RTX 50", 120},  {"L40", 89},    {"L20", 89},
      {"L4", 89},       {"6000 Ada", 89}, {"RTX 40", 89}, {"A100", 80},
      {"A800", 80},     {"A30", 80},      {"RTX A", 86},  {"A10", 86},
      {"A40", 86},      {"A16", 86},      {"RTX 30", 86}, {"T4", 75},
      {"RTX 20", 75},   {"V100", 70},     {"P100", 60},   {"P40", 61}};
  for (const auto& r : kRows) {
    size_t at = name.find(r.part);
    if (at == std::string_view::npos) continue;
    // A whole word's start: "GA100" is a chip, and "L4" must not match inside "XL4".
    if (at > 0 && std::isalnum(static_cast<unsigned char>(name[at - 1]))) continue;
    size_t end = at + std::string_view(r.part).size();
    bool open_end = r.part == std::string_view("RTX 50") || r.part == std::string_view("RTX 40") ||
                    r.part == std::string_view("RTX 30") || r.part == std::string_view("RTX 20") ||
                    r.part == std::string_view("RTX A") || r.part == std::string_view("L40");
    if (!open_end && end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) continue;
    return r.sm;
  }
  return 0;
}

}  // namespace ep
