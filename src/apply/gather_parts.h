// One function per kind of thing that is gathered. Each can be run again: what is there and proves itself is
// kept. Internal to gather.cpp.
#pragma once
#include <string>
#include <vector>

#include "apply/gather.h"
#include "apply/job.h"

namespace ep {

/// DIR/sha256/HASH.
Result<> gather_file(const std::string& url, const std::string& sha256, const std::string& dir, Job& job);
/// DIR/sha256/HASH for a key with a hash, DIR/keys/key-NAME for one with a fingerprint; one with neither is
/// refused.
Result<> gather_key(const AddAptSource& source, const std::string& dir, Job& job);
/// A bare repository below DIR/git that holds the commit, and one for each submodule; adds them to the
/// folder.
Result<> gather_repository(const GitCheckout& checkout, OfflineFolder& folder, Job& job);
/// Packages with what they need into DIR/debs, chosen by apt from this machine's sources and the plan's, and
/// the index of that folder.
Result<> gather_packages(const InstallPackages& wanted, const Plan& plan, const GatherOptions& options,
                         Job& job);
/// What `apt-get --print-uris` names: 'address' file-name size SHA256:hash.
struct PackageFile {
  std::string url, name, sha256;  ///< sha256 is empty when the index has none
};
std::vector<PackageFile> package_files(std::string_view print_uris);
/// Wheels with what they need into DIR/wheels, chosen by pip for this machine's Python. No source
/// distributions: their build would run code that no hash stands for.
Result<> gather_wheels(const PipInstall& wanted, const std::string& python, const std::string& dir, Job& job);
/// What of a pip step comes over the network.
std::vector<std::string> downloads_of(const PipInstall& wanted);

}  // namespace ep
