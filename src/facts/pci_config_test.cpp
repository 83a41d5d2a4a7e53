// Configuration space from bytes and from lspci -vvv; what was not read is never "off".
#include "facts/pci_config.h"

#include <gtest/gtest.h>

#include "facts/text_facts.h"
#include "host/paste.h"

namespace ep {
namespace {

// A PCI Express function: Express capability at 0x40 behind a power-management one at 0x50, ACS at 0x148
// behind AER at 0x100.
std::string config(unsigned port, unsigned device_control, int acs_control, size_t size = 4096) {
  std::string b(4096, '\0');
  const auto put = [&](size_t at, unsigned v, int bytes) {
    for (int i = 0; i < bytes; ++i) b[at + size_t(i)] = char(v >> (8 * i) & 0xff);
  };
  put(0, 0x102915b3, 4);
  put(6, 0x0010, 2);
  put(0x34, 0x50, 1);
  put(0x50, 0x4001, 2);
  put(0x40, 0x0010, 2);
  put(0x42, port << 4 | 2, 2);
  put(0x48, device_control, 2);
  put(0x100, 0x14810001, 4);
  if (acs_control >= 0) {
    put(0x148, 0x0001000d, 4);
    put(0x14e, unsigned(acs_control), 2);
  }
  return b.substr(0, size);
}

PciDevice read(const std::string& bytes) {
  PciDevice d;
  read_pci_config(bytes, "config", d);
  return d;
}

TEST(PciConfig, DownstreamPortThatRedirects) {
  const PciDevice d = read(config(6, 0x5937, 0x001d));
  EXPECT_EQ(d.port_type.value_or(""), "downstream");
  EXPECT_TRUE(d.acs_redirect.ok() && *d.acs_redirect);
  EXPECT_TRUE(d.relaxed_ordering.ok() && *d.relaxed_ordering);
  EXPECT_EQ(d.max_read_request.value_or(0), 4096);
}

TEST(PciConfig, OffIsOffAndNoCapabilityIsAbsent) {
  const PciDevice off = read(config(6, 0x2827, 0x0001));  // source validation alone redirects nothing
  EXPECT_TRUE(off.acs_redirect.ok() && !*off.acs_redirect);
  EXPECT_TRUE(off.relaxed_ordering.ok() && !*off.relaxed_ordering);
  EXPECT_EQ(off.max_read_request.value_or(0), 512);
  EXPECT_EQ(read(config(4, 0, -1)).acs_redirect.known, Known::absent);
  EXPECT_EQ(read(config(4, 0, -1)).port_type.value_or(""), "root");
}

TEST(PciConfig, WithoutRootNothingIsKnown) {
  const PciDevice d = read(config(6, 0x5937, 0x001d, 64));
  EXPECT_EQ(d.acs_redirect.known, Known::unreadable);
  EXPECT_EQ(d.port_type.known, Known::unreadable);
  EXPECT_EQ(d.relaxed_ordering.known, Known::unreadable);
  EXPECT_EQ(d.max_read_request.known, Known::unreadable);
  const PciDevice standard = read(config(6, 0x5937, 0x001d, 256));
  EXPECT_EQ(standard.acs_redirect.known, Known::unreadable);
  EXPECT_TRUE(standard.relaxed_ordering.ok());
}

TEST(PciConfig, DamagedBytesEnd) {
  EXPECT_EQ(read(std::string(4096, '\xff')).port_type.known, Known::malformed);
  std::string loop = config(6, 0, -1);
  loop[0x40] = 0x05, loop[0x41] = 0x50;  // two capabilities that point at each other
  EXPECT_EQ(read(loop).port_type.known, Known::absent);
  std::string extended = config(6, 0, -1);
  extended[0x102] = char(0x01), extended[0x103] = char(0x10);  // next is itself
  EXPECT_EQ(read(extended).acs_redirect.known, Known::absent);
  for (size_t n = 0; n < 400; ++n) (void)read(config(6, 0, 0x1d, n));
}

PciDevice at(const std::string& address, std::vector<std::string> path, int vendor, int cls) {
  PciDevice d;
  d.address = address;
  d.path = std::move(path);
  d.vendor = known(vendor, "test");
  d.device_class = known(cls, "test");
  return d;
}
PciDevice bridge(const std::string& address, const std::string& type, Fact<bool> redirect) {
  PciDevice d = at(address, {}, 0x1000, 0x060400);
  d.port_type = known(type, "test");
  d.acs_redirect = std::move(redirect);
  return d;
}

// One switch with a GPU and a NIC, one GPU alone at a root port.
std::vector<PciDevice> machine(const Fact<bool>& at_gpu, const Fact<bool>& at_root) {
  const std::vector<std::string> up = {"pci0000:16", "0000:16:01.0", "0000:17:00.0"};
  auto below = [&](const std::string& port) {
    auto path = up;
    path.push_back(port);
    return path;
  };
  return {bridge("0000:16:01.0", "root", at_root),
          bridge("0000:17:00.0", "upstream", absent<bool>("test")),
          bridge("0000:18:00.0", "downstream", at_gpu),
          bridge("0000:18:01.0", "downstream", known(false, "test")),
          at("0000:19:00.0", below("0000:18:00.0"), 0x10de, 0x030200),
          at("0000:1a:00.0", below("0000:18:01.0"), 0x15b3, 0x020700),
          bridge("0000:40:01.0", "root", at_root),
          at("0000:41:00.0", {"pci0000:40", "0000:40:01.0"}, 0x10de, 0x030200)};
}

TEST(AcsRedirect, OnlyASwitchBetweenTwoOfThemCounts) {
  std::vector<std::string> bridges;
  auto on = acs_redirect_of(machine(known(true, "t"), known(false, "t")), bridges);
  EXPECT_TRUE(on.ok() && *on);
  EXPECT_EQ(bridges, std::vector<std::string>{"0000:18:00.0"});
  // Root ports send everything up anyway.
  auto off = acs_redirect_of(machine(known(false, "t"), known(true, "t")), bridges);
  EXPECT_TRUE(off.ok() && !*off);
  EXPECT_TRUE(bridges.empty());
  auto dark = acs_redirect_of(machine(unreadable<bool>("t", "not root"), known(true, "t")), bridges);
  EXPECT_EQ(dark.known, Known::unreadable);
  auto all = machine(known(true, "t"), known(true, "t"));
  all.erase(all.begin() + 5);  // no NIC below the switch: nothing for it to redirect
  EXPECT_EQ(acs_redirect_of(all, bridges).known, Known::absent);
}

Facts pasted(const std::string& text) {
  auto hosts = take_apart({{"lspci.txt", text}});
  Facts f;
  add_pasted_facts(hosts.at(0), f);
  return f;
}

std::string lspci(const std::string& control, const std::string& access = "") {
  const auto caps = [&](const std::string& type) {
    return access.empty() ? "\tCapabilities: [68] Express (v2) " + type +
                                ", MSI 00\n"
                                "\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq-\n"
                                "\t\t\tRlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop+\n"
                                "\t\t\tMaxPayload 256 bytes, MaxReadReq 512 bytes\n"
                                "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
                                "\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)\n"
                          : "\tCapabilities: " + access + "\n";
  };
  const std::string acs = access.empty() ? "\tCapabilities: [170 v1] Access Control Services\n"
                                           "\t\tACSCtl:\tSrcValid+ TransBlk- " +
                                               control + "\n"
                                         : "";
  return "16:01.0 PCI bridge: Intel Corporation Device 352a (rev 04)\n"
         "\tBus: primary=16, secondary=17, subordinate=1a, sec-latency=0\n" +
         caps("Root Port (Slot+)") +
         "\n17:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)\n"
         "\tBus: primary=17, secondary=18, subordinate=1a, sec-latency=0\n" +
         caps("Upstream Port") +
         "\n18:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)\n"
         "\tBus: primary=18, secondary=19, subordinate=19, sec-latency=0\n" +
         caps("Downstream Port (Slot-)") + acs +
         "\n18:01.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)\n"
         "\tBus: primary=18, secondary=1a, subordinate=1a, sec-latency=0\n" +
         caps("Downstream Port (Slot-)") +
         "\n19:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n" + caps("Endpoint") +
         "\n1a:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n" +
         caps("Endpoint");
}

TEST(AcsRedirect, ReadFromLspci) {
  const Facts on = pasted(lspci("ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-"));
  ASSERT_TRUE(on.kernel.acs_redirect.ok()) << on.kernel.acs_redirect.why;
  EXPECT_TRUE(*on.kernel.acs_redirect);
  EXPECT_EQ(on.kernel.acs_bridges, std::vector<std::string>{"0000:18:00.0"});
  const Facts off = pasted(lspci("ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-"));
  EXPECT_TRUE(off.kernel.acs_redirect.ok() && !*off.kernel.acs_redirect);
  const auto nic =
      std::find_if(off.pci.begin(), off.pci.end(), [](auto& d) { return d.address == "0000:1a:00.0"; });
  ASSERT_NE(nic, off.pci.end());
  EXPECT_EQ(nic->link_speed_gts.value_or(0), 16);
  EXPECT_EQ(nic->link_speed_max_gts.value_or(0), 32);
  EXPECT_EQ(nic->link_width.value_or(0), 8);
  EXPECT_EQ(nic->max_read_request.value_or(0), 512);
  const Facts user = pasted(lspci("", "<access denied>"));
  EXPECT_EQ(user.kernel.acs_redirect.known, Known::unreadable) << user.kernel.acs_redirect.why;
}

}  // namespace
}  // namespace ep
