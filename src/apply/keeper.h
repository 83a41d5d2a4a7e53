// Every change of a file outside the prefix goes through the keeper: it saves what was there, byte for byte,
// says so in the journal, and only then lets the tree write. Undo reads these records.
#pragma once
#include <string>

#include "apply/journal.h"
#include "apply/tree.h"
#include "base/result.h"

namespace ep {

class Keeper {
 public:
  /// `state` is PREFIX/state as a path inside the tree; originals go to state/originals/SHA256.
  Keeper(const Tree& tree, Journal& journal, std::string prefix);

  /// Makes the entry at `path` what `wanted` says (file, link or absent). Owner and mode of an existing file
  /// are kept when `keep_owner`. Returns false when it was so already.
  Result<bool> change(const std::string& path, Entry wanted, bool keep_owner = true);
  /// Makes the folder and those above it that are missing, each recorded.
  Result<> make_dirs(const std::string& path, uint32_t mode = 0755);

  bool inside_prefix(const std::string& path) const;
  const Tree& tree() const { return tree_; }

 private:
  Result<std::string> save(const Entry& entry);
  const Tree& tree_;
  Journal& journal_;
  std::string prefix_;
};

/// Digest of an entry as written in records' `now`: "file SHA256 mode uid gid", "link TARGET", "absent",
/// "directory".
std::string entry_stamp(const Entry& entry);

}  // namespace ep
