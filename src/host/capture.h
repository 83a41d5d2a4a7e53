// What a snapshot holds beyond the questions that facts ask: the declared list, so that a captured host can
// be loaded by hwloc and answers tomorrow's questions as well.
#pragma once
#include "host/host.h"

namespace ep {

/// Reads the declared paths and runs every probe of the table through `recorder`, which remembers. Results
/// are dropped.
void capture_declared(const Host& recorder);

}  // namespace ep
