// See text_rdma.h. Readers take "key: value" blocks with tabs or blanks, in whatever order the tool lists them.
#include "facts/text_rdma.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "facts/text_matrix.h"

namespace ep {
namespace {

RdmaDevice& device(RdmaText& t, std::string_view name) {
  for (auto& d : t.devices)
    if (d.name == name) return d;
  t.devices.emplace_back();
  t.devices.back().name = name;
  return t.devices.back();
}

RdmaPort& port(RdmaDevice& d, int number) {
  for (auto& p : d.ports)
    if (p.number == number) return p;
  d.ports.emplace_back();
  d.ports.back().number = number;
  return d.ports.back();
}

// "key:   value" with the key in lower case; false when there is no colon.
bool key_value(std::string_view line, std::string& key, std::string& value) {
  size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  key = lower(trim(line.substr(0, colon)));
  value = std::string(trim(line.substr(colon + 1)));
  return true;
}

// "PORT_ACTIVE (4)", "4: ACTIVE", "Active" -> "ACTIVE".
std::string state_word(std::string_view v) {
  std::string s(trim(v));
  if (size_t c = s.find(':'); c != std::string::npos) s = std::string(trim(s.substr(c + 1)));
  if (size_t p = s.find('('); p != std::string::npos) s = std::string(trim(s.substr(0, p)));
  if (starts_with(s, "PORT_")) s = s.substr(5);
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  if (s == "INITIALIZING") s = "INIT";
  return s;
}

std::string phys_word(std::string_view v) {
  std::string s = lower(v);
  if (contains(s, "linkup") || contains(s, "link_up")) return "LinkUp";
  if (contains(s, "polling")) return "Polling";
  if (contains(s, "disabled")) return "Disabled";
  if (contains(s, "sleep")) return "Sleep";
  return std::string(trim(v));
}

std::string layer_word(std::string_view v) {
  std::string s = lower(v);
  if (contains(s, "infiniband") || s == "ib") return "InfiniBand";
  if (contains(s, "ethernet")) return "Ethernet";
  return std::string(trim(v));
}

std::optional<double> leading_number(std::string_view v) {
  size_t n = 0;
  while (n < v.size() && (std::isdigit(static_cast<unsigned char>(v[n])) || v[n] == '.')) ++n;
  return n ? parse_double(v.substr(0, n)) : std::nullopt;
}

void add_gid(RdmaPort& p, int index, std::string_view gid, std::string_view type, std::string_view netdev,
             const char* where) {
  std::string full = full_gid(gid);
  if (full.empty() || full == "0000:0000:0000:0000:0000:0000:0000:0000") return;
  for (auto& e : p.gids)
    if (e.index == index) return;
  GidEntry e;
  e.index = index;
  e.gid = full;
  std::string t = lower(type);
  if (contains(t, "v2"))
    e.type = known<std::string>("RoCE v2", where);
  else if (contains(t, "v1"))
    e.type = known<std::string>("IB/RoCE v1", where);
  if (!netdev.empty()) e.netdev = known(std::string(netdev), where);
  auto at = std::find_if(p.gids.begin(), p.gids.end(), [&](const GidEntry& o) { return o.index > index; });
  p.gids.insert(at, std::move(e));
}

std::string part_name(std::string_view vendor_part_id) {
  auto n = parse_int(vendor_part_id);
  return n && *n >= 4000 && *n < 9999 ? fmt::format("MT{}", *n) : std::string();
}

// ConnectX virtual functions have part numbers of their own.
bool is_vf_part(std::string_view hca_type) {
  for (std::string_view p : {"MT4116", "MT4120", "MT4122", "MT4124", "MT4126", "MT4128", "MT4130"})
    if (hca_type == p) return true;
  return false;
}

}  // namespace

std::string full_gid(std::string_view text) {
  std::string s = lower(trim(text));
  if (s.size() < 2 || s.size() > 45) return {};
  // An IPv4 tail becomes two groups.
  if (size_t dot = s.find('.'); dot != std::string::npos) {
    size_t colon = s.rfind(':');
    if (colon == std::string::npos) return {};
    auto parts = split(std::string_view(s).substr(colon + 1), '.');
    if (parts.size() != 4) return {};
    std::array<long long, 4> b{};
    for (size_t i = 0; i < 4; ++i) {
      auto v = parse_int(parts[i]);
      if (!v || *v < 0 || *v > 255) return {};
      b[i] = *v;
    }
    s = s.substr(0, colon + 1) + fmt::format("{:x}:{:x}", b[0] * 256 + b[1], b[2] * 256 + b[3]);
  }
  std::vector<std::string> head, tail;
  bool gap = false;
  size_t i = 0;
  if (starts_with(s, "::")) {
    gap = true;
    i = 2;
  }
  while (i < s.size()) {
    size_t n = 0;
    while (i + n < s.size() && std::isxdigit(static_cast<unsigned char>(s[i + n]))) ++n;
    if (n == 0 || n > 4) return {};
    (gap ? tail : head).push_back(std::string(4 - n, '0') + s.substr(i, n));
    i += n;
    if (i == s.size()) break;
    if (s[i] != ':') return {};
    ++i;
    if (i < s.size() && s[i] == ':') {
      if (gap) return {};
      gap = true;
      ++i;
    } else if (i == s.size()) {
      return {};
    }
  }
  size_t have = head.size() + tail.size();
  if (gap ? have > 7 : have != 8) return {};
  while (head.size() + tail.size() < 8) head.push_back("0000");
  for (auto& t : tail) head.push_back(t);
  return join(head, ":");
}

RdmaText parse_ibv_devinfo(std::string_view text) {
  constexpr const char* kWhere = "ibv_devinfo";
  RdmaText out;
  RdmaDevice* d = nullptr;
  RdmaPort* p = nullptr;
  std::string key, value;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    std::string_view t = trim(line);
    if (starts_with(t, "GID[")) {
      size_t close = t.find(']');
      if (!p || close == std::string_view::npos) continue;
      auto index = parse_int(trim(t.substr(4, close - 4)));
      std::string_view rest = t.substr(close + 1);
      if (starts_with(rest, ":")) rest.remove_prefix(1);
      size_t comma = rest.find(',');
      if (!index || *index < 0 || *index > 4095) continue;
      out.has_gids = true;
      add_gid(*p, int(*index), trim(rest.substr(0, comma)),
              comma == std::string_view::npos ? "" : rest.substr(comma + 1), "", kWhere);
      continue;
    }
    if (!key_value(line, key, value)) continue;
    if (key == "hca_id") {
      if (value.empty()) continue;
      d = &device(out, value);
      p = nullptr;
    } else if (!d) {
      continue;
    } else if (key == "port") {
      auto n = parse_int(value);
      if (n && *n > 0 && *n < 256) p = &port(*d, int(*n));
    } else if (key == "fw_ver") {
      d->firmware = known(value, kWhere);
    } else if (key == "node_guid") {
      d->node_guid = known(value, kWhere);
    } else if (key == "board_id") {
      d->board_id = known(value, kWhere);
    } else if (key == "vendor_id") {
      auto n = parse_int(value);
      if (n && *n == 0x1d0f) d->driver = known<std::string>("efa", kWhere);
      if (n && *n == 0x14e4) d->driver = known<std::string>("bnxt_en", kWhere);
      if (n && *n == 0x1dd8) d->driver = known<std::string>("ionic", kWhere);
      if (n && *n == 0x8086) d->driver = known<std::string>("irdma", kWhere);
    } else if (key == "vendor_part_id") {
      if (auto part = part_name(value); !part.empty()) {
        d->hca_type = known(part, kWhere);
        if (is_vf_part(part)) d->is_vf = known(true, kWhere);
      }
    } else if (p && key == "state") {
      p->state = known(state_word(value), kWhere);
    } else if (p && key == "phys_state") {
      p->phys_state = known(phys_word(value), kWhere);
    } else if (p && key == "link_layer") {
      p->link_layer = known(layer_word(value), kWhere);
    } else if (p && key == "active_mtu") {
      if (auto n = leading_number(value)) p->active_mtu = known(int(*n), kWhere);
    } else if (p && key == "port_lid") {
      if (auto n = parse_int(value)) p->lid = known(int(*n), kWhere);
    }
  }
  out.complete = out.devices.size() > 1;  // `-d NAME` lists one
  return out;
}

