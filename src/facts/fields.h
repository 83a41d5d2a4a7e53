// The one listing of all facts: JSON, text, comparison and tests walk it, so that none of them can forget a
// field. A visitor has four calls:
//   fact(name, Fact<T>)            one observation
//   plain(name, value)             a value without a state: text, number, flag, list of texts
//   group(name, body)              an area; body() visits its fields
//   list(name, items, label, body) several of a kind; label(item) names one, body(item) visits it
#pragma once
#include "facts/facts.h"

namespace ep {

// Counters and other maps of facts by name.
template <class V, class T>
void fact_map(V& v, const std::map<std::string, Fact<T>>& map) {
  for (const auto& [name, fact] : map) v.fact(name.c_str(), fact);
}

template <class V>
void fields(V& v, const OsFacts& x) {
  v.fact("id", x.id);
  v.fact("version_id", x.version_id);
  v.fact("pretty_name", x.pretty_name);
  v.fact("codename", x.codename);
  v.fact("architecture", x.architecture);
  v.fact("kernel_release", x.kernel_release);
  v.fact("libc", x.libc);
  v.fact("boot_id", x.boot_id);
  v.fact("hostname", x.hostname);
  v.fact("init", x.init);
}
template <class V>
void fields(V& v, const CpuFacts& x) {
  v.fact("model", x.model);
  v.fact("num_online", x.num_online);
  v.fact("num_allowed", x.num_allowed);
  v.fact("num_numa_nodes", x.num_numa_nodes);
  v.fact("memory_bytes", x.memory_bytes);
  v.fact("memory_available_bytes", x.memory_available_bytes);
}
template <class V>
void fields(V& v, const PciDevice& x) {
  v.fact("vendor", x.vendor);
  v.fact("device", x.device);
  v.fact("subsystem_vendor", x.subsystem_vendor);
  v.fact("subsystem_device", x.subsystem_device);
  v.fact("device_class", x.device_class);
  v.fact("driver", x.driver);
  v.fact("numa_node", x.numa_node);
  v.plain("path", x.path);
  v.fact("iommu_group", x.iommu_group);
  v.fact("iommu_group_type", x.iommu_group_type);
  v.fact("link_speed_gts", x.link_speed_gts);
  v.fact("link_speed_max_gts", x.link_speed_max_gts);
  v.fact("link_width", x.link_width);
  v.fact("link_width_max", x.link_width_max);
  v.fact("is_vf", x.is_vf);
  v.fact("vpd", x.vpd);
  v.fact("port_type", x.port_type);
  v.fact("acs_redirect", x.acs_redirect);
  v.fact("relaxed_ordering", x.relaxed_ordering);
  v.fact("max_read_request", x.max_read_request);
}
template <class V>
void fields(V& v, const Gpu& x) {
  v.plain("index", x.index);
  v.plain("address", x.address);
  v.fact("name", x.name);
  v.fact("uuid", x.uuid);
  v.fact("compute_capability", x.compute_capability);
  v.fact("memory_bytes", x.memory_bytes);
  v.fact("numa_node", x.numa_node);
  v.fact("mig_mode", x.mig_mode);
  v.fact("ecc_uncorrected", x.ecc_uncorrected);
  v.fact("in_use", x.in_use);
  v.fact("nvlinks_up", x.nvlinks_up);
  v.fact("nvlinks_down", x.nvlinks_down);
  v.fact("nvlink_gbps", x.nvlink_gbps);
  v.fact("fabric_state", x.fabric_state);
  v.fact("fabric_status", x.fabric_status);
  v.fact("fabric_clique", x.fabric_clique);
  v.fact("fabric_cluster", x.fabric_cluster);
  v.fact("remap_pending", x.remap_pending);
  v.fact("remap_failed", x.remap_failed);
  v.fact("recovery_action", x.recovery_action);
}
template <class V>
void fields(V& v, const ModuleOption& x) {
  v.fact("live", x.live);
  v.fact("pending", x.pending);
  v.plain("set_in", x.set_in);
  v.plain("set_to", x.set_to);
}
template <class V>
void fields(V& v, const NvidiaDriver& x) {
  v.fact("version", x.version);
  v.fact("open_kernel_module", x.open_kernel_module);
  v.fact("cuda_version", x.cuda_version);
  v.list(
      "options", x.options, [](auto& o) { return o.name; }, [&](auto& o) { fields(v, o); });
  v.group("registry_dwords", [&] {
    for (const auto& [key, value] : x.registry_dwords) v.plain(key.c_str(), value);
  });
  v.fact("initramfs_tool", x.initramfs_tool);
  v.fact("initramfs_has_nvidia_options", x.initramfs_has_nvidia_options);
  v.fact("initramfs_has_nvidia_module", x.initramfs_has_nvidia_module);
  v.fact("fabric_manager", x.fabric_manager);
  v.fact("fabric_manager_version", x.fabric_manager_version);
  v.fact("imex", x.imex);
  v.fact("imex_channel", x.imex_channel);
  v.fact("library_matches", x.library_matches);
  v.plain("stray_options", x.stray_options);
}
template <class V>
void fields(V& v, const KernelFacts& x) {
  v.list(
      "modules", x.modules, [](auto& m) { return m.name; }, [&](auto& m) { v.fact("version", m.version); });
  v.fact("modules_readable", x.modules_readable);
  v.list(
      "dkms", x.dkms,
      [](auto& m) { return m.name + "/" + m.version + (m.kernel.empty() ? "" : "/" + m.kernel); },
      [&](auto& m) {
        v.plain("arch", m.arch);
        v.fact("state", m.state);
      });
  v.fact("dkms_readable", x.dkms_readable);
  v.fact("headers", x.headers);
  v.fact("cmdline", x.cmdline);
  v.fact("iommu_enabled", x.iommu_enabled);
  v.fact("acs_redirect", x.acs_redirect);
  v.plain("acs_bridges", x.acs_bridges);
  v.fact("dmabuf_config", x.dmabuf_config);
  v.fact("p2pdma_config", x.p2pdma_config);
  v.fact("ptrace_scope", x.ptrace_scope);
  v.fact("secure_boot", x.secure_boot);
  v.fact("lockdown", x.lockdown);
  v.fact("sig_enforce", x.sig_enforce);
  v.fact("gdrdrv_device", x.gdrdrv_device);
}
template <class V>
void fields(V& v, const LimitFacts& x) {
  v.fact("memlock", x.memlock);
  v.fact("memlock_hard", x.memlock_hard);
  v.fact("nofile", x.nofile);
  v.fact("nofile_hard", x.nofile_hard);
  v.fact("shm_bytes", x.shm_bytes);
  v.fact("shm_free_bytes", x.shm_free_bytes);
  v.plain("memlock_set_in", x.memlock_set_in);
  v.plain("nofile_set_in", x.nofile_set_in);
  v.list(
      "services", x.services, [](auto& s) { return s.unit; }, [&](auto& s) { v.fact("memlock", s.memlock); });
}
template <class V>
void fields(V& v, const RdmaPort& x) {
  v.fact("state", x.state);
  v.fact("phys_state", x.phys_state);
  v.fact("rate_gbps", x.rate_gbps);
  v.fact("link_layer", x.link_layer);
  v.fact("active_mtu", x.active_mtu);
  v.fact("lid", x.lid);
  v.list(
      "gids", x.gids, [](auto& g) { return std::to_string(g.index); },
      [&](auto& g) {
        v.plain("gid", g.gid);
        v.fact("type", g.type);
        v.fact("netdev", g.netdev);
      });
  v.group("counters", [&] { fact_map(v, x.counters); });
}
template <class V>
void fields(V& v, const RdmaDevice& x) {
  v.plain("address", x.address);
  v.fact("driver", x.driver);
  v.fact("hca_type", x.hca_type);
  v.fact("board_id", x.board_id);
  v.fact("firmware", x.firmware);
  v.fact("node_guid", x.node_guid);
  v.fact("numa_node", x.numa_node);
  v.fact("has_uverbs", x.has_uverbs);
  v.fact("is_vf", x.is_vf);
  v.fact("traffic_class", x.traffic_class);
  v.plain("netdevs", x.netdevs);
  v.list(
      "ports", x.ports, [](auto& p) { return std::to_string(p.number); }, [&](auto& p) { fields(v, p); });
}
template <class V>
void fields(V& v, const Netdev& x) {
  v.plain("address", x.address);
  v.fact("mac", x.mac);
  v.fact("operstate", x.operstate);
  v.fact("driver", x.driver);
  v.fact("mtu", x.mtu);
  v.fact("speed_mbps", x.speed_mbps);
  v.fact("master", x.master);
  v.plain("lower", x.lower);
  v.plain("ips", x.ips);
  v.fact("default_route", x.default_route);
}
template <class V>
void fields(V& v, const LinkMatrix& x) {
  v.plain("labels", x.labels);
  std::vector<std::string> rows;
  for (size_t i = 0; i < x.cells.size(); ++i) {
    std::string row = i < x.labels.size() ? x.labels[i] + ":" : "";
    for (const auto& cell : x.cells[i]) row += " " + (cell.empty() ? std::string("?") : cell);
    rows.push_back(row);
  }
  v.plain("rows", rows);
  v.group("legend", [&] {
    for (const auto& [label, name] : x.legend) v.plain(label.c_str(), name);
  });
}
template <class V>
void fields(V& v, const CudaToolkit& x) {
  v.fact("version", x.version);
  v.fact("nvcc_version", x.nvcc_version);
  v.fact("has_nvcc", x.has_nvcc);
  v.fact("has_cuobjdump", x.has_cuobjdump);
  v.fact("has_cccl", x.has_cccl);
  v.fact("has_stub", x.has_stub);
}
template <class V>
void fields(V& v, const PythonEnvironment& x) {
  v.plain("interpreter", x.interpreter);
  v.fact("version", x.version);
  v.plain("is_virtual", x.is_virtual);
  v.plain("externally_managed", x.externally_managed);
  v.plain("site_packages", x.site_packages);
  v.fact("writable", x.writable);
  v.list(
      "packages", x.packages, [](auto& p) { return p.name; },
      [&](auto& p) {
        v.plain("version", p.version);
        v.plain("location", p.location);
      });
}
template <class V>
void fields(V& v, const ContainerFacts& x) {
  v.fact("runtime", x.runtime);
  v.fact("privileged", x.privileged);
  v.fact("cap_effective", x.cap_effective);
  v.fact("seccomp", x.seccomp);
  v.fact("host_network", x.host_network);
  v.fact("host_pid", x.host_pid);
  v.fact("host_mount", x.host_mount);
  v.plain("devices", x.devices);
}
template <class V>
void fields(V& v, const PlatformFacts& x) {
  v.fact("vendor", x.vendor);
  v.fact("product", x.product);
  v.fact("cloud", x.cloud);
  v.fact("machine_type", x.machine_type);
  v.fact("virtual_machine", x.virtual_machine);
  v.fact("gib_dir", x.gib_dir);
  v.plain("gib_files", x.gib_files);
}
template <class V>
void fields(V& v, const UserFacts& x) {
  v.fact("uid", x.uid);
  v.fact("is_root", x.is_root);
  v.fact("has_sudo", x.has_sudo);
}

/// All areas, in the order in which people want to read them. The host's name and kind are not facts about
/// it.
template <class V>
void fields(V& v, const Facts& x) {
  auto name = [](auto& item) { return item.name; };
  v.group("platform", [&] { fields(v, x.platform); });
  v.group("os", [&] { fields(v, x.os); });
  v.group("cpu", [&] { fields(v, x.cpu); });
  v.list(
      "gpus", x.gpus, [](auto& g) { return std::to_string(g.index); }, [&](auto& g) { fields(v, g); });
  v.group("gpu_links", [&] {
    v.fact("num_amd_gpus", x.num_amd_gpus);
    v.fact("p2p_known", x.p2p_known);
    v.plain("p2p_bad_pairs", x.p2p_bad_pairs);
    size_t n = 0;
    v.list(
        "matrices", x.matrices, [&](auto&) { return std::to_string(n++); }, [&](auto& m) { fields(v, m); });
  });
  v.group("driver", [&] { fields(v, x.driver); });
  v.group("kernel", [&] { fields(v, x.kernel); });
  v.list("rdma", x.rdma, name, [&](auto& d) { fields(v, d); });
  v.group("rdma_stack", [&] {
    v.fact("readable", x.rdma_readable);
    v.fact("ofed_version", x.ofed_version);
    v.fact("has_mlx5dv", x.has_mlx5dv);
  });
  v.list("netdevs", x.netdevs, name, [&](auto& n) { fields(v, n); });
  v.list(
      "pci", x.pci, [](auto& d) { return d.address; }, [&](auto& d) { fields(v, d); });
  v.group("limits", [&] { fields(v, x.limits); });
  v.list(
      "cuda", x.cuda, [](auto& t) { return t.root; }, [&](auto& t) { fields(v, t); });
  v.group("cuda_home", [&] { v.fact("link", x.cuda_home_link); });
  v.list(
      "python", x.python, [](auto& p) { return p.root; }, [&](auto& p) { fields(v, p); });
  v.list(
      "sources", x.sources, [](auto& s) { return s.root; },
      [&](auto& s) {
        v.plain("part", s.name);
        v.plain("locked", s.locked);
        v.group("cmake", [&] {
          for (const auto& [key, value] : s.cmake) v.plain(key.c_str(), value);
        });
      });
  v.group("interfaces", [&] {
    v.plain("names", x.interfaces);
    v.fact("readable", x.interfaces_readable);
  });
  v.list(
      "parts", x.parts, [](auto& p) { return p.root; },
      [&](auto& p) {
        v.plain("part", p.name);
        v.fact("version", p.version);
        v.plain("stamped", p.stamped);
        v.group("stamp", [&] {
          for (const auto& [key, value] : p.stamp) v.plain(key.c_str(), value);
        });
      });
  v.list("tools", x.tools, name, [&](auto& t) {
    v.fact("path", t.path);
    v.fact("version", t.version);
  });
  v.group("package_database", [&] { v.fact("readable", x.packages_readable); });
  v.list("packages", x.packages, name, [&](auto& p) {
    v.plain("version", p.version);
    v.plain("state", p.state);
  });
  v.list(
      "apt_sources", x.apt_sources, [](auto& s) { return s.path; },
      [&](auto& s) {
        v.plain("uri", s.uri);
        v.fact("signed_by", s.signed_by);
      });
  v.group("environment", [&] {
    for (const auto& [key, value] : x.environment) v.plain(key.c_str(), value);
  });
  v.group("nccl_conf", [&] { v.plain("lines", x.nccl_conf); });
  v.group("written_environment", [&] { v.plain("lines", x.written_environment); });
  v.group("named_paths", [&] { fact_map(v, x.named_paths); });
  v.group("container", [&] { fields(v, x.container); });
  v.list(
      "disks", x.disks, [](auto& d) { return d.path; },
      [&](auto& d) {
        v.fact("free_bytes", d.free_bytes);
        v.fact("writable", d.writable);
      });
  v.group("user", [&] { fields(v, x.user); });
}

}  // namespace ep
