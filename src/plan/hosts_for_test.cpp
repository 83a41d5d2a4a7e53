#include "plan/hosts_for_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/text.h"
#include "plan/predicates.h"

namespace ep::test {

void add_gpus(Facts& f, int count, const char* name, int cc) {
  for (int i = 0; i < count; ++i) {
    Gpu g;
    g.index = i;
    g.address = fmt::format("0000:{:02x}:00.0", 0x10 + i);
    g.name = known<std::string>(name, "nvidia-smi");
    g.compute_capability = known(cc, "nvidia-smi");
    g.mig_mode = known<std::string>("Disabled", "nvidia-smi");
    f.gpus.push_back(g);
  }
}

void add_nics(Facts& f, int count, const char* prefix, const char* driver, const char* layer) {
  f.rdma_readable = known(true, "/sys/class/infiniband");
  for (int i = 0; i < count; ++i) {
    RdmaDevice d;
    d.name = fmt::format("{}{}", prefix, i);
    d.address = fmt::format("0000:{:02x}:00.0", 0x90 + i);
    d.driver = known<std::string>(driver, "/sys/class/infiniband/" + d.name + "/device/driver");
    RdmaPort p;
    p.state = known<std::string>("ACTIVE", "state");
    p.rate_gbps = known(400.0, "rate");
    p.link_layer = known<std::string>(layer, "link_layer");
    d.ports = {p};
    f.rdma.push_back(d);
  }
}

void add_package(Facts& f, const char* name, const char* version) {
  f.packages.push_back({name, version, "install ok installed"});
}

void add_driver(Facts& f, const char* version, bool open, const char* dwords) {
  f.driver.version = known<std::string>(version, "/proc/driver/nvidia/version");
  f.driver.open_kernel_module = known(open, "/proc/driver/nvidia/version");
  ModuleOption o;
  o.name = "NVreg_RegistryDwords";
  o.live = known<std::string>(dwords, "/proc/driver/nvidia/params");
  o.pending = absent<std::string>("modprobe.d");
  f.driver.options = {o};
  for (const auto& [key, value] : split_registry_dwords(dwords))
    f.driver.registry_dwords[key] = parse_int(value).value_or(0);
}

void add_cuda(Facts& f, const char* version) {
  CudaToolkit t;
  t.root = std::string("/usr/local/cuda-") + version;
  t.version = known<std::string>(version, t.root + "/version.json");
  t.has_nvcc = known(true, t.root + "/bin/nvcc");
  f.cuda.push_back(t);
}

Facts laptop() {
  Facts f;
  f.host_name = "laptop";
  f.host_kind = "snapshot";
  f.os.id = known<std::string>("ubuntu", "os-release");
  f.os.version_id = known<std::string>("24.04", "os-release");
  f.os.hostname = known<std::string>("laptop", "hostname");
  f.os.architecture = known<std::string>("x86_64", "uname");
  f.os.kernel_release = known<std::string>("6.14.0-1021-gcp", "uname");
  f.kernel.modules_readable = known(true, "/proc/modules");
  f.kernel.headers = known(true, "/lib/modules");
  f.kernel.secure_boot = known(false, "efivars");
  f.driver.version = absent<std::string>("/proc/driver/nvidia/version");
  f.limits.memlock = known<std::string>("8388608", "/proc/self/limits");
  f.limits.shm_bytes = known<uint64_t>(16u << 30, "/dev/shm");
  f.container.runtime = known<std::string>("none", "/proc/1/cgroup");
  f.platform.cloud = known<std::string>("none", "dmi");
  f.packages_readable = known(true, "dpkg");
  f.rdma_readable = absent<bool>("/sys/class/infiniband");
  f.user.uid = known(0, "getuid");
  f.user.is_root = known(true, "getuid");
  PythonEnvironment e;
  e.root = "/usr";
  e.interpreter = "/usr/bin/python3";
  e.version = known<std::string>("3.12.3", "python3");
  f.python = {e};
  return f;
}

Facts gcp_a4_fresh() {
  Facts f = laptop();
  f.host_name = "gcp-a4-fresh";
  f.os.hostname = known<std::string>("b7", "hostname");
  f.platform.cloud = known<std::string>("gcp", "dmi");
  f.platform.machine_type = known<std::string>("a4-highgpu-8g", "metadata");
  add_gpus(f, 8, "NVIDIA B200", 100);
  add_driver(f, "580.95.05", true, "");
  add_nics(f, 8, "rocep", "mlx5_core", "Ethernet");
  for (const char* p : {"git", "build-essential", "rdma-core"}) add_package(f, p);
  return f;
}

Facts h100_infiniband() {
  Facts f = laptop();
  f.host_name = "h100-ib";
  add_gpus(f, 8, "NVIDIA H100 80GB HBM3", 90);
  add_driver(f, "550.90.07", false, "");
  add_nics(f, 8, "mlx5_", "mlx5_core", "InfiniBand");
  return f;
}

Facts a100_roce() {
  Facts f = laptop();
  add_gpus(f, 8, "NVIDIA A100-SXM4-80GB", 80);
  add_driver(f, "580.95.05", true, "");
  add_nics(f, 8, "mlx5_", "mlx5_core", "Ethernet");
  return f;
}

Facts aws_b200_efa() {
  Facts f = laptop();
  f.platform.cloud = known<std::string>("aws", "dmi");
  add_gpus(f, 8, "NVIDIA B200", 100);
  add_driver(f, "580.95.05", true, "");
  add_nics(f, 8, "rdmap", "efa", "Unspecified");
  return f;
}

Facts gke_pod() {
  Facts f = gcp_a4_fresh();
  f.host_name = "gke-pod";
  f.container.runtime = known<std::string>("kubernetes", "/proc/1/cgroup");
  f.container.privileged = known(true, "CapEff");
  f.container.host_network = known(true, "/proc/net");
  f.container.host_pid = known(false, "/proc/1");
  f.container.host_mount = known(false, "/host");
  f.rdma.clear();
  add_nics(f, 8, "mlx5_", "mlx5_core", "Ethernet");
  add_cuda(f, "12.9");
  return f;
}

Facts random_host(uint64_t seed) {
  std::mt19937_64 rng(seed);
  const auto pick = [&](int n) { return int(rng() % uint64_t(n)); };
  Facts f = laptop();
  const char* oses[][2] = {{"ubuntu", "24.04"}, {"ubuntu", "22.04"}, {"debian", "12"}, {"rocky", "9"}};
  const auto& os = oses[pick(4)];
  f.os.id = known<std::string>(os[0], "os-release");
  f.os.version_id = known<std::string>(os[1], "os-release");
  if (pick(5) == 0) f.os.architecture = known<std::string>("aarch64", "uname");
  const int ccs[] = {80, 90, 100, 103, 120};
  const int cc = ccs[pick(5)];
  if (pick(8) != 0) add_gpus(f, pick(2) ? 8 : 4, "GPU", cc);
  const char* drivers[] = {"535.183.01", "550.90.07", "580.95.05", "595.10"};
  const char* dwords[] = {"", "PeerMappingOverride=1;", "\"PeerMappingOverride=0x1\"", "RmKeep=0x3",
                          "PeerMappingOverride=0;RmKeep=1"};
  if (!f.gpus.empty() && pick(5) != 0) add_driver(f, drivers[pick(4)], pick(3) != 0, dwords[pick(5)]);
  if (!f.driver.options.empty() && pick(2))
    f.driver.options[0].pending = known<std::string>(dwords[pick(5)], "/etc/modprobe.d/x.conf");
  if (pick(3) == 0) f.driver.initramfs_has_nvidia_options = known(pick(2) == 0, "initramfs");
  const char* names[] = {"mlx5_", "rocep", "rdmap"};
  const int kind = pick(4);
  if (kind < 3)
    add_nics(f, pick(2) ? 8 : 2, names[kind], kind == 2 ? "efa" : "mlx5_core",
             pick(2) ? "InfiniBand" : "Ethernet");
  const char* clouds[] = {"none", "gcp", "aws", "azure"};
  f.platform.cloud = known<std::string>(clouds[pick(4)], "dmi");
  const char* runtimes[] = {"none", "none", "none", "docker", "kubernetes"};
  f.container.runtime = known<std::string>(runtimes[pick(5)], "cgroup");
  if (*f.container.runtime != "none") f.container.privileged = known(pick(2) == 0, "CapEff");
  const char* cudas[] = {"12.6", "12.9", "13.0", "13.1"};
  for (const char* c : cudas)
    if (pick(4) == 0) add_cuda(f, c);
  for (const char* p : {"git", "build-essential", "cmake", "ninja-build", "python3-dev", "python3-venv",
                        "libibverbs-dev", "rdma-core", "ibverbs-utils", "infiniband-diags", "doca-ofed"})
    if (pick(3) == 0) add_package(f, p);
  if (pick(6) == 0) f.packages_readable = unreadable<bool>("dpkg", "permission denied");
  if (pick(3) == 0) f.limits.memlock = known<std::string>("unlimited", "limits");
  if (pick(4) == 0) f.kernel.headers = known(false, "/lib/modules");
  if (pick(2)) f.user.is_root = known(false, "getuid");
  f.user.uid = known(*f.user.is_root ? 0 : 1000, "getuid");
  return f;
}

namespace {

ModuleOption& option(Facts& f, const std::string& name) {
  for (auto& o : f.driver.options)
    if (o.name == name) return o;
  ModuleOption o;
  o.name = name;
  o.live = absent<std::string>("params");
  o.pending = absent<std::string>("modprobe.d");
  f.driver.options.push_back(o);
  return f.driver.options.back();
}

void set_option(Facts& f, const std::vector<std::string>& a, bool live) {
  ModuleOption& o = option(f, a[1]);
  Fact<std::string>& fact = live ? o.live : o.pending;
  std::string text = a[2];
  if (a[1] == "NVreg_RegistryDwords") {
    const size_t eq = a[2].find('=');
    text = merge_registry_dwords(fact.value_or(""), a[2].substr(0, eq), a[2].substr(eq + 1));
    if (live) f.driver.registry_dwords[a[2].substr(0, eq)] = parse_int(a[2].substr(eq + 1)).value_or(0);
  }
  fact = known(text, live ? "/proc/driver/nvidia/params" : "/etc/modprobe.d/epready-nvidia.conf");
}

PythonEnvironment& environment(Facts& f, const std::string& root) {
  for (auto& e : f.python)
    if (e.root == root) return e;
  PythonEnvironment e;
  e.root = root;
  e.is_virtual = true;
  f.python.push_back(e);
  return f.python.back();
}

}  // namespace

void assume(Facts& f, const Predicate& p) {
  const auto& a = p.args;
  if (p.name == "driver-at-least") {
    f.driver.open_kernel_module = known(true, "version");  // the step installs that flavour
    f.driver.version = known<std::string>("580.95.05", "version");
  } else if (p.name == "package") {
    for (const auto& name : a)
      if (!f.package(name)) add_package(f, name.c_str());
  } else if (p.name == "program") {
    for (const auto& name : a) {
      f.tools.erase(
          std::remove_if(f.tools.begin(), f.tools.end(), [&](const Tool& t) { return t.name == name; }),
          f.tools.end());
      f.tools.push_back({name, known<std::string>("/usr/bin/" + name, "PATH"), {}});
    }
  } else if (p.name == "apt-source") {
    f.apt_sources.push_back(
        {"/etc/apt/sources.list.d/x.sources:1", a[0], known<std::string>("/etc/apt/keyrings/x.gpg", "x")});
  } else if (p.name == "cuda") {
    add_cuda(f, a[0].c_str());
  } else if (p.name == "cuda-link") {
    add_cuda(f, a[0].c_str());
    f.cuda_home_link = known<std::string>("/usr/local/cuda-" + a[0], "/usr/local/cuda");
  } else if (p.name == "gdrdrv-usable") {
    f.kernel.gdrdrv_device = known(true, "/dev/gdrdrv");
  } else if (p.name == "rdma-named") {
    for (size_t i = 0; i < f.rdma.size(); ++i) f.rdma[i].name = a[0] + std::to_string(i);
  } else if (p.name == "option-live") {
    set_option(f, a, true);
  } else if (p.name == "option-pending") {
    set_option(f, a, false);
  } else if (p.name == "nic-reaches-gpu-memory") {
    f.kernel.modules.push_back({"nvidia_peermem", known<std::string>("1", "x")});
  } else if (p.name == "memlock-unlimited") {
    f.limits.memlock = known<std::string>("unlimited", "limits");
  } else if (p.name == "nofile-at-least") {
    f.limits.nofile_hard = known<uint64_t>(uint64_t(parse_int(a[0]).value()), "limits");
  } else if (p.name == "shm-at-least") {
    f.limits.shm_bytes = known<uint64_t>(uint64_t(parse_int(a[0]).value()), "/dev/shm");
  } else if (p.name == "prefix-ready") {
    f.disks.push_back({a[0], known<uint64_t>(1u << 30, a[0]), known(true, a[0])});
  } else if (p.name == "part") {
    InstalledPart part;
    part.name = a[0];
    part.root = a[1] + "/" + a[0];
    part.stamped = true;
    for (size_t i = 2; i < a.size(); ++i)
      part.stamp[a[i].substr(0, a[i].find('='))] = a[i].substr(a[i].find('=') + 1);
    if (part.stamp.count("version")) part.version = known(part.stamp["version"], part.root);
    f.parts.erase(std::remove_if(f.parts.begin(), f.parts.end(),
                                 [&](const InstalledPart& x) { return x.root == part.root; }),
                  f.parts.end());
    f.parts.push_back(part);
  } else if (p.name == "python-env") {
    environment(f, a[0]);
  } else if (p.name == "wheel") {
    PythonEnvironment& e = environment(f, a[0]);
    e.packages.erase(std::remove_if(e.packages.begin(), e.packages.end(),
                                    [&](const PythonPackage& x) { return x.name == a[1]; }),
                     e.packages.end());
    e.packages.push_back({a[1], a[2].substr(a[2].find_first_not_of("=><! ")), e.root});
  } else {
    throw std::logic_error("no assumption for predicate " + p.name);
  }
}

}  // namespace ep::test
