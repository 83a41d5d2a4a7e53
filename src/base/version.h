// Version orders of the field. Three grammars, three functions, one range type. Pure.
#pragma once
#include <compare>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ep {

/// Which order a version string follows. `dotted`: driver 580.95.05, NVSHMEM v3.5.19-1, firmware 28.43.1014,
/// CUDA 12.9.
enum class VersionOrder { dotted, pep440, debian };

/// <0, 0, >0. Debian: deb-version(7). PEP 440: epochs, pre/post/dev, local labels. Dotted: numeric runs,
/// missing = 0, a leading v ignored, "-N" packaging suffix compared last.
int compare_versions(VersionOrder order, std::string_view a, std::string_view b);

/// NCCL integer code (2.9+: major*10000+minor*100+patch; before: major*1000+...) to "2.28.9"; source: nccl.h
/// NCCL_VERSION.
std::string nccl_version(int code);
int nccl_code(std::string_view version);  ///< 0 when not a version

/// ">=2.30.4, <3, !=2.31.0"; empty = everything. Operators: == != >= <= > < and ==X.* for prefixes.
struct VersionRange {
  VersionOrder order = VersionOrder::dotted;
  std::string text;
  bool contains(std::string_view version) const;
  static Result<VersionRange> parse(VersionOrder order, std::string_view text);
};

}  // namespace ep
