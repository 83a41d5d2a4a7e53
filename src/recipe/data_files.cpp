#include "recipe/data_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>

#include "base/embedded.h"
#include "base/text.h"

namespace ep {

Result<std::vector<DataFile>> data_files(std::string_view area, const std::string& override_dir) {
  namespace fs = std::filesystem;
  const std::string prefix = "data/" + std::string(area) + "/";
  std::map<std::string, DataFile> files;
  for (std::string_view path : embedded_below(prefix))
    if (ends_with(path, ".toml"))
      files[std::string(path)] = {std::string(path), std::string(path), std::string(*embedded(path))};
  if (!override_dir.empty()) {
    std::error_code ec;
    if (!fs::is_directory(override_dir, ec))
      return fail(ErrorKind::absent, "the data folder is not there", override_dir,
                  ec ? ec.message() : "not a folder", "epready data lint --data-dir FOLDER");
    const fs::path dir = fs::path(override_dir) / std::string(area);
    for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
      if (it->path().extension() != ".toml") continue;
      std::ifstream in(it->path(), std::ios::binary);
      if (!in) return fail(ErrorKind::unreadable, "cannot read a data file", it->path().string());
      std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      const std::string path = prefix + it->path().filename().string();
      files[path] = {path, it->path().string(), std::move(content)};
    }
  }
  std::vector<DataFile> out;
  for (auto& [path, file] : files) out.push_back(std::move(file));
  return out;
}

}  // namespace ep
