// The order of reading: probes start first and run side by side while files are read.
#include "facts/facts.h"

#include <algorithm>

#include "facts/reading.h"
#include "facts/text_facts.h"

namespace ep {

Facts read_facts(const Host& host, const std::string& prefix) {
  Facts f;
  f.host_name = host.name();
  f.host_kind = host.kind() == HostKind::live       ? "live"
                : host.kind() == HostKind::snapshot ? "snapshot"
                                                    : "paste";
  if (const PastedHost* pasted = pasted_pieces(host)) {
    add_pasted_facts(*pasted, f);
    return f;
  }
  Probes probes(host);
  // Vendor tools take seconds; they overlap with each other and with everything below.
  probes.start({"nvidia-smi-gpus",
                "nvidia-smi-q",
                "nvidia-smi-topo",
                "nvidia-smi-p2p-r",
                "nvidia-smi-p2p-w",
                "nvidia-smi-nvlink",
                "nvidia-smi-apps",
                "ibv_devinfo",
                "ofed_info",
                "dpkg",
                "rpm",
                "systemctl",
                "systemctl-limits",
                "ip-addr",
                "libc",
                "git-version",
                "cmake-version",
                "ninja-version",
                "gcc-version",
                "uv-version"});
  Reading r{host, probes, host.environment()};
  if (!prefix.empty()) r.environment["EPREADY_PREFIX"] = prefix;
  read_os(r, f);
  read_cpu(r, f);
  read_pci(r, f);
  read_kernel(r, f);
  read_dkms(r, f);
  read_limits(r, f);
  read_netdevs(r, f);
  read_rdma(r, f);
  read_cuda(r, f);
  read_python(r, f);
  read_environment_facts(r, f);
  read_parts(r, f);
  read_sources(r, f);
  read_disks(r, f);
  read_user(r, f);
  read_packages(r, f);
  read_tools(r, f);
  read_driver(r, f);
  read_gpus(r, f);
  read_container(r, f);
  read_platform(r, f);
  add_probed_matrices([&](const std::string& name) -> const ProbeResult& { return probes.get(name); }, f);
  return f;
}

}  // namespace ep
