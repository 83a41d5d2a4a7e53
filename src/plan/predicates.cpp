#include "plan/predicates.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"
#include "base/words.h"
#include "plan/fact_scope.h"

namespace ep {
namespace {

using Args = std::vector<std::string>;

Outcome pass(std::string why) {
  return {Verdict::pass, std::move(why)};
}
Outcome no(std::string why) {
  return {Verdict::fail, std::move(why)};
}
Outcome cannot_tell(std::string why) {
  return {Verdict::unknown, std::move(why)};
}

/// A text shows what was pasted and no more: what it lacks may well be there.
bool only_shown(const Facts& f) {
  return f.host_kind == "paste";
}
Outcome not_shown(const Words& w) {
  return cannot_tell(w("the text does not show it", "文本中没有此项"));
}

bool in_range(VersionOrder order, const std::string& version, const std::string& range) {
  auto r = VersionRange::parse(order, range);
  return r && r->contains(version);
}

Outcome driver_at_least(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  if (f.driver.version.known == Known::absent)
    return no(w("no NVIDIA driver is loaded", "未加载 NVIDIA 驱动"));
  if (!f.driver.version.ok()) return cannot_tell(f.driver.version.why);
  if (compare_versions(VersionOrder::dotted, *f.driver.version, a[0]) >= 0)
    return pass(w("NVIDIA driver {} is loaded", "已加载 NVIDIA 驱动 {}", *f.driver.version));
  return no(w("NVIDIA driver {} is older than {}", "NVIDIA 驱动 {} 早于 {}", *f.driver.version, a[0]));
}

Outcome package_there(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  for (const auto& name : a) {
    const Package* p = f.package(name);
    if (p && (p->state.empty() || contains(p->state, "ok installed"))) continue;
    if (!f.packages_readable.ok() && !p)
      return cannot_tell(
          w("the package database was not read ({})", "未能读取软件包数据库（{}）",
            f.packages_readable.why.empty() ? f.packages_readable.where : f.packages_readable.why));
    return no(w("package {} is not installed", "软件包 {} 未安装", name));
  }
  return pass(a.size() == 1 ? w("package {} is installed", "软件包 {} 已安装", a[0])
                            : w("all {} packages are installed", "{} 个软件包均已安装", a.size()));
}

Outcome apt_source_there(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  for (const auto& s : f.apt_sources)
    if (contains(s.uri, a[0])) return pass(w("{} names it", "{} 已包含该源", s.path));
  if (only_shown(f)) return not_shown(w);
  return no(w("no package source {}", "没有软件源 {}", a[0]));
}

Outcome program_there(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  std::string found;
  for (const auto& name : a) {
    const auto t =
        std::find_if(f.tools.begin(), f.tools.end(), [&](const Tool& x) { return x.name == name; });
    if (t == f.tools.end()) return cannot_tell(w("{} is not among the facts", "事实中没有 {}", name));
    if (t->path.known == Known::absent) return no(w("{} is in no folder of PATH", "PATH 中没有 {}", name));
    if (!t->path.ok()) return cannot_tell(fmt::format("{}: {}", t->path.where, t->path.why));
    found += (found.empty() ? "" : ", ") + *t->path;
  }
  return pass(found);
}

Outcome cuda_there(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  for (const auto& t : f.cuda) {
    const std::string version = t.version.ok() ? *t.version : t.nvcc_version.value_or("");
    if (in_range(VersionOrder::dotted, version, "==" + a[0] + ".*") || version == a[0]) {
      if (t.has_nvcc.ok() && !*t.has_nvcc) return no(w("{} has no nvcc", "{} 中没有 nvcc", t.root));
      return pass(w("CUDA toolkit {} stands in {}", "CUDA 工具包 {} 位于 {}", version, t.root));
    }
  }
  if (f.cuda.empty() && only_shown(f)) return not_shown(w);
  return no(f.cuda.empty() ? w("no CUDA toolkit", "没有 CUDA 工具包")
                           : w("CUDA toolkit {} is not here (found {})", "没有 CUDA 工具包 {}（现有 {}）",
                               a[0], f.cuda.front().version.value_or(f.cuda.front().root)));
}

Outcome rdma_named(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  const auto nics = compute_nics(f);
  if (nics.empty()) {
    if (f.rdma_readable.known == Known::unreadable) return cannot_tell(f.rdma_readable.why);
    if (only_shown(f)) return not_shown(w);
    return no(w("no RDMA device", "没有 RDMA 设备"));
  }
  for (const auto* n : nics) {
    if (n->driver.ok() && *n->driver != "mlx5_core")
      return no(w("{} is driven by {}", "{} 由 {} 驱动", n->name, *n->driver));
    if (!starts_with(n->name, a[0]))
      return no(w("RDMA device {} is not named {}N", "RDMA 设备 {} 不是 {}N 命名", n->name, a[0]));
  }
  return pass(w("{} RDMA devices are named {}N", "{} 个 RDMA 设备均为 {}N 命名", nics.size(), a[0]));
}

/// `want`: "PeerMappingOverride=1" for RegistryDwords, else the whole value.
bool option_says(const std::string& option, const std::string& text, const std::string& want) {
  if (option != "NVreg_RegistryDwords") return trim(text) == want;
  const size_t eq = want.find('=');
  const auto wanted = parse_int(want.substr(eq + 1));
  bool found = false;
  for (const auto& [key, value] : split_registry_dwords(text))
    if (key == want.substr(0, eq)) found = parse_int(value) == wanted;
  return found;
}

Outcome option_is(const Facts& f, const Args& a, Lang lang, bool live) {
  const Words w{lang};
  const std::string where = live ? "/proc/driver/nvidia/params" : "modprobe.d";
  for (const auto& o : f.driver.options) {
    if (o.name != a[1]) continue;
    const Fact<std::string>& value = live ? o.live : o.pending;
    if (value.known == Known::absent) break;
    if (!value.ok())
      return cannot_tell(value.where.empty() ? value.why : fmt::format("{}: {}", value.where, value.why));
    if (option_says(a[1], *value, a[2])) return pass(w("{}: {} is set", "{}：{} 已设置", value.where, a[2]));
    return no(w("{}: {} is \"{}\", wanted {}", "{}：{} 为 \"{}\"，需要 {}", value.where, a[1], *value, a[2]));
  }
  if (only_shown(f)) return not_shown(w);
  return no(live ? w("the loaded driver lacks {} {}", "当前加载的驱动没有 {} {}", a[1], a[2])
                 : w("no modprobe file sets {} {}", "没有 modprobe 文件设置 {} {}", a[1], a[2]));
}
Outcome option_live(const Facts& f, const Args& a, Lang lang) {
  return option_is(f, a, lang, true);
}
Outcome option_pending(const Facts& f, const Args& a, Lang lang) {
  return option_is(f, a, lang, false);
}

Outcome nic_reaches_gpu_memory(const Facts& f, const Args&, Lang lang) {
  const Words w{lang};
  const Scope scope = fact_scope(f);
  const Named& dmabuf = scope.at("kernel.dmabuf");
  const Named& peermem = scope.at("kernel.peermem");
  if (peermem.known && peermem.text == "true")
    return pass(w("nvidia_peermem is loaded", "nvidia_peermem 已加载"));
  if (dmabuf.known && dmabuf.text == "true")
    return pass(w("DMA-BUF works: {}", "可用 DMA-BUF：{}", dmabuf.why));
  if (!peermem.known) return cannot_tell(peermem.why);
  return no(w("neither DMA-BUF nor nvidia_peermem is usable", "DMA-BUF 与 nvidia_peermem 均不可用"));
}

Outcome memlock_unlimited(const Facts& f, const Args&, Lang lang) {
  const Words w{lang};
  if (f.limits.memlock.ok() && *f.limits.memlock == "unlimited")
    return pass(w("locked memory is unlimited", "锁定内存不受限"));
  for (const auto& line : f.limits.memlock_set_in)
    if (contains(line, "epready"))
      return pass(w("{} lifts it at the next login", "{} 将在下次登录时解除限制", line));
  if (!f.limits.memlock.ok()) return cannot_tell(f.limits.memlock.why);
  return no(w("locked memory is limited to {} bytes", "锁定内存限制为 {} 字节", *f.limits.memlock));
}

Outcome nofile_at_least(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  const auto wanted = uint64_t(parse_int(a[0]).value_or(0));
  const auto& hard = f.limits.nofile_hard;  // programs lift their soft limit as far as this
  if (hard.ok() && *hard >= wanted)
    return pass(*hard == UINT64_MAX ? w("open files are unlimited", "打开文件数不受限")
                                    : w("{} open files are allowed", "允许打开 {} 个文件", *hard));
  for (const auto& line : f.limits.nofile_set_in)
    if (contains(line, "epready"))
      return pass(w("{} lifts it at the next login", "{} 将在下次登录时解除限制", line));
  if (!hard.ok()) return cannot_tell(hard.why);
  return no(w("open files are limited to {}, wanted {}", "打开文件数限制为 {}，需要 {}", *hard, wanted));
}

Outcome shm_at_least(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  const auto wanted = uint64_t(parse_int(a[0]).value_or(0));
  const auto& size = f.limits.shm_bytes;
  if (!size.ok()) return cannot_tell(size.why.empty() ? size.where : size.why);
  const auto mib = [](uint64_t bytes) { return bytes >> 20; };
  if (*size >= wanted) return pass(w("/dev/shm has {} MiB", "/dev/shm 有 {} MiB", mib(*size)));
  return no(w("/dev/shm has {} MiB, wanted {}", "/dev/shm 只有 {} MiB，需要 {}", mib(*size), mib(wanted)));
}

Outcome gdrdrv_usable(const Facts& f, const Args&, Lang lang) {
  const Words w{lang};
  const auto& device = f.kernel.gdrdrv_device;
  if (device.known == Known::absent) return no(w("there is no /dev/gdrdrv", "没有 /dev/gdrdrv"));
  if (!device.ok()) return cannot_tell(device.why.empty() ? device.where : device.why);
  return *device ? pass(w("/dev/gdrdrv is usable", "/dev/gdrdrv 可用"))
                 : no(w("/dev/gdrdrv may not be opened", "/dev/gdrdrv 无法打开"));
}

Outcome cuda_link(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  const auto& link = f.cuda_home_link;
  if (link.known == Known::absent) return no(w("there is no /usr/local/cuda", "没有 /usr/local/cuda"));
  if (!link.ok()) return cannot_tell(link.why.empty() ? link.where : link.why);
  for (const auto& t : f.cuda) {
    const std::string version = t.version.ok() ? *t.version : t.nvcc_version.value_or("");
    if (t.root == *link && (version == a[0] || starts_with(version, a[0] + ".")))
      return pass(w("/usr/local/cuda is {}", "/usr/local/cuda 指向 {}", t.root));
  }
  return no(w("/usr/local/cuda is {}, wanted {}", "/usr/local/cuda 指向 {}，需要 {}", *link, a[0]));
}

bool below(const std::string& path, const std::string& root) {
  return path == root || starts_with(path, root.back() == '/' ? root : root + "/");
}

Outcome prefix_ready(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  if (f.user.is_root.ok() && *f.user.is_root) return pass(w("root may create {}", "root 可创建 {}", a[0]));
  for (const auto& p : f.parts)
    if (below(p.root, a[0])) return pass(w("{} is there", "{} 已存在", a[0]));
  for (const auto& d : f.disks)
    if (d.writable.ok() && *d.writable && below(a[0], d.path))
      return pass(w("{} is writable", "{} 可写", d.path));
  if (only_shown(f)) return not_shown(w);
  return no(w("{} does not exist or is not yours", "{} 不存在或不属于当前用户", a[0]));
}

Outcome part_there(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  for (const auto& p : f.parts) {
    if (p.name != a[0] || !below(p.root, a[1])) continue;
    for (size_t i = 2; i < a.size(); ++i) {
      const size_t eq = a[i].find('=');
      const std::string key = a[i].substr(0, eq), want = a[i].substr(eq + 1);
      std::string have;
      if (key == "version" && p.version.ok()) {
        have = *p.version;
      } else if (p.stamp.count(key)) {
        have = p.stamp.at(key);
      } else {
        return cannot_tell(w("{} does not say its {}", "{} 未说明其 {}", p.root, key));
      }
      if (have != want)
        return no(w("{} has {} {}, wanted {}", "{} 的 {} 为 {}，需要 {}", p.root, key, have, want));
    }
    return pass(w("{} stands in {}", "{} 位于 {}", a[0], p.root));
  }
  if (only_shown(f)) return not_shown(w);
  return no(w("{} is not in {}", "{} 不在 {} 中", a[0], a[1]));
}

const PythonEnvironment* environment_at(const Facts& f, const std::string& root) {
  for (const auto& e : f.python)
    if (e.root == root) return &e;
  return nullptr;
}

Outcome python_env(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  const PythonEnvironment* e = environment_at(f, a[0]);
  if (!e && only_shown(f)) return not_shown(w);
  if (!e) return no(w("no Python environment in {}", "{} 中没有 Python 环境", a[0]));
  return pass(w("Python environment {} is there", "Python 环境 {} 已存在", a[0]));
}

Outcome wheel_there(const Facts& f, const Args& a, Lang lang) {
  const Words w{lang};
  const PythonEnvironment* e = environment_at(f, a[0]);
  if (!e && only_shown(f)) return not_shown(w);
  if (!e) return no(w("{} is not installed: {} does not exist yet", "{} 未安装：{} 尚不存在", a[1], a[0]));
  for (const auto& p : e->packages) {
    if (p.name != a[1]) continue;
    if (in_range(VersionOrder::pep440, p.version, a[2]))
      return pass(w("{} {} is in {}", "{} {} 已在 {} 中", p.name, p.version, a[0]));
    return no(w("{} {} is installed, wanted {}", "已安装 {} {}，需要 {}", p.name, p.version, a[2]));
  }
  return no(w("{} is not in {}", "{} 不在 {} 中", a[1], a[0]));
}

}  // namespace

const std::vector<PredicateRow>& predicate_rows() {
  static const std::vector<PredicateRow> rows = {
      {"driver-at-least",
       "VERSION",
       {"the loaded NVIDIA driver is this or newer", "加载的 NVIDIA 驱动不早于该版本"},
       driver_at_least},
      {"package", "NAME ...", {"distribution packages are installed", "软件包已安装"}, package_there},
      {"program", "NAME ...", {"programs are on PATH", "程序在 PATH 中"}, program_there},
      {"apt-source",
       "URI",
       {"a package source with this address is set up", "已配置该软件源"},
       apt_source_there},
      {"cuda",
       "VERSION",
       {"a CUDA toolkit with nvcc of this version", "有该版本且带 nvcc 的 CUDA 工具包"},
       cuda_there},
      {"cuda-link",
       "VERSION",
       {"/usr/local/cuda is a toolkit of this version", "/usr/local/cuda 是该版本的工具包"},
       cuda_link},
      {"gdrdrv-usable", "", {"/dev/gdrdrv opens read-write", "/dev/gdrdrv 可读写打开"}, gdrdrv_usable},
      {"rdma-named",
       "PREFIX",
       {"compute NICs are mlx5 and named so", "计算网卡为 mlx5 且按此命名"},
       rdma_named},
      {"option-live",
       "MODULE OPTION VALUE",
       {"the loaded module has it", "已加载的模块带有该选项"},
       option_live},
      {"option-pending",
       "MODULE OPTION VALUE",
       {"the next load would have it", "下次加载会带有该选项"},
       option_pending},
      {"nic-reaches-gpu-memory",
       "",
       {"DMA-BUF or nvidia_peermem", "DMA-BUF 或 nvidia_peermem"},
       nic_reaches_gpu_memory},
      {"memlock-unlimited", "", {"locked memory is not bounded", "锁定内存不受限"}, memlock_unlimited},
      {"nofile-at-least",
       "NUMBER",
       {"so many files may be open", "允许打开的文件数不少于此"},
       nofile_at_least},
      {"shm-at-least", "BYTES", {"/dev/shm is as large", "/dev/shm 不小于此"}, shm_at_least},
      {"prefix-ready", "PATH", {"the prefix can be written", "前缀目录可写"}, prefix_ready},
      {"part",
       "NAME PREFIX KEY=VALUE ...",
       {"a part stands below the prefix", "部件位于前缀目录下"},
       part_there},
      {"python-env", "ROOT", {"a Python environment stands there", "该处有 Python 环境"}, python_env},
      {"wheel", "ROOT NAME RANGE", {"a wheel is in the environment", "环境中有该 wheel"}, wheel_there},
  };
  return rows;
}

Outcome holds(const Predicate& predicate, const Facts& facts, Lang lang) {
  for (const auto& row : predicate_rows()) {
    if (row.name != predicate.name) continue;
    const auto words = split_ws(row.args);
    const bool open_ended = !words.empty() && words.back() == "...";
    const size_t least = open_ended ? words.size() - (words.size() > 2 ? 2 : 1) : words.size();
    if (predicate.args.size() < least || (!open_ended && predicate.args.size() != least))
      return cannot_tell(fmt::format("{}: wrong number of arguments", to_string(predicate)));
    return row.holds(facts, predicate.args, lang);
  }
  return cannot_tell(fmt::format("unknown predicate \"{}\"", predicate.name));
}

Outcome all_hold(const std::vector<Predicate>& predicates, const Facts& facts, Lang lang) {
  Outcome out = {Verdict::pass, {}};
  for (const auto& p : predicates) {
    Outcome one = holds(p, facts, lang);
    if (out.verdict == Verdict::pass && one.verdict == Verdict::pass) {
      if (!out.reason.empty() && !one.reason.empty()) out.reason += "; ";
      out.reason += one.reason;
    } else if (worst(out.verdict, one.verdict) != out.verdict) {
      out = std::move(one);
    }
  }
  return out;
}

std::string to_string(const Predicate& predicate) {
  return fmt::format("{}({})", predicate.name, join(predicate.args, ", "));
}

std::vector<std::pair<std::string, std::string>> split_registry_dwords(std::string_view value) {
  std::vector<std::pair<std::string, std::string>> out;
  value = trim(value);
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
    value = value.substr(1, value.size() - 2);
  for (std::string_view piece : split(value, ';')) {
    piece = trim(piece);
    if (piece.empty()) continue;
    const size_t eq = piece.find('=');
    if (eq == std::string_view::npos)
      out.emplace_back(std::string(piece), "");
    else
      out.emplace_back(std::string(trim(piece.substr(0, eq))), std::string(trim(piece.substr(eq + 1))));
  }
  return out;
}

std::string merge_registry_dwords(std::string_view pending, std::string_view key, std::string_view value) {
  std::vector<std::string> out;
  bool placed = false;
  for (const auto& [k, v] : split_registry_dwords(pending)) {
    if (k != key) {
      out.push_back(v.empty() ? k : k + "=" + v);
    } else if (!placed) {
      out.push_back(fmt::format("{}={}", key, value));
      placed = true;
    }
  }
  if (!placed) out.push_back(fmt::format("{}={}", key, value));
  return join(out, ";");
}

}  // namespace ep
