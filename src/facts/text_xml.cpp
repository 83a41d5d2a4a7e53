// See text_xml.h.
#include "facts/text_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/text.h"
#include "facts/text_matrix.h"
#include "facts/text_rdma.h"

namespace ep {
namespace {

constexpr size_t kMaxNodes = 200000, kMaxDepth = 64;

std::string unescape(std::string_view s) {
  std::string out(s);
  if (out.find('&') == std::string::npos) return out;
  for (auto [from, to] : {std::pair{"&quot;", "\""}, {"&apos;", "'"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
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
    if (node.attributes.size() < 64) node.attributes.emplace_back(std::move(key), unescape(tag.substr(i, end - i)));
    i = end + 1;
  }
}

// End of a tag that starts at `i` (after '<'): '>' outside quotes.
size_t tag_end(std::string_view s, size_t i) {
  char quote = 0;
  for (; i < s.size(); ++i) {
    if (quote) {
      if (s[i] == quote) quote = 0;
      if (s[i] == '\n' && s.find(quote, i) == std::string_view::npos) quote = 0;
    } else if (s[i] == '"' || s[i] == '\'') {
      quote = s[i];
    } else if (s[i] == '>') {
      return i;
    }
  }
  return std::string_view::npos;
}

Finding note(std::string code, Severity severity, std::string title, const std::string& source,
             std::string text = {}) {
  Finding f;
  f.code = std::move(code);
  f.severity = severity;
  f.title = std::move(title);
  f.evidence.push_back({source, 0, std::move(text)});
  return f;
}

std::optional<int> hex(std::string_view s) {
  if (starts_with(s, "0x")) s.remove_prefix(2);
  if (s.empty() || s.size() > 7) return std::nullopt;
  auto v = parse_int("0x" + std::string(s));
  return v ? std::optional<int>(int(*v)) : std::nullopt;
}

double gts(std::string_view s) {
  size_t n = 0;
  while (n < s.size() && (std::isdigit(static_cast<unsigned char>(s[n])) || s[n] == '.')) ++n;
  return n ? parse_double(s.substr(0, n)).value_or(0) : 0;
}

// NVIDIA's display and accelerator functions.
bool gpu_class(int c) { return c == 0x030200 || c == 0x030000; }
bool nic_class(int c) { return c == 0x020000 || c == 0x020700; }

const char* driver_of_vendor(int vendor) {
  switch (vendor) {
    case 0x15b3: return "mlx5_core";
    case 0x1d0f: return "efa";
    case 0x14e4: return "bnxt_en";
    case 0x1dd8: return "ionic";
    case 0x8086: return "irdma";
    case 0x1ded: return "erdma";
    default: return nullptr;
  }
}

// ---- NCCL ----

struct NcclReader {
  PciTreeText& out;
  const std::string& source;
  std::string host_hash;
  std::map<std::string, int> gpu_dev;  // address -> dev attribute
  bool has_gpu_elements = false, self_link = false, fabric_link = false, virtual_bus = false, data_direct = false;
  bool odd_speed = false;
  int switch_links = 0;

  void gpu(const XmlNode& n, const PciDevice& pci) {
    Gpu g;
    g.address = pci.address;
    const char* where = "NCCL topology";
    int sm = pci.device.ok() ? sm_of_pci_id(*pci.device) : 0;
    g.numa_node = pci.numa_node;
    for (const auto& c : n.children) {
      if (c.name != "gpu") continue;
      has_gpu_elements = true;
      if (auto v = parse_int(c.get("sm")); v && *v > 0 && *v < 1000) sm = int(*v);
      if (auto v = parse_int(c.get("dev")); v && *v >= 0 && *v < 1024) gpu_dev[g.address] = int(*v);
      int links = 0;
      for (const auto& l : c.children) {
        if (l.name != "nvlink") continue;
        int count = int(std::clamp(parse_int(l.get("count")).value_or(0), 0LL, 64LL));
        if (pci_address(l.get("target")) == g.address)
          self_link = true;
        else
          links += count;
        if (contains(l.get("target"), "fff:")) fabric_link = true;
        if (l.get("tclass") == "0x068000") switch_links += count;
      }
      if (links) g.nvlinks_up = known(links, where);
    }
    if (sm) g.compute_capability = known(sm, where);
    out.gpus.push_back(std::move(g));
  }

  void nets(const XmlNode& n, const PciDevice* pci) {
    for (const auto& c : n.children) {
      if (c.name == "nic") nets(c, pci);
      if (c.name != "net") continue;
      RdmaDevice d;
      d.name = c.get("name");
      if (d.name.empty()) continue;
      const char* where = "NCCL topology";
      bool rdma = pci && (is_rdma_name(d.name) || c.get("gdr") == "1");
      if (!rdma) d.driver = known<std::string>("none (socket)", where);
      if (pci) {
        d.address = pci->address;
        d.numa_node = pci->numa_node;
        if (rdma && pci->vendor.ok())
          if (const char* drv = driver_of_vendor(*pci->vendor)) d.driver = known<std::string>(drv, where);
        RdmaPort p;
        if (pci->device_class.ok())
          p.link_layer = known<std::string>(*pci->device_class == 0x020700 ? "InfiniBand" : "Ethernet", where);
        d.ports.push_back(std::move(p));
      }
      if (auto g = c.get("guid"); g.size() > 3) d.node_guid = known(std::string(g), where);
      if (auto v = parse_int(c.get("speed")); v && *v % 50000 != 0 && *v > 25000) odd_speed = true;
      if (rdma) out.has_names = true;
      out.rdma.push_back(std::move(d));
    }
  }

  PciDevice device(const XmlNode& n, const std::vector<std::string>& path, int numa) {
    const char* where = "NCCL topology";
    PciDevice p;
    p.address = pci_address(n.get("busid"));
    if (p.address.empty()) p.address = lower(n.get("busid"));
    p.path = path;
    if (numa >= 0) p.numa_node = known(numa, where);
    if (auto v = hex(n.get("vendor")); v && *v != 0xffff) p.vendor = known(*v, where);
    if (auto v = hex(n.get("device")); v && *v != 0xffff) p.device = known(*v, where);
    if (auto v = hex(n.get("class"))) p.device_class = known(*v, where);
    if (double s = gts(n.get("link_speed")); s > 0) p.link_speed_gts = known(s, where);
    return p;
  }

  void walk(const XmlNode& n, std::vector<std::string>& path, int numa) {
    for (const auto& c : n.children) {
      if (c.name == "nic" || c.name == "net") nets(n, nullptr);
      if (c.name != "pci") continue;
      PciDevice p = device(c, path, numa);
      if (starts_with(p.address, "ffff:")) virtual_bus = true;
      int cls = p.device_class.value_or(0);
      if (cls == 0x080100) data_direct = true;
      bool has_net = std::any_of(c.children.begin(), c.children.end(),
                                 [](const XmlNode& k) { return k.name == "nic" || k.name == "net"; });
      bool has_gpu = std::any_of(c.children.begin(), c.children.end(), [](const XmlNode& k) { return k.name == "gpu"; });
      if (gpu_class(cls) || has_gpu) {
        if (!p.vendor.ok() || *p.vendor == 0x10de) gpu(c, p);
        out.pci.push_back(p);
      } else if (has_net) {
        nets(c, &p);
        out.pci.push_back(p);
      } else if (nic_class(cls)) {
        bare_nics.push_back(p);
        out.pci.push_back(p);
      }
      if (path.size() < kMaxDepth) {
        path.push_back(p.address);
        walk(c, path, numa);
        path.pop_back();
      }
    }
  }
  std::vector<PciDevice> bare_nics;

  void finish_bare_nics() {
    if (has_gpu_elements && out.has_names) return;  // a dump: functions without a net are not NCCL's
    for (const auto& p : bare_nics) {
      RdmaDevice d;
      d.name = d.address = p.address;
      d.numa_node = p.numa_node;
      const char* where = "NCCL topology";
      if (p.vendor.ok())
        d.driver = known<std::string>(driver_of_vendor(*p.vendor) ? driver_of_vendor(*p.vendor) : "other vendor", where);
      RdmaPort port;
      if (d.driver.value_or("") != "efa")
        port.link_layer = known<std::string>(*p.device_class == 0x020700 ? "InfiniBand" : "Ethernet", where);
      d.ports.push_back(std::move(port));
      out.rdma.push_back(std::move(d));
    }
  }
};

void check_affinity(const XmlNode& cpu, const std::string& source, std::vector<Finding>& findings) {
  auto words = split(cpu.get("affinity"), ',');
  for (auto w : words)
    if (words.size() > 1 && w.size() != 8) {
      findings.push_back(note("xml_malformed_affinity", Severity::warn,
                              fmt::format("affinity of NUMA node {} has a word of {} digits", cpu.get("numaid"), w.size()),
                              source, std::string(w)));
      return;
    }
}

void number_gpus(PciTreeText& out, const std::map<std::string, int>& dev, const std::string& source) {
  std::vector<std::string> file_order;
  for (const auto& g : out.gpus) file_order.push_back(g.address);
  bool all_dev = dev.size() == out.gpus.size();
  std::set<int> distinct;
  for (const auto& [a, d] : dev) distinct.insert(d);
  all_dev = all_dev && distinct.size() == dev.size();
  std::stable_sort(out.gpus.begin(), out.gpus.end(), [](const Gpu& a, const Gpu& b) { return a.address < b.address; });
  int i = 0;
  for (auto& g : out.gpus) g.index = all_dev ? dev.at(g.address) : i++;
  std::stable_sort(out.gpus.begin(), out.gpus.end(), [](const Gpu& a, const Gpu& b) { return a.index < b.index; });
  for (size_t k = 0; k < out.gpus.size(); ++k)
    if (out.gpus[k].address != file_order[k]) {
      out.findings.push_back(note("xml_cpu_order", Severity::info,
                                  "the order of elements is not GPU order; GPUs are numbered by device or PCI address", source));
      break;
    }
}

}  // namespace

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
  struct Range { int from, to, sm; };
  // PCI device ids of NVIDIA data-centre boards, by the pci.ids database.
  static constexpr Range kRanges[] = {
      {0x1db0, 0x1dbf, 70}, {0x1df5, 0x1df6, 70}, {0x1eb8, 0x1eb8, 75}, {0x20b0, 0x20bf, 80}, {0x20c0, 0x20ff, 80},
      {0x2230, 0x2238, 86}, {0x26b0, 0x26bf, 89}, {0x27b0, 0x27bf, 89}, {0x2320, 0x233f, 90}, {0x2342, 0x234f, 90},
      {0x2900, 0x293f, 100}, {0x2940, 0x297f, 100}, {0x2bb0, 0x2bbf, 120}, {0x3180, 0x31bf, 103}, {0x31c0, 0x31ff, 103}};
  for (auto r : kRanges)
    if (id >= r.from && id <= r.to) return r.sm;
  return 0;
}

int sm_of_gpu_name(std::string_view name) {
  struct Row { const char* part; int sm; };
  // Longer names first: "GB200" holds "B200", "A4000" holds "A40".
  static constexpr Row kRows[] = {
      {"GB300", 103}, {"B300", 103}, {"GB200", 100}, {"B200", 100}, {"B100", 100}, {"GB10", 121}, {"GH200", 90},
      {"H100", 90}, {"H200", 90}, {"H800", 90}, {"H20", 90}, {"PRO 6000 Blackwell", 120}, {"RTX PRO", 120},
      {"RTX 50", 120}, {"L40", 89}, {"L20", 89}, {"L4", 89}, {"6000 Ada", 89}, {"RTX 40", 89}, {"A100", 80},
      {"A800", 80}, {"A30", 80}, {"RTX A", 86}, {"A10", 86}, {"A40", 86}, {"A16", 86}, {"RTX 30", 86}, {"T4", 75},
      {"RTX 20", 75}, {"V100", 70}, {"P100", 60}, {"P40", 61}};
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

PciTreeText parse_nccl_xml(std::string_view text, const std::string& source) {
  PciTreeText out;
  XmlText xml = read_xml(text);
  NcclReader r{out, source, {}, {}, false, false, false, false, false, false, 0, {}};
  std::set<std::string> hosts;
  std::string first_host;
  for (const auto& system : xml.root.children) {
    if (system.name != "system") continue;
    out.found = true;
    for (const auto& cpu : system.children) {
      if (cpu.name != "cpu") continue;
      std::string host(cpu.get("host_hash"));
      if (host.empty()) host = std::string(system.get("host_hash"));
      if (hosts.insert(host).second && hosts.size() == 1) first_host = host;
      if (host != first_host) continue;
      int numa = int(std::clamp(parse_int(cpu.get("numaid")).value_or(-1), -1LL, 4096LL));
      check_affinity(cpu, source, out.findings);
      std::vector<std::string> path{fmt::format("cpu{}", cpu.get("numaid"))};
      r.walk(cpu, path, numa);
    }
  }
  if (!out.found) return out;
  r.finish_bare_nics();
  number_gpus(out, r.gpu_dev, source);
  out.is_static = !r.has_gpu_elements;
  auto add = [&](const char* code, Severity s, std::string title) { out.findings.push_back(note(code, s, std::move(title), source)); };
  if (xml.cut) add("paste_truncated", Severity::warn, "the XML ends before its elements are closed");
  if (hosts.size() > 1) add("xml_multi_host", Severity::warn, fmt::format("the file holds {} hosts; the first is read", hosts.size()));
  if (out.is_static && !out.gpus.empty())
    add("xml_static_incomplete", Severity::warn,
        "no GPU elements: a file written by hand; join names, ranks and speeds from the host by PCI address");
  if (r.virtual_bus) add("virtual_busids", Severity::info, "switches have bus ids ffff:ff:NN.0, which no host has");
  if (r.self_link) add("xml_self_nvlink", Severity::info, "an NVLink's target is the GPU itself: it says nothing about pairs");
  if (r.fabric_link) add("xml_fabric_target", Severity::info, "NVLinks lead to the fabric without a switch device");
  if (r.data_direct) add("data_direct", Severity::info, "data-direct functions (class 0x080100) stand beside the NICs");
  if (r.odd_speed) add("xml_static_speed", Severity::info, "net speeds are tuned by hand, they are not port rates");
  return out;
}

// ---- hwloc ----

namespace {

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
        p.state = known<std::string>(c.get("value") == "4" ? "ACTIVE" : c.get("value") == "1" ? "DOWN" : "INIT", "hwloc");
    }
    if (pci->device_class.ok())
      p.link_layer = known<std::string>((*pci->device_class >> 8) == 0x0207 ? "InfiniBand" : "Ethernet", "hwloc");
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
          if (auto v = hex(t.substr(0, 4))) p.device_class = known(*v << 8, "hwloc");
        if (size_t b = t.find('['); b != std::string_view::npos && t.size() >= b + 10) {
          if (auto v = hex(t.substr(b + 1, 4))) p.vendor = known(*v, "hwloc");
          if (auto v = hex(t.substr(b + 6, 4))) p.device = known(*v, "hwloc");
        }
        if (p.address.empty()) continue;
        if (gpu_class(p.device_class.value_or(0)) && p.vendor.value_or(0x10de) == 0x10de) {
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
  auto cls = [&](const std::string& a) {
    for (const auto& p : out.pci)
      if (p.address == a) return p.device_class.value_or(0);
    return 0;
  };
  bool any_3d = std::any_of(out.gpus.begin(), out.gpus.end(), [&](const Gpu& g) { return cls(g.address) == 0x030200; });
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
  if (xml.cut) out.findings.push_back(note("paste_truncated", Severity::warn, "the XML ends before its elements are closed", source));
  return out;
}

PciTreeText parse_lstopo_outline(std::string_view text, const std::string& source) {
  PciTreeText out;
  struct Level { size_t indent; std::string bridge; int numa; std::string pci; };
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
      auto it = std::find_if(out.pci.begin(), out.pci.end(), [&](const PciDevice& p) { return p.address == pci; });
      if (starts_with(t, "Net") || it == out.pci.end()) continue;
      RdmaDevice d;
      d.name = name;
      d.address = pci;
      d.numa_node = it->numa_node;
      RdmaPort port;
      if (it->device_class.ok())
        port.link_layer = known<std::string>(*it->device_class == 0x020700 ? "InfiniBand" : "Ethernet", "lstopo");
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
