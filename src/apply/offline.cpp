// Offline folder: manifest and checks.
#include "apply/offline.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "base/digest.h"
#include "base/text.h"

namespace ep {
namespace {

using Json = nlohmann::json;
constexpr const char* kSchema = "epready-offline-1";
constexpr const char* kAgain = "on a machine with network: epready fetch PLAN -o DIR";

bool sane_path(const std::string& path) {
  if (path.empty() || path[0] == '/') return false;
  for (auto part : split(path, '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

/// What a plan needs of a folder, as (path or name, what it is for).
struct Needs {
  std::set<std::string> paths, packages, requirements;
  std::vector<const GitCheckout*> checkouts;
};

Needs needs_of(const Plan& plan) {
  Needs out;
  for (const auto& step : plan.steps)
    for (const auto& action : step.actions) {
      if (const auto* a = std::get_if<Fetch>(&action)) out.paths.insert("sha256/" + lower(a->sha256));
      if (const auto* a = std::get_if<AddAptSource>(&action))
        out.paths.insert(a->key_sha256.empty() ? "keys/key-" + a->name : "sha256/" + lower(a->key_sha256));
      if (const auto* a = std::get_if<InstallPackages>(&action))
        out.packages.insert(a->names.begin(), a->names.end());
      if (const auto* a = std::get_if<GitCheckout>(&action)) out.checkouts.push_back(a);
      if (const auto* a = std::get_if<PipInstall>(&action)) {
        for (const auto* list : {&a->requirements, &a->overrides})
          for (const auto& r : *list)
            if (!is_local_requirement(r)) out.requirements.insert(r);
      }
    }
  return out;
}

}  // namespace

const OfflineFile* OfflineFolder::file(const std::string& path) const {
  for (const auto& f : files)
    if (f.path == path) return &f;
  return nullptr;
}

const OfflineRepository* OfflineFolder::repository(const std::string& url, const std::string& commit) const {
  for (const auto& r : repositories)
    if (r.url == url && r.commit == commit) return &r;
  return nullptr;
}

std::string repository_path(const std::string& url) {
  std::string name(trim(url));
  while (ends_with(name, "/")) name.pop_back();
  name = name.substr(name.find_last_of("/:") + 1);
  if (ends_with(name, ".git")) name.resize(name.size() - 4);
  std::erase_if(name, [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_' && c != '.'; });
  return "git/" + name + "-" + sha256_hex(url).substr(0, 8) + ".git";
}

bool is_local_requirement(const std::string& requirement) {
  return starts_with(requirement, "/") || starts_with(requirement, ".");
}

std::string offline_to_json(const OfflineFolder& folder) {
  Json out = {{"schema", kSchema},
              {"plan_sha256", folder.plan_sha256},
              {"host_name", folder.host_name},
              {"files", Json::array()},
              {"repositories", Json::array()},
              {"packages", folder.packages},
              {"requirements", folder.requirements}};
  for (const auto& f : folder.files)
    out["files"].push_back({{"path", f.path}, {"sha256", f.sha256}, {"bytes", f.bytes}, {"from", f.from}});
  for (const auto& r : folder.repositories)
    out["repositories"].push_back({{"url", r.url}, {"commit", r.commit}, {"path", r.path}});
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<OfflineFolder> open_offline(const std::string& dir) {
  std::string path = dir + "/manifest.json";
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(ErrorKind::absent, "not a folder that epready fetch has finished", dir,
                "it has no manifest.json", kAgain);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  OfflineFolder out;
  out.dir = dir;
  try {
    Json json = Json::parse(text);
    if (json.value("schema", "") != kSchema)
      return fail(ErrorKind::usage, "offline folder of another version", path,
                  fmt::format("expected {}, found '{}'", kSchema, json.value("schema", "")), kAgain);
    out.plan_sha256 = json.value("plan_sha256", "");
    out.host_name = json.value("host_name", "");
    out.packages = json.at("packages").get<std::vector<std::string>>();
    out.requirements = json.at("requirements").get<std::vector<std::string>>();
    for (const auto& f : json.at("files"))
      out.files.push_back(
          {f.at("path"), lower(f.at("sha256").get<std::string>()), f.at("bytes"), f.value("from", "")});
    for (const auto& r : json.at("repositories"))
      out.repositories.push_back({r.at("url"), r.at("commit"), r.at("path")});
  } catch (const Json::exception& e) {
    return fail(ErrorKind::malformed, "manifest of the offline folder cannot be read", path, e.what(),
                kAgain);
  }
  for (const auto& f : out.files)
    if (!sane_path(f.path) || !is_sha256_hex(f.sha256))
      return fail(ErrorKind::malformed, "manifest names a file that cannot be", path, f.path, kAgain);
  for (const auto& r : out.repositories)
    if (!sane_path(r.path))
      return fail(ErrorKind::malformed, "manifest names a folder that cannot be", path, r.path, kAgain);
  return out;
}

Result<> check_complete(const OfflineFolder& folder, const Plan& plan) {
  std::vector<std::string> missing;
  Needs needs = needs_of(plan);
  for (const auto& path : needs.paths)
    if (!folder.file(path)) missing.push_back(path);
  for (const auto& name : needs.packages)
    if (std::find(folder.packages.begin(), folder.packages.end(), name) == folder.packages.end())
      missing.push_back("package " + name);
  for (const auto& name : needs.requirements)
    if (std::find(folder.requirements.begin(), folder.requirements.end(), name) == folder.requirements.end())
      missing.push_back("Python package " + name);
  for (const auto* a : needs.checkouts)
    if (!folder.repository(a->url, a->commit)) missing.push_back(a->url + " at " + a->commit);
  std::error_code none;
  for (const auto& f : folder.files) {
    auto bytes = std::filesystem::file_size(folder.dir + "/" + f.path, none);
    if (none)
      missing.push_back(f.path + " (listed, and not there)");
    else if (bytes != f.bytes)
      missing.push_back(fmt::format("{} ({} of {} bytes)", f.path, bytes, f.bytes));
  }
  for (const auto& r : folder.repositories)
    if (!std::filesystem::is_directory(folder.dir + "/" + r.path, none))
      missing.push_back(r.path + " (listed, and not there)");
  if (missing.empty()) return {};
  return fail(ErrorKind::absent, "the offline folder lacks what this plan needs; nothing was begun",
              folder.dir, join(missing, "; "), kAgain);
}

Result<> check_hashes(const OfflineFolder& folder, const std::string& part) {
  std::set<std::string> listed;
  for (const auto& f : folder.files) {
    if (!starts_with(f.path, part)) continue;
    listed.insert(f.path);
    auto digest = sha256_file(folder.dir + "/" + f.path);
    if (!digest) return Failure(digest.error());
    if (*digest != f.sha256)
      return fail(ErrorKind::failed, "file of the offline folder has another SHA-256",
                  folder.dir + "/" + f.path, "expected " + f.sha256 + ", got " + *digest,
                  "it was changed after it was fetched; nothing of it was used; gather it again " +
                      std::string(kAgain));
  }
  std::error_code none;
  for (const auto& e : std::filesystem::directory_iterator(folder.dir + "/" + part, none)) {
    std::string path = part + e.path().filename().string();
    if (e.is_regular_file(none) && !listed.count(path) && e.path().filename() != "lock")
      return fail(ErrorKind::failed, "offline folder holds a file that its manifest does not list",
                  folder.dir + "/" + path, "nobody has verified it",
                  "remove it, or gather again " + std::string(kAgain));
  }
  return {};
}

}  // namespace ep
