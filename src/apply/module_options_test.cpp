#include "apply/module_options.h"

#include <gtest/gtest.h>

namespace ep {
namespace {

const std::string kOwned = "/etc/modprobe.d/epready-nvidia.conf";

TEST(ModuleOptions, ReadsLinesAsKmodDoes) {
  ModprobeFile f{"/etc/modprobe.d/a.conf",
                 "# options nvidia A=0\n"
                 "options nvidia A=1 B=\"x y\"\n"
                 "options nvidia \\\n  C=3\n"
                 "alias x nvidia\n"
                 "options nvidia-uvm D=1\n"};
  auto lines = option_lines(f);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].line, 2);
  EXPECT_EQ(lines[0].settings[1], (std::pair<std::string, std::string>{"B", "x y"}));
  EXPECT_EQ(lines[1].line, 3);
  EXPECT_EQ(lines[1].num_lines, 2);
  EXPECT_EQ(lines[1].settings[0].first, "C");
  EXPECT_EQ(lines[2].module, "nvidia_uvm");
}

TEST(ModuleOptions, OrderIsByBaseNameAndEtcHidesLib) {
  auto order = reading_order({{"/lib/modprobe.d/b.conf", "1"},
                              {"/etc/modprobe.d/c.conf", "2"},
                              {"/etc/modprobe.d/b.conf", "3"},
                              {"/usr/lib/modprobe.d/a.conf", "4"},
                              {"/etc/modprobe.d/readme.txt", "5"}});
  ASSERT_EQ(order.size(), 3u);
  EXPECT_EQ(order[0].text, "4");
  EXPECT_EQ(order[1].text, "3");
  EXPECT_EQ(order[2].text, "2");
}

TEST(ModuleOptions, RegistryKeysOfOthersAreKept) {
  EXPECT_EQ(merge_dword_lists("A=1;PeerMappingOverride=0", "PeerMappingOverride=1;"),
            "A=1;PeerMappingOverride=1");
  EXPECT_EQ(merge_dword_lists("", "PeerMappingOverride=1"), "PeerMappingOverride=1");
  EXPECT_EQ(merge_dword_lists("PeerMappingOverride=0x1;", ""), "PeerMappingOverride=0x1");
}

TEST(ModuleOptions, FreshHostGetsOneLine) {
  auto m = merge_module_options(
      "nvidia", {{"NVreg_EnableStreamMemOPs", "1"}, {"NVreg_RegistryDwords", "PeerMappingOverride=1;"}},
      kOwned, {});
  EXPECT_TRUE(m.conflicts.empty());
  EXPECT_NE(
      m.owned_text.find(
          "options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords=\"PeerMappingOverride=1;\"\n"),
      std::string::npos)
      << m.owned_text;
}

TEST(ModuleOptions, TwoFilesThatSetItAreNamedAndMerged) {
  auto order = reading_order(
      {{"/etc/modprobe.d/nvidia.conf",
        "options nvidia NVreg_RegistryDwords=\"Foo=2;PeerMappingOverride=0\"\n"},
       {"/etc/modprobe.d/10-old.conf", "options nvidia NVreg_EnableStreamMemOPs=0 NVreg_X=7\n"}});
  auto m = merge_module_options(
      "nvidia", {{"NVreg_EnableStreamMemOPs", "1"}, {"NVreg_RegistryDwords", "PeerMappingOverride=1;"}},
      kOwned, order);
  ASSERT_EQ(m.conflicts.size(), 2u);
  EXPECT_EQ(m.conflicts[0].path, "/etc/modprobe.d/10-old.conf");
  EXPECT_FALSE(m.conflicts[0].last_wins);
  EXPECT_EQ(m.conflicts[1].path, "/etc/modprobe.d/nvidia.conf");
  EXPECT_TRUE(m.conflicts[1].last_wins);
  EXPECT_NE(m.owned_text.find("\"Foo=2;PeerMappingOverride=1\""), std::string::npos) << m.owned_text;
}

TEST(ModuleOptions, DisablingKeepsTheLineAsCommentAndItsOtherOptions) {
  std::string text = "options nvidia NVreg_EnableStreamMemOPs=0 \\\n NVreg_X=7\nalias a b";
  std::string after = disable_options(text, "nvidia", {"NVreg_EnableStreamMemOPs"}, kOwned);
  EXPECT_EQ(after,
            "# epready: set in /etc/modprobe.d/epready-nvidia.conf now; this line was:\n"
            "# options nvidia NVreg_EnableStreamMemOPs=0 \n"
            "#  NVreg_X=7\n"
            "options nvidia NVreg_X=7\n"
            "alias a b");
  auto left = option_lines({"/etc/modprobe.d/10-old.conf", after});
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].settings[0].first, "NVreg_X");
}

TEST(ModuleOptions, TwoOfOurOptionsInOneLineAreBothTakenOut) {
  std::string text =
      "options nvidia A=0 B=0\noptions nvidia B=1 C=2\noptions nvidia-drm B=5\noptions nvidia A=7";
  EXPECT_EQ(disable_options(text, "nvidia", {"A", "B"}, kOwned),
            "# epready: set in /etc/modprobe.d/epready-nvidia.conf now; this line was:\n"
            "# options nvidia A=0 B=0\n"
            "# epready: set in /etc/modprobe.d/epready-nvidia.conf now; this line was:\n"
            "# options nvidia B=1 C=2\n"
            "options nvidia C=2\n"
            "options nvidia-drm B=5\n"
            "# epready: set in /etc/modprobe.d/epready-nvidia.conf now; this line was:\n"
            "# options nvidia A=7");
}

TEST(ModuleOptions, SecondMergeKeepsWhatTheFirstTookOver) {
  std::vector<ModprobeFile> first = {
      {"/etc/modprobe.d/10-old.conf", "options nvidia NVreg_RegistryDwords=Foo=2\n"}};
  std::map<std::string, std::string> wanted = {{"NVreg_RegistryDwords", "PeerMappingOverride=1"}};
  auto m = merge_module_options("nvidia", wanted, kOwned, first);
  first[0].text = disable_options(first[0].text, "nvidia", {"NVreg_RegistryDwords"}, kOwned);
  auto again =
      merge_module_options("nvidia", wanted, kOwned, reading_order({first[0], {kOwned, m.owned_text}}));
  EXPECT_TRUE(again.conflicts.empty());
  EXPECT_EQ(again.owned_text, m.owned_text);
}

TEST(ModuleOptions, OneLineThatSetsItTwiceIsTwoConflicts) {
  std::vector<ModprobeFile> f = {{"/etc/modprobe.d/a.conf", "options nvidia A=1 A=2\n"}};
  auto m = merge_module_options("nvidia", {{"A", "3"}}, kOwned, f);
  EXPECT_EQ(m.conflicts.size(), 2u);
}

}  // namespace
}  // namespace ep
