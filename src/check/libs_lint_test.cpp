// One environment for each kind of mistake, and a sound one that gives nothing.
#include "check/libs_lint.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ep {
namespace {

const std::string kRoot = "/v", kSite = "/v/lib/python3.12/site-packages";

LibraryCopy copy(const std::string& family, const std::string& path, const std::string& version,
                 const std::string& wheel = {}, const std::string& wheel_version = {}) {
  LibraryCopy c;
  c.family = family;
  c.path = path;
  c.found_by = starts_with(path, "/v/") ? "environment" : "LD_LIBRARY_PATH";
  c.version = version.empty() ? absent<std::string>(path) : known(version, path);
  c.wheel = wheel;
  c.wheel_version = wheel_version;
  c.elf = known(ElfFile(), path);
  c.cuda_major = 13;
  return c;
}

/// torch for CUDA 13, NCCL 2.30.7, DeepEP V2 for Hopper and Blackwell; GPU and driver present.
struct Case {
  LibraryFacts l;
  PythonEnvironment e;
  Facts f;
  std::string ext = kSite + "/deep_ep/_C.so", nccl = kSite + "/nvidia/nccl/lib/libnccl.so.2",
              nvshmem = kSite + "/nvidia/nvshmem/lib/libnvshmem_host.so.3",
              torch = kSite + "/torch/lib/libtorch_cuda.so";

