// One function per kind of action. Each can be run again after a kill at any point: it looks at what is there
// first.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "apply/job.h"
#include "apply/module_options.h"
#include "base/result.h"
#include "plan/plan.h"

namespace ep {

/// Performs one action of a step (everything but Reboot, which is the executor's). Errors: any kind; nothing
/// is left half done that a second run would take for whole.
Result<> perform(const Action& action, Job& job);

// action_files.cpp
Result<> act(const WriteFile& a, Job& job);
Result<> act(const RemoveFile& a, Job& job);
Result<> act(const MakeLink& a, Job& job);
Result<> act(const MakeDir& a, Job& job);
Result<> act(const SetLimits& a, Job& job);
/// fstab with /dev/shm of this size: its line changed, other options kept, or one line more. Pure.
std::string with_shm_size(std::string_view fstab, const std::string& size);
// action_packages.cpp
Result<> act(const InstallPackages& a, Job& job);
Result<> act(const AddAptSource& a, Job& job);
// action_sources.cpp
Result<> act(const Fetch& a, Job& job);
Result<> act(const Unpack& a, Job& job);
Result<> act(const GitCheckout& a, Job& job);
Result<> act(const ApplyPatch& a, Job& job);
// action_build.cpp
Result<> act(const RunArgv& a, Job& job);
Result<> act(const CMakeBuild& a, Job& job);
Result<> act(const RunSelf& a, Job& job);
// action_python.cpp
Result<> act(const PythonVenv& a, Job& job);
Result<> act(const PipInstall& a, Job& job);
// action_kernel.cpp
Result<> act(const MergeModuleOptions& a, Job& job);
Result<> act(const RefreshInitramfs& a, Job& job);
Result<> act(const Reboot& a, Job& job);

/// Tools that build an initramfs, in the order in which they are looked for, with the call that builds it for
/// all kernels: which one the next boot takes is the boot loader's choice.
struct InitramfsTool {
  const char *path, *name;
  std::vector<std::string> argv;
};
const std::vector<InitramfsTool>& initramfs_tools();

/// Whether `NAME --version` works on the host.
bool has_program(const std::string& name, Job& job);
/// A call of which only success matters.
Result<> run_call(const Call& call, Job& job);
/// What pip or uv said, in our words and with the act that helps; other errors come back as they are.
Error explain_pip(Error e, const std::string& venv);

/// Downloads `url` with the given hash into PREFIX/cache/SHA256 and returns that path inside the tree. Takes
/// it from the cache or the offline folder when it is there. Used by Fetch and AddAptSource.
Result<std::string> fetch_to_cache(const std::string& url, const std::string& sha256, Job& job);
/// Downloads without a hash into PREFIX/cache/NAME, anew each time, for bytes that something else proves (a
/// signing key's fingerprint). Offline: the folder's keys/NAME.
Result<std::string> fetch_unpinned(const std::string& url, const std::string& name, Job& job);
/// What pip and uv use when nothing is said; named so that a mirror map can replace it.
extern const char* const kPublicIndex;
/// pip takes hashes from a file only, and for all of an install or for nothing of it.
std::vector<std::string> without_hashes(std::vector<std::string> requirements);
/// Bytes at an address into `part`, going on with what is there; nothing proves them yet.
Result<> download(const std::string& address, const std::string& part, Job& job);
/// Bytes at `url` (after the mirror map) into `part`, going on with what is there, then to `final` when they
/// have this SHA-256. Both are paths of the caller's file system. Error: failed, with both hashes; nothing
/// keeps the name.
Result<> download_verified(const std::string& url, const std::string& sha256, const std::string& part,
                           const std::string& final, Job& job);
/// Ok when the key file (path of the caller's file system) has this fingerprint.
Result<> check_fingerprint(const std::string& key_path, std::string wanted, Job& job);
/// git in a folder, without prompts, hooks and system configuration; addresses that git meets on its own
/// (submodules) go through the mirror map, or offline to the folder's repositories.
Result<Answer> run_git(const std::string& dir, std::vector<std::string> args, Job& job,
                       std::vector<int> good = {0}, bool quiet = false);
/// Full commit id: 40 lower-case hexadecimal digits.
bool is_commit(const std::string& id);
/// An address after the mirror map: the longest prefix wins.
std::string mirrored(const std::string& url, const std::map<std::string, std::string>& mirrors);
/// Lines in other files that set an option of this action (for the question of consent).
std::vector<MergedOptions::Conflict> option_conflicts(const MergeModuleOptions& a, const Site& site);
/// A command line of apt-get that waits for the locks of others; retries while lists are locked.
Result<> apt_get(std::vector<std::string> args, double limit_s, Job& job);
/// Packages that dpkg broke off with (a kill or a power cut in the middle of it), name to status:
/// half-installed (its files are gone or partly there, or dpkg's flag reinstreq), unpacked, half-configured.
Result<std::map<std::string, std::string>> unfinished_packages(Job& job);
/// True when a member name of an archive would land outside its folder.
bool escapes(std::string_view member);

}  // namespace ep
