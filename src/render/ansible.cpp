// The plan as an Ansible playbook. Tasks are the plan's steps; a mark of each keeps a second run from doing
// them again, and the reboot is asked every time whether it is needed.
#include <fmt/format.h>

#include "base/text.h"
#include "render/render.h"

namespace ep {
namespace {

/// A block of shell as a task's command; what looks like a template to Ansible is handed on as it is.
std::string command_block(const std::string& body, int indent) {
  std::string out;
  const std::string block = yaml_block(body, indent);
  for (size_t i = 0; i < block.size(); ++i) {
    const std::string two = block.substr(i, 2);
    if (two == "{{" || two == "{#" || two == "{%") {
      out += "{{ '" + two + "' }}";
      ++i;
    } else {
      out += block[i];
    }
  }
  return out;
}

std::string shell_task(const std::string& name, const std::string& body, const std::string& keys,
                       const std::string& creates = {}) {
  std::string out = "    - name: " + yaml_quote(name) + "\n" + keys + "      ansible.builtin.shell:\n";
  if (!creates.empty()) out += "        creates: " + yaml_quote(creates) + "\n";
  return out + "        cmd: " + command_block(body, 10);
}

/// Rebooted only where something that was written is not live, and only once for it; then proven.
std::string reboot_tasks(const Plan& p, const Step& s) {
  const std::string state = "EP_STATE=" + shell_quote(p.prefix + "/script-state") + "\n";
  const std::string begin = "set -eu\n" + state + shell_of_live(p);
  const std::string root = "      become: true\n",
                    pending = "      when: \"ep_boot.stdout is match('pending')\"\n";
  std::string out =
      shell_task(s.id + ": is what was written live?",
                 begin +
                     "if ep_live; then echo live\n"
                     "elif [ -f \"$EP_STATE/boot\" ] && [ \"$(cat \"$EP_STATE/boot\")\" != \"$(ep_boot_id)\" "
                     "]; then echo \"vain: "
                     "$ep_why\"\nelse echo \"pending: $ep_why\"\nfi\n",
                 root + "      register: ep_boot\n      changed_when: false\n      check_mode: false\n");
  out += "    - name: " + yaml_quote(s.id + ": no reboot is pending") + "\n" + root +
         "      ansible.builtin.file: { path: \"{{ ep_state }}/boot\", state: absent }\n"
         "      when: \"ep_boot.stdout == 'live'\"\n";
  out += "    - name: " + yaml_quote(s.id + ": a reboot did not help") +
         "\n      ansible.builtin.fail:\n        msg: \"rebooted already, and still {{ ep_boot.stdout }} (a "
         "stale "
         "initramfs, or a later modprobe file: epready doctor)\"\n      when: \"ep_boot.stdout is "
         "match('vain')\"\n";
  out +=
      shell_task(s.id + ": remember this boot", begin + "ep_boot_id > \"$EP_STATE/boot\"\n", root + pending);
  out += "    - name: " + yaml_quote(s.id + ": " + s.title) + "\n" + root +
         "      ansible.builtin.reboot: { reboot_timeout: 1800 }\n" + pending;
  out += shell_task(s.id + ": what was written is live",
                    begin +
                        "if ! ep_live; then echo \"rebooted, and still: $ep_why\" >&2; exit 1; fi\nrm -f "
                        "\"$EP_STATE/boot\"\n",
                    root + "      changed_when: false\n" + pending);
  return out;
}

}  // namespace

std::string render_ansible(const RenderInput& in) {
  const Plan& p = *in.plan;
  std::string out = form_head(in, "#");
  out += "- name: " + yaml_quote("epready " + p.stack) +
         "\n  hosts: all\n  gather_facts: false\n  vars:\n    ep_state: " +
         yaml_quote(p.prefix + "/script-state") + "\n  tasks:\n";
  out +=
      "    - name: Folder for marks\n      become: true\n      ansible.builtin.file: { path: \"{{ ep_state "
      "}}\", state: directory, mode: \"0755\" }\n";
  for (const auto& s : p.steps) {
    if (s.risk == Risk::reboot) {
      out += reboot_tasks(p, s);
      continue;
    }
    const bool root = s.needs_root || s.risk != Risk::user_files || p.prefix.substr(0, 5) == "/opt/";
    const std::string become = root ? "      become: true\n" : "";
    if (s.actions.size() == 1 && std::holds_alternative<InstallPackages>(s.actions[0])) {
      std::string names;
      for (const auto& n : std::get<InstallPackages>(s.actions[0]).names)
        names += (names.empty() ? "" : ", ") + yaml_quote(n);
      out += "    - name: " + yaml_quote(s.id + ": " + s.title) + "\n" + become +
             "      ansible.builtin.apt: { name: [" + names +
             "], state: present, update_cache: true, install_recommends: false }\n";
      continue;
    }
    std::string body = "set -eu\n" + std::string(shell_prelude());
    for (const auto& a : s.actions) body += shell_of(a, p, in.env);
    const std::string mark = p.prefix + "/script-state/" + s.id;
    out += shell_task(s.id + ": " + s.title, body + ": > " + shell_quote(mark) + "\n", become, mark);
  }
  return out;
}

}  // namespace ep
