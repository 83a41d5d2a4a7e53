// Reads pasted outputs of everything that is not RDMA: nvidia-smi in its forms, collect_env reports, lspci,
// ip, driver parameters, log lines that decide a topology question. Each adds to Facts what the text shows.
// Pure.
#pragma once
#include <string>
#include <string_view>

#include "facts/facts.h"

namespace ep {

/// `nvidia-smi --query-gpu=... --format=csv`, with or without a header; fields are told by their form.
void read_nvidia_smi_query(std::string_view text, const std::string& source, Facts& facts);
/// `nvidia-smi`, `-L` and `-q`.
void read_nvidia_smi_text(std::string_view text, const std::string& source, Facts& facts);
/// collect_env of PyTorch, vLLM and SGLang (the matrix inside is a piece of its own).
void read_collect_env(std::string_view text, const std::string& source, Facts& facts);
/// `dkms status` of old and new versions.
void read_dkms_status(std::string_view text, const std::string& source, Facts& facts);
/// `uname -a` and `uname -r`.
void read_uname(std::string_view text, const std::string& source, Facts& facts);
/// `ofed_info -s`.
void read_ofed_info(std::string_view text, const std::string& source, Facts& facts);
/// `lspci`, with -nn or not; of -vv and -vvv also what read_lspci_details reads.
void read_lspci(std::string_view text, const std::string& source, Facts& facts);
/// Links, read requests, relaxed ordering and ACS of `lspci -vvv`; "<access denied>" makes them unreadable.
void read_lspci_details(std::string_view text, const std::string& source, Facts& facts);
/// `ip -br addr`, `ip -br link`, `ip addr`.
void read_ip(std::string_view text, const std::string& source, Facts& facts);
/// /proc/driver/nvidia/params. `registry_dwords` is parsed; keys that are not shown stay unknown.
void read_driver_params(std::string_view text, const std::string& source, Facts& facts);
/// "0000:19:00.0|0": PCI address and NUMA node a line.
void read_pci_numa(std::string_view text, const std::string& source, Facts& facts);
/// Log lines of NVSHMEM and modprobe that say what the driver refuses.
void read_log_lines(std::string_view text, const std::string& source, Facts& facts);
/// NAME=value and `export NAME=value` lines.
void read_environment(std::string_view text, const std::string& source, Facts& facts);

/// Listings of /dev/infiniband and /dev/nvidia-caps-imex-channels; verbs tools that find no device.
void read_device_nodes(std::string_view text, const std::string& source, Facts& facts);
/// `systemctl is-active` and `systemctl status` of nvidia-imex, behind a first line "$ COMMAND".
void read_service_state(std::string_view text, const std::string& source, Facts& facts);

/// "PeerMappingOverride=0x1;Other=2" -> numbers; quotes and blanks are allowed.
std::map<std::string, long long> parse_registry_dwords(std::string_view text);

/// PCI address that a predictable device name holds (rocep145s0f1, ibp14s0, enP2p1s0f0np0), else empty.
std::string address_of_name(std::string_view name);

}  // namespace ep
