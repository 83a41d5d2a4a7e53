// Readers of pasted outputs about the kernel and its modules: parameters of the NVIDIA driver, dkms status,
// uname, ofed_info.
#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "facts/text_host.h"
#include "host/paste.h"

namespace ep {
namespace {

// More than any host has; the rest of a longer text is not kept.
constexpr size_t kMaxDkms = 512;

bool release_word(std::string_view w) {
  return w.size() >= 5 && w[0] >= '1' && w[0] <= '9' && contains(w, ".") &&
         std::count(w.begin(), w.end(), '.') >= 1;
}

}  // namespace

std::map<std::string, long long> parse_registry_dwords(std::string_view text) {
  std::map<std::string, long long> out;
  std::string s = replace_all(std::string(text), "\"", "");
  for (auto part : split(s, ';')) {
    size_t eq = part.find('=');
    if (eq == std::string_view::npos) continue;
    auto v = parse_int(trim(part.substr(eq + 1)));
    std::string key(trim(part.substr(0, eq)));
    if (v && !key.empty()) out[key] = *v;
  }
  return out;
}

// The driver has about seventy.
constexpr size_t kMaxParams = 1024;

void read_driver_params(std::string_view text, const std::string& source, Facts& facts) {
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string key(trim(std::string_view(line).substr(0, colon)));
    const std::string_view shown = trim(std::string_view(line).substr(colon + 1));
    // Cut within the line: an open quote, or nothing at all.
    if (shown.empty() || (shown[0] == '"' && (shown.size() < 2 || shown.back() != '"'))) continue;
    std::string value = replace_all(std::string(shown), "\"", "");
    if (key.empty() || key.size() > 64 ||
        !std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isalnum(c); }))
      continue;
    if (facts.driver.options.size() >= kMaxParams) break;
    ModuleOption o;
    o.name = "NVreg_" + key;
    o.live = known(value, source);
    if (key == "RegistryDwords") facts.driver.registry_dwords = parse_registry_dwords(value);
    auto it = std::find_if(facts.driver.options.begin(), facts.driver.options.end(),
                           [&](const ModuleOption& m) { return m.name == o.name; });
    if (it == facts.driver.options.end())
      facts.driver.options.push_back(std::move(o));
    else if (!it->live.ok())
      it->live = o.live;
  }
}

// "nvidia/580.95.05, 6.8.0-79-generic, x86_64: installed", before dkms 3 "nvidia,
// 535.54.03, 5.15.0-76-generic, x86_64: installed", and without a kernel while only added.
void read_dkms_status(std::string_view text, const std::string& source, Facts& facts) {
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    size_t colon = line.rfind(": ");
    if (colon == std::string::npos || facts.kernel.dkms.size() >= kMaxDkms) continue;
    std::vector<std::string_view> f;
    for (auto part : split(std::string_view(line).substr(0, colon), ',')) f.push_back(trim(part));
    auto words = split_ws(std::string_view(line).substr(colon + 1));
    DkmsModule m;
    if (size_t slash = f[0].find('/'); slash != std::string_view::npos) {
      m.name = f[0].substr(0, slash);
      m.version = f[0].substr(slash + 1);
      f.erase(f.begin());
    } else if (f.size() >= 2) {
      m.name = f[0];
      m.version = f[1];
      f.erase(f.begin(), f.begin() + 2);
    }
    if (m.name.empty() || m.version.empty() || words.empty()) continue;
    if (!f.empty()) m.kernel = f[0];
    if (f.size() > 1) m.arch = f[1];
    m.state = known(std::string(words[0]), source);
    facts.kernel.dkms.push_back(std::move(m));
  }
  facts.kernel.dkms_readable = known(true, source);
}

void read_uname(std::string_view text, const std::string& source, Facts& facts) {
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    auto words = split_ws(line);
    // -a names the processor behind the build; -m is the word alone.
    for (auto w : words)
      if ((w == "x86_64" || w == "aarch64") && !facts.os.architecture.ok())
        facts.os.architecture = known(std::string(w), source);
    // -a: "Linux NAME RELEASE #1 SMP ...", else the release alone.
    size_t at = words.size() >= 4 && words[0] == "Linux" ? 2 : 0;
    if (words.empty() || !release_word(words[at]) || facts.os.kernel_release.ok()) continue;
    facts.os.kernel_release = known(std::string(words[at]), source);
  }
}

void read_ofed_info(std::string_view text, const std::string& source, Facts& facts) {
  std::string line = clean_pasted_line(text.substr(0, text.find('\n')));
  std::string_view v = trim(line);
  if (ends_with(v, ":")) v.remove_suffix(1);
  if (!v.empty() && !facts.ofed_version.ok()) facts.ofed_version = known(std::string(v), source);
}

}  // namespace ep
