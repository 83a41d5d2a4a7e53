// undo_prefix: takes back what the journal records, in reverse, and says what it leaves alone.
#include "apply/undo.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "apply/actions.h"
#include "apply/lock.h"
#include "apply/package_set.h"
#include "base/text.h"
#include "plan/plan_json.h"

namespace ep {
namespace {

bool touches_boot(const std::string& path) {
  for (const char* folder : {"/etc/modprobe.d/", "/etc/initramfs-tools/", "/etc/dracut.conf.d/"})
    if (starts_with(path, folder)) return true;
  return false;
}

class Undoing {
 public:
  Undoing(Site& site, const UndoOptions& options, JournalText past)
      : site_(site), options_(options), past_(std::move(past)) {
    step_.id = "undo";
    step_.title = "take back what was applied";
  }
  Result<UndoReport> run();

 private:
  using State = UndoItem::State;
  bool dry() const { return options_.dry_run; }
  bool consent(Risk risk, const std::vector<std::string>& what);
  void item(State state, std::string what, std::string reason = {});
  Result<> settled(const std::vector<long long>& records);
  Result<> undo_steps(Job& job);
  Result<> undo_packages(Job& job);
  Result<> purge_unfinished(const std::set<std::string>& ours, Job& job);
  Result<> undo_path(const WayBack& way);
  Result<> put_back(const WayBack& way);
  Result<> undo_boot(Job& job);
  Result<> undo_folder();

