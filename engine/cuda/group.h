// Ranks that meet: an exchange of small messages between all ranks, as threads of one process or as processes
// that a parent relays for. Control only: tokens never travel here.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace ep::engine::gpu {

using Bytes = std::vector<uint8_t>;

class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual bool processes() const = 0;
  /// Every rank gives a message and gets everybody's. Throws Failure when another rank has failed.
  virtual std::vector<Bytes> exchange(const Bytes& mine) = 0;
  /// Every rank gives one file descriptor and gets descriptors of everybody's file (its own: a duplicate).
  virtual std::vector<int> exchange_fd(int mine) = 0;

  void barrier() { exchange({}); }
  template <class T>
  std::vector<T> gather(const T& value) {
    Bytes mine(sizeof(T));
    std::memcpy(mine.data(), &value, sizeof(T));
    std::vector<T> out;
    for (const Bytes& b : exchange(mine)) {
      T one{};
      std::memcpy(&one, b.data(), std::min(sizeof(T), b.size()));
      out.push_back(one);
    }
    return out;
  }
  std::vector<std::vector<double>> gather_samples(const std::vector<double>& mine);
  std::vector<std::string> gather_text(const std::string& mine);
};

/// Runs `body` once per rank and returns the exit code. `limit_s`: processes that take longer are ended, by
/// id. In processes mode the caller must not have touched CUDA.
using RankBody = std::function<int(Group&)>;
int run_threads(int ranks, const RankBody& body);
int run_processes(int ranks, double limit_s, const RankBody& body);

}  // namespace ep::engine::gpu
