// fetch and apply --offline against local stand-ins: real git, stand-in apt-get, dpkg-deb and python3.
#include "apply/gather.h"

#include "apply/gather_parts.h"
#include "apply/test_bench.h"
#include "base/digest.h"

namespace ep {
namespace {

using test::Bench;
using test::slurp;
using test::spill;

class GatherTest : public Bench {
 public:
  GatherTest() {
    options.root = "/";
    plan.prefix = dir + "/prefix";
    pack = dir + "/pack";
    wanted.dir = pack;
    wanted.world = world.get();
  }
  GatherReport fetch() {
    auto progress = silent_progress();
    auto r = gather(plan, wanted, *progress);
    EXPECT_TRUE(r) << (r ? "" : r.error().text());
    return r ? *r : GatherReport{};
  }
  void steps(std::vector<Action> actions) { plan.steps = {step("it", std::move(actions))}; }
  Result<ApplyReport> apply_offline() {
    options.offline_dir = pack;
    auto progress = silent_progress();
    return apply_plan(plan, options, *progress);
  }
  StepResult first_offline() {
    auto r = apply_offline();
    EXPECT_TRUE(r) << (r ? "" : r.error().text());
    return r ? r->steps.at(0) : StepResult{};
  }
  std::string run(const std::string& command) {
    std::string out = dir + "/out";
    int rc = std::system(("(" + command + ") > " + out + " 2>&1").c_str());
    EXPECT_EQ(rc, 0) << command << "\n" << slurp(out);
    return std::string(trim(slurp(out)));
  }
  static bool there(const std::string& path) { return std::filesystem::exists(path); }

