// The visible table of read-only commands that facts may ask for. A probe has a name, never arguments from
// outside; its limits are here. Snapshots and pastes answer by the same names.
#pragma once
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace ep {

struct ProbeRow {
  const char* name;
  std::vector<const char*> argv;  ///< "{kernel}" in a word stands for the running kernel's release
  double limit_s;
  size_t max_bytes;
  const char* tells;  ///< what it is asked for, one phrase; shown by `snapshot`
};

const std::vector<ProbeRow>& probe_table();
/// Null when the table has no such name.
const ProbeRow* find_probe(std::string_view name);

/// Running probes are ended when this becomes true; set once, before the first probe. Null: never.
void set_probe_interrupt(const std::atomic<bool>* flag);
const std::atomic<bool>* probe_interrupt();

}  // namespace ep
