// See text_rdma.h. Readers take "key: value" blocks with tabs or blanks, in whatever order the tool lists
// them.
#include "facts/text_rdma.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "facts/text_matrix.h"
#include "facts/text_rdma_parts.h"

namespace ep {

using namespace rdma_text;

namespace {

// The last device lacks what all others have: the listing was cut within it, and more may have followed.
bool cut_in_last(const RdmaText& t) {
  auto whole = [](const RdmaDevice& d) {
    return std::any_of(d.ports.begin(), d.ports.end(), [](const RdmaPort& p) { return p.link_layer.ok(); });
  };
  return t.devices.size() > 1 && !whole(t.devices.back()) && whole(t.devices.front());
}

}  // namespace

RdmaText parse_ibv_devinfo(std::string_view text) {
  constexpr const char* kWhere = "ibv_devinfo";
  RdmaText out;
  RdmaDevice* d = nullptr;
  RdmaPort* p = nullptr;
  LostPorts lost;
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
    if (d && (key == "state" || key == "phys_state" || key == "link_layer")) p = lost.of(*d, p, key);
    if (key == "hca_id") {
      if (value.empty()) continue;
      d = &device(out, value);
      p = nullptr;
      lost.next_device();
    } else if (!d) {
      continue;
    } else if (key == "port") {
      auto n = parse_int(value);
      lost.port_line();
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
      if (auto n = leading_number(value); n && *n > 0 && *n <= 65536) p->active_mtu = known(int(*n), kWhere);
    } else if (p && key == "port_lid") {
      if (auto n = parse_int(value)) p->lid = known(int(*n), kWhere);
    }
  }
  out.complete = out.devices.size() > 1 && !cut_in_last(out);  // `-d NAME` lists one
  return out;
}

RdmaText parse_ibstat(std::string_view text) {
  constexpr const char* kWhere = "ibstat";
  RdmaText out;
  RdmaDevice* d = nullptr;
  RdmaPort* p = nullptr;
  LostPorts lost;
  bool merged = false;  // a line "CA '...'" was lost: two devices in one
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
      f.title_zh = "ibstat 中途停止；其后的设备未列出";
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
      lost.next_device();
      d->hca_type = {};  // listed again: a new reading, not two devices in one
      continue;
    }
    if (!d || !key_value(line, key, value)) continue;
    if (key == "state" || key == "physical state" || key == "rate" || key == "link layer")
      p = lost.of(*d, p, key);
    if (starts_with(key, "port ") && value.empty()) {
      auto n = parse_int(trim(std::string_view(key).substr(5)));
      lost.port_line();
      if (n && *n > 0 && *n < 256) p = &port(*d, int(*n));
    } else if (key == "ca type") {
      merged |= d->hca_type.ok() && d->hca_type.where == kWhere;
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
  if (out.devices.size() < 2 || merged || cut_in_last(out)) out.complete = false;
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
void fill(Fact<T>& into, const Fact<T>& from, Text what, const std::string& dev, const std::string& source,
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
  f.title = fmt::format("{}: {} is {} in {} and {} in {}", dev, what.en, into.value, into.where, from.value,
                        source);
  f.title_zh = fmt::format("{}：{}在 {} 中为 {}，在 {} 中为 {}", dev, what.zh, into.where, into.value, source,
                           from.value);
  f.evidence.push_back({source, 0, ""});
  findings.push_back(std::move(f));
}

// Two tables of one port: both may be right at their time, and the later one is not known.
void compare_gids(const std::string& dev, const std::vector<GidEntry>& a, const std::vector<GidEntry>& b,
                  const std::string& source, std::vector<Finding>& findings) {
  for (const auto& e : b) {
    auto old = std::find_if(a.begin(), a.end(), [&](const GidEntry& o) { return o.index == e.index; });
    if (old == a.end() || old->gid == e.gid) continue;
    Finding f;
    f.code = "gid_drift";
    f.severity = Severity::warn;
    f.title = fmt::format(
        "{}: GID index {} differs between two readings: the table moved, or they are of two hosts", dev,
        e.index);
    f.title_zh = fmt::format("{}：GID 索引 {} 在两次读取中不同：表已变动，或来自两台主机", dev, e.index);
    f.evidence.push_back({"first reading", 0, old->gid});
    f.evidence.push_back({source, 0, e.gid});
    findings.push_back(std::move(f));
    return;
  }
}

}  // namespace

void merge_rdma(const RdmaText& text, const std::string& source, std::vector<RdmaDevice>& devices,
                std::vector<Finding>& findings) {
  for (const auto& d : text.devices) {
    auto it =
        std::find_if(devices.begin(), devices.end(), [&](const RdmaDevice& o) { return o.name == d.name; });
    if (it == devices.end()) {
      if (devices.size() < kMaxDevices) devices.push_back(d);
      continue;
    }
    if (it->address.empty()) it->address = d.address;
    fill(it->driver, d.driver, {"driver", "驱动"}, d.name, source, findings, false);
    fill(it->hca_type, d.hca_type, {"type", "型号"}, d.name, source, findings, true);
    fill(it->board_id, d.board_id, {"board", "板卡"}, d.name, source, findings, false);
    fill(it->firmware, d.firmware, {"firmware", "固件"}, d.name, source, findings, false);
    fill(it->node_guid, d.node_guid, {"GUID", "GUID"}, d.name, source, findings, false);
    fill(it->numa_node, d.numa_node, {"NUMA node", "NUMA 节点"}, d.name, source, findings, false);
    fill(it->is_vf, d.is_vf, {"VF", "VF"}, d.name, source, findings, false);
    for (const auto& n : d.netdevs)
      if (std::find(it->netdevs.begin(), it->netdevs.end(), n) == it->netdevs.end()) it->netdevs.push_back(n);
    for (const auto& p : d.ports) {
      auto pt = std::find_if(it->ports.begin(), it->ports.end(),
                             [&](const RdmaPort& o) { return o.number == p.number; });
      if (pt == it->ports.end()) {
        it->ports.push_back(p);
        continue;
      }
      fill(pt->state, p.state, {"state", "状态"}, d.name, source, findings, true);
      fill(pt->phys_state, p.phys_state, {"physical state", "物理状态"}, d.name, source, findings, false);
      fill(pt->rate_gbps, p.rate_gbps, {"rate", "速率"}, d.name, source, findings, true);
      fill(pt->link_layer, p.link_layer, {"link layer", "链路类型"}, d.name, source, findings, true);
      fill(pt->active_mtu, p.active_mtu, {"active MTU", "活动 MTU"}, d.name, source, findings, false);
      fill(pt->lid, p.lid, {"LID", "LID"}, d.name, source, findings, false);
      if (pt->gids.empty())
        pt->gids = p.gids;
      else if (!p.gids.empty())
        compare_gids(d.name, pt->gids, p.gids, source, findings);
    }
  }
  for (const auto& f : text.findings) {
    findings.push_back(f);
    for (auto& e : findings.back().evidence)
      if (!source.empty()) e.source = source;
  }
}

}  // namespace ep
