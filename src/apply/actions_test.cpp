// Actions against stand-in apt-get, curl and the real git, tar, cmake. Each case runs through apply_plan, as
// in life.
#include "apply/actions.h"

#include <cstdlib>

#include "apply/test_bench.h"
#include "base/digest.h"

namespace ep {
namespace {

using test::Bench;
using test::slurp;
using test::spill;

class ActionsTest : public Bench {
 public:
  /// Runs one step; returns its result.
  StepResult one(std::vector<Action> actions) {
    plan.steps = {step("it", std::move(actions))};
    return apply().steps.at(0);
  }
  std::string run(const std::string& command) {
    std::string out = dir + "/out";
    int rc = std::system(("(" + command + ") > " + out + " 2>&1").c_str());
    EXPECT_EQ(rc, 0) << command << "\n" << slurp(out);
    return std::string(trim(slurp(out)));
  }
  void on_this_host() {  // real programs need real paths
    options.root = "/";
    plan.prefix = dir + "/prefix";
  }
};

// ---- files ----

TEST_F(ActionsTest, WriteKeepsOwnerAndModeOfAnExistingFile) {
  put("/etc/x", "old", 0600);
  EXPECT_EQ(one({WriteFile{"/etc/x", "new", 0644}}).state, StepState::done);
  struct stat st;
  stat((root + "/etc/x").c_str(), &st);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
  EXPECT_EQ(at("/etc/x"), "new");
}

TEST_F(ActionsTest, NothingIsWritableByEverybody) {
  one({WriteFile{"/etc/x", "x", 0666}, MakeDir{"/etc/d", 0777}});
  struct stat st;
  stat((root + "/etc/x").c_str(), &st);
  EXPECT_EQ(st.st_mode & 0002, 0u);
  stat((root + "/etc/d").c_str(), &st);
  EXPECT_EQ(st.st_mode & 0002, 0u);
}

TEST_F(ActionsTest, FolderInTheWayOfAFileIsRefused) {
  put("/etc/x/inside", "1");
  auto r = one({WriteFile{"/etc/x", "x"}});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_EQ(at("/etc/x/inside"), "1");
}

TEST_F(ActionsTest, LimitsGoToPamAndSystemd) {
  EXPECT_EQ(one({SetLimits{{{"memlock", "unlimited"}, {"nofile", "1048576"}}}}).state, StepState::done);
  std::string pam = at("/etc/security/limits.d/99-epready.conf"),
              units = at("/etc/systemd/system.conf.d/99-epready.conf");
  EXPECT_NE(pam.find("root hard memlock unlimited\n"), std::string::npos);
  EXPECT_NE(pam.find("* soft nofile 1048576\n"), std::string::npos);
  EXPECT_NE(units.find("DefaultLimitMEMLOCK=infinity\n"), std::string::npos);
  EXPECT_EQ(one({SetLimits{{{"memlock", "lots"}}}}).state, StepState::failed);
}

TEST_F(ActionsTest, SharedMemoryKeepsItsSizeInFstabAndUndoGivesItBack) {
  put("/etc/fstab", "UUID=1 / ext4 defaults 0 1\ntmpfs\t/dev/shm tmpfs defaults,noexec,size=64m 0 0\n");
  const std::string before = picture("/etc");
  EXPECT_EQ(one({SetLimits{{{"shm", "50%"}}}}).state, StepState::done);
  EXPECT_EQ(at("/etc/fstab"), "UUID=1 / ext4 defaults 0 1\ntmpfs /dev/shm tmpfs noexec,size=50% 0 0\n");
  EXPECT_EQ(at("/etc/security/limits.d/99-epready.conf"), "");  // nothing else was asked for
  EXPECT_EQ(one({SetLimits{{{"shm", "a lot"}}}}).state, StepState::failed);
  undo();
  EXPECT_EQ(picture("/etc"), before);
}

TEST(ShmSize, OneLineAndItsOtherOptionsStay) {
  EXPECT_EQ(with_shm_size("", "50%"), "tmpfs /dev/shm tmpfs nosuid,nodev,size=50% 0 0\n");
  EXPECT_EQ(with_shm_size("# /dev/shm is not here\n/dev/vda / ext4 defaults 0 1\n", "8g"),
            "# /dev/shm is not here\n/dev/vda / ext4 defaults 0 1\ntmpfs /dev/shm tmpfs nosuid,nodev,size=8g "
            "0 0\n");
  // A second line for the same place would be read after the first and win.
  EXPECT_EQ(with_shm_size("shm /dev/shm tmpfs size=1g 0 0\nshm /dev/shm tmpfs size=2g 0 0\n", "8g"),
            "shm /dev/shm tmpfs size=8g 0 0\n");
  const std::string once = with_shm_size("a /b ext4 ro 0 0\n", "1g");
  EXPECT_EQ(with_shm_size(once, "1g"), once);
}

// ---- kernel ----

TEST_F(ActionsTest, ModuleOptionsEndInOneFileAndTheOldLinesStayAsComments) {
  put("/etc/modprobe.d/nvidia.conf", "options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=0\"\n");
  put("/etc/modprobe.d/zz.conf", "options nvidia NVreg_RegistryDwords=\"Other=5\" NVreg_Keep=1\n");
  auto r = one({MergeModuleOptions{"nvidia",
                                   {{"NVreg_RegistryDwords", "PeerMappingOverride=1;"}},
                                   "/etc/modprobe.d/epready-nvidia.conf"}});
  ASSERT_EQ(r.state, StepState::done) << r.reason;
  EXPECT_EQ(at("/etc/modprobe.d/epready-nvidia.conf")
                    .find("options nvidia NVreg_RegistryDwords=\"Other=5;PeerMappingOverride=1\"") !=
                std::string::npos,
            true)
      << at("/etc/modprobe.d/epready-nvidia.conf");
  EXPECT_NE(at("/etc/modprobe.d/zz.conf").find("\noptions nvidia NVreg_Keep=1"), std::string::npos);
  EXPECT_NE(slurp(r.log).find("zz.conf:1 sets NVreg_RegistryDwords"), std::string::npos);
  std::string once = picture("/etc");
  one({MergeModuleOptions{"nvidia",
                          {{"NVreg_RegistryDwords", "PeerMappingOverride=1;"}},
                          "/etc/modprobe.d/epready-nvidia.conf"}});
  EXPECT_EQ(picture("/etc"), once);
}

TEST_F(ActionsTest, APackagesLaterFileIsNamedNotChanged) {
  put("/usr/lib/modprobe.d/nvidia-vendor.conf", "options nvidia NVreg_X=0\n");
  auto r = one({MergeModuleOptions{"nvidia", {{"NVreg_X", "1"}}, "/etc/modprobe.d/epready-nvidia.conf"}});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("nvidia-vendor.conf:1"), std::string::npos);
  EXPECT_EQ(at("/usr/lib/modprobe.d/nvidia-vendor.conf"), "options nvidia NVreg_X=0\n");
}

TEST_F(ActionsTest, InitramfsIsRefreshedByTheToolThereIs) {
  EXPECT_EQ(one({RefreshInitramfs{}}).state, StepState::done);  // none: module files are read at load
  put("/usr/sbin/update-initramfs", "", 0755);
  tool("update-initramfs", "echo \"$@\" > $EP_FAKE_ROOT/refreshed");
  EXPECT_EQ(one({RefreshInitramfs{}}).state, StepState::done);
  EXPECT_EQ(at("/refreshed"), "-u -k all\n");
}

TEST_F(ActionsTest, InitramfsOfOtherDistributions) {
  put("/boot/initramfs-6.1.img", "old");
  const auto builds = [this](const std::string& name) {
    tool(name,
         "echo \"$@\" > $EP_FAKE_ROOT/refreshed; cd $EP_FAKE_ROOT/boot && echo new > n && mv n "
         "initramfs-6.1.img");
  };
  put("/usr/bin/mkinitcpio", "", 0755);
  builds("mkinitcpio");
  EXPECT_EQ(one({RefreshInitramfs{}}).state, StepState::done);
  EXPECT_EQ(at("/refreshed"), "-P\n");
  put("/usr/sbin/dracut", "", 0755);
  builds("dracut");
  EXPECT_EQ(one({RefreshInitramfs{}}).state, StepState::done);
  EXPECT_EQ(at("/refreshed"), "--force --regenerate-all\n");
  tool("dracut", "exit 0");
  StepResult r = one({RefreshInitramfs{}});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.next.find("wrapper"), std::string::npos) << r.next;
}

