// Container or not, and what it lets us see and do.
#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

const std::string kStatus = "/proc/self/status";

Fact<std::string> status_field(const Result<std::string>& status, std::string_view key) {
  if (!status) return from_error<std::string>(status.error(), kStatus);
  for (auto line : lines(*status))
    if (starts_with(line, std::string(key) + ":"))
      return known(std::string(trim(line.substr(key.size() + 1))), kStatus);
  return absent<std::string>(kStatus, "no line " + std::string(key) + ":");
}

Fact<std::string> runtime(const Reading& r) {
  const Host& host = r.host;
  if (!r.variable("KUBERNETES_SERVICE_HOST").empty())
    return known<std::string>("kubernetes", "KUBERNETES_SERVICE_HOST");
  const std::pair<const char*, const char*> marks[] = {{"/var/run/secrets/kubernetes.io", "kubernetes"},
                                                       {"/run/.containerenv", "podman"},
                                                       {"/.singularity.d", "singularity"},
                                                       {"/.dockerenv", "docker"}};
  bool certain = true;
  for (auto [path, name] : marks) {
    auto there = read_exists(host, path);
    if (there && *there) return known<std::string>(name, path);
    certain &= there.ok();
  }
  auto systemd = read_text(host, "/run/systemd/container");
  if (systemd && !systemd->empty()) return systemd;
  if (auto v = r.variable("container"); !v.empty()) return known(v, "variable container");
  auto group = host.read("/proc/self/cgroup");
  for (auto [word, name] :
       {std::pair("kubepods", "kubernetes"), std::pair("docker", "docker"), std::pair("libpod", "podman"),
        std::pair("lxc", "lxc"), std::pair("enroot", "enroot")})
    if (group && contains(*group, word)) return known<std::string>(name, "/proc/self/cgroup");
  if (!group && group.error().kind != ErrorKind::absent)
    return from_error<std::string>(group.error(), "/proc/self/cgroup");
  if (!certain) return unreadable<std::string>("/.dockerenv", "marks of containers could not be looked for");
  return known<std::string>("none", "/proc/self/cgroup");
}

// All capabilities that this kernel has are in the effective set.
Fact<bool> privileged(const Host& host, const Fact<uint64_t>& effective) {
  if (!effective) return same_trouble<bool>(effective);
  auto last = read_int(host, "/proc/sys/kernel/cap_last_cap");
  if (!last) return same_trouble<bool>(last);
  if (*last < 0 || *last > 62) return malformed<bool>(last.where, "expected 0 to 62");
  uint64_t all = (uint64_t(2) << *last) - 1;
  return known((*effective & all) == all, kStatus);
}

std::vector<std::string> device_nodes(const Host& host) {
  std::vector<std::string> out;
  for (const auto& name : names_in(host, "/dev"))
    if (starts_with(name, "nvidia") || name == "gdrdrv" || name == "kfd") {
      auto info = host.info("/dev/" + name);
      if (info && info->type == FileInfo::Type::other) out.push_back("/dev/" + name);
    }
  for (const char* folder : {"/dev/infiniband", "/dev/nvidia-caps-imex-channels"})
    for (const auto& name : names_in(host, folder)) out.push_back(std::string(folder) + "/" + name);
  return out;
}

}  // namespace

void read_container(const Reading& r, Facts& f) {
  ContainerFacts& c = f.container;
  c.runtime = runtime(r);
  auto status = r.host.read(kStatus);
  auto effective = status_field(status, "CapEff");
  const long long bits = effective ? parse_int("0x" + *effective).value_or(-1) : -1;
  c.cap_effective = bits >= 0   ? known(uint64_t(bits), kStatus)
                    : effective ? malformed<uint64_t>(kStatus, "CapEff is not a hexadecimal number")
                                : same_trouble<uint64_t>(effective);
  c.privileged = privileged(r.host, c.cap_effective);
  auto seccomp = status_field(status, "Seccomp");
  auto mode = seccomp ? parse_int(*seccomp) : std::nullopt;
  c.seccomp = mode      ? known(int(*mode), kStatus)
              : seccomp ? malformed<int>(kStatus, "Seccomp is not a number")
                        : same_trouble<int>(seccomp);
  // Thread 2 is kthreadd in the host's process namespace only.
  auto second = read_text(r.host, "/proc/2/comm");
  c.host_pid = second                          ? known(*second == "kthreadd", "/proc/2/comm")
               : second.known == Known::absent ? known(false, "/proc/2/comm")
                                               : same_trouble<bool>(second);
  c.host_network = absent<bool>("/sys/class/net", "no device holds the default route");
  for (const auto& n : f.netdevs)
    if (n.default_route.value_or(false)) {
      bool is_physical = !n.address.empty() || n.driver.ok() || !n.lower.empty();
      c.host_network = known(is_physical, "/sys/class/net/" + n.name);
    }
  c.host_mount = read_exists(r.host, "/host/etc/os-release");
  c.devices = device_nodes(r.host);
}

}  // namespace ep
