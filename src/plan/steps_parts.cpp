// Steps for parts with a folder of their own below the prefix: NVSHMEM built or unpacked, GDRCopy's library;
// and GDRCopy's kernel module, which needs root.
#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"
#include "plan/build.h"

namespace ep {

bool own_nvshmem(const Build& b) {
  const std::string source = b.option("nvshmem-source");
  return b.release("nvshmem") && (source == "git" || source == "archive");
}

namespace {

/// The vendor's archive of this release for this machine and toolkit, and its hash: on record, or given with
/// --with nvshmem-sha256=. Empty hash: not known.
std::pair<std::string, std::string> nvshmem_archive(Build& b) {
  const Release* r = b.release("nvshmem");
  const char* machine = b.machine() == "aarch64" ? "linux-sbsa" : "linux-x86_64";
  const std::string file =
      fmt::format("libnvshmem-{}-{}_cuda{}-archive.tar.xz", machine, r->version, b.cuda_major());
  std::string hash;
  for (const auto& line : r->archives)
    if (starts_with(line, file + " ")) hash = line.substr(file.size() + 1);
  if (const auto told = b.wishes.hashes.find("nvshmem"); told != b.wishes.hashes.end()) hash = told->second;
  const auto& base = b.component("nvshmem").lists.at("archive").front();
  return {fmt::format("{}/{}/{}", base, machine, file), hash};
}

void make_nvshmem_archive(Build& b) {
  const auto [url, hash] = nvshmem_archive(b);
  if (hash.empty()) {
    b.note("archive-not-pinned", Severity::fail,
           b.w("No hash is on record for {}", "没有 {} 的哈希记录", url.substr(url.rfind('/') + 1)),
           b.w("a download that nothing proves is not unpacked", "没有凭据的下载不会被解包"),
           {fmt::format("{}/redistrib_{}.json  ({})", url.substr(0, url.rfind("/libnvshmem/")),
                        b.version("nvshmem"), b.w("the publisher's list of hashes", "发布者的哈希清单")),
            "--with nvshmem-sha256=<64 hexadecimal digits>"});
    return;
  }
  Step tools;
  tools.id = "archive-tools";
  tools.component = "nvshmem";
  tools.title = b.w("Install what unpacks .tar.xz", "安装解包 .tar.xz 的工具");
  tools.risk = Risk::packages;
  tools.needs_root = tools.needs_network = true;
  tools.before = tools.after = {{"package", {"xz-utils"}}};
  tools.actions = {InstallPackages{{"xz-utils"}}};
  tools.why = b.w("tar itself does not", "tar 本身不能");
  tools.estimate_s = 10;
  b.consider(std::move(tools));
  const std::string root = b.below("nvshmem"), file = url.substr(url.rfind('/') + 1);
  Step s = user_step(b, "nvshmem", "nvshmem",
                     b.w("Unpack NVSHMEM {} from its publisher's archive", "解包发布者的 NVSHMEM {} 归档",
                         b.version("nvshmem")));
  const std::map<std::string, std::string> stamp = {{"version", b.version("nvshmem")}, {"archive", hash}};
  const std::string archive = b.below("src/" + file);
  s.actions = {Fetch{url, hash, archive}, Unpack{archive, root}, stamp_file(root, stamp)};
  s.before = s.after = {part_predicate("nvshmem", b.options.prefix, stamp)};
  s.estimate_s = 60;
  b.consider(std::move(s), {"prefix", "archive-tools"});
}

}  // namespace

void make_nvshmem(Build& b) {
  if (!b.release("nvshmem")) return;
  if (!own_nvshmem(b)) return make_override(b, "nvshmem", "NVSHMEM");
  if (b.option("nvshmem-source") == "archive") return make_nvshmem_archive(b);
  const std::string commit = commit_of(b, "nvshmem");
  if (commit.empty()) return;
  const bool gdrcopy = b.option("nic-handler") == "cpu";
  const std::string root = b.below("nvshmem"), source = b.below("src/nvshmem-" + short_commit(commit));
  const std::string machine = b.machine();
  Step s = user_step(b, "nvshmem", "nvshmem",
                     b.w("Build NVSHMEM {} from source, IBGDA on", "从源码编译 NVSHMEM {}，启用 IBGDA",
                         b.version("nvshmem")));
  CMakeBuild build;
  build.source = source;
  build.build = source + "/build-epready";
  build.install_prefix = root;
  build.options = b.component("nvshmem").lists.at("cmake");
  build.options.push_back(std::string("-DNVSHMEM_USE_GDRCOPY=") + (gdrcopy ? "ON" : "OFF"));
  if (gdrcopy) build.options.push_back("-DGDRCOPY_HOME=" + b.below("gdrcopy"));
  build.options.push_back("-DCMAKE_CUDA_ARCHITECTURES=" + b.arch_list(false));
  build.options.push_back("-DCUDA_HOME=" + b.cuda_home());
  build.options.push_back("-DMLX5_lib=/usr/lib/" + machine +
                          "-linux-gnu/libmlx5.so.1");  // no unversioned link needed
  build.env = {{"CUDA_HOME", b.cuda_home()}};
  const std::map<std::string, std::string> stamp = {{"version", b.version("nvshmem")},
                                                    {"commit", commit},
                                                    {"arch", b.arch_list(false)},
                                                    {"ibgda", "yes"},
                                                    {"gdrcopy", gdrcopy ? "yes" : "no"}};
  s.actions = {GitCheckout{b.component("nvshmem").git_url, commit, source, false}, build,
               stamp_file(root, stamp)};
  s.before = s.after = {part_predicate("nvshmem", b.options.prefix, stamp)};
  s.estimate_s = 1800;
  b.consider(std::move(s), {"prefix", "build-tools", "cuda-toolkit", "gdrcopy"});
}

void make_gdrcopy(Build& b) {
  const std::string title = b.w("Build the GDRCopy library", "编译 GDRCopy 库");
  if (b.platform_skips("gdrcopy", "gdrcopy", title)) return;
  if (b.option("nic-handler") != "cpu") {
    b.wants.emplace("gdrcopy", std::vector<std::string>());
    b.skip(
        "gdrcopy", title,
        b.w("only NVSHMEM's handler \"cpu\" uses it; this stack uses \"{}\", and NVSHMEM is had without it",
            "只有 NVSHMEM 的 \"cpu\" 方式使用它；此组合使用 \"{}\"，NVSHMEM 不依赖它",
            b.option("nic-handler")));
    return;
  }
  const std::string commit = commit_of(b, "gdrcopy");
  if (commit.empty()) return;
  const std::string root = b.below("gdrcopy"), source = b.below("src/gdrcopy-" + short_commit(commit));
  Step s = user_step(b, "gdrcopy", "gdrcopy", title);
  s.why = b.w("handler cpu writes through it", "cpu 方式通过它写入");
  const std::map<std::string, std::string> stamp = {{"version", b.version("gdrcopy")}, {"commit", commit}};
  s.actions = {GitCheckout{b.component("gdrcopy").git_url, commit, source, false},
               RunArgv{{"make", "prefix=" + root, "CUDA=" + b.cuda_home(), "lib", "lib_install"},
                       source,
                       {{"CUDA_HOME", b.cuda_home()}},
                       600},
               stamp_file(root, stamp)};
  s.before = s.after = {part_predicate("gdrcopy", b.options.prefix, stamp)};
  s.estimate_s = 30;
  b.consider(std::move(s), {"prefix", "build-tools", "cuda-toolkit"});
}

// The module has no device node of its own making in any release on record: its packages bring the command
// below.
constexpr const char* kGdrdrvNode =
    "test -e /dev/gdrdrv || mknod -m 0666 /dev/gdrdrv c \"$(sed -n 's/ gdrdrv$//p' /proc/devices)\" 0";
constexpr const char* kGdrdrvUnit =
    "# Written by epready: loads GDRCopy's module at boot and makes its device node.\n"
    "[Unit]\nDescription=GDRCopy's kernel module\nAfter=systemd-modules-load.service\n"
    "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/sbin/modprobe gdrdrv\n"
    "ExecStart=/bin/sh -c \"test -e /dev/gdrdrv || mknod -m 0666 /dev/gdrdrv c "
    "$$(sed -n 's/ gdrdrv$$//p' /proc/devices) 0\"\n"
    "[Install]\nWantedBy=multi-user.target\n";

void make_gdrdrv(Build& b) {
  if (b.option("nic-handler") != "cpu") return;  // nobody else opens its device
  const std::string title = b.w("Build and load GDRCopy's kernel module", "编译并加载 GDRCopy 内核模块");
  if (b.platform_skips("peermem", "gdrdrv", title)) return;
  const std::string commit = commit_of(b, "gdrcopy");
  if (commit.empty()) return;
  const std::string kernel = b.facts.os.kernel_release.value_or("");
  if (kernel.empty()) {
    b.note("gdrdrv-kernel", Severity::fail, b.w("The running kernel is not known", "无法得知当前内核"),
           b.w("its module is built for one kernel", "内核模块只为一个内核编译"), {"uname -r"});
    return;
  }
  Step headers;
  headers.id = "kernel-headers";
  if (!b.wants.count(headers.id) && b.facts.kernel.headers.ok() && !*b.facts.kernel.headers) {
    headers.component = "gdrcopy";
    headers.title = b.w("Install headers of the running kernel", "安装当前内核的头文件");
    headers.why = b.w("GDRCopy's module is built on this machine", "GDRCopy 模块需在本机编译");
    headers.risk = Risk::packages;
    headers.needs_root = headers.needs_network = true;
    headers.before = headers.after = {{"package", {"linux-headers-" + kernel}}};
    headers.actions = {InstallPackages{{"linux-headers-" + kernel}}};
    headers.estimate_s = 60;
    b.consider(std::move(headers));
  }
  const std::string module = "/lib/modules/" + kernel + "/updates/gdrdrv.ko";
  const std::string unit = "/etc/systemd/system/epready-gdrdrv.service";
  Step s;
  s.id = "gdrdrv";
  s.component = "gdrcopy";
  s.title = title;
  s.why = b.w("NVSHMEM's handler \"cpu\" writes through it; a later kernel needs it built again",
              "NVSHMEM 的 \"cpu\" 方式通过它写入；换内核后需重新编译");
  s.risk = Risk::kernel_options;
  s.needs_root = s.needs_network = true;
  s.runbook_phase = b.phase("gdrcopy");
  s.before = s.after = {{"gdrdrv-usable", {}}};
  const std::string checkout = b.below("src/gdrdrv-" + short_commit(commit));
  s.actions = {
      GitCheckout{b.component("gdrcopy").git_url, commit, checkout, false},
      RunArgv{{"make", "driver", "KVER=" + kernel}, checkout, {}, 600},
      RunArgv{{"install", "-D", "-m", "0644", checkout + "/src/gdrdrv/gdrdrv.ko", module}, "", {}, 60},
      RunArgv{{"depmod", kernel}, "", {}, 120},
      WriteFile{unit, kGdrdrvUnit, 0644},
      MakeLink{"/etc/systemd/system/multi-user.target.wants/epready-gdrdrv.service", unit},
      RunArgv{{"modprobe", "gdrdrv"}, "", {}, 60},
      RunArgv{{"sh", "-c", kGdrdrvNode}, "", {}, 60}};
  s.undo = {RunArgv{{"rm", "-f", module}, "", {}, 60}, RunArgv{{"depmod", kernel}, "", {}, 120}};
  s.estimate_s = 60;
  b.consider(std::move(s), {"driver", "kernel-headers", "build-tools", "prefix"});
}

}  // namespace ep