TEST_F(ActionsTest, AnInitramfsToolThatDoesNothingIsFoundBeforeTheReboot) {
  put("/usr/sbin/update-initramfs", "", 0755);
  put("/boot/initrd.img-6.1", "old");
  put("/boot/vmlinuz-6.1", "kernel");
  tool("update-initramfs", "echo new > $EP_FAKE_ROOT/boot/vmlinuz-6.1");
  StepResult r = one({RefreshInitramfs{}});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("initrd.img-6.1"), std::string::npos) << r.reason;
  EXPECT_NE(r.next.find("update-initramfs.conf"), std::string::npos) << r.next;
  tool("update-initramfs", "cd $EP_FAKE_ROOT/boot && echo old > new && mv new initrd.img-6.1");
  EXPECT_EQ(one({RefreshInitramfs{}}).state, StepState::done);
}

// ---- packages ----

class AptTest : public ActionsTest {
 public:
  AptTest() {
    put("/var/dpkg", "libc6\tinstalled\t, \t\n");
    tool("dpkg-query", "cat $EP_FAKE_ROOT/var/dpkg");
    tool("dpkg", "exit 0");
    // A tiny apt: `install NAME` adds NAME and its -dep; -s only says so; a file `locked` counts lock
    // refusals down.
    tool(
        "apt-get",
        R"sh(R=$EP_FAKE_ROOT; sim=no; while :; do case $1 in -o) shift 2;; -s) sim=yes; shift;; *) break;; esac; done
verb=$1; shift; echo "$verb $*" >> $R/var/apt.log
n=$(cat $R/var/locked 2>/dev/null || echo 0)
if [ $sim = no ] && [ $n -gt 0 ]; then
  echo $((n-1)) > $R/var/locked
  echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)" >&2; exit 100
fi
case $verb in update) exit 0;; esac
for p in "$@"; do
  case $p in -*) continue;; esac
  p=${p%%=*}
  for q in $p $p-dep; do
    if [ $verb = install ]; then
      grep -q "^$q	" $R/var/dpkg && continue
      [ $p = clash ] && [ $sim = yes ] && echo "Remv libc6 [1]"
      if [ $sim = yes ]; then echo "Inst $q (1 Debian [amd64])"; else printf '%s\tinstalled\t%s, \t\n' $q "$([ $q = $p ] && echo $p-dep)" >> $R/var/dpkg; fi
    else
      if [ $sim = yes ]; then [ $q = $p ] && echo "Purg $q [1]"; else [ $q = $p ] && sed -i "/^$q	/d" $R/var/dpkg; fi
    fi
  done
