// hwloc XML of version 1 to 3, and the outline that lstopo prints.
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

constexpr size_t kMaxDepth = 64;

struct HwlocReader {
  PciTreeText& out;
  int bridges = 0;
  bool restricted = false;

  // NUMA nodes that hang directly below an object (hwloc 2) or are the object (hwloc 1).
  static int numa_of(const XmlNode& n, int inherited) {
    if (n.get("type") == "NUMANode") return int(parse_int(n.get("os_index")).value_or(inherited));
    int found = -2;
    for (const auto& c : n.children)
      if (c.name == "object" && c.get("type") == "NUMANode") {
        int v = int(parse_int(c.get("os_index")).value_or(-1));
        found = found == -2 ? v : -1;  // several: unknown which
      }
    return found == -2 ? inherited : found;
  }

  void osdev(const XmlNode& n, PciDevice* pci) {
    std::string type(n.get("osdev_type")), sub(n.get("subtype")), name(n.get("name"));
    bool fabric = type == "3" || type == "48" || sub == "OpenFabrics";
    if (!pci) return;
    if (!fabric) {
      if ((type == "2" || sub == "Network") && !name.empty()) pci_netdev[pci->address].push_back(name);
      return;
    }
    if (name.empty()) return;
    RdmaDevice d;
    d.name = name;
    d.address = pci->address;
    d.numa_node = pci->numa_node;
    if (pci->vendor.ok())
      if (const char* drv = driver_of_vendor(*pci->vendor)) d.driver = known<std::string>(drv, "hwloc");
    RdmaPort p;
    for (const auto& c : n.children) {
      if (c.name != "info") continue;
      if (c.get("name") == "NodeGUID") d.node_guid = known(std::string(c.get("value")), "hwloc");
      if (c.get("name") == "Port1State")
        p.state = known<std::string>(c.get("value") == "4"   ? "ACTIVE"
                                     : c.get("value") == "1" ? "DOWN"
                                                             : "INIT",
                                     "hwloc");
    }
    if (pci->device_class.ok())
      p.link_layer =
          known<std::string>((*pci->device_class >> 8) == 0x0207 ? "InfiniBand" : "Ethernet", "hwloc");
    d.ports.push_back(std::move(p));
    out.rdma.push_back(std::move(d));
    out.has_names = true;
  }
  std::map<std::string, std::vector<std::string>> pci_netdev;

  void walk(const XmlNode& n, std::vector<std::string>& path, int numa, PciDevice* pci) {
    for (const auto& c : n.children) {
      if (c.name != "object") continue;
      auto type = c.get("type");
      int node = numa_of(c, numa);
      if (type == "OSDev") osdev(c, pci);
      if (type == "Bridge") {
        std::string id = pci_address(c.get("pci_busid"));
        if (id.empty() || contains(c.get("bridge_type"), "0-1")) id = fmt::format("hostbridge{}", bridges++);
        path.push_back(id);
        walk(c, path, node, nullptr);
        path.pop_back();
      } else if (type == "PCIDev") {
        PciDevice p;
        p.address = pci_address(c.get("pci_busid"));
        p.path = path;
        if (numa >= 0) p.numa_node = known(numa, "hwloc");
        auto t = c.get("pci_type");  // "0302 [10de:2330] [10de:16c1] a1"
        if (t.size() >= 4)
          if (auto v = hex_number(t.substr(0, 4))) p.device_class = known(*v << 8, "hwloc");
        if (size_t b = t.find('['); b != std::string_view::npos && t.size() >= b + 10) {
          if (auto v = hex_number(t.substr(b + 1, 4))) p.vendor = known(*v, "hwloc");
          if (auto v = hex_number(t.substr(b + 6, 4))) p.device = known(*v, "hwloc");
        }
        if (p.address.empty()) continue;
        if (is_gpu_function(p.device_class.value_or(0)) && p.vendor.value_or(0x10de) == 0x10de) {
          Gpu g;
          g.address = p.address;
          g.numa_node = p.numa_node;
          if (int sm = sm_of_pci_id(p.device.value_or(0))) g.compute_capability = known(sm, "hwloc");
          out.gpus.push_back(std::move(g));
        }
        walk(c, path, node, &p);
        out.pci.push_back(std::move(p));
      } else {
        walk(c, path, node, nullptr);
      }
    }
  }
};

