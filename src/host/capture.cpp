#include "host/capture.h"

#include "base/text.h"
#include "host/probes.h"

namespace ep {

namespace {

constexpr size_t kConfigBytes = 256;  // standard PCI configuration space; users may read its first 64.
                                      // What facts asked for is there whole (facts/pci.cpp)

const char* const kFiles[] = {"/proc/cpuinfo",
                              "/proc/meminfo",
                              "/proc/version",
                              "/proc/mounts",
                              "/proc/devices",
                              "/proc/cmdline",
                              "/etc/os-release",
                              "/etc/modules",
                              "/sys/class/dmi/id/sys_vendor",
                              "/sys/class/dmi/id/product_name",
                              "/sys/class/dmi/id/board_name",
                              "/sys/class/dmi/id/bios_version",
                              "/sys/devices/system/cpu/online",
                              "/sys/devices/system/cpu/possible",
                              "/sys/devices/system/cpu/present",
                              "/sys/devices/system/node/online"};
const char* const kCpuFiles[] = {"core_id",   "physical_package_id", "thread_siblings",
                                 "core_cpus", "package_cpus",        "core_siblings"};
const char* const kNodeFiles[] = {"cpumap", "cpulist", "meminfo", "distance"};
const char* const kPciFiles[] = {
    "class",          "vendor",           "device",           "revision",           "irq",
    "numa_node",      "subsystem_vendor", "subsystem_device", "current_link_speed", "current_link_width",
    "max_link_speed", "max_link_width",   "local_cpus"};

void read_numbered(const Host& host, const std::string& folder, std::string_view stem,
                   const std::string& below, const char* const* files, size_t count) {
  for (const auto& name : host.list(folder).value_or(std::vector<std::string>{})) {
    if (!starts_with(name, stem) || !parse_int(std::string_view(name).substr(stem.size()))) continue;
    for (size_t i = 0; i < count; ++i) (void)host.read(folder + "/" + name + below + files[i]);
  }
}

// Every function, so that the whole tree is there: bridges and what hangs below them.
void read_pci(const Host& host) {
  const std::string folder = "/sys/bus/pci/devices";
  for (const auto& name : host.list(folder).value_or(std::vector<std::string>{})) {
    std::string dir = folder + "/" + name + "/";
    (void)host.link(folder + "/" + name);
    for (const char* file : kPciFiles) (void)host.read(dir + file);
    (void)host.read(dir + "config", kConfigBytes);
  }
}

void read_infiniband(const Host& host) {
  const std::string folder = "/sys/class/infiniband";
  for (const auto& name : host.list(folder).value_or(std::vector<std::string>{})) {
    for (const char* file : {"node_guid", "sys_image_guid", "node_type", "node_desc"})
      (void)host.read(folder + "/" + name + "/" + file);
    for (const auto& port : host.list(folder + "/" + name + "/ports").value_or(std::vector<std::string>{}))
      for (const char* file : {"lid", "lid_mask_count", "sm_lid", "cap_mask", "has_smi"})
        (void)host.read(folder + "/" + name + "/ports/" + port + "/" + file);
  }
}

}  // namespace

void capture_declared(const Host& recorder) {
  for (const char* file : kFiles) (void)recorder.read(file);
  read_numbered(recorder, "/sys/devices/system/cpu", "cpu", "/topology/", kCpuFiles, std::size(kCpuFiles));
  read_numbered(recorder, "/sys/devices/system/node", "node", "/", kNodeFiles, std::size(kNodeFiles));
  read_pci(recorder);
  read_infiniband(recorder);
  for (const auto& row : probe_table()) (void)recorder.probe(row.name);
}

}  // namespace ep
