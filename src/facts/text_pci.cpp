// Readers of PCI listings: lspci, lspci -tv, and addresses with NUMA nodes.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "base/text.h"
#include "facts/text_host.h"
#include "facts/text_tree.h"
#include "host/paste.h"

namespace ep {
namespace {

std::unordered_map<std::string, size_t> places_of(const std::vector<PciDevice>& pci) {
  std::unordered_map<std::string, size_t> out;
  for (size_t i = 0; i < pci.size(); ++i) out.emplace(pci[i].address, i);
  return out;
}

struct Vendor {
  const char* words;
  int id;
};
constexpr Vendor kVendors[] = {{"Mellanox", 0x15b3}, {"NVIDIA Corporation", 0x10de},
                               {"Amazon", 0x1d0f},   {"Broadcom", 0x14e4},
                               {"Intel", 0x8086},    {"Pensando", 0x1dd8}};

// What the words of one lspci line tell: vendor, device id, virtual function.
void read_words(std::string_view rest, const std::string& source, PciDevice& p) {
  for (const auto& v : kVendors)
    if (contains(rest, v.words)) {
      p.vendor = known(v.id, source);
      break;
    }
  if (contains(rest, "Virtual Function")) p.is_vf = known(true, source);
  // "[10de:2330]" of -nn, or "Device 2329" where the database does not know it.
  if (size_t at = rest.rfind("[10de:"); at != std::string_view::npos && rest.size() >= at + 10) {
    if (auto v = parse_int("0x" + std::string(rest.substr(at + 6, 4)))) p.device = known(int(*v), source);
  } else if (size_t d = rest.find("Device "); d != std::string_view::npos && rest.size() >= d + 11) {
    if (auto v = parse_int("0x" + std::string(rest.substr(d + 7, 4)))) p.device = known(int(*v), source);
  }
}

// The tree does not print classes: an NVIDIA function is a GPU by its model or id; switches, bridges and
// sound are not.
int gpu_sm(const PciDevice& p, std::string_view words) {
  if (p.vendor.value_or(0) != 0x10de || contains(words, "Audio") || contains(words, "NVSwitch")) return 0;
  if (int sm = sm_of_pci_id(p.device.value_or(0))) return sm;
  size_t open = words.find('[');
  return sm_of_gpu_name(open == std::string_view::npos ? words : words.substr(open + 1));
}

bool nic_words(const PciDevice& p, std::string_view words) {
  return p.vendor.value_or(0) == 0x15b3 && !contains(words, "Management") && !contains(words, "bridge") &&
         !contains(words, "Bridge") && !contains(words, "DMA Controller");
}

// Where a branch of the drawing stands: the bus it lists and the bridges above.
struct Branch {
  std::string domain = "0000", bus;
  std::vector<std::string> path;
};

class TreeReader {
 public:
  TreeReader(PciTreeText& out, const std::string& source) : out_(out), source_(source) {}

  void line(std::string_view s) {
    size_t i = 0;
    Branch at;
    bool placed = false;
    while (i < s.size()) {
      char c = s[i];
      if (c == '+' || c == '\\') {
        if (!placed && columns_.count(i)) at = columns_[i];
        columns_[i] = at;
        placed = true;
        ++i;
      } else if (c == '[') {
        size_t end = s.find(']', i);
        if (end == std::string_view::npos) return;
        bracket(s.substr(i + 1, end - i - 1), at);
        i = end + 1;
        placed = true;
      } else if (is_slot(s, i)) {
        std::string address = at.domain + ":" + at.bus + ":" + lower(s.substr(i, 4));
        i += 4;
        if (i < s.size() && s[i] == '-') {
          at.path.push_back(address);
          continue;
        }
        leaf(address, trim(s.substr(i)), at);
        return;
      } else {
        ++i;  // - | and blanks
      }
    }
  }

 private:
  static bool hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
  static bool is_slot(std::string_view s, size_t i) {
    return i + 4 <= s.size() && hex(s[i]) && hex(s[i + 1]) && s[i + 2] == '.' && s[i + 3] >= '0' &&
           s[i + 3] <= '7';
  }
  // "[0000:17]" begins a root, "[18-1f]" and "[0002:01]" behind a bridge its secondary bus.
  void bracket(std::string_view inside, Branch& at) {
    std::string_view first = inside.substr(0, inside.find('-'));
    if (size_t colon = first.find(':'); colon != std::string_view::npos) {
      at.domain = lower(first.substr(0, colon));
      first = first.substr(colon + 1);
    }
    if (first.size() != 2 || !hex(first[0]) || !hex(first[1])) return;
    at.bus = lower(first);
    if (at.path.empty()) at.path.push_back("pci" + at.domain + ":" + at.bus);
  }
  void leaf(const std::string& address, std::string_view words, const Branch& at) {
    if (at.bus.empty()) return;
    PciDevice p;
    p.address = address;
    p.path = at.path;
    read_words(words, source_, p);
    if (int sm = gpu_sm(p, words)) {
      p.device_class = known(0x030200, source_);
      Gpu g;
      g.address = address;
      g.compute_capability = known(sm, source_ + " (product)");
      out_.gpus.push_back(std::move(g));
    } else if (!nic_words(p, words)) {
      return;
    }
    out_.pci.push_back(std::move(p));
  }