  std::string pack;
  GatherOptions wanted;
};

TEST_F(GatherTest, ADownloadIsProvenAndTheManifestComesLast) {
  spill(dir + "/src", "payload");
  std::string hash = sha256_hex("payload");
  steps({Fetch{"file://" + dir + "/src", hash, "got"}});
  auto r = fetch();
  EXPECT_TRUE(r.whole);
  EXPECT_EQ(r.exit_code(), 0);
  EXPECT_EQ(slurp(pack + "/sha256/" + hash), "payload");
  auto folder = open_offline(pack);
  ASSERT_TRUE(folder) << folder.error().text();
  ASSERT_EQ(folder->files.size(), 1u);
  EXPECT_EQ(folder->files[0].sha256, hash);
  EXPECT_EQ(folder->files[0].bytes, 7u);
  std::filesystem::remove(dir + "/src");
  EXPECT_EQ(first_offline().state, StepState::done);
  EXPECT_EQ(slurp(plan.prefix + "/got"), "payload");
}

TEST_F(GatherTest, WrongBytesAreRefusedAndTheFolderStaysUnfinished) {
  spill(dir + "/src", "payl0ad");
  steps({Fetch{"file://" + dir + "/src", sha256_hex("payload"), "got"}});
  auto r = fetch();
  EXPECT_FALSE(r.whole);
  EXPECT_EQ(r.exit_code(), 1);
  ASSERT_EQ(r.items.size(), 1u);
  EXPECT_NE(r.items[0].reason.find("another SHA-256"), std::string::npos) << r.items[0].reason;
  EXPECT_NE(r.items[0].reason.find(sha256_hex("payl0ad")), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(pack + "/sha256"));
  auto applied = apply_offline();
  ASSERT_FALSE(applied);
  EXPECT_NE(applied.error().text().find("manifest.json"), std::string::npos);
  EXPECT_FALSE(there(plan.prefix)) << "nothing may be begun";
}

TEST_F(GatherTest, AHalfDownloadIsNoFileAndIsGoneOnWith) {
  std::string hash = sha256_hex("0123456789");
  tool("curl", R"sh(
while [ $# -gt 0 ]; do [ "$1" = --output ] && out=$2; shift; done
if [ -e "$out" ]; then printf 56789 >>"$out"; else printf 01234 >"$out"; echo 'cut off' >&2; exit 18; fi)sh");
  steps({Fetch{"https://x.example/f", hash, "got"}});
  auto half = fetch();
  EXPECT_FALSE(half.whole);
  EXPECT_FALSE(there(pack + "/sha256/" + hash));
  EXPECT_TRUE(there(pack + "/sha256/" + hash + ".part"));
  EXPECT_FALSE(there(pack + "/manifest.json"));
  EXPECT_NE(half.items.at(0).next.find("same command"), std::string::npos);
  EXPECT_TRUE(fetch().whole);
  EXPECT_EQ(slurp(pack + "/sha256/" + hash), "0123456789");
}

TEST_F(GatherTest, FetchingAgainMakesAFinishedFolderUnfinishedUntilItEnds) {
  spill(dir + "/src", "payload");
  steps({Fetch{"file://" + dir + "/src", sha256_hex("payload"), "got"}});
  EXPECT_TRUE(fetch().whole);
  steps({Fetch{"file://" + dir + "/absent", sha256_hex("other"), "got"}});
  EXPECT_FALSE(fetch().whole);
  EXPECT_FALSE(open_offline(pack));
}

TEST_F(GatherTest, AChangedFileIsRefusedBeforeUse) {
  spill(dir + "/src", "payload");
  std::string hash = sha256_hex("payload");
  steps({Fetch{"file://" + dir + "/src", hash, "got"}});
  ASSERT_TRUE(fetch().whole);
  spill(pack + "/sha256/" + hash, "payl0ad");
  auto r = first_offline();
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("another SHA-256"), std::string::npos);
  EXPECT_FALSE(there(plan.prefix + "/got"));
  spill(pack + "/sha256/" + hash, "pay");
  auto cut = apply_offline();
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().text().find("3 of 7 bytes"), std::string::npos) << cut.error().text();
}

TEST_F(GatherTest, AFolderForAnotherPlanIsRefusedBeforeTheFirstStep) {
  spill(dir + "/src", "payload");
  steps({Fetch{"file://" + dir + "/src", sha256_hex("payload"), "got"}});
  ASSERT_TRUE(fetch().whole);
  PipInstall pip;
  pip.venv = "venv";
  pip.requirements = {"torch==2.9.1", plan.prefix + "/src/x"};
  steps({InstallPackages{{"cuda-toolkit-12-9"}},
         GitCheckout{"https://x/y.git", std::string(40, 'a'), "src/y"}, pip});
  auto r = apply_offline();
  ASSERT_FALSE(r);
  std::string text = r.error().text();
  for (const char* missing :
       {"package cuda-toolkit-12-9", "https://x/y.git at aaaa", "Python package torch==2.9.1"})
    EXPECT_NE(text.find(missing), std::string::npos) << text;
  EXPECT_EQ(text.find("src/x"), std::string::npos) << "a folder of this host is no download";
  EXPECT_FALSE(there(plan.prefix));
}

TEST_F(GatherTest, RepositoriesComeWithTheirSubmodulesAndNeedNoNetworkAfterwards) {
  const std::string id = "git config user.name t && git config user.email t@localhost";
  run("mkdir -p " + dir + "/site && cd " + dir + "/site && git init -q sub && cd sub && " + id +
      " && echo inner >f && git add . && git commit -qm 1");
  run("cd " + dir + "/site && git init -q top && cd top && " + id +
      " && git -c protocol.file.allow=always submodule --quiet add ../sub third/sub && echo outer >g && git "
      "add . && "
      "git commit -qm 1");
  std::string commit = run("git -C " + dir + "/site/top rev-parse HEAD");
  steps({GitCheckout{"https://host.example/top", commit, "src/top", true}});
  wanted.mirrors = {{"https://host.example/", dir + "/site/"}};
  auto r = fetch();
  ASSERT_TRUE(r.whole) << r.items.at(0).reason;
  EXPECT_EQ(r.num_repositories, 2);
  std::filesystem::rename(dir + "/site", dir + "/gone");
  auto done = first_offline();
  EXPECT_EQ(done.state, StepState::done) << done.reason << slurp(done.log);
  EXPECT_EQ(slurp(plan.prefix + "/src/top/third/sub/f"), "inner\n");
}

TEST_F(GatherTest, AMovedTagWhoseOldCommitIsGoneIsRefused) {
  run("mkdir " + dir + "/r && cd " + dir +
      "/r && git init -q && git config user.name t && git config user.email t@localhost && echo 1 >f && git "
      "add . && "
      "git commit -qm 1 && git tag v1");
  std::string old = run("git -C " + dir + "/r rev-parse v1");
  run("cd " + dir +
      "/r && echo 2 >f && git commit -qam 2 --amend && git tag -f v1 && git reflog expire --expire=now "
      "--all && git gc -q --prune=now");
  steps({GitCheckout{dir + "/r", old, "src/r"}});
  auto r = fetch();
  EXPECT_FALSE(r.whole);
  EXPECT_NE(r.items.at(0).reason.find("does not have this commit"), std::string::npos) << r.items[0].reason;
  EXPECT_NE(r.items.at(0).next.find("moved"), std::string::npos);
}

TEST_F(GatherTest, AKeyIsPinnedOrRefused) {
  spill(dir + "/key.gpg", "binary key");
  tool("gpg", "echo 'fpr:::::::::ABCDEF0123456789:'");
  AddAptSource a;
  a.name = "cuda";
  a.uri = "https://x.example/cuda";
  a.suite = "/";
  a.key_url = "file://" + dir + "/key.gpg";
  steps({a});
  EXPECT_NE(fetch().items.at(0).reason.find("pinned by nothing"), std::string::npos);
  a.key_fingerprint = "0000EF0123456789";
  steps({a});
  EXPECT_NE(fetch().items.at(0).reason.find("another fingerprint"), std::string::npos);
  EXPECT_FALSE(there(pack + "/keys/key-cuda"));
  a.key_fingerprint = "ABCD EF01 2345 6789";
  steps({a});
  EXPECT_TRUE(fetch().whole);
  EXPECT_EQ(slurp(pack + "/keys/key-cuda"), "binary key");
}

// ---- packages ----

class GatherPackages : public GatherTest {
 public:
  GatherPackages() {
    // Downloads what $dir/bytes says under a name with an epoch, as apt names it.
    spill(dir + "/bytes", "a package");
    tool("apt-get", "d=" + dir + R"sh(
echo "$*" >>$d/apt.log
for a in "$@"; do case $a in Dir::Cache::archives=*) cache=${a#*=} ;; esac; done
case "$*" in
*--print-uris*) echo "'http://x.example/p_1%3a2_amd64.deb' p_1%3a2_amd64.deb 9 SHA256:$(cat $d/sha)" ;;
*--download-only*) cp $d/bytes "$cache/p_1%3a2_amd64.deb" ;;
*-s*install*) echo 'Inst p (1:2 x)' ;;
esac)sh");
    tool("dpkg-deb", "printf 'Package: p\\nVersion: 1:2\\n'");
    tool("dpkg-query", "true");
    tool("dpkg", "true");
    spill(dir + "/sha", sha256_hex("a package"));
    steps({InstallPackages{{"p"}}});
  }
};

