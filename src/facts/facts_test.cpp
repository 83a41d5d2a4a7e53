// Parsers on literal text: as tools and kernels write it, and as it should not be.
#include "facts/facts.h"

#include <set>

#include "base/text.h"
#include "facts/parsers.h"
#include "facts/pci_ids.h"
#include "host/snapshot.h"

namespace ep {
namespace {

TEST(Driver, NvrmLine) {
  auto open = parse_nvrm_version(
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22)  "
      "Tue Sep 23\n"
      "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n",
      "v");
  EXPECT_EQ(*open.version, "580.95.05");
  EXPECT_TRUE(*open.open);
  auto closed = parse_nvrm_version(
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n", "v");
  EXPECT_EQ(*closed.version, "535.104.05");
  EXPECT_FALSE(*closed.open);
  EXPECT_EQ(parse_nvrm_version("nothing\n", "v").version.known, Known::malformed);
  EXPECT_EQ(parse_nvrm_version("NVRM version: odd\n", "v").version.known, Known::malformed);
  EXPECT_EQ(parse_nvrm_version("", "v").open.known, Known::malformed);
}

TEST(Driver, RegistryDwords) {
  using Map = std::map<std::string, long long>;
  EXPECT_EQ(registry_dwords_of("\"PeerMappingOverride=1;\""), (Map{{"PeerMappingOverride", 1}}));
  EXPECT_EQ(registry_dwords_of("PeerMappingOverride=0x1"), (Map{{"PeerMappingOverride", 1}}));
  EXPECT_EQ(registry_dwords_of(" A = 0x10 ; PeerMappingOverride=0;;B=x;=3"),
            (Map{{"A", 16}, {"PeerMappingOverride", 0}}));
  EXPECT_EQ(registry_dwords_of("\"\""), Map{});
}

TEST(Driver, ModprobeOptionLines) {
  auto o = parse_modprobe_options(
      "# options nvidia NVreg_A=0\n"
      "options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1; Other=2\" NVreg_EnableStreamMemOPs=1\n"
      "options\tnvidia-drm  modeset=1\n"
      "options nvidia \\\n  NVreg_B=3\n"
      "options nvidia\n"
      "blacklist nouveau\n"
      "options nvidia \"NVreg_C=a b\"\n",
      "f");
  ASSERT_EQ(o.size(), 5u);
  EXPECT_EQ(o[0].name + "=" + o[0].value, "NVreg_RegistryDwords=PeerMappingOverride=1; Other=2");
  EXPECT_EQ(o[0].where, "f:2");
  EXPECT_EQ(o[1].name + "=" + o[1].value, "NVreg_EnableStreamMemOPs=1");
  EXPECT_EQ(o[2].module, "nvidia_drm");
  EXPECT_EQ(o[3].where, "f:4");
  EXPECT_EQ(o[3].value, "3");
  EXPECT_EQ(o[4].value, "a b");
}

const ModuleOption& option(const Facts& f, const std::string& name) {
  for (const auto& o : f.driver.options)
    if (o.name == name) return o;
  static const ModuleOption none;
  ADD_FAILURE() << name << " is not among the options";
  return none;
}

// modprobe.d(5): /etc hides /run hides /usr/lib by file name; then order of names; the last setting wins.
TEST(Driver, ModprobeFoldersShadowByName) {
  SnapshotData d;
  d.complete = true;
  d.file("/proc/cmdline", "ro nvidia.NVreg_EnableStreamMemOPs=7 nvidia-drm.modeset=1 quiet\n");
  d.file("/usr/lib/modprobe.d/50-nvidia.conf", "options nvidia NVreg_EnableStreamMemOPs=0 NVreg_Hidden=1\n");
  d.file("/etc/modprobe.d/50-nvidia.conf", "options nvidia NVreg_EnableStreamMemOPs=1\n");
  d.file("/run/modprobe.d/90-late.conf", "options nvidia NVreg_RegistryDwords=PeerMappingOverride=1\n");
  d.file("/etc/modprobe.d/95-latest.conf", "options nvidia NVreg_RegistryDwords=\"Foo=1\"\n");
  d.file("/etc/modprobe.d/99-ignored.conf.dpkg-old", "options nvidia NVreg_RegistryDwords=\"Bar=1\"\n");
  d.file("/proc/driver/nvidia/params",
         "EnableStreamMemOPs: 0\nRegistryDwords: \"PeerMappingOverride=0x1\"\n");
  Facts f = read_facts(*host_of(d, "x"));
  const auto& memops = option(f, "NVreg_EnableStreamMemOPs");
  EXPECT_EQ(*memops.live, "0");
  EXPECT_EQ(*memops.pending, "1");
  EXPECT_EQ(memops.set_in, (std::vector<std::string>{"/proc/cmdline:1", "/etc/modprobe.d/50-nvidia.conf:1"}));
  const auto& dwords = option(f, "NVreg_RegistryDwords");
  EXPECT_EQ(*dwords.pending, "Foo=1") << "a later line replaces an earlier one";
  EXPECT_EQ(*dwords.live, "PeerMappingOverride=0x1");
  EXPECT_EQ(dwords.set_in,
            (std::vector<std::string>{"/run/modprobe.d/90-late.conf:1", "/etc/modprobe.d/95-latest.conf:1"}));
  EXPECT_EQ(f.driver.registry_dwords.at("PeerMappingOverride"), 1);
  EXPECT_EQ(option(f, "NVreg_RegistryDwordsPerDevice").live.known, Known::absent);
  EXPECT_EQ(option(f, "NVreg_RegistryDwordsPerDevice").pending.known, Known::absent);
  for (const auto& o : f.driver.options) EXPECT_NE(o.name, "NVreg_Hidden");
}

TEST(Gpu, SmiQuery) {
  auto g = parse_smi_gpus(
      "0, NVIDIA H200, GPU-5eed, 00000000:18:00.0, 143771, 570.133.20, 9.0, Disabled, 0\n"
      "1, NVIDIA A100, GPU-5eee, 00000001:2A:00.0, [N/A], 570.133.20, [Not Supported], [N/A], [N/A]\n"
      "garbage\n",
      "p");
  ASSERT_EQ(g.size(), 2u);
  EXPECT_EQ(g[0].address, "0000:18:00.0");
  EXPECT_EQ(*g[0].gpu.memory_bytes, 143771ull << 20);
  EXPECT_EQ(*g[0].gpu.compute_capability, 90);
  EXPECT_EQ(g[1].address, "0001:2a:00.0");
  EXPECT_EQ(g[1].gpu.memory_bytes.known, Known::absent);
  EXPECT_EQ(g[1].gpu.compute_capability.known, Known::absent);
  EXPECT_EQ(g[1].gpu.mig_mode.known, Known::absent);
}

TEST(Gpu, SmiSections) {
  auto q = parse_smi_q(
      "==============NVSMI LOG==============\n\nDriver Version                            : 580.95.05\nCUDA "
      "Version                              : 13.0\n\n"
      "GPU 00000000:0F:00.0\n    Product Name                          : NVIDIA GB200\n    Fabric\n        "
      "State                             : In Progress\n"
      "        Status                            : N/A\n        Health\n            Bandwidth                "
      "     : N/A\n    Processes                             : None\n");
  EXPECT_EQ(q[""]["CUDA Version"], "13.0");
  EXPECT_EQ(q["0000:0f:00.0"]["Fabric/State"], "In Progress");
  EXPECT_EQ(q["0000:0f:00.0"]["Fabric/Health/Bandwidth"], "N/A");
  EXPECT_EQ(q["0000:0f:00.0"]["Processes"], "None");
}

TEST(Gpu, SmiNvlink) {
  auto n = parse_smi_nvlink(
      "GPU 0: NVIDIA H100 (UUID: GPU-x)\n\t Link 0: 26.562 GB/s\n\t Link 1: 25 GB/s\n\t Link 2: "
      "<inactive>\nGPU 1: NVIDIA H100 (UUID: GPU-y)\n");
  EXPECT_EQ(n[0].up, 2);
  EXPECT_EQ(n[0].down, 1);
  EXPECT_EQ(n[0].gbps, 25);
  EXPECT_EQ(n[1].up + n[1].down, 0);
}

TEST(Gpu, TableHasNoTwins) {
  std::set<int> seen;
  for (const auto& row : gpu_ids()) EXPECT_TRUE(seen.insert(row.device).second) << row.name;
  EXPECT_EQ(find_gpu_id(0x2330)->compute_capability, 90);
  EXPECT_FALSE(find_gpu_id(0x1234));
}

TEST(Pci, Vpd) {
  auto item = [](const std::string& tag, const std::string& body) {
    return tag + char(body.size()) + '\0' + body;
  };
  auto field = [](const std::string& key, const std::string& v) { return key + char(v.size()) + v; };
  std::string vpd = item("\x82", "ConnectX-7 SW_MNG") +
                    item("\x90", field("PN", "MCX750500B") + field("SN", "SECRET1") + field("V3", "abc") +
                                     field("RV", "x")) +
                    "\x78";
  auto v = parse_vpd(vpd, "w");
  EXPECT_EQ(*v, "ConnectX-7 SW_MNG; PN=MCX750500B; V3=abc");
  EXPECT_EQ(parse_vpd("", "w").known, Known::malformed);
  EXPECT_EQ(parse_vpd(std::string("\x82\xff\xff", 3) + "short", "w").value, "short");
  EXPECT_EQ(parse_vpd(std::string(100, '\xff'), "w").known, Known::malformed);
}

TEST(Python, FolderNames) {
  EXPECT_EQ(parse_dist_info_name("torch-2.9.1+cu129.dist-info")->version, "2.9.1+cu129");
  EXPECT_EQ(parse_dist_info_name("nvidia_nccl_cu12-2.27.5.dist-info")->name, "nvidia_nccl_cu12");
  EXPECT_EQ(parse_dist_info_name("deep_ep-1.2.1-py3.12-linux-x86_64.egg-info")->version, "1.2.1");
  EXPECT_EQ(parse_dist_info_name("deep_ep.egg-info")->version, "");
  EXPECT_FALSE(parse_dist_info_name("torch"));
  EXPECT_FALSE(parse_dist_info_name(".dist-info"));
  EXPECT_FALSE(parse_dist_info_name("-1.dist-info"));
  EXPECT_EQ(normalize_package("NVIDIA_nccl.-cu12"), "nvidia-nccl-cu12");
  EXPECT_TRUE(is_wheel_of_interest("nvidia-nvshmem-cu13"));
  EXPECT_TRUE(is_wheel_of_interest("deep-ep"));
  EXPECT_FALSE(is_wheel_of_interest("requests"));
}

TEST(Python, MetadataWinsOverTheFolder) {
  SnapshotData d;
  d.complete = true;
  d.add("/opt/app/venv/bin/python3", FileInfo::Type::file);
  d.file("/opt/app/venv/pyvenv.cfg", "version = 3.11.2\n");
  std::string site = "/opt/app/venv/lib/python3.11/site-packages";
  d.file(site + "/Torch-2.0.dist-info/METADATA",
         "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1+cu129\nSummary: x\n\nVersion: 1\n");
  d.file(site + "/numpy-1.26.4.dist-info/METADATA", "");
  d.directory(site + "/requests-2.0.dist-info");
  d.environment["PYTHONPATH"] = "/src/DeepEP:relative";
  d.file("/src/DeepEP/deep_ep/__init__.py", "");
  Facts f = read_facts(*host_of(d, "x"));
  ASSERT_EQ(f.python.size(), 2u);
  EXPECT_EQ(f.python[0].root, "/opt/app/venv");
  EXPECT_EQ(*f.python[0].version, "3.11.2");
  ASSERT_EQ(f.python[0].packages.size(), 2u);
  EXPECT_EQ(f.python[0].packages[0].version, "2.9.1+cu129");
  EXPECT_EQ(f.python[0].packages[1].version, "1.26.4");
  EXPECT_EQ(f.python[1].packages[0].name, "deep-ep");
  EXPECT_EQ(f.python[1].packages[0].location, "/src/DeepEP");
}

TEST(Systemctl, Blocks) {
  auto s = parse_systemctl(
      "Id=a.service\nLoadState=loaded\nActiveState=active\n\nId=b.service\nLoadState=not-found\nActiveState="
      "inactive\n");
  EXPECT_EQ(s["a.service"], "active");
  EXPECT_EQ(s["b.service"], "not-found");
}

// One small host, one odd file at a time: each says malformed or absent with a reason, none says known.
TEST(Facts, OddSysfsTextIsMalformed) {
  SnapshotData d;
  d.complete = true;
  std::string ib = "/sys/class/infiniband/mlx5_0/", port = ib + "ports/1/";
  d.file(port + "state", "ACTIVE\n");
  d.file(port + "rate", "fast\n");
  d.file(port + "lid", "zz\n");
  d.file(port + "gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
  d.file(port + "counters/port_xmit_data", "-1\n");
  std::string pci = "/sys/bus/pci/devices/0000:01:00.0/";
  d.file(pci + "vendor", "0x10de\n");
  d.file(pci + "class", "0x030200\n");
  d.file(pci + "device", "0xffff\n");
  d.file(pci + "current_link_speed", "Unknown\n");
  d.file(pci + "max_link_speed", "very fast\n");
  d.file(pci + "current_link_width", "wide\n");
  d.file("/proc/meminfo", "MemTotal: lots\n");
  d.file("/sys/devices/system/cpu/online", "0-x\n");
  d.file("/proc/self/status", "Uid:\tme\nCapEff:\tzz\n");
  d.file("/usr/local/cuda-12/version.json", "{");
  d.add("/usr/local/cuda-12/bin/nvcc", FileInfo::Type::file);
  d.probe("libc", "musl\n");
  Facts f = read_facts(*host_of(d, "x"));
  const RdmaPort& p = f.rdma.at(0).ports.at(0);
  EXPECT_EQ(p.state.known, Known::malformed);
  EXPECT_EQ(p.rate_gbps.known, Known::malformed);
  EXPECT_EQ(p.lid.known, Known::malformed);
  EXPECT_EQ(p.counters.at("port_xmit_data").known, Known::malformed);
  EXPECT_EQ(p.gids.at(0).type.known, Known::absent);
  const PciDevice& g = f.pci.at(0);
  EXPECT_EQ(g.link_speed_gts.known, Known::absent);
  EXPECT_EQ(g.link_speed_max_gts.known, Known::malformed);
  EXPECT_EQ(g.link_width.known, Known::malformed);
  EXPECT_EQ(f.gpus.at(0).compute_capability.known, Known::absent);
  EXPECT_EQ(f.cpu.memory_bytes.known, Known::malformed);
  EXPECT_EQ(f.cpu.num_online.known, Known::malformed);
  EXPECT_EQ(f.user.uid.known, Known::malformed);
  EXPECT_EQ(f.container.cap_effective.known, Known::malformed);
  EXPECT_EQ(f.cuda.at(0).version.known, Known::malformed);
  EXPECT_EQ(f.os.libc.known, Known::malformed);
}

TEST(Facts, SecretsAndLoginsStayOut) {
  SnapshotData d;
  d.complete = true;
  d.environment = {{"NCCL_DEBUG", "INFO"},
                   {"VLLM_API_KEY", "x"},
                   {"NVIDIA_TOKEN", "x"},
                   {"EP_SECRET_THING", "x"},
                   {"HOME", "/root"}};
  d.file("/etc/apt/sources.list",
         "deb [signed-by=/k.gpg arch=amd64] https://me:pw@repo.example/x ./\n# deb no\n");
  d.file("/etc/apt/sources.list.d/a.sources",
         "Types: deb\nURIs: https://a.example/x\nSuites: ./\n\nEnabled: no\nTypes: deb\nURIs: "
         "https://b.example\nSuites: ./\n");
  Facts f = read_facts(*host_of(d, "x"));
  EXPECT_EQ(f.environment, (std::map<std::string, std::string>{{"NCCL_DEBUG", "INFO"}}));
  ASSERT_EQ(f.apt_sources.size(), 2u);
  EXPECT_EQ(f.apt_sources[0].uri, "https://repo.example/x");
  EXPECT_EQ(*f.apt_sources[0].signed_by, "/k.gpg");
  EXPECT_EQ(f.apt_sources[1].signed_by.known, Known::absent);
}

TEST(Facts, SecureBootIsSaidOnlyWhenSeen) {
  SnapshotData d;
  d.complete = true;
  EXPECT_EQ(read_facts(*host_of(d, "x")).kernel.secure_boot.known, Known::absent)
      << "/sys/firmware hidden: nothing is known";
  d.directory("/sys/firmware/acpi");
  EXPECT_FALSE(*read_facts(*host_of(d, "x")).kernel.secure_boot) << "no EFI, no secure boot";
  d.file("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
         std::string("\x06\0\0\0\x01", 5));
  EXPECT_TRUE(*read_facts(*host_of(d, "x")).kernel.secure_boot);
}

TEST(Facts, ToolsThatFailAreNotAbsent) {
  SnapshotData d;
  d.complete = true;
  d.file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  d.file("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  d.file("/sys/bus/pci/devices/0000:01:00.0/device", "0x2330\n");
  d.probe("nvidia-smi-gpus", "", 9,
          "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
  d.probes["nvidia-smi-q"].found = true;
  d.probes["nvidia-smi-q"].timed_out = true;
  d.probes["nvidia-smi-q"].why = "stopped at its limit of 20 s";
  Facts f = read_facts(*host_of(d, "x"));
  ASSERT_EQ(f.gpus.size(), 1u);
  EXPECT_EQ(*f.gpus[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(f.gpus[0].memory_bytes.known, Known::unreadable);
  EXPECT_TRUE(contains(f.gpus[0].memory_bytes.why, "exit 9"));
  EXPECT_EQ(f.driver.cuda_version.known, Known::unreadable);
  EXPECT_TRUE(contains(f.driver.cuda_version.why, "limit"));
}

TEST(Dkms, StateIsReadFromItsFolderAndTheKernelsTree) {
  SnapshotData d;
  d.complete = true;
  const std::string dkms = "/var/lib/dkms/", kernel = "6.8.0-79-generic";
  d.file(dkms + "nvidia/580.95.05/" + kernel + "/x86_64/module/nvidia.ko.zst", "");
  d.file("/lib/modules/" + kernel + "/updates/dkms/nvidia.ko.zst", "");
  d.link(dkms + "nvidia/kernel-" + kernel + "-x86_64", "580.95.05/" + kernel + "/x86_64");
  d.file(dkms + "gdrdrv/2.5.1/" + kernel + "/x86_64/module/gdrdrv.ko", "");
  d.link(dkms + "mlnx-ofed-kernel/24.10/source", "/usr/src/mlnx-ofed-kernel-24.10");
  Facts f = read_facts(*host_of(std::move(d), "x"));
  EXPECT_TRUE(*f.kernel.dkms_readable);
  ASSERT_EQ(f.kernel.dkms.size(), 3u);
  std::map<std::string, std::string> state;
  for (const auto& m : f.kernel.dkms) state[m.name + " " + m.kernel] = *m.state;
  EXPECT_EQ(state["nvidia " + kernel], "installed");
  EXPECT_EQ(state["gdrdrv " + kernel], "built");
  EXPECT_EQ(state["mlnx-ofed-kernel "], "added");
  SnapshotData none;
  none.complete = true;
  EXPECT_EQ(read_facts(*host_of(std::move(none), "x")).kernel.dkms_readable.known, Known::absent);
}

}  // namespace
}  // namespace ep
