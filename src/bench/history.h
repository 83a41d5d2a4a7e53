// What was measured here before: one JSON line a run, appended and synced. A torn last line is skipped and
// said.
#pragma once
#include <string>
#include <vector>

#include "bench/bench.h"

namespace ep {

struct HistoryEntry {
  int number = 0;    ///< 1-based position in the file
  std::string when;  ///< UTC, 2026-11-30T12:00:00Z
  std::string host, version;
  BenchResult result;
};

struct History {
  std::vector<HistoryEntry> entries;
  int num_unreadable = 0;  ///< lines that are not whole records
};

/// Appends and syncs; creates the file (0600) and its folder.
Result<> append_history(const std::string& path, const HistoryEntry& entry);
/// Absent file: an empty history.
Result<History> read_history(const std::string& path);
/// One entry: a number, "last" or "prev" (the one before), or the path of a `bench --json` file.
Result<HistoryEntry> find_entry(const std::string& path, const std::string& which);

/// How phase times of b stand to those of a. `same` when the medians lie within each other's min..p95.
struct PhaseChange {
  std::string name, mode;
  double a_us = 0, b_us = 0, ratio = 0;  ///< b/a; below 1 is faster
  enum class Kind { same, faster, slower, only_a, only_b } kind = Kind::same;
};
struct Comparison {
  std::vector<PhaseChange> phases;
  std::vector<std::string> differences;  ///< shapes, devices, dtypes that make the comparison unlike
};
Comparison compare(const BenchResult& a, const BenchResult& b);

}  // namespace ep
