// GID tables of one host at two times: an index that was right is wrong after an address, a bond or a
// namespace changed. Pure but for `read_gid_tables`.
#pragma once
#include <optional>
#include <vector>

#include "base/finding.h"
#include "facts/facts.h"

namespace ep {

/// Names, port numbers and GID entries of all RDMA devices now, and nothing else: cheap enough to repeat.
std::vector<RdmaDevice> read_gid_tables(const Host& host);

/// Index of the RoCE v2 entry that other hosts can route to (IPv4 before IPv6, lowest index); nothing when
/// there is none.
std::optional<int> routed_gid_index(const RdmaDevice& device);

/// `gid_drift` for every device whose routed entry moved, changed its address or is gone, with both readings
/// as evidence; info when only other entries differ. A device that is in one reading alone is `device_gone`
/// or `device_new`.
std::vector<Finding> gid_drift(const std::vector<RdmaDevice>& before, const std::vector<RdmaDevice>& after);

/// Two readings of the same machine: they share a node GUID of a hardware device, or the host name and the
/// addresses of their devices.
bool same_machine(const Facts& a, const Facts& b);

}  // namespace ep
