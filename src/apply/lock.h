// One run at a time in a prefix: flock on the folder itself, so nothing is left behind by a kill or power
// cut.
#pragma once
#include <string>

#include "apply/tree.h"
#include "base/result.h"

namespace ep {

class PrefixLock {
 public:
  /// `folder` must exist. Error: failed, naming the holder ("process 4711: epready apply").
  static Result<PrefixLock> take(const std::string& folder);
  /// Who holds it now; empty when nobody does.
  static std::string holder(const std::string& folder);

 private:
  Fd fd_;
};

}  // namespace ep
