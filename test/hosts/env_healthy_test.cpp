// What env writes and what env lint judges agree: an environment of our own making is silent, on every sample
// and every recorded machine, for every lane and for every rank.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "check/env_lint.h"
#include "host/host.h"
#include "host/snapshot.h"
#include "plan/env.h"

namespace ep {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> machines() {
  std::vector<std::string> out;
  for (const auto& s : sample_names()) out.push_back(std::string(kSamplePrefix) + s);
  for (const auto& e : fs::directory_iterator(fs::path(EP_SOURCE_DIR) / "test/hosts"))
    if (fs::exists(e.path() / "expect.json"))
      for (const auto& file : fs::directory_iterator(e.path()))
        if (file.path().extension() == ".txt") out.push_back(file.path().string());
  return out;
}

TEST(EnvHealthy, OurOwnEnvironmentIsSilent) {
  const Variables table = *load_variables("");
  size_t read = 0, judged = 0, ranks = 0;
  for (const auto& name : machines()) {
    auto host = open_host(name);
    if (!host) continue;  // a text without a line of a host; read > 0 is asked for below
    ++read;
    const Facts f = read_facts(**host);
    const Topology t = read_topology(f);
    for (const char* lane : {"v1", "v2", "local"})
      for (const char* nvshmem : {"", "3.3.20", "3.4.5", "3.5.19", "3.7.2"}) {
        EnvRequest request;
        request.lane = lane;
        request.nvshmem = nvshmem;
        const EnvPlan plan = compute_env(f, t, table, request);
        EnvLintInput in;
        for (const auto& l : plan.lines) in.environment[l.name] = l.whole();
        in.nvshmem = plan.nvshmem;
        in.nccl = plan.nccl;
        in.lane = std::string_view(lane) == "local" ? "" : lane;
        in.topology = &t;
        in.facts = &f;
        in.peer_mapping_override = peer_mapping_override(f);
        const auto silent = [&](const std::string& what) {
          // What the environment cannot mend it says itself: a GPU for which there is no NIC.
          bool incomplete = false;
          for (const auto& x : plan.findings) incomplete |= x.code == "mapping_incomplete";
          for (const auto& x : lint_environment(in, table))
            if (!incomplete || !contains(x.title, "KeyError"))
              ADD_FAILURE() << name << ", lane " << lane << ", NVSHMEM " << nvshmem << what << ": " << x.code
                            << ": " << x.title;
          ++judged;
        };
        silent("");
        for (const auto& [gpu, nic] : plan.per_rank) {
          in.environment["LOCAL_RANK"] = std::to_string(gpu);
          in.environment["NVSHMEM_ENABLE_NIC_PE_MAPPING"] = "1";
          in.environment["NVSHMEM_HCA_LIST"] = nic;
          silent(", rank " + std::to_string(gpu));
          ++ranks;
        }
      }
  }
  EXPECT_GT(read, 60u);
  EXPECT_GT(judged, 500u);
  EXPECT_GT(ranks, 100u);
}

}  // namespace
}  // namespace ep
