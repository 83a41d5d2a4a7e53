// RDMA devices from /sys/class/infiniband; active MTU from ibv_devinfo, which alone shows it.
#include <algorithm>

#include "base/text.h"
#include "facts/gid_drift.h"
#include "facts/reading.h"

namespace ep {

namespace {

const std::string kClass = "/sys/class/infiniband";

// Counters that tell traffic apart from trouble. Reading all of them asks the NIC's firmware dozens of times.
const char* const kCounters[] = {"counters/port_xmit_data",
                                 "counters/port_rcv_data",
                                 "counters/port_xmit_wait",
                                 "counters/port_xmit_discards",
                                 "counters/port_rcv_errors",
                                 "counters/symbol_error",
                                 "counters/link_downed",
                                 "counters/link_error_recovery",
                                 "hw_counters/out_of_sequence",
                                 "hw_counters/packet_seq_err",
                                 "hw_counters/local_ack_timeout_err",
                                 "hw_counters/rnr_nak_retry_err",
                                 "hw_counters/rp_cnp_handled",
                                 "hw_counters/np_cnp_sent",
                                 "hw_counters/np_ecn_marked_roce_packets",
                                 "hw_counters/rx_icrc_encapsulated",
                                 "hw_counters/implied_nak_seq_err",
                                 "hw_counters/req_cqe_error"};

// "4: ACTIVE" and "5: LinkUp".
Fact<std::string> read_state(const Host& host, const std::string& path) {
  auto text = read_text(host, path);
  if (!text) return text;
  size_t colon = text->find(": ");
  if (colon == std::string::npos)
    return malformed<std::string>(path, "expected \"N: STATE\", read \"" + text->substr(0, 40) + "\"");
  return known(text->substr(colon + 2), path);
}

// "400 Gb/sec (4X NDR)".
Fact<double> read_rate(const Host& host, const std::string& path) {
  auto text = read_text(host, path);
  if (!text) return same_trouble<double>(text);
  auto words = split_ws(*text);
  auto n = words.size() >= 2 && words[1] == "Gb/sec" ? parse_double(words[0]) : std::nullopt;
  if (!n) return malformed<double>(path, "expected \"N Gb/sec\", read \"" + text->substr(0, 40) + "\"");
  return known(*n, path);
}

std::vector<GidEntry> read_gids(const Host& host, const std::string& port) {
  std::vector<GidEntry> out;
  auto names = names_in(host, port + "/gids");
  std::sort(names.begin(), names.end(), [](auto& a, auto& b) { return natural_less(a, b); });
  for (const auto& name : names) {
    auto index = parse_int(name);
    auto gid = read_text(host, port + "/gids/" + name);
    // Unused entries are zero, or fail to read: neither is an address.
    if (!index || !gid || gid->find_first_not_of("0:") == std::string::npos) continue;
    GidEntry e;
    e.index = int(*index);
    e.gid = lower(*gid);
    e.type = read_text(host, port + "/gid_attrs/types/" + name);
    e.netdev = read_text(host, port + "/gid_attrs/ndevs/" + name);
    out.push_back(std::move(e));
  }
  return out;
}

// `ibv_devinfo -v`: device -> port -> active MTU.
std::map<std::string, std::map<int, int>> active_mtus(std::string_view text) {
  std::map<std::string, std::map<int, int>> out;
  std::string device;
  int port = 0;
  for (auto line : lines(text)) {
    auto words = split_ws(line);
    if (words.size() < 2) continue;
    auto number = parse_int(words[1]);
    if (words[0] == "hca_id:") device = words[1], port = 0;
    if (words[0] == "port:" && number) port = int(*number);
    if (words[0] == "active_mtu:" && number && port) out[device][port] = int(*number);
  }
  return out;
}

RdmaPort read_port(const Host& host, const std::string& dir, int number) {
  RdmaPort p;
  p.number = number;
  p.state = read_state(host, dir + "/state");
  p.phys_state = read_state(host, dir + "/phys_state");
  p.rate_gbps = read_rate(host, dir + "/rate");
  p.link_layer = read_text(host, dir + "/link_layer");
  p.gids = read_gids(host, dir);
  p.lid = read_int(host, dir + "/lid");
  for (const char* counter : kCounters) {
    auto value = read_u64(host, dir + "/" + counter);
    if (value.known != Known::absent)
      p.counters[std::string(counter).substr(std::string_view(counter).find('/') + 1)] = value;
  }
  return p;
}

Fact<bool> has_uverbs(const Host& host, const std::string& device) {
  const std::string verbs = "/sys/class/infiniband_verbs";
  auto nodes = host.list(verbs);
  if (!nodes) return from_error<bool>(nodes.error(), verbs);
  for (const auto& node : *nodes)
    if (read_text(host, verbs + "/" + node + "/ibdev").value_or("") == device) {
      std::string path = "/dev/infiniband/" + node;
      auto info = host.info(path);
      if (info) return known(info->readable && info->writable, path);
      if (info.error().kind == ErrorKind::absent) return known(false, path);
      return from_error<bool>(info.error(), path);
    }
  return known(false, verbs);
}

RdmaDevice read_device(const Host& host, const std::string& name) {
  std::string dir = kClass + "/" + name;
  RdmaDevice d;
  d.name = name;
  auto device = host.link(dir + "/device");
  if (device) d.address = lower(device->substr(device->rfind('/') + 1));
  d.driver = read_link_name(host, dir + "/device/driver");
  if (!device && device.error().kind == ErrorKind::absent) {
    auto parent = read_text(host, dir + "/parent");  // software devices name the netdev they stand on
    d.driver = parent ? known<std::string>("rdma_rxe", parent.where) : same_trouble<std::string>(parent);
  }
  d.hca_type = read_text(host, dir + "/hca_type");
  d.board_id = read_text(host, dir + "/board_id");
  d.firmware = read_text(host, dir + "/fw_ver");
  d.node_guid = read_text(host, dir + "/node_guid");
  d.numa_node = read_int(host, dir + "/device/numa_node");
  d.has_uverbs = has_uverbs(host, name);
  d.traffic_class = read_int(host, dir + "/tc/1/traffic_class");
  auto physfn = host.link(dir + "/device/physfn");
  if (!device)
    d.is_vf = absent<bool>(dir + "/device", "no PCI device");
  else if (physfn)
    d.is_vf = known(true, dir + "/device/physfn");
  else if (physfn.error().kind == ErrorKind::absent)
    d.is_vf = known(false, dir + "/device/physfn");
  else
    d.is_vf = from_error<bool>(physfn.error(), dir + "/device/physfn");
  d.netdevs = names_in(host, dir + "/device/net");
  if (d.netdevs.empty())
    if (auto parent = read_text(host, dir + "/parent"); parent && !parent->empty())
      d.netdevs.push_back(*parent);
  auto ports = names_in(host, dir + "/ports");
  std::sort(ports.begin(), ports.end(), [](auto& a, auto& b) { return natural_less(a, b); });
  for (const auto& port : ports)
    if (auto n = parse_int(port)) d.ports.push_back(read_port(host, dir + "/ports/" + port, int(*n)));
  return d;
}

}  // namespace

std::vector<RdmaDevice> read_gid_tables(const Host& host) {
  std::vector<RdmaDevice> out;
  auto names = names_in(host, kClass);
  std::sort(names.begin(), names.end(), [](auto& a, auto& b) { return natural_less(a, b); });
  for (const auto& name : names) {
    RdmaDevice d;
    d.name = name;
    for (const auto& port : names_in(host, kClass + "/" + name + "/ports"))
      if (auto n = parse_int(port)) {
        RdmaPort p;
        p.number = int(*n);
        p.gids = read_gids(host, kClass + "/" + name + "/ports/" + port);
        d.ports.push_back(std::move(p));
      }
    out.push_back(std::move(d));
  }
  return out;
}

void read_rdma(const Reading& r, Facts& f) {
  auto names = r.host.list(kClass);
  f.rdma_readable = names ? known(true, kClass) : from_error<bool>(names.error(), kClass);
  auto sorted = names.value_or(std::vector<std::string>{});
  std::sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return natural_less(a, b); });
  for (const auto& name : sorted) f.rdma.push_back(read_device(r.host, name));
  auto verbs = probe_text(r.probes.get("ibv_devinfo"), "ibv_devinfo");
  auto mtus = verbs ? active_mtus(*verbs) : std::map<std::string, std::map<int, int>>{};
  for (auto& d : f.rdma)
    for (auto& p : d.ports) {
      auto device = mtus.find(d.name);
      bool found = device != mtus.end() && device->second.count(p.number);
      p.active_mtu = !verbs  ? same_trouble<int>(verbs)
                     : found ? known(device->second.at(p.number), verbs.where)
                             : absent<int>(verbs.where, "ibv_devinfo does not show this port");
    }
  f.ofed_version = probe_text(r.probes.get("ofed_info"), "ofed_info");
  if (f.ofed_version) {
    std::string_view v = trim(*f.ofed_version);
    if (ends_with(v, ":")) v.remove_suffix(1);
    f.ofed_version.value = std::string(v);
  }
  auto header = read_exists(r.host, "/usr/include/infiniband/mlx5dv.h");
  f.has_mlx5dv = header;
  if (header && *header) {
    bool library = false;
    std::string arch = f.os.architecture.value_or("x86_64");
    for (const std::string& dir :
         {"/usr/lib/" + arch + "-linux-gnu", std::string("/usr/lib64"), std::string("/usr/lib")})
      library |= r.host.exists(dir + "/libmlx5.so");
    f.has_mlx5dv = known(library, header.where);
  }
}

}  // namespace ep