RdmaText parse_ibstat(std::string_view text) {
  constexpr const char* kWhere = "ibstat";
  RdmaText out;
  RdmaDevice* d = nullptr;
  RdmaPort* p = nullptr;
  std::string key, value;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    std::string_view t = trim(line);
    if (contains(t, "ibpanic:") || contains(t, "stat of IB device")) {
      out.complete = false;
      Finding f;
      f.code = "paste_truncated";
      f.severity = Severity::warn;
      f.title = "ibstat stopped midway; the devices after this one are not listed";
      f.evidence.push_back({kWhere, 0, std::string(t)});
      out.findings.push_back(std::move(f));
      continue;
    }
    if (starts_with(t, "CA '")) {
      size_t end = t.find('\'', 4);
      std::string_view name = t.substr(4, end == std::string_view::npos ? end : end - 4);
      if (name.empty()) continue;
      d = &device(out, name);
      p = nullptr;
      continue;
    }
    if (!d || !key_value(line, key, value)) continue;
    if (starts_with(key, "port ") && value.empty()) {
      auto n = parse_int(trim(std::string_view(key).substr(5)));
      if (n && *n > 0 && *n < 256) p = &port(*d, int(*n));
    } else if (key == "ca type") {
      d->hca_type = known(value, kWhere);
      if (is_vf_part(value)) d->is_vf = known(true, kWhere);
    } else if (key == "firmware version") {
      d->firmware = known(value, kWhere);
    } else if (key == "node guid") {
      d->node_guid = known(value, kWhere);
    } else if (p && key == "state") {
      p->state = known(state_word(value), kWhere);
    } else if (p && key == "physical state") {
      p->phys_state = known(phys_word(value), kWhere);
    } else if (p && key == "rate") {
      if (auto n = leading_number(value)) p->rate_gbps = known(*n, kWhere);
    } else if (p && key == "link layer") {
      p->link_layer = known(layer_word(value), kWhere);
    } else if (p && key == "base lid") {
      if (auto n = parse_int(value)) p->lid = known(int(*n), kWhere);
    }
  }
  if (out.devices.size() < 2) out.complete = false;
  return out;
}

