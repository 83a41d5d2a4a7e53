// Kernel: modules, headers, configuration, what restricts access.
#include <algorithm>

#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

// Modules of the stack; others are not shown.
constexpr std::string_view kExact[] = {
    "nvidia",  "nouveau", "nova_core", "gdrdrv", "nv_peer_mem", "efa",   "irdma",    "bnxt_re", "ionic",
    "mana_ib", "gve",     "siw",       "amdgpu", "knem",        "xpmem", "rdma_rxe", "erdma",   "irdma_gen3"};
constexpr std::string_view kPrefixes[] = {"nvidia_", "mlx5_", "mlx_", "ib_", "rdma_", "iw_"};

bool matters(std::string_view name) {
  for (auto e : kExact)
    if (name == e) return true;
  for (auto p : kPrefixes)
    if (starts_with(name, p)) return true;
  return false;
}

void read_modules(const Host& host, KernelFacts& k) {
  auto text = host.read("/proc/modules");
  if (!text) {
    k.modules_readable = from_error<bool>(text.error(), "/proc/modules");
    return;
  }
  k.modules_readable = known(true, "/proc/modules");
  for (auto line : lines(*text)) {
    auto words = split_ws(line);
    if (words.empty() || !matters(words[0])) continue;
    std::string name(words[0]);
    k.modules.push_back({name, read_text(host, "/sys/module/" + name + "/version")});
  }
  std::sort(k.modules.begin(), k.modules.end(), [](auto& a, auto& b) { return a.name < b.name; });
}

// "CONFIG_X=y" gives y, "# CONFIG_X is not set" gives n, no line: n as well (an option that the kernel does
// not know).
void read_config(const Host& host, const std::string& release, KernelFacts& k) {
  std::string path = "/boot/config-" + release;
  auto text = host.read(path);
  for (const std::string& candidate :
       {"/lib/modules/" + release + "/config", "/usr/lib/modules/" + release + "/config"}) {
    if (text) break;
    auto other = host.read(candidate);
    if (!other) continue;
    path = candidate;
    text = std::move(other);
  }
  auto option = [&](std::string_view name) -> Fact<std::string> {
    if (!text) return from_error<std::string>(text.error(), "/boot/config-" + release);
    for (auto line : lines(*text))
      if (starts_with(line, std::string(name) + "="))
        return known(std::string(line.substr(name.size() + 1)), path);
    return known<std::string>("n", path);
  };
  k.dmabuf_config = option("CONFIG_DMA_SHARED_BUFFER");
  k.p2pdma_config = option("CONFIG_PCI_P2PDMA");
}

Fact<bool> read_secure_boot(const Host& host) {
  const std::string path = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
  auto bytes = host.read(path);
  if (bytes) {
    // Four bytes of attributes, then the value.
    if (bytes->size() != 5) return malformed<bool>(path, "expected 5 bytes");
    return known((*bytes)[4] == 1, path);
  }
  auto firmware = host.list("/sys/firmware");
  bool is_masked = !firmware || firmware->empty();  // containers often hide it
  auto efi = host.info("/sys/firmware/efi");
  if (!efi && efi.error().kind == ErrorKind::absent && !is_masked)
    return known(false, "/sys/firmware/efi (not there)");
  return from_error<bool>(bytes.error(), path);
}

Fact<std::string> read_lockdown(const Host& host) {
  auto text = read_text(host, "/sys/kernel/security/lockdown");
  if (!text) return text;
  size_t open = text->find('['), close = text->find(']');
  if (open == std::string::npos || close == std::string::npos || close < open)
    return malformed<std::string>(text.where, "expected the state in [brackets]");
  return known(text->substr(open + 1, close - open - 1), text.where);
}

}  // namespace

void read_kernel(const Reading& r, Facts& f) {
  KernelFacts& k = f.kernel;
  const Host& host = r.host;
  read_modules(host, k);
  std::string release = f.os.kernel_release.value_or("unknown");
  k.headers = read_exists(host, "/lib/modules/" + release + "/build");
  k.cmdline = read_text(host, "/proc/cmdline");
  auto iommu = host.list("/sys/class/iommu");
  k.iommu_enabled = iommu ? known(!iommu->empty(), "/sys/class/iommu")
                          : from_error<bool>(iommu.error(), "/sys/class/iommu");
  read_config(host, release, k);
  k.ptrace_scope = read_int(host, "/proc/sys/kernel/yama/ptrace_scope");
  k.secure_boot = read_secure_boot(host);
  k.lockdown = read_lockdown(host);
  auto enforce = read_text(host, "/sys/module/module/parameters/sig_enforce");
  k.sig_enforce =
      enforce ? known(*enforce == "Y" || *enforce == "1", enforce.where) : same_trouble<bool>(enforce);
  auto device = host.info("/dev/gdrdrv");
  k.gdrdrv_device = device ? known(device->readable && device->writable, "/dev/gdrdrv")
                           : from_error<bool>(device.error(), "/dev/gdrdrv");
}

}  // namespace ep
