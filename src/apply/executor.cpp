// Executor: one pass over a plan.
#include "apply/executor.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "apply/actions.h"
#include "apply/reboot.h"
#include "base/text.h"
#include "plan/plan_json.h"

namespace ep {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kAskedAtMost = 3;
double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

int job_limit(int asked) {
  if (asked > 0) return asked;
  cpu_set_t set;
  CPU_ZERO(&set);
  int cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::clamp(cpus, 1, 4);
}

bool is_over_well(StepState s) {
  return s == StepState::satisfied || s == StepState::done;
}

}  // namespace

Executor::Executor(const Plan& plan, Site& site, World& world, const JournalText& past)
    : plan_(plan),
      site_(site),
      world_(world),
      past_(past),
      consent_(site.options->yes),
      where_(plan.steps.size(), Where::waiting) {
  report_.prefix = plan.prefix;
  report_.host_name = site.host.host_name;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    index_[plan.steps[i].id] = i;
    StepResult r;
    r.id = plan.steps[i].id;
    r.title = plan.steps[i].title;
    report_.steps.push_back(std::move(r));
  }
}

bool Executor::stopped() const {
  return site_.options->stop && site_.options->stop->load();
}

bool Executor::is_reboot(size_t i) const {
  const auto& actions = plan_.steps[i].actions;
  return std::any_of(actions.begin(), actions.end(),
                     [](const Action& a) { return std::holds_alternative<Reboot>(a); });
}

// The command that goes on with this plan, whoever gives it: root's own prefix is another one than a user's.
std::string Executor::again(const std::string& flags) const {
  std::string prefix = plan_.prefix == "/opt/epready" ? "" : " --prefix " + shell_quote(plan_.prefix);
  std::string root = site_.tree.root() == "/" ? "" : " --root " + shell_quote(site_.tree.root());
  return "epready apply --resume" + prefix + root + flags;
}

std::string Executor::again_on_host() const {
  return "epready apply --resume" +
         (plan_.prefix == "/opt/epready" ? "" : " --prefix " + shell_quote(plan_.prefix));
}

// Steps that act on, read or are proven by a running kernel. From inside an image they would reach the
// machine that the image is mounted on.
bool Executor::only_where_it_runs(const Step& step) {
  for (const auto& p : step.after)
    for (const char* of_running :
         {"driver-at-least", "nic-reaches-gpu-memory", "option-live", "rdma-named", "gdrdrv-usable"})
      if (p.name == of_running) return true;
  for (const auto& a : step.actions)
    if (const auto* self = std::get_if<RunSelf>(&a)) {
      const auto lane = std::find(self->args.begin(), self->args.end(), "--lane");
      if (lane == self->args.end() || lane + 1 == self->args.end() || *(lane + 1) != "local") return true;
    }
  return false;
}

Predicate Executor::at_mirror(Predicate p) const {
  for (auto& arg : p.args)
    if (contains(arg, "://")) arg = mirrored(arg, site_.options->mirrors);
  return p;
}

// All must hold; the first that does not, or cannot be told, gives the reason.
Outcome Executor::holds_all(const std::vector<Predicate>& predicates) {
  std::lock_guard lock(world_mutex_);
  for (const auto& p : predicates) {
    Outcome o = world_.holds(p);
    // A source that a mirror serves stands on the host under the mirror's address.
    if (Predicate there = at_mirror(p); o.verdict != Verdict::pass && there.args != p.args)
      o = world_.holds(there);
    if (o.verdict != Verdict::pass) return o;
  }
  return {Verdict::pass, {}};
}

void Executor::finish(size_t i, StepState state, std::string reason, std::string next) {
  StepResult& r = report_.steps[i];
  r.state = state;
  r.reason = redact(reason);
  if (!next.empty()) r.next = redact(next);
  where_[i] = Where::over;
  Record record = {{"e", "step"}, {"step", r.id}, {"s", std::string(to_string(state))}};
  if (!r.reason.empty()) record["reason"] = r.reason;
  if (auto w = site_.journal->write(std::move(record), Journal::Sync::later); !w) journal_broken_ = true;
  std::lock_guard lock(site_.progress_mutex);
  if (site_.progress) site_.progress->step_ended(r);
}

