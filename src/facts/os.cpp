// Operating system, kernel release, boot id, init.
#include "base/text.h"
#include "facts/parsers.h"
#include "facts/reading.h"

namespace ep {

namespace {

// os-release(5): NAME=value, value bare or in single or double quotes with backslash escapes.
std::string unquote(std::string_view v) {
  v = trim(v);
  if (v.size() < 2 || (v[0] != '"' && v[0] != '\'') || v.back() != v[0]) return std::string(v);
  v = v.substr(1, v.size() - 2);
  std::string out;
  for (size_t i = 0; i < v.size(); ++i) {
    if (v[i] == '\\' && i + 1 < v.size()) ++i;
    out += v[i];
  }
  return out;
}

void read_os_release(const Host& host, OsFacts& os) {
  std::string path = "/etc/os-release";
  auto text = host.read(path);
  if (!text && text.error().kind == ErrorKind::absent) text = host.read(path = "/usr/lib/os-release");
  auto field = [&](const char* key) -> Fact<std::string> {
    if (!text) return from_error<std::string>(text.error(), path);
    const auto found = os_release_field(*text, key);
    return found ? known(*found, path) : absent<std::string>(path, std::string("no line ") + key + "=");
  };
  os.id = field("ID");
  os.version_id = field("VERSION_ID");
  os.pretty_name = field("PRETTY_NAME");
  os.codename = field("VERSION_CODENAME");
}

}  // namespace

std::optional<std::string> os_release_field(std::string_view text, std::string_view key) {
  std::optional<std::string> found;
  for (auto line : lines(text))
    if (starts_with(line, key) && line.size() > key.size() && line[key.size()] == '=')
      found = unquote(line.substr(key.size() + 1));
  return found;
}

void read_os(const Reading& r, Facts& f) {
  OsFacts& os = f.os;
  read_os_release(r.host, os);
  os.kernel_release = read_text(r.host, "/proc/sys/kernel/osrelease");
  os.boot_id = read_text(r.host, "/proc/sys/kernel/random/boot_id");
  os.hostname = read_text(r.host, "/proc/sys/kernel/hostname");
  // Kernels before 6.1 do not show it in /proc.
  os.architecture = read_text(r.host, "/proc/sys/kernel/arch");
  if (!os.architecture) {
    os.architecture = probe_text(r.probes.get("uname"), "uname");
    os.architecture.value = std::string(trim(os.architecture.value));
  }
  os.libc = probe_text(r.probes.get("libc"), "libc");
  if (os.libc) {
    auto words = split_ws(*os.libc);
    if (words.size() == 2 && words[0] == "glibc")
      os.libc.value = std::string(words[1]);
    else
      os.libc = malformed<std::string>(os.libc.where, "expected \"glibc VERSION\"");
  }
  auto systemd = r.host.info("/run/systemd/system");
  if (systemd)
    os.init = known<std::string>("systemd", "/run/systemd/system");
  else if (systemd.error().kind == ErrorKind::absent)
    os.init = known<std::string>("other", "/run/systemd/system");
  else
    os.init = from_error<std::string>(systemd.error(), "/run/systemd/system");
}

}  // namespace ep