TEST_F(GatherPackages, BecomeAFlatRepositoryThatAptUsesAlone) {
  auto r = fetch();
  ASSERT_TRUE(r.whole) << r.items.at(0).reason;
  EXPECT_EQ(slurp(pack + "/debs/p_1_2_amd64.deb"), "a package");
  std::string index = slurp(pack + "/debs/Packages");
  EXPECT_NE(index.find("Package: p\nVersion: 1:2\nFilename: ./p_1_2_amd64.deb\nSize: 9\nSHA256: " +
                       sha256_hex("a package") + "\n"),
            std::string::npos)
      << index;
  std::filesystem::remove(dir + "/apt.log");
  auto done = first_offline();
  EXPECT_EQ(done.state, StepState::done) << done.reason;
  EXPECT_EQ(slurp(plan.prefix + "/cache/offline-apt/sources.list"),
            "deb [trusted=yes] file:" + pack + "/debs ./\n");
  std::string log = slurp(dir + "/apt.log");
  for (auto line : lines(log)) {
    EXPECT_NE(line.find("Dir::Etc::sourceparts=/dev/null"), std::string_view::npos) << line;
    EXPECT_NE(line.find("Dir::Etc::sourcelist=" + plan.prefix), std::string_view::npos) << line;
  }
  EXPECT_GE(lines(log).size(), 3u) << "update, simulation, installation";
}

TEST_F(GatherPackages, OtherBytesThanTheIndexNamesAreRefused) {
  spill(dir + "/bytes", "b package");
  auto r = fetch();
  EXPECT_FALSE(r.whole);
  EXPECT_NE(r.items.at(0).reason.find("another SHA-256"), std::string::npos) << r.items[0].reason;
  EXPECT_FALSE(there(pack + "/debs/p_1_2_amd64.deb"));
}

TEST_F(GatherPackages, AChangedPackageOrOneMoreIsRefusedByApply) {
  ASSERT_TRUE(fetch().whole);
  spill(pack + "/debs/p_1_2_amd64.deb", "c package");
  auto changed = first_offline();
  EXPECT_EQ(changed.state, StepState::failed);
  EXPECT_NE(changed.reason.find("another SHA-256"), std::string::npos) << changed.reason;
  ASSERT_TRUE(fetch().whole);
  spill(pack + "/debs/evil.deb", "x");
  auto more = first_offline();
  EXPECT_EQ(more.state, StepState::failed);
  EXPECT_NE(more.reason.find("manifest does not list"), std::string::npos) << more.reason;
}

TEST_F(GatherPackages, OnAnotherReleaseTheyAreRefusedWithBothNamed) {
  plan.facts_used = {{"os.id", "ubuntu"}, {"os.version", "24.04"}, {"gpu.count", "8"}};
  world->facts = {{"os.id", "debian"}, {"os.version", "12"}};
  auto r = fetch();
  EXPECT_FALSE(r.whole);
  EXPECT_NE(r.items.at(0).reason.find("os.id ubuntu"), std::string::npos) << r.items[0].reason;
  EXPECT_NE(r.items.at(0).reason.find("debian"), std::string::npos);
  EXPECT_FALSE(there(dir + "/apt.log"));
  world->facts = {{"os.id", "ubuntu"}, {"os.version", "24.04"}, {"gpu.count", "0"}};
  EXPECT_TRUE(fetch().whole) << "a machine without GPUs may gather";
}

