#include "facts/pci_config.h"

#include <algorithm>
#include <map>
#include <set>

#include "facts/pci_ids.h"

namespace ep {

namespace {

constexpr size_t kUserBytes = 64, kStandardBytes = 256, kExtended = 0x100;
constexpr unsigned kExpressId = 0x10, kAcsId = 0x000d;
constexpr unsigned kRequestRedirect = 0x4, kCompletionRedirect = 0x8, kRelaxedOrdering = 0x10;

class Config {
 public:
  explicit Config(std::string_view bytes) : bytes_(bytes) {}
  unsigned word(size_t at) const { return byte(at) | byte(at + 1) << 8; }
  unsigned dword(size_t at) const { return word(at) | word(at + 2) << 16; }
  size_t size() const { return bytes_.size(); }
  bool gone() const { return size() >= 4 && dword(0) == 0xffffffffu; }

  /// Offset of the Express capability; 0 when the list ends without it.
  size_t express() const {
    if (!(word(6) & 0x10)) return 0;
    size_t at = byte(0x34) & 0xfcu;
    for (int steps = 0; at >= kUserBytes && at + 2 <= size() && steps < 48; ++steps) {
      if (byte(at) == kExpressId) return at;
      at = byte(at + 1) & 0xfcu;
    }
    return 0;
  }
  size_t acs() const {
    size_t at = kExtended;
    for (int steps = 0; at >= kExtended && at + 8 <= size() && steps < 480; ++steps) {
      const unsigned head = dword(at);
      if (head == 0 || head == 0xffffffffu) return 0;
      if ((head & 0xffff) == kAcsId) return at;
      at = head >> 20 & 0xffcu;
    }
    return 0;
  }

 private:
  unsigned byte(size_t at) const { return at < bytes_.size() ? (unsigned char)bytes_[at] : 0u; }
  std::string_view bytes_;
};

std::string port_name(unsigned flags) {
  switch (flags >> 4 & 0xf) {
    case 0:
    case 1:
    case 9:
      return "endpoint";
    case 4:
      return "root";
    case 5:
      return "upstream";
    case 6:
      return "downstream";
    default:
      return "other";
  }
}

bool is_endpoint(const PciDevice& d) {
  const int cls = d.device_class.value_or(0);
  return (d.vendor.value_or(0) == kVendorNvidia && is_gpu_class(cls)) || is_network_class(cls);
}

}  // namespace

void pci_config_trouble(const Fact<bool>& trouble, PciDevice& d) {
  d.acs_redirect = d.relaxed_ordering = trouble;
  d.port_type = {{}, trouble.known, trouble.where, trouble.why};
  d.max_read_request = {{}, trouble.known, trouble.where, trouble.why};
}

void read_pci_config(std::string_view bytes, const std::string& where, PciDevice& d) {
  const Config c(bytes);
  if (c.size() <= kUserBytes)
    return pci_config_trouble(unreadable<bool>(where, "only root sees more than its first 64 bytes"), d);
  if (c.gone()) return pci_config_trouble(malformed<bool>(where, "all ones: the device does not answer"), d);
  const size_t express = c.express();
  if (express == 0 || express + 10 > c.size()) {
    const Fact<bool> none = express == 0 ? absent<bool>(where, "no PCI Express capability")
                                         : malformed<bool>(where, "the PCI Express capability is cut off");
    return pci_config_trouble(none, d);
  }
  const unsigned control = c.word(express + 8);
  d.port_type = known(port_name(c.word(express + 2)), where);
  d.relaxed_ordering = known((control & kRelaxedOrdering) != 0, where);
  d.max_read_request = known(128 << (control >> 12 & 7), where);
  if (c.size() <= kStandardBytes) {
    d.acs_redirect = unreadable<bool>(where, "the extended part of configuration space was not read");
    return;
  }
  const size_t acs = c.acs();
  d.acs_redirect = acs == 0 ? absent<bool>(where, "no ACS capability")
                            : known((c.word(acs + 6) & (kRequestRedirect | kCompletionRedirect)) != 0, where);
}

Fact<bool> acs_redirect_of(const std::vector<PciDevice>& pci, std::vector<std::string>& bridges) {
  bridges.clear();
  // Below which port stands which GPU or NIC: a switch's downstream port is the second bridge of a chain or
  // further down, and matters where its upstream port carries another one too.
  std::map<std::string, std::set<std::string>> below;
  std::map<std::string, std::string> parent;
  for (const PciDevice& d : pci) {
    if (!is_endpoint(d)) continue;
    for (size_t i = 0; i < d.path.size(); ++i) {
      below[d.path[i]].insert(d.address);
      if (i > 0) parent[d.path[i]] = d.path[i - 1];
    }
  }
  const std::string where = "/sys/bus/pci/devices/*/config";
  Fact<bool> out = absent<bool>(where, "no PCI switch joins two GPUs or NICs");
  for (const PciDevice& b : pci) {
    auto up = parent.find(b.address);
    if (up == parent.end() || !parent.count(up->second)) continue;  // a root port, or what hangs at the root
    if (b.port_type.ok() && *b.port_type != "downstream") continue;
    // Two functions of one card behind one port are one user of it.
    if (below[up->second].size() <= below[b.address].size()) continue;
    if (b.acs_redirect.ok() && *b.acs_redirect) {
      bridges.push_back(b.address);
    } else if (b.acs_redirect.ok() || b.acs_redirect.known == Known::absent) {
      if (out.known == Known::absent) out = known(false, b.acs_redirect.where);
    } else {
      out = {{}, b.acs_redirect.known, b.acs_redirect.where, b.acs_redirect.why};
    }
  }
  if (bridges.empty()) return out;
  std::sort(bridges.begin(), bridges.end());
  return known(true, "/sys/bus/pci/devices/" + bridges.front() + "/config");
}

}  // namespace ep
