// The assignment against brute force on generated hosts: same total distance, as many GPUs served, constraint
// kept, same answer for the same input.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "facts/topology_assign.h"

namespace ep {
namespace {

struct Best {
  int served = -1;
  long long cost = 0, crowding = 0;
};

void search(const AssignProblem& p, size_t gpu, std::vector<int>& uses, int served, long long cost,
            Best& best) {
  if (gpu == p.cost.size()) {
    std::map<int, int> cards;
    for (size_t n = 0; n < uses.size(); ++n) cards[p.card[n]] += uses[n];
    long long crowding = 0;
    for (auto [c, k] : cards) crowding += (long long)k * (k - 1) / 2;
    bool better =
        served > best.served ||
        (served == best.served && (cost < best.cost || (cost == best.cost && crowding < best.crowding)));
    if (better) best = {served, cost, crowding};
    return;
  }
  search(p, gpu + 1, uses, served, cost, best);
  for (size_t n = 0; n < uses.size(); ++n) {
    int c = p.cost[gpu][n];
    if (c < 0 || uses[n] == p.max_gpus_per_nic) continue;
    ++uses[n];
    search(p, gpu + 1, uses, served + 1, cost + c, best);
    --uses[n];
  }
}

TEST(AssignProperty, IsAsGoodAsBruteForce) {
  bool ok = rc::check("assignment equals brute force", [] {
    int gpus = *rc::gen::inRange(1, 5), nics = *rc::gen::inRange(1, 6);
    AssignProblem p;
    for (int g = 0; g < gpus; ++g) {
      std::vector<int> row;
      for (int n = 0; n < nics; ++n) row.push_back(*rc::gen::element(-1, 0, 1, 4, 6, 20));
      p.cost.push_back(row);
    }
    for (int n = 0; n < nics; ++n) p.card.push_back(*rc::gen::inRange(0, 3));
    p.max_gpus_per_nic = *rc::gen::inRange(1, 4);
    Best best;
    std::vector<int> uses(size_t(nics), 0);
    search(p, 0, uses, 0, 0, best);
    auto r = assign_nics(p);
    RC_ASSERT(r == assign_nics(p));
    int served = 0;
    long long cost = 0, crowding = 0;
    std::map<int, int> cards, per_nic;
    for (int g = 0; g < gpus; ++g) {
      if (r[size_t(g)] < 0) continue;
      int c = p.cost[size_t(g)][size_t(r[size_t(g)])];
      RC_ASSERT(c >= 0);
      ++served;
      cost += c;
      ++cards[p.card[size_t(r[size_t(g)])]];
      RC_ASSERT(++per_nic[r[size_t(g)]] <= p.max_gpus_per_nic);
    }
    for (auto [c, k] : cards) crowding += (long long)k * (k - 1) / 2;
    RC_ASSERT(served == best.served);
    RC_ASSERT(cost == best.cost);
    RC_ASSERT(crowding == best.crowding);
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace ep
