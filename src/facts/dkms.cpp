// Modules that dkms builds, from its own folder: /var/lib/dkms/NAME/VERSION/KERNEL/ARCH. Its state word is
// what `dkms status` says: added (no build), built (objects in its folder), installed (they lie in the
// kernel's tree).
#include <algorithm>

#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

const std::string kRoot = "/var/lib/dkms";

// Objects that dkms copied for this kernel: the folder depends on the distribution.
bool installed(const Host& host, const std::string& kernel, const std::vector<std::string>& objects) {
  for (const char* folder :
       {"/updates/dkms", "/extra", "/updates", "/weak-updates", "/kernel/drivers/char/drm"}) {
    auto there = names_in(host, "/lib/modules/" + kernel + folder);
    for (const auto& o : objects)
      if (std::find(there.begin(), there.end(), o) != there.end()) return true;
  }
  return false;
}

void read_version(const Host& host, const std::string& name, const std::string& version, KernelFacts& k) {
  const std::string dir = kRoot + "/" + name + "/" + version;
  DkmsModule m;
  m.name = name;
  m.version = version;
  bool built = false;
  for (const auto& kernel : names_in(host, dir)) {
    if (kernel == "source" || kernel == "build") continue;
    for (const auto& arch : names_in(host, dir + "/" + kernel)) {
      auto objects = names_in(host, dir + "/" + kernel + "/" + arch + "/module");
      if (objects.empty()) continue;
      built = true;
      m.kernel = kernel;
      m.arch = arch;
      m.state = known<std::string>(installed(host, kernel, objects) ? "installed" : "built",
                                   dir + "/" + kernel + "/" + arch);
      k.dkms.push_back(m);
    }
  }
  if (built) return;
  m.kernel = m.arch = "";
  m.state = known<std::string>("added", dir);
  k.dkms.push_back(std::move(m));
}

}  // namespace

void read_dkms(const Reading& r, Facts& f) {
  auto names = r.host.list(kRoot);
  f.kernel.dkms_readable = names ? known(true, kRoot) : from_error<bool>(names.error(), kRoot);
  if (!names) return;
  for (const auto& name : *names)
    for (const auto& version : names_in(r.host, kRoot + "/" + name))
      if (!starts_with(version, "kernel-") && !starts_with(version, "original_module"))
        read_version(r.host, name, version, f.kernel);
}

}  // namespace ep