// Steps that an earlier run began and did not end well. Memory is never taken for a yes, but for a no it is:
// a predicate cannot see everything (an initramfs that was not built any more, an environment without its
// last files).
std::set<std::string> Executor::cut_off() const {
  std::set<std::string> out;
  for (const auto& r : past_.records) {
    std::string id = r.value("step", ""), s = r.value("s", "");
    if (r["e"] == "act") out.insert(id);
    if (r["e"] == "step" && (s == "done" || s == "satisfied")) out.erase(id);
  }
  return out;
}

// What live facts say is there already needs nothing, unless we broke off in the middle of it.
void Executor::look_first() {
  const auto cut = cut_off();
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    const auto& wanted = step.before.empty() ? step.after : step.before;
    if (cut.count(step.id) && !is_reboot(i)) continue;
    if (!wanted.empty() && holds_all(wanted).verdict == Verdict::pass) finish(i, StepState::satisfied);
  }
}

void Executor::refuse_what_is_elsewhere() {
  bool image = site_.tree.root() != "/";
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    if (where_[i] == Where::over) continue;
    const Step& step = plan_.steps[i];
    bool host_step = step.risk == Risk::kernel_options || step.risk == Risk::reboot;
    if (host_step && !site_.host.container.empty())
      finish(i, StepState::elsewhere,
             "this is a container (" + site_.host.container + "): the kernel is the host's",
             "on the host: epready apply");
    else if (image && is_reboot(i))
      finish(i, StepState::elsewhere, "an image is not running: it boots with these settings",
             "on the booted host: epready verify -r 1");
    else if (image && only_where_it_runs(step))
      finish(i, StepState::elsewhere,
             "an image is not running: kernel, names of NICs and GIDs are those of the machine that boots it",
             "on the booted host: " + again_on_host());
    else if (step.needs_root && !site_.host.is_root)
      finish(i, StepState::elsewhere, "needs root", as_root(again(), site_.host));
  }
}

void Executor::ask_consent() {
  for (Risk risk : {Risk::packages, Risk::kernel_options, Risk::reboot}) {
    std::vector<const Step*> asked;
    for (size_t i = 0; i < plan_.steps.size(); ++i)
      if (where_[i] != Where::over && plan_.steps[i].risk == risk) asked.push_back(&plan_.steps[i]);
    if (asked.empty() || consent_.count(risk)) continue;
    bool yes = site_.options->ask && site_.options->ask(risk, asked);
    if (yes) {
      consent_.insert(risk);
      continue;
    }
    if (risk == Risk::reboot) continue;  // decided when its turn comes: then it is only said, nothing is lost
    for (const Step* s : asked)
      finish(index_[s->id], StepState::declined, fmt::format("no consent for {}", to_string(risk)),
             again(" --yes=" + consent_words({risk})));
  }
}

Executor::Readiness Executor::readiness(size_t i) const {
  const Step& step = plan_.steps[i];
  bool waits = false;
  for (const auto& need : step.needs_steps) {
    size_t n = index_.at(need);
    if (where_[n] != Where::over)
      waits = true;
    else if (!is_over_well(report_.steps[n].state))
      return Readiness::blocked;
  }
  return waits ? Readiness::wait : Readiness::ready;
}

