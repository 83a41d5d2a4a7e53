// What apply, status and undo conclude, as text for people and JSON for programs. Decides nothing.
#pragma once
#include <string>

#include "apply/apply.h"
#include "apply/gather.h"
#include "report/look.h"

namespace ep {

std::string apply_text(const ApplyReport& report, const Look& look);
/// {schema: epready-apply-1, tool, prefix, host, exit_code, reboot: {pending, begun}, seconds, steps: [{id,
/// title, state, reason, next, log, seconds}], findings: [...]}.
std::string apply_json(const ApplyReport& report);

std::string status_text(const StatusReport& report, const Look& look);
/// {schema: epready-status-1, tool, prefix, applied, running, begun, ended, reboot_pending, files, packages,
/// plan, steps}.
std::string status_json(const StatusReport& report);

std::string undo_text(const UndoReport& report, const Look& look);
/// {schema: epready-undo-1, tool, prefix, exit_code, items: [{state, what, reason}], reboot_advised}.
std::string undo_json(const UndoReport& report);

std::string gather_text(const GatherReport& report, const Look& look);
/// {schema: epready-fetch-1, tool, dir, exit_code, whole, files, repositories, bytes, seconds, items: [{what,
/// good, reason, next}]}.
std::string gather_json(const GatherReport& report);

/// The next command after a run: what the first step that did not end well says, else verify.
std::string next_after(const ApplyReport& report);

}  // namespace ep
