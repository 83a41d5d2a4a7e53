// What undo would do to files, worked out from records and the host as it stands. Pure but for the reader it
// is given.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "apply/journal.h"
#include "apply/tree.h"
#include "base/result.h"

namespace ep {

/// The way back of one path. `records`: journal numbers that this settles.
struct WayBack {
  enum class Kind { restore, remove, nothing, changed_by_hand } kind = Kind::nothing;
  std::string path;
  Record original;  ///< the record whose old state is to be put back
  std::vector<long long> records;
  long long last = 0;  ///< number of the last record, for reverse order
  bool hand_before =
      false;  ///< somebody changed it between two of our changes: their version is what comes back
};

/// Reads an entry as it stands now.
using ReadEntry = std::function<Result<Entry>(const std::string& path)>;

/// One way back a path, in reverse order of the last change. Records already undone are left out.
Result<std::vector<WayBack>> ways_back(const std::vector<Record>& records, const ReadEntry& read);

/// Numbers of records that an "undone" record settles.
std::set<long long> undone_records(const std::vector<Record>& records);

}  // namespace ep
