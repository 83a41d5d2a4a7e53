// apply_plan: what happens before the first step and after the last one.
#include "apply/apply.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "apply/executor.h"
#include "apply/lock.h"
#include "apply/reboot.h"
#include "base/digest.h"
#include "base/text.h"
#include "plan/plan_json.h"

namespace ep {
namespace {

// Files that we make must not be writable by others, whatever the caller's umask; readable they should be,
// since users load what root built.
class Umask {
 public:
  Umask() : old_(umask(022)) {}
  ~Umask() { umask(old_); }

 private:
  mode_t old_;
};

Result<> check_host(const Plan& plan, const ApplyOptions& options, const HostSituation& host) {
  if (options.root != "/" || plan.host_name.empty() || host.host_name.empty()) return {};
  if (plan.host_name == host.host_name) return {};
  return fail(ErrorKind::usage, "this plan was made for another host", plan.host_name,
              "this one is " + host.host_name, "make one here: epready plan -o FILE");
}

/// An image shows what is installed in it, and nothing of the machine that will boot it.
Result<> check_drift(const Plan& plan, const ApplyOptions& options, World& world) {
  auto now = world.facts_now(plan);
  std::vector<std::string> drifted;
  for (const auto& [fact, value] : plan.facts_used) {
    auto it = now.find(fact);
    if (options.root != "/" && it == now.end()) continue;
    std::string today = it == now.end() ? "unknown" : it->second;
    if (today != value) drifted.push_back(fact + ": was '" + value + "', is '" + today + "'");
  }
  if (drifted.empty()) return {};
  return fail(ErrorKind::drifted, "the host has changed since this plan was made", plan.host_name,
              join(drifted, "; "), "look at what changed, then make a new plan: epready plan -o FILE");
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code none;
  for (const auto& e : std::filesystem::directory_iterator(folder, none))
    out.push_back(e.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

// Folder, lock, journal. The first record of a prefix tells undo what was there before us.
Result<PrefixLock> settle(Site& site, JournalText& past) {
  std::string state = site.prefix + "/state", journal_path = site.tree.real(state + "/journal.jsonl");
  auto there = site.tree.read(site.prefix);
  if (!there) return Failure(there.error());
  std::vector<std::string> missing;  // folders above the prefix that we make, for undo
  for (std::string p = site.prefix; p.size() > 1; p = p.substr(0, p.rfind('/'))) {
    auto e = site.tree.read(p);
    if (!e) return Failure(e.error());
    if (e->kind != Entry::Kind::absent) break;
    missing.push_back(p);
  }
  for (auto p = missing.rbegin(); p != missing.rend(); ++p)
    if (auto r = site.tree.make_dir(*p, 0755); !r) return Failure(r.error());
  auto lock = PrefixLock::take(site.tree.real(site.prefix));
  if (!lock) return lock;
  auto present = names_in(site.tree.real(site.prefix));
  for (const char* part : {"/state", "/state/originals", "/log"})
    if (auto r = site.tree.make_dir(site.prefix + part, 0700); !r) return Failure(r.error());
  auto text = read_journal(journal_path);
  if (!text) return Failure(text.error());
  past = std::move(*text);
  auto journal = Journal::open(journal_path);
  if (!journal) return Failure(journal.error());
  site.journal = std::move(*journal);
  site.keeper = std::make_unique<Keeper>(site.tree, *site.journal, site.prefix);
  bool first = std::none_of(past.records.begin(), past.records.end(),
                            [](const auto& r) { return r["e"] == "prefix"; });
  if (first) {
    // A kill between mkdir and this record leaves our own empty folders; they count as made by us.
    std::erase_if(present, [](const auto& n) { return n == "state" || n == "log"; });
    bool created = present.empty();
    std::erase(missing, site.prefix);
    auto r = site.journal->write({{"e", "prefix"},
                                  {"path", site.prefix},
                                  {"created", created},
                                  {"present", present},
                                  {"above", missing}});
    if (!r) return Failure(r.error());
  }
  return lock;
}

bool was_begun(const JournalText& past, const std::string& digest) {
  return std::any_of(past.records.begin(), past.records.end(), [&](const auto& r) {
    return r["e"] == "begin" && r.value("plan_sha256", "") == digest;
  });
}

// Where the run that is gone on with took its downloads from: without network, or from mirrors. Kept in the
// journal, which only the owner reads: addresses may hold passwords.
void go_on_from(const JournalText& past, ApplyOptions& o) {
  if (!o.resume || !o.offline_dir.empty() || !o.mirrors.empty()) return;
  for (auto r = past.records.rbegin(); r != past.records.rend(); ++r) {
    if ((*r)["e"] != "begin") continue;
    o.offline_dir = r->value("offline", "");
    o.mirrors = r->value("mirrors", std::map<std::string, std::string>());
    return;
  }
}

}  // namespace

std::string as_root(const std::string& command, const HostSituation& host) {
  return (host.is_root ? "" : host.has_sudo ? "sudo " : "as root: ") + command;
}

std::string_view to_string(StepState s) {
  switch (s) {
    case StepState::satisfied:
      return "satisfied";
    case StepState::done:
      return "done";
    case StepState::failed:
      return "failed";
    case StepState::declined:
      return "declined";
    case StepState::blocked:
      return "blocked";
    case StepState::elsewhere:
      return "elsewhere";
    case StepState::reboot:
      return "reboot";
    case StepState::interrupted:
      return "interrupted";
    case StepState::running:
      return "running";
    case StepState::not_run:
      return "not_run";
  }
  return "not_run";
}

int ApplyReport::count(StepState s) const {
  return int(std::count_if(steps.begin(), steps.end(), [&](const auto& r) { return r.state == s; }));
}

int ApplyReport::exit_code() const {
  if (interrupted || count(StepState::interrupted)) return 5;
  if (count(StepState::failed)) return 1;
  if (reboot_pending || count(StepState::reboot)) return 4;
  bool left = count(StepState::declined) || count(StepState::blocked) || count(StepState::elsewhere) ||
              count(StepState::not_run);
  return left ? 3 : 0;
}

Result<std::set<Risk>> parse_consent(std::string_view words) {
  std::set<Risk> out;
  for (auto word : split(words, ',')) {
    word = trim(word);
    if (word == "packages")
      out.insert(Risk::packages);
    else if (word == "kernel")
      out.insert(Risk::kernel_options);
    else if (word == "reboot")
      out.insert(Risk::reboot);
    else if (word == "all")
      out.insert({Risk::packages, Risk::kernel_options, Risk::reboot});
    else if (!word.empty() && word != "none" && word != "files")
      return fail(ErrorKind::usage, "not a class of consent", std::string(word),
                  "packages, kernel, reboot, all and none are known");
  }
  return out;
}

std::string default_prefix() {
  if (geteuid() == 0) return "/opt/epready";
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data && data[0] == '/') return std::string(data) + "/epready";
  const char* home = std::getenv("HOME");
  return std::string(home && home[0] == '/' ? home : "/tmp") + "/.local/share/epready";
}

Result<ApplyReport> apply_plan(const Plan& plan, const ApplyOptions& asked, Progress& progress) {
  ApplyOptions options = asked;
  if (auto r = check_plan(plan); !r) return Failure(r.error());
  std::unique_ptr<World> live;
  World* world = options.world;
  if (!world) world = (live = live_world(plan.prefix, options.root)).get();
  world->refresh();
  HostSituation host = world->situation();
  if (auto r = check_host(plan, options, host); !r) return Failure(r.error());
  if (plan.steps.empty()) {  // nothing to do: no folder, no lock, no trace
    ApplyReport report;
    report.prefix = plan.prefix;
    report.host_name = host.host_name;
    return report;
  }
  Umask private_files;
  auto tree = Tree::open(options.root);
  if (!tree) return Failure(tree.error());
  Site site;
  site.tree = std::move(*tree);
  site.prefix = plan.prefix;
  site.options = &options;
  site.host = host;
  site.progress = &progress;
  auto past_text = read_journal(site.tree.real(plan.prefix + "/state/journal.jsonl"));
  if (past_text) go_on_from(*past_text, options);
  if (!options.offline_dir.empty()) {
    auto folder = open_offline(options.offline_dir);
    if (!folder) return Failure(folder.error());
    if (auto r = check_complete(*folder, plan); !r) return Failure(r.error());
    site.offline = std::move(*folder);
  }
  std::string text = plan_to_json(plan), digest = sha256_hex(text);
  bool fresh = !options.resume && !options.may_drift;
  // A plan that was begun here has changed facts itself; from then on the predicates decide.
  if (fresh && !(past_text && was_begun(*past_text, digest)))
    if (auto r = check_drift(plan, options, *world); !r) return Failure(r.error());
  JournalText past;
  auto lock = settle(site, past);
  if (!lock) return Failure(lock.error());
  for (int line : past.torn)
    site.say(
        fmt::format("journal line {} is torn (an earlier run was cut off while writing it): skipped", line));
  auto begun = site.journal->write({{"e", "begin"},
                                    {"plan_sha256", digest},
                                    {"boot", host.boot_id},
                                    {"host", host.host_name},
                                    {"tool", EP_VERSION},
                                    {"lane", plan.lane},
                                    {"consent", consent_words(options.yes)},
                                    {"offline", options.offline_dir},
                                    {"mirrors", options.mirrors},
                                    {"pid", getpid()}});
  if (!begun) return Failure(begun.error());
  Entry saved;
  saved.kind = Entry::Kind::file;
  saved.mode = 0600;
  saved.content = text;
  if (auto r = site.keeper->change(plan.prefix + "/state/plan.json", saved); !r) return Failure(r.error());
  ApplyReport report = Executor(plan, site, *world, past).run();
  if (!report.reboot_begun)
    if (auto r = remove_resume_unit(site); !r)
      site.say("the resume unit could not be removed: " + r.error().text());
  if (auto r = site.journal->write({{"e", "end"}, {"exit", report.exit_code()}}); !r)
    site.say(r.error().text());
  return report;
}

}  // namespace ep
