// Findings of topology, counters and hosts for people: mark, code, sentence, evidence.
#include <fmt/format.h>

#include "base/text.h"
#include "report/topology_text.h"

namespace ep {
namespace {

// Sources of evidence that are words, not places.
std::string source_word(const std::string& source, Lang lang) {
  static constexpr std::pair<const char*, const char*> kZh[] = {
      {"most hosts", "多数主机"}, {"before", "之前"}, {"after", "之后"}, {"first reading", "首次读取"}};
  if (lang == Lang::zh)
    for (auto [en, zh] : kZh)
      if (source == en) return zh;
  return source;
}

}  // namespace

std::string findings_text(const std::vector<Finding>& findings, const Look& look, bool verbose) {
  std::string out;
  for (const auto& f : findings) {
    if (f.severity == Severity::info && !verbose) continue;
    std::string line = fmt::format("{}: {}", f.code, title_of(f, look.lang));
    if (!f.cause.empty()) line += (look.lang == Lang::zh ? "；" : "; ") + cause_of(f, look.lang);
    out += fmt::format("{} {}\n", severity_mark(look, f.severity), wrap(line, look.width - 8, 8));
    size_t shown = 0;
    for (const auto& e : f.evidence) {
      if (e.text.empty() || (!verbose && shown++ >= 3)) continue;
      out += look.paint(Style::dim, fmt::format("        {}{}: {}", source_word(e.source, look.lang),
                                                e.line ? fmt::format(":{}", e.line) : "", e.text)) +
             "\n";
    }
  }
  return out;
}

}  // namespace ep