RdmaText parse_ibstatus(std::string_view text) {
  constexpr const char* kWhere = "ibstatus";
  RdmaText out;
  RdmaPort* p = nullptr;
  std::string key, value;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    std::string_view t = trim(line);
    if (icontains(t, "infiniband device '")) {
      size_t a = t.find('\'') + 1, b = t.find('\'', a);
      if (b == std::string_view::npos || b == a) continue;
      RdmaDevice& d = device(out, t.substr(a, b - a));
      int number = 1;
      if (size_t at = t.find("port ", b); at != std::string_view::npos)
        if (auto n = leading_number(t.substr(at + 5)); n && *n > 0 && *n < 256) number = int(*n);
      p = &port(d, number);
      continue;
    }
    if (!p || !key_value(line, key, value)) continue;
    if (key == "state") p->state = known(state_word(value), kWhere);
    if (key == "phys state") p->phys_state = known(phys_word(value), kWhere);
    if (key == "link_layer") p->link_layer = known(layer_word(value), kWhere);
    if (key == "rate")
      if (auto n = leading_number(value)) p->rate_gbps = known(*n, kWhere);
  }
  if (out.devices.size() < 2) out.complete = false;
  return out;
}

RdmaText parse_ibdev2netdev(std::string_view text) {
  RdmaText out;
  out.complete = false;  // devices whose netdev lives elsewhere are not listed
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    auto t = split_ws(line);
    auto arrow = std::find(t.begin(), t.end(), "==>");
    if (arrow == t.end() || arrow + 1 >= t.end() || arrow == t.begin()) continue;
    // `-v` puts the PCI address and more in front; the name is the word before "port".
    auto at = std::find(t.begin(), arrow, "port");
    if (at == t.begin() || at == arrow) continue;
    std::string_view name = *(at - 1);
    if (!is_rdma_name(name))
      for (auto it = t.begin(); it != at; ++it)
        if (is_rdma_name(*it)) name = *it;
    if (!is_rdma_name(name) && t.begin() != at - 1) continue;
    RdmaDevice& d = device(out, name);
    std::string netdev(*(arrow + 1));
    if (std::find(d.netdevs.begin(), d.netdevs.end(), netdev) == d.netdevs.end()) d.netdevs.push_back(netdev);
    int number = 1;
    if (at + 1 < arrow)
      if (auto n = parse_int(*(at + 1)); n && *n > 0 && *n < 256) number = int(*n);
    port(d, number);
    if (contains(line, "(Up)")) out.netdev_up.emplace_back(netdev, true);
    if (contains(line, "(Down)")) out.netdev_up.emplace_back(netdev, false);
    if (t[0].size() == 12 && t[0][4] == ':') d.address = lower(t[0]);
  }
  return out;
}

