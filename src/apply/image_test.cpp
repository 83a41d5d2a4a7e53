// apply --root: whatever a plan does, nothing outside the image is touched, not even where the image's own
// absolute links point to folders that this machine has too; undo gives the image back.
#include <cstdlib>

#include "apply/test_bench.h"
#include "apply/tree.h"
#include "base/digest.h"
#include "host/host.h"

namespace ep {
namespace {

using test::Bench;
using test::slurp;
using test::spill;

class ImageTest : public Bench {
 public:
  /// Folders of the image that are links to absolute paths which exist outside as well.
  void lead_out(const std::string& folder) {
    const std::string outside = dir + "/outside" + folder;
    spill(outside + "/mine", "of the host\n");
    spill(root + outside + "/theirs", "of the image\n");
    std::filesystem::remove_all(root + folder);
    std::filesystem::create_directories(std::filesystem::path(root + folder).parent_path());
    std::filesystem::create_directory_symlink(outside, root + folder);
  }
  ImageTest() {
    lead_out("/etc/modprobe.d");
    lead_out("/etc/security");
    std::filesystem::create_directories(dir + "/outside/opt");
    put("/var/dpkg", "libc6\tinstalled\t, \t\n");
    put("/usr/sbin/update-initramfs", "", 0755);
    put("/boot/initrd.img-6.1", "old");
    tool("dpkg-query", "cat $EP_FAKE_ROOT/var/dpkg");
    tool("dpkg", "exit 0");
    tool("apt-get",
         "case \"$*\" in *' -s '*) echo 'Inst tool (1.0 Debian)';; *install*) printf 'tool\\tinstalled\\t, "
         "\\t\\n' >> "
         "$EP_FAKE_ROOT/var/dpkg;; esac");
    tool("update-initramfs", "cd $EP_FAKE_ROOT/boot && echo new > n && mv n initrd.img-6.1");
    tool("self", "for a; do [ \"$a\" = --output ] && exit 9; done; echo \"# env of $*\"");
    options.self = dir + "/bin/self";
  }
  std::string outside() const {
    std::string out;
    for (auto it = std::filesystem::recursive_directory_iterator(dir + "/outside");
         it != std::filesystem::recursive_directory_iterator(); ++it)
      out += it->path().string() + (it->is_regular_file() ? " " + slurp(it->path()) : "") + "\n";
    return out;
  }
};

/// Actions that run programs on files inside (tar, git, patch, cmake, pip) need a real chroot: apply_root.sh.
TEST_F(ImageTest, NothingOutsideTheRootIsTouchedByAnyKindOfAction) {
  spill(dir + "/payload", "payload");
  spill(dir + "/key.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
  AddAptSource source;
  source.name = "cuda";
  source.uri = "https://developer.example/cuda";
  source.suite = "/";
  source.key_url = "file://" + dir + "/key.asc";
  source.key_sha256 = sha256_hex("-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
  put("/etc/gone", "to be removed");
  plan.steps = {
      step("files", {MakeDir{"made", 0755}, WriteFile{"/opt/written", "w"}, MakeLink{"/opt/link", "written"},
                     RemoveFile{"/etc/gone"}, RunArgv{{"sh", "-c", "echo ran > here"}, "made", {}, 20}}),
      step("limits", {SetLimits{{{"memlock", "unlimited"}}}}),
      step("options",
           {MergeModuleOptions{"nvidia", {{"NVreg_X", "1"}}, "/etc/modprobe.d/epready-nvidia.conf"},
            RefreshInitramfs{}}),
      step("source", {source}),
      step("packages", {InstallPackages{{"tool"}}}),
      step("download", {Fetch{"file://" + dir + "/payload", sha256_hex("payload"), "dl/p"}}),
      step("env",
           {MakeDir{"env", 0755},
            RunSelf{{"env", "--shell", "--lane", "local", "--output", "/opt/epready/env/env.sh"}, 20}}),
      step("boot", {Reboot{}}),
  };
  const std::string before = outside();
  const ApplyReport r = apply();
  for (const auto& s : r.steps)
    EXPECT_EQ(s.state, s.id == "boot" ? StepState::elsewhere : StepState::done) << s.id << ": " << s.reason;
  EXPECT_EQ(outside(), before);
  const std::string inside = root + dir + "/outside";
  EXPECT_EQ(at("/opt/epready/env/env.sh"), "# env of env --shell --lane local --root " + root + "\n");
  EXPECT_EQ(at("/opt/epready/made/here"), "ran\n");
  EXPECT_EQ(at("/opt/epready/dl/p"), "payload");
  EXPECT_NE(slurp(inside + "/etc/modprobe.d/epready-nvidia.conf"), "");
  EXPECT_NE(slurp(inside + "/etc/security/limits.d/99-epready.conf"), "");

  const std::string boot = root + "/boot/initrd.img-6.1";  // built anew is no change that undo takes back
  const UndoReport back = undo();
  for (const auto& i : back.items) EXPECT_NE(i.state, UndoItem::State::failed) << i.what << ": " << i.reason;
  EXPECT_EQ(outside(), before);
  EXPECT_FALSE(std::filesystem::exists(root + "/opt/epready"));
  EXPECT_EQ(slurp(inside + "/etc/security/theirs"), "of the image\n");
  EXPECT_EQ(at("/etc/gone"), "to be removed");
  spill(boot, "old");
}

/// The prefix itself behind a link that leads out: journal, lock, logs, downloads and files stay in the
/// image. (Programs inside need a real chroot for that; test/cli/apply_root.sh has one.)
TEST_F(ImageTest, APrefixBehindAnAbsoluteLinkStaysInside) {
  lead_out("/opt");
  spill(dir + "/payload", "payload");
  plan.steps = {
      step("files", {WriteFile{"/opt/epready/w", "w"}, MakeLink{"/opt/epready/l", "w"},
                     Fetch{"file://" + dir + "/payload", sha256_hex("payload"), "dl/p"}}),
      step("env", {RunSelf{{"env", "--lane", "local", "--output", "/opt/epready/env/env.sh"}, 20}})};
  const std::string before = outside();
  const ApplyReport r = apply();
  for (const auto& s : r.steps) EXPECT_EQ(s.state, StepState::done) << s.id << ": " << s.reason;
  EXPECT_EQ(outside(), before);
  const std::string inside = root + dir + "/outside/opt/epready";
  EXPECT_EQ(slurp(inside + "/dl/p"), "payload");
  EXPECT_NE(slurp(inside + "/env/env.sh"), "");
  EXPECT_NE(slurp(inside + "/state/journal.jsonl"), "");
  undo();
  EXPECT_EQ(outside(), before);
  EXPECT_FALSE(std::filesystem::exists(inside));
}

/// What a running kernel must prove or do is left to the machine that boots the image; the commands that are
/// named go to the image.
TEST_F(ImageTest, WhatOnlyARunningMachineCanDoIsLeftToIt) {
  Step load = step("peermem", {RunArgv{{"sh", "-c", "echo loaded > " + dir + "/outside/module"}, "", {}, 5}});
  load.after = {{"nic-reaches-gpu-memory", {}}};
  Step env = step("env", {RunSelf{{"env", "--lane", "v1", "--output", "/opt/epready/env/env.sh"}, 5}});
  Step bad = step("bad", {RunArgv{{"true"}, "", {}, 5}});
  bad.risk = Risk::packages;
  plan.steps = {load, env, bad};
  options.yes = {};
  const ApplyReport r = apply();
  EXPECT_EQ(r.steps[0].state, StepState::elsewhere);
  EXPECT_EQ(r.steps[1].state, StepState::elsewhere);
  EXPECT_EQ(r.steps[1].next, "on the booted host: epready apply --resume");
  EXPECT_EQ(r.steps[2].next, "epready apply --resume --root " + root + " --yes=packages");
  EXPECT_FALSE(std::filesystem::exists(dir + "/outside/module"));
}

TEST_F(ImageTest, PathsForProgramsOutsideStayInsideToo) {
  auto tree = Tree::open(root);
  ASSERT_TRUE(tree);
  lead_out("/opt");
  EXPECT_EQ(tree->real("/opt/x"), root + dir + "/outside/opt/x");
  std::filesystem::create_symlink("../../../../../../../../etc/passwd", root + "/climb");
  EXPECT_EQ(tree->real("/climb"), root + "/etc/passwd");
  std::filesystem::create_symlink("/loop2", root + "/loop1");
  std::filesystem::create_symlink("/loop1", root + "/loop2");
  EXPECT_EQ(tree->real("/loop1/x"), root + "/proc/link-loop");
}

/// Packages of an image are known from its own database, without running anything in it.
TEST_F(ImageTest, ThePackageDatabaseOfAnImageIsRead) {
  put("/var/lib/dpkg/status",
      "Package: git\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:2.39.5-0+deb12u3\n"
      "Description: x\n Version: not this\n\nPackage: cmake\nStatus: deinstall ok config-files\nVersion: "
      "3.25\n\n"
      "Package: zlib1g\nStatus: install ok installed\nVersion: 1\n");
  const auto p = live_host(root)->probe("dpkg");
  EXPECT_TRUE(p.found);
  EXPECT_EQ(p.out, "git\t1:2.39.5-0+deb12u3\tinstall ok installed\ncmake\t3.25\tdeinstall ok config-files\n");
  auto world = live_world("/opt/epready", root);
  world->refresh();
  EXPECT_EQ(world->holds({"package", {"git"}}).verdict, Verdict::pass);
  EXPECT_EQ(world->holds({"package", {"cmake"}}).verdict, Verdict::fail);
  std::filesystem::remove(root + "/var/lib/dpkg/status");
  EXPECT_FALSE(live_host(root)->probe("dpkg").found);
  EXPECT_NE(live_host(root)->probe("dpkg").why, "");
}

}  // namespace
}  // namespace ep