  Case() {
    l.root = e.root = kRoot;
    e.interpreter = "/v/bin/python3";
    e.packages = {
        {"torch", "2.13.0", kSite}, {"nvidia-nccl-cu13", "2.30.7", kSite}, {"sgl-deep-ep", "0.1.2", kSite}};
    l.copies = {copy("deepep", ext, "", "sgl-deep-ep", "0.1.2"),
                copy("nccl", nccl, "2.30.7+cuda13.3", "nvidia-nccl-cu13", "2.30.7"),
                copy("nvshmem", nvshmem, "3.4.5", "nvidia-nvshmem-cu13", "3.4.5")};
    l.copies[0].code.cubin = {90, 100};
    l.copies[1].header_version = known(std::string("2.30.7"), nccl);
    l.torch = {{torch, "libnccl.so.2", nccl, "RPATH", torch},
               {torch, "libnvshmem_host.so.3", nvshmem, "RPATH", torch}};
    l.deepep = {{ext, "libnccl.so.2", nccl, "RPATH", torch},
                {ext, "libcuda.so.1", "/usr/lib/libcuda.so.1", "ld.so.cache", ext}};
    l.elastic_buffer = l.buffer = known(true, kSite);
    l.torch_cuda_major = known(13, torch);
    l.deepep_wheel = "sgl-deep-ep";
    l.deepep_version = "0.1.2";
    l.vllm_nccl = nccl;
    Gpu g;
    g.compute_capability = known(100, "test");
    f.gpus = {g};
  }
  LibraryCopy& of(const std::string& path) {
    return *std::find_if(l.copies.begin(), l.copies.end(), [&](auto& c) { return c.path == path; });
  }
  LibsLint lint() const { return lint_libraries(l, e, f, Lang::en); }
  std::vector<std::string> codes() const {
    std::vector<std::string> out;
    for (const auto& x : lint().findings) out.push_back(std::string(to_string(x.severity)) + " " + x.code);
    return out;
  }
  bool has(const std::string& code) const {
    auto c = codes();
    return std::find(c.begin(), c.end(), code) != c.end();
  }
};

TEST(LibsLint, ASoundEnvironmentGivesNothing) {
  Case c;
  EXPECT_EQ(c.codes(), std::vector<std::string>());
  EXPECT_EQ(c.lint().has_deep_ep.verdict, Verdict::pass);
  EXPECT_EQ(c.lint().has_deep_ep_v2.verdict, Verdict::pass);
}

TEST(LibsLint, OldNcclIsFoundAndFailsTheProbe) {
  Case c;
  c.of(c.nccl).version = known(std::string("2.28.9+cuda13.0"), c.nccl);
  c.of(c.nccl).wheel_version = "2.28.9";
  c.of(c.nccl).header_version = known(std::string("2.28.9"), c.nccl);
  EXPECT_TRUE(c.has("fail libs-nccl-old"));
  LibsLint l = c.lint();
  EXPECT_EQ(l.has_deep_ep.verdict, Verdict::pass);
  EXPECT_EQ(l.has_deep_ep_v2.verdict, Verdict::fail);
  EXPECT_NE(l.has_deep_ep_v2.reason.find("22809"), std::string::npos);
  c.l.elastic_buffer = known(false, kSite);  // V1 does not care
  EXPECT_FALSE(c.has("fail libs-nccl-old"));
}

TEST(LibsLint, WithoutADriverTheProbeIsNotRun) {
  Case c;
  c.l.deepep[1].path.clear();
  EXPECT_TRUE(c.codes().empty()) << "no finding: a build machine is sound";
  EXPECT_EQ(c.lint().has_deep_ep.verdict, Verdict::not_run);
  EXPECT_EQ(c.lint().has_deep_ep_v2.verdict, Verdict::not_run);
  c.l.deepep.push_back({c.ext, "libnvshmem_host.so.3", "", "", c.ext});
  EXPECT_TRUE(c.has("fail libs-missing"));
  EXPECT_EQ(c.lint().has_deep_ep.verdict, Verdict::fail);
}

TEST(LibsLint, NoDeepEpAtAll) {
  Case c;
  c.l.copies.erase(c.l.copies.begin());
  c.l.deepep.clear();
  c.l.elastic_buffer = c.l.buffer = absent<bool>(kSite);
  EXPECT_TRUE(c.codes().empty());
  EXPECT_EQ(c.lint().has_deep_ep_v2.verdict, Verdict::fail);
}

TEST(LibsLint, ABuiltPackageWhoseLibrariesWereNotReadIsUnknown) {
  Case c;
  c.l.copies.clear();
  c.l.deepep.clear();
  c.l.elastic_buffer = c.l.buffer = absent<bool>(kSite);
  c.e.packages.push_back({"deep-ep", "1.2.1+29d31c0", kSite});
  EXPECT_TRUE(c.has("warn libs-not-read"));
  EXPECT_FALSE(c.has("fail libs-wrong-package"));
  EXPECT_EQ(c.lint().has_deep_ep.verdict, Verdict::unknown);
}

TEST(LibsLint, TheWrongPackageOfThatName) {
  Case c;
  c.l.copies.erase(c.l.copies.begin());
  c.l.deepep.clear();
  c.e.packages.push_back({"deep-ep", "1.0.0", kSite});
  EXPECT_TRUE(c.has("fail libs-wrong-package"));
}

TEST(LibsLint, FilesThatAnotherWheelOrSomebodyReplaced) {
  Case c;
  c.l.clashes = {{c.nccl, {"nvidia-nccl-cu12 2.27.5", "nvidia-nccl-cu13 2.30.7"}, false}};
  EXPECT_TRUE(c.has("fail libs-overwritten"));
  c.l.clashes[0].same_bytes = true;
  EXPECT_TRUE(c.codes().empty());
  c.l.clashes = {{kSite + "/LICENSE", {"a 1", "b 1"}, false}};
  EXPECT_TRUE(c.has("warn libs-overwritten"));
  c.l.clashes.clear();
  c.of(c.nccl).size = 10;
  c.of(c.nccl).recorded_size = 11;
  EXPECT_TRUE(c.has("fail libs-changed"));
}

TEST(LibsLint, CudaMajorsDoNotMix) {
  Case c;
  c.of(c.ext).cuda_major = 12;
  EXPECT_TRUE(c.has("fail libs-cuda-major"));
  Case d;
  d.e.packages.push_back({"nvidia-nccl-cu12", "2.27.5", kSite});
  EXPECT_TRUE(d.has("fail libs-cuda-major"));
}

TEST(LibsLint, HeaderWheelAndLibraryAgree) {
  Case c;
  c.of(c.nccl).header_version = known(std::string("2.28.9"), c.nccl);
  EXPECT_TRUE(c.has("fail libs-versions"));
  Case d;
  d.of(d.nvshmem).wheel_version = "3.3.20";
  EXPECT_TRUE(d.has("fail libs-versions"));
}

TEST(LibsLint, ACopyFromOutsideThatWins) {
  Case c;
  const std::string other = "/usr/local/nccl/libnccl.so.2";
  c.l.copies.push_back(copy("nccl", other, "2.20.5+cuda13.0"));
  EXPECT_TRUE(c.has("info libs-other-copies"));
  c.l.torch[0] = {c.torch, "libnccl.so.2", other, "LD_LIBRARY_PATH", c.torch};
  EXPECT_TRUE(c.has("fail libs-shadowed"));
  EXPECT_TRUE(c.has("fail libs-nccl-old"));
}

TEST(LibsLint, TwoNcclLibrariesInOneProcess) {
  Case c;
  c.l.copies.push_back(copy("nccl", "/opt/nccl/libnccl.so.2", "2.31.2+cuda13.0"));
  c.l.vllm_nccl = "/opt/nccl/libnccl.so.2";
  EXPECT_TRUE(c.has("fail libs-duplicate"));
}

TEST(LibsLint, GpuCodeForTheGpusOfThisMachine) {
  Case c;
  c.of(c.ext).code.cubin = {90};
  EXPECT_TRUE(c.has("fail libs-arch"));
  c.of(c.ext).code.ptx = {90};
  EXPECT_FALSE(c.has("fail libs-arch")) << "the driver compiles PTX";
  Case jit;
  jit.of(jit.ext).code = {};
  EXPECT_FALSE(jit.has("fail libs-arch")) << "kernels are compiled at run time";
}

TEST(LibsLint, TheNvshmemBoundary) {
  Case c;
  InstalledPart p;
  p.name = "deepep";
  p.root = "/other/deepep";
  p.stamp["nvshmem"] = "3.4.5";
  c.f.parts = {p};
  EXPECT_TRUE(c.codes().empty());
  c.of(c.nvshmem).version = known(std::string("3.5.21"), c.nvshmem);
  c.of(c.nvshmem).wheel_version = "3.5.21";
  EXPECT_TRUE(c.codes().empty()) << "a build below another prefix";
  c.f.parts[0].root = "/x/deepep";
  c.l.root = c.e.root = "/x/venv";
  EXPECT_TRUE(c.has("fail libs-nvshmem-boundary"));
}

TEST(LibsLint, SearchPathsThatWillNotStay) {
  Case c;
  ElfFile e;
  e.runpath = {"/opt/python/lib/nvidia/nccl/lib"};
  c.of(c.ext).elf = known(e, c.ext);
  EXPECT_EQ(c.codes(), std::vector<std::string>{"info libs-runpath"});
  e.runpath = {"/root/ep_kernels_workspace/nvshmem/lib"};
  c.of(c.ext).elf = known(e, c.ext);
  c.l.deepep.push_back({c.ext, "libnvshmem_host.so.3",
                        "/root/ep_kernels_workspace/nvshmem/lib/libnvshmem_host.so.3", "RUNPATH", c.ext});
  EXPECT_EQ(c.codes(), std::vector<std::string>{"warn libs-runpath"});
  e.runpath = {"/tmp/pip-build/lib"};
  c.of(c.ext).elf = known(e, c.ext);
  c.l.deepep.pop_back();
  EXPECT_EQ(c.codes(), std::vector<std::string>{"warn libs-runpath"});
}

TEST(LibsLint, WhatCouldNotBeReadIsNeverSound) {
  Case c;
  c.of(c.ext).elf = unreadable<ElfFile>(c.ext, "not captured in this snapshot");
  EXPECT_TRUE(c.has("warn libs-not-read"));
  EXPECT_EQ(c.lint().has_deep_ep.verdict, Verdict::unknown);
}

}  // namespace
}  // namespace ep
