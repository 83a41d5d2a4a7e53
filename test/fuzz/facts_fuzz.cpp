// Fuzz: bytes as the content of one file, or the output of one tool, that facts read. Facts come back, whatever it is.
// The first byte picks what the rest stands in for, so that one parser at a time is pressed.
#include <cstdint>
#include <iterator>

#include "facts/facts.h"
#include "host/probes.h"
#include "host/snapshot.h"

namespace {

ep::SnapshotData skeleton() {
  ep::SnapshotData d;
  d.complete = true;
  const std::string pci = "/sys/bus/pci/devices/0000:01:00.0/", ib = "/sys/class/infiniband/mlx5_0/",
                    port = ib + "ports/1/";
  d.file(pci + "vendor", "0x15b3\n");
  d.file(pci + "class", "0x020700\n");
  d.file(ib + "hca_type", "MT4129\n");
  d.file(port + "state", "4: ACTIVE\n");
  d.add("/usr/bin/python3", ep::FileInfo::Type::file);
  d.file("/proc/modules", "nvidia 1 0 - Live 0x0\n");
  return d;
}

const std::string kPci = "/sys/bus/pci/devices/0000:01:00.0/", kPort = "/sys/class/infiniband/mlx5_0/ports/1/";
const std::string kFiles[] = {"/etc/os-release",
                              "/proc/cpuinfo",
                              "/proc/meminfo",
                              "/proc/self/status",
                              "/proc/self/limits",
                              "/proc/modules",
                              "/proc/cmdline",
                              "/proc/net/route",
                              "/proc/driver/nvidia/version",
                              "/proc/driver/nvidia/params",
                              "/etc/modprobe.d/a.conf",
                              "/etc/apt/sources.list",
                              "/etc/apt/sources.list.d/a.sources",
                              "/usr/local/cuda-12/version.json",
                              "/usr/local/cuda-12/include/cuda.h",
                              "/opt/p/nvshmem/.epready-part",
                              "/usr/lib/python3.12/site-packages/torch-1.dist-info/METADATA",
                              kPci + "vpd",
                              kPci + "current_link_speed",
                              kPort + "state",
                              kPort + "rate",
                              kPort + "gids/0",
                              "/sys/devices/system/cpu/online",
                              "/etc/nccl.conf",
                              "/sys/kernel/security/lockdown",
                              "/etc/security/limits.conf"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size < 1) return 0;
  std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  static const ep::SnapshotData base = skeleton();
  ep::SnapshotData d = base;
  const auto& probes = ep::probe_table();
  const size_t files = std::size(kFiles);
  size_t choice = bytes[0] % (files + probes.size() + 1);
  if (choice < files) d.file(kFiles[choice], text);
  else if (choice < files + probes.size()) d.probe(probes[choice - files].name, text);
  else if (size < 4000) d.link("/sys/bus/pci/devices/0000:01:00.1", text);
  ep::read_facts(*ep::host_of(std::move(d), "fuzz"));
  return 0;
}
