#include "cli/catalogue.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "recipe/data_files.h"

namespace ep {

namespace {

Result<std::vector<DataFile>> own_files(const std::string& dir) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<DataFile> out;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".toml") continue;
    std::ifstream in(it->path(), std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    if (!in) return fail(ErrorKind::unreadable, "cannot read a problem file", it->path().string());
    out.push_back({it->path().string(), it->path().string(), text.str()});
  }
  if (error) return fail(ErrorKind::absent, "cannot list the folder of problems", dir, error.message());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return out;
}

}  // namespace

Result<Catalogue> open_catalogue(const Context& context, const std::string& own_dir) {
  auto files = data_files("problems", "");
  if (!files) return Failure(std::move(files.error()));
  std::vector<DataFile> all;
  if (!own_dir.empty()) {
    auto own = own_files(own_dir);
    if (!own) return Failure(std::move(own.error()));
    all = std::move(*own);
  }
  // The user's file of a kind stands in for ours.
  auto stem = [](const DataFile& f) { return f.path.substr(f.path.rfind('/') + 1); };
  const size_t num_own = all.size();
  for (auto& f : *files)
    if (std::none_of(all.begin(), all.begin() + long(num_own),
                     [&](const DataFile& o) { return stem(o) == stem(f); }))
      all.push_back(std::move(f));
  std::vector<Error> errors;
  Catalogue c = load_catalogue(all, errors);
  for (const Error& e : errors) context.note("epready: problem left out: " + e.text());
  if (c.problems.empty()) return fail(ErrorKind::internal, "no problem could be loaded");
  return c;
}

}  // namespace ep
