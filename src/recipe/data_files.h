// Where the files below data/ and docs/commands/ come from: compiled into the program, or a folder that
// stands in for them
// (--data-dir, EPREADY_DATA), file by file: what the folder lacks is taken from the program. Reads the
// program's own knowledge, never the machine that is looked at.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ep {

struct DataFile {
  std::string path;   ///< as in the repository: data/stacks/v2-vllm.toml
  std::string shown;  ///< what errors call it: the same, or the real path of the override
  std::string content;
};

/// Every *.toml below data/AREA/ ("components", "stacks", "platforms", "problems", "baselines"), sorted by
/// path. `override` empty: the embedded ones only. Errors: the override folder cannot be read.
Result<std::vector<DataFile>> data_files(std::string_view area, const std::string& override_dir);

}  // namespace ep
