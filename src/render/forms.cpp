// The forms: a script for reading and running, an image, a playbook, a first boot, a pod.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/words.h"
#include "render/render.h"

namespace ep {
namespace {

/// What a container shares with its host is the host's: kernel, drivers, their options, limits.
bool for_the_host(const Step& s) {
  const auto of = [&](const char* component) { return s.component == component; };
  return s.risk == Risk::kernel_options || s.risk == Risk::reboot || of("driver") || of("doca-ofed") ||
         of("driver-options") || of("peermem") || of("limits");
}
std::string commands(const Step& s, const RenderInput& in) {
  std::string out;
  for (const auto& a : s.actions) out += shell_of(a, *in.plan, in.env);
  return out;
}

/// Steps as shell, each once: a mark in EP_STATE says it is done. The reboot has none: it is asked every time
/// whether it is needed.
std::string step_blocks(const RenderInput& in, bool (*left_out)(const Step&), const std::string& whose) {
  std::string out;
  for (const auto& s : in.plan->steps) {
    out += fmt::format("\n# {}{}: {}\n# {}\n", s.runbook_phase.empty() ? "" : s.runbook_phase + ", ", s.id,
                       one_line(s.title), one_line(s.why));
    if (left_out && left_out(s)) {
      out += fmt::format("# {}\n", whose);
      continue;
    }
    if (s.risk == Risk::reboot) {
      out += "ep_reboot\n";
      continue;
    }
    out += fmt::format("if [ ! -e \"$EP_STATE/{0}\" ]; then\nep_say {1}\n{2}: > \"$EP_STATE/{0}\"\nfi\n",
                       s.id, shell_quote(s.title), commands(s, in));
  }
  return out;
}

}  // namespace

std::string one_line(std::string_view text) {
  return replace_all(replace_all(std::string(text), "\n", " "), "\r", " ");
}

std::string form_head(const RenderInput& in, const char* comment) {
  const Plan& p = *in.plan;
  const Words w{in.lang};
  std::string out =
      fmt::format("{} {}\n", comment,
                  one_line(w("Lane {}, stack {}, made by epready plan for {}. The same steps in the same "
                             "order as epready apply.",
                             "通道 {}，组合 {}，由 epready plan 为 {} 生成。步骤与顺序同 epready apply。",
                             p.lane, p.stack, p.host_name)));
  for (const auto& s : p.skipped)
    out +=
        fmt::format("{} {}\n", comment, one_line(w("not needed: {} ({})", "无需：{}（{}）", s.id, s.reason)));
  for (const auto& n : p.notes)
    if (n.severity != Severity::info)
      out += fmt::format("{} {}\n", comment, one_line(w("mind: {}", "注意：{}", n.title)));
  return out;
}

bool is_env_step(const Step& s) {
  return std::any_of(s.actions.begin(), s.actions.end(),
                     [](const Action& a) { return std::holds_alternative<RunSelf>(a); });
}

std::string script_body(const RenderInput& in, bool (*left_out)(const Step&), const std::string& whose) {
  std::string out = "#!/bin/sh\n" + form_head(in, "#") + "set -eu\numask 022\n";
  out += "EP_STATE=" + shell_quote(in.plan->prefix + "/script-state") + "\ninstall -d \"$EP_STATE\"\n";
  out += std::string(shell_prelude());
  if (std::any_of(in.plan->steps.begin(), in.plan->steps.end(),
                  [&](const Step& s) { return s.risk == Risk::reboot && !(left_out && left_out(s)); }))
    out += shell_of_live(*in.plan) + std::string(shell_of_reboot());
  return out + step_blocks(in, left_out, whose);
}

std::string yaml_block(std::string_view text, int indent) {
  const std::string pad_text(size_t(indent), ' ');
  std::string out = "|\n";
  for (auto line : lines(text)) out += line.empty() ? "\n" : pad_text + std::string(line) + "\n";
  return out;
}

std::string yaml_quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

const std::vector<std::string>& render_forms() {
  static const std::vector<std::string> forms = {"script",     "dockerfile", "ansible",
                                                 "cloud-init", "k8s",        "image"};
  return forms;
}

Result<std::string> render(std::string_view form, const RenderInput& input) {
  // A script that dies at its third step is worse than none: what can't be verified is refused before.
  if (std::find(render_forms().begin(), render_forms().end(), form) != render_forms().end() && input.plan) {
    const auto keys = unpinned_keys(*input.plan);
    std::string with;
    for (const auto& k : keys) with += fmt::format(" --with {}-key=FINGERPRINT", k);
    if (!keys.empty())
      return fail(ErrorKind::unsupported,
                  "the signing key of a package source is pinned by nothing: " + join(keys, ", "),
                  "--as " + std::string(form),
                  "the form would stop at that step; get the fingerprint from its publisher by another way",
                  fmt::format("epready plan --as {}{}", form, with));
  }
  if (form == "script") return render_script(input);
  if (form == "dockerfile") return render_dockerfile(input);
  if (form == "ansible") return render_ansible(input);
  if (form == "cloud-init") return render_cloud_init(input);
  if (form == "k8s") return render_k8s(input);
  if (form == "image") return render_image(input);
  const auto near = closest(form, render_forms());
  return fail(ErrorKind::usage, fmt::format("no form \"{}\"", form), "--as",
              near ? fmt::format("did you mean \"{}\"?", *near) : "known: " + join(render_forms(), ", "),
              "epready plan --as script");
}

std::string render_script(const RenderInput& in) {
  return script_body(in, nullptr, "") + "\nep_say finished\n";
}

/// Names of NICs are known where the image runs: its entry point writes the environment file, then begins.
static std::string entry_point(const RenderInput& in) {
  const Words w{in.lang};
  const std::string dir = in.plan->prefix + "/env";
  std::string out =
      "# " + w("computed where the image runs, by its entry point", "由入口脚本在运行处计算") + "\n";
  if (!in.env) return out + "# epready env --shell\n";
  out += "COPY --chmod=0755 <<'EPREADY_ENTRY' " + dir + "/entry.sh\n#!/bin/sh\nif (\nset -eu\n" +
         ". /usr/local/lib/epready-prelude.sh\n" + shell_of_env(*in.env, dir + "/env.sh") + "); then . " +
         dir +
         "/env.sh; else echo 'epready: no environment file: the RDMA devices of the plan are not here' >&2; "
         "fi\n" +
         "exec \"$@\"\nEPREADY_ENTRY\n";
  return out + "ENTRYPOINT [\"" + dir + "/entry.sh\"]\nCMD [\"bash\"]\n";
}

std::string render_dockerfile(const RenderInput& in) {
  const Plan& p = *in.plan;
  const Words w{in.lang};
  std::string out = "# syntax=docker/dockerfile:1\n" + form_head(in, "#");
  out += "ARG BASE=" + in.base_image + "\nFROM ${BASE}\n";
  out +=
      "RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "
      "ca-certificates curl gpg git patch python3 python3-venv && rm -rf /var/lib/apt/lists/*\n";
  out += "COPY <<'EPREADY_PRELUDE' /usr/local/lib/epready-prelude.sh\n" + std::string(shell_prelude()) +
         "EPREADY_PRELUDE\n";
  if (!in.toolkit.empty())
    out += "RUN . /usr/local/lib/epready-prelude.sh && ep_toolkit " + in.toolkit + " " + in.base_image + "\n";
  for (const auto& s : p.steps) {
    out += fmt::format("\n# {}{}: {}\n# {}\n", s.runbook_phase.empty() ? "" : s.runbook_phase + ", ", s.id,
                       one_line(s.title), one_line(s.why));
    if (for_the_host(s)) {
      out +=
          "# " +
          w("belongs to the host that runs the image: epready driver", "属于运行镜像的主机：epready driver") +
          "\n";
      continue;
    }
    if (is_env_step(s)) {
      out += entry_point(in);
      continue;
    }
    std::string body = "set -eu\n. /usr/local/lib/epready-prelude.sh\n" + commands(s, in);
    out += "RUN <<'EPREADY_STEP'\n" + body + "EPREADY_STEP\n";
  }
  return out;
}

std::string render_cloud_init(const RenderInput& in) {
  const std::string path = "/usr/local/sbin/epready-setup";
  const std::string unit =
      "[Unit]\nDescription=epready: set up the EP stack (goes on after its "
      "reboot)\nWants=network-online.target\nAfter=network-online.target\nConditionPathExists=!" +
      in.plan->prefix +
      "/script-state/finished\n[Service]\nType=oneshot\nEnvironment=EPREADY_AUTO_REBOOT=1\nExecStart=" +
      path + "\nExecStartPost=/bin/touch " + in.plan->prefix +
      "/script-state/finished\nTimeoutStartSec=infinity\n[Install]\nWantedBy=multi-user.target\n";
  std::string out = "#cloud-config\n" + form_head(in, "#");
  out += "write_files:\n  - path: " + path +
         "\n    permissions: \"0755\"\n    content: " + yaml_block(render_script(in), 6);
  out += "  - path: /etc/systemd/system/epready-setup.service\n    permissions: \"0644\"\n    content: " +
         yaml_block(unit, 6);
  out +=
      "runcmd:\n  - [systemctl, daemon-reload]\n  - [systemctl, enable, epready-setup.service]\n  - "
      "[systemctl, start, --no-block, epready-setup.service]\n";
  return out;
}

static std::string pod_script(const RenderInput& in) {
  const Words w{in.lang};
  std::string out = script_body(
      in, [](const Step& s) { return for_the_host(s); }, w("belongs to the node", "属于节点"));
  if (!in.toolkit.empty())
    out.insert(out.find("\n# ", out.find("ep_initramfs()")),
               "\nep_toolkit " + in.toolkit + " " + shell_quote(in.base_image) +
                   "\nep_packages ca-certificates curl git patch python3 python3-venv\n");
  return out + "\nep_say finished\n";
}

/// gIB is configured for every process of the pod, not only for those that source the file.
static std::string pod_env(const RenderInput& in) {
  if (!in.env) return {};
  std::string out;
  bool gib = false;
  for (const auto& l : in.env->plan.lines)
    gib = gib || l.name == "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE";
  for (const auto& l : in.env->plan.lines) {
    if (!gib || !contains(l.why.en, "gIB")) continue;
    std::string value = l.whole();
    if (l.is_list && l.rest.empty() && !in.library_path.empty()) value += ":" + in.library_path;
    out += fmt::format("        - {{ name: {}, value: {} }}\n", l.name, yaml_quote(value));
  }
  return out.empty() ? out : "      env:\n" + out;
}

std::string render_k8s(const RenderInput& in) {
  const std::string name = "epready-" + in.plan->stack;
  std::string out = form_head(in, "#");
  out += "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name +
         "\ndata:\n  setup.sh: " + yaml_block(pod_script(in), 4);
  // The platform's lines, grouped by place; several lines of one place follow each other.
  const auto lines_at = [&](std::string_view at, int indent) {
    std::string text;
    std::vector<std::string> seen;
    for (const auto& l : in.pod) {
      if (l.at != at || std::find(seen.begin(), seen.end(), l.yaml) != seen.end()) continue;
      seen.push_back(l.yaml);
      for (auto line : lines(l.yaml))
        if (!line.empty()) text += std::string(size_t(indent), ' ') + std::string(line) + "\n";
    }
    return text;
  };
  out += "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\n";
  if (const auto a = lines_at("metadata.annotations", 4); !a.empty()) out += "  annotations:\n" + a;
  const std::string spec = lines_at("spec", 2);
  out += "spec:\n  restartPolicy: Never\n" + spec;
  // Without this a pod in the host's network asks the host's resolver, which knows no service of the cluster.
  if (contains(spec, "hostNetwork: true") && !contains(spec, "dnsPolicy:"))
    out += "  dnsPolicy: ClusterFirstWithHostNet\n";
  out += "  volumes:\n    - { name: setup, configMap: { name: " + name + ", defaultMode: 0755 } }\n" +
         lines_at("spec.volumes", 4);
  out += "  containers:\n    - name: ep\n      image: " + in.base_image +
         "\n      command: [\"/bin/sh\", \"-c\", \"/epready/setup.sh && exec sleep infinity\"]\n" +
         pod_env(in);
  std::string security = lines_at("spec.containers[0].securityContext", 8);
  // A privileged container has every capability.
  const bool privileged = contains(security, "privileged: true");
  if (const auto c = lines_at("spec.containers[0].securityContext.capabilities", 10);
      !c.empty() && !privileged)
    security += "        capabilities:\n" + c;
  if (!security.empty()) out += "      securityContext:\n" + security;
  if (const auto r = lines_at("spec.containers[0].resources.limits", 10); !r.empty())
    out += "      resources:\n        limits:\n" + r;
  out += "      volumeMounts:\n        - { name: setup, mountPath: /epready }\n" +
         lines_at("spec.containers[0].volumeMounts", 8);
  return out;
}

}  // namespace ep