RdmaText parse_rdma_link(std::string_view text) {
  constexpr const char* kWhere = "rdma link";
  RdmaText out;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    auto t = split_ws(line);
    if (t.size() < 3) continue;
    size_t at = t[0] == "link" ? 1 : (contains(t[0], "/") && ends_with(t[0], ":")) ? 1 : 99;
    if (at == 99) continue;
    std::string id(t[at]);
    if (ends_with(id, ":")) id.pop_back();
    size_t slash = id.rfind('/');
    if (slash == std::string::npos) continue;
    auto number = parse_int(id.substr(slash + 1));
    if (!number || *number < 0 || *number > 255) continue;
    RdmaDevice& d = device(out, id.substr(0, slash));
    RdmaPort& p = port(d, std::max(1, int(*number)));
    for (size_t i = at + 1; i + 1 < t.size(); ++i) {
      if (t[i] == "state") p.state = known(state_word(t[i + 1]), kWhere);
      if (t[i] == "physical_state") p.phys_state = known(phys_word(t[i + 1]), kWhere);
      if (t[i] == "netdev") d.netdevs.push_back(std::string(t[i + 1]));
      if (t[i] == "lid" || t[i] == "sm_lid" || t[i] == "subnet_prefix")
        if (t[i] == "subnet_prefix") p.link_layer = known<std::string>("InfiniBand", kWhere);
    }
  }
  if (out.devices.size() < 2) out.complete = false;
  return out;
}

RdmaText parse_show_gids(std::string_view text) {
  constexpr const char* kWhere = "show_gids";
  RdmaText out;
  out.complete = false;
  bool end = false;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    end |= contains(line, "n_gids_found");
    auto t = split_ws(line);
    if (t.size() < 4) continue;
    auto number = parse_int(t[1]), index = parse_int(t[2]);
    if (!number || !index || *number < 1 || *number > 255 || *index < 0 || *index > 4095) continue;
    std::string gid = full_gid(t[3]);
    if (gid.empty()) continue;
    std::string_view type, netdev;
    for (size_t i = 4; i < t.size(); ++i) {
      if (lower(t[i]) == "v1" || lower(t[i]) == "v2")
        type = t[i];
      else if (!type.empty() && netdev.empty())
        netdev = t[i];
    }
    RdmaDevice& d = device(out, t[0]);
    RdmaPort& p = port(d, int(*number));
    add_gid(p, int(*index), gid, type, netdev, kWhere);
    if (!type.empty()) {
      // Only RoCE ports have typed entries with a netdev.
      p.link_layer = known<std::string>("Ethernet", kWhere);
    }
    if (!netdev.empty() && std::find(d.netdevs.begin(), d.netdevs.end(), netdev) == d.netdevs.end())
      d.netdevs.push_back(std::string(netdev));
    out.has_gids = true;
  }
  out.complete = end;
  if (out.has_gids && !end) {
    Finding f;
    f.code = "gid_list_open";
    f.severity = Severity::info;
    f.title = "the GID listing has no closing n_gids_found line; entries may be missing";
    f.evidence.push_back({kWhere, 0, ""});
    out.findings.push_back(std::move(f));
  }
  return out;
}

