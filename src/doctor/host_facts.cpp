#include "doctor/host_facts.h"

#include <algorithm>

#include "base/text.h"
#include "doctor/host_notes.h"
#include "doctor/text_facts.h"

namespace ep {

namespace {

constexpr int kCapNetRaw = 13, kCapIpcLock = 14, kCapSysRawio = 17;  // linux/capability.h

class Machine : HostNotes {
 public:
  using HostNotes::HostNotes;

  void system() {
    text("os.id", f_.os.id);
    text("os.version", f_.os.version_id);
    text("arch", f_.os.architecture);
    text("kernel.version", f_.os.kernel_release);
    text("cloud", f_.platform.cloud);
    text("machine_type", f_.platform.machine_type);
    text("hostname", f_.os.hostname);
    for (const Tool& t : f_.tools)
      if (t.name == "ibstat") {
        if (t.path.ok()) flag("tool.ibstat", true, *t.path);
        if (t.path.known == Known::absent) flag("tool.ibstat", false, t.path.where);
      }
  }

  void limits() {
    if (const auto& m = f_.limits.memlock; m.ok())
      o_.add("limits.memlock", bytes(*m), {m.where, 0, *m}, Trust::running);
    number("limits.shm_bytes", f_.limits.shm_bytes);
    number("limits.nofile", f_.limits.nofile);
    // NCCL raises the soft limit itself: the hard one is what a run has.
    number("limits.nofile_hard", f_.limits.nofile_hard);
    const LimitFacts::Service* least = nullptr;
    for (const auto& s : f_.limits.services)
      if (*s.memlock != "unlimited" &&
          (!least || parse_int(*s.memlock).value_or(0) < parse_int(*least->memlock).value_or(0)))
        least = &s;
    if (least)
      o_.add("limits.service_memlock", *least->memlock, {least->unit, 0, "LimitMEMLOCK=" + *least->memlock},
             Trust::running);
  }

  void container() {
    const ContainerFacts& c = f_.container;
    text("container", c.runtime);
    flag("container.privileged", c.privileged);
    flag("container.host_network", c.host_network);
    if (!c.runtime.ok() || *c.runtime == "none") return;
    bool infiniband = false, gdrdrv = false;
    for (const auto& d : c.devices) {
      infiniband |= starts_with(d, "/dev/infiniband/uverbs");
      gdrdrv |= d == "/dev/gdrdrv";
    }
    flag("container.infiniband", infiniband, "/dev/infiniband");
    flag("container.gdrdrv", gdrdrv, "/dev/gdrdrv");
    if (!c.cap_effective.ok()) return;
    std::vector<std::string> lacks;
    for (auto [bit, name] :
         {std::pair{kCapIpcLock, "IPC_LOCK"}, {kCapNetRaw, "NET_RAW"}, {kCapSysRawio, "SYS_RAWIO"}})
      if (!(*c.cap_effective >> bit & 1)) lacks.emplace_back(name);
    flag("container.rdma_caps", lacks.empty(), c.cap_effective.where,
         lacks.empty() ? "" : "lacks " + join(lacks, ", "));
  }

 private:
  static std::string bytes(const std::string& limit) {
    return limit == "unlimited" ? "18446744073709551615" : limit;
  }
};

}  // namespace

void observe_host(const Facts& facts, Observed& observed) {
  observed.environment_known = facts.host_kind != "paste";
  for (const auto& [name, value] : facts.environment)
    observed.add("env." + name, value, {"environment", 0, name + "=" + value}, Trust::running);
  const Topology topology = read_topology(facts);
  Machine host(facts, observed);
  host.system();
  observe_driver(facts, observed);
  observe_kernel(facts, observed);
  observe_gpus(facts, observed);
  observe_settings(facts, observed);  // before the NICs: an index is judged wherever it was written
  observe_nics(facts, topology, observed);
  observe_software(facts, observed);
  host.limits();
  host.container();
  derive_facts(observed);
}

}  // namespace ep
