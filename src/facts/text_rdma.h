// Reads what RDMA tools print into devices: ibv_devinfo, ibstat, ibstatus, ibdev2netdev, rdma link,
// show_gids, raw GID files, lists of names. Pure. Not here: which device is fit for EP (facts/topology.h).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "facts/facts.h"
#include "host/paste.h"

namespace ep {

/// Devices as one text shows them. Only what the text says is known; `merge_rdma` joins several texts.
struct RdmaText {
  std::vector<RdmaDevice> devices;
  std::vector<std::pair<std::string, bool>> netdev_up;  ///< ibdev2netdev's (Up)/(Down), by netdev
  std::vector<Finding> findings;
  bool complete = true;   ///< false: the tool stopped midway, or lists one device by request
  bool has_gids = false;  ///< the text shows GID tables
  RdmaDevice spilled;     ///< takes what is said of devices beyond the most that a text may name
};

RdmaText parse_ibv_devinfo(std::string_view text);
RdmaText parse_ibstat(std::string_view text);
RdmaText parse_ibstatus(std::string_view text);
RdmaText parse_ibdev2netdev(std::string_view text);
RdmaText parse_rdma_link(std::string_view text);
RdmaText parse_show_gids(std::string_view text);
/// `path:value`, `path value` or `==> path <==` lines below /sys/class/infiniband.
RdmaText parse_sysfs_infiniband(std::string_view text);
/// One device name a line (ls /sys/class/infiniband, ibv_devices).
RdmaText parse_rdma_names(std::string_view text);

/// Joins `text` into `devices` by name; later knowledge fills gaps. A port state, link layer or rate that
/// differs is a finding (piece_contradiction), and the first reading stays.
void merge_rdma(const RdmaText& text, const std::string& source, std::vector<RdmaDevice>& devices,
                std::vector<Finding>& findings);

/// Eight groups in lower case from any text form of an IPv6 address ("::ffff:10.0.0.1", "fe80::1"); empty
/// when it is none.
std::string full_gid(std::string_view text);

}  // namespace ep
