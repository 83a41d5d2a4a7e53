// Test data of one rank at benchmark size, and the checks that run in every iteration: metadata byte for
// byte, rows and results by hash, scales, counts, poison after the last row, guards around every buffer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cpu/exchange.h"
#include "expect.h"

namespace ep::engine::cpu {

class RankData {
 public:
  RankData(Member& member, const Place& place, const CopyOps& ops)
      : member_(member), place_(place), ops_(ops) {}

  /// Takes the memory and produces everything. Contains a meeting. Returns "" or why it cannot be done.
  std::string prepare(Pattern pattern, uint64_t seed, bool weighted);

  SourceView source() const;
  uint16_t* out() const { return reinterpret_cast<uint16_t*>(out_.data()); }
  size_t out_bytes() const;

  void poison_receive();
  void poison_out();
  /// Each notes what is wrong with Member::mismatch and adds to the rows checked.
  void check_received();
  void check_combined();

 private:
  void check_record(size_t slot, int source, int token);
  void check_guards();
  void check_after_last();

  Member& member_;
  const Place& place_;
  const CopyOps& ops_;
  uint64_t seed_ = 0;
  Expectation expect_;  // generated here from pattern and seed, not taken from what was sent
  Mapping x_, scale_, out_;
};

}  // namespace ep::engine::cpu
