// The plans of the samples in the forms that run where epready is not.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/text.h"
#include "host/host.h"
#include "plan/fact_scope.h"
#include "recipe/variables.h"
#include "render/render.h"

namespace ep {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& p) {
  std::ifstream in(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
int run(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Scratch {
  fs::path dir = fs::path(testing::TempDir()) / ("ep_forms_" + std::to_string(getpid()));
  Scratch() { fs::create_directories(dir); }
  ~Scratch() { fs::remove_all(dir); }
};

Facts sample(const char* name) {
  auto host = snapshot_host(std::string("sample/") + name);
  EXPECT_TRUE(host) << name;
  return read_facts(**host);
}

struct Rendered {
  Planned planned;
  EnvAhead env;
  RenderInput input;
};
/// As `epready plan --as` would: the plan, its environment file, the platform's lines.
std::unique_ptr<Rendered> rendered(const Facts& f, const std::string& prefix) {
  static const Recipe recipe = *load_recipe("", condition_names());
  PlanOptions o;
  o.prefix = prefix;
  auto p = make_plan(f, recipe, o);
  EXPECT_TRUE(p);
  auto out = std::make_unique<Rendered>(Rendered{std::move(*p), {}, {}});
  out->env = environment_ahead(f, out->planned, *load_variables(""), Lang::en);
  out->input = {&out->planned.plan,
                out->planned.platform ? out->planned.platform->pod : std::vector<PodLine>(), "ubuntu:24.04",
                Lang::en, &out->env};
  if (out->planned.platform) out->input.disk_image = out->planned.platform->disk_image;
  return out;
}

/// A script carries the environment file itself: it runs where epready is not. NICs are found by PCI address,
/// under the names that they have when it is written.
TEST(Forms, AScriptWritesTheEnvironmentFileWithoutEpready) {
  Scratch scratch;
  const fs::path prefix = scratch.dir / "p";
  auto r = rendered(sample("gcp-a4-fresh"), prefix);
  int n = 0;
  for (const auto& [mark, address] : r->env.nics)
    fs::create_directories(scratch.dir / "sys/bus/pci/devices" / address / "infiniband" /
                           ("mlx5_" + std::to_string(n++)));
  ASSERT_EQ(n, 8);
  for (const auto& form : {"script", "ansible", "cloud-init", "k8s", "dockerfile", "image"}) {
    const auto text = render(form, r->input);
    ASSERT_TRUE(text) << form;
    EXPECT_EQ(text->find("epready env -"), std::string::npos) << form;
    EXPECT_NE(text->find("NVSHMEM_IBGDA_NIC_HANDLER=gpu"), std::string::npos) << form;
  }
  Plan only = r->planned.plan;
  std::erase_if(only.steps, [](const Step& s) { return s.id != "env"; });
  r->input.plan = &only;
  const fs::path script = scratch.dir / "env-only.sh";
  std::ofstream(script) << render_script(r->input);
  const std::string sys = "EP_SYS=" + shell_quote((scratch.dir / "sys").string());
  ASSERT_EQ(run(sys + " sh " + shell_quote(script.string()) + " 2>/dev/null"), 0);
  const std::string env = read(prefix / "env/env.sh");
  EXPECT_NE(env.find("export DEEP_EP_DEVICE_TO_HCA_MAPPING=0:mlx5_"), std::string::npos) << env;
  EXPECT_EQ(env.find("@NIC"), std::string::npos);
  EXPECT_EQ(run("sh -eu " + shell_quote((prefix / "env/env.sh").string())), 0);
  // Another machine than the one that was planned for: nothing is written, and it says why.
  fs::remove_all(prefix);
  EXPECT_EQ(run("EP_SYS=/nowhere sh " + shell_quote(script.string()) + " 2>" +
                shell_quote((scratch.dir / "err").string())),
            1);
  EXPECT_FALSE(fs::exists(prefix / "env/env.sh"));
  EXPECT_NE(read(scratch.dir / "err").find("no RDMA device at PCI address"), std::string::npos);
}

TEST(Forms, AGoldenImageBakesAndLeavesToTheFirstBoot) {
  auto r = rendered(sample("gcp-a4-fresh"), "/opt/epready");
  const auto text = render("image", r->input);
  ASSERT_TRUE(text);
  const size_t steps = text->find("EP_STATE/deepep"),
               boot = text->find("/usr/local/sbin/epready-first-boot <<"),
               seal = text->find(": > /etc/machine-id"), cloud = text->find("gcloud compute images create");
  ASSERT_NE(cloud, std::string::npos);
  EXPECT_LT(steps, boot);
  EXPECT_LT(boot, seal);
  EXPECT_LT(seal, cloud);
  EXPECT_EQ(text->find("$EP_STATE/env\""), std::string::npos)
      << "the environment file is no part of the image";
  for (const char* want : {"grep -q '^RegistryDwords:.*PeerMappingOverride=", "ep_rdma mlx5_", "ep_nic 0000:",
                           "epready-first-boot.service", "MRDMA", "no-address", "set-instance-template"})
    EXPECT_NE(text->find(want), std::string::npos) << want;
  // The commands of the cloud are remarks: nothing of them runs on the machine.
  for (auto line : lines(*text))
    if (contains(line, "gcloud")) {
      EXPECT_EQ(line[0], '#') << line;
    }
}

/// What a first boot asks of the driver is told apart from what only looks like it.
TEST(Forms, TheFirstBootsProofMatchesTheDriversOwnLines) {
  Scratch scratch;
  auto r = rendered(sample("gcp-a4-fresh"), "/opt/epready");
  const std::string text = *render("image", r->input);
  const size_t at = text.find("grep -q '^RegistryDwords");
  const std::string test = text.substr(at, text.find(" \"${EP_PROC", at) - at);
  const auto matches = [&](const char* line) {
    std::ofstream(scratch.dir / "params") << "EnableStreamMemOPs: 0\n" << line << "\n";
    return run(test + " " + shell_quote((scratch.dir / "params").string())) == 0;
  };
  EXPECT_TRUE(matches("RegistryDwords: \"PeerMappingOverride=0x1\""));
  EXPECT_TRUE(matches("RegistryDwords: \"PeerMappingOverride=1;Other=2\""));
  EXPECT_TRUE(matches("RegistryDwords: \"Other=2;PeerMappingOverride=1;\""));
  EXPECT_FALSE(matches("RegistryDwords: \"PeerMappingOverride=0x10\""));
  EXPECT_FALSE(matches("RegistryDwords: \"PeerMappingOverride=0\""));
  EXPECT_FALSE(matches("RegistryDwords: \"\""));
}

TEST(Forms, AContainersStepsLeaveTheHostAlone) {
  auto r = rendered(sample("gcp-a4-fresh"), "/opt/epready");
  r->input.toolkit = "12.9";
  r->input.base_image = "nvidia/cuda:12.9.1-devel-ubuntu24.04";
  const std::string docker = render_dockerfile(r->input), pod = render_k8s(r->input);
  for (const auto* text : {&docker, &pod}) {
    EXPECT_EQ(text->find("ep_packages doca-ofed"), std::string::npos);
    EXPECT_EQ(text->find("epready-nvidia.conf"), std::string::npos);
    EXPECT_NE(text->find("ep_toolkit 12.9"), std::string::npos);
    EXPECT_NE(text->find("nvidia/cuda:12.9.1-devel-ubuntu24.04"), std::string::npos);
  }
}

}  // namespace
}  // namespace ep
