// Whose machine it is: DMI says which cloud, without any network.
#include <algorithm>

#include "base/text.h"
#include "facts/parsers.h"
#include "facts/reading.h"

namespace ep {

namespace {

const std::string kDmi = "/sys/class/dmi/id";

struct CloudRow {
  const char* field;  ///< DMI file
  const char* text;   ///< what it contains
  const char* cloud;
};
// Strings that the clouds' firmware shows; the same that cloud-init's ds-identify looks at.
constexpr CloudRow kClouds[] = {
    {"product_name", "Google Compute Engine", "gcp"},
    {"sys_vendor", "Google", "gcp"},
    {"sys_vendor", "Amazon EC2", "aws"},
    {"chassis_asset_tag", "Amazon EC2", "aws"},
    {"chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77", "azure"},
    {"chassis_asset_tag", "OracleCloud.com", "oci"},
    {"sys_vendor", "Alibaba Cloud", "alibaba"},
    {"sys_vendor", "Tencent Cloud", "tencent"},
    {"sys_vendor", "Huawei Cloud", "huawei"},
    {"sys_vendor", "DigitalOcean", "digitalocean"},
    {"sys_vendor", "Nebius", "nebius"},
    {"product_name", "OpenStack", "openstack"},
};
constexpr const char* kVirtualProducts[] = {"Google Compute Engine",
                                            "Virtual Machine",
                                            "KVM",
                                            "VMware",
                                            "VirtualBox",
                                            "HVM domU",
                                            "Standard PC",
                                            "OpenStack",
                                            "Alibaba Cloud ECS"};

Fact<std::string> find_cloud(const Host& host, const PlatformFacts& p) {
  bool any = false;
  for (const auto& row : kClouds) {
    auto text = read_text(host, kDmi + "/" + row.field);
    any |= text.ok();
    if (text && contains(*text, row.text)) return known<std::string>(row.cloud, text.where);
  }
  if (!any) return same_trouble<std::string>(p.vendor);
  return known<std::string>("none", kDmi);
}

// A full node of these GPUs exists as one machine type only. Source: GCP's GPU machine type documentation.
struct GcpRow {
  const char* gpu;
  size_t count;
  const char* machine_type;
};
constexpr GcpRow kGcp[] = {
    {"B200", 8, "a4-highgpu-8g"}, {"H200", 8, "a3-ultragpu-8g"}, {"GB200", 4, "a4x-highgpu-4g"}};

Fact<std::string> machine_type(const Facts& f) {
  const PlatformFacts& p = f.platform;
  std::string cloud = p.cloud.value_or("");
  if (cloud == "aws" && p.product) return p.product;  // the type itself: p5.48xlarge
  if (cloud == "gcp" && !f.gpus.empty())
    for (const auto& row : kGcp)
      if (f.gpus.size() == row.count && f.gpus[0].name.value_or("") == std::string("NVIDIA ") + row.gpu)
        return known<std::string>(row.machine_type, "derived from cloud and GPUs");
  return absent<std::string>(kDmi, "the firmware does not say it");
}

Fact<bool> is_virtual(const Host& host, const PlatformFacts& p) {
  auto cpu = host.read("/proc/cpuinfo");
  for (auto line : lines(text_of(cpu)))
    if (starts_with(line, "flags")) {
      auto words = split_ws(line);
      if (std::find(words.begin(), words.end(), "hypervisor") != words.end())
        return known(true, "/proc/cpuinfo");
      break;
    }
  if (p.product)
    if (is_virtual_product(*p.product)) return known(true, p.product.where);
  if (!cpu && !p.product) return same_trouble<bool>(p.product);
  return known(false, p.product ? p.product.where : "/proc/cpuinfo");
}

/// Where gIB's installer puts its folder: in a pod that mounts it, on the node, and below a mount of the
/// node's root. Source: runbook-gcp-b200 section GKE GIB; gke docs of the RDMA installer.
Fact<std::string> gib(const Host& host) {
  Fact<std::string> out = absent<std::string>("/usr/local/gib", "not there, or empty");
  for (const char* dir : {"/usr/local/gib", "/home/kubernetes/bin/gib", "/host/home/kubernetes/bin/gib"}) {
    auto names = host.list(dir);
    if (names && !names->empty()) return known<std::string>(dir, dir);
    if (!names && names.error().kind != ErrorKind::absent && out.known == Known::absent)
      out = from_error<std::string>(names.error(), dir);
  }
  return out;
}

/// The parts of gIB that its variables name; the folder's own relative paths.
void gib_parts(const Host& host, PlatformFacts& p) {
  if (!p.gib_dir.ok()) return;
  for (const char* sub : {"configs", "lib64"}) {
    auto names = host.list(*p.gib_dir + "/" + sub);
    if (!names) continue;
    for (const auto& n : *names) p.gib_files.push_back(std::string(sub) + "/" + n);
  }
  std::sort(p.gib_files.begin(), p.gib_files.end());
}

}  // namespace

const char* cloud_of_dmi(std::string_view field, std::string_view value) {
  for (const auto& row : kClouds)
    if (field == row.field && contains(value, row.text)) return row.cloud;
  return nullptr;
}

bool is_virtual_product(std::string_view product) {
  return std::any_of(std::begin(kVirtualProducts), std::end(kVirtualProducts),
                     [&](const char* name) { return contains(product, name); });
}

Fact<std::string> machine_type_of(const Facts& f) {
  return machine_type(f);
}

void read_platform(const Reading& r, Facts& f) {
  PlatformFacts& p = f.platform;
  p.vendor = read_text(r.host, kDmi + "/sys_vendor");
  p.product = read_text(r.host, kDmi + "/product_name");
  p.cloud = find_cloud(r.host, p);
  p.virtual_machine = is_virtual(r.host, p);
  p.machine_type = machine_type(f);
  p.gib_dir = gib(r.host);
  gib_parts(r.host, p);
}

}  // namespace ep
