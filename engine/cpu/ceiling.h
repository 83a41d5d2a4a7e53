// The same bytes by the plainest means that the machine has: what dispatch and combine are measured against.
// No layout, no counts, no metadata, no arithmetic; the same processes, buffers and instruction set.
#pragma once

#include "cpu/exchange.h"

namespace ep::engine::cpu {

/// Each calls for a meeting before and after, outside. They overwrite receive buffers (not guards).
class Ceiling {
 public:
  /// `exchange` has dispatched once, so that the numbers of rows are known.
  Ceiling(Member& member, const Place& place, const CopyOps& ops, Team& team, const Exchange& exchange)
      : member_(member), place_(place), ops_(ops), team_(team), exchange_(exchange) {}

  /// Dispatch: every source row is read once and written to as many receivers as its token has.
  void fan_out(const SourceView& source);
  /// Dispatch: for each receiver one contiguous copy of as many bytes as it is due.
  void bulk_copy(const SourceView& source);
  /// Combine: the same rows are read from the peers, xored, and one row is written for each token.
  void merge(uint16_t* out);

 private:
  Member& member_;
  const Place& place_;
  const CopyOps& ops_;
  Team& team_;
  const Exchange& exchange_;
};

}  // namespace ep::engine::cpu
