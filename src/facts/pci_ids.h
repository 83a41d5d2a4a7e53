// PCI numbers that this product must know when no vendor's tool is there to name them. A table, not a
// database.
#pragma once
#include <string_view>
#include <vector>

namespace ep {

constexpr int kVendorNvidia = 0x10de, kVendorMellanox = 0x15b3, kVendorAmd = 0x1002, kVendorAmazon = 0x1d0f,
              kVendorBroadcom = 0x14e4, kVendorIntel = 0x8086, kVendorPensando = 0x1dd8,
              kVendorGoogle = 0x1ae0;

struct GpuId {
  int device;
  const char* name;        ///< as the driver names it
  int compute_capability;  ///< 90 for 9.0
};
/// NVIDIA data-centre GPUs (vendor 0x10de). Source: the PCI ID repository (pci-ids.ucw.cz) and NVIDIA's list
/// of supported products in the driver's README; capabilities from developer.nvidia.com/cuda-gpus.
const std::vector<GpuId>& gpu_ids();
const GpuId* find_gpu_id(int device);

/// 0x03xxxx display (VGA, 3D) and 0x12xxxx processing accelerators.
bool is_gpu_class(int device_class);
/// 0x02xxxx: Ethernet, InfiniBand and other network controllers.
bool is_network_class(int device_class);
/// 0x0604xx: PCI-PCI bridge; 0x0680xx from NVIDIA: NVSwitch.
bool is_bridge_class(int device_class);

}  // namespace ep
