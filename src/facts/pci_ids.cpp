#include "facts/pci_ids.h"

namespace ep {

const std::vector<GpuId>& gpu_ids() {
  static const std::vector<GpuId> table = {
      {0x1db1, "Tesla V100-SXM2-16GB", 70},
      {0x1db5, "Tesla V100-SXM2-32GB", 70},
      {0x1eb8, "Tesla T4", 75},
      {0x20b0, "NVIDIA A100-SXM4-40GB", 80},
      {0x20b2, "NVIDIA A100-SXM4-80GB", 80},
      {0x20b5, "NVIDIA A100 80GB PCIe", 80},
      {0x20bd, "NVIDIA A800-SXM4-80GB", 80},
      {0x20f1, "NVIDIA A100-PCIE-40GB", 80},
      {0x20f3, "NVIDIA A800-SXM4-80GB", 80},
      {0x2235, "NVIDIA A40", 86},
      {0x2236, "NVIDIA A10", 86},
      {0x26b5, "NVIDIA L40", 89},
      {0x26b9, "NVIDIA L40S", 89},
      {0x27b8, "NVIDIA L4", 89},
      {0x2321, "NVIDIA H100 NVL", 90},
      {0x2322, "NVIDIA H800 PCIe", 90},
      {0x2324, "NVIDIA H800", 90},
      {0x2329, "NVIDIA H20", 90},
      {0x232c, "NVIDIA H20-3e", 90},
      {0x2330, "NVIDIA H100 80GB HBM3", 90},
      {0x2331, "NVIDIA H100 PCIe", 90},
      {0x2335, "NVIDIA H200", 90},
      {0x233b, "NVIDIA H200 NVL", 90},
      {0x2342, "NVIDIA GH200 480GB", 90},
      {0x2348, "NVIDIA GH200 144G HBM3e", 90},
      {0x2901, "NVIDIA B200", 100},
      {0x2941, "NVIDIA GB200", 100},
      {0x2bb5, "NVIDIA RTX PRO 6000 Blackwell Server Edition", 120},
      {0x2e12, "NVIDIA GB10", 121},
      {0x3182, "NVIDIA B300 SXM6 AC", 103},
      {0x31c2, "NVIDIA GB300", 103},
  };
  return table;
}

const GpuId* find_gpu_id(int device) {
  for (const auto& row : gpu_ids())
    if (row.device == device) return &row;
  return nullptr;
}

bool is_gpu_class(int c) {
  return (c >> 16) == 0x03 || (c >> 16) == 0x12;
}
bool is_network_class(int c) {
  return (c >> 16) == 0x02;
}
bool is_bridge_class(int c) {
  return (c >> 8) == 0x0604;
}

}  // namespace ep
