// GID tables out of show_gids and of raw files below /sys/class/infiniband, and the text forms of one GID.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <tuple>

#include "base/text.h"
#include "facts/text_rdma_parts.h"

namespace ep {

using namespace rdma_text;

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

RdmaText parse_show_gids(std::string_view text) {
  constexpr const char* kWhere = "show_gids";
  RdmaText out;
  out.complete = false;
  bool end = false;
  size_t rows = 0, told = 0;  // the closing line counts what it printed
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    if (size_t at = line.find("n_gids_found"); at != line.npos) {
      end = true;
      if (size_t eq = line.find('=', at); eq != line.npos)
        told += size_t(
            std::max(0LL, (long long)parse_int(trim(std::string_view(line).substr(eq + 1))).value_or(0)));
    }
    auto t = split_ws(line);
    if (t.size() < 4) continue;
    auto number = parse_int(t[1]), index = parse_int(t[2]);
    if (!number || !index || *number < 1 || *number > 255 || *index < 0 || *index > 4095) continue;
    std::string gid = full_gid(t[3]);
    if (gid.empty()) continue;
    ++rows;
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
  out.complete = end && told <= rows;
  if (out.has_gids && !end) {
    Finding f;
    f.code = "gid_list_open";
    f.severity = Severity::info;
    f.title = "the GID listing has no closing n_gids_found line; entries may be missing";
    f.title_zh = "GID 列表没有结尾的 n_gids_found 行；可能缺少条目";
    f.evidence.push_back({kWhere, 0, ""});
    out.findings.push_back(std::move(f));
  }
  return out;
}

namespace {

struct SysfsGid {
  std::string gid, type, netdev;
};
using SysfsGids = std::map<std::tuple<std::string, int, int>, SysfsGid>;  // device, port, index

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

void sysfs_value(std::string_view path, std::string_view value, RdmaText& out, SysfsGids& gids) {
  constexpr const char* kWhere = "/sys/class/infiniband";
  std::string dev, rest;
  int number = 1;
  value = trim(value);
  if (value.empty() || !sysfs_port_path(path, dev, number, rest)) return;
  auto gid_slot = [&](std::string_view index) -> SysfsGid* {
    auto n = parse_int(index);
    if (!n || *n < 0 || *n > 4095 || gids.size() > 200000) return nullptr;
    return &gids[{dev, number, int(*n)}];
  };
  RdmaDevice& d = device(out, dev);
  if (starts_with(rest, "gids/")) {
    if (auto* g = gid_slot(std::string_view(rest).substr(5))) g->gid = value;
    out.has_gids = true;
  } else if (starts_with(rest, "gid_attrs/types/")) {
    if (auto* g = gid_slot(std::string_view(rest).substr(16)); g && !icontains(value, "invalid"))
      g->type = value;
  } else if (starts_with(rest, "gid_attrs/ndevs/")) {
    if (auto* g = gid_slot(std::string_view(rest).substr(16)); g && !icontains(value, "invalid"))
      g->netdev = value;
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
  SysfsGids gids;
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
      while (!value.empty() && (value[0] == ' ' || value[0] == '\t' || value[0] == '='))
        value.remove_prefix(1);
      if (!value.empty() && value[0] == ':' && !starts_with(value, "::")) value.remove_prefix(1);
      sysfs_value(path, value, out, gids);
    } else if (!open_path.empty()) {
      sysfs_value(open_path, t, out, gids);
      open_path.clear();
    }
  }
  for (const auto& [key, g] : gids)
    if (!g.gid.empty()) {
      const auto& [dev, number, index] = key;
      RdmaPort& p = port(device(out, dev), number);
      add_gid(p, index, g.gid, g.type, g.netdev, "/sys/class/infiniband");
      if (contains(g.type, "v2"))
        p.link_layer = p.link_layer.ok() ? p.link_layer : known<std::string>("Ethernet", "gid types");
    }
  return out;
}

}  // namespace ep
