// Gather: one pass over a plan's actions, then the manifest.
#include "apply/gather.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "apply/actions.h"
#include "apply/executor.h"
#include "apply/gather_parts.h"
#include "apply/lock.h"
#include "base/digest.h"
#include "base/text.h"
#include "plan/plan_json.h"

namespace ep {
namespace {

namespace fs = std::filesystem;

/// Packages and wheels are this machine's choice: facts of the plan that decide them must be the same here.
std::string other_release(const Plan& plan, World& world) {
  auto now = world.facts_now(plan);
  for (const char* fact : {"os.id", "os.version", "arch"}) {
    auto wanted = plan.facts_used.find(fact);
    if (wanted == plan.facts_used.end()) continue;
    auto here = now.find(fact);
    std::string is = here == now.end() ? "unknown" : here->second;
    if (is != wanted->second)
      return fmt::format("the plan is for {} {}, and this machine has {}", fact, wanted->second, is);
  }
  return "";
}

class Gathering {
 public:
  Gathering(const Plan& plan, const GatherOptions& options, Site& site, World& world)
      : plan_(plan), options_(options), site_(site), world_(world) {
    step_.id = "fetch";
    step_.title = "gather what the plan needs";
    folder_.dir = options.dir;
    report_.dir = options.dir;
  }
  GatherReport run();

 private:
  void item(const std::string& what, const Result<>& r);
  bool stopped() const { return options_.stop && options_.stop->load(); }
  Result<> needs_same_release() const;
  void take(const Action& action, Job& job);
  void list_files();
  Result<> write_manifest();

