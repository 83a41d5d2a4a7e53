// Snapshots by name: a path, or sample/NAME for the hosts that travel inside the program
// (data/samples/NAME.snap).
#include "base/embedded.h"
#include "base/text.h"
#include "host/snapshot.h"

namespace ep {

namespace {

constexpr std::string_view kSampleFolder = "data/samples/", kSampleSuffix = ".snap";

Result<std::unique_ptr<Host>> sample_host(const std::string& from) {
  std::string name = from.substr(kSamplePrefix.size());
  auto text = embedded(std::string(kSampleFolder) + name + std::string(kSampleSuffix));
  if (!text) {
    auto near = closest(name, sample_names());
    return fail(ErrorKind::usage, "no sample is called " + name, from,
                "the samples are: " + join(sample_names(), ", "), near ? "--from sample/" + *near : "");
  }
  auto data = from_snap_text(*text, from);
  if (!data) return Failure(data.error());
  return host_of(std::move(*data), from);
}

}  // namespace

std::vector<std::string> sample_names() {
  std::vector<std::string> names;
  for (auto path : embedded_below(kSampleFolder))
    if (ends_with(path, kSampleSuffix))
      names.emplace_back(
          path.substr(kSampleFolder.size(), path.size() - kSampleFolder.size() - kSampleSuffix.size()));
  return names;
}

Result<std::unique_ptr<Host>> snapshot_host(const std::string& path) {
  if (starts_with(path, kSamplePrefix)) return sample_host(path);
  auto data = read_snapshot(path);
  if (!data) return Failure(data.error());
  return host_of(std::move(*data), path);
}

}  // namespace ep
