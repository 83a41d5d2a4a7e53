// What a reboot must have brought about, asked in shell: live driver options, names of NICs, the driver's
// version. A script reboots only while something is missing, and a reboot that did not help is an error.
#include <fmt/format.h>

#include "base/text.h"
#include "render/render.h"

namespace ep {
namespace {

/// A predicate as a shell condition; empty for those that only epready itself can tell.
std::string condition(const Predicate& p) {
  if (p.name == "rdma-named" && p.args.size() == 1) return "ep_rdma " + shell_quote(p.args[0]);
  if (p.name == "driver-at-least" && p.args.size() == 1) return "ep_driver " + shell_quote(p.args[0]);
  if (p.name != "option-live" || p.args.size() != 3) return {};
  const std::string &option = p.args[1], &value = p.args[2];
  const size_t eq = value.find('=');
  const std::string row = option.substr(option.rfind("NVreg_", 0) == 0 ? 6 : 0);
  const std::string pattern = eq == value.npos
                                  ? fmt::format("^{}: {}$", row, value)
                                  : fmt::format("^{}:.*{}=\\(0x\\)\\{{0,1\\}}{}\\([^0-9a-fA-F]\\|$\\)", row,
                                                value.substr(0, eq), value.substr(eq + 1));
  return fmt::format("grep -q {} \"${{EP_PROC:-/proc}}/driver/nvidia/params\" 2>/dev/null",
                     shell_quote(pattern));
}

constexpr std::string_view kQuestions = R"sh(# EP_SYS and EP_PROC stand in for /sys and /proc
ep_rdma() { # every NIC of the mlx5 driver is named so, and there is one
  one=
  for d in "${EP_SYS:-/sys}/class/infiniband/"*; do
    [ -e "$d" ] || continue
    case $(basename "$d") in
      "$1"*) one=yes ;;
      *) [ "$(basename "$(readlink -f "$d/device/driver")")" != mlx5_core ] || return 1 ;;
    esac
  done
  [ -n "$one" ]
}
ep_driver() { # the loaded driver is this version or newer
  version=$(cat "${EP_SYS:-/sys}/module/nvidia/version" 2>/dev/null) || return 1
  [ "$(printf '%s\n%s\n' "$1" "$version" | sort -V | head -n 1)" = "$1" ]
}
)sh";

}  // namespace

std::string shell_of_live(const Plan& plan) {
  std::string body;
  for (const auto& s : plan.steps)
    if (s.risk == Risk::reboot)
      for (const auto& after : s.after)
        if (const auto test = condition(after); !test.empty())
          body += fmt::format("  {} || ep_why=\"$ep_why; \"{}\n", test,
                              shell_quote("not so here: " + after.name + " " + join(after.args, " ")));
  // Nothing to ask: another boot id is all that a reboot can show.
  if (body.empty())
    body =
        "  [ -f \"$EP_STATE/boot\" ] && [ \"$(cat \"$EP_STATE/boot\")\" != \"$(ep_boot_id)\" ] || ep_why=\"; "
        "not rebooted yet\"\n";
  return std::string(kQuestions) +
         "ep_boot_id() { cat \"${EP_PROC:-/proc}/sys/kernel/random/boot_id\"; }\n"
         "# what was written is in force; ep_why says what is not\n"
         "ep_live() {\n  ep_why=\n" +
         body + "  ep_why=${ep_why#; }\n  [ -z \"$ep_why\" ]\n}\n";
}

std::string_view shell_of_reboot() {
  return R"sh(# Reboots only while something that was written is not live, and once: a reboot that did not help is an error.
# EPREADY_AUTO_REBOOT=1 reboots by itself (first boot of a machine).
ep_reboot() {
  if ep_live; then rm -f "$EP_STATE/boot"; return 0; fi
  if [ -f "$EP_STATE/boot" ] && [ "$(cat "$EP_STATE/boot")" != "$(ep_boot_id)" ]; then
    ep_die "the machine was rebooted, and still: $ep_why (a stale initramfs, or a later modprobe file: epready doctor)"
  fi
  ep_boot_id > "$EP_STATE/boot"
  if [ "${EPREADY_AUTO_REBOOT:-}" = 1 ]; then systemctl reboot; exit 4; fi
  ep_say "reboot now, then run this script again ($ep_why)"
  exit 4
}
)sh";
}

}  // namespace ep
