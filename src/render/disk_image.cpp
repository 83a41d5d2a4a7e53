// A golden disk image: what may be baked in, what every clone does at its first boot, and how the machine is
// sealed before its disk is copied. Source of the flow: runbook-gcp-b200, section on disk images.
#include <fmt/format.h>

#include "base/text.h"
#include "base/words.h"
#include "render/render.h"

namespace ep {
namespace {

std::string first_boot(const RenderInput& in) {
  const Plan& p = *in.plan;
  std::string out =
      "#!/bin/sh\n# At every boot of a clone: proves what only a boot can prove, then writes the environment "
      "file with the\n"
      "# names that the NICs have here. Fails, and says why, where this machine differs.\nset -eu\numask "
      "022\n" +
      std::string(shell_prelude());
  for (const auto& s : p.steps) {
    if (s.risk == Risk::reboot) out += shell_of_live(p) + "ep_live || ep_die \"$ep_why\"\n";
    if (is_env_step(s))
      for (const auto& a : s.actions) out += shell_of(a, p, in.env);
  }
  return out;
}

std::string file(const std::string& path, const std::string& text, const char* mode) {
  std::string mark = "EPREADY_FILE";
  while (contains("\n" + text, "\n" + mark + "\n")) mark += "_";
  return fmt::format("cat > {0} <<'{1}'\n{2}{1}\nchmod {3} {0}\n", shell_quote(path), mark, text, mode);
}

}  // namespace

std::string render_image(const RenderInput& in) {
  const Plan& p = *in.plan;
  const Words w{in.lang};
  const std::string boot = "/usr/local/sbin/epready-first-boot";
  const std::string unit =
      "[Unit]\nDescription=epready: prove this clone and write its environment file\nAfter=network.target "
      "systemd-modules-load.service "
      "nvidia-persistenced.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
      "ExecStart=" +
      boot + "\n[Install]\nWantedBy=multi-user.target\n";
  std::string baked, out;
  for (const auto& s : p.steps)
    if (!is_env_step(s) && s.risk != Risk::reboot) baked += (baked.empty() ? "" : ", ") + s.id;
  out += "#!/bin/sh\n";
  out += "# " +
         w("Run as root on a machine of the kind that the image is for. It builds, asks for a reboot and is "
           "run again, "
           "proves the machine, then seals it.",
           "在与镜像目标相同的机器上以 root 运行：先构建，提示重启后再次运行，验证本机，最后封装。") +
         "\n";
  out +=
      "# " +
      w("Baked in: {}.", "写入镜像：{}。", baked.empty() ? w("what is there already", "已有内容") : baked) +
      "\n";
  out += "# " +
         w("Left to the first boot of each clone ({}): names of the NICs, GIDs and the environment file made "
           "from them; the proof that module options and names are live.",
           "留待每台克隆首次启动（{}）：网卡名、GID 及由此生成的环境文件；验证模块选项与名字已生效。", boot) +
         "\n";
  out += "# " +
         w("Not in an image: local SSDs, model weights, SSH host keys, the machine id. A clone must boot the "
           "kernel that "
           "the modules were built for.",
           "不在镜像中：本地 SSD、模型权重、SSH 主机密钥、machine-id。克隆必须启动编译模块时的内核。") +
         "\n";
  std::string body =
      script_body(in, is_env_step, w("at the first boot of each clone", "在每台克隆首次启动时"));
  out += body.substr(body.find('\n') + 1);
  out += "\n# " + w("what every clone does", "每台克隆要做的事") + "\n" + file(boot, first_boot(in), "0755") +
         file("/etc/systemd/system/epready-first-boot.service", unit, "0644") +
         "systemctl daemon-reload\nsystemctl enable epready-first-boot.service\nep_say " +
         shell_quote(w("proving this machine as a clone would", "按克隆的方式验证本机")) + "\n" + boot + "\n";
  out +=
      "\n# " + w("seal: nothing of this machine alone stays", "封装：不留下仅属于本机的内容") + "\n" +
      fmt::format("rm -rf \"$EP_STATE\" {} {} {}\n", shell_quote(p.prefix + "/env/env.sh"),
                  shell_quote(p.prefix + "/cache"), shell_quote(p.prefix + "/logs")) +
      "apt-get clean\nrm -rf /root/.cache/pip\n"
      "# what gives a clone its own host keys is here: then they go too\n"
      "if command -v cloud-init >/dev/null 2>&1 || command -v google_guest_agent >/dev/null 2>&1; then rm -f "
      "/etc/ssh/ssh_host_*; fi\n: > /etc/machine-id\n"
      "rm -f /var/lib/dbus/machine-id\nep_say " +
      shell_quote(w("sealed: shut this machine down and copy its disk; do not boot it again before",
                    "已封装：请关机并复制磁盘；在此之前不要再次启动")) +
      "\n";
  out += "\n# " +
         w("The image, from a machine with the cloud's tool (words in capitals are yours):",
           "制作镜像，在装有云工具的机器上执行（大写单词由您替换）：") +
         "\n";
  for (const auto& line : in.disk_image) out += (starts_with(line, "#") ? line : "#   " + line) + "\n";
  if (in.disk_image.empty())
    out += "# " +
           w("no commands are on record for this platform: copy the disk with its own tool",
             "此平台没有命令记录：请用其自带工具复制磁盘") +
           "\n";
  return out;
}

}  // namespace ep