done; exit 0)sh");
  }
};

TEST_F(AptTest, InstallsAndUndoRemovesWhatWeBrought) {
  std::string before = at("/var/dpkg");
  put("/var/dpkg", before + "cmake\tinstalled\t, \t\n");
  before = at("/var/dpkg");
  auto r = one({InstallPackages{{"cuda-toolkit-12-9", "cmake=3.25"}}});
  ASSERT_EQ(r.state, StepState::done) << r.reason;
  EXPECT_NE(at("/var/dpkg").find("cuda-toolkit-12-9-dep"), std::string::npos);
  auto dry = undo(true);
  EXPECT_NE(at("/var/dpkg").find("cuda-toolkit-12-9-dep"), std::string::npos);
  auto u = undo();
  EXPECT_EQ(u.exit_code(), 0);
  // cmake was there before (its stand-in dependency came with us and went with us).
  EXPECT_EQ(at("/var/dpkg"), before);
}

TEST_F(AptTest, UndoKeepsWhatSomebodyNeedsByNow) {
  one({InstallPackages{{"nvcc"}}});
  put("/var/dpkg", at("/var/dpkg") + "mine\tinstalled\tnvcc-dep, \t\n");
  auto u = undo();
  EXPECT_EQ(u.exit_code(), 3);
  EXPECT_NE(at("/var/dpkg").find("nvcc-dep\tinstalled"), std::string::npos);
  EXPECT_EQ(at("/var/dpkg").find("nvcc\tinstalled"), std::string::npos);
  // What we brought and took away is no longer ours when somebody installs it himself.
  put("/var/dpkg", at("/var/dpkg") + "nvcc\tinstalled\t, \t\n");
  EXPECT_EQ(undo().exit_code(), 3);  // still needed
  EXPECT_NE(at("/var/dpkg").find("nvcc-dep\tinstalled"), std::string::npos);
  put("/var/dpkg", "libc6\tinstalled\t, \t\nnvcc\tinstalled\t, \t\nnvcc-dep\tinstalled\t, \t\n");
  EXPECT_EQ(undo().exit_code(), 0);  // nobody needs it by now
  EXPECT_EQ(at("/var/dpkg"), "libc6\tinstalled\t, \t\nnvcc\tinstalled\t, \t\n");
  EXPECT_FALSE(std::filesystem::exists(root + "/opt/epready"));
}

