// GPUs: from PCI and /proc/driver/nvidia, and from nvidia-smi where it answers. The first two suffice for a
// picture.
#include <algorithm>

#include "base/text.h"
#include "facts/parsers.h"
#include "facts/pci_ids.h"
#include "facts/reading.h"

namespace ep {

namespace {

constexpr uint64_t kMiB = 1u << 20;

// nvidia-smi writes 8 digits of domain, sysfs 4: 00000000:17:00.0.
std::string sysfs_address(std::string_view bus_id) {
  std::string a = lower(trim(bus_id));
  size_t colon = a.find(':');
  while (colon != a.npos && colon > 4 && a[0] == '0') {
    a.erase(0, 1);
    --colon;
  }
  return a;
}

Fact<std::string> smi_field(std::string_view text, const std::string& where) {
  text = trim(text);
  if (text.empty() || starts_with(text, "[") || text == "N/A")
    return absent<std::string>(where, "nvidia-smi says " + std::string(text.empty() ? "nothing" : text));
  return known(std::string(text), where);
}

std::string line_value(std::string_view text, std::string_view key) {
  for (auto line : lines(text))
    if (size_t colon = line.find(':'); colon != line.npos && trim(line.substr(0, colon)) == key)
      return std::string(trim(line.substr(colon + 1)));
  return {};
}

// What PCI and procfs tell about one GPU.
Gpu read_gpu(const Host& host, const PciDevice& d, const Fact<std::string>& smi) {
  Gpu g;
  g.address = d.address;
  g.numa_node = d.numa_node;
  std::string path = "/proc/driver/nvidia/gpus/" + d.address + "/information";
  auto text = host.read(path);
  if (text) {
    auto field = [&](const char* key) {
      std::string v = line_value(*text, key);
      if (v.empty()) return absent<std::string>(path, std::string("no line ") + key + ":");
      if (contains(v, "?")) return absent<std::string>(path, "not known before the GPU is initialised");
      return known(v, path);
    };
    g.name = field("Model");
    g.uuid = field("GPU UUID");
  } else {
    g.name = from_error<std::string>(text.error(), path);
    g.uuid = from_error<std::string>(text.error(), path);
  }
  const GpuId* id = find_gpu_id(d.device.value_or(-1));
  std::string by_id = "PCI id " + d.device.where;
  if (!g.name && id) g.name = known<std::string>(id->name, by_id);
  g.compute_capability = id ? known(id->compute_capability, by_id)
                            : absent<int>(by_id, "the table of PCI ids does not have this GPU");
  g.memory_bytes = same_trouble<uint64_t>(smi);
  g.mig_mode = g.ecc_uncorrected = same_trouble<std::string>(smi);
  g.in_use = same_trouble<bool>(smi);
  g.nvlinks_up = g.nvlinks_down = same_trouble<int>(smi);
  g.nvlink_gbps = same_trouble<double>(smi);
  g.fabric_state = g.fabric_status = g.fabric_clique = g.fabric_cluster = same_trouble<std::string>(smi);
  g.remap_pending = g.remap_failed = same_trouble<bool>(smi);
  g.recovery_action = same_trouble<std::string>(smi);
  return g;
}

void take(Gpu& g, const Gpu& from) {
  if (from.name) g.name = from.name;
  if (from.uuid) g.uuid = from.uuid;
  if (from.compute_capability) g.compute_capability = from.compute_capability;
  g.memory_bytes = from.memory_bytes;
  g.mig_mode = from.mig_mode;
  g.ecc_uncorrected = from.ecc_uncorrected;
}

void take_details(Gpu& g, const Fact<std::string>& q,
                  const std::map<std::string, std::map<std::string, std::string>>& sections) {
  auto field = [&](const char* key) -> Fact<std::string> {
    if (!q) return same_trouble<std::string>(q);
    auto section = sections.find(g.address);
    if (section == sections.end()) return absent<std::string>(q.where, "no section for this GPU");
    auto it = section->second.find(key);
    if (it == section->second.end()) return absent<std::string>(q.where, std::string("no line ") + key);
    return smi_field(it->second, q.where);
  };
  auto yes_no = [&](const char* key) -> Fact<bool> {
    auto text = field(key);
    if (!text) return same_trouble<bool>(text);
    if (*text != "Yes" && *text != "No") return malformed<bool>(text.where, "expected Yes or No");
    return known(*text == "Yes", text.where);
  };
  g.fabric_state = field("Fabric/State");
  g.fabric_status = field("Fabric/Status");
  g.fabric_clique = field("Fabric/CliqueId");
  g.fabric_cluster = field("Fabric/ClusterUUID");
  g.remap_pending = yes_no("Remapped Rows/Pending");
  g.remap_failed = yes_no("Remapped Rows/Remapping Failure Occurred");
  g.recovery_action = field("GPU Recovery Action");
}

void take_links(Gpu& g, const Fact<std::string>& nvlink) {
  if (!nvlink) {
    g.nvlinks_up = g.nvlinks_down = same_trouble<int>(nvlink);
    g.nvlink_gbps = same_trouble<double>(nvlink);
    return;
  }
  auto all = parse_smi_nvlink(*nvlink);
  auto it = all.find(g.index);
  NvlinkState s = it == all.end() ? NvlinkState{} : it->second;
  g.nvlinks_up = known(s.up, nvlink.where);
  g.nvlinks_down = known(s.down, nvlink.where);
  g.nvlink_gbps = s.up ? known(s.gbps, nvlink.where) : absent<double>(nvlink.where, "no link is up");
}

void take_processes(std::vector<Gpu>& gpus, const Fact<std::string>& apps) {
  for (auto& g : gpus) {
    if (!apps)
      g.in_use = same_trouble<bool>(apps);
    else if (!g.uuid)
      g.in_use = absent<bool>(apps.where, "the GPU's UUID is not known");
    else
      g.in_use = known(contains(*apps, *g.uuid), apps.where);
  }
}

}  // namespace

std::vector<SmiGpu> parse_smi_gpus(std::string_view csv, const std::string& where) {
  std::vector<SmiGpu> out;
  for (auto line : lines(csv)) {
    auto cell = split(line, ',');
    if (cell.size() != 9) continue;
    auto index = parse_int(trim(cell[0]));
    if (!index) continue;
    SmiGpu g;
    g.index = int(*index);
    g.gpu.name = smi_field(cell[1], where);
    g.gpu.uuid = smi_field(cell[2], where);
    g.address = sysfs_address(cell[3]);
    auto memory = parse_int(trim(cell[4]));
    g.gpu.memory_bytes = memory && *memory >= 0 ? known(uint64_t(*memory) * kMiB, where)
                                                : same_trouble<uint64_t>(smi_field(cell[4], where));
    if (!memory && g.gpu.memory_bytes.known == Known::yes)
      g.gpu.memory_bytes = malformed<uint64_t>(where, "memory.total is not a number of MiB");
    g.driver_version = trim(cell[5]);
    const double capability = parse_double(trim(cell[6])).value_or(-1);
    const bool sane = capability >= 0 && capability < 100;
    g.gpu.compute_capability =
        sane ? known(int(capability * 10 + 0.5), where) : same_trouble<int>(smi_field(cell[6], where));
    if (!sane && g.gpu.compute_capability.known == Known::yes)
      g.gpu.compute_capability = malformed<int>(where, "compute_cap is not N.N");
    g.gpu.mig_mode = smi_field(cell[7], where);
    g.gpu.ecc_uncorrected = smi_field(cell[8], where);
    out.push_back(std::move(g));
  }
  return out;
}

std::map<std::string, std::map<std::string, std::string>> parse_smi_q(std::string_view text) {
  std::map<std::string, std::map<std::string, std::string>> out;
  std::string gpu;
  std::vector<std::pair<size_t, std::string>> headings;  // indent, name
  for (auto line : lines(text)) {
    if (trim(line).empty()) continue;
    size_t indent = line.find_first_not_of(" \t");
    std::string_view body = trim(line);
    if (indent == 0 && starts_with(body, "GPU ")) {
      gpu = sysfs_address(body.substr(4));
      headings.clear();
      continue;
    }
    while (!headings.empty() && headings.back().first >= indent) headings.pop_back();
    size_t colon = body.find(" : ");
    size_t end_colon = colon == body.npos && ends_with(body, " :") ? body.size() - 2 : colon;
    if (end_colon == body.npos) {
      headings.emplace_back(indent, std::string(body));
      continue;
    }
    std::string key;
    for (const auto& h : headings) key += h.second + "/";
    key += trim(body.substr(0, end_colon));
    out[gpu].emplace(key, std::string(trim(body.substr(std::min(body.size(), end_colon + 2)))));
  }
  return out;
}

std::map<int, NvlinkState> parse_smi_nvlink(std::string_view text) {
  std::map<int, NvlinkState> out;
  NvlinkState* now = nullptr;
  for (auto line : lines(text)) {
    std::string_view body = trim(line);
    if (starts_with(body, "GPU ")) {
      auto index = parse_int(body.substr(4, body.find(':') - 4));
      now = index ? &out[int(*index)] : nullptr;
    } else if (now && starts_with(body, "Link ")) {
      auto value = trim(body.substr(std::min(body.size(), body.find(':') + 1)));
      auto words = split_ws(value);
      const double speed = words.size() == 2 && words[1] == "GB/s" ? parse_double(words[0]).value_or(-1) : -1;
      if (speed < 0) {
        ++now->down;  // "<inactive>"
      } else {
        now->gbps = now->up ? std::min(now->gbps, speed) : speed;
        ++now->up;
      }
    }
  }
  return out;
}

void read_gpus(const Reading& r, Facts& f) {
  auto csv = probe_text(r.probes.get("nvidia-smi-gpus"), "nvidia-smi-gpus");
  auto smi = csv ? parse_smi_gpus(*csv, csv.where) : std::vector<SmiGpu>{};
  for (const auto& d : f.pci)
    if (d.vendor.value_or(0) == kVendorNvidia && is_gpu_class(d.device_class.value_or(0)))
      f.gpus.push_back(read_gpu(r.host, d, csv));
  for (const auto& s : smi) {
    auto it =
        std::find_if(f.gpus.begin(), f.gpus.end(), [&](const Gpu& g) { return g.address == s.address; });
    if (it == f.gpus.end()) {  // sysfs is hidden here; the driver still answers
      PciDevice d;
      d.address = s.address;
      f.gpus.push_back(read_gpu(r.host, d, csv));
      it = f.gpus.end() - 1;
    }
    it->index = s.index;
    take(*it, s.gpu);
    if (!f.driver.version && !s.driver_version.empty()) f.driver.version = known(s.driver_version, csv.where);
  }
  // Without the tool, PCI order is the order that it would use.
  std::sort(f.gpus.begin(), f.gpus.end(), [](const Gpu& a, const Gpu& b) { return a.address < b.address; });
  if (smi.empty())
    for (size_t i = 0; i < f.gpus.size(); ++i) f.gpus[i].index = int(i);
  std::stable_sort(f.gpus.begin(), f.gpus.end(),
                   [](const Gpu& a, const Gpu& b) { return a.index < b.index; });
  if (csv) {
    auto q = probe_text(r.probes.get("nvidia-smi-q"), "nvidia-smi-q");
    auto sections = q ? parse_smi_q(*q) : std::map<std::string, std::map<std::string, std::string>>{};
    auto nvlink = probe_text(r.probes.get("nvidia-smi-nvlink"), "nvidia-smi-nvlink");
    for (auto& g : f.gpus) {
      take_details(g, q, sections);
      take_links(g, nvlink);
    }
    take_processes(f.gpus, probe_text(r.probes.get("nvidia-smi-apps"), "nvidia-smi-apps"));
  }
}

}  // namespace ep
