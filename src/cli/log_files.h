// Opens the logs that a user names: files, "-" for standard input, a growing file. The doctor itself opens
// nothing.
#pragma once
#include <atomic>
#include <functional>
#include <string>

#include "base/result.h"
#include "doctor/log_scan.h"
#include "doctor/sightings.h"

namespace ep {

/// "-" or a path. Errors: absent, unreadable; a directory is refused with its files as advice.
Result<LogInput> open_log(const std::string& path);
/// Never ends by itself: at the end of the file it calls `idle` and waits for more, until `stop`. A file that
/// shrinks is read again from its beginning (rotated in place).
Result<LogInput> follow_log(const std::string& path, std::function<void()> idle,
                            const std::atomic<bool>* stop);

}  // namespace ep
