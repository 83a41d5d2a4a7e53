// The linter of variables: one environment a kind of mistake, and a clean one that gives nothing.
#include "check/env_lint.h"

#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace ep
