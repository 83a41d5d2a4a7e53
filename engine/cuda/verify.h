// Test data on a rank and the proof of every byte: inputs, poison and guards, the oracle's answer, exact
// comparison on the host, and row hashes on the device for every iteration.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "oracle.h"
#include "pattern.h"
#include "rank.h"

namespace ep::engine::gpu {

struct HashTotals {
  uint64_t rows = 0, wrong = 0;
  std::string first;  // what the first wrong row was
};

class Verifier {
 public:
  /// Collective: configures the rank for the shape, makes inputs, asks the oracle. `combine`: also expect
  /// what combine returns, which needs every rank's returned rows on the host.
  Verifier(Rank& rank, const Shape& shape, Pattern pattern, uint64_t seed, bool combine);

  void poison_dispatch();
  void poison_combine();
  /// Writes the rows that this rank returns in combine.
  void fill_returns();

  /// Enqueue: hashes of all rows against the expected ones.
  void hash_dispatch();
  void hash_combine(bool weighted);
  /// Waits; adds up what the hashes found since the last call.
  HashTotals take_hashes();

  /// Wait and compare every byte, counts and guards with the oracle. Empty when right, else the first
  /// difference.
  std::string compare_dispatch();
  std::string compare_combine(bool weighted);

  size_t rows() const { return expected_.rows; }
  const Received& expected() const { return expected_; }
  const Routing& routing(int rank) const { return routing_[rank]; }
  bool sends() const {
    return std::any_of(send_list_.begin(), send_list_.end(), [](const auto& list) { return !list.empty(); });
  }
  /// Rows that this rank sends to others / receives from others.
  size_t rows_out() const { return rows_out_; }
  size_t rows_in() const { return rows_in_; }
  /// Tokens with a destination on each rank, ascending: what a send/recv library would pack.
  const std::vector<std::vector<int32_t>>& send_list() const { return send_list_; }

 private:
  void make_inputs();
  void expect_dispatch();
  void expect_combine();
  void fill_guards();
  std::string check_guards();
  std::string compare_bytes(const char* what, const void* device, const std::vector<uint8_t>& want,
                            size_t row_bytes);
  std::string name_row(const char* what, size_t row) const;

  Rank& rank_;
  Shape shape_;
  uint64_t seed_;
  std::vector<Routing> routing_;
  std::vector<std::vector<uint8_t>> x_, scale_;  // of all ranks; emptied when the oracle has answered
  Received expected_;
  std::vector<uint64_t> origin_;
  std::vector<uint16_t> combined_[2];
  std::vector<std::vector<int32_t>> send_list_;
  size_t rows_out_ = 0, rows_in_ = 0;
  Buffer origin_device_, hash_x_, hash_scale_, hash_meta_, hash_out_[2], results_;
  uint64_t hashed_rows_ = 0;
};

}  // namespace ep::engine::gpu
