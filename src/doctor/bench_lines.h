// The lines of which bench_logs.cpp makes its logs: one function a kind, one call a line or two.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>

namespace ep::bench_lines {

/// A small generator of numbers, the same on every machine.
class Dice {
 public:
  explicit Dice(unsigned seed) : state_(seed * 2654435761ull + 88172645463325252ull) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  int below(int n) { return int(next() % uint64_t(n)); }
  double real(double most) { return double(next() % 1000000) * 1e-6 * most; }
  template <class T, size_t N>
  const T& of(const T (&list)[N]) {
    return list[below(int(N))];
  }

 private:
  uint64_t state_;
};

/// What a line needs: where it goes, numbers, and a clock that runs on.
struct Pen {
  std::string& out;
  Dice& d;
  int64_t tick = 0;  ///< lines so far
  template <class... A>
  void put(fmt::format_string<A...> f, A&&... a) {
    fmt::format_to(std::back_inserter(out), f, std::forward<A>(a)...);
  }
  std::string clock() const {
    const int64_t s = tick / 40;
    return fmt::format("{:02}:{:02}:{:02}", s / 3600 % 24, s / 60 % 60, s % 60);
  }
};

void vllm(Pen& p);
void sglang(Pen& p);
void nccl(Pen& p);
void train(Pen& p);
void deepep(Pen& p);
void build(Pen& p);
void kernel(Pen& p);
void progress(Pen& p);
void json(Pen& p);
void complaints(Pen& p);  ///< what ails nobody, and says so at length

}  // namespace ep::bench_lines
