// Reads the trees that tools write: NCCL topology XML (files and dumps), hwloc XML, lstopo's outline, lspci
// -tv, links below /sys. Each becomes PCI devices with their chain of bridges, GPUs and RDMA devices, so that
// distances are computed as from sysfs. The XML reader is our own, small and forgiving: cut files give what
// stands before the cut.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/finding.h"
#include "facts/facts.h"

namespace ep {

struct XmlNode {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlNode> children;

  /// Value of an attribute, empty when it is not there.
  std::string_view get(std::string_view attribute) const;
};

/// The tree below a nameless root. Never fails: comments, declarations and text are skipped, open elements
/// are closed at the end (`cut` says so). At most 200,000 elements and 64 levels.
struct XmlText {
  XmlNode root;
  bool cut = false;
};
XmlText read_xml(std::string_view text);

struct PciTreeText {
  std::vector<PciDevice> pci;  ///< GPUs and NICs; `path` is root first, without the device itself
  std::vector<Gpu> gpus;       ///< sorted by index
  std::vector<RdmaDevice> rdma;
  std::vector<Finding> findings;
  bool found = false;
  bool is_static = false;  ///< written by hand: no GPU elements; groups only
  bool has_names = false;  ///< RDMA devices have names; else PCI addresses stand for them
};

PciTreeText parse_nccl_xml(std::string_view text, const std::string& source);
PciTreeText parse_hwloc_xml(std::string_view text, const std::string& source);
/// `lspci -tv`: functions of NVIDIA and Mellanox with their bridges; no RDMA names.
PciTreeText parse_lspci_tree(std::string_view text, const std::string& source);
/// `ls -l` of /sys/class/infiniband, /sys/class/net, /sys/bus/pci/devices.
PciTreeText parse_sysfs_links(std::string_view text, const std::string& source);
PciTreeText parse_lstopo_outline(std::string_view text, const std::string& source);

/// "00000000:1B:00.0", "1b:00.0", "0000:1b:00.0" -> "0000:1b:00.0"; domains above ffff keep their digits.
/// Empty when it is no PCI address.
std::string pci_address(std::string_view text);

/// Compute capability (90 = 9.0) of a GPU by its marketing name or PCI device id; 0 when unknown.
int sm_of_gpu_name(std::string_view name);
int sm_of_pci_id(int device_id);

}  // namespace ep
