#include "check/check.h"

#include <set>

#include "facts/text_facts.h"

using namespace ep;

namespace {

Facts h200_host() {
  Facts f;
  for (int i = 0; i < 2; ++i) {
    Gpu g;
    g.index = i;
    g.name = known<std::string>("NVIDIA H200", "probe:gpu");
    g.compute_capability = known(90, "probe:gpu");
    g.mig_mode = known<std::string>("Disabled", "probe:gpu");
    g.ecc_uncorrected = known<std::string>("0", "probe:gpu");
    g.nvlinks_up = known(18, "probe:nvlink");
    g.nvlinks_down = known(0, "probe:nvlink");
    f.gpus.push_back(g);
  }
  f.driver.version = known<std::string>("580.95.05", "/proc/driver/nvidia/version");
  f.driver.open_kernel_module = known(true, "/proc/driver/nvidia/version");
  return f;
}

CheckResult result_of(const Facts& f, std::string_view id) {
  for (auto& r : run_checks(f, kLaneAll, Lang::en))
    if (id == r.row->id) return r.result;
  ADD_FAILURE() << "no check " << id;
  return {};
}

}  // namespace

TEST(Checks, TableIsSane) {
  std::set<std::string> ids;
  for (const auto& row : checks()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_LE(row.title.en.size(), 80u) << row.id;
    EXPECT_FALSE(row.title.zh.empty()) << row.id;
    EXPECT_NE(row.lanes, 0u) << row.id;
  }
  EXPECT_GE(ids.size(), 35u);
}

TEST(Checks, NothingKnownNeverPassesAGpuCheck) {
  // A GPU that shows nothing but its existence: whatever is not known must not be PASS.
  Facts f;
  f.gpus.resize(2);
  for (const char* id : {"gpu.model", "gpu.mig", "gpu.ecc", "gpu.nvlink", "gpu.p2p", "drv.flavor",
                         "drv.peermapping", "krn.dmabuf", "krn.nouveau", "lim.memlock", "shm.size"})
    EXPECT_NE(result_of(f, id).outcome.verdict, Verdict::pass) << id;
}

TEST(Checks, EverythingButPassHasAReason) {
  for (const Facts& f : {Facts{}, h200_host()})
    for (Lang lang : {Lang::en, Lang::zh})
      for (const auto& r : run_checks(f, kLaneAll, lang))
        EXPECT_FALSE(r.result.outcome.reason.empty()) << r.row->id;
}

TEST(Checks, HostWithoutGpuSkipsGpuChecks) {
  Facts f;
  EXPECT_EQ(result_of(f, "gpu.model").outcome.verdict, Verdict::skip);
  EXPECT_EQ(result_of(f, "drv.version").outcome.verdict, Verdict::skip);
}

TEST(Checks, MixedModelsAndOldGpus) {
  Facts f = h200_host();
  EXPECT_EQ(result_of(f, "gpu.model").outcome.verdict, Verdict::pass);
  f.gpus[1].name.value = "NVIDIA H100";
  EXPECT_EQ(result_of(f, "gpu.model").outcome.verdict, Verdict::warn);
  f.gpus[1].name.value = "NVIDIA H200";
  f.gpus[0].compute_capability.value = 80;
  EXPECT_EQ(result_of(f, "gpu.model").outcome.verdict, Verdict::fail);
}

TEST(Checks, NvlinkDownIsNamed) {
  Facts f = h200_host();
  f.gpus[1].nvlinks_down = known(2, "probe:nvlink");
  auto r = result_of(f, "gpu.nvlink");
  EXPECT_EQ(r.outcome.verdict, Verdict::fail);
  EXPECT_NE(r.outcome.reason.find("GPU 1"), std::string::npos);
}

TEST(Checks, DriverFloors) {
  Facts f = h200_host();
  EXPECT_EQ(result_of(f, "drv.version").outcome.verdict, Verdict::pass);
  f.driver.version.value = "570.133.20";
  EXPECT_EQ(result_of(f, "drv.version").outcome.verdict, Verdict::warn);
  f.driver.version.value = "520.61.05";
  EXPECT_EQ(result_of(f, "drv.version").outcome.verdict, Verdict::fail);
}

TEST(Checks, PeerMappingAndPending) {
  Facts f = h200_host();
  ModuleOption o{"NVreg_RegistryDwords",
                 known<std::string>("", "/proc/driver/nvidia/params"),
                 known<std::string>("PeerMappingOverride=0x1", "/etc/modprobe.d/a.conf"),
                 {"/etc/modprobe.d/a.conf:1"}};
  f.driver.options = {o};
  EXPECT_EQ(result_of(f, "drv.peermapping").outcome.verdict, Verdict::warn);
  EXPECT_EQ(result_of(f, "drv.pending").outcome.verdict, Verdict::warn);
  f.driver.options[0].live.value = "PeerMappingOverride=1;";
  f.driver.registry_dwords["PeerMappingOverride"] = 1;
  EXPECT_EQ(result_of(f, "drv.peermapping").outcome.verdict, Verdict::pass);
  EXPECT_EQ(result_of(f, "drv.pending").outcome.verdict, Verdict::pass)
      << result_of(f, "drv.pending").outcome.reason;
  f.driver.options[0].set_in.push_back("/etc/modprobe.d/b.conf:1");
  EXPECT_EQ(result_of(f, "drv.conflict").outcome.verdict, Verdict::warn);
}

