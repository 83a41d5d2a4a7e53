// See paste_system_rules.h. Forms as the tools print them.
#include "host/paste_system_rules.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace ep {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool number(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), digit);
}
bool any_start(std::string_view line, std::initializer_list<std::string_view> heads) {
  return std::any_of(heads.begin(), heads.end(), [&](std::string_view h) { return starts_with(line, h); });
}
bool any_of_words(std::string_view w, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), w) != list.end();
}
bool name_chars(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

// os-release(5). "ID=" and its kin stand at the beginning of a line.
bool os_release_line(const PasteLine& l) {
  return any_start(l.text, {"ID=", "ID_LIKE=", "NAME=\"", "VERSION=\"",
                            "VERSION_ID=", "PRETTY_NAME=", "VERSION_CODENAME=", "UBUNTU_CODENAME="});
}
bool os_release_more(const PasteLine& l) {
  return os_release_line(l) ||
         any_start(l.text, {"HOME_URL=", "SUPPORT_URL=", "BUG_REPORT_URL=", "LOGO=", "PRIVACY_POLICY_URL=",
                            "ANSI_COLOR=", "CPE_NAME=", "PLATFORM_ID=", "VARIANT", "BUILD_ID=", "REDHAT_",
                            "DOCUMENTATION_URL=", "ROCKY_", "DISTRIB_"});
}

bool lsb_line(const PasteLine& l) {
  return any_start(l.text, {"Distributor ID:", "DISTRIB_ID="});
}
bool lsb_more(const PasteLine& l) {
  return lsb_line(l) ||
         any_start(l.text, {"Description:", "Release:", "Codename:", "DISTRIB_", "No LSB modules"});
}

bool nvrm_line(const PasteLine& l) {
  return starts_with(l.text, "NVRM version:");
}
bool nvrm_more(const PasteLine& l) {
  return nvrm_line(l) || any_start(l.text, {"GCC version:", "Clang version:"});
}

bool nvcc_line(const PasteLine& l) {
  return any_start(l.text, {"nvcc: NVIDIA (R) Cuda compiler", "Cuda compilation tools, release"});
}
bool nvcc_more(const PasteLine& l) {
  return nvcc_line(l) || any_start(l.text, {"Copyright (c)", "Built on ", "Build cuda_"});
}

// "nvidia_uvm  1900544  2 nvidia": a name of the stack, size, users. The header says that the list is whole.
bool lsmod_row(const PasteLine& l) {
  return (l.words.size() == 3 || l.words.size() == 4) && name_chars(l.words[0]) && number(l.words[1]) &&
         number(l.words[2]) && l.words[1].size() >= 4;
}
bool lsmod_line(const PasteLine& l) {
  if (l.words.size() >= 3 && l.words[0] == "Module" && l.words[1] == "Size") return true;
  return lsmod_row(l) && any_start(l.words[0], {"nvidia", "mlx5_core", "mlx5_ib", "ib_", "rdma_", "gdrdrv",
                                                "efa", "nv_peer_mem", "irdma", "nouveau", "bnxt_re"});
}
bool lsmod_more(const PasteLine& l) {
  return lsmod_line(l) || lsmod_row(l);
}

// "max locked memory           (kbytes, -l) unlimited"
bool ulimit_line(const PasteLine& l) {
  return contains(l.text, "-l)") && starts_with(l.text, "max locked memory");
}
bool ulimit_more(const PasteLine& l) {
  return any_start(l.text, {"core file size", "data seg size", "scheduling priority", "file size",
                            "pending signals", "max locked memory", "max memory size", "open files",
                            "pipe size", "POSIX message queues", "real-time", "stack size", "cpu time",
                            "max user processes", "virtual memory", "file locks"}) &&
         contains(l.text, "-");
}
bool ulimit_start(const PasteLine& l) {
  return ulimit_line(l) || (starts_with(l.text, "core file size") && contains(l.text, "-c)")) ||
         (starts_with(l.text, "open files") && contains(l.text, "-n)")) ||
         (starts_with(l.text, "real-time non-blocking time") && contains(l.text, "-R)"));
}

bool df_line(const PasteLine& l) {
  return l.words.size() >= 5 && l.words[0] == "Filesystem" && contains(l.text, "Mounted on");
}
bool df_more(const PasteLine& l) {
  return df_line(l) || (l.words.size() >= 6 && l.words.back()[0] == '/' && contains(l.text, "%"));
}

// Also "/etc/modprobe.d/nvidia.conf:options nvidia ..." of grep -r.
bool modprobe_line(const PasteLine& l) {
  size_t at = starts_with(l.text, "options ") ? 0
              : starts_with(l.text, "/etc/modprobe.d/") || starts_with(l.text, "/usr/lib/modprobe.d/") ||
                      starts_with(l.text, "/lib/modprobe.d/")
                  ? l.text.find(":options ")
                  : std::string_view::npos;
  return at != std::string_view::npos && contains(l.text.substr(at), "=") &&
         any_start(l.text.substr(at == 0 ? 8 : at + 9), {"nvidia", "mlx5", "ib_", "gdrdrv", "nouveau"});
}

// "0::/kubepods.slice/...", "12:devices:/docker/..."
bool cgroup_line(const PasteLine& l) {
  const size_t a = l.text.find(':');
  if (a == 0 || a == std::string_view::npos || !number(l.text.substr(0, a)) || a > 3) return false;
  const size_t b = l.text.find(':', a + 1);
  if (b == std::string_view::npos || b + 1 >= l.text.size() || l.text[b + 1] != '/') return false;
  const auto name = l.text.substr(a + 1, b - a - 1);
  return l.words.size() == 1 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::islower(c) || c == ',' || c == '_' || c == '=';
         });
}

