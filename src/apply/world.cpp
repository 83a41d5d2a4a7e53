// The live World: what the executor asks, answered from the host's facts.
#include <unistd.h>

#include "apply/apply.h"
#include "base/text.h"
#include "host/host.h"

namespace ep {
namespace {

class LiveWorld : public World {
 public:
  explicit LiveWorld(std::string root) : root_(std::move(root)), host_(live_host(root_)) {}

  HostSituation situation() override {
    HostSituation s;
    auto boot = host_->read("/proc/sys/kernel/random/boot_id");
    if (boot) s.boot_id = std::string(trim(*boot));
    char name[256] = {};
    if (gethostname(name, sizeof name - 1) == 0) s.host_name = name;
    s.is_root = geteuid() == 0;
    s.has_systemd = root_ == "/" && host_->exists("/run/systemd/system");
    return s;
  }
  void refresh() override {}
  Outcome holds(const Predicate& p) override {
    return {Verdict::unknown, "predicate " + p.name + " is not known"};
  }
  std::map<std::string, std::string> facts_now(const Plan&) override { return {}; }
  std::vector<Finding> why_not_live(const Step&) override { return {}; }

 private:
  std::string root_;
  std::unique_ptr<Host> host_;
};

}  // namespace

std::unique_ptr<World> live_world(std::string root) {
  return std::make_unique<LiveWorld>(std::move(root));
}

}  // namespace ep
