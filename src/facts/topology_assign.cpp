// See topology_assign.h. Min-cost flow source -> GPU -> NIC -> card -> sink. The k-th GPU on a NIC or card
// costs k, so evenness falls out of the optimum; costs are compared lexicographically, which an ordered group
// allows.
#include "facts/topology_assign.h"

#include <algorithm>
#include <cstdint>
#include <deque>

namespace ep {
namespace {

// Lexicographic cost: distance, card crowding, NIC crowding, sum of rail numbers, order.
struct Cost {
  int64_t a = 0, b = 0;
  Cost operator+(const Cost& o) const { return {a + o.a, b + o.b}; }
  Cost operator-() const { return {-a, -b}; }
  bool operator<(const Cost& o) const { return a != o.a ? a < o.a : b < o.b; }
};

constexpr int64_t kDistance = int64_t(1) << 32, kCard = int64_t(1) << 16,
                  kNic = 1;  // up to 362 GPUs without carry
constexpr int64_t kRail = int64_t(1) << 32;

struct Edge {
  int to, cap, flow = 0;
  Cost cost;
  int64_t step = 0;  // convex part: unit number k adds k * step to cost.a
  int back;
};

class Flow {
 public:
  explicit Flow(int nodes) : out_(size_t(nodes)) {}
  void add(int from, int to, int cap, Cost cost, int64_t step = 0) {
    out_[size_t(from)].push_back(int(edges_.size()));
    edges_.push_back({to, cap, 0, cost, step, int(edges_.size()) + 1});
    out_[size_t(to)].push_back(int(edges_.size()));
    edges_.push_back({from, 0, 0, -cost, step, int(edges_.size()) - 1});
  }
  // Cost of one more unit on e; reverse edges give back the cost of the last unit.
  Cost marginal(const Edge& e) const {
    Cost c = e.cost;
    if (e.step) {
      if (e.cap > 0)
        c.a += e.step * e.flow;
      else
        c.a -= e.step * (edges_[size_t(e.back)].flow - 1);
    }
    return c;
  }
  bool usable(const Edge& e) const { return e.cap > 0 ? e.flow < e.cap : edges_[size_t(e.back)].flow > 0; }

  bool augment(int s, int t) {
    std::vector<Cost> dist(out_.size());
    std::vector<int> via(out_.size(), -1);
    std::vector<char> seen(out_.size(), 0), queued(out_.size(), 0);
    std::deque<int> queue{s};
    seen[size_t(s)] = 1;
    while (!queue.empty()) {
      int v = queue.front();
      queue.pop_front();
      queued[size_t(v)] = 0;
      for (int i : out_[size_t(v)]) {
        const Edge& e = edges_[size_t(i)];
        if (!usable(e)) continue;
        Cost d = dist[size_t(v)] + marginal(e);
        if (seen[size_t(e.to)] && !(d < dist[size_t(e.to)])) continue;
        seen[size_t(e.to)] = 1;
        dist[size_t(e.to)] = d;
        via[size_t(e.to)] = i;
        if (!queued[size_t(e.to)]) {
          queued[size_t(e.to)] = 1;
          if (!queue.empty() && d < dist[size_t(queue.front())])
            queue.push_front(e.to);
          else
            queue.push_back(e.to);
        }
      }
    }
    if (!seen[size_t(t)]) return false;
    for (int v = t; v != s;) {
      Edge& e = edges_[size_t(via[size_t(v)])];
      Edge& back = edges_[size_t(e.back)];
      if (e.cap > 0)
        ++e.flow;
      else
        --back.flow;
      v = back.to;
    }
    return true;
  }
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> out_;
};

}  // namespace

std::vector<int> assign_nics(const AssignProblem& p) {
  const int gpus = int(p.cost.size());
  const int nics = int(p.card.size());
  std::vector<int> result(size_t(gpus), -1);
  if (gpus == 0 || nics == 0 || p.max_gpus_per_nic < 1) return result;
  std::vector<int> cards = p.card;
  std::sort(cards.begin(), cards.end());
  cards.erase(std::unique(cards.begin(), cards.end()), cards.end());
  const int num_cards = int(cards.size());
  const int s = 0, first_gpu = 1, first_nic = 1 + gpus, first_card = first_nic + nics,
            t = first_card + num_cards;
  Flow flow(t + 1);
  std::vector<std::pair<int, std::pair<int, int>>> choice;  // edge -> gpu, nic
  int next_edge = 0;
  for (int g = 0; g < gpus; ++g) {
    flow.add(s, first_gpu + g, 1, {});
    next_edge += 2;
    for (int n = 0; n < nics; ++n) {
      int c = p.cost[size_t(g)][size_t(n)];
      if (c < 0) continue;
      choice.push_back({next_edge, {g, n}});
      flow.add(first_gpu + g, first_nic + n, 1, {c * kDistance, n * kRail + int64_t(g) * (nics - 1 - n)});
      next_edge += 2;
    }
  }
  for (int n = 0; n < nics; ++n) {
    int card = int(std::lower_bound(cards.begin(), cards.end(), p.card[size_t(n)]) - cards.begin());
    flow.add(first_nic + n, first_card + card, p.max_gpus_per_nic, {}, kNic);
  }
  for (int c = 0; c < num_cards; ++c) flow.add(first_card + c, t, gpus, {}, kCard);
  while (flow.augment(s, t)) {
  }
  for (const auto& [edge, pair] : choice)
    if (flow.edges()[size_t(edge)].flow > 0) result[size_t(pair.first)] = pair.second;
  return result;
}

int least_sharing(const AssignProblem& problem) {
  AssignProblem p = problem;
  auto serves_all = [&](int sharing) {
    p.max_gpus_per_nic = sharing;
    auto r = assign_nics(p);
    return std::none_of(r.begin(), r.end(), [](int n) { return n < 0; });
  };
  // What some sharing serves, more sharing serves too.
  int least = 1, most = int(p.cost.size());
  if (most < 1 || serves_all(1)) return most < 1 ? 0 : 1;
  if (!serves_all(most)) return 0;
  while (least + 1 < most) {
    int middle = (least + most) / 2;
    (serves_all(middle) ? most : least) = middle;
  }
  return most;
}

}  // namespace ep
