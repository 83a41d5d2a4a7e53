// The linter of variables against hosts: the faults that the command is for, on sample hosts and on built
// ones.
#include "check/env_lint.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "host/host.h"

namespace ep {
namespace {

using Env = std::map<std::string, std::string>;

const Variables& table() {
  static const Variables v = load_variables("").value();
  return v;
}

struct Machine {
  Facts facts;
  Topology topology;
  explicit Machine(const std::string& sample) {
    auto host = open_host("sample/" + sample);
    EXPECT_TRUE(host.has_value()) << sample;
    if (host) facts = read_facts(**host);
    topology = read_topology(facts);
  }
  std::vector<Finding> lint(Env env, const std::string& lane = "", const std::string& nvshmem = "") const {
    EnvLintInput in;
    in.environment = std::move(env);
    in.lane = lane;
    in.nvshmem = nvshmem;
    in.topology = &topology;
    in.facts = &facts;
    in.peer_mapping_override = peer_mapping_override(facts);
    return lint_environment(in, table());
  }
};

const Machine& b200() {
  static const Machine m("gcp-a4-done");
  return m;
}

std::string shown(const std::vector<Finding>& all) {
  std::string out;
  for (const auto& f : all) {
    out += std::string(to_string(f.severity)) + " " + f.code + ": " + f.title;
    for (const auto& x : f.fix) out += " -> " + x;
    out += "\n";
  }
  return out;
}

const std::string kAll = "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1";

/// A finding of this severity whose sentence holds all of these words.
bool says(const std::vector<Finding>& all, Severity severity, std::vector<std::string> words) {
  return std::any_of(all.begin(), all.end(), [&](const Finding& f) {
    return f.severity == severity && std::all_of(words.begin(), words.end(), [&](const std::string& w) {
             return contains(f.title, w) && !f.title_zh.empty();
           });
  });
}

struct Fault {
  const char* what;
  Env env;
  std::vector<std::string> words;
  Severity severity = Severity::fail;
  std::string lane = "";
};

TEST(EnvLintHost, TheFaultsThatTheCommandIsForAreNamed) {
  const std::vector<Fault> faults = {
      {"problem 3 of the runbook",
       {{"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}, {"NVSHMEM_HCA_LIST", kAll}},
       {"all GPUs", "mlx5_0", "8 NICs"}},
      {"the same by a count for each PE",
       {{"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}, {"NVSHMEM_HCA_PE_MAPPING", "mlx5_0:1:1,mlx5_1:1:1"}},
       {"all GPUs", "mlx5_0", "2 NICs"}},
      {"the same by exclusion",
       {{"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}, {"NVSHMEM_HCA_LIST", "^mlx5_0"}},
       {"all GPUs", "mlx5_1"}},
      {"the switch alone", {{"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}}, {"without a list"}},
      {"one NIC for the whole host",
       {{"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}, {"NVSHMEM_HCA_LIST", "mlx5_3:1"}},
       {"mlx5_3 alone"},
       Severity::warn},
      {"two GPUs on one NIC",
       {{"DEEP_EP_DEVICE_TO_HCA_MAPPING", "0:mlx5_0:1,1:mlx5_0:1"}},
       {"GPUs 0, 1 share mlx5_0"}},
      {"devices without a NIC",
       {{"DEEP_EP_DEVICE_TO_HCA_MAPPING", "0:mlx5_0:1,1:mlx5_1:1"}},
       {"GPU 2, 3, 4, 5, 6, 7", "KeyError"}},
      {"no mapping at all", {{"DEEP_EP_DEVICE_TO_HCA_MAPPING", "mlx5_0,mlx5_1"}}, {"\"mlx5_0\", \"mlx5_1\""}},
      {"far NICs, every one",
       {{"DEEP_EP_DEVICE_TO_HCA_MAPPING",
         "0:mlx5_7:1,1:mlx5_1:1,2:mlx5_5:1,3:mlx5_3:1,4:mlx5_4:1,5:mlx5_2:1,6:mlx5_6:1,7:mlx5_0:1"}},
       {"GPU 0 is sent to mlx5_7 (SYS), mlx5_0 is nearer", "GPU 2 is sent to mlx5_5 (SYS), mlx5_2 is nearer",
        "GPU 5 is sent to mlx5_2 (SYS), mlx5_5 is nearer",
        "GPU 7 is sent to mlx5_0 (SYS), mlx5_7 is nearer"}},
      {"a port that is not there",
       {{"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}, {"NVSHMEM_HCA_LIST", "mlx5_0:2"}},
       {"port 2 of mlx5_0"}},
      {"NCCL's dialect in NVSHMEM's list",
       {{"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}, {"NVSHMEM_HCA_LIST", "=mlx5_0:1"}},
       {"no = form"}},
      {"one of eight", {{"NCCL_IB_HCA", "mlx5_1"}}, {"1 of the 8 NICs", "GPU 0, 2, 3"}},
      {"all but one", {{"NCCL_IB_HCA", "^mlx5_1"}}, {"7 of the 8 NICs", "GPU 1"}},
      {"a NIC that is not there", {{"NCCL_IB_HCA", "=mlx5_9"}}, {"names mlx5_9"}},
      {"the handler cpu without gdrdrv", {{"NVSHMEM_IBGDA_NIC_HANDLER", "cpu"}}, {"GDRCopy"}},
      {"no such interface",
       {{"NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "eth77"}},
       {"NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "eth77"}},
      {"no such interface for Gloo", {{"GLOO_SOCKET_IFNAME", "ib0"}}, {"GLOO_SOCKET_IFNAME", "ib0"}},
      {"no such interface, exactly", {{"NCCL_SOCKET_IFNAME", "=enp0s1"}}, {"NCCL_SOCKET_IFNAME", "enp0s1"}},
      {"the loopback", {{"NCCL_SOCKET_IFNAME", "lo"}}, {"loopback"}, Severity::warn},
      {"a variable that is gone",
       {{"VLLM_ALL2ALL_BACKEND", "deepep_low_latency"}},
       {"VLLM_ALL2ALL_BACKEND", "gone"},
       Severity::warn},
      {"a GID index that is none", {{"NCCL_IB_GID_INDEX", "300"}}, {"from -1 to 255"}, Severity::warn},
      {"a traffic class that is none", {{"NCCL_IB_TC", "256"}}, {"from 0 to 255"}, Severity::warn},
      {"a level that is none", {{"NCCL_NET_GDR_LEVEL", "NEAR"}}, {"NCCL_NET_GDR_LEVEL"}, Severity::warn},
      {"sockets and RDMA devices",
       {{"NCCL_NET", "Socket"}, {"NCCL_IB_HCA", "=" + kAll}},
       {"NCCL_NET=Socket"}},
      {"V2 without GIN", {{"EP_DISABLE_GIN", "1"}}, {"GIN is switched off"}, Severity::fail, "v2"},
      {"a prefix that leaves NICs out", {{"NVSHMEM_HCA_PREFIX", "rocep"}}, {"leaves out mlx5_0"}},
  };
  for (const auto& fault : faults) {
    const auto all = b200().lint(fault.env, fault.lane);
    EXPECT_TRUE(says(all, fault.severity, fault.words)) << fault.what << "\n" << shown(all);
  }
}

TEST(EnvLintHost, WhatIsRightIsNotSpokenOf) {
  const std::vector<Env> good = {
      {{"NCCL_IB_HCA", "=" + kAll}},
      {{"NCCL_IB_HCA", "mlx5"}},
      {{"NCCL_IB_HCA", "^irdma"}},
      {{"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}, {"NVSHMEM_HCA_LIST", "mlx5_3:1"}, {"LOCAL_RANK", "3"}},
      {{"DEEP_EP_DEVICE_TO_HCA_MAPPING", b200().topology.strings.deep_ep},
       {"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}},
      // the neighbour below the same switch is as near
      {{"DEEP_EP_DEVICE_TO_HCA_MAPPING",
        "0:mlx5_1:1,1:mlx5_0:1,2:mlx5_2:1,3:mlx5_3:1,4:mlx5_4:1,5:mlx5_5:1,6:mlx5_6:1,7:mlx5_7:1"}},
      {{"DEEP_EP_DEVICE_TO_HCA_MAPPING",
        "0:mlx5_0,1:mlx5_1,2:mlx5_2,3:mlx5_3,4:mlx5_4,5:mlx5_5,6:mlx5_6,7:mlx5_7"}},
      {{"NVSHMEM_IBGDA_NIC_HANDLER", "gpu"}},
      {{"NCCL_SOCKET_IFNAME", "enp0"}, {"GLOO_SOCKET_IFNAME", "enp0s19"}},
      {{"NCCL_SOCKET_IFNAME", "^docker,lo"}},
      {{"NVSHMEM_IB_GID_INDEX", "-1"}, {"NCCL_IB_TC", "106"}, {"NVSHMEM_IB_ENABLE_IBGDA", "1"}},
  };
  for (const auto& env : good) {
    const auto all = b200().lint(env);
    EXPECT_TRUE(all.empty()) << env.begin()->first << "=" << env.begin()->second << "\n" << shown(all);
  }
}

/// Where the machine has fewer NICs than GPUs they are shared, evenly.
TEST(EnvLintHost, AMachineWithFewNicsSharesThem) {
  Machine m("gcp-a4-done");
  for (auto& nic : m.topology.nics) nic.usable = nic.name == "mlx5_0" || nic.name == "mlx5_4";
  const std::string even = "0:mlx5_0,1:mlx5_0,2:mlx5_0,3:mlx5_0,4:mlx5_4,5:mlx5_4,6:mlx5_4,7:mlx5_4";
  const std::string odd = "0:mlx5_0,1:mlx5_0,2:mlx5_0,3:mlx5_0,4:mlx5_0,5:mlx5_4,6:mlx5_4,7:mlx5_4";
  EXPECT_FALSE(says(m.lint({{"DEEP_EP_DEVICE_TO_HCA_MAPPING", even}}), Severity::fail, {"share"}));
  EXPECT_TRUE(says(m.lint({{"DEEP_EP_DEVICE_TO_HCA_MAPPING", odd}}), Severity::fail,
                   {"GPUs 0, 1, 2, 3, 4 share mlx5_0"}));
}

/// NCCL's prefixes: a whole name that others begin with takes those too, and a prefix is no missing device.
TEST(EnvLintHost, APrefixTakesMoreThanItSays) {
  Machine m("gcp-a4-done");
  TopologyNic storage = m.topology.nics.front();
  storage.name = "mlx5_10";
  storage.usable = false;
  storage.role = "storage";
  storage.reason = {"a storage port", "存储端口"};
  m.topology.nics.push_back(storage);
  for (auto& row : m.topology.gpu_nic) row.push_back(LinkClass::sys);
  EXPECT_TRUE(says(m.lint({{"NCCL_IB_HCA", "mlx5_1"}}), Severity::warn, {"prefixes", "mlx5_10"}));
  EXPECT_FALSE(says(m.lint({{"NCCL_IB_HCA", "=mlx5_1"}}), Severity::warn, {"prefixes"}));
  const auto broad = m.lint({{"NCCL_IB_HCA", "mlx5"}});
  EXPECT_TRUE(says(broad, Severity::warn, {"prefixes", "mlx5_10"})) << shown(broad);
  EXPECT_FALSE(says(broad, Severity::fail, {"does not have"})) << shown(broad);
}

TEST(EnvLintHost, TheHandlerCpuIsJudgedByWhatIsLoaded) {
  Machine m("gcp-a4-done");
  m.facts.kernel.gdrdrv_device = known(true, "/dev/gdrdrv");
  m.facts.kernel.modules.push_back({"gdrdrv", {}});
  const auto all = m.lint({{"NVSHMEM_IBGDA_NIC_HANDLER", "cpu"}});
  EXPECT_FALSE(says(all, Severity::fail, {"GDRCopy"})) << shown(all);
  EXPECT_TRUE(says(all, Severity::warn, {"hang"})) << shown(all);
  EXPECT_TRUE(says(m.lint({{"NVSHMEM_IBGDA_NIC_HANDLER", "cpu"}, {"NVSHMEM_DISABLE_GDRCOPY", "1"}}),
                   Severity::fail, {"NVSHMEM_DISABLE_GDRCOPY"}));
}

/// Of interfaces that a text does not list nothing is said.
TEST(EnvLintHost, WhatIsNotKnownIsNotJudged) {
  Machine m("gcp-a4-done");
  m.facts.host_kind = "paste";
  EXPECT_TRUE(m.lint({{"GLOO_SOCKET_IFNAME", "ib0"}}).empty());
  m.facts.kernel = {};
  m.facts.kernel.gdrdrv_device = unreadable<bool>("the text", "does not show it");
  EXPECT_FALSE(says(m.lint({{"NVSHMEM_IBGDA_NIC_HANDLER", "cpu"}}), Severity::fail, {"GDRCopy"}));
}

TEST(EnvLintHost, AProgramsVersionDecidesWhatIsGone) {
  Machine m("gcp-a4-done");
  m.facts.python.push_back({});
  m.facts.python.back().packages = {{"vllm", "0.11.0", ""}};
  EXPECT_TRUE(m.lint({{"VLLM_ALL2ALL_BACKEND", "deepep_low_latency"}}).empty());
  m.facts.python.back().packages = {{"vllm", "0.27.0", ""}};
  EXPECT_TRUE(says(m.lint({{"VLLM_ALL2ALL_BACKEND", "x"}}), Severity::warn, {"gone from vllm 0.16.0"}));
}

/// Names of the findings hold only what stands in the variable or belongs to the host: nothing read from
/// freed memory. Run with the address sanitizer this also proves that no piece outlives its value.
TEST(EnvLintHost, EveryNameThatIsSaidWasGiven) {
  const std::string names[] = {"mlx5_7", "mlx5_77_and_a_name_that_is_longer_than_a_small_string", "x"};
  for (const auto& name : names)
    for (const char* variable : {"DEEP_EP_DEVICE_TO_HCA_MAPPING", "NVSHMEM_HCA_LIST", "NCCL_IB_HCA",
                                 "NVSHMEM_HCA_PE_MAPPING", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
      const auto all = b200().lint({{variable, (variable[0] == 'D' ? "0:" : "") + name + ":1"},
                                    {"NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"}});
      for (const auto& f : all)
        for (unsigned char c : f.title) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << variable << ": " << f.title;
    }
}

}  // namespace
}  // namespace ep
