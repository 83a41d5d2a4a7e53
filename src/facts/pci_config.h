// PCI configuration space: what it says about peer-to-peer traffic. Bytes in, typed facts out; pure. A user
// who is not root gets the first 64 bytes, in which none of this stands: then every fact is unreadable, not
// absent.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "facts/facts.h"

namespace ep {

/// Fills port_type, acs_redirect, relaxed_ordering and max_read_request of `device` from the bytes of its
/// `config` file. Source: PCI Express Base Specification 4.0, 7.5.1 (header), 7.5.3 (Express capability),
/// 7.7.8 (ACS extended capability); bit names as in Linux' pci_regs.h.
void read_pci_config(std::string_view bytes, const std::string& where, PciDevice& device);
/// The same four facts when the bytes could not be had.
void pci_config_trouble(const Fact<bool>& trouble, PciDevice& device);

/// Whether a switch between two of the GPUs and NICs sends their packets up to the root (ACS redirect on at a
/// downstream port). Absent where no switch joins two of them: then it cannot matter. `bridges`: addresses of
/// the ports that redirect.
Fact<bool> acs_redirect_of(const std::vector<PciDevice>& pci, std::vector<std::string>& bridges);

}  // namespace ep
