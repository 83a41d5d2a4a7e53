// See topology_svg.h. Rows are switches (GPUs and NICs that are near each other), ordered by socket and GPU.
#include "report/topology_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace ep {
namespace {

struct Group {
  std::vector<size_t> gpus, nics;
  int socket = -1;
};

std::string escape(std::string s) {
  s = replace_all(std::move(s), "&", "&amp;");
  s = replace_all(std::move(s), "<", "&lt;");
  s = replace_all(std::move(s), ">", "&gt;");
  s = replace_all(std::move(s), "\"", "&quot;");
  std::string out;
  for (char c : s)
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  return out;
}

// GPUs and usable NICs below one switch; a GPU without a near NIC is alone.
std::vector<Group> groups_of(const Topology& t) {
  std::vector<Group> out;
  std::vector<int> of_nic(t.nics.size(), -1);
  for (size_t g = 0; g < t.gpus.size(); ++g) {
    int mine = -1;
    for (size_t n = 0; n < t.nics.size(); ++n)
      if (t.nics[n].usable && is_near(t.gpu_nic[g][n]) && of_nic[n] >= 0) mine = of_nic[n];
    if (mine < 0) {
      mine = int(out.size());
      out.emplace_back();
      out.back().socket = t.gpus[g].numa_node;
    }
    out[size_t(mine)].gpus.push_back(g);
    for (size_t n = 0; n < t.nics.size(); ++n)
      if (t.nics[n].usable && is_near(t.gpu_nic[g][n]) && of_nic[n] < 0) {
        of_nic[n] = mine;
        out[size_t(mine)].nics.push_back(n);
      }
  }
  Group rest;
  for (size_t n = 0; n < t.nics.size(); ++n)
    if (t.nics[n].usable && of_nic[n] < 0) rest.nics.push_back(n);
  std::stable_sort(out.begin(), out.end(),
                   [](const Group& a, const Group& b) { return a.socket < b.socket; });
  if (!rest.nics.empty()) out.push_back(std::move(rest));
  return out;
}

const char* colour(LinkClass c) {
  switch (c) {
    case LinkClass::pix:
    case LinkClass::pxb:
      return "#2e7d32";
    case LinkClass::phb:
    case LinkClass::node:
      return "#ef6c00";
    case LinkClass::sys:
      return "#c62828";
    default:
      return "#607d8b";
  }
}

constexpr int kBoxW = 190, kBoxH = 34, kGpuX = 120, kNicX = 470, kStep = 44;

std::string box(int x, int y, const std::string& title, const std::string& sub, const char* fill,
                const char* extra = "") {
  return fmt::format(
      "<g{}><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"{}\" stroke=\"#37474f\"/>"
      "<text x=\"{}\" y=\"{}\" font-size=\"13\">{}</text><text x=\"{}\" y=\"{}\" font-size=\"10\" "
      "fill=\"#455a64\">{}</text></g>\n",
      extra, x, y, kBoxW, kBoxH, fill, x + 8, y + 15, escape(title), x + 8, y + 28, escape(sub));
}

std::string nvlink_word(const Topology& t) {
  std::map<std::string, size_t> cells;
  size_t pairs = 0;
  for (size_t a = 0; a < t.gpus.size(); ++a)
    for (size_t b = 0; b < t.gpu_gpu[a].size(); ++b)
      if (a != b && !t.gpu_gpu[a][b].empty()) {
        ++pairs;
        if (starts_with(t.gpu_gpu[a][b], "NV")) ++cells[t.gpu_gpu[a][b]];
      }
  if (cells.empty() || pairs == 0) return {};
  if (cells.size() == 1 && cells.begin()->second == pairs) return cells.begin()->first;
  return cells.begin()->first + " *";
}

}  // namespace

