// The indented part of `lspci -vv` and -vvv: what configuration space says of links and peer-to-peer traffic.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/text.h"
#include "facts/pci_config.h"
#include "facts/text_host.h"
#include "facts/text_xml.h"
#include "host/paste.h"

namespace ep {
namespace {

struct Shown {
  PciDevice device;
  std::string domain;
  int bus = -1, secondary = -1, subordinate = -1;
};

std::optional<int> hex(std::string_view s) {
  auto n = parse_int("0x" + std::string(s));
  return n && *n >= 0 && *n < 256 ? std::optional(int(*n)) : std::nullopt;
}

// The word behind `key`, up to a blank or comma: "secondary=17," gives 17.
std::string_view behind(std::string_view text, std::string_view key) {
  size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + key.size());
  return rest.substr(0, std::min(rest.find_first_of(" ,\t;"), rest.size()));
}

class Details {
 public:
  explicit Details(const std::string& source) : source_(source) {}

  void line(std::string_view raw) {
    const std::string clean = clean_pasted_line(raw);
    const std::string_view t = trim(clean);
    if (t.empty()) return;
    const bool indented = clean[0] == ' ' || clean[0] == '\t';
    const std::string address = indented ? "" : pci_address(t.substr(0, t.find(' ')));
    if (contains(address, ".")) return start(address);
    if (shown_.empty() || !indented) return;
    details_ = true;
    Shown& s = shown_.back();
    PciDevice& d = s.device;
    if (starts_with(t, "Bus: primary=")) {
      s.secondary = hex(behind(t, "secondary=")).value_or(-1);
      s.subordinate = hex(behind(t, "subordinate=")).value_or(-1);
    } else if (contains(t, "<access denied>")) {
      pci_config_trouble(unreadable<bool>(source_, "lspci was not root: access denied"), d);
    } else if (starts_with(t, "Capabilities: ") && contains(t, "Express ")) {
      const char* type = contains(t, "Downstream Port") ? "downstream"
                         : contains(t, "Upstream Port") ? "upstream"
                         : contains(t, "Root Port")     ? "root"
                         : contains(t, "Endpoint")      ? "endpoint"
                                                        : "other";
      d.port_type = known<std::string>(type, source_);
    } else if (starts_with(t, "ACSCtl:")) {
      d.acs_redirect = known(contains(t, "ReqRedir+") || contains(t, "CmpltRedir+"), source_);
    } else if (starts_with(t, "LnkCap:")) {
      link(t, d.link_speed_max_gts, d.link_width_max);
    } else if (starts_with(t, "LnkSta:")) {
      link(t, d.link_speed_gts, d.link_width);
    } else {
      if (contains(t, "RlxdOrd")) d.relaxed_ordering = known(contains(t, "RlxdOrd+"), source_);
      if (auto n = parse_int(behind(t, "MaxReadReq "))) d.max_read_request = known(int(*n), source_);
    }
  }

  void into(Facts& f) {
    const bool bridges = std::any_of(shown_.begin(), shown_.end(), [](auto& s) { return s.secondary >= 0; });
    if (!details_) return;
    std::unordered_map<std::string, PciDevice*> known_devices;
    for (PciDevice& old : f.pci) known_devices.emplace(old.address, &old);
    std::vector<PciDevice> all;
    for (Shown& s : shown_) {
      place(s);
      PciDevice& d = s.device;
      if (d.port_type.ok() && !d.acs_redirect.ok())  // with its capabilities, and ACS is not among them
        d.acs_redirect = absent<bool>(source_, "no ACSCtl line");
      else if (!d.port_type.ok() && d.port_type.known != Known::unreadable)
        pci_config_trouble(unreadable<bool>(source_, "only lspci -vvv as root shows it"), d);
      if (auto it = known_devices.find(d.address); it != known_devices.end()) {
        merge(d, *it->second);
        d.vendor = it->second->vendor;
        d.device_class = it->second->device_class;
      }
      all.push_back(d);
    }
    if (!bridges) return;
    f.kernel.acs_redirect = acs_redirect_of(all, f.kernel.acs_bridges);
    if (f.kernel.acs_redirect.ok()) f.kernel.acs_redirect.where = source_;
  }

 private:
  void start(const std::string& address) {
    if (shown_.size() >= 4096) return;
    Shown s;
    s.device.address = address;
    s.domain = address.substr(0, address.find(':'));
    s.bus = hex(std::string_view(address).substr(s.domain.size() + 1, 2)).value_or(-1);
    shown_.push_back(std::move(s));
  }

  void link(std::string_view t, Fact<double>& speed, Fact<int>& width) {
    const std::string_view s = behind(t, "Speed "), w = behind(t, "Width x");
    const size_t unit = s.find("GT/s");
    if (unit != std::string_view::npos)
      if (auto n = parse_double(s.substr(0, unit))) speed = known(*n, source_);
    if (auto n = parse_int(w); n && *n >= 0 && *n <= 32) width = known(int(*n), source_);
  }

  // The bridges whose range of buses holds this one, widest first.
  void place(Shown& s) {
    std::vector<const Shown*> above;
    for (const Shown& b : shown_)
      if (b.domain == s.domain && b.secondary >= 0 && b.secondary <= s.bus && s.bus <= b.subordinate)
        above.push_back(&b);
    std::sort(above.begin(), above.end(), [](auto* a, auto* b) { return a->bus < b->bus; });
    s.device.path = {"pci" + s.domain};
    for (const Shown* b : above) s.device.path.push_back(b->device.address);
  }

  static void merge(const PciDevice& from, PciDevice& to) {
    if (from.link_speed_gts.ok()) to.link_speed_gts = from.link_speed_gts;
    if (from.link_speed_max_gts.ok()) to.link_speed_max_gts = from.link_speed_max_gts;
    if (from.link_width.ok()) to.link_width = from.link_width;
    if (from.link_width_max.ok()) to.link_width_max = from.link_width_max;
    to.port_type = from.port_type;
    to.acs_redirect = from.acs_redirect;
    to.relaxed_ordering = from.relaxed_ordering;
    to.max_read_request = from.max_read_request;
  }

  const std::string& source_;
  std::vector<Shown> shown_;
  bool details_ = false;
};

}  // namespace

void read_lspci_details(std::string_view text, const std::string& source, Facts& facts) {
  Details details(source);
  for (std::string_view raw : lines(text)) details.line(raw);
  details.into(facts);
}

}  // namespace ep
