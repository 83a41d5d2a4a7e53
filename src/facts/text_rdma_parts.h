// Words and slots that the readers of RDMA listings share. Private to facts/text_rdma.cpp and text_gids.cpp.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "facts/text_rdma.h"

namespace ep::rdma_text {

// More functions than any host has (eight adapters with 127 VFs each); what a text names beyond is not kept,
// so that a hostile text costs no more than its length.
constexpr size_t kMaxDevices = 1024;

inline RdmaDevice& device(RdmaText& t, std::string_view name) {
  for (auto& d : t.devices)
    if (d.name == name) return d;
  if (t.devices.size() >= kMaxDevices) {
    t.spilled = RdmaDevice{};
    return t.spilled;
  }
  t.devices.emplace_back();
  t.devices.back().name = name;
  return t.devices.back();
}

inline RdmaPort& port(RdmaDevice& d, int number) {
  for (auto& p : d.ports)
    if (p.number == number) return p;
  d.ports.emplace_back();
  d.ports.back().number = number;
  return d.ports.back();
}

/// Ports of a listing whose lines "port N:" a filter took away (`ibstat | grep -E "CA|State|Rate"`): a key
/// that comes again in one device begins its next port.
class LostPorts {
 public:
  void next_device() { *this = {}; }
  void port_line() { lost_ = false; }
  RdmaPort* of(RdmaDevice& d, RdmaPort* now, const std::string& key) {
    if (now && !(lost_ && key == first_)) return now;
    if (next_ > 255) return now;
    lost_ = true;
    first_ = key;
    return &port(d, next_++);
  }

 private:
  bool lost_ = false;
  int next_ = 1;
  std::string first_;
};

// "key:   value" with the key in lower case; false when there is no colon.
inline bool key_value(std::string_view line, std::string& key, std::string& value) {
  size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  key = lower(trim(line.substr(0, colon)));
  value = std::string(trim(line.substr(colon + 1)));
  return true;
}

// "PORT_ACTIVE (4)", "4: ACTIVE", "Active" -> "ACTIVE".
inline std::string state_word(std::string_view v) {
  std::string s(trim(v));
  if (size_t c = s.find(':'); c != std::string::npos) s = std::string(trim(s.substr(c + 1)));
  if (size_t p = s.find('('); p != std::string::npos) s = std::string(trim(s.substr(0, p)));
  if (starts_with(s, "PORT_")) s = s.substr(5);
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  if (s == "INITIALIZING") s = "INIT";
  return s;
}

inline std::string phys_word(std::string_view v) {
  std::string s = lower(v);
  if (contains(s, "linkup") || contains(s, "link_up")) return "LinkUp";
  if (contains(s, "polling")) return "Polling";
  if (contains(s, "disabled")) return "Disabled";
  if (contains(s, "sleep")) return "Sleep";
  return std::string(trim(v));
}

inline std::string layer_word(std::string_view v) {
  std::string s = lower(v);
  if (contains(s, "infiniband") || s == "ib") return "InfiniBand";
  if (contains(s, "ethernet")) return "Ethernet";
  return std::string(trim(v));
}

inline std::optional<double> leading_number(std::string_view v) {
  size_t n = 0;
  while (n < v.size() && (std::isdigit(static_cast<unsigned char>(v[n])) || v[n] == '.')) ++n;
  return n ? parse_double(v.substr(0, n)) : std::nullopt;
}

inline void add_gid(RdmaPort& p, int index, std::string_view gid, std::string_view type,
                    std::string_view netdev, const char* where) {
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

inline std::string part_name(std::string_view vendor_part_id) {
  auto n = parse_int(vendor_part_id);
  return n && *n >= 4000 && *n < 9999 ? fmt::format("MT{}", *n) : std::string();
}

// ConnectX virtual functions have part numbers of their own.
inline bool is_vf_part(std::string_view hca_type) {
  for (std::string_view p : {"MT4116", "MT4120", "MT4122", "MT4124", "MT4126", "MT4128", "MT4130"})
    if (hca_type == p) return true;
  return false;
}

}  // namespace ep::rdma_text
