// The NVIDIA kernel driver: version, flavour, parameters now and at next load, initial ram disk, services.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "facts/parsers.h"
#include "facts/reading.h"

namespace ep {

namespace {

const std::string kParams = "/proc/driver/nvidia/params";

// Asked for even when nothing sets them: they decide whether IBGDA can ring doorbells from the GPU.
const char* const kAlways[] = {"NVreg_EnableStreamMemOPs", "NVreg_RegistryDwords",
                               "NVreg_RegistryDwordsPerDevice"};

std::string without_quotes(std::string_view v) {
  v = trim(v);
  if (v.size() >= 2 && (v[0] == '"' || v[0] == '\'') && v.back() == v[0]) v = v.substr(1, v.size() - 2);
  return std::string(v);
}

std::string module_name(std::string_view name) {
  return replace_all(std::string(name), "-", "_");
}

// modprobe.d(5): a file hides files of the same name in later folders; what remains is read in order of file
// names.
const char* const kModprobeFolders[] = {"/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d",
                                        "/usr/lib/modprobe.d", "/lib/modprobe.d"};

// "NVreg_X=1" or "nvidia NVreg_X=1" alone: modprobe takes the first word for a command and ignores the line.
void find_strays(std::string_view text, const std::string& path, std::vector<std::string>& out) {
  int number = 0;
  bool continues = false;
  for (auto line : lines(text)) {
    ++number;
    line = trim(line);
    const bool inside = continues;
    continues = ends_with(line, "\\");
    if (inside) continue;
    const auto words = split_ws(line.substr(0, 512));
    if (words.empty() || line[0] == '#') continue;
    const bool module_first = words[0] == "nvidia" && words.size() > 1 && starts_with(words[1], "NVreg_");
    if ((starts_with(words[0], "NVreg_") || module_first) && contains(line, "="))
      out.push_back(path + ":" + std::to_string(number) + ": " + std::string(line.substr(0, 200)));
  }
}

std::vector<ModprobeOption> read_modprobe_options(const Host& host, std::string& trouble,
                                                  std::vector<std::string>& strays) {
  std::map<std::string, std::string> files;  // name -> path
  for (const char* folder : kModprobeFolders) {
    auto names = host.list(folder);
    if (!names && names.error().kind != ErrorKind::absent)
      trouble = std::string(folder) + ": " + names.error().why;
    for (const auto& name : names.value_or(std::vector<std::string>{}))
      if (ends_with(name, ".conf") || ends_with(name, ".alias"))
        files.emplace(name, std::string(folder) + "/" + name);
  }
  std::vector<ModprobeOption> out;
  // Options on the kernel command line (nvidia.NVreg_X=1) come before those of files, which therefore win.
  auto cmdline = host.read("/proc/cmdline");
  for (auto word : split_ws(text_of(cmdline))) {
    size_t dot = word.find('.'), equals = word.find('=');
    if (dot == word.npos || equals == word.npos || equals < dot) continue;
    out.push_back({module_name(word.substr(0, dot)), std::string(word.substr(dot + 1, equals - dot - 1)),
                   without_quotes(word.substr(equals + 1)), "/proc/cmdline:1"});
  }
  for (const auto& [name, path] : files) {
    auto text = host.read(path);
    if (!text) {
      if (text.error().kind != ErrorKind::absent) trouble = path + ": " + text.error().why;
      continue;
    }
    auto options = parse_modprobe_options(*text, path);
    find_strays(*text, path, strays);
    out.insert(out.end(), options.begin(), options.end());
  }
  return out;
}

Fact<std::string> live_option(const Host& host, const Result<std::string>& params, const std::string& name) {
  std::string_view key = std::string_view(name).substr(std::string_view("NVreg_").size());
  if (params)
    for (auto line : lines(*params))
      if (size_t colon = line.find(':'); colon != line.npos && trim(line.substr(0, colon)) == key)
        return known(without_quotes(line.substr(colon + 1)), kParams);
  std::string path = "/sys/module/nvidia/parameters/" + name;
  auto value = read_text(host, path);
  if (value) return value;
  if (!params) return from_error<std::string>(params.error(), kParams);
  return absent<std::string>(kParams, "no line " + std::string(key) + ":");
}

void read_options(const Reading& r, NvidiaDriver& d) {
  std::string trouble;
  auto all = read_modprobe_options(r.host, trouble, d.stray_options);
  auto params = r.host.read(kParams);
  std::set<std::string> names(std::begin(kAlways), std::end(kAlways));
  for (const auto& o : all)
    if (o.module == "nvidia" && starts_with(o.name, "NVreg_")) names.insert(o.name);
  for (const auto& name : names) {
    ModuleOption option;
    option.name = name;
    option.live = live_option(r.host, params, name);
    for (const auto& o : all)
      if (o.module == "nvidia" && o.name == name) {
        option.set_in.push_back(o.where);
        option.set_to.push_back(o.value);
        option.pending = known(o.value, o.where);  // the kernel takes the last one
      }
    if (option.set_in.empty())
      option.pending = trouble.empty() ? absent<std::string>("/etc/modprobe.d", "no options line sets it")
                                       : unreadable<std::string>("/etc/modprobe.d", trouble);
    if (name == "NVreg_RegistryDwords" && option.live) d.registry_dwords = registry_dwords_of(*option.live);
    d.options.push_back(std::move(option));
  }
}

void read_initramfs(const Reading& r, const Facts& f, NvidiaDriver& d) {
  const std::pair<const char*, const char*> tools[] = {{"/usr/sbin/update-initramfs", "update-initramfs"},
                                                       {"/usr/bin/dracut", "dracut"},
                                                       {"/usr/sbin/dracut", "dracut"},
                                                       {"/usr/bin/mkinitcpio", "mkinitcpio"}};
  d.initramfs_tool = known<std::string>("none", "/usr/sbin/update-initramfs");
  for (auto [path, name] : tools) {
    auto there = read_exists(r.host, path);
    if (there && *there) {
      d.initramfs_tool = known<std::string>(name, path);
      break;
    }
  }
  // Looking into the image takes a second or more: done where a driver or its options exist.
  bool has_options =
      std::any_of(d.options.begin(), d.options.end(), [](auto& o) { return !o.set_in.empty(); });
  if (!f.kernel.module("nvidia") && !has_options) {
    d.initramfs_has_nvidia_options =
        absent<bool>("probe initramfs", "no NVIDIA module or options on this host");
    d.initramfs_has_nvidia_module =
        absent<bool>("probe initramfs", "no NVIDIA module or options on this host");
    return;
  }
  auto listing = probe_text(r.probes.get("initramfs"), "initramfs");
  if (!listing) {
    d.initramfs_has_nvidia_options = same_trouble<bool>(listing);
    d.initramfs_has_nvidia_module = same_trouble<bool>(listing);
    return;
  }
  bool module = false, options = false;
  for (auto line : lines(*listing)) {
    std::string_view name = line.substr(line.rfind('/') == line.npos ? 0 : line.rfind('/') + 1);
    module |= starts_with(name, "nvidia.ko") || starts_with(name, "nvidia-current.ko");
    for (const auto& o : d.options)
      for (const auto& place : o.set_in)
        options |=
            ends_with("/" + place.substr(0, place.rfind(':')), "/" + std::string(line)) && !line.empty();
  }
  d.initramfs_has_nvidia_module = known(module, listing.where);
  d.initramfs_has_nvidia_options = known(options, listing.where);
}

Fact<bool> library_matches(const ProbeResult& smi) {
  const std::string where = "nvidia-smi";
  if (!smi.found) return absent<bool>(where, "not on this host");
  if (icontains(smi.out, "Driver/library version mismatch") ||
      icontains(smi.err, "Driver/library version mismatch"))
    return known(false, where);
  if (smi.exit_code == 0) return known(true, where);
  return unreadable<bool>(where, smi.why.empty() ? "exit " + std::to_string(smi.exit_code) : smi.why);
}

void read_services(const Reading& r, const Facts& f, NvidiaDriver& d) {
  auto text = probe_text(r.probes.get("systemctl"), "systemctl");
  auto units = text ? parse_systemctl(*text) : std::map<std::string, std::string>{};
  auto state = [&](const std::string& unit) -> Fact<std::string> {
    if (!text) return same_trouble<std::string>(text);
    auto it = units.find(unit);
    if (it == units.end()) return malformed<std::string>(text.where, "the answer does not name " + unit);
    return known(it->second, text.where);
  };
  d.fabric_manager = state("nvidia-fabricmanager.service");
  d.imex = state("nvidia-imex.service");
  d.fabric_manager_version = f.packages_readable
                                 ? absent<std::string>("package nvidia-fabricmanager", "not installed")
                                 : same_trouble<std::string>(f.packages_readable);
  for (const auto& p : f.packages)
    if (starts_with(p.name, "nvidia-fabricmanager") && !starts_with(p.name, "nvidia-fabricmanager-dev") &&
        contains(p.state, "installed") && !contains(p.state, "deinstall")) {
      // "580.95.05-1" and "580.95.05-0ubuntu0.24.04.1": the driver's version is before the dash.
      d.fabric_manager_version = known(p.version.substr(0, p.version.find('-')), "package " + p.name);
    }
  d.imex_channel = read_exists(r.host, "/dev/nvidia-caps-imex-channels/channel0");
}

}  // namespace

std::map<std::string, long long> registry_dwords_of(std::string_view text) {
  std::map<std::string, long long> out;
  std::string plain = without_quotes(text);
  for (auto part : split(plain, ';')) {
    size_t equals = part.find('=');
    if (equals == part.npos) continue;
    auto n = parse_int(trim(part.substr(equals + 1)));
    std::string key(trim(part.substr(0, equals)));
    if (n && !key.empty()) out[key] = *n;
  }
  return out;
}

std::vector<ModprobeOption> parse_modprobe_options(std::string_view text, const std::string& path) {
  std::vector<ModprobeOption> out;
  auto all = lines(text);
  for (size_t i = 0; i < all.size(); ++i) {
    size_t first = i;
    std::string line(all[i]);
    while (!line.empty() && line.back() == '\\' && i + 1 < all.size()) {
      line.pop_back();
      line += all[++i];
    }
    // Words end at blanks outside quotes: RegistryDwords="A=1; B=2" is one.
    std::vector<std::string> words(1);
    bool quoted = false;
    for (char c : line) {
      if (c == '"') quoted = !quoted;
      if (!quoted && (c == ' ' || c == '\t')) {
        if (!words.back().empty()) words.emplace_back();
      } else {
        words.back() += c;
      }
    }
    if (words.back().empty()) words.pop_back();
    if (words.size() < 3 || words[0] != "options") continue;  // comments and other commands
    for (size_t w = 2; w < words.size(); ++w) {
      size_t equals = words[w].find('=');
      if (equals == std::string::npos) continue;
      std::string value = words[w].substr(equals + 1);
      // Quotes around the value, or around the whole NAME="VALUE" word.
      out.push_back(
          {module_name(words[1]), std::string(trim(replace_all(words[w].substr(0, equals), "\"", ""))),
           std::string(trim(replace_all(value, "\"", ""))), path + ":" + std::to_string(first + 1)});
    }
  }
  return out;
}

NvrmVersion parse_nvrm_version(std::string_view text, const std::string& where) {
  NvrmVersion v{malformed<std::string>(where, "no line \"NVRM version:\""),
                malformed<bool>(where, "no line \"NVRM version:\"")};
  for (auto line : lines(text)) {
    if (!starts_with(line, "NVRM version:")) continue;
    v.open = known(contains(line, "Open Kernel Module"), where);
    v.version =
        malformed<std::string>(where, "no version number in \"" + std::string(line.substr(0, 120)) + "\"");
    for (auto word : split_ws(line)) {
      auto parts = split(word, '.');
      bool numeric = parts.size() >= 2 && std::all_of(parts.begin(), parts.end(), [](auto p) {
                       return !p.empty() && p.find_first_not_of("0123456789") == p.npos;
                     });
      if (numeric) {
        v.version = known(std::string(word), where);
        break;
      }
    }
    break;
  }
  return v;
}

std::map<std::string, std::string> parse_systemctl(std::string_view text) {
  std::map<std::string, std::string> out;
  std::string id, load, active;
  auto flush = [&] {
    if (!id.empty()) out[id] = load == "not-found" ? load : active;
    id = load = active = "";
  };
  for (auto line : lines(text)) {
    if (trim(line).empty()) flush();
    if (starts_with(line, "Id=")) id = line.substr(3);
    if (starts_with(line, "LoadState=")) load = line.substr(10);
    if (starts_with(line, "ActiveState=")) active = line.substr(12);
  }
  flush();
  return out;
}

void read_driver(const Reading& r, Facts& f) {
  NvidiaDriver& d = f.driver;
  const std::string path = "/proc/driver/nvidia/version";
  auto text = r.host.read(path);
  if (text) {
    auto v = parse_nvrm_version(*text, path);
    d.version = v.version;
    d.open_kernel_module = v.open;
  } else {
    d.version = read_text(r.host, "/sys/module/nvidia/version");
    if (d.version.known == Known::absent) d.version = from_error<std::string>(text.error(), path);
    d.open_kernel_module = from_error<bool>(text.error(), path);
  }
  auto q = probe_text(r.probes.get("nvidia-smi-q"), "nvidia-smi-q");
  if (q) {
    auto header = parse_smi_q(*q)[""];
    auto it = header.find("CUDA Version");
    d.cuda_version = it == header.end() ? absent<std::string>(q.where, "no line CUDA Version")
                                        : known(it->second, q.where);
  } else {
    d.cuda_version = same_trouble<std::string>(q);
  }
  d.library_matches = library_matches(r.probes.get("nvidia-smi-gpus"));
  read_options(r, d);
  read_initramfs(r, f, d);
  read_services(r, f, d);
}

}  // namespace ep
