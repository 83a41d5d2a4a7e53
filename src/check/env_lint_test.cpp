// The linter of variables: one environment a kind of mistake, and a clean one that gives nothing.
#include "check/env_lint.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"

namespace ep {
namespace {

const Variables& table() {
  static const Variables v = load_variables("").value();
  return v;
}

std::vector<std::string> codes(std::map<std::string, std::string> env, std::string nvshmem = {},
                               std::string lane = {}, const Topology* t = nullptr) {
  EnvLintInput in;
  in.environment = std::move(env);
  in.nvshmem = std::move(nvshmem);
  in.lane = std::move(lane);
  in.topology = t;
  std::vector<std::string> out;
  for (const auto& f : lint_environment(in, table())) out.push_back(f.code);
  return out;
}
bool has(const std::vector<std::string>& v, const char* c) {
  return std::find(v.begin(), v.end(), c) != v.end();
}

TEST(Variables, TheTableLoadsAndIsSorted) {
  ASSERT_TRUE(load_variables("").has_value());
  EXPECT_GT(table().rows.size(), 100u);
  for (const auto& v : table().rows) {
    EXPECT_FALSE(v.source.empty()) << v.name;
    EXPECT_FALSE(v.note.zh.empty()) << v.name;
  }
}

TEST(EnvLint, ACleanEnvironmentGivesNothing) {
  EXPECT_TRUE(codes({{"NCCL_IB_HCA", "=mlx5_0:1"},
                     {"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"},
                     {"NVSHMEM_HCA_LIST", "mlx5_0:1"},
                     {"PATH", "/bin"}})
                  .empty());
}

TEST(EnvLint, TheHandlerGpuIsJudgedByTheLoadedDriver) {
  for (auto [live, wanted] :
       {std::pair<std::optional<bool>, bool>{false, true}, {true, false}, {{}, false}}) {
    EnvLintInput in;
    in.environment = {{"NVSHMEM_IBGDA_NIC_HANDLER", "gpu"}};
    in.peer_mapping_override = live;
    const auto found = lint_environment(in, table());
    EXPECT_EQ(found.size(), wanted ? 1u : 0u);
    if (!found.empty()) {
      EXPECT_EQ(found[0].severity, Severity::fail);
    }
  }
  Facts f;
  EXPECT_EQ(peer_mapping_override(f), std::nullopt);
  f.driver.options.push_back({});
  f.driver.options[0].name = "NVreg_RegistryDwords";
  f.driver.options[0].live = known<std::string>("", "/proc/driver/nvidia/params");
  EXPECT_EQ(peer_mapping_override(f), false);
  f.driver.registry_dwords["PeerMappingOverride"] = 1;
  EXPECT_EQ(peer_mapping_override(f), true);
}

TEST(EnvLint, NamesEveryKindOfMistake) {
  EXPECT_TRUE(has(codes({{"NVSHMEM_DISABLED_GDRCOPY", "1"}}), "env-misspelt"));
  EXPECT_TRUE(has(codes({{"NVSHMEM_SOMETHING_NEW_ALTOGETHER", "1"}}), "env-unknown"));
  EXPECT_TRUE(has(codes({{"NVSHMEM_REMOTE_TRANSPORT", "ibgda"}}), "env-value"));
  EXPECT_TRUE(has(codes({{"NVSHMEM_HCA_PREFIX", "rocep"}}, "3.3.24"), "env-version"));
  EXPECT_FALSE(has(codes({{"NVSHMEM_HCA_PREFIX", "rocep"}}, "3.4.5"), "env-version"));
  EXPECT_TRUE(has(codes({{"NVSHMEM_HCA_LIST", "mlx5_0:1"}}), "env-no-effect"));
  EXPECT_TRUE(has(codes({{"NVSHMEM_MAX_TEAMS", "32"}}), "env-overwritten"));
  EXPECT_FALSE(has(codes({{"NVSHMEM_MAX_TEAMS", "32"}}, "", "v2"), "env-overwritten"));
  EXPECT_TRUE(has(codes({{"NCCL_IB_DISABLE", "1"}, {"NCCL_IB_HCA", "=mlx5_0"}}), "env-contradiction"));
  EXPECT_TRUE(has(codes({{"NCCL_TUNER_CONFIG_PATH", "/x"}}), "env-contradiction"));
  EXPECT_TRUE(has(codes({{"NCCL_CUMEM_ENABLE", "0"}}), "env-danger"));
  EXPECT_FALSE(has(codes({{"NCCL_CUMEM_ENABLE", "0"}}, "", "v1"), "env-danger"));
  EXPECT_TRUE(has(codes({{"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}}), "env-danger"));
  EXPECT_TRUE(has(codes({{"LD_PRELOAD", "/opt/x/libnvshmem_host.so.3"}}), "env-danger"));
  EXPECT_FALSE(has(codes({{"EP_SIZE", "8"}}), "env-unknown"));
}

TEST(EnvLint, ChecksNamesAndIndicesAgainstTheHost) {
  Topology t;
  for (const char* n : {"mlx5_1", "mlx5_10"}) {
    TopologyNic nic;
    nic.name = n;
    nic.usable = nic.name == "mlx5_1";
    nic.role = nic.usable ? "compute" : "management";
    t.nics.push_back(nic);
  }
  t.gid.needed = true;
  t.gid.per_device["mlx5_1"] = 5;
  EXPECT_TRUE(has(codes({{"EP_NIC_NAME", "mlx5_0"}}, "", "", &t), "env-danger"));
  EXPECT_TRUE(has(codes({{"NVSHMEM_IB_GID_INDEX", "3"}}, "", "", &t), "env-danger"));
  EXPECT_FALSE(has(codes({{"NVSHMEM_IB_GID_INDEX", "5"}}, "", "", &t), "env-danger"));
  EXPECT_TRUE(has(codes({{"NCCL_IB_HCA", "mlx5_1"}}, "", "", &t), "env-danger"));
  EXPECT_FALSE(has(codes({{"NCCL_IB_HCA", "=mlx5_1"}}, "", "", &t), "env-danger"));
}

std::vector<Finding> findings(std::map<std::string, std::string> env, std::string nvshmem = {},
                              std::string nccl = {}) {
  EnvLintInput in;
  in.environment = std::move(env);
  in.nvshmem = std::move(nvshmem);
  in.nccl = std::move(nccl);
  return lint_environment(in, table());
}

// A version just below another: the last group that is not zero falls by one.
std::string below(const std::string& version) {
  auto parts = split(version, '.');
  std::vector<std::string> out(parts.begin(), parts.end());
  for (size_t i = out.size(); i-- > 0;) {
    auto n = parse_int(out[i]);
    if (n && *n > 0) {
      out[i] = std::to_string(*n - 1);
      for (size_t k = i + 1; k < out.size(); ++k) out[k] = "99";
      return join(out, ".");
    }
  }
  return "";
}

// A value that the variable takes, so that only its version is judged.
std::string good_value(const Variable& v) {
  if (v.form == "values") return v.values.front();
  return v.form == "size" ? "1G" : v.form == "text" ? "text" : "1";
}

TEST(EnvLint, EveryVariableIsJudgedByTheVersionsThatKnowIt) {
  size_t judged = 0;
  for (const auto& v : table().rows) {
    auto codes_at = [&](const std::string& version) {
      std::vector<std::string> out;
      for (const auto& f : findings({{v.name, good_value(v)}}, v.owner == "nvshmem" ? version : "",
                                    v.owner == "nccl" ? version : ""))
        out.push_back(f.code);
      return out;
    };
    if (v.owner != "nvshmem" && v.owner != "nccl") continue;
    if (!v.since.empty()) {
      EXPECT_TRUE(has(codes_at(below(v.since)), "env-version")) << v.name << " " << below(v.since);
      EXPECT_FALSE(has(codes_at(v.since), "env-version")) << v.name << " " << v.since;
      ++judged;
    }
    if (!v.until.empty()) {
      EXPECT_TRUE(has(codes_at(v.until), "env-version")) << v.name << " " << v.until;
      EXPECT_FALSE(has(codes_at(below(v.until)), "env-version")) << v.name << " " << below(v.until);
      ++judged;
    }
    EXPECT_FALSE(has(codes_at(""), "env-version")) << v.name << ": an unknown version judges nothing";
  }
  EXPECT_GT(judged, 10u);
}

TEST(EnvLint, NoSlipOfAKnownNameIsSilent) {
  for (const auto& v : table().rows) {
    if (v.name.size() < 10 || table().owner_of(v.name).empty()) continue;
    for (size_t i = v.name.find('_') + 1; i + 1 < v.name.size(); ++i) {
      std::string dropped = v.name, swapped = v.name;
      dropped.erase(i, 1);
      std::swap(swapped[i], swapped[i + 1]);
      for (const auto& slip : {dropped, swapped, v.name + "S"}) {
        if (table().find(slip) || table().owner_of(slip).empty()) continue;
        auto f = findings({{slip, "1"}});
        ASSERT_FALSE(f.empty()) << slip << " for " << v.name;
        EXPECT_TRUE(f[0].code == "env-misspelt" || f[0].code == "env-unknown") << slip;
        EXPECT_EQ(f[0].code, "env-misspelt") << slip << " for " << v.name;
      }
    }
  }
}

TEST(EnvLint, EveryFindingIsInChineseToo) {
  Topology t;
  TopologyNic nic;
  nic.name = "mlx5_1";
  nic.role = "management";
  nic.reason = {"why", "原因"};
  t.nics.push_back(nic);
  nic.name = "mlx5_10";
  t.nics.push_back(nic);
  t.gid.needed = false;
  t.strings.nccl_ib_hca = "=mlx5_1";
  EnvLintInput in;
  in.topology = &t;
  in.nvshmem = "3.2.5";
  in.environment = {{"NVSHMEM_DISABLED_GDRCOPY", "1"},
                    {"NVSHMEM_SOMETHING_NEW_ALTOGETHER", "1"},
                    {"NVSHMEM_REMOTE_TRANSPORT", "ibgda"},
                    {"NVSHMEM_HCA_PREFIX", "mlx5"},
                    {"NVSHMEM_HCA_LIST", "mlx5_0:1"},
                    {"NVSHMEM_HCA_PE_MAPPING", "mlx5_1:1:1"},
                    {"NVSHMEM_ENABLE_NIC_PE_MAPPING", "0"},
                    {"NVSHMEM_MAX_TEAMS", "many"},
                    {"NVSHMEM_SYMMETRIC_SIZE", "big"},
                    {"NVSHMEM_QP_DEPTH", "64"},
                    {"NVSHMEM_HOME", "/x"},
                    {"NVSHMEM_IB_GID_INDEX", "3"},
                    {"NVSHMEM_IB_ENABLE_IBGDA", "1"},
                    {"NVSHMEM_GPUNETIO_ENABLE_GDAKI", "1"},
                    {"NVSHMEM_IBGDA_NIC_HANDLER", "cpu_host_memory"},
                    {"NCCL_IB_DISABLE", "1"},
                    {"NCCL_IB_HCA", "mlx5_1"},
                    {"NCCL_P2P_DISABLE", "1"},
                    {"NCCL_CUMEM_ENABLE", "0"},
                    {"NCCL_TUNER_CONFIG_PATH", "/x"},
                    {"NCCL_NET_PLUGIN", "none"},
                    {"NVSHMEM_IB_ADDR_FAMILY", "AF_INET"},
                    {"NCCL_IB_ADDR_FAMILY", "AF_INET6"},
                    {"EP_SUPPRESS_NCCL_CHECK", "1"},
                    {"LD_PRELOAD", "libnvshmem_host.so"}};
  auto all = lint_environment(in, table());
  EXPECT_GT(all.size(), 18u);
  for (const auto& f : all) {
    EXPECT_TRUE(std::any_of(f.title_zh.begin(), f.title_zh.end(),
                            [](unsigned char c) { return c >= 0xe4 && c <= 0xe9; }))
        << f.code << ": " << f.title;
    EXPECT_EQ(f.cause.empty(), f.cause_zh.empty()) << f.title;
  }
}

}  // namespace
}  // namespace ep
