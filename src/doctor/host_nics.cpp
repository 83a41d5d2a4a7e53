// Observations of the RDMA devices: names, links, GID tables, and what the topology concludes from them.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/host_notes.h"

namespace ep {

namespace {

class Nics : HostNotes {
 public:
  Nics(const Facts& f, const Topology& t, Observed& o) : HostNotes(f, o) {
    for (const TopologyNic& n : t.nics)
      if (n.usable) usable_.insert(n.name);
    for (const Finding& x : t.findings) o.add("topology", x.code, {"topology", 0, x.title}, Trust::running);
  }

  void run() {
    if (!f_.rdma_readable.value_or(false) && f_.rdma.empty()) return;
    int active = 0, down = 0;
    const std::string where = "/sys/class/infiniband";
    std::vector<std::string> hidden;
    for (const RdmaDevice& d : f_.rdma) {
      o_.add("nic.names", d.name, {where, 0, d.name}, Trust::running);
      text("nic.driver", d.driver);
      text("nic.model", d.hca_type);
      if (d.has_uverbs.ok() && !*d.has_uverbs) hidden.push_back(d.name);
      for (const RdmaPort& p : d.ports) {
        (p.state.ok() && icontains(*p.state, "ACTIVE") ? active : down) += p.state.ok();
        text("link_layer", p.link_layer);
        if (p.rate_gbps.ok())
          o_.add("perf.line_gbps", std::to_string(*p.rate_gbps / 8), {p.rate_gbps.where, 0, ""},
                 Trust::running);
      }
    }
    number("nic.count", f_.rdma.size(), where);
    number("nic.active", active, where);
    number("nic.down", down, where);
    number("nic.usable", usable_.size(), "topology");
    count("nic.no_uverbs", hidden, "/dev/infiniband");
    gid();
    links();
    mtu();
  }

 private:
  bool carries(const RdmaDevice& d) const { return usable_.count(d.name) != 0; }
  static bool is_active(const RdmaPort& p) { return icontains(p.state.value_or(""), "ACTIVE"); }

  /// The index that the environment pins, against the table of every RoCE port that carries EP traffic (of
  /// every active one where nothing tells which do).
  void gid() {
    for (const char* name : {"NVSHMEM_IB_GID_INDEX", "NCCL_IB_GID_INDEX"}) {
      const Observation* set = o_.best(std::string("env.") + name);
      auto index = set ? parse_int(trim(set->value)) : std::nullopt;
      if (!index || *index < 0) continue;
      const Evidence where = set->where;
      bool judged = false;
      std::vector<std::string> bad;
      for (const RdmaDevice& d : f_.rdma)
        for (const RdmaPort& p : d.ports) {
          if (p.link_layer.value_or("") != "Ethernet" || !is_active(p) || p.gids.empty() ||
              (!usable_.empty() && !carries(d)))
            continue;
          judged = true;
          bool good = false;
          for (const GidEntry& g : p.gids)
            good |= g.index == *index && icontains(g.type.value_or(""), "v2") && !starts_with(g.gid, "fe80");
          if (!good) bad.push_back(d.name);
        }
      o_.add("gid.index", std::to_string(*index), where, Trust::running);
      if (judged)
        flag("gid.valid", bad.empty(), "/sys/class/infiniband/*/ports/*/gids",
             bad.empty() ? ""
                         : std::string(name) + "=" + std::to_string(*index) + " is no RoCE v2 entry on " +
                               join(bad, ", "));
    }
  }

  static double pcie_gbps(double speed_gts, int width) {
    const double coding = speed_gts <= 5 ? 0.8 : speed_gts < 64 ? 128.0 / 130 : 0.98;
    return speed_gts * width * coding;
  }

  /// A link below what the card can do, and slower than its port: the port's rate cannot be reached.
  void links() {
    std::map<std::string, const PciDevice*> by_address;
    for (const PciDevice& d : f_.pci) by_address.emplace(d.address, &d);
    std::vector<std::string> slow, ordered, small;
    bool link_seen = false, control_seen = false;
    for (const RdmaDevice& d : f_.rdma) {
      auto it = by_address.find(d.address);
      if (it == by_address.end() || !carries(d) || d.is_vf.value_or(false)) continue;
      const PciDevice& p = *it->second;
      if (p.relaxed_ordering.ok() && p.max_read_request.ok()) {
        control_seen = true;
        if (!*p.relaxed_ordering) ordered.push_back(d.name);
        if (*p.max_read_request < 512) small.push_back(d.name + ": " + std::to_string(*p.max_read_request));
      }
      if (p.is_vf.value_or(false) || !p.link_speed_gts.ok() || !p.link_speed_max_gts.ok() ||
          !p.link_width.ok() || !p.link_width_max.ok() || *p.link_width <= 0)
        continue;
      double rate = 0;
      for (const RdmaPort& port : d.ports)
        if (is_active(port)) rate += port.rate_gbps.value_or(0);
      link_seen = true;
      const bool reduced = *p.link_speed_gts < *p.link_speed_max_gts || *p.link_width < *p.link_width_max;
      const double carries_gbps = pcie_gbps(*p.link_speed_gts, *p.link_width);
      if (!reduced || rate <= 0 || carries_gbps >= rate) continue;
      slow.push_back(d.name + ": " + short_number(*p.link_speed_gts) + " GT/s x" +
                     std::to_string(*p.link_width) + " of " + short_number(*p.link_speed_max_gts) +
                     " GT/s x" + std::to_string(*p.link_width_max) + " carries " +
                     std::to_string(int(carries_gbps)) + " of " + std::to_string(int(rate)) + " Gb/s");
    }
    if (link_seen) count("nic.link_slow", slow, "/sys/bus/pci/devices/*/current_link_speed");
    if (control_seen) count("nic.no_relaxed_ordering", ordered, "/sys/bus/pci/devices/*/config");
    if (control_seen) count("nic.small_read_request", small, "/sys/bus/pci/devices/*/config");
  }

  static std::string short_number(double v) {
    std::string s = std::to_string(std::round(v * 10) / 10);
    s.erase(s.find('.') + 2);
    return ends_with(s, ".0") ? s.substr(0, s.size() - 2) : s;
  }

  /// Ports of one fabric with different MTUs cannot be connected crosswise; a small one costs speed.
  void mtu() {
    std::map<int, std::vector<std::string>> by_mtu;
    for (const RdmaDevice& d : f_.rdma)
      for (const RdmaPort& p : d.ports)
        if (carries(d) && is_active(p) && p.active_mtu.ok() && p.link_layer.value_or("") == "Ethernet")
          by_mtu[*p.active_mtu].push_back(d.name);
    if (by_mtu.empty()) return;
    std::vector<std::string> words;
    for (const auto& [mtu, names] : by_mtu) words.push_back(std::to_string(mtu) + ": " + join(names, " "));
    flag("nic.mtu_mixed", by_mtu.size() > 1, "ibv_devinfo active_mtu",
         by_mtu.size() > 1 ? join(words, "; ") : "");
    number("nic.mtu", by_mtu.begin()->first, "ibv_devinfo active_mtu", join(words, "; "));
  }

  std::set<std::string> usable_;
};

}  // namespace

void observe_nics(const Facts& f, const Topology& t, Observed& o) {
  Nics(f, t, o).run();
}

}  // namespace ep
