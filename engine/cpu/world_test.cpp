// Ranks as processes: they meet, and whoever fails is named in time, with nobody left behind.
#include "cpu/world.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cpu/exchange.h"

namespace ep::engine::cpu {
namespace {

class World : public testing::Test {
 protected:
  void SetUp() override {
    Shape shape;
    shape.hidden = 64;
    shape.experts = 8;
    shape.topk = 2;
    shape.set_even_tokens(4);
    ASSERT_EQ(Place::make(shape, Backing::kMemfd, 4096, place_), "");
    options_.ranks = 4;
    options_.stall_limit_s = 0.3;
  }
  void TearDown() override {
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD) << "a child is left";
  }
  Control& control() { return place_.control(); }
  Place place_;
  WorldOptions options_;
};

TEST_F(World, MeetingsOrderWhatRanksWrite) {
  auto* words = reinterpret_cast<uint64_t*>(place_.samples.data());  // one per rank
  const Outcome outcome = run_world(control(), options_, [&](Member& member) {
    for (uint64_t round = 1; round <= 200; ++round) {
      words[member.rank()] = round;
      member.meet();
      for (int r = 0; r < 4; ++r) {
        if (words[r] != round) member.mismatch("stale");
      }
      member.meet();
    }
    return true;
  });
  EXPECT_EQ(outcome.kind, Outcome::kOk) << outcome.text;
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(control().rank[r].mismatches, 0u);
    EXPECT_EQ(words[r], 200u);
    EXPECT_EQ(static_cast<Phase>(control().rank[r].phase.load()), Phase::kDone);
  }
}

bool all_phases(Member& member) {
  for (const Phase phase :
       {Phase::kCeiling, Phase::kLayout, Phase::kDispatch, Phase::kExpert, Phase::kCombine, Phase::kVerify}) {
    member.enter(phase);
    member.meet();
  }
  return true;
}

TEST_F(World, WhoeverDiesInAPhaseIsNamedAtOnce) {
  for (int p = 0; p < kPhases; ++p) {
    const Phase phase = static_cast<Phase>(p);
    std::memset(place_.control_memory.data(), 0, place_.control_memory.size());
    options_.fault = {Fault::kDie, p % 4, phase};
    options_.stall_limit_s = 60;
    const int64_t begin = now_ns();
    const Outcome outcome = run_world(control(), options_, all_phases);
    EXPECT_EQ(outcome.kind, Outcome::kDied) << name_of(phase);
    EXPECT_EQ(outcome.rank, p % 4);
    EXPECT_EQ(outcome.phase, phase);
    EXPECT_NE(outcome.text.find("signal 9"), std::string::npos) << outcome.text;
    EXPECT_LT(now_ns() - begin, 20'000'000'000) << "must not wait for the standstill limit";
  }
}

TEST_F(World, WhoeverHangsInAPhaseIsNamedWithinTheLimit) {
  for (int p = 0; p < kPhases; ++p) {
    const Phase phase = static_cast<Phase>(p);
    std::memset(place_.control_memory.data(), 0, place_.control_memory.size());
    options_.fault = {Fault::kHang, p % 4, phase};
    const int64_t begin = now_ns();
    const Outcome outcome = run_world(control(), options_, all_phases);
    EXPECT_EQ(outcome.kind, Outcome::kHung) << name_of(phase);
    EXPECT_EQ(outcome.rank, p % 4) << outcome.text;
    EXPECT_EQ(outcome.phase, phase) << outcome.text;
    EXPECT_GE(now_ns() - begin, 300'000'000);
    EXPECT_LT(now_ns() - begin, 20'000'000'000);
  }
}

TEST_F(World, ARankThatGivesUpSaysWhy) {
  const Outcome outcome = run_world(control(), options_, [](Member& member) {
    if (member.rank() == 2) {
      std::snprintf(member.self().message, sizeof member.self().message, "no room on the ark");
      return false;
    }
    member.meet();
    return true;
  });
  EXPECT_EQ(outcome.kind, Outcome::kGaveUp);
  EXPECT_EQ(outcome.rank, 2);
  EXPECT_NE(outcome.text.find("no room on the ark"), std::string::npos);
}

TEST_F(World, AnExceptionIsAReason) {
  const Outcome outcome = run_world(control(), options_, [](Member& member) -> bool {
    if (member.rank() == 1) throw std::runtime_error("thrown in rank 1");
    member.meet();
    return true;
  });
  EXPECT_EQ(outcome.kind, Outcome::kGaveUp);
  EXPECT_NE(outcome.text.find("thrown in rank 1"), std::string::npos);
}

TEST_F(World, WorkIsNoStandstill) {
  options_.stall_limit_s = 0.2;
  const Outcome outcome = run_world(control(), options_, [](Member& member) {
    if (member.rank() == 3) {
      for (const int64_t end = now_ns() + 700'000'000; now_ns() < end;) member.tick();
    }
    member.meet();
    return true;
  });
  EXPECT_EQ(outcome.kind, Outcome::kOk) << outcome.text;
}

TEST_F(World, InterruptEndsAllRanks) {
  options_.stall_limit_s = 60;
  const pid_t parent = getpid();
  const Outcome outcome = run_world(control(), options_, [parent](Member& member) {
    if (member.rank() == 0) {
      kill(parent, SIGINT);
      for (;;) pause();
    }
    member.meet();
    return true;
  });
  EXPECT_EQ(outcome.kind, Outcome::kInterrupted) << outcome.text;
}

TEST(Fault, ParsesAndExplains) {
  Fault fault;
  EXPECT_EQ(parse_fault("die:3:combine", fault), "");
  EXPECT_EQ(fault.kind, Fault::kDie);
  EXPECT_EQ(fault.rank, 3);
  EXPECT_EQ(fault.phase, Phase::kCombine);
  EXPECT_EQ(parse_fault("corrupt:0:dispatch", fault), "");
  for (const char* bad : {"", "die", "die:1", "live:1:setup", "die:x:setup", "die::setup", "die:-1:setup",
                          "die:100:setup", "die:1:lunch", "corrupt:1:setup"}) {
    EXPECT_NE(parse_fault(bad, fault), "") << bad;
  }
}

}  // namespace
}  // namespace ep::engine::cpu
