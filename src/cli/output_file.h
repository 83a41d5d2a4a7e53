// A result written to a file that the user named: wholly or not at all.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace ep {

/// Beside the target, then renamed over it. Errors: failed, with the reason and the path.
Result<> write_output(const std::string& path, std::string_view text);

}  // namespace ep
