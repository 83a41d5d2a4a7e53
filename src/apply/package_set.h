// Which packages undo may take away: pure set arithmetic over what dpkg says. Knows nothing of apt.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ep {

struct InstalledPackage {
  std::string name;
  /// Each entry is one need: any of these names satisfies it (a | b), versions dropped.
  std::vector<std::vector<std::string>> needs;
  std::vector<std::string> provides;
};

/// Parses lines "name\tstatus\tdepends, pre-depends\tprovides" of dpkg-query; keeps those that are installed.
std::vector<InstalledPackage> parse_installed(std::string_view dpkg_query_output);
/// The format to ask dpkg-query for.
extern const char* const kDpkgFormat;

struct Removal {
  std::vector<std::string> remove;            ///< sorted
  std::map<std::string, std::string> needed;  ///< ours, but this other package needs it now
};
/// `ours`: packages that we brought. What a package outside of ours needs, directly or through ours, stays.
Removal packages_to_remove(const std::set<std::string>& ours, const std::vector<InstalledPackage>& installed);

/// Names of "Inst NAME ..." lines of `apt-get -s install`.
std::vector<std::string> simulated_installs(std::string_view apt_output);
std::vector<std::string> simulated_removals(std::string_view apt_output);

}  // namespace ep
