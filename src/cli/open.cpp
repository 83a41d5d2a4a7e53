// Which host a command looks at.
#include "cli/command.h"
#include "host/host.h"

namespace ep {

Result<std::unique_ptr<Host>> Context::open() const {
  return open_host(from);
}

}  // namespace ep
