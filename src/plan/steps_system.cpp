// Steps that touch the system: driver, toolkit, RDMA stack, module options, limits, packages, reboot. All
// need root.
#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"
#include "plan/build.h"
#include "plan/fact_scope.h"

namespace ep {
namespace {

/// Addresses of vendors spell the distribution and the processor in their own ways. What the facts do not
/// say stays a mark in braces, and a question of the plan: a wrong address installs the wrong system's
/// packages.
std::string fill_repo(Build& b, std::string text) {
  const auto &id = b.facts.os.id, &version = b.facts.os.version_id;
  if (id.ok() && version.ok()) {
    text = replace_all(text, "{cuda-os}", *id + replace_all(*version, ".", ""));
    text = replace_all(text, "{doca-os}", *id + *version);
  } else {
    b.unanswered.insert("os");
  }
  if (!b.facts.os.architecture.ok()) {
    b.unanswered.insert("machine");
    return text;
  }
  const bool arm = *b.facts.os.architecture == "aarch64";
  text = replace_all(text, "{cuda-arch}", arm ? "sbsa" : "x86_64");
  return replace_all(text, "{doca-arch}", arm ? "arm64-sbsa" : "x86_64");
}

/// What fetches and checks the key of a package source; a minimal system has none of it. Id of the step.
std::string make_download_tools(Build& b) {
  const std::string id = "download-tools";
  if (b.wants.count(id)) return id;
  const auto& lists = b.component("build-tools").lists;
  const auto list = lists.find("download");
  if (list == lists.end()) return {};
  Step s = packages_step(b, id, "build-tools",
                         b.w("Install what downloads and checks keys", "安装下载与校验密钥所需的工具"),
                         list->second);
  s.runbook_phase.clear();  // the runbook takes it for granted
  s.before = s.after = {{"program", {"curl"}}};
  s.estimate_s = 15;
  b.consider(std::move(s));
  return id;
}

const ModuleOption* option_fact(const Facts& facts, const std::string& name) {
  for (const auto& o : facts.driver.options)
    if (o.name == name) return &o;
  return nullptr;
}

/// Wanted (option, value) pairs of the stack: "NVreg_RegistryDwords:PeerMappingOverride=1",
/// "NVreg_EnableStreamMemOPs=1".
std::vector<std::pair<std::string, std::string>> wanted_options(const Build& b) {
  std::vector<std::pair<std::string, std::string>> out;
  if (b.one_node()) return out;
  const auto& lists = b.component("driver-options").lists;
  const auto list = lists.find(b.option("driver-options"));
  if (list == lists.end()) return out;
  for (const auto& item : list->second) {
    const size_t colon = item.find(':');
    const size_t cut = colon != std::string::npos ? colon : item.find('=');
    out.emplace_back(item.substr(0, cut), item.substr(cut + 1));
  }
  return out;
}

}  // namespace

bool has_step(const Build& b, std::string_view id) {
  return std::any_of(b.plan.steps.begin(), b.plan.steps.end(), [&](const Step& s) { return s.id == id; });
}

Step packages_step(Build& b, std::string id, const std::string& component, std::string title,
                   std::vector<std::string> names) {
  Step s;
  s.id = std::move(id);
  s.component = component;
  s.title = std::move(title);
  s.risk = Risk::packages;
  s.needs_root = s.needs_network = true;
  s.runbook_phase = b.phase(component);
  s.actions = {InstallPackages{std::move(names)}};
  if (!b.facts.os.id.ok()) b.unanswered.insert("os");
  return s;
}

std::string make_repo(Build& b, const std::string& component, const std::string& part) {
  const Release* r = b.release(component);
  if (!r || r->apt_repo.empty()) return {};
  for (const auto& repo : b.component(component).apt) {
    if (repo.id != r->apt_repo) continue;
    const std::string id = part + "-repository";
    if (b.wants.count(id)) return id;
    Step s;
    s.id = id;
    s.component = component;
    s.title = b.w("Add the package source {}", "添加软件源 {}", repo.id);
    s.why = b.w("{} comes from there; its key is bound to this source alone (signed-by)",
                "{} 来自该源；密钥只用于此源 (signed-by)", join(r->packages, " "));
    s.risk = Risk::packages;
    s.needs_root = s.needs_network = true;
    s.runbook_phase = b.phase(part);
    const auto told = b.wishes.keys.find(component);
    const std::string fingerprint = told != b.wishes.keys.end() ? told->second : repo.key_fingerprint;
    const std::string uri = fill_repo(b, repo.uri);
    s.before = s.after = {{"apt-source", {uri}}};
    s.actions = {AddAptSource{repo.id, uri, repo.suite, repo.components, fill_repo(b, repo.key_url),
                              repo.key_sha256, fingerprint}};
    s.estimate_s = 20;
    const bool there = holds(s.before.front(), b.facts).verdict == Verdict::pass;
    b.consider(std::move(s), there ? std::vector<std::string>() : std::vector{make_download_tools(b)});
    if (fingerprint.empty() && repo.key_sha256.empty() && b.plan.steps.size() && b.plan.steps.back().id == id)
      b.note(
          "key-not-pinned", Severity::warn,
          b.w("No fingerprint is on record for the signing key of {}", "没有 {} 签名密钥的指纹记录", repo.id),
          b.w("apply and the scripts refuse an unpinned key until they are told the fingerprint",
              "在得知指纹之前，apply 与脚本都拒绝未固定的密钥"),
          {b.w("get it by another way than {} itself: the vendor's documentation or support, or a host that "
               "trusts the key already (gpg --show-keys --with-fingerprint KEYRING there)",
               "请通过 {} 之外的途径取得：厂商文档或支持，或已信任该密钥的主机（在那里运行 gpg --show-keys "
               "--with-fingerprint KEYRING）",
               fill_repo(b, repo.key_url)),
           fmt::format("--with {}-key=FINGERPRINT", component)});
    return id;
  }
  return {};
}

void make_driver(Build& b) {
  const std::string title =
      b.w("Install the NVIDIA driver, branch {}", "安装 NVIDIA 驱动，分支 {}", b.version("driver"));
  if (b.platform_skips("driver", "driver", title)) return;
  const Release* r = b.release("driver");
  if (!r) return;
  // Any driver that the chosen toolkit accepts is left alone: the rules judge it, this step only fills a gap.
  const std::string floor = b.driver_floor();
  const Outcome loaded = holds({"driver-at-least", {floor}}, b.facts, b.options.lang);
  if (loaded.verdict == Verdict::unknown) {
    // Never over a driver that may be there: it is asked for, not replaced.
    b.wants.emplace("driver", std::vector<std::string>());
    b.skip("driver", title,
           b.w("not known which driver is loaded ({}); it must be {} or newer",
               "不知道加载的是哪个驱动（{}）；须为 {} 或更新", loaded.reason, floor));
    b.note(
        "driver-unknown", Severity::warn,
        b.w("The driver is not known; this plan needs {} or newer", "驱动未知；此计划需要 {} 或更新", floor),
        loaded.reason, {"cat /proc/driver/nvidia/version"});
    return;
  }
  const std::string repo = loaded.verdict == Verdict::pass ? "" : make_repo(b, "driver", "cuda");
  Step s = packages_step(b, "driver", "driver", title, r->packages);
  s.why = b.w("CUDA {} needs {} or newer; open kernel modules for Blackwell and DMA-BUF",
              "CUDA {} 需要 {} 以上；Blackwell 与 DMA-BUF 需要开源内核模块", b.version("cuda"), floor);
  s.before = s.after = {{"driver-at-least", {floor}}};
  if (!b.facts.driver.version.ok()) s.after = {};  // loaded after the reboot: its step proves it
  s.before = {{"driver-at-least", {floor}}};
  s.estimate_s = 300;
  b.consider(std::move(s), {repo});
}

void make_cuda(Build& b) {
  const std::string version = b.version("cuda");
  const std::string title = b.w("Install CUDA toolkit {}", "安装 CUDA 工具包 {}", version);
  if (b.platform_skips("cuda", "cuda-toolkit", title)) {
    if (b.facts.cuda.empty())
      b.note(
          "no-toolkit", Severity::fail, b.w("This container has no CUDA toolkit", "此容器没有 CUDA 工具包"),
          b.w("DeepEP is compiled with nvcc; the platform expects the image to bring it",
              "DeepEP 需要 nvcc 编译；该平台要求镜像自带"),
          {fmt::format(
              "epready plan --as k8s  ({})",
              b.w("a pod whose image has it: {}", "镜像自带工具包的 Pod：{}",
                  b.platform && !b.platform->image.empty() ? b.platform->image : "nvidia/cuda:...-devel"))});
    return;
  }
  const Release* r = b.release("cuda");
  if (!r) return;
  Step s = packages_step(b, "cuda-toolkit", "cuda", title, r->packages);
  s.before = s.after = {{"cuda", {version}}};
  s.why = b.solution.choice("cuda")->why;
  s.estimate_s = 600;
  const std::vector<Predicate> before = s.before;
  const bool there = all_hold(before, b.facts).verdict == Verdict::pass;
  const std::string repo = there ? "" : make_repo(b, "cuda", "cuda");
  b.consider(std::move(s), {repo});
}

/// Several toolkits stand side by side, and everything here names its own: the link is for people and for
/// builds that look nowhere else. One that is there is somebody's choice.
void make_cuda_link(Build& b) {
  const std::string root = b.cuda_home(), version = b.version("cuda"), how = b.option("cuda-link");
  if (!b.release("cuda") || how == "keep" || root == "/usr/local/cuda") return;
  Step s;
  s.id = "cuda-link";
  s.component = "cuda";
  s.title = b.w("Point /usr/local/cuda at CUDA {}", "让 /usr/local/cuda 指向 CUDA {}", version);
  if (b.platform && b.platform->skip.count("cuda")) return;
  s.why = b.w("builds that name no toolkit look there", "未指明工具包的构建会用它");
  s.needs_root = true;
  s.runbook_phase = b.phase("cuda");
  s.before = s.after = {{"cuda-link", {version}}};
  s.actions = {MakeLink{"/usr/local/cuda", root}};
  s.estimate_s = 1;
  const auto& link = b.facts.cuda_home_link;
  if (how != "set" && link.known != Known::absent &&
      holds(s.before.front(), b.facts).verdict != Verdict::pass) {
    b.wants.emplace(s.id, std::vector<std::string>());
    b.skip(s.id, s.title,
           b.w("/usr/local/cuda is {} and stays so: what is built here names {}; --with cuda-link=set "
               "changes it",
               "/usr/local/cuda 指向 {}，保持不变：此处的构建使用 {}；--with cuda-link=set 可更改",
               link.ok() ? *link : link.why, root));
    return;
  }
  b.consider(std::move(s), {"cuda-toolkit"});
}

void make_driver_options(Build& b) {
  const std::string title = b.w("Set NVIDIA module options", "设置 NVIDIA 模块选项");
  if (b.platform_skips("driver-options", "driver-options", title)) return;
  const auto wanted = wanted_options(b);
  if (wanted.empty()) {
    b.wants.emplace("driver-options", std::vector<std::string>());
    b.skip("driver-options", title,
           b.one_node() ? b.w("inside one node no NIC's doorbell is rung", "单机内不敲网卡门铃")
                        : b.w("the NIC handler \"{}\" needs no module option",
                              "网卡方式 \"{}\" 不需要模块选项", b.option("nic-handler")));
    return;
  }
  Step s;
  s.id = "driver-options";
  s.component = "driver-options";
  s.title = title;
  s.risk = Risk::kernel_options;
  s.needs_root = true;
  s.runbook_phase = b.phase("driver-options");
  s.estimate_s = 90;
  MergeModuleOptions merge{"nvidia", {}, "/etc/modprobe.d/epready-nvidia.conf"};
  std::vector<Predicate> live;
  std::vector<std::string> names, kept;
  bool files_read = true;
  for (const auto& [option, value] : wanted) {
    std::string whole = value;
    if (option == "NVreg_RegistryDwords") {
      const ModuleOption* have = option_fact(b.facts, option);
      // Files that were not read may set more: what the loaded module has is kept at least.
      std::string pending = have ? have->pending.value_or("") : "";
      if (have && have->pending.known == Known::unreadable) pending = have->live.value_or("");
      if (!have || have->pending.known == Known::unreadable) files_read = false;
      const size_t eq = value.find('=');
      whole = merge_registry_dwords(pending, value.substr(0, eq), value.substr(eq + 1));
      if (whole != value) kept.push_back(whole);
    }
    merge.options[option] = whole;
    names.push_back(value.find('=') == std::string::npos ? option.substr(6) + "=" + value : value);
    live.push_back({"option-live", {"nvidia", option, value}});
    s.after.push_back({"option-pending", {"nvidia", option, value}});
  }
  s.title = b.w("Set NVIDIA module options: {}", "设置 NVIDIA 模块选项：{}", join(names, ", "));
  s.why =
      b.w("the GPU rings the NIC's doorbell itself; merged with what is set, initramfs refreshed, live after "
          "the reboot",
          "GPU 直接敲网卡门铃；与现有设置合并，刷新 initramfs，重启后生效");
  if (!kept.empty()) s.why += b.w("; other keys are kept: {}", "；保留其他键：{}", kept.front());
  const bool is_live = all_hold(live, b.facts).verdict == Verdict::pass;
  const bool is_pending = all_hold(s.after, b.facts).verdict == Verdict::pass;
  const bool stale =
      b.facts.driver.initramfs_has_nvidia_options.ok() && !*b.facts.driver.initramfs_has_nvidia_options;
  s.mark = option_fact(b.facts, wanted[0].first) ? Mark::change : Mark::add;
  // Live and not in any file (set by hand at load) would be lost at the next boot, so both are asked for; a
  // file that the initramfs lacks is refreshed.
  s.before = is_live ? live : std::vector<Predicate>{};
  if (!is_live) {
    s.before = s.after;
    if (is_pending && stale) s.before = live;
  }
  s.actions = {merge, RefreshInitramfs{}};
  const bool changes = all_hold(s.before, b.facts).verdict != Verdict::pass;
  if (changes && !files_read && b.facts.host_kind == "paste")
    b.note("modprobe-unread", Severity::warn,
           b.w("Module options that files set already are not shown: RegistryDwords there would be replaced",
               "文本未显示 modprobe 文件已设置的选项：其中的 RegistryDwords 会被替换"),
           b.w("a text shows only what was pasted", "文本只显示被粘贴的内容"),
           {"grep -rE 'options +nvidia' /etc/modprobe.d /usr/lib/modprobe.d /lib/modprobe.d"});
  b.consider(std::move(s), {"driver"});
}

void make_peermem(Build& b) {
  const std::string title = b.w("Load nvidia-peermem now and at boot", "立即并在启动时加载 nvidia-peermem");
  if (b.platform_skips("peermem", "peermem", title)) return;
  if (b.option("nodes") == "1") return;
  Step s;
  s.id = "peermem";
  s.component = "peermem";
  s.title = title;
  s.risk = Risk::kernel_options;
  s.needs_root = true;
  s.before = s.after = {{"nic-reaches-gpu-memory", {}}};
  s.actions = {WriteFile{"/etc/modules-load.d/epready-peermem.conf", "nvidia_peermem\n", 0644},
               RunArgv{{"modprobe", "nvidia_peermem"}, "", {}, 60}};
  s.undo = {RemoveFile{"/etc/modules-load.d/epready-peermem.conf"}};
  s.estimate_s = 2;
  if (has_step(b, "driver")) {  // a driver that is not there yet brings DMA-BUF (open modules)
    b.wants.emplace("peermem", std::vector<std::string>());
    b.skip("peermem", title, b.w("judged after the driver's reboot", "在驱动重启之后再判断"));
    return;
  }
  b.consider(std::move(s), {"driver"});
}

void make_limits(Build& b) {
  const std::string title = b.w("Lift the limits of locked memory, open files and shared memory",
                                "解除锁定内存、打开文件与共享内存的限制");
  if (b.platform_skips("limits", "limits", title)) return;
  // The least that the parts need, and what is set where that is not there.
  struct Row {
    Predicate wanted;
    const char *name, *value;
  };
  const Row rows[] = {{{"memlock-unlimited", {}}, "memlock", "unlimited"},
                      {{"nofile-at-least", {"65536"}}, "nofile", "1048576"},
                      {{"shm-at-least", {"1073741824"}}, "shm", "50%"}};
  Step s;
  s.id = "limits";
  s.component = "limits";
  s.title = title;
  s.why = b.w(
      "RDMA registers memory, GIN opens a file for every queue pair, NCCL shares memory between processes; "
      "services need LimitMEMLOCK=infinity of their own",
      "RDMA 需注册内存，GIN 每个队列对占一个文件，NCCL 在进程间共享内存；服务需自行设置 "
      "LimitMEMLOCK=infinity");
  s.risk = Risk::user_files;
  s.needs_root = true;
  SetLimits set;
  for (const auto& row : rows) {
    // Inside one node no NIC registers memory.
    if (b.one_node() && row.wanted.name == "memlock-unlimited") continue;
    s.before.push_back(row.wanted);
    if (holds(row.wanted, b.facts).verdict != Verdict::pass) set.limits[row.name] = row.value;
  }
  s.after = s.before;
  s.actions = {set};
  s.estimate_s = 1;
  b.consider(std::move(s));
}

void make_build_tools(Build& b) {
  const auto& lists = b.component("build-tools").lists;
  auto list = lists.find(b.option("build-packages"));
  if (list == lists.end()) list = lists.find("packages");
  std::vector<std::string> missing;
  bool unread = false;
  for (const auto& name : list->second) {
    const Outcome o = holds({"package", {name}}, b.facts);
    if (o.verdict != Verdict::pass) missing.push_back(name);
    unread = unread || o.verdict == Verdict::unknown;
  }
  Step s =
      packages_step(b, "build-tools", "build-tools",
                    b.w("Install build tools and RDMA userspace", "安装构建工具与 RDMA 用户态"), missing);
  s.before = s.after = {{"package", list->second}};
  if (!missing.empty() && !unread) s.why = b.w("missing: {}", "缺少：{}", join(missing, " "));
  s.estimate_s = 60;
  b.consider(std::move(s));
}

void make_reboot(Build& b) {
  Step s;
  s.id = "reboot";
  s.component = "driver-options";
  s.mark = Mark::restart;
  s.title =
      b.w("Reboot, then check that driver options and NICs are live", "重启，然后确认驱动选项与网卡已生效");
  s.risk = Risk::reboot;
  s.needs_root = true;
  s.runbook_phase = b.stack.phases.empty() ? "" : "Phase 3, 4";
  s.actions = {Reboot{}};
  s.estimate_s = 300;
  const auto skips = [&](const char* part) { return b.platform && b.platform->skip.count(part) > 0; };
  if (skips("driver") && skips("driver-options")) return;  // the node's to reboot
  const auto wanted = skips("driver-options") ? decltype(wanted_options(b)){} : wanted_options(b);
  for (const auto& [option, value] : wanted) s.after.push_back({"option-live", {"nvidia", option, value}});
  if (b.option("rdma-names") == "mlx5" && b.release("doca-ofed") && !b.one_node())
    s.after.push_back({"rdma-named", {"mlx5_"}});
  if (has_step(b, "driver")) s.after.push_back({"driver-at-least", {b.driver_floor()}});
  if (s.after.empty()) return;
  s.before = s.after;
  b.consider(std::move(s), {"driver", "doca-ofed", "rdma-names", "driver-options", "peermem"});
}

void make_prefix(Build& b) {
  Step s;
  s.id = "prefix";
  s.component = "env";
  s.title = b.w("Make the folder {} for this user", "为当前用户创建目录 {}", b.options.prefix);
  s.why = b.w("everything below it is built without root", "其下的一切都不需要 root 构建");
  s.risk = Risk::user_files;
  s.needs_root = true;
  s.runbook_phase = b.phase("build-tools");
  s.before = s.after = {{"prefix-ready", {b.options.prefix}}};
  s.actions = {RunArgv{
      {"install", "-d", "-m", "0755", "-o", std::to_string(b.facts.user.uid.value_or(0)), b.options.prefix},
      "",
      {},
      10}};
  s.estimate_s = 1;
  b.consider(std::move(s));
}

}  // namespace ep
