// The environment variables that EP meets, as data/variables/*.toml knows them: owner, versions, form, who
// overwrites them. What they should be on a host is plan/env.h; what is wrong with set ones is
// check/env_lint.h.
#pragma once
#include <string>
#include <vector>

#include "recipe/recipe.h"

namespace ep {

struct Variable {
  std::string name;
  std::string owner;         ///< nvshmem, nccl, deepep, vllm ...
  std::string since, until;  ///< versions of the owner, empty = always; `until` is the first without it
  /// switch, number, size, text, values, interfaces (exact names), interface-prefixes (NCCL's dialect: =
  /// exact, ^ without, else prefixes)
  std::string form;
  bool has_range = false;  ///< numbers: from min to max
  long long min = 0, max = 0;
  std::vector<std::string> values;
  std::string overwritten_by;    ///< program that sets it after the user: deepep-v1
  std::string overwritten_with;  ///< the value that it sets, when that is always the same
  Phrase note;
  std::string source;
};

struct Variables {
  std::vector<Variable> rows;                                 ///< sorted by name
  std::vector<std::pair<std::string, std::string>> prefixes;  ///< "NCCL_" -> nccl
  const Variable* find(std::string_view name) const;
  /// Owner whose prefix a name has; empty when none.
  std::string owner_of(std::string_view name) const;
  std::vector<std::string> names() const;
};

/// Errors: every mistake of the files, with file:line:column; the first is returned.
Result<Variables> load_variables(const std::string& override_dir);

/// Does the owner's `version` know the variable? Unknown version: true.
bool in_force(const Variable& v, const std::string& version);

}  // namespace ep
