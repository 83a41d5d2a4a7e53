// Network devices that carry something: with a PCI device, bonds and bridges, and whatever holds the default
// route.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

const std::string kClass = "/sys/class/net";

// /proc/net/route: the line whose destination and mask are zero (proc(5)).
std::set<std::string> default_routes(std::string_view text) {
  std::set<std::string> out;
  for (auto line : lines(text)) {
    auto w = split_ws(line);
    if (w.size() >= 8 && w[1] == "00000000" && w[7] == "00000000") out.emplace(w[0]);
  }
  return out;
}

// `ip -o addr`: "2: eth0    inet 198.18.0.3/24 brd ..."; "eth0@if5" names the peer behind the @.
std::map<std::string, std::vector<std::string>> addresses(std::string_view text) {
  std::map<std::string, std::vector<std::string>> out;
  for (auto line : lines(text)) {
    auto w = split_ws(line);
    if (w.size() >= 4 && (w[2] == "inet" || w[2] == "inet6"))
      out[std::string(w[1].substr(0, w[1].find('@')))].emplace_back(w[3]);
  }
  return out;
}

}  // namespace

void read_netdevs(const Reading& r, Facts& f) {
  const Host& host = r.host;
  auto routes_text = host.read("/proc/net/route");
  auto routes = default_routes(routes_text.value_or(""));
  auto ip = probe_text(r.probes.get("ip-addr"), "ip-addr");
  auto ips = addresses(ip.value_or(""));
  auto names = names_in(host, kClass);
  f.interfaces = names;
  auto listed = host.list(kClass);
  f.interfaces_readable = listed ? known(true, kClass) : from_error<bool>(listed.error(), kClass);
  std::sort(names.begin(), names.end(), [](auto& a, auto& b) { return natural_less(a, b); });
  for (const auto& name : names) {
    std::string dir = kClass + "/" + name;
    auto device = host.link(dir + "/device");
    bool is_group = host.exists(dir + "/bonding") || host.exists(dir + "/bridge");
    if (!device && !is_group && !routes.count(name)) continue;  // lo, veth, tunnels: none of ours
    Netdev n;
    n.name = name;
    if (device) n.address = lower(device->substr(device->rfind('/') + 1));
    // virtio and its kin: the link names a bus of their own; the PCI function is one folder up.
    if (!n.address.empty() && n.address.find(':') == std::string::npos) n.address.clear();
    n.mac = read_text(host, dir + "/address");
    n.operstate = read_text(host, dir + "/operstate");
    n.driver = read_link_name(host, dir + "/device/driver");
    n.mtu = read_int(host, dir + "/mtu");
    n.speed_mbps = read_int(host, dir + "/speed");
    if (n.speed_mbps && *n.speed_mbps < 0) n.speed_mbps = absent<int>(n.speed_mbps.where, "no link");
    n.master = read_link_name(host, dir + "/master");
    for (const auto& entry : names_in(host, dir))
      if (starts_with(entry, "lower_")) n.lower.push_back(entry.substr(6));
    if (auto it = ips.find(name); it != ips.end()) n.ips = it->second;
    n.default_route = routes_text ? known(routes.count(name) > 0, "/proc/net/route")
                                  : from_error<bool>(routes_text.error(), "/proc/net/route");
    f.netdevs.push_back(std::move(n));
  }
}

}  // namespace ep
