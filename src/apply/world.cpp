// The live World: what the executor asks, answered from the host's facts, read anew when something has
// changed.
#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "apply/actions.h"
#include "apply/apply.h"
#include "apply/reboot.h"
#include "base/text.h"
#include "facts/facts.h"
#include "host/host.h"
#include "plan/fact_scope.h"
#include "plan/predicates.h"

namespace ep {

// A wanted option that is not live after its reboot: which of the known reasons it is, by what the files, the
// image and the loaded module say.
std::vector<Finding> why_option_not_live(const Facts& facts, const std::string& module,
                                         const std::string& option, const std::string& value) {
  const ModuleOption* o = nullptr;
  for (const auto& each : facts.driver.options)
    if (each.name == option) o = &each;
  Finding f;
  f.code = "driver.option-not-live";
  f.severity = Severity::fail;
  f.title = fmt::format("{} {} is not live after the reboot", module, option);
  if (o && o->live.ok()) f.evidence.push_back({o->live.where, 0, option + " is \"" + *o->live + "\""});
  if (o)
    for (const auto& place : o->set_in) f.evidence.push_back({place, 0, "sets " + option});
  bool pending = all_hold({{"option-pending", {module, option, value}}}, facts).verdict == Verdict::pass;
  const auto& image = facts.driver.initramfs_has_nvidia_module;
  std::string tool = facts.driver.initramfs_tool.value_or("none");
  std::string refresh;
  for (const auto& t : initramfs_tools())
    if (refresh.empty() || t.name == tool) refresh = join(t.argv, " ");
  if (!facts.kernel.module(module) && facts.kernel.modules_readable.value_or(false)) {
    f.cause = "The module is not loaded at all.";
    f.fix = {"modprobe " + module + "; dmesg | tail"};
  } else if (!pending) {
    std::string last = o && !o->set_in.empty() ? o->set_in.back() : "no file";
    f.cause = fmt::format("The files do not ask for it: {} is read last and wins.", last);
    f.fix = {"epready apply --resume --yes=kernel,reboot"};
  } else if (image.ok() && *image) {
    f.cause =
        "The files ask for it, but the module is loaded from the initramfs, which was built before they "
        "changed.";
    HostSituation who;
    who.is_root = facts.user.is_root.value_or(false);
    who.has_sudo = facts.user.has_sudo.value_or(true);
    f.fix = {as_root(refresh, who), as_root("reboot", who)};
    f.evidence.push_back({image.where, 0, "holds the module " + module});
  } else {
    f.cause =
        "The files ask for it, and the initramfs does not hold the module: it was loaded with other options, "
        "by the "
        "kernel command line, an install line or a script.";
    f.fix = {"modprobe -c | grep '" + module + "'", "cat /proc/cmdline"};
  }
  f.next = f.fix.front();
  return {f};
}

namespace {

// A host whose initramfs is not looked into. No predicate asks for that, it takes longer than everything else
// together (a second or more), and facts are read anew after every step.
class WithoutImage final : public Host {
 public:
  explicit WithoutImage(const Host& inner) : inner_(inner) {}
  HostKind kind() const override { return inner_.kind(); }
  std::string name() const override { return inner_.name(); }
  Result<std::string> read(const std::string& path, size_t limit) const override {
    return inner_.read(path, limit);
  }
  Result<std::string> read_at(const std::string& path, uint64_t offset, size_t size) const override {
    return inner_.read_at(path, offset, size);
  }
  Result<std::vector<std::string>> list(const std::string& path) const override { return inner_.list(path); }
  Result<std::string> link(const std::string& path) const override { return inner_.link(path); }
  Result<FileInfo> info(const std::string& path) const override { return inner_.info(path); }
  Result<SpaceInfo> space(const std::string& path) const override { return inner_.space(path); }
  ProbeResult probe(std::string_view probe_name) const override {
    if (probe_name != "initramfs") return inner_.probe(probe_name);
    ProbeResult p;
    p.why = "not looked into while steps are judged";
    return p;
  }
  std::map<std::string, std::string> environment() const override { return inner_.environment(); }

 private:
  const Host& inner_;
};

class LiveWorld : public World {
 public:
  LiveWorld(std::string prefix, std::string root)
      : prefix_(std::move(prefix)), root_(std::move(root)), host_(live_host(root_)), quick_(*host_) {}

  HostSituation situation() override {
    const Facts& f = facts();
    HostSituation s;
    s.boot_id = f.os.boot_id.value_or("");
    s.host_name = f.os.hostname.value_or("");
    s.is_root = geteuid() == 0;
    s.has_sudo = f.user.has_sudo.value_or(true);
    s.has_systemd = root_ == "/" && host_->exists("/run/systemd/system");
    // An image is no container, wherever the one who works on it is.
    if (root_ == "/" && f.container.runtime.ok() && *f.container.runtime != "none")
      s.container = *f.container.runtime;
    return s;
  }
  void refresh() override { facts_.reset(); }
  Outcome holds(const Predicate& p) override { return ep::holds(p, facts()); }

  std::map<std::string, std::string> facts_now(const Plan& plan) override {
    std::map<std::string, std::string> out;
    Scope scope = fact_scope(facts());
    for (const auto& [name, unused] : plan.facts_used) {
      if (root_ != "/" && !starts_with(name, "os.")) continue;  // an image shows no hardware
      auto it = scope.find(name);
      if (it != scope.end() && it->second.known) out[name] = it->second.present ? it->second.text : "absent";
    }
    return out;
  }

  std::vector<Finding> why_not_live(const Step& step) override {
    std::vector<Finding> out;
    for (const auto& p : step.after) {
      if (p.name != "option-live" || p.args.size() < 3 || ep::holds(p, facts()).verdict == Verdict::pass)
        continue;
      for (auto& f : why_option_not_live(read_facts(*host_, prefix_), p.args[0], p.args[1], p.args[2]))
        out.push_back(std::move(f));
    }
    return out;
  }

 private:
  const Facts& facts() {
    if (!facts_) facts_ = read_facts(quick_, prefix_);
    return *facts_;
  }
  std::string prefix_, root_;
  std::unique_ptr<Host> host_;
  WithoutImage quick_;
  std::optional<Facts> facts_;
};

}  // namespace

std::unique_ptr<World> live_world(std::string prefix, std::string root) {
  return std::make_unique<LiveWorld>(std::move(prefix), std::move(root));
}

}  // namespace ep