namespace {

struct SysfsGid {
  std::string dev, gid, type, netdev;
  int port = 1, index = 0;
};

// Splits /sys/class/infiniband/DEV/ports/P/REST; false when the path is another one.
bool sysfs_port_path(std::string_view path, std::string& dev, int& port_no, std::string& rest) {
  size_t at = path.find("infiniband/");
  if (at == std::string_view::npos) return false;
  auto parts = split(path.substr(at + 11), '/');
  if (parts.size() < 2 || parts[0].empty()) return false;
  dev = parts[0];
  port_no = 1;
  size_t from = 1;
  if (parts.size() >= 4 && parts[1] == "ports") {
    auto n = parse_int(parts[2]);
    if (!n || *n < 1 || *n > 255) return false;
    port_no = int(*n);
    from = 3;
  }
  rest.clear();
  for (size_t i = from; i < parts.size(); ++i) rest += (rest.empty() ? "" : "/") + std::string(parts[i]);
  return true;
}

void sysfs_value(std::string_view path, std::string_view value, RdmaText& out, std::vector<SysfsGid>& gids) {
  constexpr const char* kWhere = "/sys/class/infiniband";
  std::string dev, rest;
  int number = 1;
  value = trim(value);
  if (value.empty() || !sysfs_port_path(path, dev, number, rest)) return;
  auto gid_slot = [&](std::string_view index) -> SysfsGid* {
    auto n = parse_int(index);
    if (!n || *n < 0 || *n > 4095 || gids.size() > 200000) return nullptr;
    for (auto& g : gids)
      if (g.dev == dev && g.port == number && g.index == *n) return &g;
    gids.push_back({dev, "", "", "", number, int(*n)});
    return &gids.back();
  };
  RdmaDevice& d = device(out, dev);
  if (starts_with(rest, "gids/")) {
    if (auto* g = gid_slot(std::string_view(rest).substr(5))) g->gid = value;
    out.has_gids = true;
  } else if (starts_with(rest, "gid_attrs/types/")) {
    if (auto* g = gid_slot(std::string_view(rest).substr(16)); g && !icontains(value, "invalid")) g->type = value;
  } else if (starts_with(rest, "gid_attrs/ndevs/")) {
    if (auto* g = gid_slot(std::string_view(rest).substr(16)); g && !icontains(value, "invalid")) g->netdev = value;
  } else if (rest == "state") {
    port(d, number).state = known(state_word(value), kWhere);
  } else if (rest == "phys_state") {
    port(d, number).phys_state = known(phys_word(value), kWhere);
  } else if (rest == "link_layer") {
    port(d, number).link_layer = known(layer_word(value), kWhere);
  } else if (rest == "rate") {
    if (auto n = leading_number(value)) port(d, number).rate_gbps = known(*n, kWhere);
  } else if (rest == "hca_type") {
    d.hca_type = known(std::string(value), kWhere);
  } else if (rest == "board_id") {
    d.board_id = known(std::string(value), kWhere);
  } else if (rest == "fw_ver") {
    d.firmware = known(std::string(value), kWhere);
  } else if (rest == "device/numa_node") {
    if (auto n = parse_int(value)) d.numa_node = known(int(*n), kWhere);
  }
}

}  // namespace

RdmaText parse_sysfs_infiniband(std::string_view text) {
  RdmaText out;
  out.complete = false;
  std::vector<SysfsGid> gids;
  std::string open_path;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    std::string_view t = trim(line);
    if (starts_with(t, "==> ") && ends_with(t, " <==")) {
      open_path = t.substr(4, t.size() - 8);
      continue;
    }
    if (size_t at = t.find("infiniband/"); at != std::string_view::npos) {
      open_path.clear();
      size_t path_start = t.rfind(' ', at);
      path_start = path_start == std::string_view::npos ? 0 : path_start + 1;
      size_t end = t.find_first_of(" \t:=", path_start);
      if (end == std::string_view::npos) continue;
      std::string_view path = t.substr(path_start, end - path_start);
      std::string_view value = t.substr(end);
      while (!value.empty() && (value[0] == ' ' || value[0] == '\t' || value[0] == '=')) value.remove_prefix(1);
      if (!value.empty() && value[0] == ':' && !starts_with(value, "::")) value.remove_prefix(1);
      sysfs_value(path, value, out, gids);
    } else if (!open_path.empty()) {
      sysfs_value(open_path, t, out, gids);
      open_path.clear();
    }
  }
  for (const auto& g : gids)
    if (!g.gid.empty()) {
      RdmaPort& p = port(device(out, g.dev), g.port);
      add_gid(p, g.index, g.gid, g.type, g.netdev, "/sys/class/infiniband");
      if (contains(g.type, "v2")) p.link_layer = p.link_layer.ok() ? p.link_layer : known<std::string>("Ethernet", "gid types");
    }
  return out;
}