  Site& site_;
  const UndoOptions& options_;
  JournalText past_;
  Step step_;
  UndoReport report_;
  std::map<Risk, bool> asked_;
  bool boot_touched_ = false, units_touched_ = false;
};

void Undoing::item(State state, std::string what, std::string reason) {
  report_.items.push_back({state, std::move(what), std::move(reason)});
}

bool Undoing::consent(Risk risk, const std::vector<std::string>& what) {
  if (dry() || options_.yes.count(risk)) return true;
  auto it = asked_.find(risk);
  if (it == asked_.end()) it = asked_.emplace(risk, options_.ask && options_.ask(risk, what)).first;
  return it->second;
}

Result<> Undoing::settled(const std::vector<long long>& records) {
  for (long long n : records)
    if (auto r = site_.journal->write({{"e", "undone"}, {"of", n}}); !r) return Failure(r.error());
  return {};
}

// Steps that brought their own way back (a service that was started, a link in a driver): last one first.
Result<> Undoing::undo_steps(Job& job) {
  auto text = site_.tree.read(site_.prefix + "/state/plan.json");
  if (!text || text->kind != Entry::Kind::file) return {};
  auto plan = plan_from_json(text->content);
  if (!plan) {
    item(State::kept, "undo actions of the plan's steps", "saved plan cannot be read: " + plan.error().what);
    return {};
  }
  std::map<std::string, std::vector<long long>> begun;
  auto undone = undone_records(past_.records);
  for (const auto& r : past_.records)
    if (r["e"] == "act" && r.value("s", "") == "started" && !undone.count(r["n"].get<long long>()))
      begun[r.value("step", "")].push_back(r["n"].get<long long>());
  for (auto step = plan->steps.rbegin(); step != plan->steps.rend(); ++step) {
    if (step->undo.empty() || !begun.count(step->id)) continue;
    std::string what = "undo of step " + step->id;
    if (dry()) {
      item(State::would, what);
      continue;
    }
    if (step->risk != Risk::user_files && !consent(step->risk, {what})) {
      item(State::kept, what, "no consent");
      continue;
    }
    Result<> r;
    for (const auto& action : step->undo)
      if (r = perform(action, job); !r) break;
    item(r ? State::done : State::failed, what, r ? "" : r.error().text());
    if (r)
      if (auto s = settled(begun[step->id]); !s) return s;
  }
  return {};
}

// What dpkg broke off with in the middle counts as installed for nobody; it goes first, so that apt can work.
Result<> Undoing::purge_unfinished(const std::set<std::string>& ours, Job& job) {
  auto unfinished = unfinished_packages(job);
  if (!unfinished) return Failure(unfinished.error());
  Call purge;
  purge.argv = {"dpkg", "--purge", "--force-remove-reinstreq", "--"};
  const size_t none = purge.argv.size();
  for (const auto& [name, status] : *unfinished)
    if (ours.count(name)) purge.argv.push_back(name);
  if (purge.argv.size() == none) return {};
  const std::string what =
      "remove half installed: " +
      join(std::vector<std::string>(purge.argv.begin() + long(none), purge.argv.end()), " ");
  if (dry()) {
    item(State::would, what);
    return {};
  }
  if (!consent(Risk::packages, {what})) {
    item(State::kept, what, "no consent (--yes=packages)");
    return {};
  }
  auto r = job.call(purge);
  item(r ? State::done : State::failed, what, r ? "" : r.error().text());
  return {};
}

Result<> Undoing::undo_packages(Job& job) {
  std::set<std::string> ours;
  std::vector<long long> records;
  auto undone = undone_records(past_.records);
  for (const auto& r : past_.records) {
    if (r["e"] != "packages" || undone.count(r["n"].get<long long>())) continue;
    records.push_back(r["n"].get<long long>());
    for (const auto& p : r.value("new", std::vector<std::string>{})) ours.insert(p);
  }
  if (ours.empty()) return {};
  if (auto r = purge_unfinished(ours, job); !r) return r;
  Call query;
  query.argv = {"dpkg-query", "-W", "-f", kDpkgFormat};
  query.quiet = true;
  query.max_out_bytes = 64u << 20;
  auto answer = job.call(query);
  if (!answer) return Failure(answer.error());
  Removal removal = packages_to_remove(ours, parse_installed(answer->out));
  for (const auto& [name, by] : removal.needed) item(State::kept, "package " + name, "needed by " + by);
  if (removal.remove.empty()) return dry() || !removal.needed.empty() ? Result<>{} : settled(records);
  std::string what = fmt::format("remove {} package{}: {}", removal.remove.size(),
                                 removal.remove.size() == 1 ? "" : "s", join(removal.remove, " "));
  if (dry()) {
    item(State::would, what);
    return {};
  }
  if (!consent(Risk::packages, removal.remove)) {
    item(State::kept, what, "no consent (--yes=packages)");
    return {};
  }
  std::vector<std::string> args = {"purge", "-y", "--"};
  args.insert(args.end(), removal.remove.begin(), removal.remove.end());
  Call simulate;
  simulate.argv = {"apt-get", "-s"};
  simulate.argv.insert(simulate.argv.end(), args.begin(), args.end());
  simulate.quiet = true;
  auto would = job.call(simulate);
  if (!would) return Failure(would.error());
  std::vector<std::string> others;
  for (const auto& name : simulated_removals(would->out))
    if (!ours.count(name)) others.push_back(name);
  if (!others.empty()) {
    item(State::kept, what, "apt would also remove " + join(others, " ") + ", which is not ours");
    return {};
  }
  auto r = apt_get(args, 3600, job);
  item(r ? State::done : State::failed, what, r ? "" : r.error().text());
  if (!r) return {};
  // What others need by now stays ours: a later undo, when they are gone, takes it.
  if (!removal.needed.empty()) {
    std::vector<std::string> kept;
    for (const auto& [name, by] : removal.needed) kept.push_back(name);
    auto w = site_.journal->write({{"e", "packages"}, {"step", "undo"}, {"named", kept}, {"new", kept}});
    if (!w) return Failure(w.error());
  }
  return settled(records);
}

Result<> Undoing::put_back(const WayBack& way) {
  const Record& r = way.original;
  if (way.kind == WayBack::Kind::remove) return site_.tree.remove(way.path);
  if (r.value("was", "") == "link") return site_.tree.write_link(way.path, r.value("target", ""));
  auto blob = site_.tree.read(site_.prefix + "/state/originals/" + r.value("blob", ""));
  if (!blob) return Failure(blob.error());
  if (blob->kind != Entry::Kind::file)
    return fail(ErrorKind::absent, "saved original is gone", way.path, r.value("blob", ""));
  Entry entry;
  entry.kind = Entry::Kind::file;
  entry.mode = r.value("mode", 0644u);
  entry.uid = r.value("uid", 0u);
  entry.gid = r.value("gid", 0u);
  entry.content = blob->content;
  return site_.tree.write_file(way.path, entry);
}

Result<> Undoing::undo_path(const WayBack& way) {
  bool remove = way.kind == WayBack::Kind::remove;
  std::string what = (remove ? "remove " : "restore ") + way.path;
  if (way.kind == WayBack::Kind::nothing) return dry() ? Result<>{} : settled(way.records);
  if (way.kind == WayBack::Kind::changed_by_hand) {
    item(State::kept, way.path, "changed by hand since: left as it is");
    return {};
  }
  bool boot = touches_boot(way.path);
  if (dry()) {
    item(State::would, what, way.hand_before ? "to the version made by hand in between" : "");
    return {};
  }
  if (boot && !consent(Risk::kernel_options, {way.path})) {
    item(State::kept, what, "no consent (--yes=kernel)");
    return {};
  }
  auto r = put_back(way);
  if (!r && remove && contains(r.error().why, "not empty")) {
    item(State::done, "folder " + way.path, "not empty: others use it now, it stays");
    return settled(way.records);
  }
  item(r ? State::done : State::failed, what,
       r ? (way.hand_before ? "to the version made by hand in between" : "") : r.error().text());
  if (!r) return {};
  boot_touched_ |= boot;
  units_touched_ |= starts_with(way.path, "/etc/systemd/");
  return settled(way.records);
}

Result<> Undoing::undo_boot(Job& job) {
  if (units_touched_ && site_.host.has_systemd && site_.tree.root() == "/") {
    Call reload;
    reload.argv = {"systemctl", "daemon-reload"};
    if (auto r = job.call(reload); !r) item(State::failed, "systemctl daemon-reload", r.error().what);
  }
  if (!boot_touched_) return {};
  auto r = act(RefreshInitramfs{}, job);
  report_.initramfs_refreshed = r.has_value();
  report_.reboot_advised = true;
  item(r ? State::done : State::failed, "refresh the initramfs", r ? "" : r.error().text());
  return {};
}

// The folder itself goes last and only when nothing is left that needs its originals.
Result<> Undoing::undo_folder() {
  const Record* first = nullptr;
  for (const auto& r : past_.records)
    if (r["e"] == "prefix" && !first) first = &r;
  bool left = std::any_of(report_.items.begin(), report_.items.end(),
                          [](const auto& i) { return i.state == State::kept || i.state == State::failed; });
  std::string what = "remove " + site_.prefix;
  if (!first) {
    item(State::kept, what, "the journal does not say that epready made it");
    return {};
  }
  if (dry()) {
    item(State::would, left ? what + " but for state and log" : what,
         left ? "they hold the originals of what is left alone" : "");
    return {};
  }
  auto present = first->value("present", std::vector<std::string>{});
  std::vector<std::string> keep = present;
  if (left) keep.insert(keep.end(), {"state", "log"});
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& e : std::filesystem::directory_iterator(site_.tree.real(site_.prefix), none))
    names.push_back(e.path().filename().string());
  // state last: until then a kill leaves a journal that a second undo can follow.
  std::stable_sort(names.begin(), names.end(),
                   [](const auto& a, const auto& b) { return (a == "state") < (b == "state"); });
  for (const auto& name : names)
    if (std::find(keep.begin(), keep.end(), name) == keep.end())
      if (auto r = site_.tree.remove_tree(site_.prefix + "/" + name); !r) {
        item(State::failed, what, r.error().text());
        return {};
      }
  if (left) {
    item(State::kept, site_.prefix + "/state", "it holds the originals of what was left alone");
    return {};
  }
  if (first->value("created", false)) {
    if (auto r = site_.tree.remove(site_.prefix); !r) {
      item(State::failed, what, r.error().text());
      return {};
    }
    for (const auto& above : first->value("above", std::vector<std::string>{}))
      if (!site_.tree.remove(above)) break;  // others use it by now
  }
  item(State::done, what, present.empty() ? "" : "what was there before stays");
  return {};
}

Result<UndoReport> Undoing::run() {
  report_.prefix = site_.prefix;
  Job job(site_, step_);
  if (auto r = undo_steps(job); !r) return Failure(r.error());
  auto ways = ways_back(past_.records, [&](const std::string& p) { return site_.tree.read(p); });
  if (!ways) return Failure(ways.error());
  long long first_packages = 0;
  for (const auto& r : past_.records)
    if (r["e"] == "packages" && !first_packages) first_packages = r["n"].get<long long>();
  // Reverse order: files that were changed after the packages came, the packages, then what stood before
  // them.
  bool packages_over = first_packages == 0;
  for (const auto& way : *ways) {
    if (!packages_over && way.last < first_packages) {
      packages_over = true;
      if (auto r = undo_packages(job); !r) return Failure(r.error());
    }
    if (auto r = undo_path(way); !r) return Failure(r.error());
  }
  if (!packages_over)
    if (auto r = undo_packages(job); !r) return Failure(r.error());
  if (!dry())
    if (auto r = undo_boot(job); !r) return Failure(r.error());
  if (auto r = undo_folder(); !r) return Failure(r.error());
  return std::move(report_);
}

}  // namespace

