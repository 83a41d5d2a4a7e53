// The folder that `epready fetch` fills and `apply --offline` uses: what is in it, and whether it is whole.
// Its manifest is written last, so that a folder without one is known to be unfinished. Gathering is
// gather.h's.
//   manifest.json       every file with size and SHA-256, every repository with its commit
//   plan.json           the plan that it was gathered for
//   sha256/HASH         downloads    keys/key-NAME  signing keys
//   debs/ + Packages    packages as a flat repository    wheels/  Python packages    git/*.git  repositories
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace ep {

struct OfflineFile {
  std::string path;    ///< below the folder
  std::string sha256;  ///< lower case
  uint64_t bytes = 0;
  std::string from;  ///< address, without user and password; empty for what fetch itself wrote
};
struct OfflineRepository {
  std::string url, commit;  ///< as the plan or .gitmodules names them
  std::string path;         ///< below the folder
};
struct OfflineFolder {
  std::string dir;
  std::string plan_sha256, host_name;
  std::vector<OfflineFile> files;
  std::vector<OfflineRepository> repositories;
  std::vector<std::string> packages;      ///< as InstallPackages names them
  std::vector<std::string> requirements;  ///< as PipInstall names them

  const OfflineFile* file(const std::string& path) const;
  const OfflineRepository* repository(const std::string& url, const std::string& commit) const;
};

std::string offline_to_json(const OfflineFolder& folder);
/// Reads manifest.json. Errors: absent (no folder, or fetch did not finish there), malformed.
Result<OfflineFolder> open_offline(const std::string& dir);
/// Everything that the plan needs is listed, there and of the listed size: looked at before a plan begins, so
/// that it stops before its first step and not in the middle. Error: absent, naming each thing that is
/// missing.
Result<> check_complete(const OfflineFolder& folder, const Plan& plan);
/// The SHA-256 of every listed file below `part` ("wheels/"), and no file there that is not listed. Errors:
/// failed, naming the file and both hashes.
Result<> check_hashes(const OfflineFolder& folder, const std::string& part);

/// Name of a repository in the folder: its last part and a piece of the address's hash.
std::string repository_path(const std::string& url);
/// True for a requirement of pip that is a folder or file of this host and no download.
bool is_local_requirement(const std::string& requirement);

}  // namespace ep