RdmaText parse_rdma_names(std::string_view text) {
  RdmaText out;
  out.complete = false;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    std::string_view t = trim(line);
    if (t.empty() || t[0] == '#') {
      if (!t.empty() && icontains(t, "more")) out.complete = false;
      continue;
    }
    for (std::string_view word : split_ws(t)) {
      if (size_t slash = word.rfind('/'); slash != std::string_view::npos) word = word.substr(slash + 1);
      if (is_rdma_name(word)) device(out, word);
    }
  }
  return out;
}

namespace {

template <class T>
void fill(Fact<T>& into, const Fact<T>& from, const char* what, const std::string& dev, const std::string& source,
          std::vector<Finding>& findings, bool must_agree) {
  if (!from.ok()) return;
  if (!into.ok()) {
    into = from;
    return;
  }
  if (!must_agree || into.value == from.value) return;
  Finding f;
  f.code = "piece_contradiction";
  f.severity = Severity::warn;
  f.title = fmt::format("{}: {} is {} in {} and {} in {}", dev, what, into.value, into.where, from.value, source);
  f.evidence.push_back({source, 0, ""});
  findings.push_back(std::move(f));
}

}  // namespace

void merge_rdma(const RdmaText& text, const std::string& source, std::vector<RdmaDevice>& devices,
                std::vector<Finding>& findings) {
  for (const auto& d : text.devices) {
    auto it = std::find_if(devices.begin(), devices.end(), [&](const RdmaDevice& o) { return o.name == d.name; });
    if (it == devices.end()) {
      devices.push_back(d);
      continue;
    }
    if (it->address.empty()) it->address = d.address;
    fill(it->driver, d.driver, "driver", d.name, source, findings, false);
    fill(it->hca_type, d.hca_type, "type", d.name, source, findings, true);
    fill(it->board_id, d.board_id, "board", d.name, source, findings, false);
    fill(it->firmware, d.firmware, "firmware", d.name, source, findings, false);
    fill(it->node_guid, d.node_guid, "GUID", d.name, source, findings, false);
    fill(it->numa_node, d.numa_node, "NUMA node", d.name, source, findings, false);
    fill(it->is_vf, d.is_vf, "VF", d.name, source, findings, false);
    for (const auto& n : d.netdevs)
      if (std::find(it->netdevs.begin(), it->netdevs.end(), n) == it->netdevs.end()) it->netdevs.push_back(n);
    for (const auto& p : d.ports) {
      auto pt = std::find_if(it->ports.begin(), it->ports.end(), [&](const RdmaPort& o) { return o.number == p.number; });
      if (pt == it->ports.end()) {
        it->ports.push_back(p);
        continue;
      }
      fill(pt->state, p.state, "state", d.name, source, findings, true);
      fill(pt->phys_state, p.phys_state, "physical state", d.name, source, findings, false);
      fill(pt->rate_gbps, p.rate_gbps, "rate", d.name, source, findings, true);
      fill(pt->link_layer, p.link_layer, "link layer", d.name, source, findings, true);
      fill(pt->active_mtu, p.active_mtu, "active MTU", d.name, source, findings, false);
      fill(pt->lid, p.lid, "LID", d.name, source, findings, false);
      if (pt->gids.empty()) pt->gids = p.gids;
    }
  }
  for (const auto& f : text.findings) {
    findings.push_back(f);
    for (auto& e : findings.back().evidence)
      if (!source.empty()) e.source = source;
  }
}

}  // namespace ep
