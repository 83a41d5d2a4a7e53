// The PCI functions that matter: GPUs, NVSwitches, NICs, and the bridges above them.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "facts/parsers.h"
#include "facts/pci_config.h"
#include "facts/pci_ids.h"
#include "facts/reading.h"

namespace ep {

namespace {

const std::string kDevices = "/sys/bus/pci/devices";
constexpr size_t kConfigBytes = 4096;  // all of configuration space, the extended part included

bool is_pci_address(std::string_view s) {  // 0000:17:00.0; some domains have more digits
  size_t n = s.size();
  return n >= 12 && s[n - 2] == '.' && s[n - 5] == ':' && s[n - 8] == ':' &&
         s.find_first_not_of("0123456789abcdef:.") == s.npos;
}

// "../../../devices/pci0000:16/0000:16:01.0/0000:17:00.0": the components from the host bridge down, the
// function itself left out.
std::vector<std::string> bridges_of(std::string_view link) {
  std::vector<std::string> chain;
  bool inside = false;
  for (auto part : split(link, '/')) {
    // NOTE: virtual machines put host bridges below platform or VMBUS nodes; those components stay, they are
    // places too.
    if (inside) chain.emplace_back(part);
    if (part == "devices") inside = true;
  }
  if (!chain.empty()) chain.pop_back();
  return chain;
}

Fact<double> read_speed(const Host& host, const std::string& path) {
  auto text = read_text(host, path);
  if (!text) return same_trouble<double>(text);
  if (starts_with(*text, "Unknown")) return absent<double>(path, "the kernel says Unknown");
  auto words = split_ws(*text);  // "32.0 GT/s PCIe", "16 GT/s"
  auto n = words.size() >= 2 && words[1] == "GT/s" ? parse_double(words[0]) : std::nullopt;
  if (!n) return malformed<double>(path, "expected \"N GT/s\", read \"" + text->substr(0, 40) + "\"");
  return known(*n, path);
}

bool matters(int vendor, int device_class) {
  if (vendor == kVendorMellanox && !is_bridge_class(device_class)) return true;
  if (vendor == kVendorNvidia && (is_gpu_class(device_class) || (device_class >> 8) == 0x0680)) return true;
  if (vendor == kVendorAmd && is_gpu_class(device_class)) return true;
  return is_network_class(device_class);
}

PciDevice read_device(const Host& host, const std::string& address, const std::string& link) {
  std::string dir = kDevices + "/" + address;
  PciDevice d;
  d.address = address;
  d.path = bridges_of(link);
  d.vendor = read_int(host, dir + "/vendor");
  d.device = read_int(host, dir + "/device");
  d.subsystem_vendor = read_int(host, dir + "/subsystem_vendor");
  d.subsystem_device = read_int(host, dir + "/subsystem_device");
  d.device_class = read_int(host, dir + "/class");
  d.driver = read_link_name(host, dir + "/driver");
  d.numa_node = read_int(host, dir + "/numa_node");
  auto group = read_link_name(host, dir + "/iommu_group");
  if (auto n = group ? parse_int(*group) : std::nullopt) {
    d.iommu_group = known(int(*n), group.where);
    d.iommu_group_type = read_text(host, dir + "/iommu_group/type");
  } else {
    d.iommu_group = group ? malformed<int>(group.where, "the group has no number") : same_trouble<int>(group);
    d.iommu_group_type = absent<std::string>(dir + "/iommu_group/type", "no IOMMU group");
  }
  d.link_speed_gts = read_speed(host, dir + "/current_link_speed");
  d.link_speed_max_gts = read_speed(host, dir + "/max_link_speed");
  d.link_width = read_int(host, dir + "/current_link_width");
  d.link_width_max = read_int(host, dir + "/max_link_width");
  auto physfn = host.link(dir + "/physfn");
  if (physfn)
    d.is_vf = known(true, dir + "/physfn");
  else if (physfn.error().kind == ErrorKind::absent)
    d.is_vf = known(false, dir + "/physfn");
  else
    d.is_vf = from_error<bool>(physfn.error(), dir + "/physfn");
  auto config = host.read(dir + "/config", kConfigBytes);
  if (config)
    read_pci_config(*config, dir + "/config", d);
  else  // also where the file is not there: that says nothing about the device
    pci_config_trouble(unreadable<bool>(dir + "/config", config.error().why), d);
  return d;
}

}  // namespace

// Vital product data (PCI Local Bus Specification 3.0, appendix I): a name, then two-letter fields. Serial
// numbers are left out.
Fact<std::string> parse_vpd(std::string_view bytes, const std::string& where) {
  auto byte = [&](size_t i) { return i < bytes.size() ? (unsigned char)bytes[i] : 0u; };
  auto printable = [](std::string_view s) {
    std::string out;
    for (char c : s)
      if (c >= ' ' && c < 0x7f) out += c;
    return std::string(trim(out));
  };
  std::vector<std::string> parts;
  size_t at = 0;
  while (at + 3 <= bytes.size()) {
    unsigned tag = byte(at);
    if (tag == 0x78 || !(tag & 0x80)) break;  // end tag, or a small item we do not expect
    size_t size = byte(at + 1) | byte(at + 2) << 8;
    std::string_view body = bytes.substr(at + 3, size);
    if (tag == 0x82) parts.push_back(printable(body));
    for (size_t i = 0; (tag == 0x90 || tag == 0x91) && i + 3 <= body.size();) {
      std::string_view key = body.substr(i, 2);
      size_t n = (unsigned char)body[i + 2];
      std::string value = printable(body.substr(i + 3, n));
      if (key != "SN" && key != "RV" && key != "RW" && !value.empty())
        parts.push_back(std::string(key) + "=" + value);
      i += 3 + n;
    }
    at += 3 + size;
  }
  if (parts.empty()) return malformed<std::string>(where, "no vital product data in it");
  return known(join(parts, "; "), where);
}

void read_pci(const Reading& r, Facts& f) {
  std::map<std::string, std::string> links;
  std::set<std::string> wanted;
  for (const auto& name : names_in(r.host, kDevices)) {
    std::string address = lower(name);
    if (!is_pci_address(address)) continue;
    auto vendor = read_int(r.host, kDevices + "/" + name + "/vendor");
    auto device_class = read_int(r.host, kDevices + "/" + name + "/class");
    links[address] = r.host.link(kDevices + "/" + name).value_or("");
    if (!vendor || !device_class || !matters(*vendor, *device_class)) continue;
    wanted.insert(address);
    for (const auto& bridge : bridges_of(links[address]))
      if (is_pci_address(bridge)) wanted.insert(bridge);
  }
  for (const auto& address : wanted) {
    PciDevice d = read_device(r.host, address, links[address]);
    std::string vpd = kDevices + "/" + address + "/vpd";
    // Only root may read it, and it is slow on other vendors' cards: asked where it decides something
    // (NVSwitch management functions of ConnectX-7 say SW_MNG there).
    if (d.vendor.value_or(0) == kVendorMellanox && is_network_class(d.device_class.value_or(0))) {
      auto bytes = r.host.read(vpd, 4096);
      d.vpd = bytes ? parse_vpd(*bytes, vpd) : from_error<std::string>(bytes.error(), vpd);
    } else {
      d.vpd = absent<std::string>(vpd, "not asked for this kind of device");
    }
    f.pci.push_back(std::move(d));
  }
  f.kernel.acs_redirect = acs_redirect_of(f.pci, f.kernel.acs_bridges);
  int amd = 0;
  for (const auto& d : f.pci)
    amd += d.vendor.value_or(0) == kVendorAmd && is_gpu_class(d.device_class.value_or(0));
  auto listed = r.host.list(kDevices);
  f.num_amd_gpus = listed ? known(amd, kDevices) : from_error<int>(listed.error(), kDevices);
}

}  // namespace ep
