// Which host a command looks at, and its facts whole or not at all.
#include "cli/command.h"
#include "facts/facts.h"
#include "host/host.h"
#include "host/probes.h"

namespace ep {

Result<std::unique_ptr<Host>> Context::open() const {
  set_probe_interrupt(&interrupted());
  return open_host(from);
}

Result<Facts> Context::read(const Host& host, const std::string& prefix) const {
  Facts facts = read_facts(host, prefix);
  if (interrupted()) return fail(ErrorKind::interrupted, "stopped while reading facts");
  return facts;
}

}  // namespace ep
