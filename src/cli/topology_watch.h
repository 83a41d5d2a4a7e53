// `topology --watch`: the counters of the live host's NICs, until interrupted, for a time, or around a
// command.
#pragma once
#include <string>

#include "cli/command.h"
#include "facts/topology.h"

namespace ep {

struct WatchOptions {
  double interval_s = 2;
  double seconds = 0;   ///< 0: until interrupted
  std::string command;  ///< run by /bin/sh; its end is the end of the watch; empty: nothing is run
};

/// Samples, prints one table per interval on stderr and the sum on stdout; GID tables are read each time too.
/// Exit code: 0 even, 1 idle NICs or a GID that is gone or a command that failed, 3 nothing to judge by.
int watch_traffic(Context& c, const Topology& t, const WatchOptions& options);

}  // namespace ep