TEST(Checks, TwoNcclPackagesFail) {
  Facts f = h200_host();
  PythonEnvironment e;
  e.root = "/opt/v";
  e.interpreter = "/opt/v/bin/python";
  e.packages = {{"nvidia-nccl-cu12", "2.27.5", "/s"}, {"nvidia-nccl-cu13", "2.30.7", "/s"}};
  f.python = {e};
  EXPECT_EQ(result_of(f, "py.nccl-copies").outcome.verdict, Verdict::fail);
}

TEST(Checks, NcclTooOldForV2) {
  Facts f = h200_host();
  PythonEnvironment e;
  e.root = "/opt/v";
  e.interpreter = "/opt/v/bin/python";
  e.packages = {{"deep-ep", "2.0.0+d4f41e4", "/s"}, {"nvidia-nccl-cu13", "2.28.9", "/s"}};
  f.python = {e};
  auto r = result_of(f, "py.nccl");
  EXPECT_EQ(r.outcome.verdict, Verdict::fail);
  EXPECT_NE(r.next.find(">=2.30.4"), std::string::npos);
  f.python[0].packages[1].version = "2.30.7";
  EXPECT_EQ(result_of(f, "py.nccl").outcome.verdict, Verdict::pass);
}

TEST(Checks, RemoteTransportIbgdaIsNotAValue) {
  Facts f = h200_host();
  f.environment["NVSHMEM_REMOTE_TRANSPORT"] = "ibgda";
  EXPECT_EQ(result_of(f, "env.conflict").outcome.verdict, Verdict::warn);
}

TEST(Checks, RoceWithoutV4GidWarns) {
  Facts f = h200_host();
  RdmaDevice d;
  d.name = "mlx5_0";
  d.driver = known<std::string>("mlx5_core", "/sys");
  RdmaPort p;
  p.state = known<std::string>("ACTIVE", "/sys");
  p.link_layer = known<std::string>("Ethernet", "/sys");
  p.gids.push_back({0, "fe80:0000:0000:0000:0000:0000:0000:0001", known<std::string>("RoCE v2", "/sys"), {}});
  d.ports = {p};
  f.rdma = {d};
  EXPECT_EQ(result_of(f, "ib.gid").outcome.verdict, Verdict::warn);
  f.rdma[0].ports[0].gids.push_back(
      {3, "0000:0000:0000:0000:0000:ffff:c612:0001", known<std::string>("RoCE v2", "/sys"), {}});
  EXPECT_EQ(result_of(f, "ib.gid").outcome.verdict, Verdict::pass);
}

TEST(Checks, RcFixIsToldByTheCommit) {
  const auto with = [](const char* deep_ep) {
    Facts f = h200_host();
    PythonEnvironment e;
    e.root = "/opt/epready/venv";
    e.packages = {{"nvidia-nvshmem-cu12", "3.5.19", "/opt"}, {"deep-ep", deep_ep, "/opt"}};
    f.python.push_back(e);
    return result_of(f, "py.nvshmem").outcome.verdict;
  };
  EXPECT_EQ(with("1.2.1+29d31c0"), Verdict::pass);
  EXPECT_EQ(with("1.2.1+73b6ea4"), Verdict::fail);
  EXPECT_EQ(with("1.2.1+0123456"), Verdict::unknown);
  EXPECT_EQ(with("1.2.1"), Verdict::unknown);
}

TEST(Checks, OnlyRdmaDevicesForEpGetAnMtu) {
  Facts f = h200_host();
  RdmaDevice d;
  d.name = "mlx5_0";
  d.driver = known<std::string>("mlx5_core", "/sys");
  d.netdevs = {"ens1f0np0"};
  RdmaPort p;
  p.link_layer = known<std::string>("Ethernet", "/sys");
  p.state = known<std::string>("DOWN", "/sys");
  d.ports.push_back(p);
  f.rdma.push_back(d);
  Netdev n;
  n.name = "ens1f0np0";
  n.mtu = known(1500, "/sys/class/net/ens1f0np0/mtu");
  f.netdevs.push_back(n);
  EXPECT_EQ(result_of(f, "ib.mtu").outcome.verdict, Verdict::skip) << "a port that is down carries nothing";
}

TEST(Checks, OnlyWhatATextShowsIsJudged) {
  const Facts f = facts_of_paste({}, "text");
  for (auto& r : run_checks(f, kLaneGpu, Lang::en))
    if (std::string_view(r.row->id) != "ib.devices") {
      EXPECT_EQ(r.result.outcome.verdict, Verdict::unknown) << r.row->id;
    }
}
