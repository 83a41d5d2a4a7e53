// Which forms make sense for which host: a form that would do harm or nothing is refused with the reason.
#include <fmt/format.h>

#include "base/text.h"
#include "render/render.h"

namespace ep {

Result<> form_fits(std::string_view form, const Facts& facts, const Plan& plan) {
  const std::string runtime = facts.container.runtime.value_or("none");
  const bool boots = form == "image" || form == "cloud-init";
  if (boots && runtime != "none")
    return fail(
        ErrorKind::unsupported,
        fmt::format("this host is a container ({}): it has no disk and no boot of its own", runtime),
        "--as " + std::string(form), "kernel, driver and boot are the node's",
        "epready plan --as k8s   (or, on the node itself: epready plan --as " + std::string(form) + ")");
  const bool for_gpus = boots || form == "k8s" || form == "dockerfile";
  if (for_gpus && facts.gpus.empty() && plan.lane == "local")
    return fail(ErrorKind::unsupported, "this host shows no NVIDIA GPU, so there is nothing to put into it",
                "--as " + std::string(form), "the plan is for the lane local",
                "epready plan --as " + std::string(form) +
                    " --from SNAPSHOT   (of a machine of the kind that it is for)");
  return {};
}

}  // namespace ep
