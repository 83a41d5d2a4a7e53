// A plan in the forms that other tools run: POSIX script, Dockerfile, Ansible playbook, cloud-init,
// Kubernetes, golden disk image. Pure: text in the plan becomes quoted words, never code. The forms carry the
// same steps in the same order; what a form cannot do (a reboot in an image, kernel options in a pod) stands
// in it as a comment that says whose job it is.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/ahead.h"
#include "plan/plan.h"
#include "recipe/recipe.h"

namespace ep {

/// What a form needs beyond the plan.
struct RenderInput {
  const Plan* plan = nullptr;
  std::vector<PodLine> pod;                 ///< k8s: lines of the platform's specification
  std::string base_image = "ubuntu:24.04";  ///< Dockerfile, k8s
  Lang lang = Lang::en;
  const EnvAhead* env = nullptr;  ///< the environment file; without it the forms call epready for it
  std::string toolkit = {};       ///< Dockerfile, k8s: nvcc that base_image must hold; empty: unchecked
  std::string library_path = {};  ///< k8s: what LD_LIBRARY_PATH of such pods holds by itself
  std::vector<std::string> disk_image = {};  ///< image: the cloud's commands (Platform::disk_image)
};

/// "script", "dockerfile", "ansible", "cloud-init", "k8s", "image".
const std::vector<std::string>& render_forms();
/// Errors: usage for an unknown form, with the nearest; unsupported where a package source's key is unpinned.
Result<std::string> render(std::string_view form, const RenderInput& input);
/// Error (unsupported) where the form would do harm or nothing on that host: an image of a container, a pod
/// for a machine without GPUs. Unknown forms fit: render names them.
Result<> form_fits(std::string_view form, const Facts& facts, const Plan& plan);

std::string render_script(const RenderInput& input);
std::string render_dockerfile(const RenderInput& input);
std::string render_ansible(const RenderInput& input);
std::string render_cloud_init(const RenderInput& input);
std::string render_k8s(const RenderInput& input);
std::string render_image(const RenderInput& input);

/// One action as shell commands, several lines, each ended by \n. The functions of `shell_prelude` must be
/// defined before.
std::string shell_of(const Action& action, const Plan& plan, const EnvAhead* env = nullptr);
/// Writes the environment file to `path`, with the names that the NICs have at that moment.
std::string shell_of_env(const EnvAhead& env, const std::string& path);
/// Functions that the commands use: fetching with a hash, checkout of a commit, keys by fingerprint ...
std::string_view shell_prelude();
/// Functions ep_live, ep_boot_id and what they need: is what the reboot step must prove so? EP_STATE must be
/// set.
std::string shell_of_live(const Plan& plan);
/// Function ep_reboot, for scripts that are run again after it.
std::string_view shell_of_reboot();
/// A block of text as a YAML literal block ("|" and indented lines).
std::string yaml_block(std::string_view text, int indent);
/// A YAML double-quoted scalar.
std::string yaml_quote(std::string_view text);

// ---- shared by the forms ----
std::string one_line(std::string_view text);
/// Comment lines: what the form is, what is not needed, what to mind.
std::string form_head(const RenderInput& input, const char* comment);
bool is_env_step(const Step& step);
/// Head, prelude and steps of a script that goes on after its reboot; steps that `left_out` names become
/// comments that say `whose` they are.
std::string script_body(const RenderInput& input, bool (*left_out)(const Step&), const std::string& whose);

}  // namespace ep
