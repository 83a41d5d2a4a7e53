#include "doctor/mention.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace ep {
namespace {

LinePattern of(const char* literal) {
  LinePattern p;
  p.literals = {literal};
  return p;
}

TEST(Mention, WhatProgramsPrintIsNoMention) {
  const std::pair<const char*, const char*> kLines[] = {
      {"RuntimeError: The NVIDIA driver on your system is too old (found version 12040). Please update your "
       "GPU "
       "driver by downloading and installing a new version from the URL if you want to use it.",
       "driver on your system is too old"},
      {"[rank3]: DeepEP error: timeout (dispatch CPU)", "timeout (dispatch CPU)"},
      {"This is usually caused by a system or configuration error in the Fabric Manager or NVSwitches.",
       "Fabric Manager"},
      {"WARN: ibgda_alloc_and_map_qp_uar with GPU as handler failed. We may need to enter the CPU fallback "
       "path.",
       "ibgda_alloc_and_map_qp_uar"},
      {"(Worker pid=280) ERROR 03-03 06:12:21 [multiproc_executor.py:783] RuntimeError: Unexpected error "
       "from "
       "cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might "
       "have "
       "already set an error? Error 802: system not yet initialized",
       "Error 802"},
      {"Failed to allocate device vector A (error code system not yet initialized)!",
       "system not yet initialized"},
      {"[2025-12-23 04:10:44 DP0 TP0 EP0] Entering DeepGEMM JIT Pre-Compile session. It may take a long time "
       "(typically 10-20 mins) if you have not run `sglang.compile_deep_gemm`.",
       "Entering DeepGEMM JIT"},
      {"The detected CUDA version (11.7) mismatches the version that was used to compile",
       "mismatches the version that was used"},
      {"Because deepep was not found in the package registry and your project depends on it, we can conclude "
       "that "
       "your project's requirements are unsatisfiable.",
       "not found in the package registry"},
  };
  for (const auto& [line, literal] : kLines) EXPECT_LE(voice(line, of(literal)), Voice::told) << line;
}

TEST(Mention, WhatPeopleTellOfThemselvesCounts) {
  const std::pair<const char*, const char*> kLines[] = {
      {"When I start it on two nodes I get `timeout (dispatch CPU)` after a hundred seconds.",
       "timeout (dispatch CPU)"},
      {"Hi, our decode pods crash with \"no kernel image is available\" since the move to B200.",
       "no kernel image"},
      {"The import fails with an undefined symbol, ncclGetLsaDevicePointer, in a fresh venv of mine.",
       "ncclGetLsaDevicePointer"},
      {"How can I fix `Error 802: system not yet initialized` on this machine?", "Error 802"},
  };
  for (const auto& [line, literal] : kLines) EXPECT_EQ(voice(line, of(literal)), Voice::told) << line;
}

TEST(Mention, WhatIsOnlySpokenOfDoesNot) {
  const std::pair<const char*, const char*> kLines[] = {
      {"3. If anybody sees `Error 802: system not yet initialized` after a reboot, look at Fabric Manager "
       "first.",
       "Error 802"},
      {"The usual message is `failed to extend /dev/shm/nccl-abc ... No space left on device`. We mount 32 "
       "GiB.",
       "failed to extend /dev/shm"},
      {"I read about \"timeout (dispatch CPU)\" in the tracker; is that still a thing with 1.2.1?",
       "timeout (dispatch CPU)"},
      {"Without the option you would get an undefined symbol like ncclGetLsaDevicePointer at import.",
       "ncclGetLsaDevicePointer"},
      {"the old wiki says set NCCL_IB_GID_INDEX=3 or you get \"Got completion with status=12 vendor err "
       "129\"",
       "Got completion with status=12"},
      {"We fixed `libnvshmem_host.so.3: cannot open shared object file` in the notebook image of March.",
       "cannot open shared object"},
      {"`ibv_dealloc_pd failed` at the end of a passing program is harmless and you can skip it.",
       "ibv_dealloc_pd failed"},
  };
  for (const auto& [line, literal] : kLines) EXPECT_EQ(voice(line, of(literal)), Voice::mentioned) << line;
}

TEST(Mention, WhatIsOverIsHistoryUnlessItCameBack) {
  EXPECT_EQ(voice("Last winter we had the dreaded `timeout (dispatch CPU)` each week; it went away with the "
                  "new image.",
                  of("timeout (dispatch CPU)")),
            Voice::mentioned);
  EXPECT_EQ(voice("It was fixed in May, but now we get `timeout (dispatch CPU)` again on both of our racks.",
                  of("timeout (dispatch CPU)")),
            Voice::told);
}

Reading read(std::string_view text) {
  Reading r;
  int64_t number = 0;
  for (std::string_view line : lines(text)) r.line(line, ++number);
  return r;
}

TEST(Reading, ExamplesAreTheLinesBehindTheSentenceThatShowsThem) {
  const Reading r = read(
      "When the peer is gone you may see a message like the following:\n\n  status=12 vendor err 129\n"
      "  status=5\n\nRuntimeError: real\n");
  EXPECT_EQ(r.shown_as(1), Voice::machine);
  EXPECT_EQ(r.shown_as(3), Voice::mentioned);
  EXPECT_EQ(r.shown_as(4), Voice::mentioned);
  EXPECT_EQ(r.shown_as(6), Voice::machine);
  EXPECT_EQ(read("Each of my ranks prints lines similar to this:\n\n status=12\n").shown_as(3),
            Voice::machine);
  EXPECT_EQ(read("A typical log for example:\n```\na\n\nb\n```\nc\n").shown_as(5), Voice::quoted);
  EXPECT_EQ(read("A typical log for example:\n```\na\n\nb\n```\nc\n").shown_as(7), Voice::machine);
}

TEST(Reading, APageSpeaksToItsReaderAndHasNoTroubleOfItsOwn) {
  const std::string page =
      "The module must be loaded before the container is started.\n"
      "You should look at the kernel log if it is not there.\n"
      "It is part of the driver and of no other package.\nSee also the page about the network.\n";
  EXPECT_TRUE(read(page).page());
  EXPECT_FALSE(read(page + "I did all of that and my pods still crash with the same error.\n").page());
  EXPECT_FALSE(read("a:1:1 [0] NCCL INFO x\nb:1:1 [0] NCCL INFO y\n" + page.substr(0, 60) + "\n").page());
}

TEST(Mention, AQuoteThatSaysNeitherWaitsForTheRest) {
  EXPECT_EQ(
      voice("* \"Bootstrap : no socket interface found\": the file named eth0 on hosts where it is ens3.",
            of("no socket interface found")),
      Voice::quoted);
}

TEST(Mention, TroubleIsToldInTheFirstPerson) {
  EXPECT_TRUE(tells_trouble("Hi, we see a hang of all ranks in the first dispatch since we moved to 3.5."));
  EXPECT_TRUE(tells_trouble("the server dies at once when I add the second node, any idea?"));
  EXPECT_FALSE(tells_trouble("If the server dies at once you should look at the versions first."));
  EXPECT_FALSE(tells_trouble("Does low latency mode need nvidia-peermem, or is DMA-BUF enough?"));
  EXPECT_FALSE(
      tells_trouble("node1:3301:3377 [0] NCCL INFO Channel 00 : 31[b3000] -> 0[1a000] via NET/IB/0"));
}

}  // namespace
}  // namespace ep
