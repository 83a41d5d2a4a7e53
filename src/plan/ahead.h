// What a host will be once a plan is carried out, as far as forms need it that run where epready is not: the
// environment file, with RDMA devices by PCI address since their names may change on the way, and the inside
// of a container image, which shares GPUs and driver with the host and nothing else. Pure.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "plan/env.h"
#include "plan/planner.h"

namespace ep {

/// The environment file of a plan, written before the plan is carried out.
struct EnvAhead {
  EnvPlan plan;                                           ///< device names as marks
  std::string text;                                       ///< for a POSIX shell; device names as marks
  std::vector<std::pair<std::string, std::string>> nics;  ///< mark ("@NIC0@"), PCI address
};

/// Devices without a known PCI address keep their names. Options: as PlanOptions said.
EnvAhead environment_ahead(const Facts& facts, const Planned& planned, const Variables& variables, Lang lang);

/// The host as the inside of an image sees it: Ubuntu 24.04 with nothing installed but, when `cuda` is not
/// empty, that toolkit; the host's GPUs, NICs and driver. `runtime`: docker or kubernetes.
Facts inside_image(const Facts& host, const std::string& runtime, const std::string& cuda);

/// The image that holds a plan's toolkit: the platform's, else the toolkit's own; empty when none is on
/// record.
std::string image_for(const Planned& planned);

}  // namespace ep
