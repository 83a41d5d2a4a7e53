// See env_render.h.
#include "plan/env_render.h"

#include <fmt/format.h>

#include "base/text.h"

namespace ep {
namespace {

std::string one_line(std::string s) {
  for (char& c : s)
    if (c == '\n' || c == '\r') c = ' ';
  return s;
}

// systemd reads double quotes and backslashes as C does.
std::string systemd_quote(const std::string& v) {
  std::string out = "\"";
  for (char c : one_line(v)) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string yaml_quote(const std::string& v) {
  return "'" + replace_all(one_line(v), "'", "''") + "'";
}

// Once in front, however often it is sourced.
std::string shell_list(const EnvLine& l) {
  return fmt::format("case \":${{{0}:-}}:\" in *:{1}:*) ;; *) export {0}={1}\"${{{0}:+:${0}}}\" ;; esac",
                     l.name, shell_quote(l.value));
}

// An env-file or a pod's list can't extend what the image has: PATH stays the image's, with a word about it.
std::string assignment(const EnvLine& l, EnvForm form) {
  const bool fixed = form == EnvForm::docker || form == EnvForm::k8s;
  if (fixed && l.name == "PATH") return fmt::format("#   PATH={}:... (in front of the image's own)", l.value);
  switch (form) {
    case EnvForm::shell:
      if (l.is_list) return shell_list(l);
      return fmt::format("export {}={}", l.name, shell_quote(l.value));
    case EnvForm::systemd:
      return fmt::format(
          "{}={}", l.name,
          systemd_quote(l.name == "PATH"
                            ? l.value + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
                            : l.whole()));
    case EnvForm::docker:
      return fmt::format("{}={}", l.name, one_line(l.whole()));
    case EnvForm::k8s:
      return fmt::format("- name: {}\n  value: {}", l.name, yaml_quote(l.whole()));
  }
  return {};
}

std::string header(const EnvPlan& p, Lang lang) {
  std::string versions =
      fmt::format("NVSHMEM {}, NCCL {}", p.nvshmem.empty() ? "?" : p.nvshmem, p.nccl.empty() ? "?" : p.nccl);
  return lang == Lang::zh
             ? fmt::format("# epready env：路线 {}，{}。每行之前是它的原因。\n", p.lane, versions)
             : fmt::format("# epready env: lane {}, {}. Before each line stands its reason.\n", p.lane,
                           versions);
}

// One process per GPU: its rank on the host chooses the NIC. Launchers name that rank differently.
std::string per_rank_shell(const EnvPlan& p, Lang lang) {
  std::string out = lang == Lang::zh ? "\n# 每个 GPU 一个进程时：按本机 rank 选择网卡，效果同 DeepEP PR "
                                       "466，无需补丁。没有 rank 变量则不设置。\n"
                                     : "\n# One process per GPU: the rank on this host chooses the NIC, the "
                                       "effect of DeepEP pull request 466 without the\n"
                                       "# patch. Nothing is set where no launcher gave a rank.\n";
  out += "case \"${LOCAL_RANK:-${OMPI_COMM_WORLD_LOCAL_RANK:-${SLURM_LOCALID:-${MPI_LOCALRANKID:-}}}}\" in\n";
  for (const auto& [gpu, nic] : p.per_rank)
    out += fmt::format("  {}) export NVSHMEM_ENABLE_NIC_PE_MAPPING=1 NVSHMEM_HCA_LIST={} ;;\n", gpu,
                       shell_quote(nic));
  return out + "esac\n";
}

}  // namespace

std::string env_text(const EnvPlan& p, EnvForm form, Lang lang) {
  std::string out = header(p, lang);
  if (form == EnvForm::k8s) out += "env:\n";
  for (const auto& l : p.lines)
    out += fmt::format("{}# {}\n{}\n", form == EnvForm::k8s ? "" : "\n", one_line(l.why.in(lang)),
                       assignment(l, form));
  if (!p.per_rank.empty()) {
    if (form == EnvForm::shell) {
      out += per_rank_shell(p, lang);
    } else {
      out += lang == Lang::zh
                 ? "\n# 每个 GPU 一个进程时，各 rank 应设 NVSHMEM_ENABLE_NIC_PE_MAPPING=1 和：\n"
                 : "\n# With one process per GPU, each rank wants NVSHMEM_ENABLE_NIC_PE_MAPPING=1 and:\n";
      for (const auto& [gpu, nic] : p.per_rank)
        out += fmt::format("#   rank {}: NVSHMEM_HCA_LIST={}\n", gpu, nic);
    }
  }
  if (!p.left_out.empty()) {
    out += lang == Lang::zh ? "\n# 有意不设置：\n" : "\n# Left out on purpose:\n";
    for (const auto& l : p.left_out)
      out += fmt::format("#   {}={}: {}\n", l.name, one_line(l.value), one_line(l.why.in(lang)));
  }
  return out;
}

}  // namespace ep
