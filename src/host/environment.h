// Which environment variables matter to this stack. The recorder keeps these and no others: environments hold
// secrets.
#pragma once
#include <string_view>

namespace ep {

/// By the table of names and prefixes in environment.cpp; never for a name that says token, key, secret or
/// password.
bool is_environment_of_interest(std::string_view name);
/// Of those, the ones that facts show: not PATH, HOME and their like, which only tell where to look.
bool is_environment_setting(std::string_view name);

}  // namespace ep