std::string topology_svg(const Topology& t, Lang lang) {
  auto tr = [&](Text text) { return std::string(text.in(lang)); };
  std::string body, lines;
  int y = 70;
  std::map<int, int> gpu_y;
  std::map<std::string, int> nic_y;
  int socket = -2, socket_top = y;
  auto close_socket = [&](int bottom) {
    if (socket == -2 || bottom <= socket_top) return;
    std::string name = socket < 0 ? tr({"socket ?", "插槽 ?"}) : fmt::format("NUMA {}", socket);
    body =
        fmt::format(
            "<rect x=\"96\" y=\"{}\" width=\"580\" height=\"{}\" rx=\"8\" fill=\"#eceff1\" stroke=\"none\"/>"
            "<text x=\"88\" y=\"{}\" font-size=\"12\" text-anchor=\"end\">{}</text>\n",
            socket_top - 8, bottom - socket_top + 4, socket_top + 16, name) +
        body;
  };
  for (const auto& g : groups_of(t)) {
    if (g.socket != socket) {
      close_socket(y - 6);
      if (socket != -2) y += 14;
      socket = g.socket;
      socket_top = y;
    }
    int rows = int(std::max(g.gpus.size(), g.nics.size()));
    int top = y;
    for (size_t i = 0; i < g.gpus.size(); ++i) {
      const auto& gpu = t.gpus[g.gpus[i]];
      gpu_y[gpu.index] = top + int(i) * kStep;
      body += box(kGpuX, top + int(i) * kStep, fmt::format("GPU {}", gpu.index),
                  gpu.name.empty() ? gpu.address : gpu.name, "#c8e6c9");
    }
    for (size_t i = 0; i < g.nics.size(); ++i) {
      const auto& nic = t.nics[g.nics[i]];
      nic_y[nic.name] = top + int(i) * kStep;
      auto gid = t.gid.per_device.find(nic.name);
      std::string sub = nic.link_layer + (nic.rate_gbps > 0 ? fmt::format(" {:g}G", nic.rate_gbps) : "") +
                        (gid == t.gid.per_device.end() ? "" : fmt::format(" GID {}", gid->second));
      body += box(kNicX, top + int(i) * kStep, nic.name, sub, "#bbdefb");
    }
    if (!g.gpus.empty() && !g.nics.empty())
      body += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"none\" stroke=\"#90a4ae\" "
          "stroke-dasharray=\"4 3\"/>\n",
          kGpuX - 8, top - 5, kNicX + kBoxW - kGpuX + 16, rows * kStep - 2);
    y += rows * kStep + 6;
  }
  close_socket(y - 6);
  for (const auto& [gpu, name] : t.mapping.pairs) {
    if (!gpu_y.count(gpu) || !nic_y.count(name)) continue;
    auto rel = t.mapping.relation.find(gpu);
    LinkClass c = rel == t.mapping.relation.end() ? LinkClass::unknown : rel->second;
    int y1 = gpu_y[gpu] + kBoxH / 2, y2 = nic_y[name] + kBoxH / 2;
    lines += fmt::format(
        "<path d=\"M{} {} C{} {} {} {} {} {}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>"
        "<text x=\"{}\" y=\"{}\" font-size=\"10\" fill=\"{}\">{}</text>\n",
        kGpuX + kBoxW, y1, kGpuX + kBoxW + 60, y1, kNicX - 60, y2, kNicX, y2, colour(c),
        t.mapping.confidence == Confidence::derived ? "" : " stroke-dasharray=\"6 4\"", kGpuX + kBoxW + 8,
        y1 - 4, colour(c), to_string(c));
  }
  if (auto nv = nvlink_word(t); !nv.empty() && gpu_y.size() > 1) {
    int top = 1 << 30, bottom = 0;
    for (const auto& [g, gy] : gpu_y) {
      top = std::min(top, gy);
      bottom = std::max(bottom, gy + kBoxH);
    }
    lines += fmt::format(
        "<rect x=\"104\" y=\"{}\" width=\"6\" height=\"{}\" fill=\"#76b900\"/><text x=\"100\" y=\"{}\" "
        "font-size=\"11\" text-anchor=\"end\">{}</text>\n",
        top, bottom - top, (top + bottom) / 2, escape(nv));
  }
  y += 20;
  bool first = true;
  for (const auto& n : t.nics) {
    if (n.usable) continue;
    if (first)
      body += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"13\">{}</text>\n", kGpuX, y,
                          tr({"not for EP", "不用于 EP"}));
    first = false;
    y += 18;
    body += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"11\" fill=\"#9e9e9e\">{} ({}): {}</text>\n",
                        kGpuX, y, escape(n.name), escape(n.role), escape(n.reason.in(lang)));
  }
  y += 30;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"{0}\" viewBox=\"0 0 900 {0}\" "
             "font-family=\"sans-serif\" role=\"img\">\n"
             "<title>{1}</title><rect width=\"900\" height=\"{0}\" fill=\"#ffffff\"/>\n<text x=\"20\" "
             "y=\"30\" font-size=\"17\">{1}</text>\n"
             "<text x=\"20\" y=\"50\" font-size=\"12\" fill=\"#455a64\">{2}: {3}</text>\n",
             y, escape(t.host_name), tr({"mapping", "对应"}), to_string(t.mapping.confidence)) +
         body + lines + "</svg>\n";
}

}  // namespace ep