void Executor::work() {
  std::unique_lock lock(mutex_);
  std::vector<std::thread> threads;
  int limit = job_limit(site_.options->jobs);
  for (;;) {
    bool all_over = true, started = false;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      if (where_[i] != Where::over) all_over = false;
      if (where_[i] != Where::waiting) continue;
      if (journal_broken_ || stopped()) {
        if (journal_broken_)
          finish(i, StepState::failed, "the journal cannot be written, so nothing more was begun",
                 "make room or make it writable, then: " + again());
        else
          finish(i, StepState::interrupted, "interrupted", again());
        started = true;
        continue;
      }
      Readiness ready = readiness(i);
      if (ready == Readiness::blocked) {
        auto need = std::find_if(
            plan_.steps[i].needs_steps.begin(), plan_.steps[i].needs_steps.end(), [&](const auto& n) {
              return where_[index_.at(n)] == Where::over && !is_over_well(report_.steps[index_.at(n)].state);
            });
        bool after_boot = report_.steps[index_.at(*need)].state == StepState::reboot;
        finish(i, after_boot ? StepState::reboot : StepState::blocked,
               after_boot ? "comes after the reboot" : "needs " + *need);
        started = true;
        continue;
      }
      // A reboot ends everything: it waits until nothing else can run.
      if (ready == Readiness::wait || is_reboot(i) || num_running_ >= limit) continue;
      where_[i] = Where::running;
      ++num_running_;
      threads.emplace_back([this, i] { run_step(i); });
      started = true;
    }
    if (all_over) break;
    if (started) continue;
    if (num_running_ > 0) {
      changed_.wait(lock);
      continue;
    }
    auto boot = std::find_if(where_.begin(), where_.end(), [](Where w) { return w == Where::waiting; });
    size_t i = size_t(boot - where_.begin());
    where_[i] = Where::running;
    lock.unlock();
    run_reboot(i);
    lock.lock();
  }
  lock.unlock();
  for (auto& t : threads) t.join();
}

Result<> Executor::run_action(size_t s, size_t index, Job& job) {
  const Step& step = plan_.steps[s];
  const Action& action = step.actions[index];
  Record record = {{"e", "act"},
                   {"step", step.id},
                   {"i", index},
                   {"kind", std::string(action_kind(action))},
                   {"s", "started"}};
  if (auto r = site_.journal->write(record); !r) return Failure(r.error());
  auto done = perform(action, job);
  record["s"] = done ? "done" : "failed";
  if (!done) record["why"] = redact(done.error().what);
  if (auto r = site_.journal->write(record, Journal::Sync::later); !r) return Failure(r.error());
  return done;
}

Result<> Executor::run_actions(size_t i, Job& job) {
  for (size_t a = 0; a < plan_.steps[i].actions.size(); ++a) {
    if (stopped()) return fail(ErrorKind::interrupted, "interrupted", plan_.steps[i].id);
    if (auto r = run_action(i, a, job); !r) return r;
  }
  return {};
}

// A step before may have done this one's work too: wheels of many steps come in one call.
bool Executor::brought_along(size_t i) {
  const Step& step = plan_.steps[i];
  {
    std::lock_guard lock(mutex_);
    const bool any_done = std::any_of(step.needs_steps.begin(), step.needs_steps.end(), [&](const auto& n) {
      return report_.steps[index_.at(n)].state == StepState::done;
    });
    if (!any_done) return false;
  }
  const auto& wanted = step.before.empty() ? step.after : step.before;
  return !wanted.empty() && holds_all(wanted).verdict == Verdict::pass;
}

void Executor::run_step(size_t i) {
  const Step& step = plan_.steps[i];
  auto begun = Clock::now();
  if (brought_along(i)) {
    std::lock_guard lock(mutex_);
    finish(i, StepState::satisfied);
    --num_running_;
    changed_.notify_all();
    return;
  }
  Job job(site_, step);
  {
    std::lock_guard lock(site_.progress_mutex);
    if (site_.progress) site_.progress->step_started(step, i + 1, plan_.steps.size());
  }
  auto r = run_actions(i, job);
  Outcome after{Verdict::pass, {}};
  // A host that is busy with what was just done may answer late: what could not be told is asked again, and
  // never taken as true.
  for (int asked = 0; r && asked < kAskedAtMost; ++asked) {
    if (!step.after.empty()) {
      std::lock_guard lock(world_mutex_);
      world_.refresh();
    }
    after = holds_all(step.after);
    if (after.verdict != Verdict::unknown || stopped()) break;
  }
  std::lock_guard lock(mutex_);
  report_.steps[i].seconds = seconds_since(begun);
  report_.steps[i].log = job.log_path();
  if (!r && r.error().kind == ErrorKind::interrupted)
    finish(i, StepState::interrupted, "interrupted", r.error().next);
  else if (!r)
    finish(i, StepState::failed,
           Error{r.error().kind, r.error().what, r.error().where, r.error().why, {}, r.error().trace}.text(),
           r.error().next);
  else if (after.verdict != Verdict::pass)
    finish(i, StepState::failed, "its actions ran, but: " + after.reason, "less " + job.log_path());
  else
    finish(i, StepState::done);
  --num_running_;
  changed_.notify_all();
}

