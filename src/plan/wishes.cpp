// What people ask for with --with NAME=VALUE: the list of options, and the words sorted into versions,
// options, commits and keys.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "plan/solver.h"

namespace ep {

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = {
      {"nic-handler",
       "gpu cpu cpu_host_memory auto",
       {"who rings the NIC's doorbell (NVSHMEM_IBGDA_NIC_HANDLER)",
        "由谁敲网卡门铃（NVSHMEM_IBGDA_NIC_HANDLER）"}},
      {"driver-options",
       "peer-mapping peer-mapping-and-memops none",
       {"options of the nvidia module", "nvidia 模块的选项"}},
      {"rdma-names",
       "mlx5 kernel keep",
       {"where names differ, mlx5: install DOCA-OFED; kernel: a udev rule and rdma dev set; keep: leave them",
        "命名不同时，mlx5：安装 DOCA-OFED；kernel：udev 规则与 rdma dev set；keep：保留"}},
      {"nodes", "many 1", {"1: EP inside this node only", "1：仅单机 EP"}},
      {"arch",
       "auto LIST",
       {"architectures to build for, as in TORCH_CUDA_ARCH_LIST", "编译的架构，同 TORCH_CUDA_ARCH_LIST"}},
      {"cccl", "include none", {"CCCL headers of CUDA 13 on the include path", "CUDA 13 的 CCCL 头文件路径"}},
      {"gpu",
       "needed build-only",
       {"build-only: make wheels on a machine without GPU", "build-only：在无 GPU 机器上编译 wheel"}},
      {"nvshmem-source",
       "wheel git archive",
       {"package index, a build from source, or the publisher's archive",
        "包索引、从源码编译，或发布者的归档"}},
      {"cuda-link",
       "auto set keep",
       {"/usr/local/cuda: auto: made where there is none; set: pointed at this toolkit; keep: left",
        "/usr/local/cuda：auto：没有时创建；set：指向此工具包；keep：不动"}},
      {"build-packages", "v1 v2 wheel", {"which list of distribution packages", "使用哪一组软件包"}},
      {"os",
       "NAMEVERSION",
       {"operating system of a host whose facts do not show it: ubuntu22.04",
        "事实未显示时的操作系统：ubuntu22.04"}},
      {"machine", "x86_64 aarch64", {"its processor", "其处理器架构"}},
      {"peermem",
       "load",
       {"load nvidia-peermem where DMA-BUF is not usable", "DMA-BUF 不可用时加载 nvidia-peermem"}},
  };
  return rows;
}

namespace {
/// "ubuntu22.04": letters, then a version.
bool is_system(const std::string& s) {
  const size_t digits = s.find_first_of("0123456789");
  return digits != 0 && digits != s.npos &&
         std::all_of(s.begin(), s.begin() + long(digits), [](unsigned char c) { return std::islower(c); }) &&
         s.find_first_not_of("0123456789.", digits) == s.npos && s.back() != '.';
}
}  // namespace

Result<Wishes> parse_wishes(const std::vector<std::string>& with, const Recipe& recipe, const Stack* stack) {
  Wishes out;
  constexpr const char* kNext = "epready stacks";
  std::vector<std::string> names;
  for (const auto& row : option_rows()) names.emplace_back(row.name);
  for (const auto& c : recipe.components) names.push_back(c.id);
  for (const auto& wish : with) {
    const size_t eq = wish.find('=');
    if (eq == std::string::npos || eq == 0 || eq + 1 == wish.size())
      return fail(ErrorKind::usage, "not a wish", "--with " + wish,
                  "expected NAME=VALUE, for example nvshmem=3.4.5", kNext);
    const std::string name = wish.substr(0, eq), value = wish.substr(eq + 1);
    if (ends_with(name, "-commit") && recipe.component(name.substr(0, name.size() - 7))) {
      if (value.size() != 40 || value.find_first_not_of("0123456789abcdef") != std::string::npos)
        return fail(ErrorKind::usage, "not a full commit", "--with " + wish, "expected 40 hexadecimal digits",
                    "git rev-parse REF");
      out.commits[name.substr(0, name.size() - 7)] = value;
      continue;
    }
    if (ends_with(name, "-key") && recipe.component(name.substr(0, name.size() - 4))) {
      std::string key;
      for (char ch : value)
        if (ch != ' ' && ch != ':') key += char(std::toupper(static_cast<unsigned char>(ch)));
      if (key.size() != 40 || key.find_first_not_of("0123456789ABCDEF") != std::string::npos)
        return fail(ErrorKind::usage, "not a key fingerprint", "--with " + wish,
                    "expected 40 hexadecimal digits", "gpg --show-keys --with-fingerprint FILE");
      out.keys[name.substr(0, name.size() - 4)] = key;
      continue;
    }
    if (ends_with(name, "-sha256") && recipe.component(name.substr(0, name.size() - 7))) {
      if (value.size() != 64 || value.find_first_not_of("0123456789abcdef") != std::string::npos)
        return fail(ErrorKind::usage, "not a SHA-256", "--with " + wish, "expected 64 hexadecimal digits",
                    "sha256sum FILE");
      out.hashes[name.substr(0, name.size() - 7)] = value;
      continue;
    }
    const auto row = std::find_if(option_rows().begin(), option_rows().end(),
                                  [&](const OptionRow& r) { return r.name == name; });
    if (row != option_rows().end() && !(name == "peermem" && value != "load")) {
      std::vector<std::string> values;
      for (auto v : split_ws(row->values)) values.emplace_back(v);
      const bool listed = std::find(values.begin(), values.end(), value) != values.end();
      const bool free = (values.back() == "LIST" && !split_arch_list(value).empty()) ||
                        (values.back() == "NAMEVERSION" && is_system(value));
      if (!listed && !free)
        return fail(ErrorKind::usage, "unknown value", "--with " + wish,
                    "expected one of: " + join(values, ", "), kNext);
      out.options[name] = value;
      continue;
    }
    const Component* c = recipe.component(name);
    if (!c || c->releases.empty()) {
      const auto near = closest(name, names);
      return fail(ErrorKind::usage, "nothing of that name", "--with " + wish,
                  near ? fmt::format("did you mean \"{}\"?", *near) : "known: " + join(names, ", "), kNext);
    }
    if (!c->release(value)) {
      std::vector<std::string> known;
      for (const auto& r : c->releases) known.push_back(r.version);
      return fail(ErrorKind::usage, fmt::format("{} has no release {}", name, value), "--with " + wish,
                  "known: " + join(known, ", "), kNext);
    }
    out.versions[name] = value;
  }
  (void)stack;
  return out;
}

std::vector<std::string> split_arch_list(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  const auto flush = [&] {
    std::string digits;
    for (char c : word)
      if (c >= '0' && c <= '9') digits += c;
    if (digits.size() >= 2) out.push_back(digits);
    word.clear();
  };
  for (char c : text) {
    if (c == ';' || c == ',' || c == ' ')
      flush();
    else
      word += c;
  }
  flush();
  return out;
}

}  // namespace ep
