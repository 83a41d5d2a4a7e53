// Plan, Step, Action: what would change on a host, as a value. Pure. Printing, explaining, applying and
// rendering a Dockerfile are four consumers of the same value; an empty plan is a success with its own
// sentence.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/finding.h"
#include "base/result.h"

namespace ep {

// ---- Actions: typed; data never becomes a shell string. Paths are absolute; relative ones are below
// Plan::prefix. ----
struct RunArgv {
  std::vector<std::string> argv;
  std::string cwd;
  std::map<std::string, std::string> env;  ///< added to the clean base environment
  int limit_s = 600;
};
struct WriteFile {
  std::string path, content;
  uint32_t mode = 0644;
};
struct RemoveFile {
  std::string path;
};
struct MakeLink {
  std::string path, target;
};
struct MakeDir {
  std::string path;
  uint32_t mode = 0755;
};
struct InstallPackages {
  std::vector<std::string> names;  ///< "cuda-toolkit-12-9" or "name=version"
};
struct AddAptSource {
  std::string name;  ///< file stem: sources.list.d/NAME.sources, keyrings/NAME.gpg
  std::string uri, suite, components;
  std::string key_url, key_sha256, key_fingerprint;
};
struct Fetch {
  std::string url, sha256, to;  ///< refused when the hash differs; never half used
};
struct Unpack {
  std::string archive, to;  ///< into a fresh folder, then renamed
};
struct GitCheckout {
  std::string url, commit, to;  ///< full commit id, verified after checkout
  bool submodules = false;      ///< also check out submodules, at the commits that the tree names
};
struct ApplyPatch {
  std::string patch_path, dir;  ///< applies wholly or the step fails
};
struct CMakeBuild {
  std::string source, build, install_prefix;
  std::vector<std::string> options;  ///< -DNAME=VALUE
  std::map<std::string, std::string> env;
  int limit_s = 7200;
};
struct PythonVenv {
  std::string root, python;
};
struct PipInstall {
  std::string venv;
  std::vector<std::string> requirements;  ///< "torch==2.13.0", hashes where the lock has them
  std::vector<std::string> overrides;     ///< "nvidia-nccl-cu13>=2.30.4": in force now and later
  std::string index_url;
  std::vector<std::string> extra_args;
  bool no_deps = false, no_build_isolation = false;
  std::map<std::string, std::string> env;
  int limit_s = 3600;
};
struct MergeModuleOptions {
  std::string module;                          ///< nvidia
  std::map<std::string, std::string> options;  ///< NVreg_RegistryDwords -> PeerMappingOverride=1
  std::string owned_path;                      ///< /etc/modprobe.d/epready-nvidia.conf, written whole
};
struct RefreshInitramfs {};
struct SetLimits {
  std::map<std::string, std::string> limits;  ///< memlock -> unlimited, nofile -> 1048576
};
struct Reboot {};
struct RunSelf {
  std::vector<std::string> args;  ///< epready's own engine or verify
  int limit_s = 600;
};

using Action = std::variant<RunArgv, WriteFile, RemoveFile, MakeLink, MakeDir, InstallPackages, AddAptSource,
                            Fetch, Unpack, GitCheckout, ApplyPatch, CMakeBuild, PythonVenv, PipInstall,
                            MergeModuleOptions, RefreshInitramfs, SetLimits, Reboot, RunSelf>;

/// A condition on facts, evaluated before (already satisfied?) and after (did it work?). `name` is a row of
/// plan/predicates.cpp; args are its operands. Never a shell line.
struct Predicate {
  std::string name;
  std::vector<std::string> args;
};

enum class Risk { user_files, packages, kernel_options, reboot };  ///< consent is asked per class
enum class Mark { add, change, remove, restart };                  ///< prints as + ~ - and the restart sign

struct Step {
  std::string id;         ///< stable, unique in the plan: "cuda-toolkit", "nvshmem-build"
  std::string component;  ///< data/components file it came from
  Mark mark = Mark::add;
  std::string title;                     ///< one line
  std::string why;                       ///< fact -> need, one line
  std::vector<std::string> needs_steps;  ///< ids that must be done before
  Risk risk = Risk::user_files;
  bool needs_root = false, needs_network = false;
  std::vector<Predicate> before;  ///< all true: nothing to do
  std::vector<Action> actions;
  std::vector<Predicate> after;  ///< all must be true afterwards
  std::vector<Action> undo;      ///< empty: the executor's own record (files, packages) is enough
  int estimate_s = 0;            ///< rough time, for the progress line; 0 unknown
  std::string runbook_phase;     ///< "Phase 3", for people who know the runbook
};

/// A step that the facts make unnecessary, with the reason: shown, never done.
struct SkippedStep {
  std::string id, title, reason, runbook_phase;
};

struct Plan {
  std::string schema = "epready-plan-1";
  std::string host_name, lane, stack, platform, consumer;
  std::string prefix;       ///< folder that epready owns
  std::vector<Step> steps;  ///< in an order that respects needs_steps
  std::vector<SkippedStep> skipped;
  std::vector<Finding> notes;  ///< what the user should know: risks, things that cannot be done here
  std::map<std::string, std::string> facts_used;  ///< fact -> value: drift makes apply refuse
  bool empty() const { return steps.empty(); }
};

}  // namespace ep