// A reboot was recorded in an earlier boot, and nothing that it serves has been changed since: a second one
// would change nothing either.
bool Executor::rebooted_in_vain(const Step& step) const {
  size_t at = past_.records.size();
  for (size_t i = 0; i < past_.records.size(); ++i) {
    const Record& r = past_.records[i];
    if (r["e"] == "reboot" && r.value("step", "") == step.id && r.value("boot", "") != site_.host.boot_id)
      at = i;
  }
  if (at == past_.records.size()) return false;
  for (size_t i = at; i < past_.records.size(); ++i)
    if (past_.records[i]["e"] == "step" && past_.records[i].value("s", "") == "done" &&
        past_.records[i].value("step", "") != step.id)
      return false;
  return std::none_of(report_.steps.begin(), report_.steps.end(),
                      [](const auto& r) { return r.state == StepState::done; });
}

void Executor::run_reboot(size_t i) {
  const Step& step = plan_.steps[i];
  if (rebooted_in_vain(step)) {
    Outcome after = holds_all(step.after);
    std::lock_guard world(world_mutex_);
    auto findings = world_.why_not_live(step);
    report_.findings.insert(report_.findings.end(), findings.begin(), findings.end());
    finish(i, StepState::failed, "the host was rebooted for it, and it is still not so: " + after.reason,
           findings.empty() || findings[0].fix.empty() ? "epready doctor" : findings[0].fix[0]);
    return;
  }
  report_.reboot_pending = true;
  bool consent = consent_.count(Risk::reboot) != 0;
  auto recorded = site_.journal->write(
      {{"e", "reboot"}, {"step", step.id}, {"boot", site_.host.boot_id}, {"by", consent ? "us" : "user"}});
  if (!recorded) return finish(i, StepState::failed, recorded.error().text());
  if (!consent)
    return finish(i, StepState::reboot, "a reboot is needed, and it was left to you",
                  "reboot when it suits, then: " + again());
  Job job(site_, step);
  bool resumes = site_.host.has_systemd;
  if (resumes)
    if (auto r = write_resume_unit(job, consent_); !r)
      return finish(i, StepState::failed, r.error().text(), r.error().next);
  site_.say(resumes ? "rebooting now; the plan goes on by itself after the boot (epready status shows it)"
                    : "rebooting now; afterwards run: " + again());
  if (auto r = run_actions(i, job); !r)
    return finish(i, StepState::failed, r.error().text(), "reboot by hand, then: " + again());
  report_.reboot_begun = true;
  finish(i, StepState::reboot, "the host is rebooting",
         resumes ? "it goes on by itself; epready status" : again());
}

ApplyReport Executor::run() {
  auto begun = Clock::now();
  look_first();
  refuse_what_is_elsewhere();
  ask_consent();
  work();
  report_.interrupted = std::any_of(report_.steps.begin(), report_.steps.end(),
                                    [](const auto& r) { return r.state == StepState::interrupted; });
  report_.seconds = seconds_since(begun);
  return std::move(report_);
}

Result<> check_plan(const Plan& plan) {
  if (plan.schema != Plan{}.schema)
    return fail(ErrorKind::usage, "plan of another version", plan.schema,
                "this program reads " + Plan{}.schema, "write it again: epready plan -o FILE");
  if (plan.prefix.size() < 2 || plan.prefix[0] != '/' || contains(plan.prefix, "/../") ||
      ends_with(plan.prefix, "/.."))
    return fail(ErrorKind::usage, "plan has no sane prefix", plan.prefix, "an absolute path is expected");
  std::map<std::string, int> seen;
  for (const auto& step : plan.steps) {
    bool bad_id =
        step.id.empty() ||
        step.id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
            std::string::npos ||
        step.id[0] == '.';
    if (bad_id) return fail(ErrorKind::malformed, "step has no sane id", step.id);
    if (seen.count(step.id)) return fail(ErrorKind::malformed, "two steps have one id", step.id);
    for (const auto& need : step.needs_steps)
      if (!seen.count(need))
        return fail(ErrorKind::malformed, "step needs one that does not come before it", step.id, need);
    seen[step.id] = 1;
  }
  return {};
}

}  // namespace ep
