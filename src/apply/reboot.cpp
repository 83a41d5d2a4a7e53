// Reboot: what is written before it, so that the next boot goes on.
#include "apply/reboot.h"

#include <fmt/format.h>
#include <unistd.h>

#include "apply/actions.h"
#include "base/text.h"

namespace ep {
namespace {

const char* const kUnitPath = "/etc/systemd/system/epready-resume.service";
const char* const kWantsPath = "/etc/systemd/system/multi-user.target.wants/epready-resume.service";

std::string own_path(const Site& site) {
  if (!site.options->self.empty()) return site.options->self;
  char buf[4096];
  ssize_t n = readlink("/proc/self/exe", buf, sizeof buf);
  return n > 0 ? std::string(buf, size_t(n)) : "epready";
}

// systemd.service(5): % and $ are special in ExecStart, words may be quoted.
std::string unit_word(const std::string& word) {
  std::string out = replace_all(replace_all(word, "%", "%%"), "$", "$$");
  out = replace_all(replace_all(out, "\\", "\\\\"), "\"", "\\\"");
  return "\"" + out + "\"";
}

}  // namespace

const char* const kResumeUnit = "epready-resume.service";

std::string consent_words(const std::set<Risk>& consent) {
  std::vector<std::string> words;
  if (consent.count(Risk::packages)) words.push_back("packages");
  if (consent.count(Risk::kernel_options)) words.push_back("kernel");
  if (consent.count(Risk::reboot)) words.push_back("reboot");
  return words.empty() ? "none" : join(words, ",");
}

Result<> write_resume_unit(Job& job, const std::set<Risk>& consent) {
  Site& site = job.site();
  std::string command = unit_word(own_path(site)) + " apply --resume --prefix " + unit_word(site.prefix) +
                        " --yes=" + consent_words(consent);
  // Offline folder and mirrors are in the journal; here everybody could read their passwords.
  std::string unit = fmt::format(
      "# Written by epready before a reboot; it goes on with the plan and then takes this file away.\n"
      "[Unit]\nDescription=epready goes on after the reboot\nAfter=network-online.target "
      "systemd-modules-load.service\n"
      "Wants=network-online.target\nConditionPathExists={}/state/plan.json\n"
      "[Service]\nType=oneshot\nUMask=0022\nExecStart={}\nStandardOutput=journal+console\n"
      "StandardError=journal+console\nSuccessExitStatus=3 4\n"
      "[Install]\nWantedBy=multi-user.target\n",
      site.prefix, command);
  if (auto r = act(WriteFile{kUnitPath, unit, 0644}, job); !r) return r;
  return act(MakeLink{kWantsPath, kUnitPath}, job);
}

Result<> remove_resume_unit(Site& site) {
  for (const char* path : {kWantsPath, kUnitPath}) {
    auto there = site.tree.read(path);
    if (there && there->kind != Entry::Kind::absent)
      if (auto r = site.keeper->change(path, Entry{}); !r) return Failure(r.error());
  }
  return {};
}

Result<> act(const Reboot&, Job& job) {
  Call call;
  bool systemd = job.site().host.has_systemd;
  call.argv = systemd ? std::vector<std::string>{"systemctl", "reboot"}
                      : std::vector<std::string>{"shutdown", "-r", "now"};
  call.limit_s = 60;
  auto answer = job.call(call);
  if (!answer) return Failure(answer.error());
  return {};
}

}  // namespace ep
