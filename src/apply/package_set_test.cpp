#include "apply/package_set.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace ep {
namespace {

std::vector<InstalledPackage> host() {
  return parse_installed(
      "libc6:amd64\tinstalled\t, \t\n"
      "cuda-toolkit-12-9\tinstalled\tcuda-nvcc-12-9 (>= 12.9.86), libcublas-12-9 | libcublas, \t\n"
      "cuda-nvcc-12-9\tinstalled\tlibc6 (>= 2.34), \t\n"
      "libcublas-12-9\tinstalled\tlibc6, \tlibcublas (= 12)\n"
      "old\tdeinstall\tcuda-nvcc-12-9, \t\n"
      "mine\tinstalled\tlibcublas, \t\n");
}

TEST(PackageSet, TakesAllThatNobodyElseNeeds) {
  auto r = packages_to_remove({"cuda-toolkit-12-9", "cuda-nvcc-12-9"}, host());
  EXPECT_EQ(r.remove, (std::vector<std::string>{"cuda-nvcc-12-9", "cuda-toolkit-12-9"}));
  EXPECT_TRUE(r.needed.empty());
}

TEST(PackageSet, KeepsWhatAnotherPackageNeedsByNow) {
  auto r = packages_to_remove({"cuda-toolkit-12-9", "cuda-nvcc-12-9", "libcublas-12-9"}, host());
  EXPECT_EQ(r.remove, (std::vector<std::string>{"cuda-nvcc-12-9", "cuda-toolkit-12-9"}));
  EXPECT_EQ(r.needed.at("libcublas-12-9"), "mine");
}

TEST(PackageSet, PackagesThatAreGoneAreNotNamed) {
  EXPECT_TRUE(packages_to_remove({"never-there"}, host()).remove.empty());
}

TEST(PackageSet, ReadsAptSimulation) {
  std::string text =
      "Reading package lists...\nInst cmake (3.25 Debian:12 [amd64])\nConf cmake\nRemv foo [1.0]\nPurg bar "
      "[2]\n";
  EXPECT_EQ(simulated_installs(text), std::vector<std::string>{"cmake"});
  EXPECT_EQ(simulated_removals(text), (std::vector<std::string>{"bar", "foo"}));
}

TEST(PackageSet, WhatStaysKeepsItsNeeds) {
  rc::check("after removal every package that stays has its needs met if it had before", [] {
    int n = *rc::gen::inRange(1, 9);
    std::vector<InstalledPackage> installed;
    std::set<std::string> ours;
    for (int i = 0; i < n; ++i) {
      InstalledPackage p;
      p.name = "p" + std::to_string(i);
      for (int k = *rc::gen::inRange(0, 3); k > 0; --k) {
        std::vector<std::string> any;
        for (int a = *rc::gen::inRange(1, 3); a > 0; --a)
          any.push_back("p" + std::to_string(*rc::gen::inRange(0, n)));
        p.needs.push_back(any);
      }
      if (*rc::gen::arbitrary<bool>()) ours.insert(p.name);
      installed.push_back(p);
    }
    auto r = packages_to_remove(ours, installed);
    std::set<std::string> gone(r.remove.begin(), r.remove.end());
    for (const auto& name : gone) RC_ASSERT(ours.count(name) == 1u);
    for (const auto& p : installed) {
      if (gone.count(p.name)) continue;
      for (const auto& any : p.needs) {
        bool met = false;
        for (const auto& name : any) met |= !gone.count(name);
        RC_ASSERT(met);
      }
    }
  });
}

}  // namespace
}  // namespace ep