void drop_display_functions(PciTreeText& out) {
  // Management controllers have a VGA function too; when 3D controllers are there, those are the GPUs.
  std::map<std::string, int> classes;
  for (const auto& p : out.pci) classes.emplace(p.address, p.device_class.value_or(0));
  auto cls = [&](const std::string& a) {
    auto it = classes.find(a);
    return it == classes.end() ? 0 : it->second;
  };
  bool any_3d =
      std::any_of(out.gpus.begin(), out.gpus.end(), [&](const Gpu& g) { return cls(g.address) == 0x030200; });
  if (!any_3d) return;
  std::erase_if(out.gpus, [&](const Gpu& g) { return cls(g.address) == 0x030000; });
}

}  // namespace

PciTreeText parse_hwloc_xml(std::string_view text, const std::string& source) {
  PciTreeText out;
  XmlText xml = read_xml(text);
  HwlocReader r{out, 0, false, {}};
  for (const auto& topology : xml.root.children) {
    if (topology.name != "topology") continue;
    out.found = true;
    std::vector<std::string> path;
    r.walk(topology, path, -1, nullptr);
  }
  if (!out.found) return out;
  drop_display_functions(out);
  number_gpus(out, {}, source);
  for (auto& d : out.rdma)
    if (auto it = r.pci_netdev.find(d.address); it != r.pci_netdev.end()) d.netdevs = it->second;
  if (xml.cut)
    out.findings.push_back(
        xml_note("paste_truncated", Severity::warn,
                 {"the XML ends before its elements are closed", "XML 在元素闭合之前就结束了"}, source));
  return out;
}

PciTreeText parse_lstopo_outline(std::string_view text, const std::string& source) {
  PciTreeText out;
  struct Level {
    size_t indent;
    std::string bridge;
    int numa;
    std::string pci;
  };
  std::vector<Level> stack;
  int bridges = 0, numa = -1;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    size_t indent = 0;
    while (indent < line.size() && (line[indent] == ' ' || line[indent] == '\t')) ++indent;
    std::string_view t = trim(line);
    if (t.empty()) continue;
    while (!stack.empty() && stack.back().indent >= indent) stack.pop_back();
    if (stack.size() > kMaxDepth) continue;
    std::string pci = stack.empty() ? "" : stack.back().pci;
    if (starts_with(t, "Machine")) out.found = true;
    if (starts_with(t, "Package") || starts_with(t, "Group")) numa = -1;
    if (starts_with(t, "NUMANode")) {
      if (size_t at = t.find("P#"); at != std::string_view::npos) {
        size_t n = 0;
        while (at + 2 + n < t.size() && std::isdigit(static_cast<unsigned char>(t[at + 2 + n])) && n < 4) ++n;
        numa = int(parse_int(t.substr(at + 2, n)).value_or(-1));
      }
      continue;
    }
    if (starts_with(t, "HostBridge") || starts_with(t, "PCIBridge")) {
      stack.push_back({indent, fmt::format("bridge{}", bridges++), numa, ""});
    } else if (starts_with(t, "PCI ")) {
      auto words = split_ws(t);
      PciDevice p;
      p.address = pci_address(words[1]);
      if (p.address.empty()) continue;
      for (const auto& l : stack)
        if (!l.bridge.empty()) p.path.push_back(l.bridge);
      if (numa >= 0) p.numa_node = known(numa, "lstopo");
      if (contains(t, "(3D)")) {
        p.device_class = known(0x030200, "lstopo");
        Gpu g;
        g.address = p.address;
        g.numa_node = p.numa_node;
        out.gpus.push_back(std::move(g));
      }
      if (contains(t, "(InfiniBand)")) p.device_class = known(0x020700, "lstopo");
      if (contains(t, "(Ethernet)")) p.device_class = known(0x020000, "lstopo");
      stack.push_back({indent, "", numa, p.address});
      out.pci.push_back(std::move(p));
    } else if (!pci.empty() && (starts_with(t, "OpenFabrics") || starts_with(t, "Net"))) {
      size_t a = t.find('"'), b = a == std::string_view::npos ? a : t.find('"', a + 1);
      if (b == std::string_view::npos) continue;
      std::string name(t.substr(a + 1, b - a - 1));
      auto it = std::find_if(out.pci.rbegin(), out.pci.rend(),
                             [&](const PciDevice& p) { return p.address == pci; });
      if (starts_with(t, "Net") || it == out.pci.rend()) continue;
      RdmaDevice d;
      d.name = name;
      d.address = pci;
      d.numa_node = it->numa_node;
      RdmaPort port;
      if (it->device_class.ok())
        port.link_layer =
            known<std::string>(*it->device_class == 0x020700 ? "InfiniBand" : "Ethernet", "lstopo");
      d.ports.push_back(std::move(port));
      out.rdma.push_back(std::move(d));
      out.has_names = true;
    }
  }
  number_gpus(out, {}, source);
  out.findings.clear();
  return out;
}

}  // namespace ep
