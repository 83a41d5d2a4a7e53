// See topology_traffic.h.
#include "report/topology_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ep {

std::string traffic_text(const std::vector<NicTraffic>& traffic, const Evenness& e, double seconds,
                         const Look& look) {
  uint64_t most = 1;
  for (const auto& t : traffic) most = std::max(most, t.tx_bytes + t.rx_bytes);
  std::string out =
      look.paint(Style::bold, fmt::format("{} {:>10} {:>10} {:>10}\n", pad(look.tr({"NIC", "网卡"}), 18),
                                          look.tr({"sent", "发送"}), look.tr({"received", "接收"}), "GB/s"));
  for (const auto& t : traffic) {
    if (!t.known) {
      out += fmt::format("{} {}\n", pad(t.name, 18), look.tr({"counters can't be read", "计数器不可读"}));
      continue;
    }
    double rate = seconds > 0 ? double(t.tx_bytes + t.rx_bytes) / seconds / 1e9 : 0;
    out += fmt::format("{} {:>10} {:>10} {:>10.3f} {}{}\n", pad(t.name, 18), human_bytes(double(t.tx_bytes)),
                       human_bytes(double(t.rx_bytes)), rate,
                       bar(look, double(t.tx_bytes + t.rx_bytes) / double(most), 24),
                       t.from_netdev ? look.tr({"  (netdev)", "  （网络设备）"}) : "");
    for (const auto& [name, n] : t.errors)
      out += look.paint(Style::yellow, fmt::format("    {} +{}", name, n)) + "\n";
  }
  return out + fmt::format("{} {}\n", verdict_mark(look, e.verdict), e.reason);
}

std::string traffic_json(const std::vector<NicTraffic>& traffic, const Evenness& e, double seconds) {
  nlohmann::ordered_json j = {{"schema", "epready-traffic-1"}, {"tool", "epready"}, {"seconds", seconds}};
  auto list = nlohmann::ordered_json::array();
  for (const auto& t : traffic) {
    nlohmann::ordered_json n = {{"name", t.name},
                                {"known", t.known},
                                {"tx_bytes", t.tx_bytes},
                                {"rx_bytes", t.rx_bytes},
                                {"from_netdev", t.from_netdev}};
    n["errors"] = t.errors;
    list.push_back(std::move(n));
  }
  j["nics"] = std::move(list);
  j["evenness"] = {
      {"verdict", to_string(e.verdict)}, {"reason", e.reason}, {"idle", e.idle}, {"spread", e.spread}};
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ep
