// Installing into a Python environment: by hash, with overrides, all or nothing; and what pip's messages
// mean. The pip here is a shell script that notes its arguments.
#include <fmt/format.h>

#include <algorithm>

#include "apply/actions.h"
#include "apply/test_bench.h"
#include "base/digest.h"

namespace ep::test {
namespace {

class PythonTest : public Bench {
 public:
  PythonTest() {
    options.root = "/";  // real programs need real paths
    plan.prefix = dir + "/prefix";
    tool("uv", "exit 1");  // uv that does not work is not used
    spill(venv() + "/.epready-venv", "made\n");
    spill(venv() + "/lib/kept", "as it was");
  }
  StepResult one(std::vector<Action> actions) {
    plan.steps = {step("it", std::move(actions))};
    return apply().steps.at(0);
  }
  std::string venv() const { return plan.prefix + "/venv"; }
  void python(const std::string& body) {
    spill(venv() + "/bin/python", "#!/bin/sh\necho \"$@\" >> " + dir + "/pip.log\n" + body + "\n", 0755);
  }
  std::string log() const { return slurp(dir + "/pip.log"); }
  PipInstall pip(std::vector<std::string> requirements) const {
    PipInstall p;
    p.venv = "venv";
    p.requirements = std::move(requirements);
    return p;
  }
};

const std::string kA(64, 'a'), kB(64, 'b'), kC(64, 'c');

TEST_F(PythonTest, HashesGoThroughAFileAndAreRequired) {
  python("");
  PipInstall p = pip({"nvidia-nccl-cu13==2.30.7 --hash=sha256:" + kA});
  p.no_deps = true;
  p.overrides = {"nvidia-nccl-cu13==2.30.7"};
  auto r = one({p});
  ASSERT_EQ(r.state, StepState::done) << r.reason;
  EXPECT_NE(log().find("--no-deps --require-hashes -r " + plan.prefix + "/state/wheels-"), std::string::npos)
      << log();
  EXPECT_EQ(log().find("--dry-run"), std::string::npos);
  EXPECT_EQ(slurp(venv() + "/epready-overrides.txt"), "nvidia-nccl-cu13==2.30.7\n");
  EXPECT_FALSE(std::filesystem::exists(venv() + ".before"));
  EXPECT_FALSE(std::filesystem::exists(venv() + ".discard"));
}

// Debian's python3 without python3-venv: uv makes the environment, and downloads nothing for it.
TEST_F(PythonTest, WherePythonCannotMakeEnvironmentsUvDoes) {
  std::filesystem::remove_all(venv());
  tool("py", "mkdir -p $3/bin; echo 'ensurepip is not available' >&2; exit 1");
  auto alone = one({PythonVenv{"venv", "py"}});
  EXPECT_EQ(alone.state, StepState::failed);
  EXPECT_NE(alone.next.find("apt-get install python3-venv"), std::string::npos) << alone.next;
  tool("uv", "echo \"$@\" >> " + dir +
                 "/uv.log; [ $1 = venv ] || exit 0; for last; do :; done; "
                 "[ ! -e $last ] || exit 3; mkdir -p $last/bin");
  auto made = one({PythonVenv{"venv", "py"}});
  ASSERT_EQ(made.state, StepState::done) << made.reason;
  EXPECT_EQ(slurp(dir + "/uv.log"), "--version\nvenv --offline --python py " + venv() + "\n");
  EXPECT_EQ(slurp(venv() + "/.epready-venv"), "made by epready with py\n");
}

// torch pins NCCL 2.29.7: what pip downloads with torch is installed with ours instead.
TEST_F(PythonTest, WhatIsOverriddenNeverComesIn) {
  python(
      "case \"$*\" in *' pip download '*) for a; do [ \"$last\" = --dest ] && d=$a; last=$a; done\n"
      "printf torch > $d/torch-2.13.0-cp312-cp312-x.whl; : > $d/nvidia_nccl_cu13-2.29.7-py3-none-x.whl;;\n"
      "*) for a; do case $a in *.txt) cat $a >> " +
      dir + "/lists;; esac; done;; esac");
  const std::string torch = sha256_hex("torch");
  PipInstall p = pip({"torch==2.13.0 --hash=sha256:" + torch});
  p.overrides = {"nvidia-nccl-cu13==2.30.7 --hash=sha256:" + kC};
  auto r = one({p});
  ASSERT_EQ(r.state, StepState::done) << r.reason;
  EXPECT_NE(log().find("install --no-index --no-deps " + plan.prefix + "/stage/wheels-it/torch-2.13.0"),
            std::string::npos)
      << log();
  EXPECT_EQ(log().find("2.29.7"), std::string::npos) << log();
  EXPECT_EQ(slurp(dir + "/lists"), "nvidia-nccl-cu13==2.30.7 --hash=sha256:" + kC + "\n");
  EXPECT_EQ(slurp(venv() + "/epready-overrides.txt"), "nvidia-nccl-cu13==2.30.7\n");
  EXPECT_FALSE(std::filesystem::exists(plan.prefix + "/stage/wheels-it"));

  // An index that offers another torch under that version is refused before anything is installed.
  std::filesystem::remove(dir + "/pip.log");
  p.requirements = {"torch==2.13.0 --hash=sha256:" + kB};
  r = one({p});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("another SHA-256"), std::string::npos) << r.reason;
  EXPECT_EQ(log().find(" install "), std::string::npos) << log();
}

// A closed set: parts side by side, nothing resolved, nothing left out, nothing twice.
TEST_F(PythonTest, AClosedSetIsInstalledInParts) {
  python("for a; do case $a in *.txt) cat $a >> " + dir + "/lists;; esac; done");
  std::vector<std::string> wanted;
  for (int i = 0; i < 31; ++i) wanted.push_back(fmt::format("p{:02}==1 --hash=sha256:{}", i, kA));
  PipInstall p = pip(wanted);
  p.no_deps = true;
  auto r = one({p});
  ASSERT_EQ(r.state, StepState::done) << r.reason;
  const std::string text = slurp(dir + "/lists"), calls = log();
  auto got = lines(text);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(std::vector<std::string>(got.begin(), got.end()), wanted);
  EXPECT_GT(lines(calls).size(), 1u) << "side by side";
  for (auto line : lines(calls)) {
    EXPECT_TRUE(contains(line, "--no-deps --only-binary :all: --require-hashes -r ")) << line;
    EXPECT_FALSE(contains(line, " download ")) << "a second copy of every wheel: " << line;
  }
}

TEST_F(PythonTest, APartThatFailsLeavesTheEnvironmentAsItWas) {
  python("echo half > " + venv() + "/lib/half; for a; do case $a in *.txt) grep -q p07 $a && {\n" +
         "echo 'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.' >&2; exit 1; };; "
         "esac; done; "
         "exit 0");
  std::vector<std::string> wanted;
  for (int i = 0; i < 12; ++i) wanted.push_back(fmt::format("p{:02}==1 --hash=sha256:{}", i, kA));
  PipInstall p = pip(wanted);
  p.no_deps = true;
  auto r = one({p});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("another SHA-256"), std::string::npos) << r.reason;
  EXPECT_FALSE(std::filesystem::exists(venv() + "/lib/half"));
  EXPECT_EQ(slurp(venv() + "/lib/kept"), "as it was");
  EXPECT_FALSE(std::filesystem::exists(venv() + ".before"));
}

