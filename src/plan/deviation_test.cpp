// Named stacks: what the rules may change in them, and what makes them another stack.
#include "plan/deviation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/fact_scope.h"
#include "plan/hosts_for_test.h"
#include "plan/planner.h"

namespace ep {
namespace {

using namespace ep::test;

const Recipe& recipe() {
  static const Recipe r = *load_recipe("", condition_names());
  return r;
}

// A named stack whose DeepEP has another interface is another stack; other versions of the same are said
// aloud.
TEST(Deviation, ANamedStackIsNeverSwappedForAnotherGeneration) {
  PlanOptions o;
  o.stack = "v25-plain";
  auto p = make_plan(h100_infiniband(), recipe(), o);
  if (p) {
    const auto* deepep = p->solution.choice("deepep");
    ASSERT_NE(deepep, nullptr);
    EXPECT_EQ(deepep->version, "2.5.0+db8166d");
  } else {
    EXPECT_EQ(p.error().kind, ErrorKind::unsupported);
  }
  // The same for every named stack on many hosts: what is planned has the generation that was named.
  const auto generation = [](const Release* r) {
    for (const auto& t : r->traits)
      if (t == "v1" || t == "v2" || t == "v25") return t;
    return std::string();
  };
  int planned_ones = 0, refused = 0;
  for (uint64_t seed = 0; seed < 60; ++seed)
    for (const auto& s : recipe().stacks) {
      if (s.lane == "local" || !s.pins.count("deepep")) continue;
      PlanOptions named;
      named.stack = s.id;
      // On a host of its own the plan may bring a newer driver; in a container it has to do with the one
      // there.
      Facts host = random_host(seed);
      if (seed % 2) host.container.runtime = known<std::string>("docker", "/.dockerenv");
      const auto made = make_plan(host, recipe(), named);
      if (!made) {
        refused += contains(made.error().text(), "stack-generation");
        continue;
      }
      ++planned_ones;
      const Release* pinned = recipe().component("deepep")->release(s.pins.at("deepep"));
      EXPECT_EQ(generation(made->solution.choice("deepep")->release), generation(pinned))
          << s.id << " " << seed;
      for (const auto& c : made->solution.choices)
        if (const auto pin = s.pins.find(c.component); pin != s.pins.end() && pin->second != c.version) {
          EXPECT_TRUE(std::any_of(made->plan.notes.begin(), made->plan.notes.end(),
                                  [&](const Finding& n) {
                                    return n.code == "stack-deviation" && n.severity == Severity::warn &&
                                           contains(n.title, c.component);
                                  }))
              << s.id << " " << c.component;
        }
    }
  EXPECT_GT(planned_ones, 0);
  EXPECT_GT(refused, 0) << "no host shows what this test is for";
}

TEST(Deviation, AStackOfAnotherPlatformSaysSo) {
  PlanOptions o;
  o.stack = "v1-gcp-b200";
  const auto p = make_plan(h100_infiniband(), recipe(), o);
  ASSERT_TRUE(p) << p.error().text();
  EXPECT_TRUE(std::any_of(p->plan.notes.begin(), p->plan.notes.end(), [](const Finding& n) {
    return n.code == "stack-platform" && n.severity == Severity::warn;
  }));
}

}  // namespace
}  // namespace ep
