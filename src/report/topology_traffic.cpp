// See topology_traffic.h.
#include "report/topology_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ep {
namespace {

uint64_t total(const NicTraffic& t) {
  return t.tx_bytes + t.rx_bytes;
}

Text source_note(ByteSource s) {
  switch (s) {
    case ByteSource::hw:
      return {"driver's byte counters", "驱动字节计数器"};
    case ByteSource::netdev:
      return {"netdev: all its traffic, not only RDMA", "网络设备：含非 RDMA 流量"};
    case ByteSource::port:
    case ByteSource::none:
      break;
  }
  return {"", ""};
}

std::string nic_line(const NicTraffic& t, uint64_t most, double seconds, const Look& look) {
  if (!t.known()) return fmt::format("{} {} ({})\n", pad(t.name, 18), look.tr({"unknown", "未知"}), t.where);
  double rate = seconds > 0 ? double(total(t)) / seconds / 1e9 : 0;
  std::string notes(look.tr(source_note(t.source)));
  if (t.packets_known && t.source != ByteSource::port)
    notes += fmt::format("{}{} {}", notes.empty() ? "" : ", ", t.tx_packets + t.rx_packets,
                         look.tr({"RDMA packets", "个 RDMA 包"}));
  std::string out =
      fmt::format("{} {:>10} {:>10} {:>10.3f} {}{}\n", pad(t.name, 18), human_bytes(double(t.tx_bytes)),
                  human_bytes(double(t.rx_bytes)), rate, bar(look, double(total(t)) / double(most), 24),
                  notes.empty() ? "" : "  (" + notes + ")");
  for (const auto& [name, n] : t.errors)
    out += look.paint(Style::yellow, fmt::format("    {} +{}", name, n)) + "\n";
  return out;
}

}  // namespace

std::string traffic_text(const std::vector<NicTraffic>& traffic, const Evenness& e, double seconds,
                         const Look& look) {
  uint64_t most = 1u << 20;  // a bar for nothing but noise would mislead
  for (const auto& t : traffic) most = std::max(most, total(t));
  std::string out =
      look.paint(Style::bold, fmt::format("{} {:>10} {:>10} {:>10}\n", pad(look.tr({"NIC", "网卡"}), 18),
                                          look.tr({"sent", "发送"}), look.tr({"received", "接收"}), "GB/s"));
  for (const auto& t : traffic) out += nic_line(t, most, seconds, look);
  return out + fmt::format("{} {}\n", verdict_mark(look, e.verdict), e.reason.in(look.lang));
}

std::string traffic_json(const std::vector<NicTraffic>& traffic, const Evenness& e, double seconds,
                         const std::vector<Finding>& drift) {
  using Json = nlohmann::ordered_json;
  Json j = {{"schema", "epready-traffic-1"}, {"tool", "epready"}, {"seconds", seconds}};
  auto list = Json::array();
  for (const auto& t : traffic) {
    Json n = {{"name", t.name},
              {"known", t.known()},
              {"source", to_string(t.source)},
              {"read_from", t.where},
              {"tx_bytes", t.tx_bytes},
              {"rx_bytes", t.rx_bytes},
              {"tx_packets", t.packets_known ? Json(t.tx_packets) : Json(nullptr)},
              {"rx_packets", t.packets_known ? Json(t.rx_packets) : Json(nullptr)}};
    n["errors"] = t.errors;
    list.push_back(std::move(n));
  }
  j["nics"] = std::move(list);
  j["evenness"] = {
      {"verdict", to_string(e.verdict)}, {"reason", e.reason.en}, {"idle", e.idle}, {"spread", e.spread}};
  auto moved = Json::array();
  for (const auto& f : drift) {
    Json evidence = Json::array();
    for (const auto& x : f.evidence) evidence.push_back({{"source", x.source}, {"text", x.text}});
    moved.push_back({{"code", f.code},
                     {"severity", to_string(f.severity)},
                     {"text", f.title},
                     {"evidence", std::move(evidence)}});
  }
  j["gid_drift"] = std::move(moved);
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ep