// Two installers may want to replace one file of a shared folder at once: the loser is run again, alone.
TEST_F(PythonTest, TwoInstallersThatMeetInOneFolderAreNoFailure) {
  python("for a; do case $a in *.txt) grep -q p03 $a && [ ! -e " + dir + "/met ] && { touch " + dir +
         "/met; echo \"FileNotFoundError: [Errno 2] No such file or directory: 'nvidia/__init__.py'\" >&2; "
         "exit 1; "
         "}; cat $a >> " +
         dir + "/lists;; esac; done; exit 0");
  std::vector<std::string> wanted;
  for (int i = 0; i < 12; ++i) wanted.push_back(fmt::format("p{:02}==1 --hash=sha256:{}", i, kA));
  PipInstall p = pip(wanted);
  p.no_deps = true;
  auto r = one({p});
  ASSERT_EQ(r.state, StepState::done) << r.reason;
  const std::string text = slurp(dir + "/lists");
  for (const auto& w : wanted) EXPECT_TRUE(contains(text, w)) << w;
}

TEST_F(PythonTest, AFailedInstallLeavesTheEnvironmentAsItWas) {
  python("echo half > " + venv() + "/lib/half; rm " + venv() + "/lib/kept; echo new > " + venv() +
         "/lib/kept; echo 'OSError: [Errno 28] No space left on device' >&2; exit 1");
  PipInstall p = pip({"torch==2.13.0"});
  auto r = one({p});
  EXPECT_EQ(r.state, StepState::failed);
  EXPECT_NE(r.reason.find("disk is full"), std::string::npos) << r.reason;
  EXPECT_NE(r.next.find("df -h"), std::string::npos) << r.next;
  EXPECT_EQ(slurp(venv() + "/lib/kept"), "as it was");
  EXPECT_FALSE(std::filesystem::exists(venv() + "/lib/half"));
  EXPECT_FALSE(std::filesystem::exists(venv() + ".before"));
}

