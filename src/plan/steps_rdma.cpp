// Steps about RDMA devices: the vendor's stack, or only names, the lighter way. All need root.
#include <fmt/format.h>

#include <algorithm>

#include "base/embedded.h"
#include "plan/build.h"
#include "plan/fact_scope.h"

namespace ep {

void make_doca_ofed(Build& b) {
  const std::string title = b.w("Install DOCA-OFED {}", "安装 DOCA-OFED {}", b.version("doca-ofed"));
  if (b.platform_skips("doca-ofed", "doca-ofed", title)) return;
  if (b.one_node()) {
    b.wants.emplace("doca-ofed", std::vector<std::string>());
    b.skip("doca-ofed", title, b.w("inside one node no NIC is used", "单机内不使用网卡"));
    return;
  }
  if (b.option("rdma-names") != "mlx5") {
    b.wants.emplace("doca-ofed", std::vector<std::string>());
    b.skip(
        "doca-ofed", title,
        b.option("rdma-names") == "kernel"
            ? b.w("names come from the kernel (rdma-names=kernel): what counts is the mlx5_core driver",
                  "名字由内核给出 (rdma-names=kernel)：真正需要的是 mlx5_core 驱动")
            : b.w("names and driver stay as they are (rdma-names=keep): what counts is the mlx5_core driver",
                  "名字与驱动保持不变 (rdma-names=keep)：真正需要的是 mlx5_core 驱动"));
    return;
  }
  const Release* r = b.release("doca-ofed");
  if (!r) return;
  Step s = packages_step(b, "doca-ofed", "doca-ofed", title, r->packages);
  s.why = b.w(
      "this stack was proven with DOCA's driver, which names NICs mlx5_N; the names alone would not need it "
      "(NVSHMEM 3.5.19 asks the device): leave it out with --with rdma-names=keep",
      "此组合在 DOCA 驱动（网卡名为 mlx5_N）下验证；仅就名字而言并非必需（NVSHMEM 3.5.19 "
      "按设备能力识别）：可用 --with rdma-names=keep 略过");
  s.before = {{"rdma-named", {"mlx5_"}}};
  s.after = {{"package", {"doca-ofed"}}};
  s.estimate_s = 1500;
  const bool there = all_hold(s.before, b.facts).verdict == Verdict::pass;
  if (!there &&
      all_hold(s.after, b.facts).verdict == Verdict::pass) {  // installed, names come with the reboot
    b.wants.emplace("doca-ofed", std::vector<std::string>());
    b.skip("doca-ofed", title,
           b.w("package doca-ofed is installed; the names change with the reboot",
               "软件包 doca-ofed 已安装；名字在重启后改变"));
    return;
  }
  const std::string repo = there ? "" : make_repo(b, "doca-ofed", "doca-ofed");
  if (!there && b.facts.kernel.headers.ok() && !*b.facts.kernel.headers) {
    Step h = packages_step(b, "kernel-headers", "doca-ofed",
                           b.w("Install headers of the running kernel", "安装当前内核的头文件"),
                           {"linux-headers-" + b.facts.os.kernel_release.value_or("generic")});
    h.why = b.w("DOCA builds kernel modules on this machine", "DOCA 需在本机编译内核模块");
    h.before = h.after = {{"package", {"linux-headers-" + b.facts.os.kernel_release.value_or("generic")}}};
    h.estimate_s = 60;
    b.consider(std::move(h));
  }
  b.consider(std::move(s), {repo, "kernel-headers"});
}

namespace {

/// The NICs that a name is wanted for: mlx5 devices whose name is another one, in the order of their
/// addresses, which is the order in which the kernel numbers them at boot.
std::vector<const RdmaDevice*> misnamed(const Build& b) {
  std::vector<const RdmaDevice*> out;
  for (const auto& d : b.facts.rdma)
    if (d.driver.ok() && *d.driver == "mlx5_core" && !starts_with(d.name, "mlx5_")) out.push_back(&d);
  std::sort(out.begin(), out.end(), [](auto* x, auto* y) { return x->address < y->address; });
  return out;
}

/// A free number for each, lowest first.
std::vector<std::string> new_names(const Build& b, size_t count) {
  std::vector<std::string> out;
  for (int n = 0; out.size() < count; ++n) {
    const std::string name = fmt::format("mlx5_{}", n);
    if (std::none_of(b.facts.rdma.begin(), b.facts.rdma.end(), [&](const auto& d) { return d.name == name; }))
      out.push_back(name);
  }
  return out;
}

}  // namespace

void make_rdma_names(Build& b) {
  if (b.option("rdma-names") != "kernel" || b.one_node()) return;
  const std::string title =
      b.w("Give RDMA devices the kernel's names (mlx5_N)", "让 RDMA 设备使用内核命名 (mlx5_N)");
  if (b.platform_skips("doca-ofed", "rdma-names", title)) return;
  Step s;
  s.id = "rdma-names";
  s.component = "doca-ofed";
  s.mark = Mark::change;
  s.title = title;
  s.why =
      b.w("a udev rule of rdma-core makes the other names; a file of the same name in /etc switches it off "
          "for good, "
          "rdma dev set renames now: no other driver, no reboot",
          "其他名字来自 rdma-core 的 udev 规则；/etc 中的同名文件将其永久关闭，rdma dev set "
          "立即改名：无需更换驱动，无需重启");
  s.risk = Risk::kernel_options;
  s.needs_root = true;
  s.runbook_phase = b.phase("doca-ofed");
  s.before = s.after = {{"rdma-named", {"mlx5_"}}};
  s.estimate_s = 2;
  const auto text = [](const char* path) { return std::string(embedded(path).value_or("")); };
  const std::string script = "/etc/epready/rdma-names.sh";
  RunArgv forth{{"sh", script}, "", {}, 60}, back = forth;
  const auto nics = misnamed(b);
  const auto names = new_names(b, nics.size());
  for (size_t i = 0; i < nics.size(); ++i) {
    const std::string& address = nics[i]->address;  // a reboot may number them in another order
    forth.argv.insert(forth.argv.end(), {address.empty() ? nics[i]->name : address, names[i]});
    back.argv.insert(back.argv.end(), {address.empty() ? names[i] : address, nics[i]->name});
  }
  s.actions = {WriteFile{"/etc/udev/rules.d/60-rdma-persistent-naming.rules",
                         text("data/tools/60-rdma-persistent-naming.rules"), 0644},
               WriteFile{script, text("data/tools/rdma-names.sh"), 0644}, forth};
  s.undo = {back};
  // dracut takes the rule into the image; initramfs-tools does not.
  if (b.facts.driver.initramfs_tool.value_or("") == "dracut") s.actions.push_back(RefreshInitramfs{});
  b.consider(std::move(s));
}

}  // namespace ep
