// NCCL topology XML: dumps of a run (names, ranks, NVLinks) and files written by hand (groups only).
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

double gts(std::string_view s) {
  size_t n = 0;
  while (n < s.size() && (std::isdigit(static_cast<unsigned char>(s[n])) || s[n] == '.')) ++n;
  return n ? parse_double(s.substr(0, n)).value_or(0) : 0;
}

struct NcclReader {
  PciTreeText& out;
  const std::string& source;
  std::string host_hash;
  std::map<std::string, int> gpu_dev;  // address -> dev attribute
  bool has_gpu_elements = false, self_link = false, fabric_link = false, virtual_bus = false,
       data_direct = false;
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
          p.link_layer =
              known<std::string>(*pci->device_class == 0x020700 ? "InfiniBand" : "Ethernet", where);
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
    if (auto v = hex_number(n.get("vendor")); v && *v != 0xffff) p.vendor = known(*v, where);
    if (auto v = hex_number(n.get("device")); v && *v != 0xffff) p.device = known(*v, where);
    if (auto v = hex_number(n.get("class"))) p.device_class = known(*v, where);
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
      bool has_gpu =
          std::any_of(c.children.begin(), c.children.end(), [](const XmlNode& k) { return k.name == "gpu"; });
      if (is_gpu_function(cls) || has_gpu) {
        if (!p.vendor.ok() || *p.vendor == 0x10de) gpu(c, p);
        out.pci.push_back(p);
      } else if (has_net) {
        nets(c, &p);
        out.pci.push_back(p);
      } else if (is_nic_function(cls)) {
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
        d.driver = known<std::string>(
            driver_of_vendor(*p.vendor) ? driver_of_vendor(*p.vendor) : "other vendor", where);
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
      findings.push_back(
          xml_note("xml_malformed_affinity", Severity::warn,
                   both("affinity of NUMA node {} has a word of {} digits",
                        "NUMA 节点 {} 的亲和性掩码中有一段是 {} 位", cpu.get("numaid"), w.size()),
                   source, std::string(w)));
      return;
    }
}

}  // namespace

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
  auto add = [&](const char* code, Severity s, BothWords title) {
    out.findings.push_back(xml_note(code, s, std::move(title), source));
  };
  if (xml.cut)
    add("paste_truncated", Severity::warn,
        {"the XML ends before its elements are closed", "XML 在元素闭合之前就结束了"});
  if (hosts.size() > 1)
    add("xml_multi_host", Severity::warn,
        both("the file holds {} hosts; the first is read", "文件含 {} 台主机；读取第一台", hosts.size()));
  if (out.is_static && !out.gpus.empty())
    add("xml_static_incomplete", Severity::warn,
        {"no GPU elements: a file written by hand; join names, ranks and speeds from the host by PCI address",
         "没有 GPU 元素：手写文件；请按 PCI 地址从主机补充名称、rank 与速率"});
  if (r.virtual_bus)
    add("virtual_busids", Severity::info,
        {"switches have bus ids ffff:ff:NN.0, which no host has",
         "交换机的总线号为 ffff:ff:NN.0，实际主机没有"});
  if (r.self_link)
    add("xml_self_nvlink", Severity::info,
        {"an NVLink's target is the GPU itself: it says nothing about pairs",
         "NVLink 的目标是 GPU 自身：不说明配对"});
  if (r.fabric_link)
    add("xml_fabric_target", Severity::info,
        {"NVLinks lead to the fabric without a switch device", "NVLink 通往 fabric，而没有交换机设备"});
  if (r.data_direct)
    add("data_direct", Severity::info,
        {"data-direct functions (class 0x080100) stand beside the NICs",
         "网卡旁有 data-direct 功能（class 0x080100）"});
  if (r.odd_speed)
    add("xml_static_speed", Severity::info,
        {"net speeds are tuned by hand, they are not port rates", "net 速率是手工调整的，不是端口速率"});
  return out;
}

}  // namespace ep