int UndoReport::exit_code() const {
  bool kept = false;
  for (const auto& i : items) {
    if (i.state == UndoItem::State::failed) return 1;
    kept |= i.state == UndoItem::State::kept;
  }
  return kept ? 3 : 0;
}

Result<UndoReport> undo_prefix(const std::string& prefix, const UndoOptions& options, Progress& progress) {
  auto tree = Tree::open(options.root);
  if (!tree) return Failure(tree.error());
  std::string journal_path = tree->real(prefix + "/state/journal.jsonl");
  auto text = read_journal(journal_path);
  if (!text) return Failure(text.error());
  if (text->records.empty())
    return fail(ErrorKind::absent, "nothing was applied here", prefix, "there is no journal",
                "epready status --prefix PREFIX");
  auto lock = PrefixLock::take(tree->real(prefix));
  if (!lock) return Failure(lock.error());
  std::unique_ptr<World> live;
  World* world = options.world;
  if (!world) world = (live = live_world(prefix, options.root)).get();
  ApplyOptions apply_options;
  apply_options.root = options.root;
  apply_options.stop = options.stop;
  Site site;
  site.tree = std::move(*tree);
  site.prefix = prefix;
  site.options = &apply_options;
  site.host = world->situation();
  site.progress = &progress;
  if (!options.dry_run) {
    auto journal = Journal::open(journal_path);
    if (!journal) return Failure(journal.error());
    site.journal = std::move(*journal);
    site.keeper = std::make_unique<Keeper>(site.tree, *site.journal, prefix);
  }
  return Undoing(site, options, std::move(*text)).run();
}

}  // namespace ep