TEST_F(AptTest, WaitsForSomebodyElsesLock) {
  put("/var/locked", "1");
  auto r = one({InstallPackages{{"nvcc"}}});
  EXPECT_EQ(r.state, StepState::done) << r.reason;
  EXPECT_NE(slurp(r.log).find("waiting: E: Could not get lock"), std::string::npos);
}

TEST_F(AptTest, WhatWasCutOffWhileUnpackingIsInstalledAgainAndUndone) {
  ASSERT_EQ(one({InstallPackages{{"nvcc"}}}).state, StepState::done);
  std::string libc = "libc6\tinstalled\t, \t\n";
  put("/var/dpkg", libc + "nvcc-dep\thalf-installed\t, \t\ntheirs\thalf-installed\t, \t\n");
  put("/var/apt.log", "");
  one({InstallPackages{{"nvcc"}}});
  EXPECT_NE(at("/var/apt.log").find("install --reinstall -y --no-install-recommends -- nvcc-dep\n"),
            std::string::npos)
      << at("/var/apt.log");
  // dpkg's flag says it too, whatever the status beside it.
  put("/var/dpkg", libc + "nvcc-dep\tunpacked\treinstreq\n");
  put("/var/apt.log", "");
  one({InstallPackages{{"nvcc"}}});
  EXPECT_NE(at("/var/apt.log").find("install --reinstall -y --no-install-recommends -- nvcc-dep\n"),
            std::string::npos)
      << at("/var/apt.log");
  // Undo takes ours away, in whatever state, and leaves what others broke off with.
  put("/var/dpkg", libc + "nvcc-dep\thalf-installed\t, \t\ntheirs\thalf-installed\t, \t\n");
  tool("dpkg", R"(echo "$@" >> $EP_FAKE_ROOT/var/dpkg.log; sed -i '/^nvcc-dep/d' $EP_FAKE_ROOT/var/dpkg)");
  EXPECT_EQ(undo().exit_code(), 0);
  EXPECT_EQ(at("/var/dpkg.log"), "--purge --force-remove-reinstreq -- nvcc-dep\n");
  EXPECT_EQ(at("/var/dpkg"), libc + "theirs\thalf-installed\t, \t\n");
}

TEST_F(AptTest, RefusesToRemoveThePackagesOfTheHost) {
  auto r = one({InstallPackages{{"clash"}}});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("would remove packages"), std::string::npos);
  EXPECT_EQ(at("/var/dpkg").find("clash"), std::string::npos);
}

TEST_F(AptTest, OptionLikeNamesNeverReachApt) {
  EXPECT_EQ(one({InstallPackages{{"-oAPT::Update::Pre-Invoke::=touch /x"}}}).state, StepState::failed);
  EXPECT_EQ(one({InstallPackages{{"a b"}}}).state, StepState::failed);
  EXPECT_EQ(at("/var/apt.log").find("APT::"), std::string::npos);
}

