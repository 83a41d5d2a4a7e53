// The reboot step: resume unit, record, the command itself.
#pragma once
#include "apply/job.h"
#include "base/result.h"
#include "facts/facts.h"

namespace ep {

extern const char* const kResumeUnit;  ///< "epready-resume.service"

/// Writes and enables the unit that goes on after the boot (recorded, so undo knows it). Needs systemd.
Result<> write_resume_unit(Job& job, const std::set<Risk>& consent);
/// Takes it away again; fine when there is none.
Result<> remove_resume_unit(Site& site);
/// "packages,kernel,reboot" for a set.
std::string consent_words(const std::set<Risk>& consent);

/// Why a module option that the files should set is not in force in this boot. Pure.
std::vector<Finding> why_option_not_live(const Facts& facts, const std::string& module,
                                         const std::string& option, const std::string& value);

}  // namespace ep