  PciTreeText& out_;
  const std::string& source_;
  std::unordered_map<size_t, Branch> columns_;
};

}  // namespace

PciTreeText parse_lspci_tree(std::string_view text, const std::string& source) {
  PciTreeText out;
  TreeReader reader(out, source);
  for (std::string_view raw : lines(text)) reader.line(clean_pasted_line(raw));
  out.found = !out.pci.empty();
  number_gpus(out, {}, source);
  return out;
}

// "mlx5_0 -> ../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/infiniband/mlx5_0", and the same for netdevs
// and PCI devices: the whole chain of bridges in one line.
PciTreeText parse_sysfs_links(std::string_view text, const std::string& source) {
  PciTreeText out;
  std::unordered_map<std::string, size_t> places;
  std::unordered_map<std::string, size_t> named;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    size_t at = line.find("devices/pci");
    if (at == std::string::npos) continue;
    auto parts = split(trim(std::string_view(line).substr(at + 8)), '/');
    size_t last = 0;
    for (size_t i = 1; i < parts.size() && parts.size() < 64; ++i)
      if (!pci_address(parts[i]).empty() && contains(parts[i], ".")) last = i;
    if (last == 0) continue;
    PciDevice p;
    p.address = pci_address(parts[last]);
    for (size_t i = 0; i < last; ++i) p.path.emplace_back(parts[i]);
    if (places.try_emplace(p.address, out.pci.size()).second) out.pci.push_back(p);
    out.found = true;
    if (last + 2 >= parts.size()) continue;
    std::string_view kind = parts[last + 1], name = parts[last + 2];
    if (kind != "infiniband" && kind != "net") continue;
    auto [it, fresh] = named.try_emplace(p.address, out.rdma.size());
    if (fresh) {
      out.rdma.emplace_back();
      out.rdma.back().address = p.address;
    }
    RdmaDevice& d = out.rdma[it->second];
    if (kind == "infiniband" && d.name.empty())
      d.name = name;
    else if (kind == "net")
      d.netdevs.emplace_back(name);
  }
  std::erase_if(out.rdma, [](const RdmaDevice& d) { return d.name.empty(); });
  out.has_names = !out.rdma.empty();
  (void)source;
  return out;
}

void read_lspci(std::string_view text, const std::string& source, Facts& facts) {
  auto places = places_of(facts.pci);
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    std::string_view t = trim(line);
    size_t space = t.find(' ');
    if (space == std::string_view::npos) continue;
    std::string address = pci_address(t.substr(0, space));
    if (address.empty() || !contains(t.substr(0, space), ".")) continue;
    std::string_view rest = trim(t.substr(space));
    PciDevice p;
    p.address = address;
    int cls = contains(rest, "3D controller")                                                      ? 0x030200
              : contains(rest, "VGA compatible")                                                   ? 0x030000
              : contains(rest, "Infiniband controller") || contains(rest, "InfiniBand controller") ? 0x020700
              : contains(rest, "Ethernet controller")                                              ? 0x020000
              : contains(rest, "Bridge") || contains(rest, "bridge")                               ? 0x060400
                                                                                                   : 0;
    if (cls == 0 || cls == 0x060400) continue;
    p.device_class = known(cls, source);
    read_words(rest, source, p);
    if (p.vendor.value_or(0) == 0x10de && cls < 0x030000) p.vendor = absent<int>(source, "not shown");
    auto [place, fresh] = places.try_emplace(address, facts.pci.size());
    if (fresh) {
      facts.pci.push_back(std::move(p));
      continue;
    }
    PciDevice& old = facts.pci[place->second];  // the tree showed it without its class
    if (!old.device_class.ok()) old.device_class = p.device_class;
    if (!old.vendor.ok()) old.vendor = p.vendor;
    if (!old.device.ok()) old.device = p.device;
    if (!old.is_vf.ok()) old.is_vf = p.is_vf;
  }
  read_lspci_details(text, source, facts);
}

void read_pci_numa(std::string_view text, const std::string& source, Facts& facts) {
  auto places = places_of(facts.pci);
  for (std::string_view raw : lines(text)) {
    std::string line = replace_all(clean_pasted_line(raw), "|", " ");
    auto w = split_ws(line);
    if (w.size() != 2) continue;
    std::string address = pci_address(w[0]);
    auto node = parse_int(w[1]);
    if (address.empty() || !node || *node < -1 || *node > 4096) continue;
    auto [it, fresh] = places.try_emplace(address, facts.pci.size());
    if (fresh) {
      facts.pci.emplace_back();
      facts.pci.back().address = address;
    }
    Fact<int>& known_node = facts.pci[it->second].numa_node;
    if (!known_node.ok()) known_node = known(int(*node), source);
  }
}

}  // namespace ep
