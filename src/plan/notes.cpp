// What a plan says beside its steps: questions that the facts leave open, how far it leaves its stack, rules
// that warn, and why a host with GPUs got the local lane.
#include <fmt/format.h>

#include <algorithm>

#include "plan/build.h"
#include "plan/deviation.h"

namespace ep {

namespace {

/// What package names, addresses and wheels hang on, when the facts do not say it: the plan can be read, not
/// carried out.
void ask_for_system(Build& b) {
  if (b.unanswered.empty()) return;
  const Words& w = b.w;
  const bool os = b.unanswered.count("os"), machine = b.unanswered.count("machine");
  const std::string what = os && machine
                               ? w("operating system and processor are not known", "操作系统与处理器架构未知")
                           : os ? w("the operating system is not known", "操作系统未知")
                                : w("the processor is not known", "处理器架构未知");
  std::string told = "epready plan";
  if (os) told += " --with os=ubuntu24.04";
  if (machine) told += " --with machine=x86_64";
  b.note("system-unknown", Severity::fail, w("This plan is for reading only: {}", "此计划仅供阅读：{}", what),
         w("package sources, packages and wheels differ by it; nothing is taken for granted",
           "软件源、软件包与 wheel 都取决于它；不作默认假设"),
         {told + "  (" + w("say what it is", "指明实际情况") + ")", "cat /etc/os-release; uname -m"});
}

/// The text says nothing about the prefix, and some of it nobody read.
void note_paste(Build& b) {
  const Facts& f = b.facts;
  if (f.host_kind != "paste") return;
  b.note("paste-prefix", Severity::info,
         b.w("A text shows nothing below {}: every step there is planned",
             "文本不显示 {} 之下的内容：其中步骤全部列入", b.options.prefix),
         {});
  if (f.paste.unread_lines == 0) return;
  std::vector<std::string> shown;
  for (const auto& u : f.paste.unread)
    if (shown.size() < 5) shown.push_back(fmt::format("{}: {}", u.line, u.kind));
  b.note("paste-unread", Severity::info,
         b.w("{} lines of the text are known to no reader and count for nothing",
             "文本中有 {} 行无法识别，未予采用", f.paste.unread_lines),
         join(shown, "; "));
}

/// A DeepEP that stands elsewhere stays as it is.
void note_other_deepep(Build& b) {
  for (const auto& e : b.facts.python) {
    if (e.root == b.venv()) continue;
    std::vector<std::string> have;
    bool deepep = false;
    for (const auto& p : e.packages) {
      const bool is = p.name == "deep-ep" || p.name == "sgl-deep-ep";
      deepep = deepep || is;
      if (is || starts_with(p.name, "nvidia-nvshmem-") || starts_with(p.name, "nvidia-nccl-") ||
          p.name == "torch")
        have.push_back(p.name + " " + p.version);
    }
    if (!deepep) continue;
    b.note("other-deepep", Severity::info,
           b.w("DeepEP is installed already in {}; the plan leaves it alone and builds its own in {}",
               "{} 中已安装 DeepEP；计划不改动它，另建于 {}", e.root, b.venv()),
           join(have, ", "));
    return;
  }
}

/// The stack as its people run it needs a newer driver: said, with the way to it.
void offer_driver(Build& b, const Deviation& off) {
  const auto pin = b.stack.pins.find("cuda");
  const bool older = std::any_of(off.changes.begin(), off.changes.end(), [&](const auto& x) {
    return x.component == "cuda" && pin != b.stack.pins.end() && starts_with(pin->second, "13") &&
           !starts_with(x.chosen, "13");
  });
  if (!older || b.wishes.versions.count("cuda") || !b.facts.driver.version.ok()) return;
  if (b.platform && b.platform->skip.count("driver")) return;
  const auto branch = b.stack.pins.find("driver");
  if (branch == b.stack.pins.end()) return;
  b.note(
      "stack-untested", Severity::warn,
      b.w("Driver {} serves CUDA 12 only, so this is a variant of {} that nobody is known to have run",
          "驱动 {} 只支持 CUDA 12，因此这是 {} 的一个变体，尚无人验证", *b.facts.driver.version, b.stack.id),
      b.w("as pinned it has CUDA {}: with driver branch {}, one more step and the same reboot",
          "原组合使用 CUDA {}：需驱动分支 {}，多一个步骤，重启相同", pin->second, branch->second),
      {fmt::format("epready plan --stack {} --with driver={}", b.stack.id, branch->second)});
}

}  // namespace

void add_notes(Build& b) {
  const Words& w = b.w;
  if (b.stack.lane != "local") {
    ask_for_system(b);
    note_paste(b);
    note_other_deepep(b);
    if (b.stack.lane == "v2" && b.one_node())
      b.note("one-node-gin", Severity::info,
             w("Inside one node start V2 with EP_DISABLE_GIN=1", "单机使用 V2 时设置 EP_DISABLE_GIN=1"),
             w("it asks for GIN otherwise, which needs NICs", "否则会要求 GIN，而 GIN 需要网卡"));
  }
  const Deviation off =
      deviation(b.stack, b.recipe, b.solution, b.wishes, b.platform ? b.platform->id : std::string());
  for (const auto& x : off.changes)
    b.note(
        "stack-deviation", Severity::warn,
        w("{} {} instead of the stack's {}", "{} 使用 {} 而非组合中的 {}", x.component, x.chosen, x.pinned),
        x.why);
  offer_driver(b, off);
  if (off.other_platform)
    b.note("stack-platform", Severity::warn,
           w("stack {} is made for {}", "组合 {} 面向 {}", b.stack.id, join(b.stack.platforms, ", ")),
           w("this host is {}", "此机为 {}", b.platform ? b.platform->title.in(b.options.lang) : "?"),
           {"epready stacks"});
  for (const auto* list : {&b.solution.warnings, &b.solution.unknown})
    for (const auto& o : *list) {
      Finding f;
      f.code = o.rule;
      f.severity = Severity::warn;
      f.title = o.truth == Truth::unknown ? w("not known: {}", "无法确认：{}", o.text) : o.text;
      f.cause = o.evidence;
      f.fix = {o.change};
      f.evidence = {{o.source, 0, o.evidence}};
      b.plan.notes.push_back(std::move(f));
    }
  if (b.platform)
    for (const auto& n : b.platform->notes)
      b.note("platform", Severity::info, n.in(b.options.lang), b.platform->title.in(b.options.lang));
  if (b.facts.os.id.ok() && !b.apt() && !b.plan.steps.empty() &&
      std::any_of(b.plan.steps.begin(), b.plan.steps.end(),
                  [](const Step& s) { return s.risk == Risk::packages; }))
    b.note("packages-by-hand", Severity::warn,
           w("Package steps are written for Debian and Ubuntu; this is {}",
             "软件包步骤面向 Debian 与 Ubuntu；此机为 {}", *b.facts.os.id),
           w("apply leaves package steps undone here; the names tell what is needed",
             "apply 在此不执行软件包步骤；名称说明需要什么"));
}

void note_why_local(Plan& plan, const Facts& facts, const Recipe& recipe, const PlanOptions& options) {
  const Words w{options.lang};
  Finding f;
  f.code = "why-local";
  f.severity = Severity::warn;
  f.title = w("No lane of DeepEP is possible on these GPUs; the local lane is epready's own engine",
              "这些 GPU 上没有可用的 DeepEP 通道；local 通道是 epready 自带引擎");
  for (const char* lane : {"v2", "v1"}) {
    PlanOptions o = options;
    o.lane = lane;
    const auto planned = make_plan(facts, recipe, o);
    if (planned) continue;
    f.cause += fmt::format("{}{}: {}", f.cause.empty() ? "" : "; ", lane, planned.error().why);
    if (starts_with(planned.error().next, "epready plan")) f.fix.push_back(planned.error().next);
  }
  plan.notes.push_back(std::move(f));
}

}  // namespace ep
