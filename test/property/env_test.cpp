// The computed environment: valid for every version it is computed for, clean by the linter, the same after
// sourcing twice in real shells, and read back exactly in every form.
#include "plan/env.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <set>

#include "base/text.h"
#include "check/env_lint.h"
#include "facts/text_facts.h"
#include "host/process.h"
#include "plan/env_render.h"

namespace ep {
namespace {

const Variables& table() {
  static const Variables v = load_variables("").value();
  return v;
}

Facts sample(const char* name) {
  auto host = snapshot_host(std::string("sample/") + name);
  EXPECT_TRUE(host) << name;
  return read_facts(**host);
}

Facts paste(const std::string& text) {
  return facts_of_paste(take_apart({{"paste", text}})[0], "paste");
}

// Two GPUs with a NIC each; the names are given.
Facts two_nics(const std::string& a, const std::string& b) {
  return paste(
      "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\n"
      "GPU0\tX\tNV18\tPIX\tSYS\t0-1\nGPU1\tNV18\tX\tSYS\tPIX\t2-3\n"
      "NIC0\tPIX\tSYS\tX\tSYS\nNIC1\tSYS\tPIX\tSYS\tX\n\nNIC Legend:\n  NIC0: " +
      a + "\n  NIC1: " + b +
      "\nGPU 0: NVIDIA H200 (UUID: GPU-5eed0)\nGPU 1: NVIDIA H200 (UUID: GPU-5eed1)\n");
}

std::vector<std::pair<std::string, Facts>> hosts() {
  return {{"gcp-a4-fresh", sample("gcp-a4-fresh")},
          {"gcp-a4-done", sample("gcp-a4-done")},
          {"gke-a4-pod", sample("gke-a4-pod")},
          {"h100-ib", sample("h100-ib")},
          {"laptop", sample("laptop")},
          {"mlx5 names", two_nics("mlx5_0", "mlx5_1")},
          {"ibp names", two_nics("ibp14s0", "ibp30s0")},
          {"mixed names", two_nics("ibp14s0", "rocep30s0")}};
}

EnvPlan plan_of(const Facts& f, const EnvRequest& r) {
  return compute_env(f, read_topology(f), table(), r);
}

const char* kNvshmem[] = {"", "3.2.5", "3.3.24", "3.4.5", "3.5.19", "3.7.0"};
const char* kNccl[] = {"", "2.18.3", "2.21.5", "2.27.5", "2.30.4"};
const char* kLanes[] = {"v1", "v2", "local"};

TEST(Env, EveryVersionGetsOnlyWhatItKnows) {
  for (const auto& [name, f] : hosts())
    for (const char* nvshmem : kNvshmem)
      for (const char* nccl : kNccl)
        for (const char* lane : kLanes) {
          EnvRequest r;
          r.lane = lane;
          r.nvshmem = nvshmem;
          r.nccl = nccl;
          EnvPlan p = plan_of(f, r);
          std::set<std::string> seen;
          for (const auto& l : p.lines) {
            SCOPED_TRACE(name + " " + lane + " NVSHMEM " + nvshmem + " NCCL " + nccl + ": " + l.name);
            EXPECT_TRUE(seen.insert(l.name).second) << "twice";
            EXPECT_FALSE(l.why.en.empty());
            EXPECT_FALSE(l.why.zh.empty());
            const Variable* v = table().find(l.name);
            if (!v) continue;
            if (v->owner == "nvshmem") {
              EXPECT_TRUE(in_force(*v, p.nvshmem));
            }
            if (v->owner == "nccl") {
              EXPECT_TRUE(in_force(*v, p.nccl));
            }
            if (v->owner == "nvshmem") {
              EXPECT_NE(std::string(lane), "local");
            }
          }
          for (const auto& l : p.left_out) EXPECT_FALSE(seen.count(l.name)) << l.name << " set and left out";
        }
}

TEST(Env, TheLinterHasNothingAgainstWhatWeWrite) {
  for (const auto& [name, f] : hosts())
    for (const char* nvshmem : kNvshmem)
      for (const char* lane : {"v1", "v2"}) {
        EnvRequest r;
        r.lane = lane;
        r.nvshmem = nvshmem;
        EnvPlan p = plan_of(f, r);
        Topology t = read_topology(f);
        EnvLintInput in;
        for (const auto& l : p.lines) in.environment[l.name] = l.value;
        in.nvshmem = p.nvshmem;
        in.nccl = p.nccl;
        in.lane = lane;
        in.topology = &t;
        for (const auto& x : lint_environment(in, table()))
          EXPECT_EQ(x.severity, Severity::info)
              << name << " " << lane << " NVSHMEM " << nvshmem << ": " << x.code << ": " << x.title;
        // One rank's own lines on top.
        if (p.per_rank.empty()) continue;
        in.environment["NVSHMEM_ENABLE_NIC_PE_MAPPING"] = "1";
        in.environment["NVSHMEM_HCA_LIST"] = p.per_rank[0].second;
        for (const auto& x : lint_environment(in, table()))
          EXPECT_EQ(x.severity, Severity::info) << name << ": " << x.code << ": " << x.title;
      }
}

std::map<std::string, std::string> values_of(const EnvPlan& p) {
  std::map<std::string, std::string> out;
  for (const auto& l : p.lines) out[l.name] = l.whole();
  return out;
}

// The block that the runbook calls decisive on GKE, with the paths as the pod sees them.
TEST(Env, APodGetsTheWholeGibBlock) {
  auto v = values_of(plan_of(sample("gke-a4-pod"), {}));
  const std::string gib = "/host/home/kubernetes/bin/gib";
  EXPECT_EQ(v["LD_LIBRARY_PATH"], gib + "/lib64:/usr/local/nvidia/lib64");
  EXPECT_EQ(v["NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE"], gib + "/configs/guest_config.txtpb");
  EXPECT_EQ(v["NCCL_TUNER_CONFIG_PATH"], gib + "/configs/tuner_config_a4.txtpb");
  for (auto [name, value] : {std::pair("NCCL_CROSS_NIC", "0"),
                             {"NCCL_NET_GDR_LEVEL", "PIX"},
                             {"NCCL_P2P_NET_CHUNKSIZE", "131072"},
                             {"NCCL_NVLS_CHUNKSIZE", "524288"},
                             {"NCCL_IB_ADAPTIVE_ROUTING", "1"},
                             {"NCCL_IB_QPS_PER_CONNECTION", "4"},
                             {"NCCL_IB_TC", "52"},
                             {"NCCL_IB_FIFO_TC", "84"}})
    EXPECT_EQ(v[name], value) << name;
}

// Half of gIB makes NCCL fail: whatever is missing, nothing of it is written, and the reason says what.
TEST(Env, AGibFolderThatLacksSomethingIsLeftOutAsAWhole) {
  const auto whole = sample("gke-a4-pod");
  for (const auto& gone : whole.platform.gib_files) {
    Facts f = whole;
    std::erase(f.platform.gib_files, gone);
    const EnvPlan p = plan_of(f, {});
    const auto v = values_of(p);
    const bool needed = gone == "configs/guest_config.txtpb" || gone == "configs/tuner_config_a4.txtpb";
    EXPECT_EQ(v.count("NCCL_TUNER_CONFIG_PATH"), needed ? 0u : 1u) << gone;
    EXPECT_EQ(v.count("NCCL_IB_TC"), needed ? 0u : 1u) << gone;
    if (!needed) continue;
    std::string why;
    for (const auto& l : p.left_out)
      if (l.name == "NCCL_TUNER_CONFIG_PATH") why = l.why.en;
    EXPECT_NE(why.find("lacks " + gone), std::string::npos) << why;
    EnvRequest all;
    all.gib = "all";
    ASSERT_EQ(plan_of(f, all).findings.size(), 1u);
    EXPECT_EQ(plan_of(f, all).findings[0].severity, Severity::fail);
  }
  Facts bare = whole;
  bare.platform.gib_dir = absent<std::string>("/usr/local/gib");
  bare.platform.gib_files.clear();
  std::string why;
  for (const auto& l : plan_of(bare, {}).left_out)
    if (l.name == "NCCL_TUNER_CONFIG_PATH") why = l.why.en;
  EXPECT_NE(why.find("/host"), std::string::npos) << "a pod without the mount is told: " << why;
}

TEST(Env, ThePrefixBringsItsPython) {
  EnvRequest r;
  r.prefix = "/opt/epready";
  auto v = values_of(plan_of(sample("gcp-a4-done"), r));
  EXPECT_EQ(v["VIRTUAL_ENV"], "/opt/epready/venv");
  EXPECT_EQ(v["PATH"], "/opt/epready/venv/bin");
  r.prefix.clear();
  EXPECT_EQ(values_of(plan_of(sample("gcp-a4-done"), r))["VIRTUAL_ENV"], "/opt/epready/venv")
      << "by its stamps";
  r.prefix = "/opt/other";
  EXPECT_EQ(values_of(plan_of(sample("gcp-a4-done"), r)).count("PATH"), 0u);
  r.venv_follows = true;
  EXPECT_EQ(values_of(plan_of(sample("gcp-a4-done"), r))["PATH"], "/opt/other/venv/bin");
}

TEST(Env, NamesThatTheVersionSkipsAreAFindingOrAPrefix) {
  EnvRequest r;
  r.nvshmem = "3.3.24";
  auto old = plan_of(two_nics("ibp14s0", "ibp30s0"), r);
  ASSERT_EQ(old.findings.size(), 1u);
  EXPECT_EQ(old.findings[0].code, "prefix_not_mlx5");
  EXPECT_FALSE(old.findings[0].title_zh.empty());
  r.nvshmem = "3.4.5";
  auto with = plan_of(two_nics("ibp14s0", "ibp30s0"), r);
  EXPECT_TRUE(with.findings.empty());
  bool prefix = false;
  for (const auto& l : with.lines) prefix |= l.name == "NVSHMEM_HCA_PREFIX" && l.value == "ibp";
  EXPECT_TRUE(prefix);
  EXPECT_EQ(plan_of(two_nics("ibp14s0", "rocep30s0"), r).findings.size(), 1u) << "no prefix covers both";
  r.nvshmem = "3.5.19";
  EXPECT_TRUE(plan_of(two_nics("ibp14s0", "rocep30s0"), r).findings.empty());
}

// A plan whose values want quoting in every form.
EnvPlan hostile() {
  EnvPlan p;
  std::mt19937 random(7);
  const std::string letters = " '\"\\$`!#;&|<>()[]{}*?~%=,:^abcXYZ019-_./\t";
  for (int i = 0; i < 60; ++i) {
    std::string v;
    for (unsigned n = random() % 24; n-- > 0;) v += letters[random() % letters.size()];
    p.lines.push_back({"EP_T" + std::to_string(i), v, {"why: it's \"so\" $(touch /nowhere)", "原因"}});
  }
  p.per_rank = {{0, "mlx5_0:1"}, {1, "it's:1"}};
  p.left_out.push_back({"LD_PRELOAD", "x\ny", {"not\nneeded", "不需要"}});
  return p;
}

std::string write_temp(const std::string& text) {
  std::string path = ::testing::TempDir() + "epready-env-test." + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// NAME=value pairs after sourcing the file `times` times; empty map when that shell is not here.
std::map<std::string, std::string> sourced(const std::string& shell, const std::string& file, int times,
                                           const std::string& rank) {
  Spawn s;
  std::string script = "set -eu; ";
  for (int i = 0; i < times; ++i) script += ". " + shell_quote(file) + "; ";
  s.argv = {shell, "-c", script + "env -0"};
  s.env = {"PATH=/usr/bin:/bin"};
  if (!rank.empty()) s.env.push_back("LOCAL_RANK=" + rank);
  auto r = run(s);
  std::map<std::string, std::string> out;
  if (!r) return out;
  EXPECT_TRUE(r->ok()) << shell << ": " << r->err;
  EXPECT_EQ(r->err, "");
  for (auto entry : split(r->out, '\0')) {
    size_t eq = entry.find('=');
    if (eq == entry.npos) continue;
    std::string name(entry.substr(0, eq));
    if (name != "_" && name != "SHLVL" && name != "PWD" && name != "OLDPWD")
      out[name] = std::string(entry.substr(eq + 1));
  }
  return out;
}

TEST(EnvText, SourcingTwiceChangesNothingAndValuesArriveAsTheyAre) {
  int ran = 0;
  for (const char* shell : {"/bin/sh", "/bin/bash", "/bin/dash"}) {
    if (find_program(std::string(shell).substr(5), "/bin").empty()) {
      printf("skipped: no %s here\n", shell);
      continue;
    }
    ++ran;
    auto all = hosts();
    std::vector<EnvPlan> plans{hostile()};
    for (const auto& [name, f] : all) plans.push_back(plan_of(f, {}));
    for (const auto& p : plans)
      for (Lang lang : {Lang::en, Lang::zh})
        for (const char* rank : {"", "0", "1", "99"}) {
          std::string file = write_temp(env_text(p, EnvForm::shell, lang));
          auto once = sourced(shell, file, 1, rank), twice = sourced(shell, file, 2, rank);
          EXPECT_EQ(once, twice) << shell;
          for (const auto& l : p.lines) {
            if (l.is_list)
              EXPECT_EQ((once[l.name] + ":").find(l.value + ":"), 0u) << shell << " " << l.name;
            else
              EXPECT_EQ(once[l.name], l.value) << shell << " " << l.name;
          }
          for (const auto& [gpu, nic] : p.per_rank)
            if (rank == std::to_string(gpu)) {
              EXPECT_EQ(once["NVSHMEM_HCA_LIST"], nic);
            }
          if (std::string(rank).empty()) {
            EXPECT_EQ(once.count("NVSHMEM_HCA_LIST"), 0u);
          }
          std::remove(file.c_str());
        }
  }
  EXPECT_GT(ran, 0);
}

// systemd.exec(5), EnvironmentFile: lines NAME=VALUE; # and ; begin comments; in double quotes a backslash
// keeps the next of "\$` as it is.
std::map<std::string, std::string> read_systemd(const std::string& text) {
  std::map<std::string, std::string> out;
  for (auto line : lines(text)) {
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    size_t eq = line.find('=');
    EXPECT_NE(eq, line.npos) << line;
    std::string_view v = line.substr(eq + 1);
    EXPECT_TRUE(v.size() >= 2 && v[0] == '"' && v.back() == '"') << line;
    std::string value;
    for (size_t i = 1; i + 1 < v.size(); ++i) {
      if (v[i] == '\\' && contains("\"\\$`", std::string(1, v[i + 1]))) ++i;
      value += v[i];
    }
    out[std::string(line.substr(0, eq))] = value;
  }
  return out;
}

// docker run --env-file: NAME=value to the end of the line, nothing is unquoted.
std::map<std::string, std::string> read_docker(const std::string& text) {
  std::map<std::string, std::string> out;
  for (auto line : lines(text)) {
    if (line.empty() || line[0] == '#') continue;
    size_t eq = line.find('=');
    EXPECT_NE(eq, line.npos) << line;
    EXPECT_EQ(line.substr(0, eq).find_first_of(" \t"), line.npos) << line;
    out[std::string(line.substr(0, eq))] = std::string(line.substr(eq + 1));
  }
  return out;
}

// A YAML list of name and value with single-quoted scalars, as the Kubernetes API has it.
std::map<std::string, std::string> read_k8s(const std::string& text) {
  std::map<std::string, std::string> out;
  std::string name;
  bool in_env = false;
  for (auto line : lines(text)) {
    if (line.empty() || line[0] == '#') continue;
    if (line == "env:") {
      in_env = true;
    } else if (starts_with(line, "- name: ")) {
      EXPECT_TRUE(in_env);
      name = line.substr(8);
    } else {
      EXPECT_TRUE(starts_with(line, "  value: '") && ends_with(line, "'") && !name.empty()) << line;
      std::string v = replace_all(std::string(line.substr(10, line.size() - 11)), "''", "\x01");
      EXPECT_EQ(v.find('\''), v.npos) << line;
      out[name] = replace_all(v, "\x01", "'");
      name.clear();
    }
  }
  return out;
}

TEST(EnvText, EveryFormReadsBackExactly) {
  std::vector<EnvPlan> plans{hostile()};
  for (const auto& [name, f] : hosts()) plans.push_back(plan_of(f, {}));
  for (const auto& p : plans)
    for (Lang lang : {Lang::en, Lang::zh}) {
      std::map<std::string, std::string> want;
      for (const auto& l : p.lines)
        if (l.name != "PATH") want[l.name] = l.whole();
      auto systemd = read_systemd(env_text(p, EnvForm::systemd, lang));
      for (const auto& l : p.lines)
        if (l.name == "PATH") {
          EXPECT_EQ(systemd["PATH"].find(l.value + ":/"), 0u) << "the usual folders follow";
        }
      systemd.erase("PATH");
      EXPECT_EQ(systemd, want);
      EXPECT_EQ(read_docker(env_text(p, EnvForm::docker, lang)), want);
      EXPECT_EQ(read_k8s(env_text(p, EnvForm::k8s, lang)), want);
    }
}

}  // namespace
}  // namespace ep