bool caps_line(const PasteLine& l) {
  return l.words.size() == 2 &&
         any_of_words(l.words[0], {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"});
}

// pip list ("torch 2.10.0+cu128") and pip freeze ("torch==2.10.0"), for the packages of the stack.
bool version_like(std::string_view s) {
  return !s.empty() && digit(s[0]) && contains(s, ".");
}
bool pip_row(const PasteLine& l) {
  if (l.words.size() == 1) {
    const size_t eq = l.text.find("==");
    return eq != std::string_view::npos && name_chars(l.text.substr(0, eq)) &&
           version_like(l.text.substr(eq + 2));
  }
  return (l.words.size() == 2 || l.words.size() == 3) && name_chars(l.words[0]) && version_like(l.words[1]) &&
         std::isalpha(static_cast<unsigned char>(l.words[0][0]));
}
bool pip_line(const PasteLine& l) {
  if (l.words.size() >= 2 && l.words[0] == "Package" && l.words[1] == "Version") return true;
  const auto name = l.text.substr(0, l.text.find_first_of(" =\t"));
  return pip_row(l) && (any_start(name, {"nvidia-", "deep_ep", "deep-ep", "sgl-deep-ep"}) ||
                        any_of_words(name, {"torch", "vllm", "sglang", "nvidia_nccl_cu12"}));
}
bool pip_more(const PasteLine& l) {
  return pip_line(l) || pip_row(l) || starts_with(l.text, "-----");
}

// ls and cat of something that is not there; only what facts are asked about.
bool missing_line(const PasteLine& l) {
  return contains(l.text, "No such file or directory") &&
         any_start(l.text,
                   {"ls: cannot access '/dev/gdr", "ls: cannot access /dev/gdr", "ls: cannot access '/sys/",
                    "ls: cannot access /sys/", "cat: /sys/", "cat: /proc/"});
}

bool one_word(const PasteLine& l) {
  return l.words.size() == 1;
}
bool any_line(const PasteLine& l) {
  return l.text.size() <= 120;
}
bool query_row(const PasteLine& l) {
  return contains(l.text, ",") || starts_with(l.text, "NVIDIA ") || version_like(l.text);
}

// "cat /sys/class/dmi/id/product_name" -> the path
std::string_view path_read(std::string_view command) {
  const auto words = split_ws(command);
  size_t i = 0;
  while (i < words.size() && any_of_words(words[i], {"sudo", "-n"})) ++i;
  if (i + 2 != words.size() || words[i] != "cat") return {};
  return words[i + 1];
}

std::string query_columns(std::string_view command) {
  const size_t at = command.find("--query-gpu=");
  if (at == std::string_view::npos || !contains(command, "noheader")) return {};
  std::string_view rest = command.substr(at + 12);
  std::string out = replace_all(std::string(rest.substr(0, rest.find(' '))), ",", ", ");
  return contains(out, "name") || contains(out, "index") ? out : std::string();
}

}  // namespace

const std::vector<PieceRule>& system_rules() {
  static const std::vector<PieceRule> rules = {
      {{"os-release", "/etc/os-release", nullptr}, os_release_line, os_release_more, false, false},
      {{"lsb_release", "lsb_release -a", nullptr}, lsb_line, lsb_more, false, false},
      {{"nvidia-version", "/proc/driver/nvidia/version", nullptr}, nvrm_line, nvrm_more, false, false},
      {{"nvcc", "nvcc --version", nullptr}, nvcc_line, nvcc_more, false, false},
      {{"lsmod", "lsmod", nullptr}, lsmod_line, lsmod_more, false, false},
      {{"ulimit", "ulimit -a, -l, -n", nullptr}, ulimit_start, ulimit_more, false, false},
      {{"df", "df -h", nullptr}, df_line, df_more, false, false},
      {{"modprobe.d", "options lines of /etc/modprobe.d", nullptr},
       modprobe_line,
       modprobe_line,
       false,
       true},
      {{"cgroup", "/proc/1/cgroup, /proc/self/cgroup", nullptr}, cgroup_line, cgroup_line, false, false},
      {{"capabilities", "Cap lines of /proc/self/status", nullptr}, caps_line, caps_line, false, false},
      {{"pip-list", "pip list, pip freeze", nullptr}, pip_line, pip_more, false, false},
      {{"missing-path", "ls and cat of a path that is not there", nullptr},
       missing_line,
       missing_line,
       false,
       true},
      {{"dmi", "files below /sys/class/dmi/id, behind their command", nullptr},
       nullptr,
       nullptr,
       false,
       true}};
  return rules;
}

std::string typed_command(std::string_view t) {
  t = trim(t);
  size_t from = std::string_view::npos;
  if (starts_with(t, "$ ") || starts_with(t, "# ")) {
    from = 1;
  } else if (const size_t at = t.find('@'); at != std::string_view::npos && at > 0) {
    // The prompt's mark: "$ " or "# " after the folder.
    for (size_t i = at; i + 1 < t.size() && i < at + 200; ++i)
      if ((t[i] == '$' || t[i] == '#') && t[i + 1] == ' ') {
        from = i + 1;
        break;
      }
  }
  if (from == std::string_view::npos) return {};
  return std::string(trim(t.substr(from)));
}

Asked asked_by(std::string_view command) {
  const auto words = split_ws(command);
  if (words.empty() || contains(command, "&&") || contains(command, ";")) return {};
  const std::string_view path = path_read(command);
  for (std::string_view folder : {"/sys/class/dmi/id/", "/sys/devices/virtual/dmi/id/"})
    if (starts_with(path, folder))
      return {"dmi", std::string(path.substr(folder.size())) + ": ", {}, any_line, 1};
  if (starts_with(path, "/sys/class/infiniband/") && !contains(path, "*"))
    return {"sysfs-infiniband", std::string(path) + ":", {}, any_line, 1};
  if (words[0] == "ulimit" && words.size() == 2) {
    if (words[1] == "-l" || words[1] == "-Sl")
      return {"ulimit", "max locked memory (kbytes, -l) ", {}, one_word, 1};
    if (words[1] == "-n" || words[1] == "-Sn") return {"ulimit", "open files (-n) ", {}, one_word, 1};
  }
  if (words.size() == 2 && words[0] == "uname" && any_of_words(words[1], {"-r", "-m", "-p"}))
    return {"uname", {}, {}, one_word, 1};
  if (words.size() == 1 && words[0] == "arch") return {"uname", {}, {}, one_word, 1};
  if (const std::string columns = query_columns(command); !columns.empty())
    return {"nvidia-smi-query", {}, columns, query_row, 64};
  return {};
}

}  // namespace ep