  const Plan& plan_;
  const GatherOptions& options_;
  Site& site_;
  World& world_;
  Step step_;
  OfflineFolder folder_;
  GatherReport report_;
  std::map<std::string, std::string> from_;  // path in the folder -> address
  std::set<std::string> had_;                // what was gathered already: plans repeat themselves
  std::string other_release_, python_;
};

void Gathering::item(const std::string& what, const Result<>& r) {
  GatherItem i{redact(what), r.has_value(), {}, {}};
  if (!r) {
    const Error& e = r.error();
    i.reason = redact(Error{e.kind, e.what, e.where, e.why, {}, e.trace}.text());
    i.next = redact(e.next);
    report_.interrupted |= e.kind == ErrorKind::interrupted;
  }
  report_.items.push_back(std::move(i));
}

Result<> Gathering::needs_same_release() const {
  if (other_release_.empty()) return {};
  return fail(ErrorKind::unsupported, "packages and wheels can be gathered on the plan's own release only",
              plan_.host_name, other_release_, "run epready fetch in a container or machine of that release");
}

void Gathering::take(const Action& action, Job& job) {
  std::string dir = options_.dir;
  if (const auto* file = std::get_if<Fetch>(&action)) {
    if (!had_.insert(file->sha256).second) return;
    from_["sha256/" + lower(file->sha256)] = file->url;
    item("download " + file->url, gather_file(file->url, file->sha256, dir, job));
  } else if (const auto* source = std::get_if<AddAptSource>(&action)) {
    if (!had_.insert("source " + source->name).second) return;
    bool pinned = !source->key_sha256.empty();
    from_[pinned ? "sha256/" + lower(source->key_sha256) : "keys/key-" + source->name] = source->key_url;
    item("signing key " + source->key_url, gather_key(*source, dir, job));
  } else if (const auto* git = std::get_if<GitCheckout>(&action)) {
    if (!had_.insert(git->url + " " + git->commit).second) return;
    item("repository " + git->url + " at " + git->commit, gather_repository(*git, folder_, job));
  } else if (const auto* packages = std::get_if<InstallPackages>(&action)) {
    std::string names = join(packages->names, " ");
    if (!had_.insert("packages " + names).second) return;
    Result<> r = needs_same_release();
    if (r) r = gather_packages(*packages, plan_, options_, job);
    if (r) folder_.packages.insert(folder_.packages.end(), packages->names.begin(), packages->names.end());
    item("packages " + names, r);
  } else if (const auto* pip = std::get_if<PipInstall>(&action)) {
    auto wanted = downloads_of(*pip);
    if (wanted.empty() || !had_.insert("wheels " + join(wanted, " ")).second) return;
    Result<> r = needs_same_release();
    if (r) r = gather_wheels(*pip, python_, dir, job);
    if (r) folder_.requirements.insert(folder_.requirements.end(), wanted.begin(), wanted.end());
    item("wheels " + join(wanted, " "), r);
  }
}

/// Every finished file below the parts of the layout, with its hash as it lies on the disk now.
void Gathering::list_files() {
  for (const char* part : {"sha256", "keys", "debs", "wheels"}) {
    std::error_code none;
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(options_.dir + "/" + part, none))
      if (e.is_regular_file(none)) names.push_back(e.path().filename().string());
    std::sort(names.begin(), names.end());
    for (const auto& name : names) {
      std::string path = std::string(part) + "/" + name, real = options_.dir + "/" + path;
      if (name == "lock" || ends_with(name, ".part")) continue;
      auto digest = sha256_file(real);
      if (!digest) {
        item("file " + path, Failure(digest.error()));
        continue;
      }
      OfflineFile f{path, *digest, fs::file_size(real, none), ""};
      if (auto it = from_.find(path); it != from_.end()) f.from = redact(it->second);
      report_.bytes += f.bytes;
      folder_.files.push_back(std::move(f));
    }
  }
}

Result<> Gathering::write_manifest() {
  std::string text = plan_to_json(plan_);
  folder_.plan_sha256 = sha256_hex(text);
  folder_.host_name = plan_.host_name;
  for (auto* list : {&folder_.packages, &folder_.requirements}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  Entry entry;
  entry.kind = Entry::Kind::file;
  entry.mode = 0644;
  entry.uid = geteuid();
  entry.gid = getegid();
  entry.content = text;
  if (auto r = site_.tree.write_file(options_.dir + "/plan.json", entry); !r) return r;
  entry.content = offline_to_json(folder_);
  return site_.tree.write_file(options_.dir + "/manifest.json", entry);
}

GatherReport Gathering::run() {
  auto begun = std::chrono::steady_clock::now();
  Job job(site_, step_);
  other_release_ = other_release(plan_, world_);
  for (const auto& step : plan_.steps)
    for (const auto& action : step.actions)
      if (const auto* venv = std::get_if<PythonVenv>(&action)) python_ = venv->python;
  // Sources before packages: apt needs every repository of the plan before it resolves the first list.
  auto pass = [&](bool sources) {
    for (const auto& step : plan_.steps)
      for (const auto& action : step.actions)
        if (std::holds_alternative<AddAptSource>(action) == sources && !stopped()) take(action, job);
  };
  pass(true);
  pass(false);
  if (stopped()) report_.interrupted = true;
  list_files();
  bool good = !report_.interrupted &&
              std::all_of(report_.items.begin(), report_.items.end(), [](const auto& i) { return i.good; });
  if (good) {
    Result<> r = write_manifest();
    if (!r) item("manifest.json", r);
    report_.whole = r.has_value();
  }
  report_.num_files = int(folder_.files.size());
  report_.num_repositories = int(folder_.repositories.size());
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return std::move(report_);
}

}  // namespace

int GatherReport::exit_code() const {
  return whole ? 0 : interrupted ? 5 : 1;
}

Result<GatherReport> gather(const Plan& plan, const GatherOptions& options, Progress& progress) {
  if (auto r = check_plan(plan); !r) return Failure(r.error());
  auto tree = Tree::open("/");
  if (!tree) return Failure(tree.error());
  std::error_code error;
  for (const char* part : {"", "/sha256", "/keys", "/debs", "/wheels", "/git", "/log"})
    if (!fs::create_directories(options.dir + part, error) && error)
      return os_failure("cannot make the folder", options.dir + part, error.value());
  auto lock = PrefixLock::take(options.dir);
  if (!lock) return Failure(lock.error());
  // A folder that is being filled again is not finished; what is in it already is used after a look at its
  // hash.
  fs::remove(options.dir + "/manifest.json", error);
  if (error) return os_failure("cannot begin", options.dir + "/manifest.json", error.value());
  std::unique_ptr<World> live;
  World* world = options.world;
  if (!world) world = (live = live_world(plan.prefix)).get();
  ApplyOptions apply_options;
  apply_options.mirrors = options.mirrors;
  apply_options.stop = options.stop;
  Site site;
  site.tree = std::move(*tree);
  site.prefix = options.dir;
  site.options = &apply_options;
  site.host = world->situation();
  site.progress = &progress;
  return Gathering(plan, options, site, *world).run();
}

}  // namespace ep
