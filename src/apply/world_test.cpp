// Why an option is still not live: each reason from facts that only it has.
#include <gtest/gtest.h>

#include "apply/reboot.h"
#include "facts/facts.h"

namespace ep {
namespace {

Facts host(const std::string& live, const std::string& pending, bool in_image) {
  Facts f;
  ModuleOption o;
  o.name = "NVreg_RegistryDwords";
  o.live = known<std::string>(live, "/proc/driver/nvidia/params");
  if (!pending.empty()) o.pending = known<std::string>(pending, "/etc/modprobe.d/zz.conf:1");
  o.set_in = {"/etc/modprobe.d/epready-nvidia.conf:2", "/etc/modprobe.d/zz.conf:1"};
  f.driver.options = {o};
  f.driver.initramfs_tool = known<std::string>("update-initramfs", "/usr/sbin/update-initramfs");
  f.driver.initramfs_has_nvidia_module = known(in_image, "probe initramfs");
  f.kernel.modules_readable = known(true, "/proc/modules");
  f.kernel.modules = {{"nvidia", known<std::string>("580.95.05", "/sys/module/nvidia/version")}};
  return f;
}
Finding why(const Facts& f) {
  auto all = why_option_not_live(f, "nvidia", "NVreg_RegistryDwords", "PeerMappingOverride=1");
  EXPECT_EQ(all.size(), 1u);
  return all.at(0);
}

TEST(WhyNotLive, StaleInitramfs) {
  Finding f = why(host("", "PeerMappingOverride=1;", true));
  EXPECT_NE(f.cause.find("initramfs"), std::string::npos);
  EXPECT_NE(f.fix.at(0).find("update-initramfs -u"), std::string::npos);
  EXPECT_FALSE(f.next.empty());
}

TEST(WhyNotLive, TheCommandIsOfTheToolThatTheHostHas) {
  Facts f = host("", "PeerMappingOverride=1;", true);
  const std::pair<const char*, const char*> tools[] = {{"update-initramfs", "update-initramfs -u -k all"},
                                                       {"dracut", "dracut --force --regenerate-all"},
                                                       {"mkinitcpio", "mkinitcpio -P"}};
  for (const auto& [name, command] : tools) {
    f.driver.initramfs_tool = known<std::string>(name, "x");
    EXPECT_NE(why(f).fix.at(0).find(command), std::string::npos) << why(f).fix.at(0);
  }
}

TEST(WhyNotLive, ALaterFileWins) {
  Finding f = why(host("PeerMappingOverride=0", "PeerMappingOverride=0", true));
  EXPECT_NE(f.cause.find("/etc/modprobe.d/zz.conf:1 is read last"), std::string::npos) << f.cause;
}

TEST(WhyNotLive, LoadedFromElsewhere) {
  Finding f = why(host("", "PeerMappingOverride=1", false));
  EXPECT_NE(f.cause.find("kernel command line"), std::string::npos);
}

TEST(WhyNotLive, ModuleNotLoaded) {
  Facts f = host("", "PeerMappingOverride=1", true);
  f.kernel.modules.clear();
  EXPECT_NE(why(f).cause.find("not loaded"), std::string::npos);
}

}  // namespace
}  // namespace ep
