// A folder that plays a host for tests of apply: a root of its own, fake system programs first in PATH, and a
// World whose predicates read that folder. Not part of the program.
#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

#include "apply/apply.h"
#include "base/text.h"

namespace ep::test {

inline std::string slurp(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}
inline void spill(const std::string& path, std::string_view text, mode_t mode = 0644) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
  chmod(path.c_str(), mode);
}

/// Predicates: {"content", path, text}, {"exists", path}, {"absent", path}, {"yes"}, {"no", reason},
/// {"unknown"}.
class TestWorld : public World {
 public:
  explicit TestWorld(std::string root) : root_(std::move(root)) {}
  HostSituation host{"boot-1", "gpu-lab", "", true, true};
  std::map<std::string, std::string> facts;
  int refreshes = 0;
  HostSituation situation() override { return host; }
  void refresh() override { ++refreshes; }
  Outcome holds(const Predicate& p) override {
    auto path = [&] { return root_ + p.args.at(0); };
    if (p.name == "yes") return {Verdict::pass, ""};
    if (p.name == "no") return {Verdict::fail, p.args.empty() ? "no" : p.args[0]};
    if (p.name == "exists") return answer(std::filesystem::exists(path()), path() + " is not there");
    if (p.name == "absent") return answer(!std::filesystem::exists(path()), path() + " is there");
    if (p.name == "source")
      return answer(
          contains(slurp(root_ + "/etc/apt/sources.list.d/cuda.sources"), "URIs: " + p.args.at(0) + "\n"),
          "no such source");
    if (p.name == "content") return answer(slurp(path()) == p.args.at(1), path() + " has other content");
    // {"late", n}: could not be told n times, then true.
    if (p.name == "late" && asked_late_++ >= std::stoi(p.args.at(0))) return {Verdict::pass, ""};
    return {Verdict::unknown, "no such predicate: " + p.name};
  }
  std::map<std::string, std::string> facts_now(const Plan&) override { return facts; }
  std::vector<Finding> why_not_live(const Step& step) override {
    Finding f;
    f.code = "not_live";
    f.title = step.id + " is not live";
    return {f};
  }

 private:
  static Outcome answer(bool yes, std::string why) {
    return {yes ? Verdict::pass : Verdict::fail, yes ? "" : why};
  }
  std::string root_;
  int asked_late_ = 0;
};

class Bench : public testing::Test {
 public:
  Bench() {
    char name[] = "/tmp/epready-apply-XXXXXX";
    dir = mkdtemp(name);
    root = dir + "/root";
    for (const char* d : {"/etc/modprobe.d", "/etc/apt/sources.list.d", "/usr/sbin", "/opt"})
      std::filesystem::create_directories(root + d);
    // chroot needs root; the stand-in hands the folder on in a variable.
    tool("chroot",
         "EP_FAKE_ROOT=$1; export EP_FAKE_ROOT; shift; if [ \"$1 $2\" = \"env -C\" ]; then cd "
         "\"$EP_FAKE_ROOT$3\" "
         "|| exit 125; shift 3; fi; exec \"$@\"");
    old_path = std::getenv("PATH");
    setenv("PATH", (dir + "/bin:" + old_path).c_str(), 1);
    plan.host_name = "gpu-lab";
    plan.lane = "local";
    plan.prefix = "/opt/epready";
    world = std::make_unique<TestWorld>(root);
    options.root = root;
    options.world = world.get();
    options.may_drift = true;
    options.yes = {Risk::packages, Risk::kernel_options, Risk::reboot};
  }
  ~Bench() override {
    setenv("PATH", old_path.c_str(), 1);
    std::filesystem::remove_all(dir);
  }
  void tool(const std::string& name, const std::string& body) {
    spill(dir + "/bin/" + name, "#!/bin/sh\n" + body + "\n", 0755);
  }

  Step step(const std::string& id, std::vector<Action> actions, std::vector<std::string> needs = {}) {
    Step s;
    s.id = id;
    s.title = "do " + id;
    s.actions = std::move(actions);
    s.needs_steps = std::move(needs);
    return s;
  }
  ApplyReport apply() {
    auto progress = silent_progress();
    auto r = apply_plan(plan, options, *progress);
    EXPECT_TRUE(r) << (r ? "" : r.error().text());
    return r ? *r : ApplyReport{};
  }
  UndoReport undo(bool dry = false) {
    auto progress = silent_progress();
    UndoOptions u;
    u.root = root;
    u.world = world.get();
    u.yes = {Risk::packages, Risk::kernel_options};
    u.dry_run = dry;
    auto r = undo_prefix(plan.prefix, u, *progress);
    EXPECT_TRUE(r) << (r ? "" : r.error().text());
    return r ? *r : UndoReport{};
  }
  std::string at(const std::string& path) const { return slurp(root + path); }
  void put(const std::string& path, std::string_view text, mode_t mode = 0644) {
    spill(root + path, text, mode);
  }
  /// Every entry below the root: path, type, mode, owner and content in one text; what undo must restore
  /// exactly.
  std::string picture(const std::string& below = "") const {
    std::map<std::string, std::string> rows;
    for (auto it = std::filesystem::recursive_directory_iterator(root + below);
         it != std::filesystem::recursive_directory_iterator(); ++it) {
      struct stat st;
      lstat(it->path().c_str(), &st);
      std::string row =
          std::to_string(st.st_mode) + " " + std::to_string(st.st_uid) + " " + std::to_string(st.st_gid);
      if (S_ISLNK(st.st_mode)) row += " -> " + std::filesystem::read_symlink(it->path()).string();
      if (S_ISREG(st.st_mode)) row += " " + replace_all(slurp(it->path()), "\n", "\\n");
      rows[it->path().string().substr(root.size())] = row;
    }
    std::string out;
    for (const auto& [path, row] : rows) out += path + " " + row + "\n";
    return out;
  }

  std::string dir, root, old_path;
  Plan plan;
  std::unique_ptr<TestWorld> world;
  ApplyOptions options;
};

}  // namespace ep::test