TEST(PackageFiles, ReadsWhatAptPrints) {
  auto files = package_files(
      "Reading package lists...\n"
      "'http://deb.example/pool/g/gcc_12_amd64.deb' gcc_12_amd64.deb 17840 SHA256:ABCDEF\n"
      "'http://deb.example/x.deb' x_1%3a2_amd64.deb 1 MD5Sum:00\n");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].url, "http://deb.example/pool/g/gcc_12_amd64.deb");
  EXPECT_EQ(files[0].sha256, "abcdef");
  EXPECT_EQ(files[1].name, "x_1%3a2_amd64.deb");
  EXPECT_EQ(files[1].sha256, "");
}

// ---- wheels ----

TEST_F(GatherTest, WheelsComeFromTheIndexOnceAndFromTheFolderAfterwards) {
  // python3 -m venv FOLDER makes a bin/python that plays pip.
  tool("python3", "shift 2; while [ $# -gt 1 ]; do shift; done; mkdir -p $1/bin; cp " + dir +
                      "/bin/fake-pip $1/bin/python");
  tool("uv", "exit 1");  // uv that does not work is not used
  tool("fake-pip", "echo \"$*\" >>" + dir + R"sh(/pip.log
while [ $# -gt 0 ]; do [ "$1" = --dest ] && echo wheel >"$2/torch-2.9.1-cp311.whl"; shift; done)sh");
  PipInstall pip;
  pip.venv = "venv";
  pip.requirements = {"torch==2.9.1"};
  pip.overrides = {"nvidia-nccl-cu13>=2.30.4"};
  steps({PythonVenv{"venv", "python3"}, pip});
  wanted.mirrors = {{"https://pypi.org/simple", "http://mirror.example/simple"}};
  auto r = fetch();
  ASSERT_TRUE(r.whole) << r.items.at(0).reason;
  std::string log = slurp(dir + "/pip.log");
  EXPECT_NE(log.find("--index-url http://mirror.example/simple torch==2.9.1"), std::string::npos) << log;
  EXPECT_NE(log.find("--no-deps nvidia-nccl-cu13>=2.30.4"), std::string::npos) << log;
  std::filesystem::remove(dir + "/pip.log");
  auto done = first_offline();
  EXPECT_EQ(done.state, StepState::done) << done.reason;
  log = slurp(dir + "/pip.log");
  EXPECT_NE(log.find("--no-index --find-links " + pack + "/wheels/"), std::string::npos) << log;
  EXPECT_EQ(log.find("index-url"), std::string::npos) << log;
  spill(pack + "/wheels/torch-2.9.1-cp311.whl", "whee1\n");
  std::filesystem::remove_all(plan.prefix);
  auto refused = first_offline();
  EXPECT_EQ(refused.state, StepState::failed);
  EXPECT_NE(refused.reason.find("another SHA-256"), std::string::npos) << refused.reason;
}

TEST_F(GatherTest, OfflineProgramsFindTheNetworkClosed) {
  steps({RunArgv{{"sh", "-c", "env >env.txt"}, "", {}, 60}});
  spill(dir + "/src", "x");
  ASSERT_TRUE(fetch().whole);
  EXPECT_EQ(first_offline().state, StepState::done);
  std::string env = slurp(plan.prefix + "/env.txt");
  for (const char* line : {"https_proxy=http://127.0.0.1:9", "PIP_NO_INDEX=1", "GIT_ALLOW_PROTOCOL=file"})
    EXPECT_NE(env.find(line), std::string::npos) << env;
}

TEST(OfflineFolder, RefusesAManifestThatPointsElsewhere) {
  char name[] = "/tmp/epready-offline-XXXXXX";
  std::string dir = mkdtemp(name);
  for (const char* path : {"../etc/passwd", "/etc/passwd", "a//b", ""}) {
    OfflineFolder f;
    f.files = {{path, sha256_hex("x"), 1, ""}};
    spill(dir + "/manifest.json", offline_to_json(f));
    auto r = open_offline(dir);
    ASSERT_FALSE(r) << path;
    EXPECT_EQ(r.error().kind, ErrorKind::malformed);
  }
  spill(dir + "/manifest.json", "{\"schema\": \"epready-offline-1\", \"files\": 7}");
  EXPECT_EQ(open_offline(dir).error().kind, ErrorKind::malformed);
  spill(dir + "/manifest.json", "{\"schema\": \"epready-offline-9\"}");
  EXPECT_EQ(open_offline(dir).error().kind, ErrorKind::usage);
  spill(dir + "/manifest.json", "{");
  EXPECT_EQ(open_offline(dir).error().kind, ErrorKind::malformed);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace ep
