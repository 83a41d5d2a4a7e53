// An EnvPlan as a shell script, a systemd EnvironmentFile, a Docker env-file, or a Kubernetes env list. Every
// line is preceded by its reason; sourcing the script twice changes nothing.
#pragma once
#include <string>

#include "plan/env.h"

namespace ep {

enum class EnvForm { shell, systemd, docker, k8s };

std::string env_text(const EnvPlan& plan, EnvForm form, Lang lang);

}  // namespace ep
