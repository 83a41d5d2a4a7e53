#include "report/libs_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ep {
namespace {

using Json = nlohmann::ordered_json;

const char* title_of(const std::string& family) {
  return family == "nccl"      ? "NCCL"
         : family == "nvshmem" ? "NVSHMEM"
         : family == "cudart"  ? "cudart"
                               : "DeepEP";
}

/// How a process that imports torch and then deep_ep comes by this file; nullptr: not at all.
const Resolution* loaded(const LibraryFacts& l, const std::string& path) {
  for (const auto* list : {&l.torch, &l.deepep})
    for (const auto& r : *list)
      if (r.path == path) return &r;
  return nullptr;
}

std::string archs(const GpuCode& code) {
  std::string out;
  for (int a : code.cubin) out += fmt::format("{}sm_{}", out.empty() ? "" : " ", a);
  for (int a : code.ptx) out += fmt::format("{}compute_{}", out.empty() ? "" : " ", a);
  return out + (code.cut ? " ..." : "");
}

std::string dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string finding_text(const Finding& f, const Look& look) {
  std::string out =
      fmt::format("{} {}\n", severity_mark(look, f.severity), wrap(f.code + ": " + f.title, look.width, 8));
  if (!f.cause.empty()) out += "        " + wrap(f.cause, look.width, 8) + "\n";
  for (const auto& e : f.evidence)
    if (!e.source.empty())
      out += look.paint(Style::dim, "        " + e.source + (e.text.empty() ? "" : "  " + e.text)) + "\n";
  for (const auto& x : f.fix) out += "        -> " + x + "\n";
  return out;
}

}  // namespace

std::string libs_lint_text(const LibraryFacts& l, const LibsLint& lint, const Look& look) {
  const Words w{look.lang};
  std::string out = look.paint(Style::bold, w("Libraries of {}", "{} 的库", l.root)) + "\n\n";
  out += fmt::format("  {} {} {} {} {}\n", pad(w("library", "库"), 8), pad(w("headers", "头文件"), 8),
                     pad("wheel", 30), pad(w("the file says", "文件自述"), 17), w("loaded", "加载"));
  for (const auto& c : l.copies) {
    const Resolution* r = loaded(l, c.path);
    std::string how = c.family == "deepep" ? w("import deep_ep", "import deep_ep")
                      : r                  ? r->how
                                           : w("no", "否");
    if (r && r->first != r->object)
      how += w(" (with {})", "（随 {}）", r->first.substr(r->first.rfind('/') + 1));
    const std::string says = c.family == "deepep" ? (c.elf.ok() ? "" : "?") : c.version.value_or("?");
    out += fmt::format(
        "  {} {} {} {} {}\n", pad(title_of(c.family), 8), pad(dash(c.header_version.value_or("")), 8),
        pad(dash(c.wheel.empty() ? "" : c.wheel + " " + c.wheel_version), 30), pad(dash(says), 17), how);
    const std::string place = starts_with(c.path, l.root + "/") ? c.path.substr(l.root.size() + 1) : c.path;
    out += "           " + look.paint(Style::dim, place) + "\n";
    if (c.family == "deepep" && !c.code.empty())
      out += "           " + w("GPU code: {}", "GPU 代码：{}", archs(c.code)) + "\n";
  }
  if (l.copies.empty()) out += "  " + w("none", "无") + "\n";
  out += "\n";
  for (const auto& [name, probe] : {std::pair{"vLLM has_deep_ep()   ", &lint.has_deep_ep},
                                    std::pair{"vLLM has_deep_ep_v2()", &lint.has_deep_ep_v2}})
    out += fmt::format("  {} {} {}\n", name, verdict_mark(look, probe->verdict),
                       wrap(probe->reason, look.width, 32));
  out += "\n";
  for (const auto& f : lint.findings) out += finding_text(f, look);
  if (std::none_of(lint.findings.begin(), lint.findings.end(),
                   [](const auto& f) { return f.severity != Severity::info; }))
    out += w("nothing wrong with these libraries", "这些库没有问题") + "\n";
  return out;
}

std::string libs_lint_json(const LibraryFacts& l, const LibsLint& lint) {
  const auto text = [](const Fact<std::string>& f) { return f.ok() ? Json(*f) : Json(nullptr); };
  Json j = {{"schema", "epready-libs-lint-1"}, {"tool", "epready"}, {"environment", l.root}};
  j["libraries"] = Json::array();
  for (const auto& c : l.copies) {
    const Resolution* r = loaded(l, c.path);
    Json one = {{"family", c.family},
                {"path", c.path},
                {"found_by", c.found_by},
                {"wheel", c.wheel},
                {"wheel_version", c.wheel_version},
                {"header_version", text(c.header_version)},
                {"library_version", text(c.version)},
                {"cuda_major", c.cuda_major},
                {"loaded", r != nullptr},
                {"loaded_by", r ? r->how : ""},
                {"runpath", Json::array()},
                {"cubin", c.code.cubin},
                {"ptx", c.code.ptx}};
    if (c.elf.ok()) {
      one["runpath"] = c.elf->runpath;
      for (const auto& p : c.elf->rpath) one["runpath"].push_back(p);
    }
    j["libraries"].push_back(std::move(one));
  }
  j["needed_by_deep_ep"] = Json::array();
  for (const auto& r : l.deepep)
    j["needed_by_deep_ep"].push_back({{"soname", r.soname},
                                      {"path", r.path.empty() ? Json(nullptr) : Json(r.path)},
                                      {"how", r.how},
                                      {"first", r.first}});
  const auto probe = [](const Outcome& o) {
    return Json{{"verdict", to_string(o.verdict)}, {"reason", o.reason}};
  };
  j["probes"] = {{"vllm.has_deep_ep", probe(lint.has_deep_ep)},
                 {"vllm.has_deep_ep_v2", probe(lint.has_deep_ep_v2)}};
  j["findings"] = Json::array();
  for (const auto& f : lint.findings) {
    Json evidence = Json::array();
    for (const auto& e : f.evidence) evidence.push_back({{"source", e.source}, {"text", e.text}});
    j["findings"].push_back({{"code", f.code},
                             {"severity", to_string(f.severity)},
                             {"title", f.title},
                             {"cause", f.cause},
                             {"fix", f.fix},
                             {"evidence", std::move(evidence)}});
  }
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ep
