// Kernel module options and the initramfs.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "apply/actions.h"
#include "apply/module_options.h"
#include "base/text.h"

namespace ep {
namespace {

constexpr int kInitramfsLimitS = 1800;

std::vector<ModprobeFile> modprobe_files(const Site& site) {
  std::vector<ModprobeFile> out;
  for (const auto& folder : kModprobeFolders) {
    std::error_code none;
    for (const auto& e : std::filesystem::directory_iterator(site.tree.real(folder), none)) {
      std::string path = folder + "/" + e.path().filename().string();
      auto entry = site.tree.read(path);
      if (entry && entry->kind == Entry::Kind::file) out.push_back({path, std::move(entry->content)});
    }
  }
  return reading_order(std::move(out));
}

// The images in /boot with what changes when one is built anew (a new file, or a later time).
std::map<std::string, std::string> boot_images(const Site& site) {
  std::map<std::string, std::string> out;
  std::error_code none;
  for (const auto& e : std::filesystem::directory_iterator(site.tree.real("/boot"), none)) {
    std::string name = e.path().filename().string();
    struct stat st {};
    if (!starts_with(name, "initrd.img-") && !starts_with(name, "initramfs-")) continue;
    if (stat(e.path().c_str(), &st) == 0 && S_ISREG(st.st_mode))
      out[name] = fmt::format("{} {}.{:09}", st.st_ino, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
  }
  return out;
}

bool valid_setting(const std::string& text) {
  return text.find_first_of("\n\r\"\\#") == std::string::npos;
}

}  // namespace

std::vector<MergedOptions::Conflict> option_conflicts(const MergeModuleOptions& a, const Site& site) {
  return merge_module_options(a.module, a.options, a.owned_path, modprobe_files(site)).conflicts;
}

Result<> act(const MergeModuleOptions& a, Job& job) {
  Site& site = job.site();
  std::lock_guard lock(site.system_mutex);
  for (const auto& [name, value] : a.options)
    if (!valid_setting(name) || !valid_setting(value))
      return fail(ErrorKind::malformed, "module option holds characters that modprobe.d cannot carry",
                  name + "=" + value);
  auto merged = merge_module_options(a.module, a.options, a.owned_path, modprobe_files(site));
  std::set<std::string> files, options;
  for (const auto& [name, unused] : a.options) options.insert(name);
  for (const auto& c : merged.conflicts) {
    std::string shown = fmt::format("{}:{} sets {}={}", c.path, c.line, c.option, c.value);
    if (starts_with(c.path, "/etc/modprobe.d/")) {
      job.say("taken over: " + shown + " (the line stays as a comment)");
      files.insert(c.path);
    } else if (c.last_wins) {  // read before ours, a package's file loses, and it is not ours to change
      return fail(ErrorKind::failed, "a later file would override " + a.owned_path, shown,
                  "it is not below /etc/modprobe.d, so a package owns it",
                  "put a file of the same name into /etc/modprobe.d to replace it, then apply again");
    }
  }
  for (const auto& path : files) {
    auto entry = site.tree.read(path);
    if (!entry) return Failure(entry.error());
    entry->content = disable_options(entry->content, a.module, options, a.owned_path);
    if (auto r = site.keeper->change(path, *entry); !r) return Failure(r.error());
  }
  if (auto r = act(WriteFile{a.owned_path, merged.owned_text, 0644}, job); !r) return r;
  return {};
}

const std::vector<InitramfsTool>& initramfs_tools() {
  static const std::vector<InitramfsTool> tools = {
      {"/usr/sbin/update-initramfs", "update-initramfs", {"update-initramfs", "-u", "-k", "all"}},
      {"/usr/bin/dracut", "dracut", {"dracut", "--force", "--regenerate-all"}},
      {"/usr/sbin/dracut", "dracut", {"dracut", "--force", "--regenerate-all"}},
      {"/usr/bin/mkinitcpio", "mkinitcpio", {"mkinitcpio", "-P"}}};
  return tools;
}

Result<> act(const RefreshInitramfs&, Job& job) {
  Site& site = job.site();
  std::lock_guard lock(site.system_mutex);
  for (const auto& tool : initramfs_tools()) {
    auto there = site.tree.read(tool.path);
    if (!there || there->kind == Entry::Kind::absent) continue;
    Call call;
    call.argv = tool.argv;
    call.limit_s = kInitramfsLimitS;
    const auto before = boot_images(site);
    auto answer = job.call(call);
    if (!answer) return Failure(answer.error());
    // A tool that is switched off or wrapped says yes and does nothing; that would show only after the
    // reboot.
    if (!before.empty() && boot_images(site) == before)
      return fail(
          ErrorKind::failed, "the initramfs was not built: no image in /boot has changed",
          before.rbegin()->first, join(tool.argv, " ") + " ended well all the same",
          tool.argv[0] == "update-initramfs"
              ? "look for update_initramfs=no in /etc/initramfs-tools/update-initramfs.conf, or a wrapper"
              : "look for a wrapper or a configuration that keeps it from writing");
    return {};
  }
  job.say("this host has no initramfs tool: module options are read from /etc/modprobe.d at every load");
  return {};
}

}  // namespace ep
