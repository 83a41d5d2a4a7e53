// Who looks, and where there is room to install.
#include "base/text.h"
#include "facts/reading.h"

namespace ep {

void read_disks(const Reading& r, Facts& f) {
  std::vector<std::string> places{"/", "/opt", "/tmp", "/var/tmp"};
  if (starts_with(r.home(), "/") && r.home() != "/") places.push_back(r.home());
  for (const auto& path : places) {
    DiskFacts d;
    d.path = path;
    auto space = r.host.space(path);
    d.free_bytes = space ? known(space->free_bytes, path) : from_error<uint64_t>(space.error(), path);
    auto info = r.host.info(path);
    d.writable = info ? known(info->writable, path) : from_error<bool>(info.error(), path);
    f.disks.push_back(std::move(d));
  }
}

void read_user(const Reading& r, Facts& f) {
  const std::string path = "/proc/self/status";
  auto status = r.host.read(path);
  f.user.uid = status ? malformed<int>(path, "no line Uid:") : from_error<int>(status.error(), path);
  for (auto line : lines(text_of(status))) {
    auto words = split_ws(line);  // Uid: real effective saved filesystem
    if (words.size() < 3 || words[0] != "Uid:") continue;
    auto uid = parse_int(words[2]);
    if (uid && *uid >= 0) f.user.uid = known(int(*uid), path);
    break;
  }
  f.user.is_root = f.user.uid ? known(*f.user.uid == 0, path) : same_trouble<bool>(f.user.uid);
  f.user.has_sudo = read_exists(r.host, "/usr/bin/sudo");
}

}  // namespace ep
