// Shared options of apply and undo.
#include "cli/apply_options.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "apply/tree.h"
#include "plan/plan_json.h"

namespace ep {

Result<Plan> read_plan_file(const std::string& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
    return fail(ErrorKind::usage, "the plan is a folder, not a file", path, "",
                "write one: epready plan -o FILE");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (const int error = errno; !file && error != ENOENT)
    return os_failure("cannot read the plan file", path, error);
  else if (!file)
    return fail(ErrorKind::absent, "no such plan file", path, "", "write one: epready plan -o FILE");
  auto plan = plan_from_json(std::string((std::istreambuf_iterator<char>(file)), {}));
  if (plan) return plan;
  Error e = plan.error();
  if (e.kind == ErrorKind::malformed) e.kind = ErrorKind::usage;  // half a file, or something else
  return add_context(std::move(e), "while reading the plan " + path);
}

std::vector<Option> place_options(ApplyArguments& a) {
  return {
      {"--prefix", {"Folder that epready owns", "epready 所用的目录"}, &a.prefix, {}, "DIR", false},
      {"--root",
       {"Work on the system below DIR (an image) instead of this one", "作用于 DIR 下的系统（镜像）而非本机"},
       &a.root,
       {},
       "DIR",
       false}};
}

std::vector<Option> run_options(ApplyArguments& a) {
  return {
      {"--yes",
       {"Agree beforehand: packages, kernel, reboot, all (comma separated)",
        "预先同意：packages、kernel、reboot、all（逗号分隔）"},
       &a.yes,
       {},
       "CLASSES",
       false},
      {"--offline",
       {"Take downloads from this folder of `epready fetch` and nowhere else",
        "只使用 `epready fetch` 生成的目录"},
       &a.offline,
       {},
       "DIR",
       false},
      {"--mirror",
       {"Use address TO where one begins with FROM (repeatable)", "将以 FROM 开头的地址改为 TO（可重复）"},
       &a.mirrors,
       {},
       "FROM=TO",
       false},
      {"--jobs",
       {"Steps side by side (default: CPUs, at most 4)", "并行步骤数（默认：CPU 数，最多 4）"},
       &a.jobs,
       {},
       "N",
       false}};
}

std::string place_words(const ApplyArguments& a) {
  std::string out;
  if (!a.prefix.empty() && a.prefix != default_prefix()) out += " --prefix " + shell_quote(a.prefix);
  if (!a.root.empty() && a.root != "/") out += " --root " + shell_quote(a.root);
  return out;
}

Result<ApplyOptions> apply_options(const ApplyArguments& a, const Context& c) {
  ApplyOptions o;
  auto yes = parse_consent(a.yes);
  if (!yes) return Failure(yes.error());
  o.yes = *yes;
  o.root = a.root;
  if (a.jobs < 0 || a.jobs > 256)
    return fail(ErrorKind::usage, "--jobs is out of range", std::to_string(a.jobs), "1 to 256");
  o.jobs = a.jobs;
  if (!a.offline.empty()) {
    char real[4096];
    if (!realpath(a.offline.c_str(), real))
      return fail(ErrorKind::usage, "the offline folder is not there", a.offline, "",
                  "gather one: epready fetch -o DIR");
    o.offline_dir = real;
  }
  for (const auto& m : a.mirrors) {
    size_t eq = m.find('=');
    if (eq == 0 || eq == std::string::npos || eq + 1 == m.size())
      return fail(ErrorKind::usage, "--mirror wants FROM=TO", m,
                  "https://github.com/=https://mirror.example/github/");
    o.mirrors[m.substr(0, eq)] = m.substr(eq + 1);
  }
  o.stop = &interrupted();
  if (isatty(0) && !c.json)
    o.ask = [&c](Risk risk, const std::vector<const Step*>& steps) {
      std::vector<std::string> shown;
      for (const Step* s : steps) shown.push_back(s->title + (s->why.empty() ? "" : "   (" + s->why + ")"));
      return ask_yes(c, risk_words(c, risk), shown);
    };
  return o;
}

std::unique_ptr<Progress> progress_for(const Context& c) {
  if (c.json) return silent_progress();
  Terminal err = look_at_terminal(2);
  return stderr_progress(err.is_terminal, err.color, err.unicode, err.width);
}

std::string risk_words(const Context& c, Risk risk) {
  switch (risk) {
    case Risk::packages:
      return std::string(
          c.tr({"Install packages of the distribution or of a vendor?", "安装发行版或厂商的软件包？"}));
    case Risk::kernel_options:
      return std::string(
          c.tr({"Change kernel module options? Lines elsewhere that set the same option become comments.",
                "修改内核模块选项？其他文件中设置同一选项的行会变为注释。"}));
    case Risk::reboot:
      return std::string(
          c.tr({"Reboot this host when everything before it is done?", "在此前步骤完成后重启本机？"}));
    case Risk::user_files:
      break;
  }
  return std::string(c.tr({"Write files?", "写入文件？"}));
}

bool ask_yes(const Context& c, const std::string& question, const std::vector<std::string>& lines) {
  if (!isatty(0)) return false;
  c.note("\n" + question);
  for (const auto& line : lines) c.note("  " + line);
  std::fputs(std::string(c.tr({"[y/N] ", "[y/N] "})).c_str(), stderr);
  char answer[64] = {};
  if (!std::fgets(answer, sizeof answer, stdin)) return false;
  return answer[0] == 'y' || answer[0] == 'Y';
}

}  // namespace ep