TEST_F(PythonTest, AnInstallThatWasCutIsTakenBackFirst) {
  python("cp " + venv() + "/lib/kept " + dir + "/seen");
  spill(venv() + ".before/lib/kept", "before the cut");
  spill(venv() + ".before/bin/python", slurp(venv() + "/bin/python"), 0755);
  spill(venv() + ".before/.epready-venv", "made\n");
  spill(venv() + ".copying/lib/kept", "half a copy");
  spill(venv() + "/.epready-installing", "it\n");
  auto r = one({pip({"numpy"})});
  ASSERT_EQ(r.state, StepState::done) << r.reason;
  EXPECT_EQ(slurp(dir + "/seen"), "before the cut");
  EXPECT_FALSE(std::filesystem::exists(venv() + ".copying"));
  EXPECT_FALSE(std::filesystem::exists(venv() + "/.epready-installing"));
  EXPECT_EQ(slurp(venv() + ".cut/lib/kept"), "as it was") << "nothing is thrown away";
}

TEST_F(PythonTest, ACopyThatAWholeInstallLeftIsNotPutBack) {
  python("cp " + venv() + "/lib/kept " + dir + "/seen");
  spill(venv() + ".before/lib/kept", "older");  // killed after the install, before the copy was removed
  auto r = one({pip({"numpy"})});
  ASSERT_EQ(r.state, StepState::done) << r.reason;
  EXPECT_EQ(slurp(dir + "/seen"), "as it was");
  EXPECT_FALSE(std::filesystem::exists(venv() + ".before"));
}

TEST(ExplainPip, MessagesBecomeCausesWithANextAct) {
  struct Row {
    const char *said, *what, *next;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"WARNING: Retrying ... NewConnectionError: Failed to establish a new connection: [Errno 111] "
            "Connection "
            "refused\nERROR: No matching distribution found for torch==2.13.0",
            "cannot be reached", "--mirror"},
           {"ERROR: Could not find a version that satisfies the requirement torch==9.9 (from versions: "
            "2.9.1)\n"
            "ERROR: No matching distribution found for torch==9.9",
            "no torch==9.9", "index versions"},
           {"ERROR: x-1.0-cp310-cp310-win_amd64.whl is not a supported wheel on this platform.",
            "another Python", "--version"},
           {"ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "disk is full", "df -h"},
           {"ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "another SHA-256",
            "--mirror"},
           {"/v/bin/python: No module named pip", "environment is broken", "mv "},
           // uv
           {"error: No solution found when resolving dependencies\n  cause: Because torch was not found in "
            "the package "
            "registry and you require torch==2.13.0, we can conclude that your requirements are "
            "unsatisfiable.",
            "has no torch==2.13.0", "index versions torch"},
           {"cause: Because torch==2.13.0 has no wheels with a matching Python implementation tag (e.g., "
            "`cp311`) and "
            "you require torch==2.13.0, we can conclude that your requirements are unsatisfiable.",
            "another Python", "--version"},
           {"error: No virtual environment or system Python installation found for path `venv/bin/python`",
            "environment is broken", "mv "},
           {"error: Failed to fetch: http://127.0.0.1:9/simple/torch/\n cause: error sending request for "
            "url\n cause: "
            "Connection refused (os error 111)",
            "cannot be reached", "--mirror"},
           {"error: Hash mismatch for `torch==2.13.0`", "another SHA-256", "--mirror"}}) {
    Error e{ErrorKind::failed, "python: exit code 1", "", row.said, "less LOG", {}};
    const Error got = explain_pip(e, "/v");
    EXPECT_NE(got.what.find(row.what), std::string::npos) << got.what;
    EXPECT_NE(got.next.find(row.next), std::string::npos) << got.next;
    EXPECT_EQ(got.why, row.said) << "the evidence stays";
  }
  Error other{ErrorKind::failed, "python: exit code 1", "", "Traceback", "less LOG", {}};
  EXPECT_EQ(explain_pip(other, "/v").what, other.what);
}

}  // namespace
}  // namespace ep::test