TEST_F(AptTest, RepositoryComesWithItsOwnKeyring) {
  spill(dir + "/key.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
  AddAptSource a;
  a.name = "cuda";
  a.uri = "https://developer.example/cuda";
  a.suite = "/";
  a.key_url = "file://" + dir + "/key.asc";
  a.key_sha256 = sha256_hex("-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
  ASSERT_EQ(one({a}).state, StepState::done);
  std::string text = at("/etc/apt/sources.list.d/cuda.sources");
  EXPECT_NE(text.find("Suites: /\nSigned-By: /etc/apt/keyrings/cuda.asc\n"), std::string::npos) << text;
  a.key_sha256 = sha256_hex("another");
  a.name = "evil";
  auto r = one({a});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("another SHA-256"), std::string::npos);
  EXPECT_TRUE(at("/etc/apt/sources.list.d/evil.sources").empty());
  EXPECT_EQ(undo().exit_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(root + "/etc/apt/keyrings"));
}

// A site with a mirror has the mirror's address in its files: that is the source, and the step is done.
TEST_F(AptTest, ASourceBehindAMirrorIsThere) {
  spill(dir + "/key.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
  AddAptSource a;
  a.name = "cuda";
  a.uri = "https://developer.example/cuda";
  a.suite = "/";
  a.key_url = "file://" + dir + "/key.asc";
  a.key_sha256 = sha256_hex("-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
  options.mirrors = {{"https://developer.example/", "http://mirror.example/"}};
  plan.steps = {step("it", {a})};
  plan.steps[0].before = plan.steps[0].after = {{"source", {a.uri}}};
  auto r = apply().steps.at(0);
  EXPECT_EQ(r.state, StepState::done) << r.reason;
  EXPECT_NE(at("/etc/apt/sources.list.d/cuda.sources").find("URIs: http://mirror.example/cuda\n"),
            std::string::npos);
  EXPECT_EQ(apply().steps.at(0).state, StepState::satisfied);
}

TEST_F(AptTest, AFingerprintPinsAKeyWithoutAHash) {
  spill(dir + "/key.gpg", "binary key");
  // The file holds more than the pinned key: apt gets what gpg exports of that one alone.
  tool("gpg",
       "case \"$*\" in *--export*ABCDEF0123456789) echo '-----BEGIN the pinned key' ;; *--export*) ;; "
       "*show-only*) echo 'fpr:::::::::0000000000000000:'; echo 'fpr:::::::::ABCDEF0123456789:' ;; esac");
  AddAptSource a;
  a.name = "cuda";
  a.uri = "https://developer.example/cuda";
  a.suite = "/";
  a.key_url = "file://" + dir + "/key.gpg";
  auto unpinned = one({a});
  EXPECT_EQ(unpinned.state, StepState::failed);
  EXPECT_NE(unpinned.reason.find("pinned by nothing"), std::string::npos);
  a.key_fingerprint = "ABCD EF01 2345 6789";
  EXPECT_EQ(one({a}).state, StepState::done);
  EXPECT_EQ(at("/etc/apt/keyrings/cuda.asc"), "-----BEGIN the pinned key\n");
  a.key_fingerprint = "1111EF0123456789";
  a.name = "evil";
  auto wrong = one({a});
  EXPECT_EQ(wrong.state, StepState::failed);
  EXPECT_NE(wrong.reason.find("another fingerprint"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(root + "/etc/apt/keyrings/evil.asc"));
}

// ---- downloads ----

TEST_F(ActionsTest, DownloadIsVerifiedBeforeItHasItsName) {
  spill(dir + "/src", "payload");
  std::string url = "file://" + dir + "/src";
  EXPECT_EQ(one({Fetch{url, sha256_hex("payload"), "dl/x.tar"}}).state, StepState::done);
  EXPECT_EQ(at("/opt/epready/dl/x.tar"), "payload");
  auto r = one({Fetch{url, sha256_hex("other"), "dl/y.tar"}});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find(sha256_hex("payload")), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(root + "/opt/epready/dl/y.tar"));
  EXPECT_EQ(one({Fetch{url, "", "dl/z"}}).state, StepState::failed);
}

TEST_F(ActionsTest, HalfADownloadGoesOnAndAWrongHalfBeginsAgain) {
  spill(dir + "/src", "0123456789");
  std::string url = "file://" + dir + "/src", hash = sha256_hex("0123456789");
  put("/opt/epready/cache/" + hash + ".part", "01234");
  EXPECT_EQ(one({Fetch{url, hash, "a"}}).state, StepState::done);
  EXPECT_EQ(at("/opt/epready/a"), "0123456789");
  std::filesystem::remove_all(root + "/opt/epready/cache");
  std::filesystem::remove(root + "/opt/epready/a");
  put("/opt/epready/cache/" + hash + ".part", "WRONG");
  EXPECT_EQ(one({Fetch{url, hash, "a"}}).state, StepState::done);
  EXPECT_EQ(at("/opt/epready/a"), "0123456789");
}

TEST_F(ActionsTest, MirrorsReplaceTheLongestPrefix) {
  std::map<std::string, std::string> m = {{"https://a/", "http://m1/"}, {"https://a/b/", "http://m2/"}};
  EXPECT_EQ(mirrored("https://a/b/c", m), "http://m2/c");
  EXPECT_EQ(mirrored("https://a/x", m), "http://m1/x");
  EXPECT_EQ(mirrored("https://z/", m), "https://z/");
}

TEST_F(ActionsTest, PasswordsInAddressesDoNotReachLogs) {
  EXPECT_EQ(redact("get https://me:secret@x.example/a and http://y"),
            "get https://***@x.example/a and http://y");
  EXPECT_EQ(redact("curl 'https://x.example/f?part=1&X-Amz-Signature=abc&token=t&n=2' -o f"),
            "curl 'https://x.example/f?part=1&X-Amz-Signature=***&token=***&n=2' -o f");
  EXPECT_EQ(redact("https://x.example/?design=a&bare"), "https://x.example/?design=a&bare");
  tool("curl", "echo \"$@\" >&2; exit 22");
  auto r = one({Fetch{"https://me:secret@x.example/a", sha256_hex("x"), "a"}});
  EXPECT_EQ(r.reason.find("secret"), std::string::npos) << r.reason;
  EXPECT_EQ(slurp(r.log).find("secret"), std::string::npos);
  EXPECT_EQ(at("/opt/epready/state/journal.jsonl").find("secret"), std::string::npos);
}

// ---- archives, git, patches, builds ----

TEST_F(ActionsTest, UnpackTakesOffTheTopFolderAndRefusesEscapes) {
  on_this_host();
  spill(dir + "/w/pkg-1.0/a", "A");
  run("tar -C " + dir + "/w -czf " + dir + "/good.tar.gz pkg-1.0");
  ASSERT_EQ(one({Unpack{dir + "/good.tar.gz", "src"}}).state, StepState::done);
  EXPECT_EQ(slurp(plan.prefix + "/src/a"), "A");
  run("cd " + dir + "/w && tar -czPf " + dir + "/bad.tar.gz pkg-1.0 ../w/pkg-1.0/a");
  auto r = one({Unpack{dir + "/bad.tar.gz", "src2"}});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("outside its own folder"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(plan.prefix + "/src2"));
}

TEST_F(ActionsTest, ALinkInAnArchiveIsNoWayOut) {
  on_this_host();
  std::filesystem::create_directories(dir + "/victim");
  run("cd " + dir + " && mkdir e && ln -s " + dir +
      "/victim e/out && tar -cf l.tar e && rm e/out && mkdir e/out && echo x > e/out/x && tar -rf l.tar "
      "e/out/x");
  one({Unpack{dir + "/l.tar", "src"}});
  EXPECT_FALSE(std::filesystem::exists(dir + "/victim/x"));
}

TEST_F(ActionsTest, EscapesAreRecognised) {
  EXPECT_TRUE(escapes("/etc/passwd"));
  EXPECT_TRUE(escapes("a/../../b"));
  EXPECT_TRUE(escapes(".."));
  EXPECT_FALSE(escapes("a/..b/c.."));
}

class GitTest : public ActionsTest {
 public:
  GitTest() {
    on_this_host();
    repo = dir + "/upstream";
    run("git init -q " + repo + " && cd " + repo +
        " && git config user.email a@b.c && git config user.name n && echo one > f && git add f && git "
        "commit -qm 1");
    first = run("git -C " + repo + " rev-parse HEAD");
    run("cd " + repo + " && echo two > f && git commit -qam 2");
  }
  std::string repo, first;
};

TEST_F(GitTest, ChecksOutTheCommitAndNothingElse) {
  auto r = one({GitCheckout{repo, first, "src"}});
  ASSERT_EQ(r.state, StepState::done) << r.reason;
  EXPECT_EQ(slurp(plan.prefix + "/src/f"), "one\n");
  run("rm -rf " + repo);  // a second run needs no repository any more
  EXPECT_EQ(one({GitCheckout{repo, first, "src"}}).state, StepState::done);
}

TEST_F(GitTest, ACommitThatIsNotThereIsRefused) {
  auto r = one({GitCheckout{repo, std::string(40, 'a'), "src"}});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("does not have this commit"), std::string::npos) << r.reason;
  EXPECT_FALSE(std::filesystem::exists(plan.prefix + "/src"));
  EXPECT_EQ(one({GitCheckout{repo, "main", "src"}}).state, StepState::failed);
}

TEST_F(GitTest, PatchesApplyOnceOrFail) {
  spill(dir + "/p.patch", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+patched\n");
  ASSERT_EQ(one({GitCheckout{repo, first, "src"}, ApplyPatch{dir + "/p.patch", "src"}}).state,
            StepState::done);
  EXPECT_EQ(slurp(plan.prefix + "/src/f"), "patched\n");
  EXPECT_EQ(one({ApplyPatch{dir + "/p.patch", "src"}}).state, StepState::done);
  spill(dir + "/q.patch", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-nowhere\n+x\n");
  auto r = one({ApplyPatch{dir + "/q.patch", "src"}});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_EQ(slurp(plan.prefix + "/src/f"), "patched\n");
}

TEST_F(GitTest, PatchesOfAFolderThatIsNoRepositoryReallyApply) {
  spill(plan.prefix + "/plain/f", "one\n");
  spill(dir + "/p.patch", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+patched\n");
  EXPECT_EQ(one({ApplyPatch{dir + "/p.patch", "plain"}}).state, StepState::done);
  EXPECT_EQ(slurp(plan.prefix + "/plain/f"), "patched\n");
}

TEST_F(ActionsTest, BuildsAreInstalledWholeOrNotAtAll) {
  on_this_host();
  spill(plan.prefix + "/src/CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.16)\nproject(x NONE)\nfile(WRITE ${CMAKE_BINARY_DIR}/f ${V})\n"
        "install(FILES ${CMAKE_BINARY_DIR}/f DESTINATION lib)\nif(BAD)\ninstall(CODE "
        "\"message(FATAL_ERROR no)\")\nendif()\n");
  CMakeBuild b;
  b.source = "src";
  b.build = "build";
  b.install_prefix = "lib1";
  b.options = {"-DV=1"};
  auto r = one({b});
  ASSERT_EQ(r.state, StepState::done) << r.reason;
  EXPECT_EQ(slurp(plan.prefix + "/lib1/lib/f"), "1");
  b.options = {"-DV=2", "-DBAD=ON"};
  EXPECT_EQ(one({b}).state, StepState::failed);
  EXPECT_EQ(slurp(plan.prefix + "/lib1/lib/f"), "1");
}

TEST_F(ActionsTest, PythonEnvironmentAndOverrides) {
  on_this_host();
  tool("uv", "exit 127");
  std::filesystem::remove(dir + "/bin/uv");
  tool("py", "[ \"$2\" = venv ] || exit 1; mkdir -p $3/bin; printf '#!/bin/sh\\necho \"$@\" >> " + dir +
                 "/pip.log\\n' > $3/bin/python; chmod 755 $3/bin/python");
  tool("uv", "exit 1");  // uv that does not work is not used
  PipInstall p;
  p.venv = "venv";
  p.requirements = {"torch==2.13.0"};
  p.overrides = {"nvidia-nccl-cu13>=2.30.4"};
  auto r = one({PythonVenv{"venv", "py"}, p});
  ASSERT_EQ(r.state, StepState::done) << r.reason;
  std::string log = slurp(dir + "/pip.log");
  EXPECT_NE(log.find("-m pip install torch==2.13.0\n"), std::string::npos) << log;
  EXPECT_NE(log.find("--no-deps nvidia-nccl-cu13>=2.30.4\n"), std::string::npos) << log;
  EXPECT_EQ(slurp(plan.prefix + "/venv/epready-overrides.txt"), "nvidia-nccl-cu13>=2.30.4\n");
}

TEST_F(ActionsTest, RunRefusesAFolderThatIsNotThere) {
  auto r = one({RunArgv{{"true"}, "no/such", {}, 5}});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("no/such"), std::string::npos);
}

TEST_F(ActionsTest, LimitsOfTimeAreKept) {
  auto r = one({RunArgv{{"sleep", "60"}, "", {}, 1}});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("limit"), std::string::npos) << r.reason;
}

}  // namespace
}  // namespace ep
