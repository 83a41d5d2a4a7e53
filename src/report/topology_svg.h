// A picture of a host: sockets, switches, GPUs, NICs, NVLink, the chosen pairs; excluded devices dimmed with
// their reason. One self-contained SVG, also inside HTML.
#pragma once
#include <string>

#include "base/words.h"
#include "facts/topology.h"

namespace ep {

std::string topology_svg(const Topology& topology, Lang lang);

}  // namespace ep
