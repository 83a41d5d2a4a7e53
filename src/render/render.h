// A plan in the forms that other tools run: POSIX script, Dockerfile, Ansible playbook, cloud-init,
// Kubernetes. Pure: text in the plan becomes quoted words, never code. The forms carry the same steps in the
// same order; what a form cannot do (a reboot in an image, kernel options in a pod) stands in it as a comment
// that says whose job it is.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "recipe/recipe.h"

namespace ep {

/// What a form needs beyond the plan.
struct RenderInput {
  const Plan* plan = nullptr;
  std::vector<PodLine> pod;                 ///< k8s: lines of the platform's specification
  std::string base_image = "ubuntu:24.04";  ///< Dockerfile, k8s
  Lang lang = Lang::en;
};

/// "script", "dockerfile", "ansible", "cloud-init", "k8s".
const std::vector<std::string>& render_forms();
/// Errors: usage for an unknown form, with the nearest.
Result<std::string> render(std::string_view form, const RenderInput& input);

std::string render_script(const RenderInput& input);
std::string render_dockerfile(const RenderInput& input);
std::string render_ansible(const RenderInput& input);
std::string render_cloud_init(const RenderInput& input);
std::string render_k8s(const RenderInput& input);

/// One action as shell commands, several lines, each ended by \n. The functions of `shell_prelude` must be
/// defined before.
std::string shell_of(const Action& action, const Plan& plan);
/// Functions that the commands use: fetching with a hash, checkout of a commit, keys by fingerprint ...
std::string_view shell_prelude();
/// A block of text as a YAML literal block ("|" and indented lines).
std::string yaml_block(std::string_view text, int indent);
/// A YAML double-quoted scalar.
std::string yaml_quote(std::string_view text);

}  // namespace ep
