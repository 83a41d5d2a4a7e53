// Parsers of literal text that more than one place or a test wants. Pure: text in, typed facts out.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/facts.h"

namespace ep {

/// Vital product data of a PCI function: name and fields but the serial number.
Fact<std::string> parse_vpd(std::string_view bytes, const std::string& where);

/// "PeerMappingOverride=0x1;A=2" with or without quotes; numbers with base detection; parts without a number
/// are left out.
std::map<std::string, long long> registry_dwords_of(std::string_view text);

/// `options MODULE NAME=VALUE...` of one modprobe file, in order; continuation lines joined, quotes taken off
/// values. `where` of each is path:line.
struct ModprobeOption {
  std::string module, name, value, where;
};
std::vector<ModprobeOption> parse_modprobe_options(std::string_view text, const std::string& path);

/// NVRM line of /proc/driver/nvidia/version: version and whether it says Open Kernel Module.
struct NvrmVersion {
  Fact<std::string> version;
  Fact<bool> open;
};
NvrmVersion parse_nvrm_version(std::string_view text, const std::string& where);

/// Rows of `nvidia-smi --query-gpu` as the probe table asks for it.
struct SmiGpu {
  int index = -1;
  std::string address;  ///< 0000:17:00.0
  Gpu gpu;
  std::string driver_version;
};
std::vector<SmiGpu> parse_smi_gpus(std::string_view csv, const std::string& where);
/// GPU sections of `nvidia-smi -q`: by PCI address, "Fabric/State" and its kin. Header values under "".
std::map<std::string, std::map<std::string, std::string>> parse_smi_q(std::string_view text);
/// `nvidia-smi nvlink -s`: by index, links up, links down, speed of the slowest link that is up.
struct NvlinkState {
  int up = 0, down = 0;
  double gbps = 0;
};
std::map<int, NvlinkState> parse_smi_nvlink(std::string_view text);

/// Name and version in METADATA or a .dist-info/.egg-info folder name; nullopt when neither is understood.
struct WheelName {
  std::string name, version;
};
std::optional<WheelName> parse_dist_info_name(std::string_view folder);
std::string normalize_package(std::string_view name);  ///< PEP 503
bool is_wheel_of_interest(std::string_view normalized);

/// A field of os-release(5), the last one counts, quotes and escapes taken off; nullopt without such a line.
std::optional<std::string> os_release_field(std::string_view text, std::string_view key);
/// The cloud that a DMI field (product_name, sys_vendor, chassis_asset_tag) names; nullptr: none.
const char* cloud_of_dmi(std::string_view field, std::string_view value);
/// A product name that hypervisors give.
bool is_virtual_product(std::string_view product);
/// The cloud's machine type, by the product or by cloud and GPUs.
Fact<std::string> machine_type_of(const Facts& facts);

/// `systemctl show -p Id,LoadState,ActiveState`: unit to not-found, active, inactive ...
std::map<std::string, std::string> parse_systemctl(std::string_view text);

}  // namespace ep
